# SPDX-License-Identifier: BSD-3-Clause
"""The compiled kernel solvers follow the lectures' pseudo-code step by step, and their own rules hold."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import Problem, Solution, Status, core, solve
from maxmargin.kernels import Gaussian, KernelRows, Linear
from maxmargin.kernels.uncoupled import Blocks
from maxmargin.solvers import KernelDualAscent, SequentialMinimalOptimization
from maxmargin.solvers.ascent.state import ALPHA
from oracles import sequential_minimal_optimization as lecture
from oracles.kernel_dual_ascent import ascend
from problems import clouds

SEED = 7
UNLIMITED = core.Budget(np.inf, 1)
KERNELS = {"linear": Linear(), "gaussian": Gaussian(0.3)}
SELECTIONS = ("second_order", "maximal_violating_pair")


def matrix_of(name, X):
    """Written out here once more: the oracles share nothing with the core."""
    if name == "linear":
        return X @ X.T
    return np.exp(-0.3 * np.sum((X[:, None] - X[None]) ** 2, axis=2))


@pytest.fixture(scope="module")
def data():
    """Costs of all sizes, one of them 0; one place with both labels; an empty row."""
    X, y = clouds(n=31, d=4, seed=4)
    X[11] = 0.0
    X[30] = X[2]
    assert y[30] != y[2]
    weights = np.random.default_rng(5).uniform(0.2, 3.0, len(y))
    weights[5] = 0.0
    return X, y, 0.8 * weights


def problem_of(X, y, costs, kernel, **options):
    return Problem.of(KernelRows(X, kernel), y, 1.0, weights=costs, **options)


def close(ours, theirs, tolerance=1e-9):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


# ---- sequential minimal optimisation -------------------------------------------------------------


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_pair_is_the_lecture_s(data, kernel, selection):
    X, y, costs = data
    K = matrix_of(kernel, X)
    problem = problem_of(X, y, costs, KERNELS[kernel])
    solver = SequentialMinimalOptimization(selection=selection, shrinking=False, pairs_per_step=1)
    state = solver.init(problem, None)
    lambda_ = np.zeros(len(y))
    for _ in range(60):
        before = state.point.beta.copy()
        state = solver.step(problem, state, UNLIMITED)
        change = state.point.beta - before
        assert np.count_nonzero(change) == 2
        first, second = int(np.argmax(change)), int(np.argmin(change))
        # Two rows may promise the same to rounding, so the pair is asked to be a best one.
        f = K @ (lambda_ * y) - y
        assert f[first] <= f[lecture.first_row(lambda_, K, y, costs)] + 1e-9
        promises = lecture.promises(lambda_, K, y, costs, first, selection)
        assert promises[second] >= promises.max() * (1 - 1e-9) - 1e-12
        lambda_ = lecture.optimise_pair(lambda_, K, y, costs, first, second)
        close(state.point.beta * y, lambda_)
        close(state.point.f, K @ (lambda_ * y) - y)
        close(state.dual, lecture.W(lambda_, K, y))
        close(0.5 * max(state.violation, 0.0), lecture.kkt_violation(lambda_, K, y, costs))
    # Walls are hit exactly, or the row would go on being chosen.
    assert np.count_nonzero(state.point.beta * y == costs) > 2
    assert np.count_nonzero(state.point.beta == 0.0) > 2


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_rule_of_004_holds_for_all_rows_when_it_fires(selection, shrinking):
    X, y = clouds(n=300, d=3, seed=9)
    costs = np.full(len(y), 5.0)
    K = matrix_of("gaussian", X)
    solver = SequentialMinimalOptimization(selection=selection, shrinking=shrinking, epsilon=1e-3)
    problem = problem_of(X, y, costs, KERNELS["gaussian"])
    state, fewest = solver.init(problem, None), len(y)
    while not solver.report(state).finished:
        state = solver.step(problem, state, UNLIMITED)
        fewest = min(fewest, state.active)
    assert (fewest < 0.8 * len(y)) == shrinking
    alpha = solver.solution(problem, state, UNLIMITED).alpha
    assert lecture.kkt_violation(alpha, K, y, costs) <= 1e-3 * (1 + 1e-9)
    close(state.point.f, K @ (alpha * y) - y)
    theirs = lecture.optimise_until_convergence(K, y, costs, 1e-3, selection)
    assert lecture.W(alpha, K, y) == pytest.approx(lecture.W(theirs, K, y), rel=1e-5)
    model = solve(problem, solver, tol=0.0)
    assert model.status is Status.RULE_FIRED
    assert "epsilon" in model.message


def test_shrinking_leaves_the_answer_alone():
    X, y = clouds(n=500, d=3, seed=10)
    problem = problem_of(X, y, np.full(len(y), 20.0), KERNELS["gaussian"])
    shrunk, plain = (
        solve(problem, SequentialMinimalOptimization(shrinking=shrinking), tol=1e-9)
        for shrinking in (True, False)
    )
    assert shrunk.status is plain.status is Status.CERTIFIED
    assert shrunk.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-9)


def test_estimate_is_the_gap_while_no_row_is_shrunk():
    X, y = clouds(n=150, d=3, seed=11)
    problem = problem_of(X, y, np.full(len(y), 2.0), KERNELS["gaussian"])
    solver = SequentialMinimalOptimization(shrinking=False, pairs_per_step=20)
    state = solver.init(problem, None)
    for _ in range(10):
        state = solver.step(problem, state, UNLIMITED)
        alpha = solver.solution(problem, state, UNLIMITED).alpha
        close(state.dual, problem.dual(alpha))
        w, b = problem.primal_from_dual(alpha)
        gap = problem.primal(w, b) - state.dual
        # The certificate's b is the best one; the solver's lies in the middle of two bounds.
        assert gap * (1 - 1e-9) <= state.gap <= 5 * gap + 1e-9


@pytest.mark.parametrize("solver", ["working_set", "sequential_minimal_optimization"])
def test_a_start_out_of_balance_is_put_right(data, solver):
    X, y, costs = data
    problem = problem_of(X, y, costs, KERNELS["gaussian"])
    start = Solution(alpha=np.where(y > 0, costs, 0.25 * costs))
    cold, warm = (solve(problem, solver, tol=1e-8, start=begin) for begin in (None, start))
    assert warm.status is cold.status is Status.CERTIFIED
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-8)


@pytest.mark.parametrize(
    "options", [{"epsilon": -1.0}, {"cache_size": -1.0}, {"pairs_per_step": -1}, {"selection": "random"}]
)
def test_options_are_checked(data, options):
    X, y, costs = data
    with pytest.raises(ValueError, match=next(iter(options))):
        solve(problem_of(X, y, costs, Linear()), SequentialMinimalOptimization(**options))


# ---- dual ascent with the Gram matrix ------------------------------------------------------------


@pytest.mark.parametrize("intercept", ["none", "regularised"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_sweep_is_the_lecture_s(data, kernel, loss, intercept):
    X, y, costs = data
    K = matrix_of(kernel, X)
    problem = problem_of(
        X, y, costs, KERNELS[kernel], loss=loss, intercept=intercept, intercept_scaling=1.7
    )
    solver = KernelDualAscent(seed=SEED)
    state = solver.init(problem, None)
    order, random, sweeps = np.flatnonzero(costs), SEED, []
    for _ in range(6):
        random = core.shuffle(order, random)
        sweeps.append(order.copy())
    scaling = 1.7 if intercept == "regularised" else 0.0
    for alpha, scores in ascend(K, y, costs, sweeps, loss=loss, intercept_scaling=scaling):
        state = solver.step(problem, state, UNLIMITED)
        close(state.coordinates[:, ALPHA], alpha)
        close(state.scores, scores)
        close(state.bias, scaling**2 * (alpha @ y))
        close(state.dual, problem.dual(alpha))
        # With the solver's own b the gap is what the sweep says.
        w = problem.rows.combine(alpha * y)
        close(state.gap, problem.primal(w, state.bias) - state.dual, 1e-8)
    assert np.any(alpha > 0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_kernel_dual_ascent_goes_on_from_a_start(data, loss):
    X, y, costs = data
    problem = problem_of(X, y, costs, Gaussian(0.3), loss=loss, intercept="regularised")
    solver = KernelDualAscent(seed=SEED)
    state = solver.init(problem, None)
    for _ in range(3):
        state = solver.step(problem, state, UNLIMITED)
    again = solver.init(problem, solver.solution(problem, state, UNLIMITED))
    for ours in ("coordinates", "scores", "bias", "dual"):
        close(getattr(again, ours), getattr(state, ours))


# ---- what both have to keep in order -------------------------------------------------------------

SOLVERS = [
    SequentialMinimalOptimization(shrinking=False),
    SequentialMinimalOptimization(shrinking=False, selection="maximal_violating_pair"),
    KernelDualAscent(),
]


def suited_intercept(solver):
    return "none" if isinstance(solver, KernelDualAscent) else "exact"


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_cache_changes_nothing(solver):
    X, y = clouds(n=80, d=3, seed=12)
    problem = problem_of(X, y, np.full(80, 10.0), Gaussian(1.0), intercept=suited_intercept(solver))
    row = 80 * 8 / 1e6
    answers = []
    for size in (1000.0, 0.0, 1.5 * row, 2.5 * row, 7.5 * row):
        configured = type(solver)(**(vars(solver) | {"cache_size": size}))
        state = configured.init(problem, None)
        for _ in range(5):
            state = configured.step(problem, state, UNLIMITED)
        assert state.cache.peak_bytes <= size * 1e6
        answers.append(configured.solution(problem, state, UNLIMITED).alpha)
    for other in answers[1:]:
        np.testing.assert_array_equal(other, answers[0])


@pytest.mark.parametrize("solver", ["working_set", *SOLVERS], ids=repr)
def test_blocks_are_solved_like_the_whole(solver):
    # Two far places whose rows take turns: the kernel between them is 0 to the last bit.
    X, y = clouds(n=90, d=3, seed=13)
    X[::2] += 1000.0
    order = np.concatenate([np.arange(0, 90, 2), np.arange(1, 90, 2)])
    blocks = Blocks(order, np.array([0, 45, 90]))
    costs = np.random.default_rng(3).uniform(0.5, 4.0, len(y))
    intercept = "exact" if isinstance(solver, str) else suited_intercept(solver)
    whole, split = (
        Problem.of(KernelRows(X, Gaussian(0.4), blocks=part), y, 1.0, weights=costs, intercept=intercept)
        for part in (None, blocks)
    )
    first, second = (solve(problem, solver, tol=1e-8, max_steps=5000) for problem in (whole, split))
    assert first.status is second.status is Status.CERTIFIED
    assert second.certificate.primal == pytest.approx(first.certificate.primal, rel=2e-8)


@pytest.mark.parametrize("solver", [SequentialMinimalOptimization(), KernelDualAscent()], ids=repr)
def test_many_rows_begin_in_single_precision_and_do_not_end_there(solver):
    X, y = clouds(n=2100, d=3, seed=15)
    problem = problem_of(X, y, np.full(2100, 5.0), Gaussian(0.1), intercept=suited_intercept(solver))
    assert solver.init(problem, None).single
    model = solve(problem, solver, tol=1e-9, max_steps=20_000)
    # The matrix in single precision has its own optimum, 1e-8 away or more.
    assert model.status is Status.CERTIFIED


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_a_step_cut_short_leaves_f_in_order(solver):
    X, y = clouds(n=1500, d=3, seed=14)
    problem = problem_of(X, y, np.full(1500, 10.0), Gaussian(1.0), intercept=suited_intercept(solver))
    options = {"pairs_per_step": 10**6} if hasattr(solver, "pairs_per_step") else {}
    configured = type(solver)(**(vars(solver) | {"cache_size": 0.0} | options))
    state = configured.init(problem, None)
    state = configured.step(problem, state, core.Budget(0.01, 1))
    alpha = configured.solution(problem, state, UNLIMITED).alpha
    scores = state.scores if isinstance(solver, KernelDualAscent) else state.point.f + y
    assert 0 < np.count_nonzero(alpha) < 1500
    assert not configured.report(state).finished
    close(scores, matrix_of_rows(problem, alpha), 1e-8)


def matrix_of_rows(problem, alpha):
    X = clouds(n=1500, d=3, seed=14)[0]
    squares = np.sum(X**2, axis=1)
    K = np.exp(-(squares[:, None] + squares[None] - 2 * X @ X.T))
    return K @ (alpha * problem.y)
