# SPDX-License-Identifier: BSD-3-Clause
"""The perceptron: its passes, its mistakes and their bound, and an answer that depends on the order."""

from __future__ import annotations

import numpy as np
import pytest

from combinations import every_pair
from maxmargin import Problem, Solution, Status, core, solve, solve_hard_margin
from maxmargin.solvers import Perceptron
from maxmargin.solvers.perceptron import mistake_bound
from oracles.perceptron import perceptron
from problems import INTERCEPTS, LAYOUTS, clouds

UNLIMITED = core.Budget(np.inf, 1)
STORED = ("dense C float64", "CSR float64 int32")


def separable(offset=0.5):
    """Rows of the plane on both sides of a line so far from the origin."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(offset < X @ [0.8, 0.6], 1.0, -1.0)
    return X + 0.1 * y[:, None] * [0.8, 0.6], y


def passes_of(count, order, seed, n):
    state, rows = seed, np.arange(n)
    for _ in range(count):
        if order == "shuffled":
            state = core.shuffle(rows, state)
        yield rows.copy()


@every_pair(intercept=INTERCEPTS, order=["shuffled", "given"], separated=[True, False], layout=STORED)
def test_passes_are_those_of_the_pseudo_code(intercept, order, separated, layout):
    X, y = separable() if separated else clouds(n=40, d=3, distance=0.5)
    s = 1.7
    problem = Problem.of(LAYOUTS[layout](X), y, intercept=intercept, intercept_scaling=s)
    feature = {"none": 0.0, "regularised": s, "exact": 1.0}[intercept]
    solver = Perceptron(order=order, seed=5)
    state = solver.init(problem, None)
    for w, b, counts in perceptron(X, y, passes_of(50, order, 5, len(y)), bias_feature=feature):
        assert not state.finished
        state = solver.step(problem, state, UNLIMITED)
        np.testing.assert_allclose(state.w, w, rtol=1e-10, atol=1e-10)
        assert problem.bias_feature * state.beta == pytest.approx(b)
        np.testing.assert_array_equal(state.counts, counts)
    assert state.finished == (separated and intercept != "none")
    assert state.mistakes == counts.sum() > 0


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_no_order_makes_more_mistakes_than_novikoff_allows(intercept):
    X, y = separable(0.0 if intercept == "none" else 0.5)
    problem = Problem.of(X, y, intercept=intercept)
    # b is one more coordinate of w, so it counts in the margin.
    through_origin = "none" if intercept == "none" else "regularised"
    best = solve_hard_margin(Problem.of(X, y, intercept=through_origin), tol=1e-8)
    margin = 1.0 / np.hypot(np.linalg.norm(best.w), best.b if intercept != "none" else 0.0)
    rows = np.column_stack([X, np.full(len(y), 0.0 if intercept == "none" else 1.0)])
    least = mistake_bound(problem, margin)
    assert least == pytest.approx((np.linalg.norm(rows, axis=1).max() / margin) ** 2)
    mistakes = []
    for seed in range(30):
        model = solve(problem, Perceptron(seed=seed), tol=0.0, max_steps=1000)
        assert model.status is Status.RULE_FIRED
        assert "perceptron" in model.message
        mistakes.append(model.notes["mistakes"])
        # Its own margin is not the largest, so its own bound is larger, and true as well.
        assert model.notes["mistakes"] <= least <= model.notes["mistake_bound"] * (1 + 1e-6)
    assert len(set(mistakes)) > 1, "the order matters"


def test_the_bound_is_reached():
    # Two orthogonal rows of unit length, margin 1 / sqrt(2): the bound is 2, each row is a mistake once.
    problem = Problem.of(np.eye(2), [1.0, -1.0], intercept="none")
    model = solve(problem, Perceptron(), tol=0.0)
    assert model.notes["mistakes"] == 2
    assert mistake_bound(problem, np.sqrt(0.5)) == pytest.approx(2.0)
    assert model.notes["mistake_bound"] == pytest.approx(2.0)


def test_every_order_has_another_answer_and_none_is_the_widest():
    X, y = separable()
    problem = Problem.of(X, y, 1e3)
    best = solve_hard_margin(problem, tol=1e-8)
    widest = 1.0 / np.linalg.norm(best.w)
    directions, margins = [], []
    for seed in range(8):
        model = solve(problem, Perceptron(seed=seed), tol=0.0, max_steps=1000)
        directions.append(model.w / np.linalg.norm(model.w))
        margins.append(np.min(y * (X @ model.w + model.b)) / np.linalg.norm(model.w))
        assert model.certificate.dual <= 0.5 / widest**2 * (1 + 1e-6) <= model.certificate.primal
    assert len(np.unique(np.round(directions, 6), axis=0)) > 3
    assert min(margins) > 0
    assert max(margins) < widest
    given = [solve(problem, Perceptron(order="given", seed=seed), tol=0.0) for seed in (0, 1)]
    np.testing.assert_array_equal(given[0].w, given[1].w)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.05, 0.7, 1e3])
def test_its_multiple_is_the_best_one(intercept, C):
    X, y = separable() if C == 1e3 and intercept != "none" else clouds(n=40, d=3)
    problem = Problem.of(X, y, C, intercept=intercept, intercept_scaling=2.0)
    solver = Perceptron(polish=0)
    state = solver.init(problem, None)
    for _ in range(20):
        state = solver.step(problem, state, UNLIMITED)
    found = solver.solution(problem, state, UNLIMITED)
    ours, scores = problem.primal(found.w, found.b), problem.rows.scores(state.w)
    multiples = [0.0, *np.geomspace(1e-3, 1e3, 400)]
    b = problem.bias_feature * state.beta
    best = min(
        problem.primal(s * state.w, problem.best_intercept(s * scores) if intercept == "exact" else s * b)
        for s in multiples
    )
    assert ours <= 1.02 * best
    # From w = 0, the counts of mistakes are its multipliers.
    np.testing.assert_allclose(found.w, X.T @ (found.alpha * y), rtol=1e-12, atol=1e-14)


def test_rows_that_no_plane_separates():
    X, y = clouds(n=40, d=3, distance=0.5)
    problem = Problem.of(X, y, 0.1)
    model = solve(problem, "perceptron", tol=0.0, max_steps=30)
    assert model.status is Status.STEPS_SPENT
    assert "mistake_bound" not in model.notes
    assert model.certificate.primal <= problem.primal_of_zero
    optimum = solve(problem, tol=1e-8).certificate.primal
    assert model.certificate.dual <= optimum <= model.certificate.primal


def test_rows_without_weight_are_not_visited_and_starts_are_gone_on_from():
    X, y = separable()
    y[0] = -y[0]  # on the wrong side, but it does not count
    weights = np.ones(len(y))
    weights[0] = 0.0
    problem = Problem.of(X, y, 10.0, weights=weights)
    model = solve(problem, Perceptron(), tol=0.0)
    assert model.status is Status.RULE_FIRED
    again = solve(problem, Perceptron(), tol=0.0, start=Solution(w=model.w, b=model.b))
    assert again.steps == 1
    assert again.notes == {"mistakes": 0.0}


@pytest.mark.parametrize("loss", ["perceptron", "squared_hinge", "logistic"])
def test_other_losses_are_refused_with_a_reason(loss):
    X, y = separable()
    with pytest.raises(ValueError, match=f"measured by the hinge, not by {loss}"):
        solve(Problem.of(X, y, loss=loss), "perceptron")
