# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method in passes, for the squared hinge and the logistic loss.

    1  start from the best point of a sample
    2  pass:  at (w, b) the gradient g and the multipliers -C_i loss'(m_i); P there and at points on the way
              to it; the Hessian H where the sample's is not enough               (certificate: P and D)
    3  go to (w, b) - H^-1 g, or to the best of the points on the way if the step was too long; again from 2

H is that of the sample where its rows are many beside the columns: its steps are then off by a few
hundredths, and the gap falls by the square of that in every pass. Else, and wherever a pass gained less or
a step was too long, the next pass sums up H over all rows, which serves as long as the gap falls fast. That
is most of the work of a pass of dense rows, and of what travels on a cluster.

The multipliers of the margins are feasible, and D of them is below P by ``1/2 |g|^2`` and what the balance
takes: so the gap falls as fast as the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.chunks.chunk import ROWS_PER_COLUMN, Chunk
from maxmargin.chunks.method import Method, Point
from maxmargin.chunks.statement import ONE_THREAD, Part, Points
from maxmargin.chunks.sums import DualSums
from maxmargin.problem import Intercept
from maxmargin.problem.rows import RowSpace
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Vector

_SHORTER = (0.5, 0.2)
"""The parts of a step at which P is looked at in the pass that takes all of it."""
_FEW_PER_COLUMN = 100
"""Rows of a sample for each column up to which its best point is so far off that the Hessian changes by a
tenth on the way from it: every pass then sums up a new one."""
_SLOW = 0.03
"""The share of the squared gradient that a step may leave, for the same Hessian to be used once more."""
_NOTHING = 1e-13
"""The share of the largest entry that is added to the diagonal of H where it cannot be factored."""


@dataclass(frozen=True, eq=False)
class NewtonAsk:
    """P at all points, and what a step from the first of them needs."""

    points: tuple[Point, ...]
    with_hessian: bool

    @cached_property
    def at(self) -> Points:
        """The points as the core takes them."""
        return Points.of(self.points)

    def share(self, part: Part, chunk: Chunk) -> NewtonShare:
        """The share of a chunk."""
        margins = np.empty(chunk.count if self.with_hessian else 0)
        losses, sums = DualSums.at_margins(part, self.at, margins)
        hessian = None
        if self.with_hessian:
            hessian = _hessian(part.rows, part.problem.costs, part.stated.loss, margins)
        return NewtonShare(losses, sums, hessian, 1)


@dataclass(eq=False)
class NewtonShare:
    """The sums of some chunks."""

    losses: Vector
    dual: DualSums
    hessian: NDArray[np.float64] | None
    """The second derivatives of the losses by (w, b), at the first point, where they were asked for."""
    chunks: int

    def plus(self, other: NewtonShare) -> NewtonShare:
        """The sum with that of the chunk after it."""
        self.losses = self.losses + other.losses
        self.dual = self.dual.plus(other.dual)
        if self.hessian is not None and other.hessian is not None:
            self.hessian += other.hessian
        self.chunks += other.chunks
        return self


