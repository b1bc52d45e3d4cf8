# SPDX-License-Identifier: BSD-3-Clause
"""Problems whose b is given: the certificate is about that b, and one solver finds the best w for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Problem, Solution, certify, core, solve, solve_hard_margin
from maxmargin.kernels import Gaussian, KernelRows, Linear
from maxmargin.problem.losses import LOSSES
from maxmargin.solvers import SOLVERS, KernelDualAscent
from oracles.kernel_dual_ascent import ascend
from problems import clouds
from quadratic_program import objective, solve_by_quadratic_program

UNLIMITED = 10_000


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(LOSSES)),
    st.floats(-3.0, 3.0),
    st.sampled_from([0.01, 1.0, 30.0]),
)
@settings(max_examples=150)
def test_any_two_points_make_a_proof(seed, loss, b, C):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(12, 3)), random.choice([-1.0, 1.0], size=12)
    problem = Problem.of(X, y, C, loss=loss, intercept="none", fixed_intercept=b)
    w, alpha = random.normal(size=3), random.uniform(0.0, C, size=12)
    for solution in (Solution(w=w), Solution(alpha=alpha), Solution(w=w, alpha=alpha)):
        proof = certify(problem, solution)
        assert proof.b == b
        assert proof.b_interval == (b, b)
        costs = np.full(12, C)
        expected = objective(X, y, costs, loss, "none", 1.0, proof.w, b)
        assert proof.primal == pytest.approx(expected, rel=1e-12)
        assert proof.dual <= proof.primal + 1e-12 * abs(proof.primal)
        # No other w is below the dual value.
        for size in (0.0, 0.1, 1.0):
            other = objective(X, y, costs, loss, "none", 1.0, size * random.normal(size=3), b)
            assert proof.dual <= other + 1e-9 * (1.0 + other)


@pytest.mark.parametrize("b", [-1.5, 0.3, 0.9, 4.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_best_value_is_the_referee_s(loss, b):
    X, y = clouds(n=60, d=4, seed=8)
    weights = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    rows = KernelRows(X, Linear())
    problem = Problem.of(rows, y, 0.7, loss=loss, intercept="none", fixed_intercept=b, weights=weights)
    model = solve(problem, tol=1e-9, max_steps=UNLIMITED)
    w, _, best = solve_by_quadratic_program(X, y, 0.7 * weights, loss, "none", fixed_intercept=b)
    assert model.certificate.primal == pytest.approx(best, rel=1e-8)
    assert model.certificate.dual <= best * (1 + 1e-9)
    assert model.b == b
    np.testing.assert_allclose(X.T @ model.w, w, atol=1e-4)
    assert model.solver.startswith("kernel_dual_ascent: without an exact intercept")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sweeps_are_the_oracle_s(loss):
    X, y = clouds(n=50, d=3, seed=9)
    C = np.random.default_rng(1).uniform(0.2, 2.0, 50)
    problem = Problem.of(
        KernelRows(X, Gaussian(0.7)), y, weights=C, loss=loss, intercept="none", fixed_intercept=0.6
    )
    K = np.exp(-0.7 * np.square(X[:, None] - X[None]).sum(axis=2))
    solver = KernelDualAscent(seed=3)
    budget = core.Budget(np.inf, 1)
    state, orders, found = solver.init(problem, None), [], []
    for _ in range(6):
        state = solver.step(problem, state, budget)
        orders.append(state.order.copy())
        found.append(solver.solution(problem, state, budget).alpha)
        dual = problem.dual(found[-1])
        assert state.dual == pytest.approx(dual, rel=1e-10)
        primal = problem.primal(found[-1] * y, 0.6)
        assert state.gap == pytest.approx(primal - dual, rel=1e-8)
    expected = ascend(K, y, C, orders, loss=loss, fixed_intercept=0.6)
    for ours, (alpha, _) in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, alpha, atol=1e-10)
    again = solver.init(problem, Solution(alpha=found[-1]))  # a start knows its values too
    assert again.dual == pytest.approx(problem.dual(found[-1]), rel=1e-10)
    assert again.bias == 0.6


def test_the_intercept_of_the_exact_problem_is_the_best_to_fix():
    X, y = clouds(n=80, d=3, seed=10)
    rows = KernelRows(X, Gaussian(0.5))
    exact = solve(Problem.of(rows, y, 2.0), tol=1e-10).certificate

    def fixed(b):
        problem = Problem.of(rows, y, 2.0, intercept="none", fixed_intercept=b)
        return solve(problem, tol=1e-8, max_steps=UNLIMITED).certificate

    assert fixed(exact.b).primal == pytest.approx(exact.primal, rel=1e-7)
    for b in (exact.b - 0.3, exact.b + 0.3):
        assert fixed(b).dual > exact.primal


def test_a_start_that_is_worth_nothing_ends_where_it_should():
    # With b = 4 all positive rows are beyond their margins: their multipliers cost more than they gain.
    X, y = clouds(n=30, d=2, seed=11)
    problem = Problem.of(X, y, 1.0, intercept="none", fixed_intercept=4.0)
    proof = certify(problem, Solution(alpha=np.where(y > 0, 1.0, 0.0)))
    assert proof.dual == 0.0


@pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if not kind.takes_fixed_intercept])
def test_other_solvers_refuse_it(name):
    X, y = clouds(n=20, d=2, seed=12)
    rows = KernelRows(X, Linear()) if SOLVERS[name].takes_kernels else X
    problem = Problem.of(rows, y, intercept="none", fixed_intercept=0.5)
    with pytest.raises(ValueError, match=r"fixed at 0\.5"):
        solve(problem, name)


def test_wrong_fixed_intercepts_are_named_with_the_cure():
    X, y = clouds(n=20, d=2, seed=13)
    for b, intercept in ((0.5, "exact"), (0.5, "regularised"), (np.nan, "none"), (np.inf, "none")):
        with pytest.raises(ValueError, match="intercept='none'"):
            Problem.of(X, y, intercept=intercept, fixed_intercept=b)
    problem = Problem.of(X, y, intercept="none", fixed_intercept=0.5)
    with pytest.raises(ValueError, match=r"KernelRows\(X, Linear\(\)\)"):
        solve(problem)
    with pytest.raises(ValueError, match="no fixed intercept"):
        solve_hard_margin(problem)


@pytest.mark.parametrize("loss", ["logistic", "perceptron"])
def test_auto_refuses_what_no_solver_takes(loss):
    X, y = clouds(n=20, d=2, seed=14)
    with pytest.raises(ValueError, match="hinge"):
        solve(Problem.of(KernelRows(X, Linear()), y, loss=loss))
