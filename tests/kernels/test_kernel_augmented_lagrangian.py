# SPDX-License-Identifier: BSD-3-Clause
"""The augmented Lagrangian on a kernel, and the rung of many rows that it is."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from maxmargin import SVC, SVR, Problem, Solution, Status, certify, solve
from maxmargin.core import ALL_CORES, Budget
from maxmargin.kernels import Gaussian, KernelRows, Polynomial
from maxmargin.problem.regression import regression_problem
from maxmargin.reductions import linear_kernel
from maxmargin.reductions.linear_kernel import factor_of, factor_of_values
from maxmargin.solvers import sizes
from maxmargin.solvers.kernel import kernel_augmented_lagrangian as module
from maxmargin.solvers.kernel.kernel_augmented_lagrangian import KernelAugmentedLagrangian
from maxmargin.solvers.second_order.bordered import Bordered, Equations
from maxmargin.solvers.second_order.cholesky import factored
from maxmargin.solving.loop import NO_LIMIT, Limits, solve_after
from maxmargin.solving.ways import Way
from oracles import kernel_augmented_lagrangian as oracle
from problems import clouds


def noisy(n, d, seed):
    """Labels of a plane that are half noise, and the values that they are the signs of."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    values = X @ random.normal(size=d) + 3.0 * random.normal(size=n)
    return X, np.where(values > 0.0, 1.0, -1.0), values


def problem_of(X, y, kernel, C, epsilon):
    """The problem, and its y, e and walls."""
    rows, n = KernelRows(X, kernel), len(y)
    if epsilon is None:
        walls = np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)
        return Problem.of(rows, y, C), (y, np.zeros(n), *walls)
    problem = regression_problem(rows, y, C, epsilon=epsilon)
    return problem, (y, np.full(n, epsilon), np.full(n, -C), np.full(n, C))


# ---- the solver ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(degree=3, gamma=0.5, coef0=1.0)])
@pytest.mark.parametrize("epsilon", [None, 0.0, 0.2])
def test_every_step_is_the_oracle_s(kernel, epsilon):
    C = 200.0 if isinstance(kernel, Gaussian) else 20.0
    X, y = clouds(n=60, d=3, seed=4)
    y = y if epsilon is None else X[:, 0] ** 2 + 0.3 * y
    problem, (y, e, low, high) = problem_of(X, y, kernel, C, epsilon)
    K, solver = kernel(X), KernelAugmentedLagrangian(width=0.3)
    state = solver.step(problem, solver.init(problem, None), ALL_CORES)
    c, r = state.center, state.r
    now = partial(oracle.value, K, y, e, low, high, c, r)
    last = now(state.v, state.b)
    known = oracle.steps(K, y, e, low, high, c, r, state.v, state.b, state.before)
    while not solver._is_enough(state):
        state = solver.step(problem, state, ALL_CORES)
        v, b = next(known)
        f, size = K @ v + b, np.abs(K @ v).max() + 1.0
        np.testing.assert_allclose(state.smooth.f + state.b, f, rtol=0, atol=1e-6 * size)
        before, last = last, now(state.v, state.b)
        assert last <= before + 1e-9 * abs(before), "a step cannot raise the smooth function"
    assert state.steps > (1 if epsilon is None else 3)
    t, f = state.smooth.target, state.smooth.f
    scale = np.abs(K).max() * np.abs(state.v).max()
    np.testing.assert_allclose(f, K @ state.v, rtol=0, atol=1e-11 * scale * len(y))
    np.testing.assert_allclose(state.smooth.pull, K @ (state.v - t), rtol=0, atol=1e-11 * scale * len(y))
    assert (t >= low).all()
    assert (t <= high).all()


