# SPDX-License-Identifier: BSD-3-Clause
"""The copy in single precision that the sweeps of dual coordinate ascent read where rows are large."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, solve
from maxmargin.problem.regression import regression_problem
from maxmargin.solvers import DualCoordinateAscent, dual_coordinate_ascent
from maxmargin.solvers.ascent.extrapolation import most_moves


def wide_problem(loss):
    random = np.random.default_rng(4)
    # Thirds are rounded in float32, so that the problem of the copy is another one.
    X = sparse.random_array((300, 200), density=0.1, rng=4, format="csr") / 3.0
    values = X @ random.normal(size=200) + 0.1 * random.normal(size=300)
    if loss.endswith("insensitive"):
        return regression_problem(X, values, 2.0, loss=loss)
    return Problem.of(X, np.where(values > np.median(values), 1.0, -1.0), 2.0, loss=loss)


@pytest.mark.parametrize(
    "loss", ["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"]
)
def test_it_gives_the_optimum_of_the_rows_themselves(loss, monkeypatch):
    problem = wide_problem(loss)
    solver = DualCoordinateAscent(seed=1)
    assert solver.init(problem, None).data is problem.rows.compiled  # these rows are small
    expected = solve(problem, solver, tol=1e-11, max_steps=20_000)
    monkeypatch.setattr(dual_coordinate_ascent, "CACHED_VALUES", 0)
    state = solver.init(problem, None)
    assert state.data is not problem.rows.compiled
    assert state.copied == 4 * problem.rows.stored
    # Tighter than float32 can tell: the last steps have to be on the rows themselves.
    model = solve(problem, solver, tol=1e-11, max_steps=20_000)
    assert expected.status.certified
    assert model.status.certified
    assert model.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-10)


def test_moves_have_the_room_that_it_leaves(monkeypatch):
    problem = wide_problem("hinge")
    solver = DualCoordinateAscent()
    alone = most_moves(problem, solver.init(problem, None))
    monkeypatch.setattr(dual_coordinate_ascent, "CACHED_VALUES", 0)
    assert most_moves(problem, solver.init(problem, None)) < alone
