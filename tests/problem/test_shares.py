# SPDX-License-Identifier: BSD-3-Clause
"""The problems with a nu: their values against a referee, and proofs that hold with rounding included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Problem, Solution, Status, certify, solve
from maxmargin.kernels import Gaussian, Linear
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem.rows import Rows
from maxmargin.problem.shares import (
    largest_nu,
    nu_classification_problem,
    nu_regression_problem,
    one_class_problem,
)
from oracles import shares

KINDS = ["one class", "two classes", "regression"]


def drawn(kind, seed, *, nu=0.4, n=14, kernel=True, weighted=True):
    """A problem, and the arrays that the referee takes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3)) + (2.0 if kind == "one class" else 0.0)
    weights = random.integers(0, 4, size=n).astype(float) if weighted else None
    if weighted:
        weights[:4] = 1.0
    costs = np.ones(n) if weights is None else weights
    rows = KernelRows(Rows(X), Linear()) if kernel else Rows(X)
    if kind == "one class":
        problem = one_class_problem(rows, nu, weights=weights)
        return problem, (X, np.ones(n), costs, np.zeros(n), nu * costs.sum())
    if kind == "two classes":
        y = np.where(X[:, 0] + random.normal(size=n) > 0, 1.0, -1.0)
        y[:4] = [1.0, -1.0, 1.0, -1.0]
        nu = min(nu, largest_nu(costs, y))
        problem = nu_classification_problem(rows, y, nu, weights=weights)
        return problem, (X, y, costs, np.zeros(n), nu * costs.sum())
    values = X @ [1.0, -2.0, 0.5] + random.normal(size=n)
    problem = nu_regression_problem(rows, values, 0.7, nu, weights=weights)
    twice, signs = np.repeat(X, 2, axis=0), np.tile([1.0, -1.0], n)
    targets = np.column_stack([values, -values]).ravel()
    return problem, (twice, signs, 0.7 * np.repeat(costs, 2), targets, 0.7 * nu * costs.sum())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), nu=st.sampled_from([0.05, 0.3, 0.6, 1.0]))
def test_the_gap_bounds_the_truth(kind, seed, nu):
    problem, stated = drawn(kind, seed, nu=nu)
    best = shares.best(*stated, with_b=kind != "one class")[3]
    size = abs(best) + 1e-4 * stated[4]  # the best value may be 0
    model = solve(problem, tol=1e-7, max_steps=200)
    proof = model.certificate
    assert proof.dual <= best + 1e-7 * size
    assert best - 1e-7 * size <= proof.primal
    assert proof.primal - proof.dual <= 1e-5 * size
    for alpha in (np.zeros(problem.rows.count), problem.costs * np.random.default_rng(seed).random()):
        other = certify(problem, Solution(alpha=alpha))
        assert other.dual <= best + 1e-7 * size
        assert other.primal >= best - 1e-7 * size
        assert other.alpha.sum() == pytest.approx(problem.total)


@pytest.mark.parametrize("kind", KINDS)
def test_values_hold_as_fractions(kind):
    problem, stated = drawn(kind, 3, kernel=False)
    X, y, costs, targets, _ = stated
    random = np.random.default_rng(0)
    proof = certify(problem, Solution(w=random.normal(size=3)))
    w, b, e = [Fraction(v) for v in proof.w], Fraction(proof.b), Fraction(proof.shift)
    exact = sum(v * v for v in w) / 2 + Fraction(problem.total) * e
    for row, sign, cost, target in zip(X, y, costs, targets, strict=True):
        score = sum(v * Fraction(x) for v, x in zip(w, row, strict=True)) + b
        exact += Fraction(cost) * max(Fraction(0), Fraction(target) - e - Fraction(sign) * score)
    assert Fraction(proof.primal) >= exact
    assert float(Fraction(proof.primal) - exact) <= 1e-12 * abs(float(exact))
    assert proof.dual <= proof.primal


@pytest.mark.parametrize("kind", KINDS)
def test_multipliers_are_those_of_pairs_of_one_sign(kind):
    problem, (X, y, costs, targets, _) = drawn(kind, 5, weighted=False)
    model = solve(problem, tol=1e-10)
    start = certify(problem, Solution(alpha=np.zeros(len(y)))).alpha
    K = X @ X.T + 1e-9 * np.eye(len(y))
    alpha = shares.pairs_of_one_sign(K, y, costs, targets, start, 20_000)
    for sign in (1.0, -1.0):
        assert alpha[y == sign].sum() == pytest.approx(start[y == sign].sum())
    value = targets @ alpha - 0.5 * (alpha * y) @ K @ (alpha * y)
    assert value == pytest.approx(model.certificate.dual, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_nu_bounds_the_share_of_rows_on_the_wrong_side_and_of_support_vectors(kind):
    random = np.random.default_rng(1)
    X, nu, n = random.normal(size=(300, 3)), 0.3, 300
    rows = KernelRows(Rows(X), Gaussian(0.5))
    values = np.sin(X[:, 0]) + 0.3 * random.normal(size=n)
    problem = {
        "one class": lambda: one_class_problem(rows, nu),
        "two classes": lambda: nu_classification_problem(rows, np.sign(values), nu),
        "regression": lambda: nu_regression_problem(rows, values, 1.0, nu),
    }[kind]()
    proof = solve(problem, tol=1e-9).certificate
    of_examples = (-1, 2) if kind == "regression" else (-1, 1)
    wrong = (proof.margins < 1.0 - 1e-6).reshape(of_examples).any(axis=1).mean()
    support = (proof.alpha > 1e-9).reshape(of_examples).any(axis=1).mean()
    assert wrong <= nu <= support


def test_many_rows_are_put_aside_and_come_back():
    random = np.random.default_rng(2)
    X = random.normal(size=(3000, 4))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=3000) > 0, 1.0, -1.0)
    rows = KernelRows(Rows(X), Gaussian(0.3))
    for problem in (
        one_class_problem(rows, 0.2),
        nu_classification_problem(rows, y, 0.3),
        nu_regression_problem(rows, X[:, 0] ** 2 + 0.1 * y, 1.0, 0.2),
    ):
        model = solve(problem, tol=1e-6)
        assert model.status is Status.CERTIFIED
        assert model.alpha.sum() == pytest.approx(problem.total)


def test_a_run_that_ends_at_once_has_a_proof():
    for kind in KINDS:
        problem, _ = drawn(kind, 7)
        model = solve(problem, tol=1e-12, max_steps=0)
        assert model.certificate.dual <= model.certificate.primal
        assert model.certificate.alpha.sum() == pytest.approx(problem.total)


def test_what_cannot_be_is_refused():
    X, y = np.eye(4), np.array([1.0, 1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match=r"nu is infeasible: it must be at most 0\.5"):
        nu_classification_problem(X, y, 0.6)
    with pytest.raises(ValueError, match="nu must be above 0 and at most 1"):
        one_class_problem(X, 0.0)
    with pytest.raises(ValueError, match="total must be above 0 and at most 4"):
        Problem.of(X, np.ones(4), intercept="none", targets=np.zeros(4), total=5.0)
    with pytest.raises(ValueError, match="A total needs the hinge loss"):
        Problem.of(X, y, loss="logistic", targets=np.zeros(4), total=1.0)
    with pytest.raises(ValueError, match="seeks no shift of the targets"):
        solve(one_class_problem(KernelRows(Rows(X), Gaussian(1.0)), 0.5), "kernel_dual_ascent")
    with pytest.raises(ValueError, match=r"Use working_set, with KernelRows\(X, Linear\(\)\)"):
        solve(one_class_problem(X, 0.5))
