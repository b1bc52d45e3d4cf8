# SPDX-License-Identifier: BSD-3-Clause
"""Very many rows of few columns: rows near the margin, with the others settled, and Hessians of samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, core, solve
from maxmargin.problem.rows import Rows
from maxmargin.proof.solution import Solution
from maxmargin.solvers import AugmentedLagrangian, Newton
from maxmargin.solvers.second_order.near_margin import NearMargin, NearRows, width_that_loses
from maxmargin.solvers.second_order.opening import Opening, larger_sample
from maxmargin.solvers.second_order.system import GivenSystem, NewtonSystem
from maxmargin.solving.loop import Limits, solve_after
from maxmargin.solving.ways import find_way

UNLIMITED = core.Budget(np.inf, 2)
OPTIONS = core.LagrangianOptions(stiffness=10.0, raise_by=3.0, small_part=0.2)
MATRICES = {
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X,
    "sparse": sparse.csr_matrix,
    "slice": lambda X: np.hstack([X, X])[:, 1 : X.shape[1] + 1],
}


def many_rows(n=20_000, d=5, *, seed=0, make=lambda X: X, **options):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.where(X @ random.normal(size=d) + random.normal(size=n) > 0.3, 1.0, -1.0)
    return Problem.of(make(X), y, **options)


def rare_columns(n=60_000, *, seed=0):
    """Rows of which few have a value in most columns: a settled row may be all that holds a weight."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    rare = np.zeros((n, 8))
    rare[np.arange(n), random.integers(0, 8, n)] = random.random(n) < np.array([0.02])
    y = np.where(
        X @ random.normal(size=4) + 2.0 * rare @ random.normal(size=8) + random.normal(size=n) > 0, 1, -1
    )
    return Problem.of(np.hstack([X, rare]), y.astype(float))


@pytest.mark.parametrize("columns", [1, 3, 8, 9, 20, 33, 40, 100])
@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_rows_are_settled_by_their_margins(make, columns):
    random = np.random.default_rng(columns)
    n = 1000 + columns
    X, y = make(random.normal(size=(n, columns))), random.choice([-1.0, 1.0], n)
    costs, w, b = random.choice([0.0, 0.5, 2.0], n), random.normal(size=columns), 0.2
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    margins = y * (dense @ w + b)
    for width, threads in ((0.3, 1), (0.0, 2), (np.inf, 1), (0.3, 3)):
        rows, alpha, sums = Rows(X, keep_zeros=True), np.full(n, np.nan), np.full(columns, np.nan)
        budget = core.Budget(np.inf, threads)
        near, total, balance = core.settle_rows(rows.compiled, y, costs, w, b, width, alpha, sums, budget)
        is_near = np.abs(margins - 1.0) <= width
        assert np.array_equal(near, np.flatnonzero(is_near))
        loses = ~is_near & (margins < 1.0)
        assert np.array_equal(alpha[~is_near], np.where(loses, costs, 0.0)[~is_near])
        assert total == pytest.approx(costs[loses].sum())
        assert balance == pytest.approx((costs * y)[loses].sum(), abs=1e-9)
        assert sums == pytest.approx((costs * y)[loses] @ dense[loses], abs=1e-9)


@pytest.mark.parametrize("columns", [5, 8, 31, 32, 33, 70])
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_sums_and_scores_of_blocks_are_those_of_rows(make, share, columns):
    random = np.random.default_rng(columns)
    n = 517
    X = make(random.normal(size=(n, columns)))
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    rows, c = Rows(X, keep_zeros=True), np.where(random.random(n) < share, random.normal(size=n), 0.0)
    w = random.normal(size=columns)
    assert rows.combine(c) == pytest.approx(c @ dense, abs=1e-10)
    assert rows.scores(w) == pytest.approx(dense @ w, abs=1e-10)


