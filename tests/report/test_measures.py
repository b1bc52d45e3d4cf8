# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of a report, against scikit-learn, SciPy and what they have to add up to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

from maxmargin import SVC, LinearSVC
from maxmargin.files.models.fitted import from_estimator
from maxmargin.report.drawing import decades, ticks
from maxmargin.report.measures import LEVEL, Measures, interval

IRIS = load_iris(return_X_y=True)
PLANE = IRIS[0][:, :2], IRIS[1]
MOONS = make_moons(120, noise=0.3, random_state=0)
MODELS = {
    "two classes": (LinearSVC(loss="hinge"), MOONS),
    "kernel": (SVC(), MOONS),
    "one against the rest": (LinearSVC(C=0.1), IRIS),
    "pairs": (SVC(C=10.0), PLANE),
    "pairs, ties broken": (SVC(C=0.01, break_ties=True), PLANE),
    "kernel against the rest": (SVC(C=10.0, multi_class="ovr"), PLANE),
}


def measured(estimator, X, y, is_sure=None):
    return Measures(from_estimator(estimator), X, y, is_sure)


@pytest.mark.parametrize(("count", "of"), [(0, 10), (5, 10), (10, 10), (1, 1), (374, 379)])
def test_intervals_are_those_of_clopper_and_pearson(count, of):
    theirs = binomtest(count, of).proportion_ci(LEVEL, method="exact")
    assert interval(count, of) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.83])
def test_intervals_hold_the_share_as_often_as_they_say(share):
    counts = np.arange(31)
    holds = [low <= share <= high for low, high in (interval(int(k), 30) for k in counts)]
    assert binom.pmf(counts[holds], 30, share).sum() >= LEVEL


@pytest.mark.parametrize("kind", MODELS)
def test_predictions_are_those_of_the_estimator(kind):
    estimator, (X, y) = MODELS[kind]
    estimator.fit(X, y)
    found, predicted = measured(estimator, X, y), estimator.predict(X)
    assert found.accuracy == estimator.score(X, y)
    assert np.array_equal(found.confusion[:-1], confusion_matrix(y, predicted))
    assert not found.confusion[-1].any()
    for k, each in enumerate(found.of_classes):
        assert each.recall == pytest.approx(np.mean(predicted[y == k] == k))
        assert each.precision is None or each.precision == pytest.approx(np.mean(y[predicted == k] == k))


@pytest.mark.parametrize("kind", MODELS)
def test_rows_and_bars_add_up(kind):
    estimator, (X, y) = MODELS[kind]
    found = measured(estimator.fit(X, y), X, y)
    sizes = [sum(counts[1:]) for counts in found.row_counts]
    pairs = len(found.row_counts) == 3 and kind.startswith("pairs")
    assert sizes == ([100] * 3 if pairs else [len(y)] * len(sizes))
    assert sum(map(sum, found.histogram.counts.values())) == len(y)
    if len(found.row_counts) == 1:
        assert found.row_counts[0].misclassified == len(y) - found.right


def test_rows_are_counted_by_their_margins():
    X, y = MOONS
    model = SVC(C=10.0, tol=1e-8).fit(X, y)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    counts = measured(model, X, y).row_counts[0]
    assert counts.inside == np.count_nonzero((margins > 0) & (margins < 1.0 - 1e-3))
    assert counts.on == np.count_nonzero(np.abs(margins - 1.0) <= 1e-3)
    assert counts.on == np.count_nonzero((model.certificate_.alpha > 0) & (model.certificate_.alpha < 10.0))


def test_the_best_model_is_within_the_proven_bounds():
    X, y = MOONS
    rough, fine = LinearSVC(loss="hinge", tol=1e-2).fit(X, y), LinearSVC(loss="hinge", tol=1e-10).fit(X, y)
    found = measured(rough, X, y, rough.is_sure)
    right = round(fine.score(X, y) * len(y))
    assert found.sure.right <= right <= len(y) - found.sure.wrong


@pytest.mark.parametrize("several", [False, True])
def test_calibration_is_that_of_scikit_learn(several):
    X, y = IRIS if several else MOONS
    model = LinearSVC(loss="logistic").fit(X, y)
    found = measured(model, X, y).calibration
    probability = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
    seen = (y[:, np.newaxis] == np.arange(3)) if several else y
    assert found.pooled is several
    assert found.brier == pytest.approx(brier_score_loss(seen.ravel(), probability.ravel()))
    assert found.log_loss == pytest.approx(log_loss(seen.ravel(), probability.ravel()))
    assert sum(each.rows for each in found.bins) == probability.size
    assert all(each.low <= each.seen <= each.high for each in found.bins)


def test_other_losses_have_no_calibration():
    assert measured(LinearSVC().fit(*MOONS), *MOONS).calibration is None


def test_labels_that_the_model_does_not_know_are_wrong():
    X, y = MOONS
    model = LinearSVC().fit(X, y)
    other = np.where(np.arange(len(y)) < 20, 7, y)
    found = measured(model, X, other)
    assert found.known == len(y) - 20
    assert found.confusion[-1].sum() == 20
    assert found.right == np.count_nonzero(model.predict(X) == other)
    assert measured(model, X, np.full(len(y), 7)).accuracy is None


def test_round_numbers_stand_beside_the_axes():
    assert ticks(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(-23.0, 11.0) == [-20.0, -10.0, 0.0, 10.0]
    assert decades(1e-6, 1.0) == pytest.approx([1e-6, 1e-4, 1e-2, 1.0])
