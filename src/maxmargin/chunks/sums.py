# SPDX-License-Identifier: BSD-3-Clause
"""What the chunks' shares prove, once they are added up: P from above, D from below, rounding included.

    P(w, b)  = 1/2 |w|^2 + r(b) + sum over chunks of their losses
    D(alpha) = sum over chunks of their gains - 1/2 |sum over chunks of V|^2,     V = sum_i alpha_i y_i x_i

Losses and gains of a chunk come from its ``Objective``, the place where every proof has them from. With an
exact intercept alpha has to be balanced, which nobody knows before all chunks are read. So gains, sums of
multipliers and V are kept for the two labels apart: the heavier side is made lighter afterwards, by a
factor t <= 1. A gain g is concave in alpha, and 0 at 0, so that g(t alpha) >= t g(alpha), and the bound
holds for all losses. In the same way all multipliers are made smaller where that is worth more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.chunks.statement import ONE_THREAD, Part, Points, Stated
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import UNIT, combined_rounding
from maxmargin.types import Indices, Vector

_PACKED_SHARE = 0.75
"""The share of the columns up to which those that are not 0 travel with their numbers."""
_ROUNDINGS = 8.0
"""Roundings on the way to a bound besides those of its sums."""


def sides_of(y: Vector) -> Indices:
    """0 for the rows with label 1, and 1 for those with label -1: the order in which sums are kept."""
    return (y < 0.0).astype(np.int64)


def losses_of(problem: Problem, w: Vector, b: float, margins: Vector) -> float:
    """An upper bound on the losses of a chunk's rows at (w, b)."""
    return problem.objective.primal(margins, b, 0.0, problem.rows.lengths, *problem.rows.score_error(w))


def primal_bound(stated: Stated, w: Vector, b: float, losses: float, chunks: int) -> float:
    """P(w, b) from above; ``losses`` are the sum over so many chunks."""
    return (stated.regulariser(w, b) + losses) * (1.0 + (chunks + _ROUNDINGS) * UNIT)


