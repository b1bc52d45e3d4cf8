# SPDX-License-Identifier: BSD-3-Clause
"""SVCCV chooses what GridSearchCV over SVC chooses, and proves every fit."""

from __future__ import annotations

import _thread
import math
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVCCV
from maxmargin.core import Budget
from maxmargin.estimators.held_out import scores_along, scores_of
from maxmargin.kernels import Gaussian
from maxmargin.reductions.class_problems import KernelProblems
from maxmargin.reductions.decompositions import decomposition
from maxmargin.reductions.kernel_fit import KernelFit
from maxmargin.reductions.small_problems import AlongCosts
from maxmargin.solvers import sizes
from scikit_learn import assert_passes

IRIS = load_iris(return_X_y=True)
GRID = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.01, 0.1, 1.0]}


@parametrize_with_checks([SVCCV(Cs=[0.1, 1.0], gammas=["scale"], cv=3)])
def test_scikit_learn_checks(estimator, check):
    assert_passes(check, estimator)


def peer(X, y, scoring=None, **options):
    grid = {"C": GRID["Cs"], "gamma": GRID["gammas"]}
    return GridSearchCV(SVC(**options), grid, scoring=scoring).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(multi_class="ovr", class_weight="balanced"),
        dict(break_ties=True, scoring="f1_macro"),
        dict(kernel="poly", degree=2, scoring=lambda model, X, y: -np.abs(model.predict(X) - y).sum()),
    ],
    ids=["pairs", "against the rest", "a named score", "a function"],
)
def test_it_chooses_what_a_grid_search_chooses(options):
    X, y = IRIS
    ours, theirs = SVCCV(**GRID, **options).fit(X, y), peer(X, y, **options)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=2 / 150
    )
    assert ours.best_score_ >= theirs.best_score_ - 1 / 150
    assert ours.best_params_ in [
        params
        for params, score in zip(
            theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
        )
        if score >= theirs.best_score_ - 2 / 150
    ]
    assert ours.cv_results_["max_relative_gap"].max() <= 1e-3
    assert ours.certificate_.relative_gap <= 1e-3
    assert ours.status_.certified


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_two_classes_in_every_layout(breast_cancer, layout):
    X, y = breast_cancer
    model = SVCCV(Cs=3, gammas=3).fit(layout(X), y)
    assert model.best_score_ > 0.97
    assert (len(model.Cs_), len(model.gammas_)) == (3, 3)
    best = SVC(C=model.C_, gamma=model.gamma_).fit(X, y)
    np.testing.assert_array_equal(model.predict(layout(X)), best.predict(X))
    np.testing.assert_allclose(model.decision_function(X), best.decision_function(X), atol=1e-6)
    assert model.is_sure(X).mean() > 0.5


