# SPDX-License-Identifier: BSD-3-Clause
"""The model text of LIBLINEAR and LIBSVM for regressors: read, written, and judged by ``certify``."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from liblinear import liblinearutil
from libsvm import svmutil
from sklearn.datasets import dump_svmlight_file

from maxmargin import SVR, LinearSVR
from maxmargin.files import ModelError, load_model, save_model
from peer_programs import ATOL, as_rows, liblinear_values, libsvm_values
from written_files import mutated

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 4.0 + 0.3 * RANDOM.normal(size=60)
KERNELS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_libsvm_writes_and_we_read(tmp_path, kernel):
    path = tmp_path / "svr.model"
    theirs = svmutil.svm_train(Y, as_rows(X), f"-s 3 -t {KERNELS[kernel]} -g 0.3 -r 1 -c 2 -p 0.2 -q")
    svmutil.svm_save_model(str(path), theirs)
    found = load_model(path)
    assert found.is_regression
    assert found.problem["epsilon"] is None
    values, _ = libsvm_values(theirs, X)
    np.testing.assert_allclose(found.predict(X), values, atol=1e-5)
    kind = LinearSVR if kernel == "linear" else SVR
    np.testing.assert_allclose(kind.load(path).predict(X), values, atol=1e-5)
    with pytest.raises(ModelError, match="does not say which epsilon"):
        save_model(found, tmp_path / "ours.mm")


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_we_write_and_libsvm_reads(tmp_path, kernel):
    path = tmp_path / "svr.model"
    ours = SVR(kernel=kernel, gamma=0.3, coef0=1.0, C=2.0, epsilon=0.2).fit(X, Y)
    save_model(ours, path, format="libsvm")
    theirs = svmutil.svm_load_model(str(path))
    np.testing.assert_allclose(libsvm_values(theirs, X)[0], ours.predict(X), atol=ATOL)
    np.testing.assert_allclose(load_model(path).predict(X), ours.predict(X), atol=ATOL)


@pytest.mark.parametrize("kind", [11, 12, 13])
@pytest.mark.parametrize("bias", [-1, 1, 2.5])
def test_liblinear_writes_and_we_read(tmp_path, kind, bias):
    path = tmp_path / "svr.model"
    theirs = liblinearutil.train(Y, as_rows(X), f"-s {kind} -c 0.5 -p 0.1 -B {bias} -q")
    liblinearutil.save_model(str(path), theirs)
    found = load_model(path)
    np.testing.assert_allclose(found.predict(X), liblinear_values(theirs, X)[0], atol=1e-8)
    assert found.problem["loss"].startswith("squared") == (kind != 13)
    again = tmp_path / "again.model"
    save_model(found, again, format="liblinear")
    read = liblinearutil.load_model(str(again))
    np.testing.assert_allclose(liblinear_values(read, X)[0], found.predict(X), atol=ATOL)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_we_write_linear_models_for_both(tmp_path, loss):
    ours = LinearSVR(loss=loss, epsilon=0.1, regularize_intercept=True).fit(X, Y)
    for format, load, values in (
        ("liblinear", liblinearutil.load_model, liblinear_values),
        ("libsvm", svmutil.svm_load_model, libsvm_values),
    ):
        save_model(ours, tmp_path / format, format=format)
        theirs = load(str(tmp_path / format))
        np.testing.assert_allclose(values(theirs, X)[0], ours.predict(X), atol=ATOL)


def test_certify_judges_the_regressors_of_others(tmp_path, run):
    """They do not say C and epsilon; with other ones their models are not the best."""
    dump_svmlight_file(X, Y, str(tmp_path / "data.svm"), zero_based=False)
    theirs = svmutil.svm_train(Y, as_rows(X), "-s 3 -t 2 -g 0.3 -c 2 -p 0.2 -e 1e-5 -q")
    svmutil.svm_save_model(str(tmp_path / "libsvm.model"), theirs)
    theirs = liblinearutil.train(Y, as_rows(X), "-s 11 -c 0.5 -p 0.1 -B 1 -e 1e-6 -q")
    liblinearutil.save_model(str(tmp_path / "liblinear.model"), theirs)
    data = tmp_path / "data.svm"
    for name, C, epsilon in (("libsvm", 2, 0.2), ("liblinear", 0.5, 0.1)):
        model = tmp_path / f"{name}.model"
        code, out, _ = run("certify", model, data, "-C", C, "--epsilon", epsilon)
        assert (code, "Within --tol" in out) == (0, True)
        assert run("certify", model, data, "-C", C, "--epsilon", 5 * epsilon)[0] == 1
        code, _, err = run("certify", model, data, "-C", C)
        assert (code, "--epsilon" in err) == (2, True)
        code, out, _ = run("predict", model, data)
        assert (code, len(out.split())) == (0, 60)
        assert "epsilon unknown" in run("info", model)[1]


def test_train_writes_their_text(tmp_path, run):
    dump_svmlight_file(X, Y, str(tmp_path / "data.svm"), zero_based=False)
    given = ["train", tmp_path / "data.svm", "--task", "regression", "-o", tmp_path / "m.model", "-q"]
    assert run(*given, "--model-format", "liblinear")[0] == 0
    assert (
        (tmp_path / "m.model").read_text().startswith("solver_type L2R_L1LOSS_SVR_DUAL\nnr_class 2\nnr_f")
    )
    assert run(*given, "--model-format", "libsvm", "--kernel", "rbf")[0] == 0
    assert (tmp_path / "m.model").read_text().startswith("svm_type epsilon_svr\nkernel_type rbf\n")
    code, _, err = run(*given, "--model-format", "liblinear", "--kernel", "rbf")
    assert (code, "no kernels" in err) == (2, True)


LIBSVM = "svm_type epsilon_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nSV\n"
LIBSVM += "0.5 1:1 3:-2 \n-0.5 2:4 \n"
LIBLINEAR = "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 2\nbias 1\nw\n0.5 \n1 \n-2 \n"


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        (LIBSVM, "total_sv 2", "total_sv 3", "ends"),
        (LIBSVM, "rho 0.25", "rho 0.25 1", "rho"),
        (LIBSVM, "0.5 1:1", "nan 1:1", "line 8"),
        (LIBSVM, "epsilon_svr", "zeta_svr", "of the type .zeta_svr."),
        (LIBLINEAR, "nr_class 2", "nr_class 3", "should say 2"),
        (LIBLINEAR, "L2LOSS_SVR", "L9LOSS_SVR", "or a regressor"),
    ],
)
def test_unsound_text(tmp_path, text, old, new, reason):
    path = tmp_path / "a.model"
    path.write_text(text)
    assert load_model(path).is_regression
    path.write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=reason):
        load_model(path)


CHANGES = st.tuples(
    st.sampled_from(["flip", "cut", "insert", "delete"]), st.floats(0, 1), st.integers(0, 255)
)


@given(changes=st.lists(CHANGES, min_size=1, max_size=3))
def test_mutations_of_the_text(tmp_path_factory, changes):
    path = tmp_path_factory.mktemp("text") / "a.model"
    for text in (LIBSVM, LIBLINEAR):
        path.write_bytes(mutated(text.encode(), changes))
        with contextlib.suppress(ModelError):
            load_model(path)