@pytest.mark.parametrize("epsilon", [None, 0.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_it_ends_where_pairs_do(epsilon, seed):
    X, labels, values = noisy(300, 3, seed)
    problem, _ = problem_of(X, labels if epsilon is None else values, Gaussian(0.3), 100.0, epsilon)
    pairs = solve(problem, "working_set", tol=1e-6)
    ours = solve(problem, KernelAugmentedLagrangian(), tol=1e-6, max_steps=400)
    assert pairs.status is ours.status is Status.CERTIFIED
    assert ours.certificate.primal == pytest.approx(pairs.certificate.primal, rel=2e-6)
    again = certify(problem, Solution(w=ours.w, alpha=ours.alpha))
    assert again.relative_gap <= 1e-6
    start = Solution(alpha=0.5 * pairs.alpha, w=0.5 * pairs.w)
    assert solve(problem, KernelAugmentedLagrangian(), tol=1e-6, start=start).status is Status.CERTIFIED


def test_costs_of_0_and_of_many_sizes_are_its_walls():
    X, y, _ = noisy(200, 3, seed=5)
    weights = np.random.default_rng(1).choice([0.0, 1.0, 10.0], size=200)
    problem = Problem.of(KernelRows(X, Gaussian(0.3)), y, 100.0, weights=weights)
    model = solve(problem, KernelAugmentedLagrangian(), tol=1e-6)
    assert model.status is Status.CERTIFIED
    assert (model.alpha <= 100.0 * weights).all()


def test_a_large_C_is_no_reason_to_go_round_in_circles():
    """Active sets end with a gap of 0.03 to 0.3 there, and pairs of rows take 2 to 50 times as long."""
    X, y, _ = noisy(700, 5, seed=6)
    problem = Problem.of(KernelRows(X, Gaussian(0.1)), y, 1e5)
    model = solve(problem, KernelAugmentedLagrangian(), tol=1e-3, max_steps=200)
    assert model.status is Status.CERTIFIED


def test_a_system_has_no_more_rows_than_it_may(monkeypatch):
    X, y, _ = noisy(300, 3, seed=2)
    problem = Problem.of(KernelRows(X, Gaussian(0.3)), y, 100.0)
    sides = []

    class Counted(Bordered):
        def __init__(self, equations, J, r, budget, **how):
            sides.append(np.count_nonzero(J))
            super().__init__(equations, J, r, budget, **how)

    monkeypatch.setattr(module, "Bordered", Counted)
    assert solve(problem, KernelAugmentedLagrangian(), tol=1e-4).status is Status.CERTIFIED
    most = max(sides) // 2
    sides.clear()
    solve(problem, KernelAugmentedLagrangian(most_rows=most), tol=1e-4, max_steps=100)
    assert 0 < max(sides) <= most


def test_it_ends_where_no_system_is_small_enough():
    X, y, _ = noisy(200, 3, seed=2)
    problem = Problem.of(KernelRows(X, Gaussian(0.3)), y, 100.0)
    start = Solution(alpha=np.full(200, 50.0))  # every row is free, whatever r is
    problem.objective.make_feasible(start.alpha)
    model = solve(problem, KernelAugmentedLagrangian(most_rows=1), start=start)
    assert model.status is Status.RULE_FIRED
    assert model.certificate.relative_gap <= certify(problem, start).relative_gap


def test_a_step_that_is_ended_leaves_the_state_as_it_was():
    X, y, _ = noisy(300, 3, seed=2)
    problem = Problem.of(KernelRows(X, Gaussian(0.3)), y, 100.0)
    solver = KernelAugmentedLagrangian()
    spent, stopped = Budget(0.0, 1), Budget(math.inf, 1)
    stopped.stop()
    state = solver.step(problem, solver.init(problem, None), spent)
    assert state.smooth is None
    assert not state.finished
    state = solver.step(problem, state, ALL_CORES)
    v, smooth, r = state.v, state.smooth, state.r
    assert solver.step(problem, state, spent).smooth is smooth
    with pytest.raises(KeyboardInterrupt):
        solver.step(problem, state, stopped)
    assert state.v is v
    assert state.smooth is smooth
    assert state.r == r
    while not solver._is_enough(state):
        state = solver.step(problem, state, ALL_CORES)
    v, smooth, center, r = state.v, state.smooth, state.center, state.r
    with pytest.raises(KeyboardInterrupt):  # between two smooth problems
        solver.step(problem, state, stopped)
    assert solver.step(problem, state, spent).smooth is smooth
    assert (state.v is v, state.center is center, state.r == r) == (True, True, True)


def test_rounding_alone_is_told_from_a_gap():
    X, y, _ = noisy(200, 3, seed=2)
    problem = Problem.of(KernelRows(X, Gaussian(0.3)), y, 1e3)
    solver = KernelAugmentedLagrangian(aim=1e-2)
    found, state = solve_after(
        None, problem, Way(solver, "asked for"), Limits.of(1e-15, NO_LIMIT), None, None
    )
    assert found.status is Status.RULE_FIRED
    assert solver.sees_no_gap(state)
    assert found.certificate.relative_gap < 1e-2


def test_what_it_does_not_solve_is_refused():
    X, y = clouds(n=30, d=3, seed=4)
    squared = Problem.of(KernelRows(X, Gaussian(1.0)), y, 1.0, loss="squared_hinge")
    assert "hinge" in KernelAugmentedLagrangian().accepts(squared)
    assert KernelAugmentedLagrangian().accepts(Problem.of(KernelRows(X, Gaussian(1.0)), y, 1.0)) is None


# ---- what it rests on ------------------------------------------------------------------------------


def test_a_factor_that_is_to_be_in_time_is_not_made_late():
    matrix = np.eye(1_100)
    with pytest.raises(TimeoutError):
        factored(matrix.copy(), Budget(0.0, 1), in_time=True)
    assert factored(matrix.copy(), Budget(0.0, 1)) is not None


def test_a_border_is_answered_for_in_parts_and_can_be_stopped():
    random = np.random.default_rng(0)
    L = random.normal(size=(1_200, 1_200))
    M, right = L @ L.T / 1_200, random.normal(size=1_200)
    equations = Equations(M, np.full(1_200, 0.1), right, 0.0, 0.0)
    first, J = np.arange(1_200) < 1_000, np.arange(1_200) < 1_100
    stopped = Budget(math.inf, 2)
    system = Bordered(equations, first, 0.1, in_time=True)
    stopped.stop()
    with pytest.raises(KeyboardInterrupt):
        system.solve(equations, J, np.zeros(1_200), stopped)
    with pytest.raises(TimeoutError):
        system.solve(equations, J, np.zeros(1_200), Budget(0.0, 2))
    alone, both = (
        Bordered(equations, first, 0.1).solve(equations, J, np.zeros(1_200), Budget(math.inf, threads))
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(alone[0], both[0])
    left = right[J] - (M @ alone[0] + 0.1 * alone[0])[J] - alone[1]
    assert np.abs(left).max() < 1e-9
    assert system.solve(equations, J, np.zeros(1_200))[1] == pytest.approx(alone[1])


def test_a_factor_goes_as_far_as_its_columns():
    X, _ = clouds(n=300, d=3, seed=4)
    rows, every = KernelRows(X, Gaussian(0.3)), np.arange(300)
    K = rows.block(every, every)
    assert factor_of(K, 50) is None
    factor = factor_of_values(K.__getitem__, np.ones(300), 50, as_far=True)
    assert factor.rows.shape == (300, 50)
    left = K - factor.rows @ factor.rows.T
    assert np.linalg.eigvalsh(left).min() > -1e-9
    assert np.diag(left).max() < 0.5
    whole = factor_of(K, 300)
    again = factor_of_values(K.__getitem__, np.ones(300), 300, as_far=True)
    np.testing.assert_array_equal(whole.rows, again.rows)


def test_a_factor_without_hope_is_given_up_soon(monkeypatch):
    X = np.random.default_rng(0).normal(size=(2_000, 8))
    rows, every, asked = KernelRows(X, Gaussian(0.3)), np.arange(2_000), []

    def values(some):
        asked.extend(some)
        return rows.block(some, every)

    weights = np.full(2_000, 1e6)
    assert factor_of_values(values, np.ones(2_000), 600, weights=weights) is None
    soon = len(asked)
    asked.clear()
    monkeypatch.setattr(linear_kernel, "_FIRST_LOOK", 1.0)
    assert factor_of_values(values, np.ones(2_000), 600, weights=weights) is None
    assert soon < 0.6 * len(asked)


# ---- the rung --------------------------------------------------------------------------------------


@pytest.fixture
def few_are_many(monkeypatch):
    """Sizes at which some hundred rows are more than can be factored."""
    for size, value in {"FACTORED_ROWS": 500, "QUICK_ROWS": 500, "WORK_ON_FACTOR": 1e6}.items():
        monkeypatch.setattr(sizes, size, value)
    monkeypatch.setattr(sizes, "WORK_ON_PAIRS", 1e-6)
    monkeypatch.setattr(sizes, "FEW_FACTOR_COLUMNS", 100)


@pytest.mark.parametrize("regression", [False, True])
def test_many_rows_of_noisy_labels_end(few_are_many, regression):
    X, y, values = noisy(900, 5, seed=3)
    model = SVR(C=1e4, gamma=0.3).fit(X, values) if regression else SVC(C=1e5, gamma=0.1).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert "augmented_lagrangian on the kernel" in model.solver_


def test_it_needs_room_and_a_kernel(few_are_many, monkeypatch):
    X, y, _ = noisy(700, 3, seed=3)
    small = SVC(C=1e3, gamma=0.3, cache_size=8.0).fit(X, y)
    assert "working_set" in small.solver_
    monkeypatch.setattr(sizes, "LAGRANGIAN_ROWS", 600)
    many = SVC(C=1e3, gamma=0.3).fit(X, y)
    assert "working_set" in many.solver_
    assert small.status_ is many.status_ is Status.CERTIFIED


def test_without_a_factor_it_begins_where_pairs_have_come(few_are_many, monkeypatch):
    monkeypatch.setattr(sizes, "WORK_ON_START", 0.0)
    X, y, _ = noisy(700, 3, seed=3)
    model = SVC(C=1e3, gamma=0.3).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert "augmented_lagrangian on the kernel" in model.solver_


def test_where_rounding_is_all_that_is_left_it_says_so(few_are_many):
    X, y, _ = noisy(700, 3, seed=3)
    with pytest.warns(match="Ended by rounding"):
        model = SVC(C=1e3, gamma=0.3, tol=1e-13).fit(X, y)
    assert model.status_ is Status.VALUES_ROUNDED
    assert model.certificate_.relative_gap < 1e-8
