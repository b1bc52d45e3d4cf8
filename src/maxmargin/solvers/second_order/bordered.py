# SPDX-License-Identifier: BSD-3-Clause
"""One factor for the systems of many sets of rows that are near to each other.

    M_JJ t_J + c = right_J,     sum_i t_i - g c = balance,      t known for the rows outside J

M = K + D + r as in solvers/active_set.py, c the change of b, and g what a unit of b takes from the sum. The
factor is that of the rows of a first set J_0. With A the rows that have come since, R those that have gone:

    M_00 t_0 + [1_R  M_0A  1] (p, t_A, c)  =  right_0
    the transpose of this border times t_0, + its corner times (p, t_A, c)  =  (t_R, right_A, balance)

where p are the forces that hold the rows of R. Schur's complement is a system as small as the border.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from maxmargin.core import ALL_CORES, Budget
from maxmargin.problem.rows import Matrix
from maxmargin.solvers.base import end_if_stopped
from maxmargin.solvers.second_order.cholesky import cholesky, solved_by
from maxmargin.tools.side_by_side import side_by_side
from maxmargin.types import Indices, Vector

_BORDER = 0.15
"""Rows in the border of a factor, as a share of its rows: one in six costs as much as another factor, whose
n^3 / 3 multiply-adds answer for n / 6 columns, and what comes next may need either."""

_COLUMNS_OF_PART = 64
"""Columns of a border that a thread solves for at once: with 8,000 rows a tenth of a second."""
ONE_CORE = Budget(math.inf, 1)
"""What there is for a border where nothing else is said."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Equations:
    """What all the sets have in common."""

    matrix: Matrix
    """K of all rows that may be in a set."""
    diagonal: Vector
    """D + r."""
    right: Vector
    balance: float
    give: float | None
    """g; None: there is no b, and no balance to keep."""

    def values(self, first: Indices, second: Indices) -> Matrix:
        """K between some rows and others, in memory of its own."""
        if first is second and len(first) == len(self.matrix):
            return self.matrix.copy()
        return self.matrix[np.ix_(first, second)]


class Bordered:
    """The factor of J_0, and what it has answered for rows that came and went.

    Rows keep their numbers from one call to the next; there may be more of them later, behind these.
    """

    def __init__(
        self, equations: Equations, J: Mask, r: float, budget: Budget = ALL_CORES, *, in_time: bool = False
    ) -> None:
        self.first, self.r = J, r
        self.rows = np.flatnonzero(J)
        if not len(self.rows):
            return
        self.place = np.cumsum(J) - 1
        """The place of a row among those of the factor."""
        among = partial(equations.values, self.rows, self.rows)
        self.factor = cholesky(among, equations.diagonal[self.rows], budget, in_time=in_time)
        self.border: dict[int, int] = {}
        """The columns of ``answers`` for rows that have come or gone."""
        self.answers: Matrix = solved_by(self.factor, np.ones((len(self.rows), 1)))
        """M_00^-1 times the border, first that of b."""

    def reaches(self, J: Mask) -> bool:
        """Whether the border for J is small enough."""
        if not len(self.rows):
            return not J.any()
        new = [row for row in np.flatnonzero(J ^ self._first(J)) if row not in self.border]
        return len(self.border) + len(new) <= _BORDER * len(self.rows)

    def solve(
        self, equations: Equations, J: Mask, known: Vector, budget: Budget = ONE_CORE
    ) -> tuple[Vector, float]:
        """t, which is ``known`` for the rows outside J; and c."""
        rows = self.rows
        if not len(rows):
            return known, 0.0
        first = self._first(J)
        gone, come = np.flatnonzero(first & ~J), np.flatnonzero(J & ~first)
        still = np.where(J | first, 0.0, known)
        right = equations.right - equations.matrix @ still if still.any() else equations.right
        plain = solved_by(self.factor, right[rows])
        border = np.zeros((len(rows), len(gone) + len(come) + 1))
        border[self.place[gone], np.arange(len(gone))] = 1.0
        border[:, len(gone) : -1] = equations.values(come, rows).T  # of a symmetric matrix
        border[:, -1] = 1.0
        answers = self._answers(np.concatenate([gone, come]), border, budget)
        corner = np.zeros((border.shape[1], border.shape[1]))
        inner = slice(len(gone), -1)
        corner[inner, inner] = equations.values(come, come) + np.diag(equations.diagonal[come])
        corner[inner, -1] = corner[-1, inner] = 1.0
        balance = equations.balance - float(still.sum())
        wanted = np.concatenate([known[gone], right[come], [balance]])
        if equations.give is None:
            corner[-1, :] = corner[:, -1] = border[:, -1] = answers[:, -1] = wanted[-1] = 0.0
            corner[-1, -1] = 1.0
        else:
            corner[-1, -1] = -equations.give
        unknown = _solve(corner - border.T @ answers, wanted - border.T @ plain)
        out = known.copy()
        out[rows] = plain - answers @ unknown
        out[gone] = known[gone]
        out[come] = unknown[inner]
        return out, float(unknown[-1])

    def _first(self, J: Mask) -> Mask:
        """J_0 among all rows that there are by now."""
        return np.concatenate([self.first, np.zeros(len(J) - len(self.first), bool)])

    def _answers(self, rows: Indices, border: Matrix, budget: Budget) -> Matrix:
        new = [k for k, row in enumerate(rows) if row not in self.border]
        if new:
            more = np.asfortranarray(border[:, new])

            def answer(some: slice) -> None:
                end_if_stopped(budget)
                if budget.spent:
                    raise TimeoutError
                more[:, some] = solved_by(self.factor, more[:, some])

            parts = [slice(k, k + _COLUMNS_OF_PART) for k in range(0, len(new), _COLUMNS_OF_PART)]
            side_by_side([partial(answer, some) for some in parts], budget.threads)
            self.border |= {int(rows[k]): self.answers.shape[1] + n for n, k in enumerate(new)}
            self.answers = np.concatenate([self.answers, more], axis=1)
        return self.answers[:, [self.border[int(row)] for row in rows] + [0]]


def _solve(matrix: Matrix, right: Vector) -> Vector:
    """The answer, or the shortest of those that come nearest where equal rows leave several."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right)[0], np.float64)