def test_long_fits_and_short_ones_choose_alike(monkeypatch):
    X, y = make_classification(300, 6, flip_y=0.1, random_state=0)
    short = SVCCV(**GRID, tol=1e-6).fit(X, y)
    monkeypatch.setattr(sizes, "QUICK_SHARED_ROWS", 10)
    monkeypatch.setattr(sizes, "QUICK_ROWS", 10)
    long = SVCCV(**GRID, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(long.cv_results_["mean_test_score"], short.cv_results_["mean_test_score"])
    assert long.cv_results_["max_relative_gap"].max() <= 1e-6


@pytest.mark.parametrize("proven", [0, 1, 2])
@pytest.mark.parametrize("options", [dict(), dict(multi_class="ovr"), dict(class_weight="balanced")])
def test_what_one_call_leaves_is_fitted_C_by_C(options, proven, monkeypatch):
    X, y = IRIS
    whole = SVCCV(**GRID, **options, tol=1e-6).fit(X, y)
    in_one_call = KernelFit.along_costs

    def ends_early(self, weights, Cs, budget):
        along = in_one_call(self, weights, Cs, budget)
        assert along.proven == len(Cs)
        along.proven = proven
        return along

    monkeypatch.setattr(KernelFit, "along_costs", ends_early)
    cut = SVCCV(**GRID, **options, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(cut.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    assert cut.cv_results_["max_relative_gap"].max() <= 1e-6


@pytest.mark.parametrize("pairs", [True, False])
def test_scores_at_every_C_are_those_of_the_models(pairs):
    X, y = IRIS
    kernel = Gaussian(0.1)
    problems = KernelProblems(
        np.unique(y), y, X, kernel, decomposition(3, pairs=pairs), matrix=kernel(X), C=1.0
    )
    held_out = np.arange(0, 150, 7)
    weights = np.ones(150)
    weights[held_out] = 0.0
    unit = problems.with_costs(weights, 1.0)
    parts, Cs, budget = problems.in_a_row(), np.array([0.1, 10.0]), Budget(math.inf, 1)
    given = kernel(X), parts, unit.in_a_row().costs[np.newaxis], Cs, 1e-3, 50, budget
    along = AlongCosts(*given, *problems.rounding.simple, kernel_is_none=False)
    scores = scores_along(problems, along, 0, held_out)
    for number, C in enumerate(Cs.tolist()):
        expected = scores_of(problems.with_costs(weights, C), along.models(number, 0), held_out)
        np.testing.assert_allclose(scores[number], expected, atol=1e-12)


def test_kernels_without_gamma_choose_C_alone():
    X, y = IRIS
    K = X @ X.T
    of_matrix = SVCCV(Cs=[0.01, 1.0], kernel="precomputed").fit(K, y)
    of_rows = SVCCV(Cs=[0.01, 1.0], kernel="linear").fit(X, y)
    assert of_matrix.best_params_ == of_rows.best_params_
    assert of_rows.gamma_ is None
    np.testing.assert_array_equal(of_matrix.predict(K), of_rows.predict(X))


def test_files_hold_the_chosen_model(tmp_path):
    X, y = IRIS
    model = SVCCV(**GRID, probability=True).fit(X, y)
    model.save(tmp_path / "model.mm", data=(X, y))
    loaded = SVC.load(tmp_path / "model.mm")
    assert (loaded.C, loaded.gamma) == (model.C_, model.gamma_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.best_estimator_.predict_proba(X))


def test_weights_leave_rows_out_of_fits():
    X, y = IRIS
    noisy = np.where(np.arange(150) % 10 == 0, (y + 1) % 3, y)
    weights = np.where(np.arange(150) % 10 == 0, 0.0, 1.0)
    model = SVCCV(**GRID, refit=False).fit(X, noisy, sample_weight=weights)
    assert model.best_score_ > 0.8
    assert not hasattr(model, "best_estimator_")


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("Cs", 0, r"\[1, inf\)"),
        ("Cs", [1.0, -1.0], "values of C"),
        ("gammas", [0.1, "wide"], "'scale' and 'auto'"),
        ("gammas", [], "values of gamma"),
        ("gammas", 0, r"'gammas' .* range \[1, inf\). Got 0 instead. Give some values of gamma"),
        ("gammas", -3, r"Got -3 instead. Give some values of gamma"),
        ("gammas", True, r"Got True instead. Give some values of gamma"),
        ("gammas", 2.5, r"Got 2.5 instead. Give some values of gamma"),
        ("gammas", [0.1, -1.0], r"range \(0, inf\)"),
        ("cv", [], "None takes 5"),
        ("tol", -1, "relative gap"),
        ("kernel", "rbff", "'rbf'"),
    ],
)
def test_wrong_parameters_are_named_with_the_cure(parameter, value, message):
    with pytest.raises(ValueError, match=message):
        SVCCV(**{parameter: value}).fit(*IRIS)


def test_a_fold_without_a_class_is_refused():
    X, y = IRIS
    with pytest.raises(ValueError, match="trains on no row of class"):
        SVCCV(**GRID, cv=KFold(3)).fit(X, y)


def test_what_time_is_too_short_for_is_told():
    X, y = make_classification(1500, 5, flip_y=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="fits of folds are not within tol"):
        SVCCV(Cs=[100.0], gammas=[1.0], max_time=1e-3).fit(X, y)


def test_ctrl_c_ends_it_without_a_model(ctrl_c):
    X, y = make_classification(500, 10, flip_y=0.2, random_state=0)
    model = SVCCV(Cs=50, gammas=50)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "best_estimator_")
