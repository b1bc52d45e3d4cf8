# SPDX-License-Identifier: BSD-3-Clause
"""Estimators on arrays that lie on a GPU, with NumPy in CuPy's place: fits, answers, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import ShuffleSplit

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    OneClassSVM,
    Problem,
    RankSVM,
    path,
    solve,
    whole_path,
)
from maxmargin.gpu import cards
from maxmargin.gpu.rows import CardRows
from maxmargin.kernels import Gaussian, Linear
from tests.gpu.numpy_card import NumpyCard, OnCard


@pytest.fixture(autouse=True)
def card(monkeypatch):
    found = NumpyCard(Linear())
    monkeypatch.setattr(cards, "the_card", lambda: found)
    return found


def there(values):
    return np.asarray(values).view(OnCard)


def data(classes: int = 2, n: int = 400, dtype=np.float64):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 7)).astype(dtype)
    return X, (X[:, :classes] + 0.7 * random.normal(size=(n, classes))).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("given", ["CuPy", "device"])
def test_a_choice_of_C(classes, given):
    X, y = data(classes)
    options = {"Cs": [0.01, 0.1, 1.0], "cv": 3, "loss": "hinge", "random_state": 0, "n_jobs": 2}
    here = LinearSVCCV(**options, score_bounds=True).fit(X, y, sample_weight=1.0 + (y == 1))
    model = LinearSVCCV(**options, score_bounds=True, device="cuda" if given == "device" else None)
    arrays = (X, y) if given == "device" else (there(X), there(y))
    model.fit(*arrays, sample_weight=1.0 + (arrays[1] == 1))
    assert model.C_ == here.C_
    assert model.best_score_ == pytest.approx(here.best_score_, abs=0.02)
    assert model.cv_results_["max_relative_gap"].max() <= 1e-4
    assert "only offer whole passes" in model.solver_
    assert type(model.coef_) is np.ndarray
    assert np.array_equal(model.predict(arrays[0]), here.predict(X))
    assert model.score(*arrays) == pytest.approx(here.score(X, y), abs=0.02)


@pytest.mark.parametrize("scoring", ["f1", lambda model, X, y: float(np.mean(model.predict(X) == y))])
def test_a_choice_of_C_by_other_scores(scoring):
    X, y = data()
    splits = ShuffleSplit(2, random_state=0)
    options = {"Cs": [0.1, 10.0], "cv": splits, "scoring": scoring, "random_state": 0}
    here, model = LinearSVCCV(**options).fit(X, y), LinearSVCCV(**options).fit(there(X), y)
    assert model.C_ == here.C_
    assert model.best_score_ == pytest.approx(here.best_score_, abs=0.02)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}, {"regularize_intercept": True}])
@pytest.mark.parametrize("given", ["CuPy", "device"])
def test_regression(loss, intercept, given):
    X, _ = data()
    y = X @ np.arange(7.0) + np.random.default_rng(1).normal(size=400) + 3.0
    weights = np.random.default_rng(2).random(400)
    options = {"loss": loss, "epsilon": 0.1, "random_state": 0, **intercept}
    here = LinearSVR(**options).fit(X, y, sample_weight=weights)
    model = LinearSVR(**options, device="cuda" if given == "device" else None)
    arrays = (X, y) if given == "device" else (there(X), there(y))
    model.fit(*arrays, sample_weight=weights)
    assert model.status_.certified
    assert "only offer whole passes" in model.solver_
    np.testing.assert_allclose(model.coef_, here.coef_, atol=0.05)
    expected = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(arrays[0]), expected, rtol=1e-12)
    assert model.score(*arrays) == pytest.approx(r2_score(y, expected))
    low, high = model.prediction_bounds(arrays[0])
    assert (low <= expected).all()
    assert (expected <= high).all()


def test_regression_from_many_rows_begins_with_a_sample(monkeypatch):
    X, _ = data(n=20_000)
    y, taken, take = X @ np.arange(7.0), [], CardRows.take
    monkeypatch.setattr(CardRows, "take", lambda rows, order: taken.append(len(order)) or take(rows, order))
    y += np.random.default_rng(1).normal(size=20_000)
    here, model = LinearSVR().fit(X, y), LinearSVR(device="cuda").fit(X, y)
    assert taken
    assert model.status_.certified
    np.testing.assert_allclose(model.coef_, here.coef_, atol=0.05)


def test_regression_refuses_what_is_no_number():
    X, _ = data()
    y = there(X[:, 0])
    y[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVR().fit(there(X), y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_paths_along_C(loss):
    X, y = data()
    y = 2.0 * y - 1.0
    here = Problem.of(X, y, loss=loss)
    problem = Problem.of(there(X), y, loss=loss)
    assert isinstance(problem.rows, CardRows)
    found, expected = (path(each, [0.01, 0.1, 1.0], tol=1e-4) for each in (problem, here))
    for model, other in zip(found.models, expected.models, strict=True):
        assert model.status.certified
        assert model.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-4)
    whole = whole_path(problem, 0.01, 1.0)
    assert whole.largest_gap <= 1e-2
    assert solve(problem).status.certified


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers_are_made_where_the_rows_lie(classes, dtype, monkeypatch):
    X, y = data(classes, dtype=dtype)
    model = LinearSVC().fit(X, y)
    expected = model.decision_function(X)
    weights = np.random.default_rng(0).random(len(y))
    right = model.score(X, y, weights)
    sure = model.is_sure(X)
    assert np.array_equal(model.is_sure(there(X)), sure)
    asked = []
    monkeypatch.setattr(cards, "on_host", lambda values: asked.append(values.size) or np.array(values))
    np.testing.assert_allclose(model.decision_function(there(X)), expected, rtol=1e-6, atol=1e-6)
    assert np.array_equal(model.predict(there(X)), model.predict(X))
    assert model.score(there(X), there(y), there(weights)) == pytest.approx(right)
    assert max(asked) == len(y)  # and no X
    model.device = "cpu"
    np.testing.assert_array_equal(model.decision_function(there(X)), expected)
    assert max(asked) == X.size
    model.device = None
    with pytest.raises(ValueError, match="is expecting 7 features"):
        model.predict(there(X[:, 1:]))
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        model.predict(there(X))


def test_the_cpu_fits_what_lies_on_a_card_where_it_is_told_to():
    X, y = data()
    assert "whole passes" not in LinearSVC(device="cpu").fit(there(X), there(y)).solver_
    assert "whole passes" not in LinearSVCCV(device="cpu", Cs=[1.0]).fit(there(X), there(y)).solver_
    assert "whole passes" not in LinearSVR(device="cpu").fit(there(X), there(X[:, 0])).solver_
    svc = SVC(device="cpu", kernel="linear").fit(there(X), there(y))
    assert np.array_equal(svc.predict(there(X)), svc.predict(X))


def test_probabilities():
    X, y = data(3)
    model = LogisticRegression().fit(there(X), there(y))
    np.testing.assert_allclose(model.predict_proba(there(X)), model.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(there(X)), model.predict_log_proba(X), rtol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [SVR(), SVCCV(), OneClassSVM(), RankSVM(), LinearOneClassSVM()],
    ids=lambda e: type(e).__name__,
)
def test_what_works_on_the_cpu_says_so(estimator):
    X, y = data()
    X += 3.0
    name = type(estimator).__name__
    words = rf"{name} works on the CPU, and X lies on a GPU\. Copy it first: X\.get\(\) of CuPy"
    with pytest.raises(ValueError, match=words):
        estimator.fit(there(X), y)
    if not isinstance(estimator, SVCCV):
        estimator.fit(X, y)
        with pytest.raises(ValueError, match=words):
            estimator.predict(there(X))


def test_a_nu_is_found_on_the_cpu_and_predicts_on_a_card(card):
    X, y = data()
    card.kernel = Gaussian(0.5)
    words = r"NuSVC works on the CPU, and X lies on a GPU\. Copy it first: X\.get\(\) of CuPy"
    with pytest.raises(ValueError, match=words):
        NuSVC(nu=0.2, gamma=0.5).fit(there(X), y)
    model = NuSVC(nu=0.2, gamma=0.5).fit(X, y)
    assert np.array_equal(model.predict(there(X)), model.predict(X))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalty": "l1"}, r"coordinate_descent visits single columns"),
        ({"multi_class": "crammer_singer"}, r"rows on a GPU only offer whole passes\. Use device='cpu'"),
        (
            {"solver": "dual_coordinate_ascent"},
            "visits single rows, and these rows only offer whole passes",
        ),
    ],
)
def test_what_a_card_does_not_offer_is_said(options, words):
    X, y = data(3)
    with pytest.raises(ValueError, match=words):
        LinearSVC(device="cuda", **options).fit(X, y)


def test_a_hard_margin():
    X, y = data()
    X[:, 0] += 4.0 * y
    X = X[(X[:, 0] > 3.0) | (X[:, 0] < 1.0)]
    y = (X[:, 0] > 2.0).astype(int)
    here, model = (LinearSVC(C=np.inf, device=device).fit(X, y) for device in (None, "cuda"))
    assert model.status_.certified
    np.testing.assert_allclose(model.coef_, here.coef_, rtol=0.01, atol=0.01)
