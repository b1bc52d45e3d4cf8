# SPDX-License-Identifier: BSD-3-Clause
"""The one problem: its values by the lectures' formulas, and arguments that are checked with a cure."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Intercept, Problem, Rows
from maxmargin.problem.losses import HINGE, LOSSES
from problems import INTERCEPTS, clouds
from quadratic_program import objective

X, Y = clouds(n=12, d=3)
W, B = np.array([0.4, -0.3, 0.2]), 0.25
WEIGHTS = np.linspace(0.0, 2.0, 12)
S = 2.5


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_primal(loss, intercept):
    problem = Problem.of(X, Y, 0.7, loss=loss, intercept=intercept, weights=WEIGHTS, intercept_scaling=S)
    b = 0.0 if intercept == "none" else B
    expected = objective(X, Y, 0.7 * WEIGHTS, loss, intercept, S, W, b)
    assert problem.primal(W, b) == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(problem.margins(W, b), Y * (X @ W + b), rtol=1e-13)
    assert problem.total_cost == pytest.approx(0.7 * WEIGHTS.sum())


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_dual_of_the_hinge(intercept):
    # 000: sum alpha - 1/2 sum_ij alpha_i alpha_j y_i y_j <x_i, x_j>, with <x, x'> + s^2 if augmented.
    problem = Problem.of(X, Y, 0.7, intercept=intercept, intercept_scaling=S)
    alpha = np.random.default_rng(0).uniform(0.0, 0.7, 12)
    alpha[Y < 0] *= alpha[Y > 0].sum() / alpha[Y < 0].sum()  # sum alpha_i y_i = 0
    alpha *= 0.7 / alpha.max()
    gram = X @ X.T + (S**2 if intercept == "regularised" else 0.0)
    expected = alpha.sum() - 0.5 * (alpha * Y) @ gram @ (alpha * Y)
    assert problem.dual(alpha) == pytest.approx(expected, rel=1e-12)
    assert problem.dual(alpha + 1.0) == -np.inf
    assert problem.dual(alpha - 0.7) == -np.inf
    if intercept == "exact":
        # An unbalanced alpha lets b take the Lagrangian to -inf.
        assert problem.dual(np.where(Y > 0, alpha, 0.0)) == -np.inf


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_primal_from_dual(loss, intercept):
    problem = Problem.of(X, Y, 0.7, loss=loss, intercept=intercept, intercept_scaling=S)
    alpha = np.random.default_rng(0).uniform(0.0, 0.7, 12)
    w, b = problem.primal_from_dual(alpha)
    np.testing.assert_allclose(w, (alpha * Y) @ X, rtol=1e-12)
    if intercept == "none":
        assert b == 0.0
    else:
        nearby = [problem.primal(w, b + step) for step in (-1e-3, 1e-3)]
        assert problem.primal(w, b) <= min(nearby) * (1 + 1e-14)


@pytest.mark.parametrize("intercept", ["none", "regularised"])
def test_augmentation_trick(intercept):
    """000: a regularised intercept is one more feature of constant value s, w = (w, b / s)."""
    augmented = Problem.of(np.column_stack([X, np.full(12, S)]), Y, 0.7, intercept="none")
    problem = Problem.of(X, Y, 0.7, intercept="regularised", intercept_scaling=S)
    assert problem.primal(W, B) == pytest.approx(augmented.primal(np.append(W, B / S)), rel=1e-13)
    alpha = np.linspace(0.0, 0.7, 12)
    assert problem.dual(alpha) == pytest.approx(augmented.dual(alpha), rel=1e-12)


def test_defaults_are_the_lectures_problem():
    problem = Problem.of(X, Y)
    assert problem.loss is HINGE
    assert problem.intercept is Intercept.EXACT
    np.testing.assert_array_equal(problem.costs, np.ones(12))


def test_of_takes_rows_losses_and_enums_as_they_are():
    rows = Rows(sparse.csr_matrix(X))
    problem = Problem.of(rows, Y.astype(int), loss=HINGE, intercept=Intercept.NONE)
    assert problem.rows is rows
    assert problem.y.dtype == np.float64
    assert problem.intercept is Intercept.NONE


# ---- every error names the argument, the value and the cure --------------------------------------

REFUSED = {
    "y too short": ({"y": Y[:5]}, "y must", "(5,)", "12 rows"),
    "y two-dimensional": ({"y": Y[:, None]}, "y must", "(12, 1)", "one label for each"),
    "labels 0 and 1": ({"y": np.arange(12) % 2}, "labels", "0", "-1 or 1"),
    "labels with nan": ({"y": np.full(12, np.nan)}, "labels", "nan", "-1 or 1"),
    "C negative": ({"C": -1.0}, "C must", "-1.0", "above 0"),
    "C zero": ({"C": 0}, "C must", "0", "above 0"),
    "C infinite": ({"C": np.inf}, "C must", "inf", "finite"),
    "C nan": ({"C": np.nan}, "C must", "nan", "finite"),
    "loss unknown": ({"loss": "hingee"}, "loss must", "hingee", "squared_hinge"),
    "intercept unknown": ({"intercept": "free"}, "intercept", "free", "regularised"),
    "scaling zero": ({"intercept_scaling": 0.0}, "intercept_scaling must", "0.0", "above 0"),
    "scaling nan": ({"intercept_scaling": np.nan}, "intercept_scaling must", "nan", "finite"),
    "weights negative": ({"weights": -WEIGHTS}, "weights must", "-0.18", "negative"),
    "weights with nan": ({"weights": np.full(12, np.nan)}, "weights must", "nan", "finite"),
    "weights too few": ({"weights": np.ones(5)}, "weights must", "(5,)", "each of the 12 rows"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_arguments(kind):
    changes, *words = REFUSED[kind]
    arguments = {"X": X, "y": Y} | changes
    with pytest.raises(ValueError, match=r".") as caught:
        Problem.of(arguments.pop("X"), arguments.pop("y"), **arguments)
    message = str(caught.value)
    for word in words:
        assert re.search(re.escape(word), message), f"{word!r} is missing from: {message}"


def test_other_labels_share_what_does_not_depend_on_them():
    weights = np.linspace(0.5, 2.0, len(Y))
    problem = Problem.of(X, Y, 3.0, weights=weights)
    margins = np.linspace(-1.0, 2.0, len(Y))
    _ = problem.total_cost, problem.upper, problem.best_intercept(margins)
    other = problem.with_labels(-problem.y)
    fresh = Problem.of(X, -problem.y, 3.0, weights=weights)
    assert other.rows is problem.rows
    assert other.costs is problem.costs
    assert other.total_cost == pytest.approx(fresh.total_cost)
    assert other.best_intercept(margins) == pytest.approx(fresh.best_intercept(margins))
    assert other.best_intercept(margins) != problem.best_intercept(margins)
    np.testing.assert_array_equal(problem.y, Y)


def test_no_rows_at_all():
    with pytest.raises(ValueError, match="row"):
        Problem.of(np.zeros((0, 3)), np.zeros(0))


@every_pair(size=[0.01, 1.0, 50.0], loss=["hinge", "squared_hinge"], intercept=["none", "regularised"])
def test_best_multiple_is_the_best(loss, intercept, size):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(20, 4)), np.where(np.arange(20) < 9, 1.0, -1.0)
    problem = Problem.of(X, y, 100.0, loss=loss, intercept=intercept, intercept_scaling=2.0)
    alpha = size * random.random(20)
    best = problem.best_multiple(alpha, X.T @ (alpha * y))
    values = [problem.dual(t * alpha) for t in np.linspace(0.0, 1.0, 1001)]
    assert 0.0 < best <= 1.0
    assert problem.dual(best * alpha) >= max(values)
