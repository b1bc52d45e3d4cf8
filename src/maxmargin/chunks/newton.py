# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method in passes, for the squared hinge and the logistic loss.

    1  start from the best point of a sample
    2  pass:  at (w, b) the gradient g, the Hessian H and the multipliers -C_i loss'(m_i); P there and at
              points on the way to it                                             (certificate: P and D)
    3  go to (w, b) - H^-1 g, or to the best of the points on the way if the step was too long; again from 2

The multipliers of the margins are feasible, and D of them is below P by ``1/2 |g|^2`` and what the balance
takes: so the gap falls as fast as the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.method import Method, Point
from maxmargin.chunks.statement import ONE_THREAD
from maxmargin.chunks.sums import DualSums, losses_of
from maxmargin.problem import Intercept, Problem
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Vector

_SHORTER = (0.5, 0.2)
"""The parts of a step at which P is looked at in the pass that takes all of it."""
_NOTHING = 1e-13
"""The share of the largest entry that is added to the diagonal of H where it cannot be factored."""


@dataclass(frozen=True, eq=False)
class NewtonAsk:
    """P at all points, and what a step from the first of them needs."""

    points: tuple[Point, ...]

    def share(self, problem: Problem, chunk: Chunk) -> NewtonShare:
        """The share of a chunk."""
        rows, losses = problem.rows, []
        first: Vector | None = None
        for w, b in self.points:
            margins = problem.margins_of(rows.scores(w, ONE_THREAD), b)
            losses.append(losses_of(problem, w, b, margins))
            first = margins if first is None else first
        assert first is not None
        curvatures = problem.costs * _curvature(problem.loss.name, first)
        by_bias = rows.combine(curvatures, ONE_THREAD)
        hessian = np.empty((rows.columns + 1, rows.columns + 1))
        hessian[:-1, :-1] = rows.gram(curvatures, ONE_THREAD)
        hessian[-1, :-1] = hessian[:-1, -1] = by_bias
        hessian[-1, -1] = curvatures.sum()
        sums = DualSums.of(problem, problem.multipliers(first))
        return NewtonShare(np.array(losses), sums, hessian, 1)


@dataclass(eq=False)
class NewtonShare:
    """The sums of some chunks."""

    losses: Vector
    dual: DualSums
    hessian: NDArray[np.float64]
    """The second derivatives of the losses by (w, b), at the first point."""
    chunks: int

    def plus(self, other: NewtonShare) -> NewtonShare:
        """The sum with that of the chunk after it."""
        self.losses = self.losses + other.losses
        self.dual = self.dual.plus(other.dual)
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

    def ask(self) -> NewtonAsk:
        """What the next pass has to find out."""
        return NewtonAsk(self.points)

    def tell(self, total: NewtonShare) -> None:
        """Take the sums of a pass, and choose where to go."""
        values = self.take_primal(self.points, total.losses, total.chunks)
        self.take_dual(total.dual)
        best = int(np.argmin(values))
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
        scaling = self.stated.intercept_scaling**-2
        ridge = {Intercept.NONE: 0.0, Intercept.REGULARISED: scaling, Intercept.EXACT: 0.0}
        own = ridge[self.stated.intercept]
        gradient = np.append(w - total.dual.combined, own * b - total.dual.excess)
        hessian = total.hessian
        hessian[np.diag_indices(len(w))] += 1.0
        hessian[-1, -1] += own
        sought = len(w) if self.stated.intercept is Intercept.NONE else len(w) + 1
        step = np.zeros(len(w) + 1)
        with one_blas_thread():
            step[:sought] = _solved(hessian[:sought, :sought], gradient[:sought])
        parts = (1.0, *_SHORTER)
        return tuple((w - part * step[:-1], float(b - part * step[-1])) for part in parts)


def _solved(matrix: NDArray[np.float64], vector: Vector) -> Vector:
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
