# SPDX-License-Identifier: BSD-3-Clause
"""The linear system of the second-order solvers, and the parts of the core under it, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from combinations import every_pair
from maxmargin import Problem, core, solve
from maxmargin.problem.rows import Rows
from maxmargin.proof.solution import Solution
from maxmargin.solvers import AugmentedLagrangian, Newton
from maxmargin.solvers.second_order import cholesky as dense_factor
from maxmargin.solvers.second_order import system as newton_system
from maxmargin.solvers.second_order.base import point_of
from maxmargin.solvers.second_order.system import NewtonSystem
from oracles.newton import solve_system, with_intercept
from problems import INTERCEPTS, LAYOUTS, Case, clouds

ONE, TWO = (core.Budget(np.inf, threads) for threads in (1, 2))
BUDGETS = [pytest.param(ONE, id="one thread"), pytest.param(TWO, id="two threads")]
STORED = ("dense C float64", "CSR float64 int32")
S = 1.7


def random_data(n, d, *, density=0.6, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    X[random.random((n, d)) >= density] = 0.0
    return X.astype(np.float32).astype(np.float64), np.where(random.random(n) < 0.5, 1.0, -1.0)


def case_of(n, d, intercept, **options):
    X, y = random_data(n, d, **options)
    return Case("system", X, y, intercept=intercept, intercept_scaling=S)


def curvatures_of(n, share, seed):
    """Numbers between 0.1 and 10, and zeros on all but a share of the rows."""
    random = np.random.default_rng(seed)
    return np.where(random.random(n) < share, 10.0 ** random.uniform(-1, 1, n), 0.0)


def assert_solved(case, step, curvatures, gradient, tolerance=1e-9):
    Z, R = with_intercept(case.X, case.intercept, case.intercept_scaling)
    expected = solve_system(Z, R, curvatures, gradient)
    np.testing.assert_allclose(step, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def a_gradient(system, seed=9):
    return np.random.default_rng(seed).normal(size=len(system.regulariser))


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_long_sum_over_rows_is_that_of_short_ones(monkeypatch, budget):
    X, _ = random_data(700, 130, density=1.0)
    system = NewtonSystem(Problem.of(Rows(X), np.ones(700), 1.0))
    changes = curvatures_of(700, 0.8, seed=3) - curvatures_of(700, 0.3, seed=4)
    short = newton_system.Hessian(system).at(changes, ONE).copy()
    monkeypatch.setattr(newton_system, "_LONG_SUM", 1.0)
    monkeypatch.setattr(newton_system, "_LONG_BLOCK", 100)
    long = newton_system.Hessian(system).at(changes, budget)
    np.testing.assert_allclose(np.tril(long), np.tril(short), rtol=0, atol=1e-12 * np.abs(short).max())


# ---- the three ways ------------------------------------------------------------------------------


@pytest.fixture
def exact_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(newton_system._ConjugateGradients, "accuracy", 1e-13)


def on_columns(system, curvatures):
    matrix = newton_system.Hessian(system).at(curvatures, ONE)
    return newton_system._OnColumns(matrix, system.regulariser)


def on_rows(system, curvatures):
    products = newton_system.RowProducts(system.problem.rows)
    return newton_system._OnRows(system, products, curvatures, ONE)


def on_neither(system, curvatures):
    return newton_system._ConjugateGradients(system, curvatures, ONE)


@pytest.mark.usefixtures("exact_conjugate_gradients")
@every_pair(
    way=[on_columns, on_rows, on_neither],
    intercept=INTERCEPTS,
    shape=[(60, 7), (20, 30), (1, 1), (40, 1)],
    share=[0.1, 1.0],
    layout=LAYOUTS,
)
def test_every_way_solves_every_system(way, intercept, shape, share, layout):
    case = case_of(*shape, intercept, seed=1)
    system = NewtonSystem(case.problem(layout))
    curvatures = curvatures_of(shape[0], share, seed=2)
    curvatures[0] = 2.0
    factor = way(system, curvatures)
    for seed in (3, 4):  # one factor serves several right-hand sides
        gradient = a_gradient(system, seed)
        before = gradient.copy()
        assert_solved(case, factor.solve(gradient), curvatures, gradient)
        np.testing.assert_array_equal(gradient, before)


@pytest.mark.parametrize(
    ("shape", "share", "expected"),
    [
        ((60, 7), 1.0, newton_system._OnColumns),
        ((60, 30), 0.1, newton_system._OnRows),
        ((20, 30), 1.0, newton_system._OnRows),
        ((30, 30), 1.0, newton_system._OnColumns),
    ],
)
def test_the_smaller_side_is_factored(shape, share, expected):
    system = NewtonSystem(case_of(*shape, "exact").problem())
    curvatures = curvatures_of(shape[0], share, seed=2)
    assert type(system.factor(curvatures, ONE)) is expected


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_neither_side_where_both_are_large(intercept, monkeypatch):
    monkeypatch.setattr(newton_system, "LARGEST_SIDE", 20)
    case = case_of(50, 40, intercept)
    system = NewtonSystem(case.problem("CSR float64 int32"))
    curvatures = curvatures_of(50, 1.0, seed=2)
    factor = system.factor(curvatures, ONE)
    assert type(factor) is newton_system._ConjugateGradients
    # As exact as it says, in the norm that its scale makes; and downhill.
    gradient = a_gradient(system)
    step = factor.solve(gradient)
    Z, R = with_intercept(case.X, intercept, S)
    residual = -gradient - (R * step + Z.T @ (curvatures * (Z @ step)))
    assert residual @ (residual / factor.scale) <= 0.03**2 * (gradient @ (gradient / factor.scale))
    assert step @ gradient < 0
    few = np.where(np.arange(50) < 19, curvatures, 0.0)
    assert type(system.factor(few, ONE)) is newton_system._OnRows


def test_conjugate_gradients_end_when_the_budget_is_spent():
    system = NewtonSystem(case_of(50, 40, "exact").problem())
    spent = core.Budget(0.0, 1)
    factor = newton_system._ConjugateGradients(system, np.ones(50), spent)
    np.testing.assert_array_equal(factor.solve(a_gradient(system)), 0.0)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("way", [on_columns, on_rows])
def test_no_free_row_at_all(way, intercept):
    case = case_of(20, 6, intercept)
    system = NewtonSystem(case.problem())
    gradient = a_gradient(system)
    curvatures = np.zeros(20)
    for factor in (way(system, curvatures), system.factor(curvatures, ONE)):
        # Nothing holds an exact intercept then, and the oracle takes a scale of 1 for it as well.
        assert_solved(case, factor.solve(gradient), curvatures, gradient)


@pytest.mark.parametrize("way", [on_columns, on_rows])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_rows_without_features(way, intercept):
    case = Case("empty", np.zeros((5, 3)), np.ones(5), intercept=intercept, intercept_scaling=S)
    system = NewtonSystem(case.problem())
    curvatures = np.arange(5.0)
    gradient = a_gradient(system)
    assert_solved(case, way(system, curvatures).solve(gradient), curvatures, gradient)


# ---- from step to step ---------------------------------------------------------------------------


# The last is wide enough for BLAS, has more rows than one block, and its sparse layout is nearly full.
@every_pair(shape=[(90, 8), (90, 60), (1300, 60)], intercept=INTERCEPTS, layout=STORED)
def test_curvatures_that_change_from_call_to_call(shape, intercept, layout):
    case = case_of(*shape, intercept, seed=5)
    system = NewtonSystem(case.problem(layout))
    ways = set()
    random = np.random.default_rng(6)
    curvatures = curvatures_of(shape[0], 1.0, seed=7)
    for share in (1.0, 0.9, 0.3, 0.3, 0.05, 0.1, 0.0, 0.02, 0.5, 1.0):
        # Most rows keep what they have; some gain, some lose, some lose all.
        change = random.random(shape[0]) < 0.2
        curvatures = np.where(change, curvatures_of(shape[0], 1.0, random), curvatures)
        shown = np.where(random.random(shape[0]) < share, curvatures, 0.0)
        factor = system.factor(shown, ONE)
        ways.add(type(factor).__name__)
        gradient = random.normal(size=len(system.regulariser))
        assert_solved(case, factor.solve(gradient), shown, gradient)
    assert ways == {"_OnColumns", "_OnRows"}


@every_pair(shape=[(200, 10), (700, 60)], intercept=INTERCEPTS, layout=STORED)
def test_scale_saves_the_work_and_not_the_answer(shape, intercept, layout):
    case = case_of(*shape, intercept)
    system = NewtonSystem(case.problem(layout))
    curvatures = 3.0 * (np.arange(shape[0]) % 3 > 0)
    system.scale(3.0)  # nothing to scale yet
    system.factor(curvatures, ONE)
    for _ in range(4):
        curvatures = 3.0 * curvatures
        system.scale(3.0)
        gradient = a_gradient(system)
        factor = system.factor(curvatures, ONE)
        assert_solved(case, factor.solve(gradient), curvatures, gradient)
        seen = []
        system._matrix.kept.update(curvatures, ONE, seen.append)
        assert not seen[0].any()


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(("shape", "blocked"), [((1300, 60), True), ((1300, 40), False)], ids=str)
def test_the_hessian_is_kept_up_to_date(shape, blocked, intercept):
    case = case_of(*shape, intercept)
    system = NewtonSystem(case.problem())
    hessian = newton_system.Hessian(system)
    assert hessian.blocked is blocked
    Z, _ = with_intercept(case.X, intercept, S)
    for seed, share in enumerate([1.0, 0.5, 0.0, 0.2]):
        curvatures = curvatures_of(shape[0], share, seed)
        lower = np.tril(hessian.at(curvatures, ONE))
        expected = np.tril(Z.T @ (curvatures[:, np.newaxis] * Z))
        np.testing.assert_allclose(lower, expected, rtol=0, atol=1e-10 * shape[0])


def test_sparse_rows_are_not_blocked():
    X, y = random_data(300, 60, density=0.1)
    system = NewtonSystem(Problem.of(sparse.csr_matrix(X), y))
    assert not newton_system.Hessian(system).blocked


@pytest.mark.parametrize("rows_of", [np.asarray, sparse.csr_matrix], ids=["BLAS", "the core"])
def test_products_are_kept_and_forgotten(monkeypatch, rows_of):
    X, y = random_data(2000, 12, density=1.0 if rows_of is np.asarray else 0.2)
    system = NewtonSystem(Problem.of(rows_of(X), y))
    products = newton_system.RowProducts(system.problem.rows)
    assert products.full == (rows_of is np.asarray)
    made = []

    def counting(self, new, budget):
        made.append(len(new))
        add(self, new, budget)

    add = newton_system.RowProducts._add
    monkeypatch.setattr(newton_system.RowProducts, "_add", counting)

    def look_at(free):
        made.clear()
        got = products.of(free, ONE)
        np.testing.assert_allclose(got, X[free] @ X[free].T, rtol=0, atol=1e-12)
        got *= 0.0  # the caller may do with them what it likes
        return sum(made)

    assert look_at(np.arange(0, 400)) == 400
    assert look_at(np.arange(0, 400)) == 0
    assert look_at(np.arange(50, 450)) == 50
    assert look_at(np.array([0, 7, 449])) == 0
    # Up to a block, or twice the free rows, the rest is kept.
    assert len(products.kept) == 450
    assert look_at(np.arange(1000, 1100)) == 100
    assert len(products.kept) == 100
    assert look_at(np.arange(1050, 1900)) == 800
    assert len(products.kept) == 900
    np.testing.assert_array_equal(np.flatnonzero(products.place >= 0), np.arange(1000, 1900))
    assert look_at(np.arange(1080, 1090)) == 0
    assert look_at(np.append(np.arange(1080, 1090), 1999)) == 1
    assert len(products.kept) == 11


# ---- huge curvatures -----------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
def test_half_of_a_solution_for_several_right_sides_at_once(threads):
    random, budget = np.random.default_rng(0), core.Budget(np.inf, threads)
    X, right = random.normal(size=(70, 90)), random.normal(size=(70, 2 * dense_factor._COLUMNS + 9))
    factor = dense_factor.cholesky(X @ X.T, np.zeros(70))
    half = dense_factor.half_solved(factor, right, budget)
    np.testing.assert_allclose(np.linalg.cholesky(X @ X.T) @ half, right, atol=1e-9)
    np.testing.assert_array_equal(dense_factor.half_solved(factor, right), half)
    one = dense_factor.half_solved(factor, right[:, 0])
    np.testing.assert_allclose(one, half[:, 0], atol=1e-12)
    np.testing.assert_allclose(X @ X.T @ dense_factor.solved_from_half(factor, one), right[:, 0], atol=1e-9)


def failures_of_cholesky(monkeypatch):
    """A list that grows with every factorisation that fails."""
    failures = []
    factorise = dense_factor.lapack.dpotrf

    def counting(*arguments, **options):
        factor, failed = factorise(*arguments, **options)
        if failed:
            failures.append(failed)
        return factor, failed

    monkeypatch.setattr(dense_factor.lapack, "dpotrf", counting)
    return failures


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(("way", "shape"), [(on_columns, (40, 12)), (on_rows, (12, 40))])
def test_huge_curvatures_give_a_direction_of_descent(way, shape, intercept, monkeypatch):
    failures = failures_of_cholesky(monkeypatch)
    X, y = random_data(*shape, density=1.0)
    # Each column, and each row, twice: what the regulariser adds is lost beside 1e20.
    X[:, shape[1] // 2 :] = X[:, : shape[1] // 2]
    X[shape[0] // 2 :] = X[: shape[0] // 2]
    system = NewtonSystem(Problem.of(X, y, intercept=intercept, intercept_scaling=S))
    gradient = a_gradient(system)
    step = way(system, np.full(shape[0], 1e20)).solve(gradient)
    assert np.all(np.isfinite(step))
    if way is on_columns:
        assert failures
        assert step @ gradient < 0


def test_a_ridge_grows_until_there_is_a_factor(monkeypatch):
    failures = failures_of_cholesky(monkeypatch)
    # Indefinite by far more than rounding: the ridge grows a hundredfold at a time, from 1e-15.
    lower = np.array([[1.0, 0.0], [2.0, 1.0]])
    factor = dense_factor.cholesky(lower, np.zeros(2))
    assert len(failures) == 9
    np.testing.assert_allclose(factor.T @ factor, [[11.0, 2.0], [2.0, 11.0]])
    np.testing.assert_array_equal(lower, [[1.0, 0.0], [2.0, 1.0]])


def test_a_matrix_without_a_factor_ends_in_a_sentence(monkeypatch):
    monkeypatch.setattr(dense_factor.lapack, "dpotrf", lambda matrix, **options: (matrix, 1))
    with pytest.raises(FloatingPointError, match="Scale the features"):
        dense_factor.cholesky(np.eye(2), np.ones(2))


# ---- the rest of the system ----------------------------------------------------------------------


@pytest.mark.parametrize("layout", STORED)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_scores_and_combine(intercept, layout):
    case = case_of(30, 5, intercept)
    system = NewtonSystem(case.problem(layout))
    Z, R = with_intercept(case.X, intercept, S)
    np.testing.assert_allclose(system.regulariser, R)
    step, coefficients = a_gradient(system), curvatures_of(30, 0.5, seed=3)
    np.testing.assert_allclose(system.scores(step, ONE), Z @ step, atol=1e-13)
    np.testing.assert_allclose(system.combine(coefficients, ONE), Z.T @ coefficients, atol=1e-12)


# ---- the core ------------------------------------------------------------------------------------


MATRICES = {"small": (50, 7, 0.6), "worth two threads": (30_000, 80, 0.6), "mostly zeros": (300, 60, 0.1)}


@pytest.fixture(scope="module", params=MATRICES)
def matrix(request):
    n, d, density = MATRICES[request.param]
    return random_data(n, d, density=density)[0]


@every_pair(bias=[0, 1], layout=STORED, budget=BUDGETS)
def test_add_outer_products(matrix, layout, bias, budget):
    n, d = matrix.shape
    coefficients = curvatures_of(n, 0.5, seed=1) - curvatures_of(n, 0.3, seed=2)
    before = np.random.default_rng(3).normal(size=(d + bias, d + bias))
    lower = before.copy()
    core.add_outer_products(Rows(LAYOUTS[layout](matrix)).compiled, coefficients, lower, budget)
    Z = np.column_stack([matrix, np.ones(n)]) if bias else matrix
    expected = before + np.tril(Z.T @ (coefficients[:, np.newaxis] * Z))
    np.testing.assert_allclose(lower, expected, rtol=0, atol=1e-12 * n)


@every_pair(bias=[0, 1], layout=STORED, budget=BUDGETS)
def test_gather(matrix, layout, bias, budget):
    n, d = matrix.shape
    order = np.random.default_rng(4).integers(0, n, n)
    factors = np.random.default_rng(5).normal(size=n)
    out = np.full((n, d + bias), np.nan)
    core.gather(Rows(LAYOUTS[layout](matrix)).compiled, order, factors, out, budget)
    Z = np.column_stack([matrix, np.ones(n)]) if bias else matrix
    np.testing.assert_array_equal(out, factors[:, np.newaxis] * Z[order])


@every_pair(layout=STORED, budget=BUDGETS)
def test_inner_products(matrix, layout, budget):
    random = np.random.default_rng(6)
    first, second = (random.integers(0, len(matrix), size) for size in (300, 200))
    out = np.full((300, 200), np.nan)
    core.inner_products(Rows(LAYOUTS[layout](matrix)).compiled, first, second, out, budget)
    np.testing.assert_allclose(out, matrix[first] @ matrix[second].T, rtol=0, atol=1e-12)
    none = np.empty(0, np.int64)
    core.inner_products(Rows(matrix).compiled, none, second, np.empty((0, 200)), budget)
    core.inner_products(Rows(matrix).compiled, first, none, np.empty((300, 0)), budget)


@every_pair(layout=STORED, budget=BUDGETS)
def test_scores_of(matrix, layout, budget):
    n, d = matrix.shape
    order = np.random.default_rng(7).integers(0, n, n)
    w = np.random.default_rng(8).normal(size=d)
    out = np.full(n, np.nan)
    core.scores_of(Rows(LAYOUTS[layout](matrix)).compiled, order, w, out, budget)
    np.testing.assert_allclose(out, matrix[order] @ w, rtol=0, atol=1e-12)


@every_pair(bias=[0.0, -1.5], layout=STORED, budget=BUDGETS)
def test_curvature_product(matrix, layout, bias, budget):
    n, d = matrix.shape
    curvatures = curvatures_of(n, 0.5, seed=1)
    p = np.random.default_rng(8).normal(size=d)
    out = np.full(d, np.nan)
    total = core.curvature_product(Rows(LAYOUTS[layout](matrix)).compiled, curvatures, p, bias, out, budget)
    weighted = curvatures * (matrix @ p + bias)
    np.testing.assert_allclose(out, matrix.T @ weighted, rtol=0, atol=1e-12 * n)
    np.testing.assert_allclose(total, weighted.sum(), rtol=0, atol=1e-11 * n)


# ---- pieces: refresh and line search -------------------------------------------------------------

LOSSES = ("hinge", "squared_hinge", "logistic")


def pieces_of(loss, costs, centre, stiffness):
    """Value, slope times -1 and curvature of every piece, in NumPy."""

    def target(m):
        return centre + stiffness * costs * (1 - m)

    multiplier, curvature = {
        "hinge": (
            lambda m: np.clip(target(m), 0.0, costs),
            lambda m: np.where((target(m) > 0) & (target(m) < costs), stiffness * costs, 0.0),
        ),
        "squared_hinge": (
            lambda m: 2 * costs * np.maximum(0.0, 1 - m),
            lambda m: np.where(m < 1, 2 * costs, 0.0),
        ),
        "logistic": (
            lambda m: costs / (1 + np.exp(np.clip(m, -700, 700))),
            lambda m: costs * np.exp(-np.logaddexp(0, m) - np.logaddexp(0, -m)),
        ),
    }[loss]
    value = {
        "hinge": lambda m: costs * np.maximum(0.0, 1 - m),
        "squared_hinge": lambda m: costs * np.maximum(0.0, 1 - m) ** 2,
        "logistic": lambda m: costs * np.logaddexp(0, -m),
    }[loss]
    return value, multiplier, curvature


class OneColumn:
    """All that a method asks of rows, offered by Python for rows of one column."""

    def __init__(self, x):
        self.x, self.scales = x, []

    def scores(self, step, budget):
        return self.x * step[0]

    def combine(self, coefficients, budget):
        return np.array([self.x @ coefficients])

    def solve(self, curvatures, gradient, budget):
        return -gradient / (1.0 + curvatures @ self.x**2)

    def scale(self, factor):
        self.scales.append(factor)


def method_of(loss, labels, costs, stiffness=2.0):
    if loss == "hinge":
        options = core.LagrangianOptions(stiffness=stiffness, raise_by=3.0, small_part=0.2)
        return core.AugmentedLagrangian(options, labels, costs, np.ones(1))
    return core.NewtonMethod(loss, labels, costs, np.ones(1))


def begin(method, system, v, margins, alpha=None, combined=None, budget=ONE):
    more = (alpha, combined) if isinstance(method, core.AugmentedLagrangian) else ()
    method.begin(system, v, margins, *more, budget)


@every_pair(loss=LOSSES, n=[37, 500_000], budget=BUDGETS)
def test_what_follows_from_the_margins(loss, n, budget):
    random = np.random.default_rng(1)
    costs = random.integers(0, 5, n) / 4.0
    labels = np.where(random.random(n) < 0.5, 1.0, -1.0)
    stiffness = 2.0
    value, multiplier, curvature = pieces_of(loss, costs, 0.5 * costs, stiffness)
    x = random.normal(size=n)
    method = method_of(loss, labels, costs, stiffness)
    margins = 1.0 + random.normal(size=n)
    begin(method, OneColumn(x), np.array([3.0]), margins, budget=budget)
    a, h = multiplier(margins), curvature(margins)
    np.testing.assert_allclose(method.multipliers, a, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(method.combined, x @ (labels * a), rtol=1e-9)
    assert method.primal == pytest.approx(4.5 + value(margins).sum(), rel=1e-12)
    if loss == "hinge":
        # All rows were free in the middle of their boxes: who is not, has lost its curvature just now.
        h = np.where(h == 0.0, 0.3 * stiffness * costs, h)
    np.testing.assert_allclose(method.curvatures, h, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_on_rows_that_are_a_python_object(loss):
    random = np.random.default_rng(2)
    x = random.normal(size=60)
    labels = np.where(x + random.normal(size=60) > 0, 1.0, -1.0)
    method, system = method_of(loss, labels, np.ones(60)), OneColumn(x)
    begin(method, system, np.zeros(1), np.zeros(60))
    steps = method.steps(system, 100, 1e-9, ONE)
    assert 1 < steps < 100
    assert method.relative_gap <= 1e-9
    problem = Problem.of(x[:, np.newaxis], labels, loss=loss, intercept="none")
    assert method.primal == pytest.approx(solve(problem, tol=1e-8).certificate.primal, rel=1e-7)
    assert set(system.scales) == ({3.0} if loss == "hinge" else set())


def test_a_system_that_fails_says_why():
    class Failing(OneColumn):
        def solve(self, curvatures, gradient, budget):
            raise ZeroDivisionError("as planned")

    class Short(OneColumn):
        def scores(self, step, budget):
            return self.x[1:]

    method = method_of("logistic", np.ones(3), np.ones(3))
    for kind, error, message in ((Failing, ZeroDivisionError, "planned"), (Short, ValueError, "lengths")):
        system = kind(np.ones(3))
        begin(method, system, np.zeros(1), np.zeros(3))
        with pytest.raises(error, match=message):
            method.steps(system, 5, 0.0, ONE)


@pytest.mark.parametrize(
    ("loss", "place"), [("logistic", 0), ("logistic", 1), *(("hinge", k) for k in range(4))]
)
def test_methods_refuse_inconsistent_arrays(loss, place):
    sizes = [1, 3, 3, 1]  # of v, margins, alpha and combined
    sizes[place] += 1
    arrays = [np.zeros(size) for size in sizes]
    method = method_of(loss, np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="is needed"):
        begin(method, OneColumn(np.ones(3)), *arrays)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "perceptron"])
def test_a_method_needs_a_cost_for_every_row_and_a_loss_of_its_own(loss):
    with pytest.raises(ValueError, match="is needed"):
        method_of(loss, np.ones(3), np.ones(4))


def line_of(loss, costs, centre, stiffness, margins, changes, slope, curvature):
    """The slope along the line, and the size of the terms that it is made of."""
    _, multiplier, _ = pieces_of(loss, costs, centre, stiffness)

    def slope_at(s):
        return slope + s * curvature - multiplier(margins + s * changes) @ changes

    def size_at(s):
        return abs(slope) + s * curvature + multiplier(margins + s * changes) @ np.abs(changes)

    return slope_at, size_at


numbers = st.floats(-4.0, 4.0, allow_subnormal=False).map(lambda x: round(x, 3))
shares = st.floats(0.0, 1.0).map(lambda x: round(x, 2))


@st.composite
def lines(draw):
    n = draw(st.integers(0, 12))

    def vector(elements):
        return np.array(draw(st.lists(elements, min_size=n, max_size=n)), np.float64)

    costs = draw(st.sampled_from([0.01, 1.0, 100.0])) * vector(shares)
    centre = costs * vector(shares)
    # No curvature at all would leave the step without an end.
    curvature = draw(st.sampled_from([0.01, 1.0, 30.0]))
    return (
        draw(st.sampled_from(LOSSES)),
        costs,
        centre,
        draw(st.sampled_from([0.1, 3.0, 1e3])),
        vector(numbers),
        vector(numbers),
        draw(numbers),
        curvature,
    )


@settings(max_examples=200)
@given(lines())
def test_line_search_ends_where_the_slope_is_gone(line):
    slope_at, size_at = line_of(*line)
    s = core.line_search(*line, ONE)
    start = slope_at(0.0)
    rounding = 1e-13
    if s == 0.0:
        assert start >= -rounding * size_at(0.0)
        return
    assert s > 0.0
    assert np.isfinite(s)
    assert start <= rounding * size_at(0.0)
    assert abs(slope_at(s)) <= 0.01 * abs(start) + rounding * size_at(s)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_line_search_over_many_rows(loss, budget):
    random = np.random.default_rng(2)
    n = 500_000
    costs = random.uniform(0.0, 1.0, n)
    centre = costs * np.clip(random.uniform(-0.5, 1.5, n), 0.0, 1.0)
    margins, changes = random.normal(size=n), 0.1 + random.normal(size=n)
    line = (loss, costs, centre, 3.0, margins, changes, 0.0, 5.0)
    slope_at, _ = line_of(*line)
    s = core.line_search(*line, budget)
    assert s > 0.0
    assert abs(slope_at(s)) <= 0.0101 * abs(slope_at(0.0))


def test_line_search_takes_a_full_step_on_a_parabola():
    nothing = np.empty(0)
    parabola = ("squared_hinge", nothing, nothing, 0.0, nothing, nothing)
    assert core.line_search(*parabola, -2.0, 2.0, ONE) == 1.0
    assert core.line_search(*parabola, -2.0, 0.5, ONE) == 4.0
    assert core.line_search(*parabola, -2.0, 1e6, ONE) == pytest.approx(2e-6, rel=0.02)
    for slope in (0.0, 1.0, np.nan):
        assert core.line_search(*parabola, slope, 1.0, ONE) == 0.0


# ---- refusals ------------------------------------------------------------------------------------

THREE_BY_TWO = Rows(np.ones((3, 2))).compiled
N, D = np.zeros(3), np.zeros(2)


def rows_of(*indices):
    return np.array(indices, np.int64)


def pieces(**changes):
    return tuple(({"loss": "hinge", "costs": N, "centre": N, "stiffness": 1.0} | changes).values())


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (core.add_outer_products, (THREE_BY_TWO, D, np.zeros((2, 2))), "per row"),
        (core.add_outer_products, (THREE_BY_TWO, N, np.zeros((2, 3))), "square"),
        (core.add_outer_products, (THREE_BY_TWO, N, np.zeros((1, 1))), "every column"),
        (core.add_outer_products, (THREE_BY_TWO, N, np.zeros((4, 4))), "every column"),
        (core.gather, (THREE_BY_TWO, rows_of(0, 3), D, np.zeros((2, 2))), "out of range"),
        (core.gather, (THREE_BY_TWO, rows_of(0, -1), D, np.zeros((2, 2))), "out of range"),
        (core.gather, (THREE_BY_TWO, rows_of(0, 1), N, np.zeros((2, 2))), "per row"),
        (core.gather, (THREE_BY_TWO, rows_of(0, 1), D, np.zeros((3, 2))), "per row"),
        (core.gather, (THREE_BY_TWO, rows_of(0, 1), D, np.zeros((2, 1))), "every column"),
        (core.gather, (THREE_BY_TWO, rows_of(0, 1), D, np.zeros((2, 4))), "every column"),
        (core.inner_products, (THREE_BY_TWO, rows_of(3), rows_of(0), np.zeros((1, 1))), "out of range"),
        (core.inner_products, (THREE_BY_TWO, rows_of(0), rows_of(-1), np.zeros((1, 1))), "out of range"),
        (core.inner_products, (THREE_BY_TWO, rows_of(0, 1), rows_of(0), np.zeros((1, 2))), "every pair"),
        (core.scores_of, (THREE_BY_TWO, rows_of(3), D, np.zeros(1)), "out of range"),
        (core.scores_of, (THREE_BY_TWO, rows_of(-1), D, np.zeros(1)), "out of range"),
        (core.scores_of, (THREE_BY_TWO, rows_of(0), D, np.zeros(2)), "per row"),
        (core.scores_of, (THREE_BY_TWO, rows_of(0), N, np.zeros(1)), "per column"),
        (core.curvature_product, (THREE_BY_TWO, D, D, 0.0, np.zeros(2)), "per row"),
        (core.curvature_product, (THREE_BY_TWO, N, N, 0.0, np.zeros(2)), "per column"),
        (core.curvature_product, (THREE_BY_TWO, N, D, 0.0, np.zeros(3)), "per column"),
        (core.line_search, (*pieces(costs=D, centre=D), N, N, -1.0, 1.0), "per row"),
        (core.line_search, (*pieces(), N, D, -1.0, 1.0), "per row"),
        (core.line_search, (*pieces(), D, N, -1.0, 1.0), "per row"),
        (core.line_search, (*pieces(centre=D), N, N, -1.0, 1.0), "centre"),
        (core.line_search, (*pieces(loss="perceptron"), N, N, -1.0, 1.0), "centre"),
    ],
)
def test_inconsistent_arrays_are_refused(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments, ONE)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (core.add_outer_products, (THREE_BY_TWO, N, np.zeros(4))),
        (core.gather, (THREE_BY_TWO, rows_of(0), np.zeros((1, 1)), np.zeros((1, 2)))),
        (core.inner_products, (THREE_BY_TWO, rows_of(0), [0], np.zeros((1, 1)))),
        (core.scores_of, (None, rows_of(0), D, np.zeros(1))),
        (core.curvature_product, (THREE_BY_TWO, N, D, "0", np.zeros(2))),
        (core.line_search, (*pieces(), N, None, -1.0, 1.0)),
    ],
)
def test_arguments_of_another_kind_are_refused(call, arguments):
    with pytest.raises(TypeError, match="incompatible"):
        call(*arguments, ONE)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_margin_is_moved_by_the_line_that_was_searched(layout):
    """Steps of the whole: v, its margins and the gradient stay one point, whatever the layout."""
    X, y = clouds(n=50, d=3)
    case = Case("whole", X, y, loss="squared_hinge", intercept="regularised", intercept_scaling=S)
    problem = case.problem(layout)
    solver = Newton()
    state = solver.init(problem, None)
    Z, _ = with_intercept(X, "regularised", S)
    for _ in range(3):
        method = solver.step(problem, state, ONE).method
        np.testing.assert_allclose(method.margins, y * (Z @ method.v), atol=1e-12)
        expected = Z.T @ (y * 2 * np.maximum(0, 1 - method.margins))
        np.testing.assert_allclose(method.combined, expected, atol=1e-11)


NUMBERS = ("v", "margins", "multipliers", "combined", "curvatures", "primal")


@every_pair(
    loss=LOSSES,
    intercept=INTERCEPTS,
    shape=[(40, 5), (40, 7), (40, 8), (90, 17), (300, 96), (150, 126)],
    layout=STORED,
)
def test_a_small_system_is_the_system_in_its_parts(loss, intercept, shape, layout):
    problem = replace(case_of(*shape, intercept), loss=loss).problem(layout)
    solver = AugmentedLagrangian(sweeps=0) if loss == "hinge" else Newton(sweeps=0)
    whole, parts = (solver.init(problem, None) for _ in range(2))
    assert isinstance(whole.system.for_steps, core.SmallSystem)
    for _ in range(4):  # rows gain and lose curvature on the way
        whole.method.steps(whole.system.for_steps, 1, 0.0, ONE)
        parts.method.steps(parts.system, 1, 0.0, ONE)
        for name in NUMBERS:
            ours, theirs = getattr(whole.method, name), getattr(parts.method, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_rows_that_count_no_more_leave_nothing_behind(intercept):
    # Long rows that have lost their curvature: what is left of them is not to be seen.
    random = np.random.default_rng(5)
    X = np.concatenate([1e6 * random.normal(size=(20, 4)), random.normal(size=(30, 4))])
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    system = NewtonSystem(Case("worn", X, y, intercept=intercept).problem())
    hessian = newton_system.Hessian(system)
    hessian.at(np.full(50, 2.0), ONE)
    lower = hessian.at(np.where(np.arange(50) < 20, 0.0, 2.0), ONE)
    Z, _ = with_intercept(X[20:], intercept, 1.0)
    np.testing.assert_allclose(np.tril(lower), np.tril(2.0 * Z.T @ Z), rtol=1e-12)


@every_pair(
    loss=["hinge", "squared_hinge", "logistic"], intercept=INTERCEPTS, until=[1e-3, 1e-9], layout=STORED
)
def test_steps_at_once_are_the_steps_one_by_one(loss, intercept, until, layout):
    problem = replace(case_of(40, 5, intercept), loss=loss).problem(layout)
    kind = AugmentedLagrangian if loss == "hinge" else Newton
    alone, together = kind(), kind(until=until)
    one_by_one, at_once = (solver.init(problem, None) for solver in (alone, together))
    for _ in range(3):
        at_once = together.step(problem, at_once, ONE)
        for _ in range(20):
            one_by_one = alone.step(problem, one_by_one, ONE)
            if alone.report(one_by_one).finished or one_by_one.relative_gap <= until:
                break
        for name in NUMBERS:
            ours, theirs = getattr(at_once.method, name), getattr(one_by_one.method, name)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        assert at_once.relative_gap == one_by_one.relative_gap
        if at_once.relative_gap <= until:
            break
    assert at_once.relative_gap <= until


def test_steps_at_once_end_with_the_budget():
    problem = case_of(40, 5, "exact").problem("dense C float64")
    spent = core.Budget(np.inf, 1)
    spent.stop()
    solver = AugmentedLagrangian(until=0.0)
    state = solver.init(problem, None)
    alone = AugmentedLagrangian().step(problem, solver.init(problem, None), ONE)
    np.testing.assert_array_equal(solver.step(problem, state, spent).method.v, alone.method.v)


class WholePasses(Rows):
    """Rows that show no single row: steps then ask for whole passes."""

    offers_single_rows = False


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_threads_share_the_rows_of_whole_passes(loss):
    """So many rows that each thread gets a part of them: only the order of sums may differ."""
    case = case_of(300_000, 2, "exact")
    solver, numbers = (AugmentedLagrangian if loss == "hinge" else Newton)(sweeps=0, sampling=False), []
    problem = Problem.of(WholePasses(case.X), case.y, loss=loss)
    for budget in (ONE, TWO):
        state = solver.begin(problem, Solution(), budget)
        for _ in range(4):
            state = solver.step(problem, state, budget)
        numbers.append([state.method.primal, *state.method.v])
    np.testing.assert_allclose(*numbers, rtol=1e-7, atol=1e-12)


def test_an_array_is_copied_by_several_threads():
    given, out = np.arange(300_000.0), np.zeros(300_000)
    core.copy(given, out, TWO)
    np.testing.assert_array_equal(out, given)
    with pytest.raises(ValueError, match="per row"):
        core.copy(given, out[1:], TWO)


def test_a_small_step_beyond_float64_ends_the_run():
    X, y = np.array([[1e99], [-1e99]]), np.array([1.0, -1.0])
    problem = replace(Problem.of(X, y, loss="squared_hinge"), costs=np.full(2, 1e150))
    solver = Newton()
    state = solver.step(problem, solver.init(problem, None), ONE)
    assert solver.report(state).finished


@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_small_system_needs_a_place_for_every_column(size):
    with pytest.raises(ValueError, match="every column"):
        core.small_system(THREE_BY_TWO, np.ones(size))


def test_a_hessian_needs_a_number_for_every_row():
    with pytest.raises(ValueError, match="per row"):
        core.Hessian(3, np.ones(2)).update(np.ones(4), ONE, print)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_start_with_margins_needs_no_pass_over_the_data(loss, intercept, monkeypatch):
    problem = replace(case_of(40, 5, intercept), loss=loss).problem()
    w = np.random.default_rng(3).normal(size=5)
    b = problem.best_intercept(problem.rows.scores(w))
    system = NewtonSystem(problem)
    expected = point_of(system, Solution(w=w), None, ONE)
    margins = problem.margins(w, b)
    monkeypatch.setattr(core, "scores", None)
    for ours, theirs in zip(
        point_of(system, Solution(w=w, b=b, margins=margins), None, ONE), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    kind = AugmentedLagrangian if loss == "hinge" else Newton
    state = kind().init(problem, Solution(w=w, b=b, margins=margins))
    state.method.margins[:] += 1.0
    np.testing.assert_allclose(margins, expected[1])  # a copy: a certificate keeps its own


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_start_with_its_own_sum_needs_no_pass_either(intercept):
    problem = case_of(40, 5, intercept).problem()
    alpha = np.random.default_rng(3).uniform(0.0, 1.0, 40) * problem.costs
    w = problem.rows.combine(alpha * problem.y)
    known, found = (
        AugmentedLagrangian().init(problem, Solution(alpha=alpha, w_of_alpha=sum_of_rows)).method
        for sum_of_rows in (w, None)
    )
    np.testing.assert_allclose(known.combined, found.combined, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(known.multipliers, alpha)


@pytest.mark.parametrize("scaling", [0.01, 10.0, 100.0])
@pytest.mark.parametrize(("name", "loss"), [("augmented_lagrangian", "hinge"), ("newton", "squared_hinge")])
def test_a_regularised_intercept_of_any_scaling(name, loss, scaling):
    # With a as multipliers, the gap of the smooth problem is g'R^-1 g / 2: s^2 counts in it.
    X, y = clouds(n=200, d=4, positive_share=0.1)
    problem = Problem.of(X, y, 1.0, loss=loss, intercept="regularised", intercept_scaling=scaling)
    assert solve(problem, name, tol=1e-9, max_steps=200).status.certified


@pytest.mark.parametrize(("share", "seed", "C"), [(0.1, 11, 100.0), (0.5, 3, 1e4), (0.1, 6, 1e4)])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_slow_beginnings_are_not_taken_for_the_end(intercept, share, seed, C):
    # For many steps at first the smooth problem comes closer to its end, and neither value does.
    X, y = clouds(n=200, d=20, positive_share=share, seed=seed)
    problem = Problem.of(X, y, C, intercept=intercept)
    assert solve(problem, "augmented_lagrangian", tol=1e-6, max_steps=300).status.certified


@pytest.mark.parametrize(
    ("loss", "rows", "columns", "compiled"),
    [
        ("squared_hinge", 400, 319, True),
        ("squared_hinge", 400, 320, False),  # with the intercept that is one more
        ("hinge", 600, 511, True),
        ("hinge", 600, 512, False),
        ("hinge", 300, 400, False),  # fewer rows than columns
    ],
)
def test_steps_are_compiled_up_to_so_many_unknowns(loss, rows, columns, compiled):
    random = np.random.default_rng(0)
    y = np.where(random.random(rows) < 0.5, 1.0, -1.0)
    problem = Problem.of(random.normal(size=(rows, columns)), y, loss=loss)
    assert newton_system.is_compiled(problem) == compiled
    assert isinstance(NewtonSystem(problem).for_steps, core.SmallSystem) == compiled
