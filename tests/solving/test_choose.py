# SPDX-License-Identifier: BSD-3-Clause
"""The automatic choice: what is taken where, and the hand-over in mid-run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, Solution, Status, certify, choose_solver, path, solve
from maxmargin.core import ALL_CORES
from maxmargin.solvers import AugmentedLagrangian, InteriorPoint, Newton, newton
from maxmargin.solvers.sizes import CACHED_VALUES
from maxmargin.solving.costs import (
    Costs,
    active_set_cost,
    costs_of_ways,
    interior_point_cost,
    second_order_cost,
    second_order_steps,
    sweep_cost,
)
from maxmargin.solving.hand_over import HandOver
from maxmargin.solving.rotated import Rotated
from maxmargin.solving.ways import find_way
from problems import clouds

SECOND = {"hinge": AugmentedLagrangian(resort=True), "squared_hinge": Newton(resort=True)}


def costing(second, **others):
    """What the ways on cost, whatever the problem."""
    return lambda problem, tol, inside: Costs(second, **others)


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
    solver = HandOver(SECOND[loss], costs=costing(20.0 * problem.rows.stored))
    model = solve(problem, solver, tol=1e-8)
    assert model.status is Status.CERTIFIED
    assert model.story.startswith(f"{SECOND[loss].name}, after ")
    assert model.solver == model.story
    best = solve(problem, SECOND[loss], tol=1e-10)
    assert model.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-8)


def test_no_hand_over_where_it_would_cost_more():
    X, y = clouds(n=300, d=10, seed=3)
    problem = Problem.of(X, y, 0.01)
    model = solve(problem, HandOver(AugmentedLagrangian(), costs=costing(math.inf)), tol=1e-4)
    assert model.status is Status.CERTIFIED
    assert model.story == ""


def overlapping(n, d, seed):
    """Rows whose labels are noise to a good part: multipliers grow with C."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    return X, np.where(X[:, 0] + generator.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", SECOND)
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_few_values_take_the_second_order_solver_whatever_their_shape(loss, C):
    """Its steps follow one another in the core, while every sweep is a call."""
    for n, d in ((1000, 20), (120, 100), (40, 120)):
        solver, _ = choose_solver(Problem.of(*overlapping(n, d, seed=5), C, loss=loss))
        assert solver == SECOND[loss]


@pytest.mark.parametrize("loss", SECOND)
@pytest.mark.parametrize("C", [1.0 / 32.0, 1.0, 32.0])
def test_dense_data_with_few_rows_to_a_column_begin_with_the_ascent(loss, C):
    """Separable: there sweeps hardly depend on C, and the second solver takes many steps."""
    X, _ = overlapping(600, 500, seed=6)
    y = np.where(X.sum(axis=1) > 0.0, 1.0, -1.0)
    problem = Problem.of(X, y, C, loss=loss)
    assert isinstance(choose_solver(problem)[0], HandOver)
    model = solve(problem, tol=1e-3)
    assert model.status is Status.CERTIFIED
    assert SECOND[loss].name not in model.story


@pytest.mark.parametrize("loss", SECOND)
def test_a_warm_up_that_goes_on_is_given_up(loss):
    """On data that overlap, at the end of a stage, and for a beginning from nothing."""
    problem = Problem.of(*overlapping(2000, 20, seed=7), 1000.0, loss=loss)
    solver = HandOver(SECOND[loss], costs=costing(30.0 * sweep_cost(problem, 2000)))
    state = solver.init(problem, None)
    stages = state.inner.stage
    assert stages > 4
    while not state.handed_over:
        state = solver.step(problem, state, ALL_CORES)
    assert 6 <= state.sweeps < 6 * stages
    assert state.gaps == []
    assert not state.separable
    model = solve(problem, solver, tol=1e-6)
    best = solve(problem, SECOND[loss], tol=1e-8)
    assert model.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-6)


def test_with_many_rows_to_a_column_the_second_begins_where_the_warm_up_stands():
    problem = Problem.of(*overlapping(5000, 400, seed=7), 100.0, loss="squared_hinge")
    solver, _ = choose_solver(problem, 1e-4)
    assert isinstance(solver, HandOver)
    state = solver.init(problem, None)
    while not state.handed_over:
        state = solver.step(problem, state, ALL_CORES)
    assert state.gaps == []  # the warm-up was not over
    assert isinstance(state.inner, newton.State)  # no opening of its own
    best = solve(problem, "newton", tol=1e-9).certificate.primal
    begun = solver.solution(problem, state, ALL_CORES)
    missing = problem.primal(begun.w, begun.b) - best
    assert missing < 0.1 * (problem.primal(0.0 * begun.w, 0.0) - best)
    model = solve(problem, solver, tol=1e-6)
    assert model.certificate.primal == pytest.approx(best, rel=2e-6)


