# SPDX-License-Identifier: BSD-3-Clause
"""Predictions that no better model would change: the best model's scores are always inside the bounds."""

from __future__ import annotations

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVR, LinearSVC, LinearSVCCV, LinearSVR
from maxmargin.files import load_model
from maxmargin.proof.sure import NOWHERE, Neighbourhood, score_bounds
from maxmargin.reductions.decompositions import OneAgainstOne, OneAgainstRest, TwoClasses

# Few steps of slow solvers end at all kinds of gaps; the automatic choice ends at the optimum.
CASES = {
    "hinge": (LinearSVC(loss="hinge"), {"solver": "stochastic_subgradient"}),
    "squared hinge": (LinearSVC(), {"solver": "subgradient"}),
    "logistic": (LinearSVC(loss="logistic"), {"solver": "subgradient"}),
    "regularised": (
        LinearSVC(loss="hinge", regularize_intercept=True, intercept_scaling=2.0),
        {"solver": "dual_coordinate_ascent"},
    ),
    "no intercept": (LinearSVC(loss="hinge", fit_intercept=False), {"solver": "dual_coordinate_ascent"}),
    "weights": (LinearSVC(loss="hinge", class_weight="balanced", C=0.05), {"solver": "pegasos"}),
    "gaussian": (SVC(), {"solver": "sequential_minimal_optimization"}),
    "polynomial": (SVC(kernel="poly", coef0=1.0, C=0.1), {"solver": "sequential_minimal_optimization"}),
    "rest": (SVC(multi_class="ovr"), {"solver": "sequential_minimal_optimization"}),
}


def drawn(seed, classes, n=120, shift=0.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3)) + shift
    position = X[:, 0] - shift + 0.4 * random.normal(size=n)
    y = np.digitize(position, [0.0] if classes == 2 else [-0.5, 0.5])
    return X, y, random.normal(size=(60, 3)) + shift


