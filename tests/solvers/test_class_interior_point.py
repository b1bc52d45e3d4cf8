# SPDX-License-Identifier: BSD-3-Clause
"""Interior points for all classes at once: the optimum, and where they are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import Problem, Rows, core, solve
from maxmargin.problem.class_rows import class_problem
from maxmargin.solvers.class_interior_point import ClassInteriorPoint, _system
from maxmargin.solving.ways import choose_solver
from tests.quadratic_program import solve_all_classes


def clouds(classes, n=50, d=4, scale=1.0):
    random = np.random.default_rng(0)
    codes = random.permutation(np.arange(n) % classes)
    return scale * (random.normal(size=(n, d)) + random.normal(size=(classes, d))[codes]), codes


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_the_optimum(classes, scale, C):
    X, codes = clouds(classes, scale=scale)
    weights = np.where(np.arange(len(X)) % 6 == 0, 0.0, 1.0 + np.arange(len(X)) % 3)
    constant = 0.5 * scale
    problem = class_problem(Rows(X), codes, classes, C, weights=weights, constant=constant)
    model = solve(problem, ClassInteriorPoint(), tol=1e-7)
    assert model.status.certified
    assert model.steps < 60
    widened = np.column_stack([X, np.full(len(X), constant)])
    best = solve_all_classes(widened, codes, C * weights, classes)[1]
    np.testing.assert_allclose([model.certificate.primal, model.certificate.dual], best, rtol=1e-6)


def test_the_system_is_that_of_its_formula():
    X, codes = clouds(4, n=20)
    problem = class_problem(Rows(X), codes, 4, 1.0, constant=1.0)
    state = ClassInteriorPoint().init(problem, None)
    random = np.random.default_rng(1)
    q, whole = random.random(state.alpha.shape), 4.0 + random.random(20)
    expected = np.eye(20)
    for i in range(20):
        E = np.zeros((4, 3))
        E[codes[i]] = 1.0
        E[problem.rows.others()[i], np.arange(3)] = -1.0
        H = np.diag(q[i]) - np.outer(q[i], q[i]) / whole[i]
        expected += np.kron(np.outer(state.X[i], state.X[i]), E @ H @ E.T)
    np.testing.assert_allclose(_system(state, q, whole, core.ALL_CORES), expected, atol=1e-12)


def test_they_are_chosen_where_sweeps_would_be_many():
    X, codes = clouds(3)
    for scale, name in ((1.0, "crammer_singer"), (100.0, "class_interior_point")):
        problem = class_problem(Rows(scale * X), codes, 3)
        assert choose_solver(problem)[0].name == name
    with pytest.raises(ValueError, match="class_interior_point solves problems of several classes at once"):
        solve(Problem.of(X, np.where(codes, 1.0, -1.0)), ClassInteriorPoint())
