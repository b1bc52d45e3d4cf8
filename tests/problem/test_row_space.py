# SPDX-License-Identifier: BSD-3-Clause
"""Rows that can do four things and no more, in NumPy: who takes them, and who says what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import Problem, Rows, Solution, Status, certify, path, solve, solve_hard_margin, whole_path
from maxmargin.core import ALL_CORES
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.problem.ranking import ranking_problem
from maxmargin.problem.regression import regression_problem
from maxmargin.problem.rows import RowSpace
from maxmargin.solvers import LINEAR_SOLVERS
from problems import INTERCEPTS, clouds
from toy_solver import ToyGradient

VISIT_SINGLE_ROWS = {
    "active_set",
    "dual_coordinate_ascent",
    "pegasos",
    "perceptron",
    "stochastic_subgradient",
}
NEED_NO_MORE = [
    *(solver() for name, solver in LINEAR_SOLVERS.items() if name not in VISIT_SINGLE_ROWS),
    ToyGradient(),
]


class FourThings(RowSpace):
    """A matrix that is read in whole passes only."""

    def __init__(self, X):
        self.X = np.asarray(X, np.float64)
        self.passes = 0

    @property
    def count(self):
        return len(self.X)

    @property
    def columns(self):
        return self.X.shape[1]

    @property
    def stored(self):
        return self.X.size

    def scores(self, w, budget=ALL_CORES, tell=None):
        self.passes += 1
        return self.X @ w

    def combine(self, coefficients, budget=ALL_CORES):
        self.passes += 1
        return coefficients @ self.X

    def gram(self, weights, budget=ALL_CORES):
        self.passes += 1
        return (self.X.T * weights) @ self.X

    @property
    def squared_norms(self):
        return np.sum(self.X**2, axis=1)


def problems(loss, intercept, n=60, d=4, C=0.1):
    X, y = clouds(n=n, d=d, seed=3)
    return tuple(
        Problem.of(rows, y, C, loss=loss, intercept=intercept) for rows in (FourThings(X), Rows(X))
    )


def test_what_rows_can_do_agrees_with_numpy():
    X, _ = clouds(n=30, d=5, seed=1)
    random = np.random.default_rng(0)
    w, coefficients, weights = random.normal(size=5), random.normal(size=30), random.random(30)
    ours, theirs = Rows(X), FourThings(X)
    first, second = np.array([3, 0, 7]), np.array([1, 3])
    for asked in (
        lambda rows: rows.scores(w),
        lambda rows: rows.combine(coefficients),
        lambda rows: rows.gram(weights),
        lambda rows: rows.squared_norms,
        lambda rows: rows.mean_squared_norm,
        lambda rows: rows.squared_norm(w),
        lambda rows: rows.dense(first),
        lambda rows: rows.block(first, second),
    ):
        np.testing.assert_allclose(asked(ours), asked(theirs), rtol=1e-12)


@pytest.mark.parametrize("solver", NEED_NO_MORE, ids=lambda solver: solver.name)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_four_things_are_enough(solver, loss, intercept):
    ours, theirs = problems(loss, intercept)
    assert solver.accepts(ours) == solver.accepts(theirs)
    if solver.accepts(ours) is not None:
        return
    # Without single rows the subgradient method has no dual polish, and the hinge's margins say little.
    tol = {"subgradient": 0.3 if loss == "hinge" else 1e-2}.get(solver.name, 1e-6)
    found, expected = (solve(problem, solver, tol=tol, max_steps=3000) for problem in (ours, theirs))
    assert found.status is Status.CERTIFIED
    assert ours.rows.passes > 0
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2 * tol)
    again = certify(theirs, Solution(w=found.w, b=found.b, alpha=found.alpha))
    assert again.primal == pytest.approx(found.certificate.primal, rel=1e-12)
    assert again.dual == pytest.approx(found.certificate.dual, rel=1e-9)


@pytest.mark.parametrize("size", [(60, 4), (400, 600)], ids=["small", "wide"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "perceptron"])
def test_the_automatic_choice_takes_them(loss, size):
    problem, same = problems(loss, "exact", *size)
    found, expected = solve(problem), solve(same)
    assert found.status is Status.CERTIFIED
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-4)


def regression(rows, y):
    return solve(regression_problem(rows, rows.scores(np.arange(4.0)) + y, epsilon=0.1))


def ranking(rows, y):
    return solve(ranking_problem(rows, np.round(rows.scores(np.arange(4.0))), query=np.arange(60) // 20))


def hard_margin(rows, y):
    return solve_hard_margin(Problem.of(rows, y, 1.0))


@pytest.mark.parametrize("fit", [regression, ranking, hard_margin], ids=lambda fit: fit.__name__)
def test_what_rests_on_problems_takes_them(fit):
    X, y = clouds(n=60, d=4, seed=3, distance=6.0)
    ours, theirs = fit(FourThings(X), y), fit(Rows(X), y)
    assert ours.status is Status.CERTIFIED
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=2e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_paths_take_them(loss):
    ours, theirs = problems(loss, "exact")
    for along in (lambda p: path(p, [0.1, 1.0, 10.0]), lambda p: whole_path(p, 0.1, 10.0)):
        found, expected = along(ours), along(theirs)
        assert found.certified
        assert found.at(1.0).primal == pytest.approx(expected.at(1.0).primal, rel=0.02)


@pytest.mark.parametrize("name", sorted(VISIT_SINGLE_ROWS))
def test_who_needs_more_says_what(name):
    problem, _ = problems("hinge", "none")
    with pytest.raises(
        ValueError, match=f"{name} visits single rows, .* only offer whole passes. Use newton"
    ):
        solve(problem, name)


def test_what_is_not_offered_is_refused_with_a_sentence():
    X, _ = clouds(n=5, d=2, seed=0)
    for rows in (FourThings(X), KernelRows(X, Gaussian(1.0))):
        assert not rows.offers_single_rows
        assert not rows.is_stored
        for asked in (
            lambda rows: rows.compiled,
            lambda rows: rows.stored_data,
            lambda rows: rows.take(np.array([0])),
        ):
            with pytest.raises(ValueError, match=r"Use maxmargin.Rows\(X\)"):
                asked(rows)
    for asked in (lambda rows: rows.gram(np.ones(5)), lambda rows: rows.dense(np.arange(2))):
        with pytest.raises(ValueError, match="kernel"):
            asked(KernelRows(X, Gaussian(1.0)))


def test_rows_through_a_kernel_forget_what_was_known_without_it():
    X, _ = clouds(n=5, d=2, seed=0)
    plain = Rows(X)
    assert np.all(plain.squared_norms != 1.0)
    np.testing.assert_allclose(KernelRows(plain, Gaussian(1.0)).squared_norms, 1.0)