def fitted(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return copy.deepcopy(model).set_params(random_state=0, **options).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_the_best_scores_are_inside_and_sure_rows_keep_their_class(name, classes):
    model, slow = CASES[name]
    X, y, new = drawn(len(name), classes, shift=1.0)
    best = fitted(model, X, y, tol=1e-12, max_iter=100_000)
    inner_low, inner_high = best.decision_bounds(new)
    assert best.certificate_.relative_gap < 1e-9
    assert (inner_high - inner_low).max() < 1e-2
    widths = []
    for steps in (2, 20, 200):
        rough = fitted(model, X, y, tol=1e-12, max_iter=steps, **slow)
        low, high = rough.decision_bounds(new)
        assert low.shape == np.shape(inner_low)
        # The two answers of one problem: each interval contains the best score, so they meet.
        assert (low <= inner_high).all()
        assert (high >= inner_low).all()
        sure = rough.is_sure(new)
        np.testing.assert_array_equal(rough.predict(new)[sure], best.predict(new)[sure])
        widths.append(np.median(high - low))
    assert widths[2] < widths[0] or widths[0] < 1e-5
    assert best.is_sure(new).mean() > 0.9


REGRESSORS = {
    "tube": (LinearSVR(C=1.0, epsilon=0.1), {}),
    "tube, squared": (
        LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
        {"solver": "dual_coordinate_ascent"},
    ),
    "tube, regularised": (
        LinearSVR(C=0.3, epsilon=0.2, regularize_intercept=True),
        {"solver": "dual_coordinate_ascent"},
    ),
    "tube, gaussian": (SVR(C=1.0, epsilon=0.1), {}),
}


def bounds_and_scores(model, rows):
    """Bounds on the best model's scores, and the model's own; of a regressor, its predictions."""
    if hasattr(model, "prediction_bounds"):
        return model.prediction_bounds(rows), model.predict(rows)
    return model.decision_bounds(rows), model.decision_function(rows)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", [*CASES, *REGRESSORS])
def test_the_answers_at_1e_12_lie_inside(name, classes):
    """Not the optimum is compared, but a fit that is next to it, without an allowance.

    Exactly, s* is inside the bounds of both fits, so that a score s of the second is inside those of the
    first but for |s - s*|, which is at most the width of its own. Rough fits that are compared here are far
    wider, and hold s as well.
    """
    X, y, new = drawn(len(name), classes, shift=1.0)
    model, slow = (CASES | REGRESSORS)[name]
    pairs = {"decision_function_shape": "ovo"} if name in ("gaussian", "polynomial") else {}
    if name in REGRESSORS:
        y = X @ [1.0, -0.5, 0.2] + 0.3 * y
    best = fitted(model, X, y, tol=1e-12, max_iter=100_000, **pairs)
    (own_low, own_high), score = bounds_and_scores(best, new)
    assert ((own_low <= score) & (score <= own_high)).all()
    compared = 0
    for steps in (1, 5, 50):
        rough = fitted(model, X, y, tol=1e-4, max_iter=steps, **slow, **pairs)
        if rough.certificate_.relative_gap > 1e3 * max(best.certificate_.relative_gap, 1e-13):
            (low, high), _ = bounds_and_scores(rough, new)
            assert ((low <= score) & (score <= high)).all()
            compared += 1
    assert compared


@pytest.mark.parametrize("form", [{}, {"regularize_intercept": True}, {"fit_intercept": False}])
def test_hard_margins(form):
    X, _, new = drawn(5, 2)
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    X[:, :2] += 0.3 * y[:, np.newaxis]
    best = fitted(LinearSVC(C=math.inf, **form), X, y, tol=1e-12)
    rough = fitted(LinearSVC(C=math.inf, **form), X, y, tol=0.5)
    low, high = rough.decision_bounds(new)
    score = best.decision_function(new)
    assert ((low <= score + 1e-6) & (score - 1e-6 <= high)).all()
    sure = rough.is_sure(new)
    np.testing.assert_array_equal(rough.predict(new)[sure], best.predict(new)[sure])
    assert best.is_sure(new).mean() > 0.9


def test_several_best_intercepts_are_all_inside():
    """Two rows and a small C leave every b from -0.75 to 0.75 as good as any other."""
    X, y = np.array([[-1.0], [1.0]]), np.array([-1, 1])
    model = LinearSVC(loss="hinge", C=0.125).fit(X, y)
    low, high = model.decision_bounds(np.array([[0.0], [10.0]]))
    assert low[0] <= -0.75
    assert high[0] >= 0.75
    assert not model.is_sure([[0.0]])[0]
    assert model.is_sure([[10.0]])[0]


def test_sparse_and_single_precision_rows_have_the_same_bounds():
    X, y, new = drawn(3, 3)
    for model in (LinearSVC(loss="hinge", random_state=0), SVC()):
        model.fit(X, y)
        low, high = model.decision_bounds(new)
        for other in (sparse.csr_matrix(new), np.asfortranarray(new)):
            np.testing.assert_allclose(model.decision_bounds(other), (low, high), rtol=1e-9, atol=1e-9)
        singles = new.astype(np.float32)
        exact = model.decision_bounds(singles.astype(np.float64))
        np.testing.assert_allclose(model.decision_bounds(singles), exact, rtol=1e-9, atol=1e-9)


def test_a_model_without_support_vectors_has_bounds():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = SVR(epsilon=100.0).fit(X, X[:, 0])  # all targets are within the tube
    assert not len(model.support_)
    low, high = model.prediction_bounds(X)
    prediction = model.predict(X)
    assert (low <= prediction).all()
    assert (prediction <= high).all()


def test_nothing_is_sure_without_a_proof():
    X, y, new = drawn(2, 2)
    with pytest.warns(UserWarning, match="not convex"):
        model = SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, y)
    low, high = model.decision_bounds(new)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()
    assert not model.is_sure(new).any()


def test_changed_coefficients_have_no_bounds():
    X, y, new = drawn(2, 2)
    model = LinearSVC().fit(X, y)
    model.intercept_ = model.intercept_ + 1.0
    with pytest.raises(ValueError, match="they were changed since"):
        model.is_sure(new)
    kernel = SVC().fit(X, y)
    kernel.intercept_ = kernel.intercept_ + 1.0
    with pytest.raises(ValueError, match="they were changed since"):
        kernel.is_sure(new)


def test_given_values_tell_no_lengths():
    X, y, _ = drawn(2, 2)
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="given as a matrix or as a function"):
        model.is_sure(X @ X.T)


@pytest.mark.parametrize(
    "model", [LinearSVC(loss="hinge", random_state=0), SVC(), SVC(multi_class="ovr")], ids=str
)
def test_bounds_stay_with_copies_and_files(model, tmp_path):
    X, y, new = drawn(4, 3)
    model = copy.deepcopy(model).fit(X, y)
    expected = model.decision_bounds(new)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.decision_bounds(new), expected)
    for proof in (True, False):
        model.save(tmp_path / "model.mm", proof=proof)
        loaded = type(model).load(tmp_path / "model.mm")
        np.testing.assert_array_equal(loaded.decision_bounds(new), expected)
    stored = load_model(tmp_path / "model.mm")
    assert len(stored.optimum) == 3
    assert stored.in_order(np.array([2, 1, 0])).optimum is None