@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
@pytest.mark.parametrize("make", [MATRICES["float32"], MATRICES["sparse"]])
def test_what_is_found_beside_settled_rows_is_worth_as_much_on_all(intercept, make):
    weights = np.random.default_rng(1).integers(0, 3, 20_000)
    problem = many_rows(make=make, intercept=intercept, weights=weights)
    start = solve(problem, tol=1e-3)
    rows = NearRows(problem, start.w, start.b, 0.3, UNLIMITED)
    assert 0.05 < rows.share < 0.5
    found = rows.solve(OPTIONS, 1e-7, UNLIMITED)
    assert found.gap <= 1e-7
    primal, dual = (
        problem.primal(found.w, found.b),
        problem.dual_of(found.alpha, problem.rows.combine(found.alpha * problem.y)),
    )
    assert np.all((found.alpha >= 0.0) & (found.alpha <= problem.costs))
    assert dual == pytest.approx((1.0 - found.gap) * found.primal, rel=1e-6)
    assert found.primal <= primal * (1.0 + 1e-9)
    assert primal - dual <= 1e-6 * primal


def test_rows_that_have_crossed_are_solved_for_the_next_time():
    problem = many_rows(40_000)
    start = solve(Problem.of(problem.rows.dense(np.arange(2000)), problem.y[:2000], 20.0), tol=1e-3)
    rows = NearRows(problem, start.w, start.b, 0.2, UNLIMITED)
    gaps, near = [], []
    for _ in range(3):
        found = rows.solve(OPTIONS, 1e-8, UNLIMITED)
        margins = problem.margins(found.w, found.b)
        gaps.append(problem.plain_value(found.w, found.b, margins, 0.0) / found.primal - 1.0)
        near.append(len(rows.near))
        rows.take_crossed(margins, UNLIMITED)
    # The sums are those of the rows that are settled still.
    settled = np.setdiff1d(np.arange(40_000), rows.near)
    alpha = np.zeros(40_000)
    alpha[settled] = rows.alpha[settled]
    assert rows.sums == pytest.approx(problem.rows.combine(alpha * problem.y), abs=1e-8)
    assert rows.costs == pytest.approx(alpha.sum())
    assert rows.balance == pytest.approx(alpha @ problem.y, abs=1e-8)
    assert gaps[0] > 1e-4 > 1e-7 > gaps[-1]
    assert near[0] < near[1] < 0.5 * 40_000


def test_too_few_near_rows_have_no_solution():
    problem = many_rows()
    start = solve(problem, tol=1e-2)
    assert NearRows(problem, start.w, start.b, 1e-12, UNLIMITED).solve(OPTIONS, 1e-3, UNLIMITED) is None
    assert (
        NearRows(problem, start.w, start.b + 0.5, 1e-3, UNLIMITED).solve(OPTIONS, 1e-3, UNLIMITED) is None
    )


def test_the_width_is_that_beyond_which_rows_lose_so_much():
    problem = Problem.of(np.eye(4), [1.0, 1.0, -1.0, -1.0])
    before, after = np.array([0.9, 1.2, 0.6, 3.0]), np.array([1.1, 0.9, 1.3, 2.0])
    # The losses are more than lines by 0.1, 0.1 and 0.3, at distances of 0.1, 0.2 and 0.4.
    assert width_that_loses(problem, before, after, 0.05) == pytest.approx(0.4)
    assert width_that_loses(problem, before, after, 0.35) == pytest.approx(0.2)
    assert width_that_loses(problem, before, after, 0.45) == pytest.approx(0.1)
    assert width_that_loses(problem, before, after, 0.6) == 0.0


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("problem", [many_rows(60_000, 10), rare_columns()], ids=["normal", "rare"])
def test_one_visit_of_all_rows_is_enough_as_a_rule(problem, tol):
    near = solve(problem, AugmentedLagrangian(), tol=tol)
    plain = solve(problem, AugmentedLagrangian(sampling=False), tol=1e-8)
    assert near.certificate.relative_gap <= tol
    assert near.certificate.primal >= plain.certificate.dual
    assert near.steps <= 4 < plain.steps
    assert len(near.certificate.alpha) == problem.rows.count


