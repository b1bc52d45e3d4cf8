# SPDX-License-Identifier: BSD-3-Clause
"""The automatic choice: what is taken where, and the hand-over in mid-run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, Solution, Status, certify, choose_solver, solve
from maxmargin.choose import second_order_cost
from maxmargin.solvers import AugmentedLagrangian, Newton
from maxmargin.solvers.hand_over import HandOver
from problems import clouds

SECOND = {"hinge": AugmentedLagrangian(resort=True), "squared_hinge": Newton(resort=True)}


def wide_text(n=400, d=20_000, seed=0):
    """Sparse rows of unit length, nearly separable, with many more columns than a factor could take."""
    generator = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.005, rng=generator, format="csr")
    X.data /= np.repeat(np.sqrt((X**2).sum(axis=1)), np.diff(X.indptr))
    y = np.where(X @ generator.normal(size=d) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("loss", SECOND)
def test_few_columns_take_the_second_order_solver(loss):
    X, y = clouds(n=3000, d=20, seed=1)
    solver, reason = choose_solver(Problem.of(X, y, 10.0, loss=loss))
    assert solver == SECOND[loss]
    assert reason.startswith(f"{solver.name}: for 3000 rows of 20 columns")


@pytest.mark.parametrize("loss", SECOND)
def test_wide_sparse_data_take_the_ascent(loss):
    X, y = wide_text(n=8000, d=100_000)
    problem = Problem.of(X, y, 1.0, loss=loss)
    solver, reason = choose_solver(problem)
    assert isinstance(solver, HandOver)
    assert reason.startswith("dual_coordinate_ascent: ")
    model = solve(problem, tol=1e-3)
    assert model.status is Status.CERTIFIED
    assert model.solver.startswith("dual_coordinate_ascent: ")
    assert model.story == ""


@pytest.mark.parametrize("loss", SECOND)
def test_hand_over_in_mid_run(loss):
    """An ascent that gets nowhere is given up for the second solver, which goes on from its point."""
    X, y = clouds(n=500, d=20, seed=2)
    problem = Problem.of(X, y, 1e4, loss=loss)
    solver = HandOver(SECOND[loss], cost=20.0 * problem.rows.stored)
    model = solve(problem, solver, tol=1e-8)
    assert model.status is Status.CERTIFIED
    assert model.story.startswith(f"{SECOND[loss].name}, after ")
    assert model.solver == model.story
    best = solve(problem, SECOND[loss], tol=1e-10)
    assert model.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-8)


def test_no_hand_over_where_it_would_cost_more():
    X, y = clouds(n=300, d=10, seed=3)
    problem = Problem.of(X, y, 0.01)
    model = solve(problem, HandOver(AugmentedLagrangian(), cost=math.inf), tol=1e-4)
    assert model.status is Status.CERTIFIED
    assert model.story == ""


def test_sweeps_left_follow_the_decay():
    solver = HandOver(Newton(), cost=1.0, tol=1e-4)
    halving = [0.5**k for k in range(1, 9)]
    assert solver.sweeps_left(halving) == pytest.approx(math.log2(halving[-1] / 1e-4))
    assert solver.sweeps_left(halving[:4]) == 0.0  # too early to tell
    assert solver.sweeps_left([0.1] * 8) == math.inf
    assert solver.sweeps_left([*halving, 1e-5]) == 0.0


def test_costs_grow_with_the_work():
    small, large = (
        second_order_cost(Problem.of(*clouds(n=n, d=d, seed=4)), 1e-4) for n, d in ((200, 5), (400, 50))
    )
    assert 0 < small < large
    problem = Problem.of(*clouds(n=200, d=5, seed=4))
    assert second_order_cost(problem, 1e-8) > second_order_cost(problem, 1e-2)
    assert math.isfinite(second_order_cost(problem, 0.0))


@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
def test_where_rounding_ends_the_others_the_interior_point_method_goes_on(intercept):
    """Columns eight orders of magnitude apart, separable, at a large C."""
    resorted = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(12, 150)) * 10 ** generator.uniform(-4, 4, 150)
        y = np.where(np.arange(12) % 3 == 0, 1.0, -1.0)
        problem = Problem.of(X, y, 1000.0, intercept=intercept)
        model = solve(problem, tol=1e-6)
        assert model.status is Status.CERTIFIED
        found = certify(problem, Solution(w=model.w, alpha=model.alpha))
        assert found.relative_gap <= 1.1e-6
        if model.solver.startswith("interior_point: the "):
            resorted += 1
            assert model.story == model.solver
            alone = solve(problem, AugmentedLagrangian(), tol=1e-6)
            assert alone.status is not Status.CERTIFIED
            assert "interior_point" not in alone.solver
    assert resorted > 0


def test_rows_without_values_are_not_free():
    """A sweep over them costs nothing by their values, and a thousand would not be enough."""
    problem = Problem.of(
        sparse.csr_array((30, 4)), np.where(np.arange(30) % 3, 1.0, -1.0), 10.0, loss="squared_hinge"
    )
    model = solve(problem, tol=1e-8)
    assert model.status is Status.CERTIFIED
    assert model.steps < 50
