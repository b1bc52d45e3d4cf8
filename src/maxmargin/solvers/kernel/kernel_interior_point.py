# SPDX-License-Identifier: BSD-3-Clause
"""The interior point method on the kernel matrix itself, one unknown for each distinct point.

The steps are those of solvers/interior_point.py, with w held by its coefficients. Rows whose kernel values
are the same, such as the two of an example in regression, or an example that occurs twice, whatever its
labels, are one point, and the curvatures of its rows add up to H:

    (R + sum_i h_i z_i z_i') p = -g     on the points, with S = H^1/2:
    p = -(g + S q),      (I + S K S) q - S 1 p_b = -S K g,      (S 1)'q + r p_b = -g_b

A step costs a factor of I + S K S, whichever rows are free, and their number hardly depends on the data:
ten to twenty. Where classes overlap and C is large, active sets take more.

It is no solver for every problem, and not in the registry: ``SVC`` and ``SVR`` try it where active sets
gain too little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import blas

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import end_if_stopped
from maxmargin.solvers.interior_point import InteriorPoint, State
from maxmargin.solvers.kernel.kernel_problem import kernel_rows, not_for_pairs
from maxmargin.solvers.second_order.cholesky import cholesky, solved_by
from maxmargin.solvers.second_order.system import NewtonSystem
from maxmargin.solvers.sizes import FACTORED_ROWS, FACTORS_ON_POINTS
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Natural
from maxmargin.tools.side_by_side import side_by_side
from maxmargin.types import Indices, Vector

_SOME = 64
"""Values of a row of the kernel matrix that tell whether another one may be the same."""
_ROWS_OF_PART = 256
"""Rows of the scaled matrix that a thread makes at once, up to the diagonal: about a millisecond."""


@dataclass(frozen=True)
class KernelInteriorPoint(InteriorPoint):
    """The interior point method on the points of a kernel problem; needs memory for all values."""

    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True

    corrections: Natural = 4
    """A factor takes as long as a hundred passes here: two more corrections save one step in twenty."""

    def accepts(self, problem: Problem) -> str | None:
        """Kernel problems with the hinge loss and an exact intercept, of rows that can be factored."""
        if (refusal := not_for_pairs(self.name, problem, twins=True)) is not None:
            return refusal
        if problem.total is not None:
            return f"{self.name} knows no total of the multipliers. Use working_set."
        count = kernel_rows(problem).count
        if count > FACTORED_ROWS:
            return (
                f"{self.name} factors all values of the kernel, for up to {FACTORED_ROWS} rows. Got "
                f"{count} instead. Use working_set."
            )
        return None

    def system(self, problem: Problem) -> NewtonSystem:
        """The system on the points."""
        return KernelSystem(problem)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One predictor-corrector iteration; the last one when the factors are too many."""
        state = super().step(problem, state, budget)
        assert isinstance(state.system, KernelSystem)
        state.finished |= state.system.factors >= FACTORS_ON_POINTS
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The iterate; its neighbour on the walls only where the factor for that is still there."""
        assert isinstance(state.system, KernelSystem)
        if state.system.current is not None:
            return super().solution(problem, state, budget)
        alpha = np.zeros(problem.rows.count)
        alpha[state.active] = state.multipliers[0]
        return Solution(w=state.w.copy(), b=state.b, alpha=alpha, any_length=True)


def points_of(matrix: Matrix) -> tuple[Indices, Indices]:
    """The first of all rows that are the same, in order, and the place of every row among these."""
    some = np.linspace(0, len(matrix) - 1, min(_SOME, len(matrix))).astype(np.intp)
    keys = np.ascontiguousarray(matrix[:, some])
    seen: dict[bytes, list[int]] = {}
    first: list[int] = []
    place = np.empty(len(matrix), np.intp)
    for i, key in enumerate(keys):
        alike = seen.setdefault(key.tobytes(), [])
        same = next((j for j in alike if np.array_equal(matrix[i], matrix[j])), i)
        if same == i:
            alike.append(i)
            place[i] = len(first)
            first.append(i)
        else:
            place[i] = place[same]
    return np.array(first, np.intp), place


class KernelSystem(NewtonSystem):
    """The system of a kernel problem, whose w has a coefficient for each example."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        rows = kernel_rows(problem)
        matrix = rows.all_values()
        rows.forget_values()  # half of them will be overwritten
        self.first, self.place = points_of(matrix)
        """The example that stands for each point, and the point of each example."""
        self.matrix = matrix if len(self.first) == rows.count else matrix[np.ix_(self.first, self.first)]
        """K above the diagonal; the factor has the rest."""
        self.diagonal = np.einsum("ii->i", self.matrix).copy()
        """That of K."""
        self.current: OnPoints | None = None
        """What the factor in memory is of; None before the first one, and where rounding or Ctrl-C has kept
        it from being one."""
        self.twins = isinstance(problem.rows, TwinRows)
        self.factors = 0
        """The factors so far, with those that rounding has kept from being one."""

    def on_points(self, values: Vector) -> Vector:
        """The sums of the examples' numbers over each point."""
        return np.asarray(np.bincount(self.place, values, len(self.first)), np.float64)

    def point_scores(self, coefficients: Vector) -> Vector:
        """``(K c)_p`` of coefficients for each point."""
        on_diagonal = np.einsum("ii->i", self.matrix)
        of_factor = on_diagonal.copy()
        on_diagonal[:] = self.diagonal
        with one_blas_thread():
            scores = blas.dsymv(1.0, self.matrix.T, coefficients, lower=1)
        on_diagonal[:] = of_factor
        return np.asarray(scores)

    def scores(self, step: Vector, budget: Budget) -> Vector:
        """``<p, z_i>`` of all rows."""
        scores = self.point_scores(self.on_points(step[: self.columns]))[self.place]
        scores += step[-1]
        return np.repeat(scores, 2) if self.twins else scores

    def half_size(self, w: Vector, b: float) -> float:
        """``1/2 |w|^2``: b is exact."""
        c = self.on_points(w)
        return 0.5 * core.dot(c, self.point_scores(c))

    def factor(self, curvatures: Vector, budget: Budget) -> OnPoints:
        """Make the system ready for the curvatures h."""
        end_if_stopped(budget)
        of_examples = curvatures.reshape(-1, 2).sum(axis=1) if self.twins else curvatures
        return OnPoints(self, np.sqrt(self.on_points(of_examples)), budget)


