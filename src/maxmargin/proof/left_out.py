# SPDX-License-Identifier: BSD-3-Clause
"""What a proof says about the margin of a row when it is left out, without another fit.

Let P_i be the objective without row i, u = (w, b) any point, z_j = (x_j, 1), or x_j without intercept, and
1/2 u'Ru the regulariser. Where losses are smooth, the minimisers u + d of P_i are near u, since P_i is
curved:

    P_i(u + d) >= P_i(u) + <g, d> + 1/2 d'Hd        g = Ru - sum_{j != i} a_j y_j z_j, the gradient
                                                    H = R + sum_{j != i} k_j z_j z_j'

with a_j = -C_j loss'(m_j). The curvature k_j is one that row j keeps as long as its margin moves by at most
t_j: 2 C_j for a squared hinge with t_j = 1 - m_j > 0, ``C_j loss''(|m_j| + t_j)`` for the logistic loss.

Let ``|g|^2 = g'H^-1 g`` and ``|d|^2 = d'Hd``. Where |d| is above ``2 |g|``, P_i(u + d) is above P_i(u). If
no margin moves by more than its t_j up to there, all minimisers are inside, as P_i is convex. There
P_i(u) >= P_i(u + d) + 1/2 |d|^2 as well, since u + d is a minimiser. The two lines add up to

    |d|^2 + <g, d> <= 0        or        |d + H^-1 g / 2| <= |g| / 2.

At an optimum u of P, g = a_i y_i z_i. Then the margin of row i is between m_i - a_i z_i'H^-1 z_i and m_i.
The hinge has no curvature: left_out_hinge.py bounds its rows by multipliers.

All bounds are rounded outwards. docs/certificate.md has the proof at more leisure.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem import Problem
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.rows import UNIT, Matrix
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.curvature import Metric, hessian_of, lengths_of
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector

MOST_COLUMNS = 1000
"""Columns up to which a matrix of all pairs of them takes no longer than a fit."""
_POINTS, _MOST_STEPS = 256, 8
"""Points in a pass over rows, and Newton steps from each; two or three are usual."""
_STAYING = 0.5
"""The part of their way to the margin by which rows may move that are said to stay on their side."""
_COMMON_STEPS, _FEW = 2, 64
"""Steps with the Hessian of all rows; then up to so many points get one of their own."""
_FARTHER = 1.5
"""How much farther than the first step the points of a pass may go."""
_ROUNDINGS = 16.0
"""Roundings on the way to a bound besides those of its longest sum."""


class Interval(NamedTuple):
    """Two ends for each row; infinite where nothing is proven."""

    low: Vector
    high: Vector


def errors_of_margins(problem: Problem, proof: Certificate) -> Vector:
    """How far the margins of a certificate can be off."""
    off = proof.off(problem.rows)
    errors: Vector = off.per_length * problem.rows.lengths + off.constant
    return errors + 4.0 * UNIT * (np.abs(proof.margins) + 2.0 * abs(proof.b))


def no_better_without(problem: Problem, proof: Certificate) -> Vector:
    """At most the margins that rows have at any minimiser u' of the problem without them, one at a time.

    ``P(u') >= D`` and ``P_i(u') <= P_i(u)``: the difference is that the loss of the row is at least the one
    at u, less a gap. No loss rises with its margin.
    """
    costs, gap = problem.costs, proof.primal - proof.dual
    gap = (max(gap, 0.0) + 4.0 * UNIT * proof.primal) if proof.proven else math.inf
    counted = costs > 0.0
    errors = errors_of_margins(problem, proof)
    losses = problem.loss.value(proof.margins + errors) * (1.0 - _ROUNDINGS * UNIT)
    losses -= np.divide(gap, costs, out=np.full(len(costs), math.inf), where=counted)
    seen = losses > 0.0
    least = np.where(seen, losses, 1.0) * (1.0 - _ROUNDINGS * UNIT)
    if problem.loss.name == "logistic":
        margins = -least - np.log(-np.expm1(-least))
    else:
        margins = 1.0 - (np.sqrt(least) if problem.loss.name == "squared_hinge" else least)
    highest: Vector = np.where(seen, margins + _ROUNDINGS * UNIT * (1.0 + np.abs(margins)), math.inf)
    return highest


class _Bent(NamedTuple):
    """What every row adds to the lower bound on the objective."""

    multipliers: Vector
    off: Vector
    """How far rounding can put each multiplier off."""
    curvatures: Vector
    ranges: Vector
    """By how much a margin may move until its curvature is lost."""


def _bent(problem: Problem, proof: Certificate, errors: Vector, reach: float) -> _Bent:
    """What rows add; of the squared hinge, those count whose margins lack at least ``reach``."""
    margins, costs, loss = proof.margins, problem.costs, problem.loss
    alpha = loss.multiplier(margins, costs)
    if loss.name == "squared_hinge":
        ranges = 1.0 - margins - errors
        counted = ranges >= reach
        curvatures, steepest = np.where(counted, 2.0 * costs, 0.0), 2.0
    else:
        ranges = np.full(len(margins), reach)
        slopes = -LOSSES["logistic"].derivative(np.abs(margins) + errors + reach)
        curvatures, steepest = costs * slopes * (1.0 - slopes), 0.25
    return _Bent(alpha, steepest * costs * errors + _ROUNDINGS * UNIT * alpha, curvatures, ranges)


class SmoothWithoutRows:
    """Bounds on the margins that rows have at every optimum of a smooth problem without them, one by one.

    ``proof`` is a certificate of the whole problem, and ``reach`` by how much margins may move: a larger
    one allows for more change, and less curvature.
    """

    @one_blas_thread()
    def __init__(self, problem: Problem, proof: Certificate, reach: float) -> None:
        self.problem, self.proof, rows, y = problem, proof, problem.rows, problem.y
        smooth = problem.loss.name in ("squared_hinge", "logistic")
        few = rows.columns <= MOST_COLUMNS and rows.offers_single_rows and not rows.has_kernel
        self.is_able = smooth and few and proof.proven
        if not self.is_able:
            return
        self.errors = errors_of_margins(problem, proof)
        self.bent = _bent(problem, proof, self.errors, reach)
        self.metric = Metric(problem, self.bent.curvatures)
        self.is_able = self.metric.is_sound
        if not self.is_able:
            return
        with_intercept = self.metric.with_intercept
        self.point = np.append(proof.w, proof.b) if with_intercept else proof.w
        self.of_rows = np.hypot(rows.lengths, 1.0 if with_intercept else 0.0)
        self.regulariser = problem.regulariser_diagonal()
        pulls = self.bent.multipliers * y
        gradient = self.regulariser * self.point
        rounding = 4.0 * UNIT * float(np.abs(gradient).sum())
        gradient[: rows.columns] -= rows.combine(pulls)
        if with_intercept:
            gradient[-1] -= pulls.sum()
        sizes = self.bent.off + (len(y) + _ROUNDINGS) * UNIT * self.bent.multipliers
        rounding += float(sizes @ self.of_rows)
        self.rest = float(self.metric.lengths(gradient[:, np.newaxis])[0])
        self.rest += rounding * 1.01 / math.sqrt(self.metric.least)
        self.nearest = 0.0  # the most that a margin moves, in units of how far it may
        self.squared = self.metric.squared_lengths(np.arange(len(y)))
        bending = np.flatnonzero(self.bent.curvatures)
        if len(bending):
            self.nearest = float((np.sqrt(self.squared[bending]) / self.bent.ranges[bending]).max())

    def _own(self, which: Indices) -> tuple[Vector, Vector]:
        """``sqrt(z'H^-1 z)`` of rows without their own curvature, and what that has left of 1.

        ``z'(H - k z z')^-1 z = z'H^-1 z / (1 - k z'H^-1 z)``; no other length grows by more.
        """
        squared, curvatures = self.squared[which], self.bent.curvatures[which]
        left = 1.0 - curvatures * squared * (1.0 + _ROUNDINGS * UNIT)
        left = np.where(left > UNIT**0.5, left, math.nan)
        return np.sqrt(squared / left), left

    def at_optimum(self) -> Interval:
        """The margins of all rows where none is left out: ``|d| <= |g|``."""
        margins, known = self.proof.margins, self.is_able and 2.0 * self.rest * self.nearest < 1.0 - 1e-9
        if not known:
            return _nothing(len(margins))
        away = np.sqrt(self.squared) * self.rest * (1.0 + _ROUNDINGS * UNIT) + self.errors
        return _where(np.ones(len(margins), bool), margins, away + 4.0 * UNIT * np.abs(margins))

    def bounds(self, which: Indices) -> Interval:
        """The margins of some rows."""
        if not self.is_able:
            return _nothing(len(which))
        own, left = self._own(which)
        a, m = self.bent.multipliers[which], self.proof.margins[which]
        rest = self.rest / np.sqrt(left)
        pull = rest + a * own
        known = 2.0 * pull * self.nearest < (1.0 - 1e-9) * np.sqrt(left)
        centre = m - 0.5 * a * own**2
        away = own * 0.5 * (rest + pull)
        away = away * (1.0 + 2.0 * _ROUNDINGS * UNIT) + self.errors[which] + 4.0 * UNIT * np.abs(centre)
        return _where(known, centre, away)

    @one_blas_thread()
    def closer_bounds(self, which: Indices, targets: Vector, budget: core.Budget) -> Interval:
        """The same, from a point of each problem's own: a few Newton steps, with a pass over rows each.

        They end for a row that is known to be on one side of its target.
        """
        low, high = _nothing(len(which))
        newton = self._newton() if self.is_able else None
        if newton is None:
            return Interval(low, high)
        for begin in range(0, len(which), _POINTS):
            part = np.arange(begin, min(begin + _POINTS, len(which)))
            z = self._dense(which[part])
            own = self.bent.multipliers[which[part]] * self.problem.y[which[part]] * z.T
            points = self.point[:, np.newaxis] - self._step(newton, which[part], z, own)
            looked_at, near = self._looked_at(which[part], points), None
            for step in range(_MOST_STEPS):
                if not len(part) or budget.spent or (step > _COMMON_STEPS and len(part) > _FEW):
                    break
                gradients, bounds = self._around(looked_at, which[part], z, points, budget)
                low[part] = np.maximum(low[part], bounds.low)
                high[part] = np.minimum(high[part], bounds.high)
                is_open = ~((low[part] > targets[part]) | (high[part] < targets[part]))
                part, z, points = part[is_open], z[is_open], points[:, is_open]
                gradients = gradients[:, is_open]
                if step < _COMMON_STEPS or len(part) > _FEW:
                    points = points - self._step(newton, which[part], z, gradients)
                else:
                    near = near or self._near(looked_at.among)
                    points = points - self._own_step(looked_at, near, which[part], points, gradients)
        return Interval(low, high)

    def _newton(self) -> Matrix | None:
        """The inverse of the Hessian at the certificate's point."""
        self.curvatures = self._curvatures_at(self.problem, self.proof.margins)
        rest = hessian_of(self.problem, self.curvatures - self.bent.curvatures)
        self.hessian = self.metric.matrix + rest - np.diag(self.regulariser)
        try:
            return np.linalg.inv(self.hessian).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            return None

    @staticmethod
    def _curvatures_at(problem: Problem, margins: Vector) -> Vector:
        if problem.loss.name == "squared_hinge":
            return np.where(margins < 1.0, 2.0 * problem.costs, 0.0)
        slopes = -problem.loss.derivative(margins)
        curvatures: Vector = problem.costs * slopes * (1.0 - slopes)
        return curvatures

    def _near(self, among: Indices) -> Problem:
        """The problem of the rows that are looked at alone, or all of it where these are no copy."""
        problem = self.problem
        if not problem.rows.is_stored or len(among) == problem.rows.count:
            return problem
        mine = {name: getattr(problem, name)[among] for name in ("y", "costs")}
        return replace(problem, rows=problem.rows.take(among), **mine)

    def _own_step(
        self, looked_at: _LookedAt, near: Problem, which: Indices, points: Matrix, gradients: Matrix
    ) -> Matrix:
        """The same with the Hessian of each point, where rows cross the margin and the common one errs."""
        steps, d, among = np.zeros_like(points), near.rows.columns, looked_at.among
        crossing = np.arange(len(among)) if near is not self.problem else among
        for k, i in enumerate(which):
            b = float(points[-1, k]) if self.metric.with_intercept else 0.0
            at_point = self._curvatures_at(near, near.margins(np.ascontiguousarray(points[:d, k]), b))
            curvatures = np.zeros(len(at_point))
            curvatures[crossing] = at_point[crossing]
            curvatures[crossing[among == i]] = 0.0
            hessian = looked_at.matrix + hessian_of(near, curvatures) - np.diag(self.regulariser)
            try:
                steps[:, k] = np.linalg.solve(hessian, gradients[:, k])
            except np.linalg.LinAlgError:
                continue
        return steps

    def _step(self, newton: Matrix, which: Indices, z: Matrix, gradients: Matrix) -> Matrix:
        """Newton steps of the problems without the rows, as columns: the inverse changes by rank one."""
        steps, moves, curvatures = newton @ gradients, newton @ z.T, self.curvatures[which]
        left = np.maximum(1.0 - curvatures * np.einsum("ij,ji->i", z, moves), UNIT**0.5)
        changed: Matrix = steps + moves * (curvatures * np.einsum("ij,ji->i", z, steps) / left)
        return changed

    def _dense(self, which: Indices) -> Matrix:
        z = np.ones((len(which), len(self.point)))
        z[:, : self.problem.rows.columns] = self.problem.rows.dense(which)
        return z

    def _looked_at(self, which: Indices, points: Matrix) -> _LookedAt:
        """Which rows are to be looked at, at points that are not much farther from ours than these.

        A squared hinge is a parabola on either side of 1, so that only those rows matter whose margins
        cross it: ``|<z_j, d>| <= sqrt(z_j'H^-1 z_j) |d|`` says which ones can. All others are in one vector
        and one matrix.
        """
        problem, rows, bent = self.problem, self.problem.rows, self.bent
        counted, held = problem.costs > 0.0, self.regulariser * self.point
        if problem.loss.name != "squared_hinge":
            every = np.flatnonzero(counted)
            matrix = np.diag(self.regulariser)
            return _LookedAt(every, held, matrix, 0.0, 0.0, math.inf, *self._scales_of(every))
        reach = _FARTHER * float(self._distances(points).max())
        ways = np.abs(1.0 - self.proof.margins) * (1.0 - 4.0 * UNIT) - self.errors
        crossing = counted & ~(np.sqrt(self.squared) * reach < _STAYING * ways)
        crossing[which] = counted[which]
        staying = counted & ~crossing
        pulls = np.where(staying, bent.multipliers * problem.y, 0.0)
        gradient = held.copy()
        gradient[: rows.columns] -= rows.combine(pulls)
        if self.metric.with_intercept:
            gradient[-1] -= pulls.sum()
        matrix = self.hessian - hessian_of(problem, np.where(crossing, self.curvatures, 0.0))
        matrix[np.diag_indices_from(matrix)] += self.regulariser
        terms = (rows.count + _ROUNDINGS) * UNIT
        off = float((bent.off + terms * bent.multipliers) @ np.where(staying, self.of_rows, 0.0))
        per_length = 4.0 * (terms + len(matrix) * UNIT) * float(np.trace(self.hessian))
        among = np.flatnonzero(crossing)
        return _LookedAt(among, gradient, matrix, off, per_length, reach, *self._scales_of(among))

    def _scales_of(self, among: Indices) -> tuple[Vector, float, float, float]:
        """What the bounds at all points need of rows, in the order of ``_LookedAt``."""
        bending = self.bent.curvatures > 0.0
        per_range = np.divide(1.0, self.bent.ranges, out=np.zeros(len(bending)), where=bending)
        of_scores = float(self.problem.costs[among] @ self.of_rows[among] ** 2)
        return (
            per_range,
            of_scores,
            float((self.of_rows * per_range).max()),
            float((self.errors * per_range).max()),
        )

    def _distances(self, points: Matrix) -> Vector:
        """``sqrt(d'Hd)`` of the ways to some points, or a little more."""
        return lengths_of(self.metric.factor.T @ (points - self.point[:, np.newaxis])) * self.metric.looser

    def _around(
        self, looked_at: _LookedAt, which: Indices, z: Matrix, points: Matrix, budget: core.Budget
    ) -> tuple[Matrix, Interval]:
        """The gradients of the problems without the rows; their minimisers are as near as these are small.

        With e from a point to its minimiser, |e| <= |g|, if no margin has moved by more than it may, at the
        point and 2 |g| around it.
        """
        problem, rows, loss = self.problem, self.problem.rows, self.problem.loss
        points, count, among = np.ascontiguousarray(points), len(which), looked_at.among
        pulled, sizes, moved = np.empty_like(points), np.empty(count), np.empty(count)
        known_rows = (
            problem.y,
            problem.costs,
            self.of_rows,
            self.proof.margins,
            looked_at.per_range,
            among,
        )
        out = (pulled, sizes, moved)
        core.pulls_of_points(rows.compiled, loss.name, *known_rows, points, which, *out, budget)
        ways = points - self.point[:, np.newaxis]
        held = looked_at.gradient[:, np.newaxis] + looked_at.matrix @ ways
        lengths = lengths_of(points) * (1.0 + (len(points) + _ROUNDINGS) * UNIT)
        steepest = 2.0 if loss.name == "squared_hinge" else 0.25
        of_score = (rows.longest + 2.0 * _ROUNDINGS) * UNIT * lengths  # times |z|: how far a score is off
        off = steepest * of_score * looked_at.of_scores
        off += (rows.count + 2.0 * _ROUNDINGS) * UNIT * sizes + 8.0 * UNIT * np.abs(held).sum(axis=0)
        off += looked_at.off + looked_at.per_length * lengths_of(ways)
        off += 8.0 * UNIT * (float(np.abs(self.regulariser * self.point).sum()) + lengths)
        moved += of_score * looked_at.longest + looked_at.most_off
        moved = np.maximum(moved, _STAYING if len(among) < rows.count else 0.0)
        own, left = self._own(which)
        gradients = held - pulled
        pull = (self.metric.lengths(gradients) + 1.01 * off / math.sqrt(self.metric.least)) / np.sqrt(left)
        known = moved + 2.0 * pull / np.sqrt(left) * self.nearest < 1.0 - 1e-9
        known &= self._distances(points) <= looked_at.reach
        margins = problem.y[which] * np.einsum("ij,ji->i", z, points)
        rounding = (len(points) + _ROUNDINGS) * UNIT * self.of_rows[which] * lengths
        away = own * pull * (1.0 + _ROUNDINGS * UNIT) + 1.01 * rounding
        return gradients, _where(known, margins, away)


class _LookedAt(NamedTuple):
    """The gradient near a point: what rows give that stay on their side of the margin, and which do not."""

    among: Indices
    """The rows that are to be looked at, at every other point."""
    gradient: Vector
    """What all others, and the regulariser, give at the point itself."""
    matrix: Matrix
    """How that changes from there."""
    off: float
    per_length: float
    """How far rounding can put it off, and in addition for each unit of the way to another point."""
    reach: float
    """How far away, as ``sqrt(d'Hd)``, this holds."""
    per_range: Vector
    """One over the range of every row whose curvature counts, else 0."""
    of_scores: float
    """``C_j |z_j|^2``, added up over the rows that are looked at."""
    longest: float
    """The largest ``|z_j|``, in units of the range of its row."""
    most_off: float
    """The largest error of a margin, in the same units."""


def _nothing(count: int) -> Interval:
    return Interval(np.full(count, -math.inf), np.full(count, math.inf))


def _where(known: NDArray[np.bool_], centre: Vector, away: Vector) -> Interval:
    return Interval(np.where(known, centre - away, -math.inf), np.where(known, centre + away, math.inf))