def test_the_larger_sample_has_the_first_one():
    problem = many_rows(60_000)
    opening = Opening.by_sample(problem, AugmentedLagrangian(), nested=True)
    larger = larger_sample(problem, opening, 100.0)
    assert larger.rows.count == 4 * len(opening.order)
    assert larger.total_cost == pytest.approx(problem.total_cost)
    scores = np.sort(larger.rows.scores(np.ones(5)))
    first = opening.problem.rows.scores(np.ones(5))
    assert np.all(scores[np.searchsorted(scores, first)] == first)
    assert larger_sample(problem, opening, 1e9).rows.count == 20_000
    assert larger_sample(many_rows(2 * len(opening.order)), opening, 1e9) is None


def test_problems_that_are_not_plain_go_on_with_all_rows():
    targets = np.full(20_000, 0.7)
    problem = many_rows(targets=targets)
    solver = AugmentedLagrangian()
    assert not solver.nests_samples(problem)
    after = solver.step(problem, solver.init(problem, None), UNLIMITED)
    assert not isinstance(after, Opening)
    assert solve(problem, solver, tol=1e-6).certificate.relative_gap <= 1e-6


def test_a_budget_that_ends_between_the_samples_gives_the_first_point():
    problem, solver = many_rows(60_000), AugmentedLagrangian()
    state = solver.step(problem, solver.init(problem, None), UNLIMITED)
    assert isinstance(state, NearMargin)
    assert state.solution(UNLIMITED).alpha is None
    spent = core.Budget(np.inf, 1)
    spent.stop()
    assert state.step(spent)  # nothing more to gain
    assert np.isfinite(state.solution(UNLIMITED).w).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
def test_long_rows_have_the_hessian_of_a_sample(loss, intercept):
    problem = many_rows(210_000, 25, make=MATRICES["float32"], loss=loss, intercept=intercept)
    solver = Newton()
    state = solver.step(problem, solver.init(problem, None), UNLIMITED)
    assert isinstance(state.system, GivenSystem)
    gaps = []
    for _ in range(3):
        state = solver.advance(problem, state, UNLIMITED)
        gaps.append(state.relative_gap)
    assert isinstance(state.system, GivenSystem)
    assert gaps[2] < 1e-3 * gaps[0]
    model, plain = (solve(problem, one, tol=1e-9) for one in (solver, replace(solver, sampling=False)))
    assert model.certificate.relative_gap <= 1e-9
    assert model.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-9)


def test_a_hessian_that_gains_too_little_makes_way_for_that_of_all_rows():
    problem, solver = many_rows(loss="squared_hinge"), Newton(sampling=False)
    wrong = GivenSystem(problem, np.diag([1e9, 1.0, 1.0, 1.0, 1.0, 1.0]))
    state = solver.begin(problem, solver.reached(problem, solver.init(problem, None)), UNLIMITED, wrong)
    state = solver.advance(problem, state, UNLIMITED)
    assert type(state.system) is NewtonSystem
    for _ in range(8):
        state = solver.advance(problem, state, UNLIMITED)
    assert state.relative_gap < 1e-12


def test_a_hessian_of_a_sample_goes_on_at_other_costs():
    problem = many_rows(210_000, 25, make=MATRICES["float32"], loss="squared_hinge", C=0.01)
    solver = Newton()
    limits = Limits.of(1e-6)
    way = find_way(solver, problem)
    first, state = solve_after(None, problem, way, limits)
    assert isinstance(state.system, GivenSystem)
    larger, start = problem.with_costs_times(30.0), Solution(w=first.w, b=first.b)
    assert isinstance(solver.resume(larger, start, state).system, GivenSystem)
    again, state = solve_after(state, larger, way, limits, start)
    assert again.certificate.relative_gap <= 1e-6
    assert again.steps <= 12


def test_rows_of_few_values_have_no_hessian_of_a_sample():
    many = {"n": 210_000, "loss": "squared_hinge"}
    assert Newton().nests_samples(many_rows(d=25, **many))
    assert not Newton().nests_samples(many_rows(d=20, **many))
    assert not Newton().nests_samples(many_rows(d=27, **many))
    assert not Newton().nests_samples(
        many_rows(d=25, make=lambda X: sparse.csr_matrix(X * (X > 1.0)), **many)
    )
