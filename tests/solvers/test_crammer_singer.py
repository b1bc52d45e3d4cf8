# SPDX-License-Identifier: BSD-3-Clause
"""All classes in one problem: the sweeps, the optimum, and what is proven of both."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, Rows, Solution, certify, core, solve
from maxmargin.problem.class_rows import ClassRows, class_problem
from maxmargin.solvers.ascent.class_momentum import LastClassMove
from maxmargin.solvers.crammer_singer import CrammerSinger
from tests.combinations import every_pair
from tests.oracles import crammer_singer as oracle
from tests.quadratic_program import objective_of_all_classes, solve_all_classes

LAYOUTS = {
    "dense": np.asarray,
    "float32": lambda X: np.asarray(X, np.float32),
    "sparse": sparse.csr_matrix,
    "sparse float32": lambda X: sparse.csr_matrix(X, dtype=np.float32),
}


def clouds(classes, n=40, d=5, seed=0):
    """Overlapping classes, in numbers that float32 has; some values are 0."""
    random = np.random.default_rng(seed)
    codes = random.permutation(np.arange(n) % classes)
    X = random.normal(size=(n, d)) + random.normal(size=(classes, d))[codes]
    X[random.random(X.shape) < 0.2] = 0.0
    return np.asarray(X, np.float32).astype(np.float64), codes


def widened(X, constant):
    return X if constant == 0.0 else np.column_stack([X, np.full(len(X), constant)])


def problem_of(X, codes, classes, C=1.0, constant=0.0, weights=None):
    return class_problem(Rows(X), codes, classes, C, weights=weights, constant=constant)


@every_pair(layout=list(LAYOUTS), classes=[2, 3, 5, 9, 41], constant=[0.0, 1.0, 2.5], C=[0.1, 10.0])
def test_sweeps_are_those_of_the_pseudo_code(layout, classes, constant, C):
    X, codes = clouds(classes, n=60)
    weights = np.linspace(0.5, 1.5, len(X))
    problem = problem_of(LAYOUTS[layout](X), codes, classes, C, constant, weights)
    solver = CrammerSinger(shrinking=False, relaxation=1.0, momentum=False)
    state = solver.init(problem, None)
    whole, beta = widened(X, constant), np.zeros((len(X), classes))
    w = np.zeros((classes, whole.shape[1]))
    for _ in range(4):
        order = state.visits.order.copy()
        core.shuffle(order, state.random)
        oracle.sweep(whole, codes, C * weights, beta, w, order)
        state = solver.step(problem, state, core.ALL_CORES)
    np.testing.assert_allclose(state.multipliers, beta, atol=1e-9 * C)
    np.testing.assert_allclose(state.w[:, :classes].T, w, atol=1e-8)
    np.testing.assert_allclose(
        state.dual, -beta[np.arange(classes) != codes[:, None]].sum() - 0.5 * (w**2).sum(), rtol=1e-9
    )


@every_pair(layout=list(LAYOUTS), classes=[9, 41, 70], constant=[0.0, 2.5], C=[0.1, 10.0])
def test_a_row_of_which_few_classes_are_left_takes_the_best_of_these(layout, classes, constant, C):
    X, codes = clouds(classes, n=80)
    random, costs, whole = np.random.default_rng(1), np.full(len(X), C), widened(X, constant)
    problem = problem_of(LAYOUTS[layout](X), codes, classes, C, constant)
    state = CrammerSinger().init(problem, None)
    # Of more classes than these, all would be looked at.
    few = [2] if classes == 9 else [2, 3, 4, 5, 8]
    beta, w = np.zeros((len(X), classes)), np.zeros((classes, whole.shape[1]))
    for i, code in enumerate(codes):
        state.sizes[i] = random.choice(few)
        others = np.delete(np.arange(classes), code)
        state.places[i, : state.sizes[i]] = code, *random.choice(others, state.sizes[i] - 1, replace=False)
    for _ in range(3):
        for i in range(len(X)):
            left = state.places[i, : state.sizes[i]]
            beta_left, w_left = beta[i : i + 1, left], w[left]
            oracle.sweep(whole[i : i + 1], [0], costs[:1], beta_left, w_left, [0])
            beta[i, left], w[left] = beta_left[0], w_left
        core.crammer_singer(
            problem.rows.data,
            problem.rows.codes,
            problem.rows.squared_norms_of_examples,
            state.costs,
            state.multipliers,
            state.places,
            state.sizes,
            state.moved,
            np.arange(len(X)),
            state.w,
            constant=constant,
            relaxation=1.0,
            held=np.inf,
            held_class=np.inf,
            budget=core.ALL_CORES,
        )
    np.testing.assert_allclose(state.multipliers, beta, atol=1e-9 * C)
    np.testing.assert_allclose(state.w[:, :classes].T, w, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_rows_whose_squares_are_next_to_nothing_have_multipliers_that_are_numbers(classes):
    X, codes = clouds(classes)
    C = np.where(np.arange(len(X)) % 2 == 0, 1.0, 1e-300)
    problem, solver = problem_of(1e-160 * X, codes, classes, 1.0, weights=C), CrammerSinger()
    state = solver.init(problem, None)
    for _ in range(4):
        state = solver.step(problem, state, core.ALL_CORES)
        assert np.isfinite(state.multipliers).all()
        assert np.isfinite(state.w).all()


@pytest.mark.parametrize("place", [-1, 3])
def test_places_of_no_class_are_refused(place):
    X, codes = clouds(3)
    problem, solver = problem_of(X, codes, 3), CrammerSinger()
    state = solver.init(problem, None)
    state.places[-1, 1] = place
    with pytest.raises(ValueError, match="a class is out of range"):
        solver.step(problem, state, core.ALL_CORES)


def test_weights_begin_where_a_line_of_the_cache_does():
    X, codes = clouds(5)
    state = CrammerSinger().init(problem_of(X, codes, 5), None)
    assert state.w.shape == (5, 8)
    assert state.w.ctypes.data % 64 == 0


@every_pair(layout=list(LAYOUTS), classes=[2, 3, 6, 12], constant=[0.0, 0.5], C=[0.001, 0.1, 10.0])
def test_momentum_stays_feasible_and_climbs(layout, classes, constant, C):
    X, codes = clouds(classes, n=400)
    weights = np.where(np.arange(len(X)) % 7 == 0, 0.0, np.linspace(0.5, 1.5, len(X)))
    problem = problem_of(LAYOUTS[layout](X), codes, classes, C, constant, weights)
    solver, whole, others = (
        CrammerSinger(relaxation=1.0, momentum=False),
        widened(X, constant),
        np.arange(classes),
    )
    state, costs = solver.init(problem, None), C * weights
    gains = []
    for _ in range(12):
        state = solver.step(problem, state, core.ALL_CORES)
        move = LastClassMove(state.multipliers, state.w, state.moved)
        state = solver.step(problem, state, core.ALL_CORES)
        before = dual_of(state, whole, codes)
        gain = move.go_on(problem.rows, state.costs, state.multipliers, state.w)
        gains.append(gain)
        np.testing.assert_allclose(dual_of(state, whole, codes) - before, gain, atol=1e-9 * abs(before))
        state.dual += gain
        beta = state.multipliers
        assert beta[others != codes[:, None]].max() <= 0.0
        assert (beta[np.arange(len(X)), codes] <= costs * (1.0 + 1e-12)).all()  # a sweep rounds
        np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-12 * C)
        np.testing.assert_allclose(state.w[:, :classes], whole.T @ beta, atol=1e-9 * max(C, 1.0))
        np.testing.assert_allclose(state.dual, dual_of(state, whole, codes), rtol=1e-9)
    assert min(gains) >= 0.0
    assert max(gains) > 0.0


def dual_of(state, X, codes):
    beta = state.multipliers
    given = -beta[np.arange(beta.shape[1]) != codes[:, None]].sum()
    return given - 0.5 * ((X.T @ beta) ** 2).sum()


def test_momentum_saves_sweeps_where_rows_have_many_values():
    X, codes = clouds(6, n=2000, d=12)
    problem = problem_of(X, codes, 6)
    steps = {
        momentum: solve(problem, CrammerSinger(momentum=momentum), tol=1e-4).trace[-1].step
        for momentum in (True, False)
    }
    assert steps[True] < 0.7 * steps[False]


def test_wide_rows_have_no_momentum():
    X, codes = clouds(3, n=60, d=20)
    problem = problem_of(sparse.csr_matrix(X), codes, 3)
    solver = CrammerSinger()
    state = solver.init(problem, None)
    for _ in range(20):
        state = solver.step(problem, state, core.ALL_CORES)
        assert state.last_move is None


@pytest.mark.parametrize(("columns", "C"), [(5, 0.3), (70, 0.02)])
def test_the_mean_of_the_last_sweeps_is_proposed(columns, C):
    # With 70 columns the mean is that of the multipliers, which are fewer than the weights.
    X, codes = clouds(4, n=60, d=columns)
    X *= np.where(np.arange(columns) < columns // 20, 4.0, 1.0)
    problem = problem_of(X, codes, 4, C, 1.0)
    solver = CrammerSinger(momentum=False)
    state, ends, means = solver.init(problem, None), [], 0
    for _ in range(20):
        state = solver.step(problem, state, core.ALL_CORES)
        ends.append(state.w[:, :4].copy())
        proposed = solver.solution(problem, state, core.ALL_CORES)
        proof = certify(problem, proposed)
        assert proof.primal >= proof.dual
        if 0 < state.averaged < 5:
            means += 1
            expected = np.mean(ends[-1 - state.averaged :], axis=0).ravel()
            np.testing.assert_allclose(proposed.w, expected, atol=1e-12)
        elif state.averaged == 0:
            assert proposed.w is None
    assert means > 0


def test_means_save_sweeps():
    X, codes = clouds(10, n=3000, d=20)
    problem = problem_of(X / 4.0, codes, 10)
    solver = CrammerSinger()
    state = solver.init(problem, None)
    gaps = {"mean": [], "last": []}
    for _ in range(60):
        state = solver.step(problem, state, core.ALL_CORES)
        if state.averaged > 1:
            last = Solution(alpha=state.alpha(state.multipliers))
            gaps["last"].append(certify(problem, last).relative_gap)
            gaps["mean"].append(
                certify(problem, solver.solution(problem, state, core.ALL_CORES)).relative_gap
            )
    assert np.median(np.divide(gaps["mean"], gaps["last"])) < 0.9


@every_pair(layout=list(LAYOUTS), classes=[2, 3, 6], constant=[0.0, 0.5], C=[0.01, 1.0, 100.0])
def test_the_gap_bounds_the_optimum(layout, classes, constant, C):
    X, codes = clouds(classes)
    weights = np.where(np.arange(len(X)) % 7 == 0, 0.0, 1.0 + np.arange(len(X)) % 3)
    best = solve_all_classes(widened(X, constant), codes, C * weights, classes)[1]
    problem = problem_of(LAYOUTS[layout](X), codes, classes, C, constant, weights)
    model = solve(problem, tol=1e-6, max_steps=100_000)
    proof = model.certificate
    assert model.status.certified
    assert proof.dual <= best * (1 + 1e-8)
    assert proof.primal >= best * (1 - 1e-8)
    w = problem.rows.weights_of(proof.w)
    np.testing.assert_allclose(
        proof.primal, objective_of_all_classes(widened(X, constant), codes, C * weights, w), rtol=1e-9
    )
    assert "support vectors" in str(proof)
    assert len(proof.row_classes) == len(X)
    assert np.isfinite(proof.kkt_violation)


def exact_values(problem, X, codes, classes, constant, proof, costs):
    """P and D as fractions, of the multipliers as they are; None where these are not feasible."""
    rows = [[Fraction(value) for value in row] for row in widened(X, constant).tolist()]
    w = [[Fraction(value) for value in line] for line in problem.rows.weights_of(proof.w).tolist()]
    primal = sum(value * value for line in w for value in line) / 2
    combined = [[Fraction(0)] * len(rows[0]) for _ in range(classes)]
    gain = Fraction(0)
    for i, x in enumerate(rows):
        scores = [sum(a * b for a, b in zip(line, x, strict=True)) for line in w]
        own, C = codes[i], Fraction(float(costs[i]))
        primal += C * max(scores[k] + (k != own) - scores[own] for k in range(classes))
        alpha = [Fraction(a) for a in proof.alpha.reshape(len(X), -1)[i].tolist()]
        if min(alpha) < 0 or sum(alpha) > C:
            return primal, None
        gain += sum(alpha)
        for k, a in zip([k for k in range(classes) if k != own], alpha, strict=True):
            for j, value in enumerate(x):
                combined[own][j] += a * value
                combined[k][j] -= a * value
    return primal, gain - sum(value * value for line in combined for value in line) / 2


@pytest.mark.parametrize("scale", [1e-40, 1e-8, 1.0, 3e7, 1e40])
@pytest.mark.parametrize("steps", [0, 1, 7, 2000])
def test_values_are_bounds_of_the_exact_ones(scale, steps):
    X, codes = clouds(4, n=25, d=3)
    X, C = X * scale, 0.3 / scale**2
    weights = 1.0 + np.arange(len(X)) / 7
    problem = problem_of(X, codes, 4, C, 0.7 * scale, weights)
    proof = solve(problem, tol=0.0, max_steps=steps).certificate
    primal, dual = exact_values(problem, X, codes, 4, 0.7 * scale, proof, problem.costs[::3])
    assert dual is not None
    assert Fraction(proof.primal) >= primal
    assert Fraction(proof.dual) <= dual
    if steps == 2000:
        assert proof.relative_gap < 1e-6


def test_multipliers_of_any_kind_are_made_feasible():
    X, codes = clouds(5, n=30)
    problem = problem_of(X, codes, 5, 0.7)
    random = np.random.default_rng(3)
    for alpha in (
        random.normal(size=problem.rows.count),
        np.full(problem.rows.count, 0.7),
        np.full(problem.rows.count, 0.7 / 4),
        random.random(problem.rows.count) ** 40,
        np.where(np.arange(problem.rows.count) % 3, np.inf, np.nan),
        np.tile([0.7, 1e-17, 1e-300, 0.0], 30),
    ):
        feasible = alpha.copy()
        problem.objective.make_feasible(feasible)
        again = feasible.copy()
        problem.objective.make_feasible(again)
        np.testing.assert_array_equal(again, feasible)
        for own in feasible.reshape(-1, 4).tolist():
            assert min(own) >= 0
            assert sum(map(Fraction, own)) <= Fraction(0.7)
        proof = certify(problem, Solution(alpha=alpha))
        assert proof.dual <= solve(problem, tol=1e-4).certificate.primal


def test_points_without_multipliers_get_some():
    X, codes = clouds(4)
    problem = problem_of(X, codes, 4)
    best = solve(problem, tol=1e-8, max_steps=100_000)
    proof = certify(problem, Solution(w=best.w))
    assert proof.alpha_from == "the margins"
    assert 0.0 < proof.dual <= best.certificate.primal
    start = solve(problem, tol=1e-3, start=Solution(w=best.w))
    assert start.certificate.relative_gap <= 1e-3


def test_weights_are_repetition_and_orders_do_not_matter():
    X, codes = clouds(3)
    random = np.random.default_rng(1)
    times = random.integers(0, 4, len(X)).astype(np.float64)
    classes, order = random.permutation(3), random.permutation(len(X))
    repeated = np.repeat(np.arange(len(X)), times.astype(int))
    values = []
    for problem in (
        problem_of(X, codes, 3, 0.5, 1.0, times),
        problem_of(X[repeated], codes[repeated], 3, 0.5, 1.0),
        problem_of(X[order], classes[codes[order]], 3, 0.5, 1.0, times[order]),
    ):
        proof = solve(problem, tol=1e-9, max_steps=100_000).certificate
        values.append(proof.primal)
        assert proof.relative_gap < 1e-6
    np.testing.assert_allclose(values, values[0], rtol=1e-6)


def test_two_classes_are_the_hinge_at_twice_the_cost():
    X, codes = clouds(2)
    joint = solve(problem_of(X, codes, 2, 0.5), tol=1e-9, max_steps=100_000)
    plain = solve(Problem.of(X, 2.0 * codes - 1.0, 1.0, intercept="none"), tol=1e-9)
    np.testing.assert_allclose(2.0 * joint.certificate.primal, plain.certificate.primal, rtol=1e-7)
    w = joint.certificate.problem.rows.weights_of(joint.w)
    np.testing.assert_allclose(w[1] - w[0], plain.w, atol=1e-3)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_empty_rows_cost_nothing_but_their_losses(constant):
    X, codes = clouds(3)
    X[::4] = 0.0
    problem = problem_of(X, codes, 3, 1.0, constant)
    best = solve_all_classes(widened(X, constant), codes, np.ones(len(X)), 3)[1]
    proof = solve(problem, tol=1e-7, max_steps=100_000).certificate
    np.testing.assert_allclose([proof.primal, proof.dual], best, rtol=1e-6)


def test_other_solvers_and_other_rows_are_refused():
    X, codes = clouds(3)
    with pytest.raises(ValueError, match="newton does not take all classes in one problem"):
        solve(problem_of(X, codes, 3), "newton")
    with pytest.raises(ValueError, match="crammer_singer solves problems of several classes at once"):
        solve(Problem.of(X, np.where(codes, 1.0, -1.0)), CrammerSinger())
    with pytest.raises(ValueError, match="Groups of rows can share a hinge"):
        Problem.of(X, np.ones(len(X)), loss="squared_hinge", intercept="none", group=2)
    with pytest.raises(ValueError, match="no matrix of products"):
        ClassRows(Rows(X), codes, 3).gram(np.ones(80))


def test_a_run_that_goes_on_ends_where_a_long_one_does():
    X, codes = clouds(4)
    problem = problem_of(X, codes, 4, 3.0, 1.0)
    first = solve(problem, tol=1e-2)
    start = Solution(w=first.w, alpha=first.alpha)
    second = solve(problem, tol=1e-6, start=start, max_steps=100_000)
    assert second.certificate.relative_gap <= 1e-6
    assert second.certificate.dual >= first.certificate.dual
    assert solve(problem, tol=1e-2, start=start).steps == 0