@dataclass
class DualSums:
    """What multipliers add up to, for rows with label 1 and for rows with label -1."""

    gains: Vector
    """Lower bounds on the gains."""
    totals: Vector
    """The sums of the multipliers."""
    vectors: NDArray[np.float64]
    """``sum_i alpha_i x_i``, without signs."""
    off: float
    """The length of what both vectors together may be off by."""
    totals_off: float
    """How far the two totals together may be off."""
    columns: tuple[Indices, int] | None = None
    """The columns that the vectors are of, and how many there are, where not all of them have a place."""
    longest: float = 0.0
    """The length of the longest row, whether it has a multiplier or not."""

    @classmethod
    def of(cls, problem: Problem, alpha: Vector) -> DualSums:
        """The sums of some rows; alpha must be in its box."""
        vectors = problem.rows.combine_groups(alpha, sides_of(problem.y), 2, ONE_THREAD)
        # Both sides' errors together are at most that of one sum over all rows.
        sums = cls(np.zeros(2), np.zeros(2), vectors, problem.rows.combined_error(alpha), 0.0)
        ours, ones = alpha * (problem.y > 0.0), np.ones(len(alpha))
        for side in range(2):
            sums.gains[side] = problem.objective.dual(ours, 0.0, 0.0)
            sums.totals[side] = core.dot(ours, ones)
            ours = alpha - ours
        sums.totals_off = core.sum_rounding(len(alpha)) * float(sums.totals.sum())
        sums.longest = problem.rows.largest_length
        return sums

    @classmethod
    def at_margins(cls, part: Part, points: Points, margins: Vector) -> tuple[Vector, DualSums]:
        """Upper bounds on the losses of some rows at some (w, b), and the sums of multipliers.

        These are ``-C_i loss'(m_i)`` of the margins at the first point, which are written to ``margins``
        where that has room for them. All of it is found in one visit of each row.
        """
        losses, vectors = np.empty(points.count), np.zeros((2, part.rows.columns))
        found = core.add_multipliers(*part.at(points), losses, vectors, margins)
        gains, totals = np.array(found[:2]), np.array(found[2:4])
        totals_off, lengths, terms, longest = found[4:]
        off = combined_rounding(lengths, terms)
        return losses, cls(gains, totals, vectors, off, totals_off, longest=longest)

    def packed(self) -> DualSums:
        """The same sums, without the columns that are 0 where these are many: for the way to the client."""
        used = np.flatnonzero((self.vectors != 0.0).any(axis=0))
        count = self.vectors.shape[1]
        if len(used) > _PACKED_SHARE * count:
            return self
        return replace(self, vectors=self.vectors[:, used], columns=(used.astype(np.int32), count))

    def unpacked(self) -> DualSums:
        """The same sums, all columns in their places."""
        if self.columns is None:
            return self
        vectors = np.zeros((2, self.columns[1]))
        vectors[:, self.columns[0]] = self.vectors
        return replace(self, vectors=vectors, columns=None)

    def plus(self, other: DualSums) -> DualSums:
        """Both sums together, these and those of other rows."""
        if self.columns is not None or other.columns is not None:
            return self.unpacked().plus(other.unpacked())
        size = np.abs(self.gains) + np.abs(other.gains)
        self.gains = self.gains + other.gains - 2.0 * UNIT * size
        self.totals = self.totals + other.totals
        self.totals_off += other.totals_off + 2.0 * UNIT * float(self.totals.sum())
        self.vectors = self.vectors + other.vectors
        both = self.vectors.ravel()  # whose length times the root of 2 is no less than the sum of both
        self.off += other.off + 3.0 * UNIT * math.sqrt(core.dot(both, both))
        self.longest = max(self.longest, other.longest)
        return self

    @property
    def combined(self) -> Vector:
        """``sum_i alpha_i y_i x_i``."""
        return np.asarray(self.vectors[0] - self.vectors[1])

    @property
    def excess(self) -> float:
        """``sum_i alpha_i y_i``."""
        return float(self.totals[0] - self.totals[1])

    def bound(self, stated: Stated, reach: float) -> tuple[float, Vector]:
        """D from below, and the factors on the multipliers of both sides that it is the value of.

        ``reach`` bounds |b| at some optimum, where b is exact.
        """
        factors = np.ones(2)
        if stated.intercept is Intercept.EXACT:
            if not self.totals.min() > 0.0:
                return 0.0, np.zeros(2)
            factors = self.totals.min() / self.totals
        gain = float(factors @ self.gains) - _ROUNDINGS * UNIT * float(np.abs(self.gains).sum())
        scaled = factors[:, np.newaxis] * self.vectors
        size = float(np.sqrt((scaled * scaled).sum(axis=1)).sum())
        v = np.ascontiguousarray(scaled[0] - scaled[1])
        length = math.sqrt(core.dot(v, v)) * (1.0 + core.sum_rounding(len(v)))
        length += self.off + _ROUNDINGS * UNIT * size
        excess = abs(float(factors[0] * self.totals[0] - factors[1] * self.totals[1]))
        excess += self.totals_off + _ROUNDINGS * UNIT * float(self.totals.sum())
        quadratic, linear = 0.5 * length * length, 0.0
        if stated.intercept is Intercept.EXACT:
            linear = reach * excess
        elif stated.intercept is Intercept.REGULARISED:
            quadratic += 0.5 * (stated.intercept_scaling * excess) ** 2
        if not math.isfinite(quadratic + linear) or not gain > linear:
            return 0.0, np.zeros(2)
        part = min(1.0, (gain - linear) / (2.0 * quadratic)) if quadratic > 0.0 else 1.0
        value = part * (gain - linear - part * quadratic)
        value -= _ROUNDINGS * UNIT * part * (gain + linear + part * quadratic)
        return max(value, 0.0), part * factors


def reach_of(stated: Stated, class_costs: tuple[float, float], upper: float, largest: float) -> float:
    """A bound on |b| at some optimum, where the best value is at most ``upper``."""
    if stated.intercept is not Intercept.EXACT:
        return 0.0
    objective = core.Objective(stated.loss, np.array([1.0, -1.0]), np.array(class_costs), "exact", 0.0)
    return objective.reach(upper, largest) + 1e-6  # more than the sums of the costs can change it by