def test_rows_without_a_multiplier_make_the_second_cheaper():
    """Many rows to a column: the matrix is one of the rows that the ascent has found to count."""
    X, y = overlapping(4000, 60, seed=8)
    X[:, 0] += 4.0 * y  # so that few rows have a loss
    problem = Problem.of(X, y, 100.0, loss="squared_hinge")
    asked = []

    def counting(problem, tol, inside):
        asked.append(inside)
        return Costs(60.0 * sweep_cost(problem, 4000) * (1.0 if inside is None else inside / 4000.0))

    solver = HandOver(Newton(), costs=counting)
    state = solver.init(problem, None)
    while not state.handed_over:
        state = solver.step(problem, state, ALL_CORES)
    assert state.sweeps < 12
    assert asked[-1] < 400
    assert second_order_cost(problem, 1e-4, asked[-1]) < second_order_cost(problem, 1e-4)


def test_a_warm_up_that_ends_early_makes_the_second_more_expensive():
    """Multipliers that cease to grow with C: the data are separable."""
    X, _ = overlapping(200, 300, seed=8)
    problem = Problem.of(X, np.where(X[:, 0] > 0.0, 1.0, -1.0), 1000.0)
    solver = HandOver(AugmentedLagrangian(), costs=costing(1e9))
    state = solver.init(problem, None)
    while state.inner.stage > 0:
        state = solver.step(problem, state, ALL_CORES)
    assert state.sweeps < 18
    assert state.separable
    assert solver._costs(problem, state, None).second > 1e9


def test_more_multipliers_inside_than_columns_are_not_separable_rows():
    problem = Problem.of(*overlapping(400, 30, seed=8), 1000.0)
    solver = HandOver(AugmentedLagrangian(), costs=costing(1e9))
    state = solver.init(problem, None)
    while state.inner.stage > 0 or len(state.gaps) < state.least_sweeps:
        state.separable = True  # as a warm-up that ended early would have it
        state = solver.step(problem, state, ALL_CORES)
    while len(state.gaps) % 4:
        state = solver.step(problem, state, ALL_CORES)
    assert not state.separable


def test_an_ascent_that_goes_on_needs_no_last_resort():
    problem = Problem.of(*overlapping(300, 20, seed=9), 1.0)
    solver = HandOver(AugmentedLagrangian(resort=True), costs=costing(0.0))
    way = find_way(solver, problem)
    state = solver.init(problem, None)
    assert way.then(problem, state) is None
    while not state.handed_over:
        state = solver.step(problem, state, ALL_CORES)
    assert way.then(problem, state).solver == Rotated(InteriorPoint())
    assert find_way(HandOver(AugmentedLagrangian()), problem).then is None


@pytest.mark.parametrize("loss", SECOND)
def test_the_next_cost_goes_on_with_the_solver_that_has_taken_over(loss):
    X, y = overlapping(2000, 80, seed=10)
    costs = [10.0, 20.0]
    solver = HandOver(SECOND[loss], costs=costing(1000.0))
    first, second = path(Problem.of(X, y, 1.0, loss=loss), costs, solver=solver, tol=1e-6).models
    assert first.story.startswith(f"{SECOND[loss].name}, after ")
    assert second.story.startswith(f"{SECOND[loss].name}: it had taken over")
    for C, model in zip(costs, (first, second), strict=True):
        best = solve(Problem.of(X, y, C, loss=loss), SECOND[loss], tol=1e-8)
        assert model.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-6)


def test_sweeps_left_follow_the_decay():
    solver = HandOver(Newton(), tol=1e-4)
    halving = [0.5**k for k in range(1, 9)]
    assert solver.sweeps_left(halving) == pytest.approx(math.log2(halving[-1] / 1e-4))
    assert solver.sweeps_left(halving[:3]) == 0.0  # too early to tell
    assert solver.sweeps_left([0.1] * 8) == math.inf
    there = [*halving, 1e-5]  # as it thinks, yet it is asked for more: until a tenth, then
    assert solver.sweeps_left(there) == pytest.approx(math.log(10.0) / (math.log(there[4] / 1e-5) / 4))
    assert solver.sweeps_left([*halving, 1e-15]) == 0.0


