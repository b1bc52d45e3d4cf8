# SPDX-License-Identifier: BSD-3-Clause
"""Kernels whose values differ by orders of magnitude: active sets, factors, and what rounding leaves."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVR, Problem, Rows, Solution, Status, certify, solve
from maxmargin.core import ALL_CORES, Budget
from maxmargin.kernels import Gaussian, KernelRows, Polynomial, Precomputed
from maxmargin.problem.regression import regression_problem
from maxmargin.reductions import kernel_fit, kernel_values_rounded
from maxmargin.reductions.kernel_fit import Attempt
from maxmargin.reductions.kernel_rungs import KernelRungs
from maxmargin.reductions.linear_kernel import factor_of, factor_of_values, solve_on_columns
from maxmargin.solvers import InteriorPoint, sizes
from maxmargin.solvers.kernel.active_sets import ActiveSets
from maxmargin.solvers.kernel.kernel_interior_point import KernelInteriorPoint, points_of
from maxmargin.solvers.second_order.cholesky import factored
from maxmargin.telling import long_fit
from oracles import active_sets as oracle
from problems import clouds


def unscaled(n, d, seed, spread=2.0):
    """Columns whose scales differ, and a boundary that is no plane."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.where(X @ random.normal(size=d) + (X**2) @ random.normal(size=d) > 0.0, 1.0, -1.0)
    return X * np.exp(spread * random.normal(size=d)), y


