# SPDX-License-Identifier: BSD-3-Clause
"""Targets: rows that want another score than 1, the proofs about them, and the solvers that take them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from maxmargin import Problem, Rows, Solution, certify, path, solve, solve_hard_margin
from maxmargin.kernels import Gaussian, KernelRows, Linear
from maxmargin.problem.regression import regression_problem, rest_of_walls, walls
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.solvers import SOLVERS
from quadratic_program import solve_by_quadratic_program

FORMS = ("none", "regularised", "exact")
LOSSES = ("hinge", "squared_hinge")
TAKERS = [name for name, solver in SOLVERS.items() if solver.takes_targets]
REGRESSIONS = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}


def drawn(seed=0, n=60, d=4, noise=0.5):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, X @ random.normal(size=d) + 3.0 + noise * random.normal(size=n)


def referee(problem):
    """The optimum of a problem with stored rows, by Clarabel."""
    X = problem.rows.dense(np.arange(problem.rows.count))
    stated = X, problem.y, problem.costs, problem.loss.name, problem.intercept.value
    return solve_by_quadratic_program(*stated, problem.intercept_scaling, targets=problem.targets)[2]


def arbitrary(seed, loss, intercept, n=40):
    """A problem whose signs and targets have nothing to do with each other."""
    random = np.random.default_rng(seed)
    X, signs = random.normal(size=(n, 3)), np.where(random.random(n) < 0.4, -1.0, 1.0)
    targets = random.normal(size=n) * 2.0
    weights = random.uniform(0.1, 2.0, size=n)
    stated = {"loss": loss, "intercept": intercept, "intercept_scaling": 0.7}
    return Problem.of(X, signs, 0.8, weights=weights, targets=targets, **stated)


@pytest.mark.parametrize("intercept", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_of_arbitrary_targets_brackets_the_optimum(loss, intercept):
    problem = arbitrary(3, loss, intercept)
    best = referee(problem)
    model = solve(problem, tol=1e-9)
    proof = model.certificate
    assert model.status.certified
    assert proof.dual <= best * (1 + 1e-8)
    assert proof.primal >= best * (1 - 1e-8)
    assert proof.kkt_violation <= 1e-3
    far = certify(problem, Solution(w=np.full(3, 0.3)))
    assert far.dual <= best <= far.primal


@pytest.mark.parametrize("intercept", FORMS)
@pytest.mark.parametrize("name", TAKERS)
def test_every_solver_that_takes_targets_reaches_the_optimum(name, intercept):
    taken = 0
    for loss in LOSSES:
        problem = arbitrary(1, loss, intercept)
        best = referee(problem)
        if SOLVERS[name].needs_kernels:
            problem = replace(problem, rows=KernelRows(problem.rows, Linear()))
        if SOLVERS[name]().accepts(problem) is not None:
            continue
        taken += 1
        proof = solve(problem, name, tol=1e-6).certificate
        assert proof.relative_gap <= 1e-6
        assert proof.primal == pytest.approx(best, rel=2e-6)
    assert taken or intercept not in ("exact", "none") or SOLVERS[name].needs_kernels


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - set(TAKERS)))
def test_the_other_solvers_refuse_targets_with_a_sentence(name):
    problem = arbitrary(1, "squared_hinge", "exact")
    if SOLVERS[name].needs_kernels:
        problem = replace(problem, rows=KernelRows(problem.rows, Linear()))
    with pytest.raises(ValueError, match="where every target is 1"):
        solve(problem, name)


@pytest.mark.parametrize("loss", [*LOSSES, "logistic"])
@pytest.mark.parametrize("intercept", FORMS)
def test_targets_of_1_say_nothing_new(loss, intercept):
    X, y = drawn()
    signs = np.where(y > 3.0, 1.0, -1.0)
    plain = Problem.of(X, signs, 0.5, loss=loss, intercept=intercept)
    told = Problem.of(X, signs, 0.5, loss=loss, intercept=intercept, targets=np.ones(len(y)))
    models = [solve(problem, tol=1e-8) for problem in (plain, told)]
    np.testing.assert_allclose(models[0].w, models[1].w, rtol=1e-6, atol=1e-9)
    assert models[0].certificate.primal == pytest.approx(models[1].certificate.primal, rel=1e-8)


@pytest.mark.parametrize("loss", REGRESSIONS)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_wide_data_are_solved_by_the_ascent_or_what_takes_over(loss, C):
    random = np.random.default_rng(0)
    X = sparse.random(300, 3000, density=0.02, format="csr", random_state=0)
    y = X @ random.normal(size=3000) + 1.0
    model = solve(regression_problem(X, y, C, epsilon=0.05, loss=loss), tol=1e-4)
    assert model.status.certified
    assert "dual_coordinate_ascent" in model.solver


def test_what_is_for_classification_alone_refuses_targets():
    problem = arbitrary(1, "hinge", "exact")
    with pytest.raises(ValueError, match="path takes problems of classification"):
        path(problem, [1.0])
    with pytest.raises(ValueError, match="hard margin is one of classification"):
        solve_hard_margin(problem)


def test_a_logistic_loss_has_targets_too():
    X, y = drawn()
    signs = np.where(y > 3.0, 1.0, -1.0)
    targets = np.linspace(-1.0, 2.0, len(y))
    problem = Problem.of(X, signs, 0.5, loss="logistic", targets=targets)
    model = solve(problem, tol=1e-9)
    assert model.status.certified
    w, b = model.w, model.b
    margins = signs * (X @ w + b) + 1.0 - targets
    pulls = 0.5 * signs / (1.0 + np.exp(margins))
    np.testing.assert_allclose(w, X.T @ pulls, atol=1e-3)
    assert pulls.sum() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [(np.ones(3), "one number for each of the 2 rows"), ([1.0, np.nan], "must be numbers of at most")],
)
def test_wrong_targets_are_refused(targets, sentence):
    with pytest.raises(ValueError, match=sentence):
        Problem.of(np.eye(2), [1, -1], targets=targets)


# Regression: two rows for each example.


def regression(seed=0, loss="epsilon_insensitive", **options):
    X, y = drawn(seed)
    options = {"C": 0.7, "epsilon": 0.3, "intercept": "exact"} | options
    return regression_problem(X, y, loss=loss, **options)


def test_the_objective_of_a_regression_is_the_one_that_it_is_known_by():
    X, y = drawn()
    random = np.random.default_rng(0)
    for loss, power in (("epsilon_insensitive", 1), ("squared_epsilon_insensitive", 2)):
        weights = random.random(len(y))
        problem = regression_problem(X, y, 0.7, epsilon=0.3, loss=loss, weights=weights)
        w, b = random.normal(size=4), 1.5
        losses = np.maximum(np.abs(y - X @ w - b) - 0.3, 0.0) ** power
        assert problem.primal(w, b) == pytest.approx(0.5 * w @ w + 0.7 * weights @ losses, rel=1e-12)


@pytest.mark.parametrize("loss", REGRESSIONS)
@pytest.mark.parametrize("intercept", FORMS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_every_regression_reaches_its_optimum(loss, intercept, epsilon):
    problem = regression(loss=loss, intercept=intercept, epsilon=epsilon)
    best = referee(problem)
    for name in ("auto", "dual_coordinate_ascent"):
        proof = solve(problem, name, tol=1e-6).certificate
        assert proof.relative_gap <= 1e-6
        assert proof.dual <= best * (1 + 1e-7)
        assert proof.primal >= best * (1 - 1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("size", [0, 8])
def test_a_regression_with_a_kernel_has_one_multiplier_for_both_rows(epsilon, size):
    X, y = drawn(2, n=80)
    for rows in (KernelRows(X, Linear()), KernelRows(X, Gaussian(0.2))):
        problem = regression_problem(rows, y, 0.9, epsilon=epsilon)
        proof = solve(problem, SOLVERS["working_set"](size=size), tol=1e-7).certificate
        assert proof.relative_gap <= 1e-7
        assert not (proof.alpha[::2] * proof.alpha[1::2]).any()
        if isinstance(rows.kernel, Linear):
            assert proof.primal == pytest.approx(referee(regression_problem(X, y, 0.9, epsilon=epsilon)))
        again = solve(problem, start=Solution(alpha=proof.alpha), tol=1e-7)
        assert again.steps == 0


def test_other_solvers_with_kernels_refuse_twins():
    X, y = drawn()
    for name, intercept in (("sequential_minimal_optimization", "exact"), ("kernel_dual_ascent", "none")):
        problem = regression_problem(KernelRows(X, Linear()), y, intercept=intercept)
        with pytest.raises(ValueError, match="share their values"):
            solve(problem, name)


def test_a_weight_is_a_repetition():
    X, y = drawn(4)
    times = np.arange(len(y)) % 3
    weighted = regression_problem(X, y, 0.5, epsilon=0.2, weights=times)
    repeated = regression_problem(np.repeat(X, times, axis=0), np.repeat(y, times), 0.5, epsilon=0.2)
    values = [solve(problem, tol=1e-9).certificate for problem in (weighted, repeated)]
    assert values[0].primal == pytest.approx(values[1].primal, rel=1e-8)
    np.testing.assert_allclose(values[0].w, values[1].w, atol=1e-4)


def test_sparse_is_dense_and_order_does_not_matter():
    X, y = drawn(5)
    X[np.abs(X) < 0.5] = 0.0
    order = np.random.default_rng(1).permutation(len(y))
    problems = [
        regression_problem(layout, values, 0.5, epsilon=0.2)
        for layout, values in ((X, y), (sparse.csr_matrix(X), y), (X[order], y[order]))
    ]
    proofs = [solve(problem, tol=1e-9).certificate for problem in problems]
    for proof in proofs[1:]:
        assert proof.primal == pytest.approx(proofs[0].primal, rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-6, 1.0, 1e7]),
    loss=st.sampled_from(LOSSES),
    intercept=st.sampled_from(FORMS),
)
def test_both_bounds_hold_in_exact_arithmetic(seed, scale, loss, intercept):
    """P is at least the exact value of its point, and D at most the exact value of its multipliers."""
    random = np.random.default_rng(seed)
    n, d = 9, 3
    X, y = random.normal(size=(n, d)), scale * (5.0 + random.normal(size=n))
    problem = Problem.of(
        TwinRows(Rows(X)),
        np.tile([1.0, -1.0], n),
        0.7,
        loss=loss,
        intercept=intercept,
        targets=np.column_stack([y - 0.1 * scale, -(y + 0.1 * scale)]).ravel(),
    )
    w = scale * random.normal(size=d)
    alpha = np.where(random.random(2 * n) < 0.5, 0.0, random.random(2 * n) * 0.7)
    proof = certify(problem, Solution(w=w, alpha=alpha))
    rows = [[Fraction(x) for x in X[i // 2].tolist()] for i in range(2 * n)]
    signs, p = [int(s) for s in problem.y], [Fraction(t) for t in problem.targets.tolist()]
    C = [Fraction(c) for c in problem.costs.tolist()]
    exact_w, b = [Fraction(v) for v in proof.w.tolist()], Fraction(proof.b)
    value = sum(v * v for v in exact_w) / 2
    if intercept == "regularised":
        value += b * b / 2
    for i in range(2 * n):
        lacks = p[i] - signs[i] * (sum(v * x for v, x in zip(exact_w, rows[i], strict=True)) + b)
        value += C[i] * max(Fraction(0), lacks) ** (2 if loss == "squared_hinge" else 1)
    assert Fraction(proof.primal) >= value
    assert proof.primal <= float(value) * (1 + 1e-6) + 1e-9 * scale
    a = [Fraction(x) for x in proof.alpha.tolist()]
    combined = [sum(a[i] * signs[i] * rows[i][j] for i in range(2 * n)) for j in range(d)]
    dual = sum(p[i] * a[i] for i in range(2 * n)) - sum(v * v for v in combined) / 2
    excess = sum(a[i] * signs[i] for i in range(2 * n))
    if loss == "squared_hinge":
        dual -= sum(a[i] * a[i] / (4 * C[i]) for i in range(2 * n))
    if intercept == "regularised":
        dual -= excess * excess / 2
    if intercept == "exact":  # balanced but for rounding, for which the bound makes up
        assert abs(excess) <= Fraction(1, 10**14) * max(1, sum(a))
        dual += abs(excess) * problem.reach()
    assert Fraction(proof.dual) <= dual
    assert proof.dual <= proof.primal


def test_walls_and_their_rest_are_what_was_asked_for():
    y, epsilon = np.array([505.4, -1e-9, 3.0, -7e22]), 1e-12
    width = Fraction(epsilon)
    exact = [end for each in map(Fraction, y) for end in (each - width, -each - width)]
    rounded, rest = walls(y, epsilon), rest_of_walls(y, epsilon)
    assert [Fraction(a) + Fraction(b) for a, b in zip(rounded, rest, strict=True)] == exact
    assert rest_of_walls(y, 0.0) is None
    problem = Problem.of(np.eye(2), [1, -1], targets_rest=np.zeros(2))
    with pytest.raises(ValueError, match="a rest is one of targets"):
        _ = problem.objective
