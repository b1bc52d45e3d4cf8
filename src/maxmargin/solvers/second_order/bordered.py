# SPDX-License-Identifier: BSD-3-Clause
"""One factor for the systems of many sets of rows that are near to each other.

    M_JJ t_J + c = right_J,     sum_i t_i - g c = balance,      t known for the rows outside J

M = K + D + r as in solvers/active_set.py, c the change of b, and g what a unit of b takes from the sum. The
factor is that of the rows of a first set J_0. With A the rows that have come since, R those that have gone:

    M_00 t_0 + [1_R  M_0A  1] (p, t_A, c)  =  right_0
    the transpose of this border times t_0, + its corner times (p, t_A, c)  =  (t_R, right_A, balance)

where p are the forces that hold the rows of R. Schur's complement is a system as small as the border B:
with M_00 = L L', the corner minus (L^-1 B)' (L^-1 B). What is kept is L^-1 B, which is half the work of
M_00^-1 B, and the products of its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from maxmargin.core import ALL_CORES, Budget
from maxmargin.problem.rows import Matrix
from maxmargin.solvers.second_order.cholesky import cholesky, half_solved, solved_from_half
from maxmargin.types import Indices, Vector

_BORDER = 0.15
"""Rows in the border of a factor, as a share of its rows: one in six costs as much as another factor, whose
n^3 / 3 multiply-adds answer for n / 6 columns, and what comes next may need either."""

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
        self.first, self.r, self.in_time = J, r, in_time
        self.rows = np.flatnonzero(J)
        if not len(self.rows):
            return
        self.place = np.cumsum(J) - 1
        """The place of a row among those of the factor."""
        among = partial(equations.values, self.rows, self.rows)
        self.factor = cholesky(among, equations.diagonal[self.rows], budget, in_time=in_time)
        self.border: dict[int, int] = {}
        """The columns of ``halves`` for rows that have come or gone; the first is that of b."""
        self.halves: Matrix = half_solved(self.factor, np.ones((len(self.rows), 1)))
        """L^-1 times the border."""
        self.products: Matrix = self.halves.T @ self.halves
        """Of these columns with each other."""
        self._right, self._half = equations.right, half_solved(self.factor, equations.right[self.rows])
        """The last right side of all rows of J_0, and L^-1 times it."""

    def reaches(self, J: Mask) -> bool:
        """Whether the border for J is small enough."""
        if not len(self.rows):
            return not J.any()
        new = [row for row in np.flatnonzero(J ^ self._first(J)) if row not in self.border]
        return len(self.border) + len(new) <= _BORDER * len(self.rows)

    def solve(
        self, equations: Equations, J: Mask, known: Vector, budget: Budget = ALL_CORES
    ) -> tuple[Vector, float]:
        """t, which is ``known`` for the rows outside J; and c."""
        rows = self.rows
        if not len(rows):
            return known, 0.0
        first = self._first(J)
        gone, come = np.flatnonzero(first & ~J), np.flatnonzero(J & ~first)
        still = np.where(J | first, 0.0, known)
        if still.any():
            right = equations.right - equations.matrix @ still
            half = half_solved(self.factor, right[rows])
        else:
            right, half = equations.right, self._half_of(equations.right)
        at = self._columns(equations, gone, come, budget)
        corner = np.zeros((len(at), len(at)))
        inner = slice(len(gone), -1)
        corner[inner, inner] = equations.values(come, come) + np.diag(equations.diagonal[come])
        corner[inner, -1] = corner[-1, inner] = 1.0
        balance = equations.balance - float(still.sum())
        wanted = np.concatenate([known[gone], right[come], [balance]])
        corner -= self.products[np.ix_(at, at)]
        wanted -= (self.halves.T @ half)[at]
        if equations.give is None:
            corner[-1, :] = corner[:, -1] = wanted[-1] = 0.0
            corner[-1, -1] = 1.0
        else:
            corner[-1, -1] -= equations.give
        unknown = _solve(corner, wanted)
        of_border = np.zeros(self.halves.shape[1])
        of_border[at] = unknown
        out = known.copy()
        out[rows] = solved_from_half(self.factor, half - self.halves @ of_border)
        out[gone] = known[gone]
        out[come] = unknown[inner]
        return out, float(unknown[-1])

    def _first(self, J: Mask) -> Mask:
        """J_0 among all rows that there are by now."""
        return np.concatenate([self.first, np.zeros(len(J) - len(self.first), bool)])

    def _half_of(self, right: Vector) -> Vector:
        """L^-1 times a right side, which is often that of the call before."""
        if self._right is not right:
            self._right, self._half = right, half_solved(self.factor, right[self.rows])
        return self._half

    def _columns(self, equations: Equations, gone: Indices, come: Indices, budget: Budget) -> Indices:
        """The columns of ``halves`` for these rows, and that of b; new ones are added."""
        new_gone, new_come = (
            np.array([row for row in rows if row not in self.border], np.intp) for rows in (gone, come)
        )
        if len(new_gone) + len(new_come):
            border = np.zeros((len(self.rows), len(new_gone) + len(new_come)), order="F")
            border[self.place[new_gone], np.arange(len(new_gone))] = 1.0
            border[:, len(new_gone) :] = equations.values(new_come, self.rows).T  # of a symmetric matrix
            known = self.halves.shape[1]
            more = half_solved(self.factor, border, budget, in_time=self.in_time)
            for row in (*new_gone.tolist(), *new_come.tolist()):
                self.border[row] = 1 + len(self.border)
            self.halves = np.asfortranarray(np.concatenate([self.halves, more], axis=1))
            products = np.empty((self.halves.shape[1],) * 2)
            products[:known, :known] = self.products
            products[:, known:] = self.halves.T @ more
            products[known:, :known] = products[:known, known:].T
            self.products = products
        return np.array([self.border[row] for row in (*gone.tolist(), *come.tolist())] + [0], np.intp)


def _solve(matrix: Matrix, right: Vector) -> Vector:
    """The answer, or the shortest of those that come nearest where equal rows leave several."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right)[0], np.float64)
