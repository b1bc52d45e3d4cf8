# SPDX-License-Identifier: BSD-3-Clause
"""docs/from_scikit_learn.md, line by line: both libraries are run, and do what the page says of them."""

from __future__ import annotations

import inspect
import io
import pickle
import signal
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import maxmargin

CANCER, SICK = load_breast_cancer(return_X_y=True)
CANCER = scale(CANCER)
IRIS, SPECIES = load_iris(return_X_y=True)
THEIRS = {"random_state": 0, "tol": 1e-8, "max_iter": 1_000_000}
"""So close to its optimum that it can be compared."""
FAR = [[10.0], [11.0], [12.0], [13.0]]


def objective(model, X, y, C, *, squared=False):
    """That of scikit-learn's LinearSVC, whose intercept is a weight, for two classes."""
    w, b = model.coef_[0], model.intercept_[0]
    losses = np.maximum(0.0, 1.0 - np.where(y == model.classes_[1], 1, -1) * (X @ w + b))
    return 0.5 * (w @ w + b * b) + C * (losses**2 if squared else losses).sum()


def test_names_and_defaults_are_the_same_but_for_those_of_the_page():
    other = {}
    page = (Path(__file__).parents[2] / "docs" / "from_scikit_learn.md").read_text()
    table = page.split("## Parameter by parameter")[1].split("## What is new")[0]
    for name in ("LinearSVC", "LinearSVR", "SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"):
        mine = inspect.signature(getattr(maxmargin, name)).parameters
        theirs = inspect.signature(getattr(svm, name)).parameters
        for parameter in {*mine, *theirs}:
            assert f"`{parameter}`" in table, parameter
        for parameter, usual in theirs.items():
            if parameter not in mine:
                other[name, parameter] = None
            elif mine[parameter].default != usual.default:
                other[name, parameter] = mine[parameter].default
    kernels = ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")
    expected = {(name, "cache_size"): 1000.0 for name in kernels} | {("NuSVC", "class_weight"): None}
    expected |= {(name, "max_iter"): -1 for name in ("LinearSVC", "LinearSVR")}
    for name in ("SVC", "NuSVC"):
        other.pop((name, "probability"), None)  # it says "deprecated" of itself, and means False
    assert other == expected


def test_the_intercept_is_free_and_theirs_on_request():
    y = [0, 0, 1, 1]
    theirs = svm.LinearSVC(**THEIRS).fit(FAR, y)
    free, same = (
        maxmargin.LinearSVC(regularize_intercept=flag, tol=1e-9).fit(FAR, y) for flag in (False, True)
    )
    assert free.predict(FAR).tolist() == y
    assert theirs.predict(FAR).tolist() == same.predict(FAR).tolist() != y
    np.testing.assert_allclose(same.coef_, theirs.coef_, rtol=1e-4)
    # SVC's is free in both.
    linear = [SVC(kernel="linear", C=1e3).fit(FAR, y) for SVC in (svm.SVC, maxmargin.SVC)]
    borders = [-model.intercept_[0] / model.coef_[0, 0] for model in linear]
    np.testing.assert_allclose(borders, 11.5, rtol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("more", [{"intercept_scaling": 3.0}, {"class_weight": {0: 3.0, 2: 0.5}}], ids=str)
def test_with_their_intercept_the_answers_are_theirs(loss, more):
    theirs = svm.LinearSVC(loss=loss, dual=True, **more, **THEIRS).fit(IRIS, SPECIES)
    ours = maxmargin.LinearSVC(loss=loss, regularize_intercept=True, tol=1e-9, **more).fit(IRIS, SPECIES)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert ours.decision_function(IRIS).shape == theirs.decision_function(IRIS).shape == (150, 3)
    assert len(ours.certificate_) == 3


def test_tol_bounds_the_objective_here_and_not_there():
    with pytest.warns(ConvergenceWarning):
        theirs = svm.LinearSVC(C=100.0, loss="hinge", random_state=0).fit(CANCER, SICK)
    ours = maxmargin.LinearSVC(C=100.0, loss="hinge", regularize_intercept=True).fit(CANCER, SICK)
    least = ours.certificate_.dual
    assert objective(ours, CANCER, SICK, 100.0) <= least * (1 + 1.001 * ours.tol)
    assert objective(theirs, CANCER, SICK, 100.0) > 2.0 * least


def test_a_fit_ends_when_it_is_proven_or_warns_of_its_gap():
    assert maxmargin.LinearSVC().fit(CANCER, SICK).certificate_.relative_gap <= 1e-4
    short = {"max_iter": 2, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning, match="iterations"):
        svm.LinearSVC(**short).fit(CANCER, SICK)
    with pytest.warns(ConvergenceWarning, match="relative gap is") as told:
        cut = maxmargin.LinearSVC(**short, solver="subgradient").fit(CANCER, SICK)
    assert f"{cut.certificate_.relative_gap:.1e}" in str(told[0].message)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        maxmargin.LinearSVC(max_time=0.0, tol=0.0, solver="pegasos", loss="hinge").fit(CANCER, SICK)


def test_a_weighted_row_counts_in_gamma_as_if_it_were_repeated():
    weights = np.random.default_rng(0).integers(1, 4, len(SICK))
    repeated = np.repeat(np.arange(len(SICK)), weights)
    tight = {"tol": 1e-7}
    scores = {
        library.__name__: [
            library.SVC(**tight).fit(CANCER, SICK, weights.astype(float)).decision_function(CANCER),
            library.SVC(**tight).fit(CANCER[repeated], SICK[repeated]).decision_function(CANCER),
            library.SVC(gamma=0.03, **tight).fit(CANCER, SICK, weights * 1.0).decision_function(CANCER),
        ]
        for library in (svm, maxmargin)
    }
    theirs, ours = scores["sklearn.svm"], scores["maxmargin"]
    np.testing.assert_allclose(ours[0], ours[1], atol=1e-3)
    assert np.abs(theirs[0] - theirs[1]).max() > 0.01
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-3)
    np.testing.assert_allclose(ours[2], theirs[2], atol=1e-3)


