# SPDX-License-Identifier: BSD-3-Clause
"""SVRCV chooses what GridSearchCV over SVR chooses, and proves every fit."""

from __future__ import annotations

import _thread
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVR, SVRCV
from scikit_learn import assert_passes

X, Y = load_diabetes(return_X_y=True)
X, Y = scale(X[:150]), Y[:150]
GRID = {"Cs": [1.0, 30.0, 1000.0], "epsilons": [30.0, 1.0], "gammas": [0.001, 0.1]}
POINTS = {"C": GRID["Cs"], "epsilon": GRID["epsilons"], "gamma": GRID["gammas"]}


@parametrize_with_checks([SVRCV(Cs=[0.1, 1.0], epsilons=[0.1], gammas=["scale"], cv=3)])
def test_scikit_learn_checks(estimator, check):
    assert_passes(check, estimator)


@pytest.mark.parametrize(
    "options",
    [
        dict(tol=1e-6),
        dict(scoring="neg_mean_absolute_error", cv=ShuffleSplit(3, random_state=0)),
        dict(
            tol=1e-6,
            kernel="poly",
            degree=2,
            coef0=1.0,
            scoring=lambda model, X, y: model.predict(X)[0] - y[0],
        ),
        dict(cache_size=0.01),
    ],
    ids=["R^2", "a named score", "a function", "no room for all values"],
)
def test_it_chooses_what_a_grid_search_chooses(options):
    search = {name: options[name] for name in ("scoring", "cv") if name in options}
    others = {name: value for name, value in options.items() if name not in search}
    ours = SVRCV(**GRID, **options, random_state=0).fit(X, Y)
    theirs = GridSearchCV(SVR(**others, random_state=0), POINTS, **search).fit(X, Y)
    spread = np.ptp(theirs.cv_results_["mean_test_score"])
    scores = ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    np.testing.assert_allclose(*scores, atol=0.01 * spread)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert ours.best_params_ == theirs.best_params_
    assert ours.cv_results_["max_relative_gap"].max() <= ours.tol
    assert ours.certificate_.relative_gap <= ours.tol
    assert ours.status_.certified


def test_the_chosen_model_is_that_of_all_rows(tmp_path):
    chosen = SVRCV(**GRID, random_state=0).fit(X, Y)
    best = SVR(**chosen.best_params_, random_state=0).fit(X, Y)
    np.testing.assert_allclose(chosen.predict(X), best.predict(X), rtol=1e-9)
    assert chosen.score(X, Y) == pytest.approx(best.score(X, Y))
    low, high = chosen.prediction_bounds(X)
    assert ((low <= chosen.predict(X)) & (chosen.predict(X) <= high)).all()
    chosen.save(tmp_path / "model.mm", data=(X, Y))
    loaded = SVR.load(tmp_path / "model.mm")
    assert (loaded.C, loaded.epsilon, loaded.gamma) == (chosen.C_, chosen.epsilon_, chosen.gamma_)
    np.testing.assert_allclose(loaded.predict(X), chosen.predict(X), rtol=1e-9)
    of_sparse = SVRCV(**GRID).fit(sparse.csr_matrix(X), Y)
    assert of_sparse.best_params_ == chosen.best_params_


def test_the_unit_of_y_does_not_matter():
    """C and epsilon are in it, where only their numbers are asked for."""
    small = SVRCV(Cs=3, epsilons=2, gammas=2, cv=3).fit(X, Y)
    large = SVRCV(Cs=3, epsilons=2, gammas=2, cv=3).fit(X, 1000.0 * Y)
    assert (len(small.Cs_), len(small.epsilons_), len(small.gammas_)) == (3, 2, 2)
    assert large.best_index_ == small.best_index_
    assert large.best_params_["epsilon"] == pytest.approx(1000.0 * small.best_params_["epsilon"])
    assert large.best_score_ == pytest.approx(small.best_score_, abs=1e-3)


def test_kernels_without_gamma_have_none_to_choose():
    given = {"Cs": [0.01, 1.0], "epsilons": [1.0, 10.0], "tol": 1e-7}
    of_matrix = SVRCV(**given, kernel="precomputed").fit(X @ X.T, Y)
    of_rows = SVRCV(**given, kernel="linear").fit(X, Y)
    assert of_matrix.best_params_ == of_rows.best_params_
    assert of_rows.gamma_ is None
    np.testing.assert_allclose(of_matrix.predict(X @ X.T), of_rows.predict(X), rtol=1e-3)


def test_weights_leave_rows_out_of_fits():
    wrong = np.arange(150) % 10 == 0
    noisy = np.where(wrong, 1e4, Y)
    options = {"scoring": "neg_median_absolute_error", "refit": False}
    model = SVRCV(**GRID, **options).fit(X, noisy, sample_weight=np.where(wrong, 0.0, 1.0))
    assert -model.best_score_ < mean_absolute_error(Y, np.full(150, np.median(Y)))
    assert not hasattr(model, "best_estimator_")


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("epsilons", 0, r"\[1, inf\)"),
        ("epsilons", [1.0, -1.0], "values of epsilon"),
        ("epsilons", "narrow", "values of epsilon"),
        ("Cs", [0.0], "values of C"),
        ("cv", [], "None takes 5"),
        ("cv", [([], [0, 1])], "trains on no row"),
        ("tol", -1, "relative gap"),
    ],
)
def test_wrong_parameters_are_named_with_the_cure(parameter, value, message):
    with pytest.raises(ValueError, match=message):
        SVRCV(**{parameter: value}).fit(X, Y)


def test_what_time_is_too_short_for_is_told():
    rows, values = make_regression(800, 5, noise=10.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="fits of folds are not within tol"):
        SVRCV(Cs=[1e3], epsilons=[0.1], gammas=[1.0], max_time=1e-3).fit(rows, values)


def test_ctrl_c_ends_it_without_a_model(ctrl_c):
    model = SVRCV(Cs=40, epsilons=20, gammas=40)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "best_estimator_")