def bent(n, d, seed, spread=2.0):
    """Columns whose scales differ, and values that are no plane of them."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = X @ random.normal(size=d) + (X**2) @ random.normal(size=d) + 0.1 * random.normal(size=n)
    return X * np.exp(spread * random.normal(size=d)), y


# ---- active sets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(degree=3, gamma=0.5, coef0=1.0)])
@pytest.mark.parametrize("epsilon", [None, 0.0, 0.2])
def test_every_step_is_the_oracle_s(kernel, epsilon):
    X, y = clouds(n=40, d=3, seed=4)
    K, rows = kernel(X), KernelRows(X, kernel)
    if epsilon is None:
        problem = Problem.of(rows, y, 2.0)
        low, high, e = np.minimum(2.0 * y, 0.0), np.maximum(2.0 * y, 0.0), np.zeros(40)
    else:
        y = X[:, 0] ** 2 + 0.3 * y
        problem = regression_problem(rows, y, 2.0, epsilon=epsilon)
        low, high, e = np.full(40, -2.0), np.full(40, 2.0), np.full(40, epsilon)
    solver = ActiveSets(systems=3)
    state = solver.init(problem, None)
    for _ in range(4):
        before, r, b = state.beta.copy(), state.proximal, state.b
        target, ended = oracle.proximal_step(K, y, e, low, high, before, r, b, 3)
        ours, ours_ended = solver._solve(state, ALL_CORES)
        assert ended == ours_ended
        if ended:  # else it is balanced afterwards
            np.testing.assert_allclose(ours, target, rtol=1e-6, atol=1e-9)
        dual = state.dual
        state = solver.step(problem, state, ALL_CORES)
        assert state.dual >= dual - 1e-12
        assert abs(state.beta.sum()) < 1e-9
        np.testing.assert_allclose(state.f, K @ state.beta - y, atol=1e-9)


def test_active_sets_end_where_pairs_do():
    X, y = unscaled(
        300, 12, seed=5
    )  # pairs take some 30 of their 1000 steps there, whatever the instruction set
    problem = Problem.of(KernelRows(X, Polynomial(degree=3, gamma=0.1, coef0=1.0)), y, 10.0)
    pairs, sets = (solve(problem, solver, tol=1e-5) for solver in ("working_set", ActiveSets()))
    assert pairs.status is sets.status is Status.CERTIFIED
    assert sets.certificate.primal == pytest.approx(pairs.certificate.primal, rel=2e-5)
    assert sets.steps < 10
    start = Solution(alpha=0.5 * pairs.alpha)
    assert solve(problem, ActiveSets(), tol=1e-5, start=start).status is Status.CERTIFIED


def test_active_sets_know_the_kink_of_a_tube():
    X, y = bent(300, 12, seed=3)
    rows = KernelRows(X, Polynomial(degree=3, gamma=0.1, coef0=1.0))
    problem = regression_problem(rows, y, 10.0, epsilon=2.0)
    pairs, sets = (solve(problem, solver, tol=1e-5) for solver in ("working_set", ActiveSets()))
    assert pairs.status is sets.status is Status.CERTIFIED
    assert sets.certificate.primal == pytest.approx(pairs.certificate.primal, rel=2e-5)
    assert 0 < np.count_nonzero(sets.w) < 300


def test_active_sets_end_where_rows_go_round_in_circles():
    X, y = clouds(n=300, d=3, seed=9)
    model = solve(Problem.of(KernelRows(X, Gaussian(0.5)), y, 10.0), ActiveSets(), tol=0.0)
    assert model.status is Status.RULE_FIRED
    assert model.certificate.relative_gap < 1e-2


def test_active_sets_survive_a_diagonal_next_to_0():
    """As rounding leaves of exp(0) where a chi-squared kernel's sums are around 1e18."""
    K = np.full((8, 8), 3.3e-308)
    K[range(6), range(6)] = 1.0
    y = np.array([1.0, -1.0] * 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = solve(Problem.of(KernelRows(K, Precomputed()), y, 360.0), ActiveSets())
    assert model.certificate.dual <= model.certificate.primal < math.inf


def test_active_sets_refuse_more_rows_than_they_can_factor(monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.kernel.active_sets.FACTORED_ROWS", 20)
    X, y = clouds(n=30, d=3, seed=9)
    with pytest.raises(ValueError, match="up to 20 rows"):
        solve(Problem.of(KernelRows(X, Gaussian(0.5)), y), ActiveSets())


# ---- factors ---------------------------------------------------------------------------------------


def test_a_factor_has_the_rank_of_the_kernel_and_makes_every_w():
    X, _ = unscaled(300, 3, seed=1)
    K = Polynomial(degree=3, gamma=1.0, coef0=1.0)(X)
    factor = factor_of(K, 300)
    assert factor.rows.shape == (300, 20)  # the monomials of three columns up to degree 3
    scale = np.sqrt(np.diag(K))
    np.testing.assert_allclose(
        factor.rows @ factor.rows.T / scale, K / scale, rtol=0, atol=1e-10 * scale.max()
    )
    w = factor.rows.T @ np.random.default_rng(2).normal(size=300)
    c = factor.coefficients_of(w)
    assert np.count_nonzero(c) <= 20
    np.testing.assert_allclose(factor.rows.T @ c, w, rtol=1e-6, atol=1e-9 * np.abs(w).max())
    assert factor_of(K, 19) is None


def test_what_is_not_a_kernel_has_no_factor():
    random = np.random.default_rng(3)
    values = random.normal(size=(40, 40))
    assert factor_of(values + values.T, 40) is None
    assert factor_of(np.full((3, 3), np.nan), 3) is None
    assert factor_of(np.eye(3), 3) is not None
    assert factor_of(np.eye(3), 3, Budget(0.0, 1)) is None
    assert factor_of(np.array([[1e-300, 1e150], [1e150, 1.0]]), 2) is None


def test_a_factor_may_leave_out_what_the_weights_allow():
    X, _ = clouds(n=300, d=3, seed=4)
    rows, every = KernelRows(X, Gaussian(0.3)), np.arange(300)
    K = rows.block(every, every)
    weights = np.full(300, 1e4)
    factor = factor_of_values(lambda some: K[some], np.ones(300), 300, weights=weights)
    left = 1.0 - np.einsum("ij,ij->i", factor.rows, factor.rows)
    assert 0.0 <= weights @ left <= 1.0
    assert factor.rows.shape[1] < factor_of(K, 300).rows.shape[1]


@pytest.mark.parametrize("regression", [False, True])
def test_many_rows_with_a_factor_of_few_columns_are_solved_on_these(monkeypatch, regression):
    monkeypatch.setattr(sizes, "FACTORED_ROWS", 500)
    monkeypatch.setattr(sizes, "QUICK_ROWS", 500)
    monkeypatch.setattr(sizes, "WORK_ON_PAIRS", 1e-6)
    random = np.random.default_rng(7)
    X = random.random((1_200, 3))
    plane = X @ np.array([1.0, -2.0, 0.5]) + 0.3 * random.normal(size=1_200)
    if regression:
        model = SVR(C=1e4, gamma=0.3, epsilon=0.2).fit(X, plane)
    else:
        model = SVC(C=1e4, gamma=0.3).fit(X, np.sign(plane + 0.25))
    assert model.status_ is Status.CERTIFIED
    assert "on a factor of the kernel matrix" in model.solver_
    assert len(model.support_) < 200  # the rows that the factor was made of


def noisy(n, d, seed):
    """Labels of a plane that are half noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.where(X @ random.normal(size=d) + 3.0 * random.normal(size=n) > 0.0, 1.0, -1.0)


def test_many_rows_without_a_factor_say_how_far_they_are(monkeypatch, caplog):
    for size in ("FACTORED_ROWS", "QUICK_ROWS"):
        monkeypatch.setattr(sizes, size, 500)
    monkeypatch.setattr(sizes, "LAGRANGIAN_ROWS", 0)
    monkeypatch.setattr(sizes, "WORK_ON_FACTOR", 1e6)
    monkeypatch.setattr(sizes, "WORK_ON_PAIRS", 1e-6)
    monkeypatch.setattr(long_fit, "_FIRST_LINE", 0.0)
    X, y = noisy(700, 3, seed=3)
    SVC(C=1e3, gamma=0.3).fit(X, y)
    assert not caplog.text  # nothing is said unless it is asked for
    caplog.set_level("INFO", "maxmargin")
    model = SVC(C=1e3, gamma=0.3).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert "steps on pairs of rows, which go on until it is 1.0e-03" in caplog.text
    caplog.clear()
    told = []
    SVC(C=1e3, gamma=0.3, callback=lambda progress: told.append(progress) and None).fit(X, y)
    assert told
    assert "which go on until" not in caplog.text


def test_scores_of_points_are_those_before_the_factor_took_its_half():
    X, y = noisy(300, 3, seed=4)
    problem = Problem.of(KernelRows(X, Gaussian(0.2)), y, 1e3)
    K, solver = Gaussian(0.2)(X), KernelInteriorPoint()
    state = solver.init(problem, None)
    c = np.random.default_rng(0).normal(size=300)
    for _ in range(2):
        np.testing.assert_allclose(state.system.point_scores(c), K @ c, rtol=1e-12, atol=1e-11)
        state = solver.step(problem, state, ALL_CORES)
    curvatures = np.linspace(0.0, 1e6, 300)
    factor = state.system.factor(curvatures, ALL_CORES).factor
    root = np.sqrt(curvatures)
    lower = np.tril(np.asarray(factor).T)
    np.testing.assert_allclose(
        lower @ lower.T, np.eye(300) + K * np.outer(root, root), rtol=1e-9, atol=1e-6
    )
    # Rounding has kept the next one from being a factor: the iterate itself is the answer.
    state.system.current = None
    answer = solver.solution(problem, state, ALL_CORES)
    np.testing.assert_array_equal(answer.alpha, state.multipliers[0])


def test_active_sets_end_where_a_system_would_have_too_many_rows():
    X, y = noisy(300, 3, seed=4)
    problem = Problem.of(KernelRows(X, Gaussian(0.2)), y, 1e3)
    model = solve(problem, ActiveSets(most_rows=20), tol=1e-3)
    assert model.steps == 1
    assert model.status is Status.RULE_FIRED


def test_columns_of_a_factor_prove_the_kernel_problem():
    X, y = unscaled(400, 4, seed=5)
    rows = KernelRows(X, Polynomial(degree=3, gamma=0.25, coef0=1.0))
    problem = Problem.of(rows, y, 5.0)
    every = np.arange(400)
    model = solve_on_columns(problem, factor_of(rows.block(every, every), 400), 1e-3, 0, ALL_CORES, None)
    assert model.status is Status.CERTIFIED
    again = certify(problem, Solution(w=model.w, alpha=model.alpha))
    assert again.relative_gap <= 1e-3


# ---- fits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("degree", "spread", "C"), [(3, 2.0, 100.0), (4, 1.5, 0.1), (4, 1.0, 1e4)])
def test_polynomials_of_badly_scaled_columns_are_certified(degree, spread, C):
    X, y = unscaled(1100, 5, seed=degree, spread=spread)
    model = SVC(kernel="poly", degree=degree, coef0=1.0, C=C).fit(X, y)
    assert model.status_ is Status.CERTIFIED


@pytest.mark.parametrize(("degree", "C", "epsilon"), [(3, 100.0, 0.1), (4, 1e4, 0.0), (4, 0.1, 1.0)])
def test_regressions_on_badly_scaled_columns_are_certified_soon(degree, C, epsilon):
    X, y = bent(400, 5, seed=degree)
    before = time.process_time()
    model = SVR(kernel="poly", degree=degree, coef0=1.0, C=C, epsilon=epsilon).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert time.process_time() - before < 5.0


def test_a_regression_of_whole_numbers_at_a_large_c_is_certified_soon():
    # Values that occur several times, and no tube: pairs of rows alone took more than a minute.
    random = np.random.default_rng(0)
    X = random.integers(0, 256, (200, 1)).astype(np.float64)
    y = np.sin(0.05 * X[:, 0]) + 0.1 * random.normal(size=200)
    before = time.process_time()
    model = SVR(C=62_500.0, epsilon=0.0, gamma=0.00634).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert time.process_time() - before < 5.0


def test_a_regression_whose_values_are_rounded_says_so_and_soon():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2)) + 300.0
    before = time.process_time()
    model = SVR(kernel="poly", degree=4, gamma=1.0, coef0=1.0, C=10.0)
    with pytest.warns(ConvergenceWarning, match="rounding in float64"):
        model.fit(X, random.normal(size=40))
    assert model.status_ is Status.VALUES_ROUNDED
    assert time.process_time() - before < 5.0


def test_where_rounding_is_in_the_way_it_is_said_and_soon():
    X, y = unscaled(1100, 6, seed=7, spread=4.0)
    y[::7] *= -1.0
    before = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SVC(kernel="poly", degree=4, coef0=1.0, C=10.0, gamma="auto").fit(X, y)
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # sanitizers take a hundred times as long here
        assert time.process_time() - before < 20.0
    assert model.status_ is Status.VALUES_ROUNDED
    assert "rounding in float64" in str(caught[-1].message)


def test_steps_on_values_are_left_out_where_rounding_is_all_that_columns_leave(monkeypatch):
    # The interior point on the matrix took hundreds of steps there, and some of these a dozen factors.
    random = np.random.default_rng(0)
    X = random.normal(size=(1100, 5))
    y = np.where(X @ random.normal(size=5) + (X**2) @ random.normal(size=5) > 0.0, 1.0, -1.0)
    X *= 10.0 ** np.linspace(-3.0, 3.0, 5)
    asked = []
    monkeypatch.setattr(KernelRungs, "on_active_sets", lambda *_: asked.append("active sets"))
    monkeypatch.setattr(KernelRungs, "on_points", lambda *_: asked.append("points"))
    # What is left on columns hangs on the instruction set: the judgement is tested by itself, below.
    monkeypatch.setattr(kernel_fit, "is_all_rounding", lambda *_: True)
    model = SVC(kernel="poly", degree=3, coef0=1.0, gamma="auto", C=3.0)
    with pytest.warns(ConvergenceWarning, match="rounding in float64"):
        model.fit(X, y)
    assert model.status_ is Status.VALUES_ROUNDED
    assert not asked


@pytest.mark.parametrize(
    ("on_columns", "through_kernel", "lost", "is_rounding"),
    [
        (1e-5, 0.9, 0.0, True),
        (1e-5, 1e-4, 2.0, False),
        (0.1, 0.9, 0.0, False),
        (0.1, 0.9, 2.0, True),
        (1e-5, 0.1, 2.0, True),
        (1e-5, 0.1, 0.5, False),
    ],
)
def test_rounding_is_all_that_is_left_of_columns(
    monkeypatch, on_columns, through_kernel, lost, is_rounding
):
    monkeypatch.setattr(kernel_values_rounded, "_lost_by_rounding", lambda *_: lost)
    monkeypatch.setattr(kernel_values_rounded, "_telling", lambda *_: None)
    seen = SimpleNamespace(relative_gap=through_kernel, alpha=None)
    records = [SimpleNamespace(relative_gap=on_columns)]
    model = SimpleNamespace(trace=SimpleNamespace(records=records), certificate=seen)
    known = SimpleNamespace(primal=1.0)
    assert kernel_values_rounded.is_all_rounding(None, model, known, 1e-3) == is_rounding


def test_a_small_problem_whose_values_are_rounded_says_so():
    random = np.random.default_rng(0)
    X = random.normal(size=(20, 1)) + 300.0
    y = random.integers(0, 2, 20)
    model = SVC(kernel="poly", degree=4, gamma=1.0, coef0=1.0, C=1e5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="rounding in float64"):
        model.fit(X, y)
    assert model.status_ is Status.VALUES_ROUNDED
    assert model.certificate_.relative_gap > model.tol


# ---- the interior point on the whole matrix ---------------------------------------------------------


def lattice(n, side, seed):
    """Points that occur several times, with labels that contradict each other."""
    random = np.random.default_rng(seed)
    X = random.integers(0, side, size=(n, 3)).astype(float)
    plane = X @ np.array([1.0, 1.0, -1.0]) + 0.6 * side * random.normal(size=n)
    return X, np.where(plane > 0.475 * side, 1.0, -1.0)


@pytest.mark.parametrize("regression", [False, True])
def test_steps_on_points_are_those_on_the_columns_of_a_factor(regression):
    X, y = lattice(60, 4, seed=0)
    assert len(np.unique(X, axis=0)) < 50
    kernel = Gaussian(0.5)
    L = np.linalg.cholesky(kernel(X) + 1e-12 * np.eye(60))
    make = partial(regression_problem, epsilon=0.3) if regression else Problem.of
    ours = KernelInteriorPoint()
    theirs = InteriorPoint(corrections=ours.corrections)
    problem, plain = make(KernelRows(X, kernel), y, 3.0), make(Rows(L), y, 3.0)
    state, other = ours.init(problem, None), theirs.init(plain, None)
    for _ in range(6):
        state, other = ours.step(problem, state, ALL_CORES), theirs.step(plain, other, ALL_CORES)
        assert np.allclose(state.multipliers, other.multipliers, rtol=1e-6, atol=1e-8)
        assert np.isclose(state.b, other.b, atol=1e-7)
        assert np.isclose(state.relative_gap, other.relative_gap, rtol=1e-5, atol=1e-9)


def test_points_are_rows_with_the_same_values():
    X, _ = lattice(200, 3, seed=1)
    first, place = points_of(Gaussian(0.1)(X))
    assert np.array_equal(X[first][place], X)
    assert len(first) == len(np.unique(X, axis=0)) == 27
    alike = np.eye(200)
    assert np.array_equal(points_of(alike)[0], np.arange(200)), "equal only where all values are"


@pytest.mark.parametrize(("C", "gamma"), [(3e3, 0.03), (8e4, 0.1), (1e6, 0.1)])
def test_labels_that_contradict_each_other_are_certified(C, gamma):
    X, y = lattice(1300, 12, seed=2)
    model = SVC(C=C, gamma=gamma).fit(X, y)
    assert model.status_ is Status.CERTIFIED


def test_the_interior_point_on_points_ends_where_its_factors_are_too_many(monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.kernel.kernel_interior_point.FACTORS_ON_POINTS", 4)
    X, y = clouds(n=60, d=3, seed=4)
    problem = Problem.of(KernelRows(X, Gaussian(1.0)), y, 1.0)
    model = solve(problem, KernelInteriorPoint(), tol=1e-12)
    assert model.status is Status.RULE_FIRED
    assert model.steps == 4


def test_solvers_on_all_values_wait_for_none_once_the_budget_is_stopped():
    X, y = clouds(n=60, d=3, seed=4)
    rows, stopped = KernelRows(X, Gaussian(1.0)), Budget(math.inf, 1)
    attempt = Attempt(Problem.of(rows, y, 1.0), stopped, None, 0, lambda: None)
    assert attempt.has_all_values()
    values = rows.all_values()
    assert np.array_equal(values, Gaussian(1.0)(X))
    assert rows.all_values(stopped) is values
    rows.forget_values()
    stopped.stop()
    assert not attempt.has_all_values()
    assert np.array_equal(rows.all_values(), values), "what a stopped budget left out is not kept"


def test_the_interior_point_on_points_refuses_what_it_cannot_factor(monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.kernel.kernel_interior_point.FACTORED_ROWS", 20)
    X, y = clouds(n=40, d=3, seed=4)
    assert "up to 20 rows" in KernelInteriorPoint().accepts(
        Problem.of(KernelRows(X, Gaussian(1.0)), y, 1.0)
    )
    assert KernelInteriorPoint().accepts(Problem.of(Rows(X), y, 1.0)) is not None


# ---- factors that can be stopped --------------------------------------------------------------------


def test_panels_make_lapack_s_factor():
    random = np.random.default_rng(0)
    for n in (1001, 1300, 1408):
        vectors = random.normal(size=(n, n + 10))
        matrix = vectors @ vectors.T
        theirs = np.linalg.cholesky(matrix)
        indefinite = matrix.copy()
        indefinite[n - 7, n - 7] = 0.0
        ours = factored(matrix, ALL_CORES)
        assert np.allclose(np.triu(ours), theirs.T, rtol=1e-9, atol=1e-9)
        assert factored(indefinite, ALL_CORES) is None


def test_a_factor_ends_soon_after_it_is_stopped():
    matrix = np.full((4000, 4000), 1e-5)  # a factor of which takes some tenths of a second
    matrix += np.eye(4000)
    factored(matrix[:2, :2].copy(), ALL_CORES)  # the first time takes longer
    budget = Budget(math.inf, 1)
    stopped: list[float] = []

    def stop() -> None:
        stopped.append(time.process_time())
        budget.stop()

    timer = threading.Timer(0.05, stop)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            factored(matrix, budget)
        assert time.process_time() - stopped[0] < 0.2
    finally:
        timer.cancel()