def test_the_seed_changes_as_much_as_the_stopping_rule_leaves_open():
    def values(cls, **options):
        models = (
            cls(loss="hinge", random_state=seed, **options).fit(IRIS[50:], SPECIES[50:]) for seed in (0, 1)
        )
        return [objective(model, IRIS[50:], SPECIES[50:], 1.0) for model in models]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = values(svm.LinearSVC, dual=True)
    ours = values(maxmargin.LinearSVC, regularize_intercept=True, solver="dual_coordinate_ascent")
    assert theirs[0] != theirs[1]
    assert abs(ours[0] - ours[1]) <= 1e-4 * max(ours)


def test_ctrl_c_leaves_a_model(ctrl_c):
    def interrupt(progress):
        signal.raise_signal(signal.SIGINT)

    model = maxmargin.LinearSVC(solver="pegasos", loss="hinge", tol=0.0, callback=interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(CANCER, SICK)
    assert model.coef_.shape == (1, 30)

    def kernel(A, B):
        signal.raise_signal(signal.SIGINT)
        return A @ B.T

    with pytest.raises(KeyboardInterrupt):
        svm.SVC(kernel=kernel).fit(CANCER, SICK)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_pairs_votes_and_ties_are_the_same(shape):
    options = {"decision_function_shape": shape, "tol": 1e-7, "break_ties": shape == "ovr"}
    theirs, ours = (library.SVC(**options).fit(IRIS, SPECIES) for library in (svm, maxmargin))
    np.testing.assert_allclose(ours.decision_function(IRIS), theirs.decision_function(IRIS), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(IRIS), theirs.predict(IRIS))
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert len(ours.certificate_) == 3


def test_threads_change_nothing_beyond_rounding():
    X = np.random.default_rng(0).standard_normal((4_000, 60))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3
    one, two = (maxmargin.LinearSVC(random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6, atol=1e-9)
    assert "n_jobs" not in inspect.signature(svm.LinearSVC).parameters


def test_dual_is_accepted_and_the_hard_margin_is_not_refused():
    coefficients = [maxmargin.LinearSVC(dual=dual).fit(FAR, [0, 0, 1, 1]).coef_ for dual in (True, False)]
    np.testing.assert_array_equal(*coefficients)
    with pytest.raises(ValueError, match="'C' parameter"):
        svm.LinearSVC(C=np.inf).fit(FAR, [0, 0, 1, 1])
    hard = maxmargin.LinearSVC(C=np.inf).fit(FAR, [0, 0, 1, 1])
    np.testing.assert_allclose(2.0 / np.abs(hard.coef_), 1.0, rtol=1e-3)


def test_a_sigmoid_is_trained_with_a_warning():
    svm.SVC(kernel="sigmoid").fit(IRIS, SPECIES)
    with pytest.warns(UserWarning, match="kernel"):
        maxmargin.SVC(kernel="sigmoid").fit(IRIS, SPECIES)


@pytest.mark.parametrize("of", [sparse.csr_matrix, sparse.csc_array, np.float32, np.asfortranarray])
def test_data_of_other_forms_give_the_same_model(of):
    X = of(CANCER)
    ours, theirs = (library.LinearSVC().fit(X, SICK) for library in (maxmargin, svm))
    np.testing.assert_allclose(ours.coef_, maxmargin.LinearSVC().fit(CANCER, SICK).coef_, atol=1e-3)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99


def test_pickles_are_the_same_and_files_have_the_proof(tmp_path):
    for library in (maxmargin, svm):
        model = library.SVC().fit(IRIS, SPECIES)
        stream = io.BytesIO()
        joblib.dump(model, stream)
        stream.seek(0)
        for again in (pickle.loads(pickle.dumps(model)), joblib.load(stream)):
            np.testing.assert_array_equal(again.predict(IRIS), model.predict(IRIS))
    model = maxmargin.SVC().fit(IRIS, SPECIES)
    model.save(tmp_path / "model.mm")
    again = maxmargin.SVC.load(tmp_path / "model.mm")
    np.testing.assert_array_equal(again.predict(IRIS), model.predict(IRIS))
    assert not hasattr(svm.SVC, "save")
