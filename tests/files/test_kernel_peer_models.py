# SPDX-License-Identifier: BSD-3-Clause
"""Kernel models as LIBSVM text: the real program and this package read each other's files."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from libsvm import svmutil
from scipy import sparse

from combinations import every_pair
from maxmargin import SVC, LinearSVC
from maxmargin.files import ModelError, SavedKernelModel, load_model, save_model
from maxmargin.kernels import Gaussian, Linear, Polynomial, Sigmoid
from peer_programs import ATOL, as_rows, data_of, libsvm_values
from written_files import mutated, mutations

KERNELS = {
    "-t 1 -d 2 -g 0.3 -r 1.5": Polynomial(2, 0.3, 1.5),
    "-t 2 -g 0.4": Gaussian(0.4),
    "-t 3 -g 0.01 -r -0.1": Sigmoid(0.01, -0.1),
}


def pair_values(model, X):
    return model.decision_function(X).reshape(X.shape[0], -1)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("options", KERNELS)
def test_libsvm_writes_and_we_read(tmp_path, options, classes):
    X, y = data_of(classes)
    theirs = svmutil.svm_train(y, as_rows(X), f"{options} -c 0.7 -q")
    path = tmp_path / "model"
    svmutil.svm_save_model(str(path), theirs)
    # LIBSVM's own file keeps 8 digits of each value, so its file is the reference, not its memory.
    labels, values = libsvm_values(svmutil.svm_load_model(str(path)), X)
    ours = load_model(path)
    assert isinstance(ours, SavedKernelModel)
    assert (ours.format, ours.writer, ours.kernel) == ("libsvm", "LIBSVM", KERNELS[options])
    np.testing.assert_allclose(pair_values(ours, X), values, atol=ATOL)
    np.testing.assert_array_equal(ours.predict(X), labels)
    np.testing.assert_array_equal(ours.predict(as_rows(X)), labels)
    loaded = SVC.load(path)
    assert loaded.classes_.tolist() == sorted(set(y.tolist()))
    assert loaded.kernel_ == KERNELS[options]
    scores = pair_values(loaded.set_params(decision_function_shape="ovo"), X)
    expected = by_pair(theirs.get_labels(), values)
    for pair, found in by_pair(loaded.classes_.tolist(), scores, second=classes == 2).items():
        np.testing.assert_allclose(found, expected[pair], atol=ATOL)


def by_pair(labels, values, second=False):
    """The scores for the first class against the second of every pair, in both orders."""
    pairs = list(combinations(labels, 2))
    found = {(b, a) if second else (a, b): values[:, k] for k, (a, b) in enumerate(pairs)}
    return found | {(b, a): -value for (a, b), value in found.items()}


@pytest.mark.filterwarnings("ignore:No kernel")  # the sigmoid
@every_pair(options=[*KERNELS, "-t 0"], form=[np.asarray, sparse.csr_matrix], classes=[2, 3, 4])
def test_we_write_and_libsvm_reads(tmp_path, options, form, classes):
    X, y = data_of(classes)
    kernel = KERNELS.get(options, Linear())
    model = SVC(kernel=kernel, C=0.7, decision_function_shape="ovo").fit(form(X), y)
    model.save(tmp_path / "model", format="libsvm")
    labels, values = libsvm_values(svmutil.svm_load_model(str(tmp_path / "model")), X)
    np.testing.assert_allclose(values, pair_values(model, form(X)), atol=ATOL)
    np.testing.assert_array_equal(labels, model.predict(form(X)))
    # And back: nothing is lost that predicts.
    np.testing.assert_allclose(pair_values(load_model(tmp_path / "model"), X), values, atol=ATOL)
    again = SVC.load(tmp_path / "model")
    assert again.kernel_ == kernel
    np.testing.assert_allclose(
        pair_values(again.set_params(decision_function_shape="ovo"), X), values, atol=ATOL
    )
    save_model(load_model(tmp_path / "model"), tmp_path / "again", format="libsvm")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_single_precision_is_written_exactly(tmp_path):
    X, y = data_of(2)
    X = X.astype(np.float32)
    model = SVC().fit(X, y)
    model.save(tmp_path / "model", format="libsvm")
    vectors = load_model(tmp_path / "model").vectors.toarray()
    np.testing.assert_array_equal(np.sort(vectors, axis=0), np.sort(model.support_vectors_, axis=0))


def test_columns_after_those_of_the_support_vectors_count_in_distances(tmp_path):
    X, y = data_of(2)
    theirs = svmutil.svm_train(y, as_rows(X), "-t 2 -g 0.4 -q")
    svmutil.svm_save_model(str(tmp_path / "model"), theirs)
    wide = np.hstack([X, np.full((len(X), 3), 0.5)])
    labels, values = libsvm_values(svmutil.svm_load_model(str(tmp_path / "model")), wide)
    ours = load_model(tmp_path / "model")
    assert ours.width is None
    np.testing.assert_allclose(pair_values(ours, wide), values, atol=ATOL)
    assert not np.allclose(values, libsvm_values(theirs, X)[1])
    save_model(ours, tmp_path / "ours")
    np.testing.assert_allclose(pair_values(load_model(tmp_path / "ours"), wide), values, atol=ATOL)
    np.testing.assert_array_equal(load_model(tmp_path / "ours").predict(wide), labels)


def test_linear_files_are_also_models_of_support_vectors(tmp_path):
    for classes in (2, 3):
        X, y = data_of(classes)
        svmutil.svm_save_model(str(tmp_path / "model"), svmutil.svm_train(y, as_rows(X), "-t 0 -q"))
        model = SVC.load(tmp_path / "model")
        assert model.kernel == "linear"
        np.testing.assert_array_equal(model.predict(X), load_model(tmp_path / "model").predict(X))
    LinearSVC().fit(X, y == 7).save(tmp_path / "plane", format="libsvm")


def test_what_libsvm_has_no_room_for(tmp_path):
    X, y = data_of(3)
    cases = {
        "no kernel Laplacian": SVC(kernel="laplacian", gamma=0.1).fit(X, y),
        "no kernel": SVC(kernel=Gaussian(0.1) + Linear()).fit(X, y),
        "one class from the rest": SVC(multi_class="ovr").fit(X, y),
        "whole numbers": SVC().fit(X, y.astype(str)),
        "no kernel Precomputed": SVC(kernel="precomputed").fit(X @ X.T, y),
    }
    for reason, model in cases.items():
        with pytest.raises(ModelError, match=reason):
            model.save(tmp_path / "model", format="libsvm")
    with pytest.raises(ModelError, match="LIBLINEAR has no kernels"):
        save_model(SVC().fit(X, y), tmp_path / "model", format="liblinear")


def test_a_precomputed_kernel_is_refused_with_the_reason(tmp_path):
    X, y = data_of(2)
    numbered = np.hstack([np.arange(1, len(X) + 1)[:, None], X @ X.T])
    theirs = svmutil.svm_train(y, as_rows(numbered), "-t 4 -q")
    svmutil.svm_save_model(str(tmp_path / "model"), theirs)
    with pytest.raises(ModelError, match=r"line 2: the kernel is precomputed.*not in the file"):
        load_model(tmp_path / "model")


TEXT = (
    "svm_type c_svc\nkernel_type polynomial\ndegree 2\ngamma 0.5\ncoef0 1\nnr_class 2\ntotal_sv 2\n"
    "rho 0.25\nlabel 1 -1\nnr_sv 1 1\nSV\n0.5 1:1 3:2 \n-0.5 2:1 \n"
)
ERRORS = [
    ("polynomial", "cosine", "line 2: the kernel is 'cosine'. Those that can be read are linear"),
    ("degree 2\n", "", "lacks 'degree'"),
    ("degree 2", "degree 2.5", "line 3: '2.5' is not a whole number"),
    ("degree 2", "degree 99", "line 2: The 'degree' parameter"),
    ("gamma 0.5", "gamma -0.5", "line 2: The 'gamma' parameter"),
    ("gamma 0.5", "gamma nan", "line 4: 'nan' is not a finite number"),
    ("coef0 1\n", "", "lacks 'coef0'"),
    ("coef0 1", "coef0 1 2", "line 5: 'coef0' should have 1 values"),
    ("3:2", "2147483647:1", "does not justify"),
    ("total_sv 2", "total_sv 3", "add up to 3"),
]


@pytest.mark.parametrize(("old", "new", "reason"), ERRORS)
def test_unsound_text(tmp_path, old, new, reason):
    assert old in TEXT
    (tmp_path / "model").write_text(TEXT)
    sound = load_model(tmp_path / "model")
    # (0.5 <x, z> + 1)^2 of the two vectors with x = (2, 2, 0).
    assert sound.decision_function([[2.0, 2.0, 0.0]]) == pytest.approx([0.5 * 4 - 0.5 * 4 - 0.25])
    (tmp_path / "model").write_text(TEXT.replace(old, new, 1))
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")


@settings(max_examples=150)
@given(changes=mutations)
def test_mutations_of_the_text(tmp_path_factory, changes):
    path = tmp_path_factory.getbasetemp() / "mutated kernel text"
    path.write_bytes(mutated(TEXT.encode(), changes))
    try:
        model = load_model(path)
    except ModelError:
        return
    with np.errstate(all="ignore"):
        assert np.isin(model.predict(np.ones((3, min(model.features, 1000)))), model.classes).all()
