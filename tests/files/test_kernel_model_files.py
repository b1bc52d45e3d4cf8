# SPDX-License-Identifier: BSD-3-Clause
"""Files of kernel models: what is saved comes back, what is unsound is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris, make_classification

from maxmargin import SVC, LinearSVC
from maxmargin.files import ModelError, SavedKernelModel, fingerprint, load_model, save_model
from maxmargin.files.models.fitted import from_estimator
from maxmargin.files.models.safetensors import VERSION
from maxmargin.kernels import Gaussian, Linear, Polynomial
from maxmargin.solvers import SOLVERS
from written_files import (
    PROBLEM,
    assert_refused_or_usable,
    assert_same_certificates,
    mutated,
    mutations,
    parts_of,
    replace_one_part,
    signed,
)

ARRAYS_OF = ("support_", "n_support_", "dual_coef_", "intercept_", "support_vectors_", "classes_")
ARRAYS_OF += ("class_weight_", "n_iter_")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def fitted(iris):
    return SVC(C=2.0, gamma=0.3).fit(*iris)


@pytest.fixture(scope="module")
def sound(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model"
    fitted.save(path)
    return path


def assert_same_estimator(loaded, model, X):
    assert loaded.get_params() == model.get_params()
    for name in ARRAYS_OF:
        one, other = getattr(loaded, name), getattr(model, name)
        assert sparse.issparse(one) == sparse.issparse(other), name
        if sparse.issparse(one):
            one, other = one.toarray(), other.toarray()
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.kernel_ == model.kernel_
    assert loaded.shape_fit_ == model.shape_fit_
    assert loaded.n_features_in_ == model.n_features_in_
    assert_same_certificates(loaded.certificate_, model.certificate_)
    assert getattr(loaded.certificate_, "pairs", None) == getattr(model.certificate_, "pairs", None)
    assert loaded.trace_ == model.trace_
    names = ("status_", "fit_status_", "solver_", "_stated_problem")
    assert [getattr(loaded, name) for name in names] == [getattr(model, name) for name in names]


# Round trips


FORMS = {
    "dense": np.asarray,
    "single": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_matrix,
    "wide": lambda X: wide(sparse.csr_matrix(X.astype(np.float32))),
}


def wide(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "chi2", "linear"])
def test_what_is_saved_comes_back(tmp_path, iris, kernel, form):
    X, y = FORMS[form](iris[0]), iris[1]
    for labels, several in ((y, "ovo"), (y, "ovr"), (y > 0, "ovo")):
        model = SVC(kernel=kernel, multi_class=several, C=0.7, class_weight="balanced").fit(X, labels)
        model.save(tmp_path / "model", data=(X, labels))
        assert_same_estimator(SVC.load(tmp_path / "model"), model, X)
        saved = load_model(tmp_path / "model")
        assert isinstance(saved, SavedKernelModel)
        assert saved.fingerprint == fingerprint(X, labels)
        np.testing.assert_array_equal(saved.predict(X), model.predict(X))
        # Columns that are missing at the end are zeros.
        narrow, padded = X[:, :2], X.copy()
        padded[:, 2:] = 0
        np.testing.assert_allclose(
            saved.decision_function(narrow), saved.decision_function(padded), rtol=1e-5, atol=1e-5
        )


def test_scores_are_sums_over_the_support_vectors(sound, fitted, iris):
    X, _ = iris
    saved = load_model(sound)
    values = np.exp(-0.3 * ((X[:, None] - X[fitted.support_][None]) ** 2).sum(axis=2))
    for k in range(3):
        expected = values @ saved.coefficients_of(k) + saved.intercept[k]
        np.testing.assert_allclose(saved.decision_function(X)[:, k], expected, atol=1e-12)


def test_a_precomputed_kernel(tmp_path, iris):
    X, y = iris
    matrix = X @ X.T
    model = SVC(kernel="precomputed").fit(matrix, y)
    model.save(tmp_path / "model")
    assert_same_estimator(SVC.load(tmp_path / "model"), model, matrix)
    saved = load_model(tmp_path / "model")
    np.testing.assert_array_equal(saved.predict(matrix), model.predict(matrix))
    with pytest.raises(ValueError, match="value for each of the 150 rows"):
        saved.predict(matrix[:, :100])


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.5) + 2.0 * Linear() * Polynomial(2, 0.1, 1.0), Gaussian(np.float64(0.25))]
)
def test_kernel_objects_come_back(tmp_path, iris, kernel):
    X, y = iris
    model = SVC(kernel=kernel).fit(X, y)
    model.save(tmp_path / "model")
    loaded = SVC.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.kernel_.terms == kernel.terms
    np.testing.assert_array_equal(loaded.fit(X, y).intercept_, model.intercept_)


def test_functions_cannot_be_saved(tmp_path, iris):
    model = SVC(kernel=lambda X, Z: X @ Z.T).fit(*iris)
    with pytest.raises(ModelError, match="files hold no code"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_names_texts_weights_and_solvers(tmp_path, iris):
    X, y = iris
    table = pd.DataFrame(X, columns=["length", "width", "größe", "4"])
    labels = np.array(["a", "b", "c"])[y]
    weights = {"a": 2.0, "b": 1.0, "c": 0.5}
    for solver in ("sequential_minimal_optimization", SOLVERS["working_set"](size=64)):
        model = SVC(class_weight=weights, solver=solver, random_state=3).fit(table, labels)
        model.save(tmp_path / "model")
        loaded = SVC.load(tmp_path / "model")
        assert_same_estimator(loaded, model, table)
        assert loaded.feature_names_in_.tolist() == list(table.columns)


def test_without_proof_the_file_is_smaller_and_keeps_the_claims(tmp_path, fitted, sound):
    fitted.save(tmp_path / "model", proof=False)
    assert (tmp_path / "model").stat().st_size < 0.8 * sound.stat().st_size
    saved = load_model(tmp_path / "model")
    assert saved.certificates is None
    assert [claim.primal for claim in saved.claims] == [c.primal for c in fitted.certificate_]
    assert not hasattr(SVC.load(tmp_path / "model"), "certificate_")


def test_a_loaded_model_is_a_start(tmp_path):
    X, y = make_classification(600, 5, random_state=0, flip_y=0.2)
    options = {"C": 100.0, "tol": 1e-7, "solver": "sequential_minimal_optimization"}
    model = SVC(**options).fit(X, y)
    model.save(tmp_path / "model")
    again = SVC.load(tmp_path / "model").set_params(warm_start=True).fit(X, y)
    assert again.n_iter_[0] < model.n_iter_[0]
    assert again.certificate_.relative_gap <= 1e-7


def test_saved_models_can_be_saved_again(tmp_path, sound):
    save_model(load_model(sound), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == sound.read_bytes()


def test_numbers_changed_after_the_fit_have_no_proof(tmp_path, iris):
    model = SVC().fit(*iris)
    model.dual_coef_ = 2.0 * model.dual_coef_
    with pytest.raises(ValueError, match="changed since"):
        model.save(tmp_path / "model")
    del model.certificate_
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").coefficients, model.dual_coef_)


def test_each_class_loads_its_own_files(tmp_path, sound, iris):
    with pytest.raises(ModelError, match=r"SVC\.load"):
        LinearSVC.load(sound)
    LinearSVC().fit(*iris).save(tmp_path / "linear")
    with pytest.raises(ModelError, match=r"LinearSVC\.load"):
        SVC.load(tmp_path / "linear")


def test_a_model_without_support_vectors(tmp_path, fitted, iris):
    saved = from_estimator(fitted)
    none = dataclasses.replace(
        saved,
        coefficients=np.zeros((2, 0)),
        vectors=np.zeros((0, 4)),
        support=np.zeros(0, np.int64),
        counts=np.zeros(3, np.int64),
        certificates=None,
    )
    save_model(none, tmp_path / "model")
    scores = load_model(tmp_path / "model").decision_function(iris[0])
    np.testing.assert_array_equal(scores, np.tile(fitted.intercept_, (150, 1)))
    with pytest.raises(ModelError, match="no support vectors"):
        save_model(none, tmp_path / "text", format="libsvm")


@pytest.mark.parametrize("several", ["ovo", "ovr"])
def test_classes_in_another_order(iris, several):
    X, y = iris
    saved = from_estimator(SVC(multi_class=several).fit(X, y))
    scores = saved.decision_function(X)
    for order in ([1, 2, 0], [2, 1, 0], [0, 2, 1]):
        turned = saved.in_order(np.array(order))
        assert turned.classes.tolist() == order
        found = turned.decision_function(X)
        if several == "ovr":
            np.testing.assert_allclose(found, scores[:, order], atol=1e-12)
            continue
        for k, (a, b) in enumerate(turned.pairs):
            i, j = order[a], order[b]
            old = scores[:, saved.pairs.index((min(i, j), max(i, j)))]
            np.testing.assert_allclose(found[:, k], old if i < j else -old, atol=1e-12)


# Refusals


def test_the_format_is_a_newer_one(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    assert texts["version"] == "2"
    assert arrays["vectors"].dtype == np.float64
    signed(tmp_path / "model", {**texts, "version": "1"}, description, arrays)
    with pytest.raises(ModelError, match="unknown field 'rows'"):
        load_model(tmp_path / "model")
    signed(tmp_path / "model", {**texts, "version": str(VERSION + 1)}, description, arrays)
    with pytest.raises(ModelError, match=f"reads up to version {VERSION}"):
        load_model(tmp_path / "model")


DESCRIPTIONS = [
    ("kernel", {"kernel": "gaussian", "gamma": -1.0}, "gamma"),
    ("kernel", {"kernel": "cosine"}, "one of linear"),
    ("kernel", {"kernel": "precomputed"}, "no support vectors of its own"),
    ("kernel", {"kernel": "sum", "terms": []}, "terms"),
    ("counts", [1, 2, 3], "add up"),
    ("counts", [1, 2], "one for each class"),
    ("counts", [2**62, 2**62, 2**62], "add up"),
    ("counts", [-1, 2, 3], "whole number"),
    ("vectors", {"format": "dense", "columns": 5, "open_ended": False}, "columns, not 5"),
    ("vectors", {"format": "csr", "columns": 4, "open_ended": False}, "missing"),
    ("vectors", {"format": "dense", "columns": 4, "open_ended": True}, "only sparse"),
    ("vectors", {"format": "none", "columns": 150, "open_ended": False}, "support vectors are missing"),
    ("vectors", {"format": "none", "columns": 4, "open_ended": False}, "for 4 rows"),
    ("vectors", {"format": "coo", "columns": 4, "open_ended": False}, "dense, csr or none"),
    ("vectors", {"format": "csr", "columns": 10**12, "open_ended": False}, "does not justify"),
    ("steps_each", [1], "one for each problem"),
    ("class_factors", [1.0], "for each class"),
    ("class_factors", [1.0, -1.0, 1.0], "at least 0"),
    ("decision", "one_vs_rest", "lines of coefficients|there are"),
    ("rows", 100, "outside the 100|rows"),
    ("problem", PROBLEM | {"C": 2.0, "loss": "logistic"}, "hinge loss"),
    ("problem", PROBLEM | {"C": "inf"}, "finite C"),
    ("certificates", None, "does not speak of"),
    ("certificates", [{}, {}, {}], "'certificates' of the description lacks"),
]


@pytest.mark.parametrize(("name", "value", "reason"), DESCRIPTIONS)
def test_an_unsound_description_is_refused(sound, tmp_path, name, value, reason):
    texts, description, arrays = parts_of(sound)
    assert name in description
    signed(tmp_path / "model", texts, {**description, name: value}, arrays)
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")


def test_every_field_is_needed(sound, tmp_path):
    texts, description, arrays = parts_of(sound)
    for name in description.keys() - {"optimum"}:  # which files of earlier versions lack
        signed(tmp_path / "model", texts, {k: v for k, v in description.items() if k != name}, arrays)
        with pytest.raises(ModelError, match=f"lacks '{name}'"):
            load_model(tmp_path / "model")


CHANGES = {
    "coefficients": [
        (lambda a: a * np.nan, "finite"),
        (lambda a: a[:1], "lines of coefficients"),
        (lambda a: 2.0 * a, "other coefficients"),
        (lambda a: a.astype(np.float32), "type float32"),
    ],
    "intercept": [(lambda a: a[:2], "problems|finite"), (lambda a: a + 1.0, "about the intercept")],
    "support": [
        (lambda a: a + 1000, "outside the 150"),
        (lambda a: -a, "outside the 150"),
        (lambda a: a * 0, "twice"),
        (lambda a: a[:-1], "one for each"),
        (lambda a: a.astype(np.int32), "type int32"),
        (None, "which rows"),
    ],
    "vectors": [
        (lambda a: a * np.inf, "NaN or infinite"),
        (lambda a: a[:-1], "support vectors of"),
        (lambda a: a.astype(np.int64), "type int64"),
        (None, "missing"),
    ],
    "w": [(lambda a: a[::-1].copy(), "other coefficients"), (lambda a: a[:-1], "arrays of the proof")],
    "alpha": [(lambda a: -a - 1.0, "not negative"), (lambda a: a[:-1], "arrays of the proof")],
    "margins": [(lambda a: a * np.nan, "margins hold NaN")],
    "row_classes": [(lambda a: a + np.int8(4), "does not exist")],
    "w_of_alpha": [(lambda a: np.ones(7), "arrays of the proof"), (None, "missing")],
    "trace": [(lambda a: a[:-1], "trace")],
    "more": [(lambda a: np.ones(2), "does not speak of")],
}


@pytest.mark.parametrize(
    ("name", "change", "reason"), [(n, c, r) for n, each in CHANGES.items() for c, r in each]
)
def test_an_unsound_array_is_refused(sound, tmp_path, name, change, reason):
    texts, description, arrays = parts_of(sound)
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays.get(name))
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")


SPARSE_CHANGES = {
    "indices": [
        (lambda a: a + 3, "outside the 4"),
        (lambda a: -a, "outside"),
        (lambda a: a * 0, "increase"),
    ],
    "offsets": [
        (lambda a: a + 1, "one after the other"),
        (lambda a: a[::-1].copy(), "one after the other"),
        (lambda a: a[:-1], "support vectors of"),
        (lambda a: a[:0], "fit together"),
        (lambda a: a + 2**40, "one after the other"),
    ],
    "values": [
        (lambda a: a[:-1], "fit together"),
        (lambda a: a * np.nan, "NaN"),
        (lambda a: -a, "negative"),
    ],
}


@pytest.mark.parametrize(
    ("name", "change", "reason"), [(n, c, r) for n, each in SPARSE_CHANGES.items() for c, r in each]
)
def test_unsound_sparse_vectors_are_refused(tmp_path, iris, name, change, reason):
    SVC(kernel="chi2").fit(sparse.csr_matrix(iris[0]), iris[1]).save(tmp_path / "model")
    texts, description, arrays = parts_of(tmp_path / "model")
    arrays[name] = change(arrays[name])
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match=reason):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "cosine"),
        ("gamma", -1.0),
        ("gamma", "wide"),
        ("degree", 2.5),
        ("cache_size", 0.0),
        ("shrinking", "yes"),
        ("probability", 3),
        ("loss", "hinge"),
    ],
)
def test_an_unsound_parameter_is_refused(sound, tmp_path, name, value):
    texts, description, arrays = parts_of(sound)
    description["parameters"][name] = value
    signed(tmp_path / "model", texts, description, arrays)
    with pytest.raises(ModelError, match="parameter"):
        SVC.load(tmp_path / "model")


def test_negative_values_meet_the_chi_squared_kernel(tmp_path, iris):
    SVC(kernel="chi2").fit(*iris).save(tmp_path / "model")
    with pytest.raises(ValueError, match="not negative"):
        load_model(tmp_path / "model").predict(-iris[0])


def test_more_columns_than_a_file_justifies(tmp_path):
    X = sparse.csr_matrix((np.ones(4), ([0, 1, 2, 3], [0, 1, 2**21, 3])), shape=(4, 2**21 + 1))
    model = SVC(kernel="linear").fit(X, [0, 1, 1, 0])
    with pytest.raises(ModelError, match=r"could not be loaded again.*does not justify"):
        model.save(tmp_path / "model")


def test_an_edited_file_is_refused(sound, tmp_path):
    content = bytearray(sound.read_bytes())
    content[-1000] ^= 1
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelError, match="damaged or edited"):
        load_model(tmp_path / "model")


@settings(max_examples=60)
@given(changes=mutations)
def test_mutations_of_the_file(sound, fitted, iris, changes):
    path = sound.with_name("mutated")
    path.write_bytes(mutated(sound.read_bytes(), changes))
    try:
        loaded = SVC.load(path)
    except ModelError:
        return
    assert_same_estimator(loaded, fitted, iris[0])


@settings(max_examples=150)
@given(data=st.data())
def test_mutations_with_a_right_checksum(sound, data):
    texts, description, arrays = parts_of(sound)
    replace_one_part(description, data)
    assert_refused_or_usable(sound.with_name("mutated"), texts, description, arrays, SVC)


def test_the_file_is_safetensors(sound, fitted):
    arrays = safetensors.numpy.load_file(sound)
    np.testing.assert_array_equal(arrays["coefficients"], fitted.dual_coef_)
    np.testing.assert_array_equal(arrays["alpha"], np.concatenate([c.alpha for c in fitted.certificate_]))
