# SPDX-License-Identifier: BSD-3-Clause
"""How far scores may still change, and how the losses of rows outside of the band are curved.

Near a point the hinges of many rows together are curved, as if each were rounded off over the margins that
it may still have. With H, the sum of these curvatures and that of the regulariser, the score of a row may
still change by about ``|L^-1 (x, 1)|`` times something that is the same for all rows, H = L L': its
*spread*. A row that has a column that few others have may change by far more than they. So the distance
from the margin is told in spreads where it decides which rows are kept, and how the others are folded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from maxmargin.chunks.newton import moments, solved
from maxmargin.chunks.statement import ONE_THREAD
from maxmargin.problem.rows import Rows, RowSpace
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Vector

Hessian = NDArray[np.float64]
"""The second derivatives by (w, b)."""

_PROJECTIONS = 16
"""Random projections for spreads, which are then right within a third, mostly. As many as fill the
registers of the core."""
_REACHES = 2.0 ** np.arange(-5, 3)
"""Where zones end, as distances of margins from 1; the last one has no end."""
_MIDDLES = np.append(_REACHES, 2.0 * _REACHES[-1]) / math.sqrt(2.0)
"""The distance that stands for those of each zone."""
_TAIL = 3.0
"""The power of the distance by which curvature falls beyond the width: a row that is far is not nothing,
where a column has few rows; without tails steps along such columns are far too long."""
_RIDGE = 1e-10
"""The share of the mean curvature that is added to that of b, which may have none."""
_FIRST_WIDTH = 2.0
"""The width that hinges of the band are rounded off within at first, in units of the band's own."""
_NARROWER = 3.0
"""How many times narrower the width is from one round to the next."""
_STEPS = 6
"""Newton's steps in one round: the next one corrects what is left."""
_LEAST_GAIN = 1e-2
"""What a step gains, in units of the squared width times the sum of the costs, from which another one is
worth it in its round: rounding off itself costs about a tenth of that."""
_LEAST_STEP = 1e-3
"""The part of a step that is the last one tried."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The spreads of rows, up to a factor."""

    units: NDArray[np.float64]
    """Random directions, in units in which the Hessian is the same in all of them."""
    shifts: Vector
    """Their products with the point around which b and w vary apart."""
    least: float
    """What b alone contributes."""

    @classmethod
    def of_hessian(cls, hessian: Hessian, with_intercept: bool, seed: int) -> Spread:
        """The spreads that a Hessian tells, whose w part is positive definite."""
        A, mean, least = hessian[:-1, :-1], np.zeros(len(hessian) - 1), 0.0
        if with_intercept:
            of_b = hessian[-1, -1] + _RIDGE * float(np.trace(A)) / len(mean)
            mean, least = hessian[:-1, -1] / of_b, 1.0 / of_b
            A = A - of_b * np.outer(mean, mean)
            A[np.diag_indices(len(mean))] += _RIDGE * float(np.trace(A)) / len(mean)
        directions = np.random.default_rng([seed, 1]).normal(size=(len(mean), _PROJECTIONS))
        with one_blas_thread():
            units = solve_triangular(np.linalg.cholesky(A), directions, lower=True, trans="T")
        units = np.ascontiguousarray(units) / math.sqrt(_PROJECTIONS)
        return cls(units, mean @ units, least)

    def of(self, rows: Rows) -> Vector:
        """The spread of each row."""
        scores = rows.scores_at(np.ascontiguousarray(self.units.T))
        scores -= self.shifts[:, np.newaxis]
        np.square(scores, out=scores)
        squares = scores.sum(axis=0)
        spreads: Vector = np.sqrt(squares + max(self.least, 1e-300))
        return spreads