class Newton(Method):
    """Newton's steps for one problem, one pass each."""

    name = "newton in passes"
    reason = "Newton's method, the Hessian summed up chunk by chunk"
    alpha_from = "the margins"

    def begin(self) -> None:
        """Start from what the sample suggests."""
        self.points: tuple[Point, ...] = (self.sample_point(),)
        self.before = math.inf
        count = self.setting.sample.count
        self.with_hessian = count < ROWS_PER_COLUMN * self.setting.facts.columns
        self.squared_slope = math.inf
        """The squared length of the gradient, which a gap falls like."""
        self.hessian = np.empty((0, 0))
        """The last one of all rows."""

    def ask(self) -> NewtonAsk:
        """What the next pass has to find out."""
        return NewtonAsk(self.points, self.with_hessian)

    def tell(self, total: NewtonShare) -> None:
        """Take the sums of a pass, and choose where to go."""
        values = self.take_primal(self.points, total.losses, total.chunks)
        self.take_dual(total.dual)
        best = int(np.argmin(values))
        if total.hessian is not None:
            self.hessian = total.hessian
        few = self.setting.sample.count < _FEW_PER_COLUMN * self.setting.facts.columns
        slope = self._gradient(self.points[0], total)
        squared = float(slope @ slope)
        self.with_hessian = few or best != 0 or squared > _SLOW * self.squared_slope
        self.squared_slope = squared
        if best != 0 or not values[0] < self.before:
            # The step was too long: the next pass is for the best point seen.
            self.before = self.primal * (1.0 + 1e-12)
            self.points = (self.point,)
            return
        self.before = values[0]
        self.points = self._steps(self.points[0], total)

    def _steps(self, at: Point, total: NewtonShare) -> tuple[Point, ...]:
        """The point that Newton's step leads to, and some on the way."""
        w, b = at
        gradient = self._gradient(at, total)
        hessian = self.hessian.copy() if len(self.hessian) else self._sample_hessian(at)
        hessian[np.diag_indices(len(w))] += 1.0
        hessian[-1, -1] += self._bias_ridge
        sought = len(w) if self.stated.intercept is Intercept.NONE else len(w) + 1
        step = np.zeros(len(w) + 1)
        with one_blas_thread():
            step[:sought] = solved(hessian[:sought, :sought], gradient[:sought])
        parts = (1.0, *_SHORTER)
        return tuple((w - part * step[:-1], float(b - part * step[-1])) for part in parts)

    @property
    def _bias_ridge(self) -> float:
        """What the regulariser adds to the second derivative by b."""
        return self.stated.intercept_scaling**-2 if self.stated.intercept is Intercept.REGULARISED else 0.0

    def _gradient(self, at: Point, total: NewtonShare) -> Vector:
        """The gradient by (w, b) at the first point of a pass."""
        w, b = at
        return np.append(w - total.dual.combined, self._bias_ridge * b - total.dual.excess)

    def _sample_hessian(self, at: Point) -> NDArray[np.float64]:
        """What the sample suggests for that of all rows."""
        w, b = at
        rows, y, costs = self.sample_rows()
        return _hessian(rows, costs, self.stated.loss, y * (rows.scores(w, ONE_THREAD) + b))


def _hessian(rows: RowSpace, costs: Vector, loss: str, margins: Vector) -> NDArray[np.float64]:
    """``sum_i C_i loss''(m_i) (x_i, 1) (x_i, 1)'``."""
    return moments(rows, costs * _curvature(loss, margins))


def moments(rows: RowSpace, weights: Vector) -> NDArray[np.float64]:
    """``sum_i weight_i (x_i, 1) (x_i, 1)'``."""
    sums = np.empty((rows.columns + 1, rows.columns + 1))
    sums[:-1, :-1] = rows.gram(weights, ONE_THREAD)
    sums[-1, :-1] = sums[:-1, -1] = rows.combine(weights, ONE_THREAD)
    sums[-1, -1] = weights.sum()
    return sums


def solved(matrix: NDArray[np.float64], vector: Vector) -> Vector:
    """The solution of a system whose matrix is positive definite but for rounding."""
    for share in (0.0, _NOTHING, 1e4 * _NOTHING):
        try:
            matrix[np.diag_indices(len(vector))] += share * float(matrix.diagonal().max())
            solved: Vector = cho_solve(cho_factor(matrix, lower=True), vector)
        except LinAlgError:
            continue
        if np.isfinite(solved).all():
            return solved
    return np.asarray(np.linalg.lstsq(matrix, vector)[0], np.float64)


def _curvature(loss: str, margins: Vector) -> Vector:
    """The second derivative of the loss."""
    if loss == "squared_hinge":
        return np.where(margins < 1.0, 2.0, 0.0)
    from scipy.special import expit

    share = expit(-margins)
    return np.asarray(share * (1.0 - share))
