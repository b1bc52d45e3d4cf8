# SPDX-License-Identifier: BSD-3-Clause
"""A solver that sees the rows in the directions of their singular vectors, X = U S V'.

With w = V u the problem is the same, |w| = |u| and <w, x_i> = <u, (US)_i>, on columns at right angles. The
matrix of a second-order step is then S (U'HU) S + R. However the columns of X are scaled or depend on each
other, S only scales it, which a factor does not see: nothing is lost but by curvatures H that differ by
orders of magnitude. Directions whose singular value is rounding are left out. The decomposition costs as
much as some steps, so this is for data on which steps without it get nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from maxmargin.core import ALL_CORES, Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix, Rows
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import AnySolver, Report, Solver
from maxmargin.solvers.sizes import AFFORDABLE_STEP
from maxmargin.tools.one_blas_thread import one_blas_thread

_EPSILON = float(np.finfo(np.float64).eps)
"""The least singular value that is not rounding, in units of the largest and of the longer side of X."""


@dataclass
class State:
    """The problem as it is solved, and what has come of it."""

    problem: Problem
    """On the columns of US."""
    directions: Matrix
    """V', one direction in each row."""
    inner: Any
    """The state of the solver."""


@dataclass(frozen=True)
class Rotated(Solver[State]):
    """Another solver, on rows whose columns are at right angles."""

    name: ClassVar[str] = "rotated"
    solver: AnySolver
    seed: int = 0

    def accepts(self, problem: Problem) -> str | None:
        """What the solver takes, where the singular vectors take well below a second."""
        rows = problem.rows
        if rows.has_kernel or rows.count * rows.columns * min(rows.count, rows.columns) > AFFORDABLE_STEP:
            return "The singular vectors of these rows take too long. Scale the features to similar ranges."
        return self.solver.accepts(problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin at zero: a start from the other columns has got nowhere."""
        twins = isinstance(problem.rows, TwinRows)
        given = problem.rows.examples if isinstance(problem.rows, TwinRows) else problem.rows
        with one_blas_thread():
            X = given.dense(np.arange(given.count), ALL_CORES)
            U, sizes, directions = np.linalg.svd(X, full_matrices=False)
        least = _EPSILON * max(X.shape) * sizes[0]
        rank = max(1, int(np.count_nonzero(sizes > least)))
        rows = Rows(np.ascontiguousarray(U[:, :rank] * sizes[:rank]), keep_zeros=True)
        rotated = replace(problem, rows=TwinRows(rows) if twins else rows)
        return State(rotated, np.ascontiguousarray(directions[:rank]), self.solver.init(rotated, None))

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """A step of the solver."""
        state.inner = self.solver.step(state.problem, state.inner, budget)
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The solver's multipliers as they are, and its u as w = V u."""
        found = self.solver.solution(state.problem, state.inner, budget)
        if found.w is None:
            return replace(found, w_of_alpha=None)
        return replace(found, w=found.w @ state.directions, w_of_alpha=None, margins=None)

    def report(self, state: State) -> Report:
        """What the solver tells."""
        return self.solver.report(state.inner)

    def at_once(self, tol: float) -> Rotated:
        """With a solver that takes several steps in a call."""
        return replace(self, solver=self.solver.at_once(tol))