@dataclass(eq=False)
class Zones:
    """Second moments of rows, apart for each of some zones of distances from the margin.

    Rows that take less room than their moments stay rows until others are added: so they travel.
    """

    columns: int
    sums: NDArray[np.float64] | None = None
    """For each zone the sum of ``C_i (x_i, 1) (x_i, 1)'``."""
    rows: list[tuple[Any, Vector, Vector]] = field(default_factory=list)
    """Rows that are not in these sums yet: X, the costs, the distances."""

    def add(self, X: Any, costs: Vector, distances: Vector) -> None:
        """Add rows."""
        self.rows.append((X, costs, distances))
        if X.shape[0] >= len(_MIDDLES) * self.columns:
            self._add_up()

    def plus(self, other: Zones) -> None:
        """Take in the zones of the chunk after it."""
        self._add_up()
        if other.sums is not None:
            self.sums = other.sums if self.sums is None else self.sums + other.sums
        self.rows = other.rows
        self._add_up()

    def _add_up(self) -> None:
        for X, costs, distances in self.rows:
            if self.sums is None:
                self.sums = np.zeros((len(_MIDDLES), self.columns + 1, self.columns + 1))
            rows = Rows(X, check_finite=False, keep_zeros=True)
            places = np.searchsorted(_REACHES, distances)
            for zone in range(len(_MIDDLES)):
                ours = places == zone
                if ours.any():
                    self.sums[zone] += moments(rows, np.where(ours, costs, 0.0))
        self.rows = []

    def hessian(self, width: float) -> Hessian:
        """The curvature of the losses where hinges are rounded off within a width, with tails."""
        self._add_up()
        if self.sums is None:
            return np.zeros((self.columns + 1, self.columns + 1))
        return np.asarray(np.tensordot(curvatures(_MIDDLES, width), self.sums, 1))


def curvatures(distances: Vector, width: float) -> Vector:
    """The curvature of a row's loss, by its distance from the margin."""
    return (0.5 / width) * np.minimum(1.0, width / np.maximum(distances, 1e-300)) ** _TAIL


@dataclass(frozen=True, eq=False)
class Around:
    """What is known of all but some rows near (w, b): a slope and a Hessian, the regulariser's with it."""

    at: Vector
    """(w, b)."""
    slope: Vector
    hessian: Hessian
    with_intercept: bool

    def lowest(
        self, rows: RowSpace, y: Vector, costs: Vector, least: float, near: Vector | None = None
    ) -> Vector:
        """The best (w, b), nearly, where some rows have their hinges.

        By Newton's method on hinges that are rounded off within a width, about that of the band at first
        and then less and less; where a point ``near`` the best one is known, the last ones will do.
        """
        margins = y * (rows.scores(self.at[:-1], ONE_THREAD) + self.at[-1])
        width = max(least, _FIRST_WIDTH * float(np.abs(margins - 1.0).max(initial=0.0)))
        point, sought = self.at.copy(), len(self.at) - (0 if self.with_intercept else 1)
        if near is not None:
            point, width = near, min(width, _NARROWER * least)
        while True:
            for _ in range(_STEPS):
                margins = y * (rows.scores(point[:-1], ONE_THREAD) + point[-1])
                alpha = costs * np.clip(0.5 + 0.5 * (1.0 - margins) / width, 0.0, 1.0)
                slope = self.slope + self.hessian @ (point - self.at)
                slope[:-1] -= rows.combine(alpha * y, ONE_THREAD)
                slope[-1] -= float(alpha @ y)
                near = np.where(np.abs(margins - 1.0) < width, costs / (2.0 * width), 0.0)
                hessian = self.hessian + moments(rows, near)
                step = np.zeros(len(point))
                with one_blas_thread():
                    step[:sought] = solved(hessian[:sought, :sought], slope[:sought])
                along = y * (rows.scores(step[:-1], ONE_THREAD) + step[-1])
                part, gain = self._part(point, step, margins, along, costs, width, float(slope @ step))
                point = point - part * step
                if gain <= _LEAST_GAIN * width * width * float(costs.sum()):
                    break
            if width <= least:
                return point
            width = max(least, width / _NARROWER)

    def _part(
        self,
        point: Vector,
        step: Vector,
        margins: Vector,
        along: Vector,
        costs: Vector,
        width: float,
        slope: float,
    ) -> tuple[float, float]:
        """The part of a step that gains enough, and what it gains."""
        before, part = self._value(point, margins, costs, width), 1.0
        while True:
            gain = before - self._value(point - part * step, margins - part * along, costs, width)
            if gain >= 0.1 * part * slope:
                return part, gain
            part *= 0.5
            if part < _LEAST_STEP:
                return 0.0, 0.0

    def _value(self, point: Vector, margins: Vector, costs: Vector, width: float) -> float:
        change = point - self.at
        inside = np.clip(1.0 - margins + width, 0.0, 2.0 * width)
        losses = inside * inside / (4.0 * width) + np.maximum(1.0 - margins - width, 0.0)
        return float(costs @ losses + self.slope @ change + 0.5 * change @ self.hessian @ change)
