# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest

from maxmargin import LinearSVC, Problem, solve
from maxmargin.core import ALL_CORES
from maxmargin.solvers import InteriorPoint, Newton
from maxmargin.solving.rotated import Rotated


def dependent(seed, n=40, d=60, rank=5):
    """Rows of low rank, whose columns differ by six orders of magnitude."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, rank)) @ random.normal(size=(rank, d)) * 10.0 ** random.uniform(-3, 3, d)
    return X, np.where(random.random(n) < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
@pytest.mark.parametrize(("loss", "solver"), [("hinge", InteriorPoint()), ("logistic", Newton())])
def test_the_problem_on_singular_vectors_is_the_same(loss, solver, intercept):
    X, y = dependent(seed=1)
    problem = Problem.of(X / np.abs(X).max(), y, 1.0, loss=loss, intercept=intercept)
    model = solve(problem, Rotated(solver), tol=1e-9)
    assert model.certificate.relative_gap <= 1e-9
    plain = solve(problem, solver, tol=1e-9)
    assert model.certificate.primal == pytest.approx(plain.certificate.primal, rel=3e-9)
    np.testing.assert_allclose(X @ model.w, X @ plain.w, atol=1e-3 * np.abs(X @ plain.w).max())


def test_directions_of_rounding_are_left_out():
    X, y = dependent(seed=2)
    problem = Problem.of(X, y, 1.0)
    state = Rotated(InteriorPoint()).init(problem, None)
    assert state.problem.rows.columns == len(state.directions) == 5
    np.testing.assert_allclose(state.directions @ state.directions.T, np.eye(5), atol=1e-14)
    zeros = Rotated(InteriorPoint()).init(Problem.of(np.zeros((4, 3)), [1.0, -1.0, 1.0, -1.0], 1.0), None)
    assert zeros.problem.rows.columns == 1


def test_large_rows_are_refused():
    problem = Problem.of(np.ones((1200, 920)), np.where(np.arange(1200) % 2, 1.0, -1.0), 1.0)
    assert "singular vectors" in Rotated(InteriorPoint()).accepts(problem)
    assert Rotated(InteriorPoint()).accepts(Problem.of(*dependent(seed=3), 1.0)) is None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_large_costs_on_dependent_columns_are_certified(loss, seed):
    X, y = dependent(seed, n=70, d=140, rank=8)
    model = LinearSVC(C=1e5, loss=loss, random_state=0, n_jobs=1).fit(100.0 * X, y)
    assert model.certificate_.relative_gap <= model.tol


@pytest.mark.parametrize("columns", [15, 400])
def test_large_rows_and_costs_leave_no_rounding_in_newtons_sums(columns):
    """The first multipliers of the logistic loss are twelve orders above the last ones."""
    random = np.random.default_rng(columns)
    X = 1e6 * random.normal(size=(12, columns))
    problem = Problem.of(X, np.where(np.arange(12) % 2, 1.0, -1.0), 1e5, loss="logistic")
    newton = Newton()
    state = newton.init(problem, None)
    for _ in range(100):
        state = newton.step(problem, state, ALL_CORES)
        if newton.report(state).finished:
            break
    assert newton.report(state).gap <= 1e-12
    assert solve(problem, newton, tol=1e-6).status.certified
