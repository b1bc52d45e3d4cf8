# SPDX-License-Identifier: BSD-3-Clause
"""The intercept of dual coordinate ascent."""

import numpy as np
import pytest

from maxmargin import Problem, core, solve
from maxmargin.problem import Intercept
from maxmargin.solvers import DualCoordinateAscent
from maxmargin.solvers.ascent.pulled_intercept import PulledIntercept
from maxmargin.solvers.ascent.state import ALPHA


def unequal_classes(n=600, d=20, share=0.1, seed=0):
    """Most rows are of one class: at a small C none is free to answer to b."""
    random = np.random.default_rng(seed)
    y = np.where(random.random(n) < share, 1.0, -1.0)
    X = random.normal(size=(n, d)) / np.sqrt(d) + 0.1 * y[:, np.newaxis]
    return X, y


@pytest.mark.parametrize("scaling", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_regularised_b_adds_its_part_to_the_gap(loss, scaling):
    """P(w, b) - D(alpha) is the sum of the rows' gaps and of b's, at any b and any alpha."""
    X, y = unequal_classes()
    problem = Problem.of(X, y, 0.3, loss=loss, intercept="regularised", intercept_scaling=scaling)
    alpha = np.random.default_rng(1).random(len(y)) * problem.costs
    w = X.T @ (alpha * y)
    intercept = PulledIntercept.of(problem, 0.03, centre=0.2)
    intercept.answer_to(alpha @ y)
    np.testing.assert_allclose(intercept.balance, alpha @ y, rtol=1e-12)
    margins = y * (X @ w + intercept.b)
    gains = problem.loss.dual_gain(alpha, problem.costs)
    of_rows = problem.loss_sum(margins) - gains.sum() + alpha @ margins
    gap = problem.primal(w, intercept.b) - problem.dual(alpha)
    np.testing.assert_allclose(of_rows + intercept.gap(hinge=loss == "hinge"), gap, rtol=1e-12)


@pytest.mark.parametrize("intercept", ["regularised", "exact"])
@pytest.mark.parametrize("C", [2.0**-15, 2.0**-9, 2.0**-6, 2.0**-4])
def test_a_small_C_takes_few_sweeps_and_few_certificates(C, intercept):
    X, y = unequal_classes()
    problem = Problem.of(X, y, C, loss="hinge", intercept=intercept)
    model = solve(problem, "dual_coordinate_ascent", tol=1e-4)
    assert model.status.certified
    assert model.steps <= 30
    assert len(model.trace) <= 3


def test_b_goes_all_its_way_once_where_no_multiplier_answers():
    X, y = unequal_classes()
    problem = Problem.of(X, y, 2.0**-12, loss="hinge", intercept="regularised")
    solver = DualCoordinateAscent()
    state = solver.init(problem, None)
    for _ in range(2):
        state = solver.step(problem, state, core.ALL_CORES)
    alpha = state.coordinates[:, ALPHA]
    np.testing.assert_array_equal(alpha, problem.costs)
    np.testing.assert_allclose(state.intercept.b, alpha @ y, rtol=1e-12)
    intercept = state.intercept
    assert intercept.move(at_rest=True) == pytest.approx(0.0, abs=1e-15)
    intercept.centre = 0.0
    intercept.answer_to(float(alpha @ y))
    before = intercept.b
    assert abs(intercept.move(at_rest=True)) < abs(alpha @ y - before)  # the second time by a part


def test_the_pull_is_loosened_while_b_creeps_and_b_stays_that_of_its_multipliers():
    intercept = PulledIntercept(Intercept.EXACT, 1.0, reach=0.03, longest_reach=1.0)
    reaches, ways = [], []
    for _ in range(12):
        before = intercept.b
        intercept.answer_to(0.7)
        intercept.move(at_rest=False)
        intercept.reach_further()
        assert intercept.balance == pytest.approx(0.7)
        reaches.append(intercept.reach)
        ways.append(intercept.b - before)
    assert sorted(set(reaches)) == pytest.approx([0.03, 0.12, 0.48])
    assert ways[-1] > 10 * ways[1]


@pytest.mark.parametrize("intercept", ["regularised", "exact"])
def test_all_costs_together_can_take_b_by_one(intercept):
    X, y = unequal_classes()
    for C in (1e-12, 1e-6):
        problem = Problem.of(X, y, C, loss="hinge", intercept=intercept)
        assert PulledIntercept.of(problem, 0.03).reach * problem.total_cost == pytest.approx(1.0)
    problem = Problem.of(X, y, 1.0, loss="hinge", intercept=intercept)
    assert PulledIntercept.of(problem, 0.03).reach == 0.03 * problem.rows.mean_squared_norm