def test_files_that_do_not_tell_are_refused(tmp_path):
    X, y, new = drawn(4, 2)
    LinearSVC().fit(X, y).save(tmp_path / "model.txt", format="liblinear")
    with pytest.raises(ValueError, match="does not say it"):
        LinearSVC.load(tmp_path / "model.txt").is_sure(new)


def test_the_chosen_model_of_a_cross_validation_has_bounds():
    X, y, new = drawn(4, 2)
    model = LinearSVCCV(Cs=[0.1, 1.0], cv=2, random_state=0, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(model.decision_bounds(new), model.best_estimator_.decision_bounds(new))
    assert model.is_sure(new).any()


@pytest.mark.parametrize("kind", [LinearSVC, SVC])
def test_a_fit_goes_on_until_rows_are_sure(kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 4))
    y = (X[:, 0] + 0.3 * random.normal(size=1500) > 0).astype(int)
    options = {"tol": 0.1} | ({"loss": "hinge"} if kind is LinearSVC else {}) | {"random_state": 0}
    rough, closer = kind(**options).fit(X, y), kind(**options).fit(X, y, until_sure=X[:300])
    assert not rough.is_sure(X[:300]).all()
    assert closer.certificate_.gap < rough.certificate_.gap
    assert closer.is_sure(X[:300]).mean() > rough.is_sure(X[:300]).mean()
    assert closer.status_.certified
    assert closer.tol == 0.1
    assert not closer.warm_start
    # A row on the plane itself has no side.
    w, b = closer.decision_function(np.eye(4)) if kind is SVC else closer.coef_[0], closer.intercept_[0]
    if kind is LinearSVC:
        on_the_plane = -b * w / (w @ w)
        again = kind(**options).fit(X, y, until_sure=on_the_plane[np.newaxis])
        assert not again.is_sure(on_the_plane[np.newaxis])[0]
        assert again.status_.certified


def decided(kind, low, high):
    return kind.is_decided(np.array([low], float), np.array([high], float))[0]


def test_two_classes_are_decided_by_the_sign():
    kind = TwoClasses(2)
    assert decided(kind, [0.1], [2.0])
    assert decided(kind, [-1.0], [0.0])
    assert not decided(kind, [0.0], [1.0])


def test_a_class_against_the_rest_wins_by_its_lowest_score():
    kind = OneAgainstRest(3)
    assert decided(kind, [1.0, -2.0, -2.0], [3.0, 0.9, -1.0])
    assert not decided(kind, [1.0, -2.0, -2.0], [3.0, 1.0, -1.0])


def test_pairs_are_decided_however_the_open_ones_end():
    kind = OneAgainstOne(3)  # the pairs (0, 1), (0, 2) and (1, 2)
    assert decided(kind, [1.0, 1.0, -1.0], [2.0, 2.0, 1.0])
    assert decided(kind, [1.0, -1.0, 0.5], [2.0, 1.0, 1.0])  # of equal votes the first
    assert not decided(kind, [-2.0, -1.0, -1.0], [-1.0, 1.0, 1.0])
    assert not decided(kind, [-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])
    # Each wins once: the first of them has the class, unless scores are to decide.
    low, high = np.array([[0.5, -2.0, 0.5]]), np.array([[1.0, -1.0, 1.0]])
    assert kind.is_decided(low, high)[0]
    assert kind.decide(low)[0] == 0
    assert not kind.is_decided(low, high, break_ties=True)[0]


def test_every_score_between_the_bounds_gives_the_same_class():
    random = np.random.default_rng(0)
    for kind in (TwoClasses(2), OneAgainstRest(4), OneAgainstOne(4)):
        low = random.normal(size=(200, len(kind)))
        high = low + random.exponential(0.3, size=low.shape)
        sure = kind.is_decided(low, high)
        assert 0.05 < sure.mean() < 0.95
        expected = kind.decide(low)
        for _ in range(50):
            between = low + random.choice([0.0, 1.0, random.random()], size=low.shape) * (high - low)
            np.testing.assert_array_equal(kind.decide(between)[sure], expected[sure])


def test_a_place_that_is_not_known_bounds_nothing():
    scores, lengths = np.array([[1.0, 2.0]]), np.array([0.0])
    places = [NOWHERE, Neighbourhood(0.5, -1.0, 1.0)]
    low, high = score_bounds(scores, lengths, np.zeros((1, 2)), places, np.array([0.0, 0.5]))
    assert (low[0, 0], high[0, 0]) == (-np.inf, np.inf)
    assert low[0, 1] == pytest.approx(0.5)
    assert high[0, 1] == pytest.approx(2.5)