def test_costs_grow_with_the_work():
    small, large = (
        costs_of_ways(Problem.of(*clouds(n=n, d=d, seed=4)), 1e-4) for n, d in ((200, 5), (400, 50))
    )
    assert all(0.0 < few < many for few, many in zip(small, large, strict=True) if few < math.inf)
    problem = Problem.of(*clouds(n=80, d=50, seed=4))
    assert second_order_cost(problem, 1e-8) > second_order_cost(problem, 1e-2)
    assert math.isfinite(second_order_cost(problem, 0.0))
    assert active_set_cost(problem, 40) > active_set_cost(problem, 20)
    assert active_set_cost(problem, 51) == math.inf  # more of them than columns
    long = {loss: Problem.of(*clouds(n=200, d=50, seed=4), loss=loss) for loss in SECOND}
    assert active_set_cost(long["hinge"], 40) == math.inf  # most rows depend on the others
    assert math.isfinite(active_set_cost(long["squared_hinge"], 40))
    assert math.isfinite(interior_point_cost(problem))


def test_rows_that_come_from_memory_make_sweeps_more_expensive():
    X, y = wide_text(n=30_000, d=20_000)
    near, far = (Problem.of(X[:count], y[:count]) for count in (3000, 30_000))
    assert far.rows.stored > CACHED_VALUES > near.rows.stored
    assert sweep_cost(far, 1000) > 2.0 * sweep_cost(near, 1000)


def test_few_rows_hand_over_to_active_sets():
    X, y = overlapping(300, 900, seed=11)
    X *= 10.0 ** np.random.default_rng(12).normal(size=900)
    model = solve(Problem.of(X, y, 0.1), tol=1e-4)
    assert model.status is Status.CERTIFIED
    assert model.story.startswith("active_set, after ")


@pytest.mark.parametrize("loss", SECOND)
def test_a_method_that_costs_too_much_hands_over_to_the_interior_point(loss):
    problem = Problem.of(*overlapping(100, 60, seed=13), 10.0, loss=loss)
    solver = HandOver(SECOND[loss], costs=costing(1.0, interior_point=10.0), at_first=SECOND[loss])
    state = solver.init(problem, None)
    assert state.allowed == 10.0  # as much as the other costs, which is more than was expected
    state.allowed = 0.0
    state = solver.step(problem, state, ALL_CORES)
    assert isinstance(state.solver, InteriorPoint)
    assert solver.report(state).story.startswith(f"interior_point, after 1 steps of {SECOND[loss].name}: ")
    while solver.report(state).gap > 1e-8:
        state = solver.step(problem, state, ALL_CORES)
    found = certify(problem, solver.solution(problem, state, ALL_CORES))
    assert found.relative_gap < 1e-6


@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
def test_where_rounding_ends_the_others_the_interior_point_method_goes_on(intercept):
    """Columns eight orders of magnitude apart, separable, at a large C."""
    resorted = 0
    for seed in range(48):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(12, 340)) * 10 ** generator.uniform(-4, 4, 340)
        y = np.where(np.arange(12) % 3 == 0, 1.0, -1.0)
        problem = Problem.of(X, y, 1000.0, intercept=intercept)
        # Rounding is nearly as large as this here: which way it falls depends on the start, and it may take
        # a thousand steps that gain nothing until the last method has its turn.
        assert solve(problem, tol=1e-6, max_steps=10_000).certificate.relative_gap <= 2e-6
        model = solve(problem, SECOND["hinge"], tol=1e-6, max_steps=10_000)
        assert model.certificate.relative_gap <= 2e-6
        found = certify(problem, Solution(w=model.w, alpha=model.alpha))
        assert found.relative_gap <= 1e-5  # b is found again, from rounded scores
        if model.solver.startswith("interior_point, on the rows' singular vectors: the "):
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


def test_newton_takes_fewer_steps_where_costs_are_small():
    X, y = overlapping(400, 300, seed=14)
    steps = {
        (loss, C): second_order_steps(Problem.of(X, y, C / 300.0, loss=loss), 1e-4)
        for loss in SECOND
        for C in (1e-6, 1.0, 1e3, 1e4)  # about C |x|^2
    }
    found = [steps["squared_hinge", C] for C in (1e-6, 1.0, 1e3, 1e4)]
    assert found[0] == 1.0
    assert found[0] < found[1] < 0.5 * found[2]
    assert found[2] == found[3]
    assert len({steps["hinge", C] for C in (1e-6, 1e4)}) == 1
    model = solve(Problem.of(X, y, 1e-6, loss="squared_hinge"), Newton(sweeps=0), tol=1e-4)
    assert model.steps <= 3


@pytest.mark.parametrize(("second", "taken"), [(1.4, "augmented_lagrangian"), (3.0, "interior_point")])
def test_what_goes_on_from_the_ascent_is_preferred_to_what_begins_anew(second, taken):
    problem = Problem.of(*overlapping(600, 60, seed=15), 100.0)
    other = 100.0 * sweep_cost(problem, 600)
    solver = HandOver(AugmentedLagrangian(), costs=costing(second * other, interior_point=other))
    model = solve(problem, solver, tol=1e-6)
    assert model.status is Status.CERTIFIED
    assert model.story.startswith(f"{taken}, after ")