class OnPoints:
    """The factor of I + S K S, which lies below the matrix."""

    def __init__(self, system: KernelSystem, root: Vector, budget: Budget) -> None:
        self.system, self.root = system, root
        matrix, firsts = system.matrix, range(0, len(root), _ROWS_OF_PART)
        system.current = None

        def scale(first: int) -> None:
            """Some rows up to the diagonal, from the columns above it."""
            some = slice(first, first + _ROWS_OF_PART)
            for left in range(0, first, _ROWS_OF_PART):
                others = slice(left, left + _ROWS_OF_PART)
                np.multiply(matrix[others, some].T, root[others], out=matrix[some, others])
                matrix[some, others] *= root[some, np.newaxis]
            corner = matrix[some, some]
            lower = np.tri(len(corner), k=-1, dtype=bool)
            np.copyto(corner, corner.T * np.outer(root[some], root[some]), where=lower)

        def scaled() -> Matrix:
            system.factors += 1
            side_by_side([partial(scale, first) for first in firsts], budget.threads)
            np.einsum("ii->i", matrix)[:] = system.diagonal * root * root
            return matrix

        self.factor = cholesky(scaled, np.ones(len(root)), budget)
        self.of_b = solved_by(self.factor, root)
        system.current = self

    def solve(self, gradient: Vector) -> Vector:
        """The step p for the gradient g."""
        system, root = self.system, self.root
        plain = solved_by(self.factor, root * system.point_scores(system.on_points(gradient[:-1])))
        step = -gradient
        step[-1] = (core.dot(root, plain) - gradient[-1]) / core.dot(root, self.of_b)
        step[system.first] -= root * (step[-1] * self.of_b - plain)
        return step
