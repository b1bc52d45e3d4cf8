# SPDX-License-Identifier: BSD-3-Clause
"""What multipliers say about the margin of a row when it is left out of a problem with the hinge.

Let P_i be the objective without row i, and u' one of its minimisers. For any number t, ``P_i - t m_i`` is
the objective of the problem in which the loss of row i is a straight line, and the dual value D_i(alpha, t)
of that problem, the usual one with ``alpha_i = t`` and without a gain of row i, is below it everywhere. At
u', which is worth at most as much as any point u, that reads

    t m_i(u') <= P_i(u) - D_i(alpha, t)        for every t, every u, and all multipliers in their boxes.

A t below 0 bounds the margin from below, one above 0 from above. At an optimum of all rows, t = alpha_i is
the sentence that leaving a row out does not raise its margin. To see that a row stays right, its multiplier
is taken down to 0 and below, and those of the rows near the margin follow, so that the dual value stays as
large as it can: core/linear/left_out.hpp. Only these rows are looked at, and the rest of the multipliers
stays. Any multipliers prove something; good ones decide nearly all rows.

So that they need not turn at every wall on the way, the path starts from multipliers that are a little
softer than the best: those of margins next to 1 are spread between 0 and C, ``C / 2 + k C (1 - m)``.

All bounds are rounded outwards. docs/certificate.md has the proof at more leisure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import UNIT, Matrix
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.left_out import MOST_COLUMNS, Interval, errors_of_margins
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector

_FEWEST, _PER_COLUMN = 64, 4
"""Rows that follow: so many, and so many more for each column, of which an optimum has one on the margin.
A path may cross as many walls, and one more for each column; about 20 are usual."""
_SPREAD = 20.0
"""The distance of the last row that follows from the margin is so many times the soft zone's width."""
_NARROWEST = 1e-6
"""The least such distance, as a margin: below it there is nothing but rounding."""
_MOST_STEPS = 50
"""Newton steps to the soft multipliers; about five are usual."""
_MOST = 2000
"""Rows that follow, at most: there are some numbers for each and every wall that a path crosses."""
_WIDER = 2
"""How many times as many rows follow where the nearest were too few."""
_SHARPER = 10.0
"""How much narrower the soft zone is where points show what crosses the margin: both values lack about its
width, and paths have more walls to cross."""
_FEW = 32
"""Rows, up to which the first paths after points are in double precision already."""
_VECTORS = 8
"""Random vectors that tell how far rows move, to a third or so."""
_CALL, _POINTS = 2048, 256
"""Rows in a call to the core, and points in a pass: some ten milliseconds, after which Ctrl-C is heard."""
_ROUNDINGS = 16.0
"""Roundings on the way to a bound besides those of its longest sum."""


class _Soft(NamedTuple):
    """Groups of equal rows near the margin, with soft multipliers."""

    rows: Indices
    """All of them."""
    group: Indices
    """The group of each."""
    first: Indices
    """A row of each group."""
    signed: Matrix
    """y z of each group."""
    caps: Vector
    """The sum of C_j of each group."""
    slopes: Vector
    values: Vector
    """What their multipliers would be without walls, 0 and cap."""
    point: Vector
    """The minimiser of the soft problem, with b last."""


class HingeWithoutRows:
    """Bounds on the margins that rows have at every optimum of the problem without them, one at a time.

    ``before`` are such bounds with fewer rows that follow. Then those are taken that are nearest to the
    margin by how far they move, and not by distance alone: rows with rare values move far. Where closer
    bounds have been asked for, it is known which rows cross the margin when one of the others is left out,
    and they follow instead; then, or if few rows are left, in double precision and with a narrower zone.
    """

    @one_blas_thread()
    def __init__(
        self, problem: Problem, proof: Certificate, before: HingeWithoutRows | None = None
    ) -> None:
        self.problem, self.proof, rows = problem, proof, problem.rows
        self.exact = problem.intercept is Intercept.EXACT
        self.bias, self.size = problem.bias_feature, rows.columns + (problem.bias_feature != 0.0)
        self.is_able: bool = _can(problem, proof) and (before is None or before.is_able)
        if not self.is_able:
            return
        self.errors = errors_of_margins(problem, proof)
        self.crossings, self.points = np.zeros(rows.count), 0
        self.follows_crossings = before is not None and before.points > 0
        few = before is not None and (before.follows_crossings or before.points <= _FEW)
        self.in_full = self.follows_crossings and few
        regulariser = np.ones(self.size)
        if self.exact:
            regulariser[-1] = 0.0
        soft = self._soft(regulariser, before)
        between = (soft.values > 0.0) & (soft.values < soft.caps)
        inverse = _inverse(_hessian(soft, between, regulariser))
        if inverse is None:
            self.is_able = False
            return
        self.inverse, self.rate = inverse, float(soft.slopes[0] / soft.caps[0])
        self.first: Indices = soft.rows if before is None else before.first
        self.alpha, costs = proof.alpha.copy(), problem.costs[soft.rows]
        self.alpha[soft.rows] = costs * np.clip(soft.values / soft.caps, 0.0, 1.0)[soft.group]
        self.groups = np.full(rows.count, -1)
        self.groups[soft.rows] = soft.group
        self.followers = self._followers(soft, between, inverse)
        self.combined, self.off = self._combined(self.alpha)
        self.dual = problem.dual_of(self.alpha, self.combined[: rows.columns])
        self.last = float(soft.point[-1]) if self.bias else 0.0
        self.margins = problem.margins(soft.point[: rows.columns], self.bias * self.last)

    def _followers(self, soft: _Soft, between: NDArray[np.bool_], inverse: Matrix) -> core.Followers:
        alpha, costs = self.alpha[soft.rows], self.problem.costs[soft.rows]
        counts = np.bincount(soft.group)
        fall, rise = (
            _sums(soft.group, amounts) * (1.0 - 4.0 * (counts + 2) * UNIT)
            for amounts in (alpha, costs - alpha)
        )
        beyond = np.where(between, 0.0, soft.values - soft.caps * (soft.values > 0.0))
        movements = np.empty((len(counts) + 1, self.size))
        movements[:-1], movements[-1] = soft.signed @ inverse, inverse[-1]
        labels = self.problem.y[soft.first]
        products = np.empty((0, 0)) if self.follows_crossings else soft.signed @ movements.T
        return core.Followers(
            soft.first, labels, fall, rise, beyond, soft.slopes, movements, inverse, products
        )

    def bounds(self, which: Indices, targets: Vector, budget: core.Budget) -> Interval:
        """The margins of some rows; paths end where they prove that one is above its target."""
        if not self.is_able:
            return Interval(np.full(len(which), -math.inf), np.full(len(which), math.inf))
        first, group = self._equal(which)
        which, targets = which[first], targets[first]
        multipliers, gains = np.empty(len(which)), np.empty(len(which))
        lacking = 1.0 - self.proof.margins[which] - self.errors[which]
        losses = self.problem.costs[which] * np.maximum(lacking, 0.0)
        primal = self.proof.primal - losses + _ROUNDINGS * UNIT * (self.proof.primal + losses)
        no_points = np.empty((0, self.size))
        for begin in range(0, len(which), _CALL):
            part = slice(begin, begin + _CALL)
            about = self._about(which[part], targets[part], primal[part])
            self._leave(which[part], about, multipliers[part], gains[part], no_points, budget)
        low, high = self._interval(primal, multipliers, gains)
        return Interval(low[group], high[group])

    def closer_bounds(self, which: Indices, targets: Vector, budget: core.Budget) -> Interval:
        """The same with a primal point of each problem's own: it takes passes over all rows."""
        if not self.is_able:
            return Interval(np.full(len(which), -math.inf), np.full(len(which), math.inf))
        first, group = self._equal(which)
        which, targets, self.points = which[first], targets[first], len(first)
        low, high = np.full(len(which), -math.inf), np.full(len(which), math.inf)
        for begin in range(0, len(which), _POINTS):
            if budget.spent:
                break
            part = slice(begin, begin + _POINTS)
            rows = which[part]
            multipliers, gains = np.empty(len(rows)), np.empty(len(rows))
            points = np.zeros((len(rows), self.size))  # of rows that are not reached in time, too
            about = self._about(rows, targets[part], np.zeros(len(rows)))
            self._leave(rows, about, multipliers, gains, points, budget)
            primal = self._primal(rows, points, budget)
            low[part], high[part] = self._interval(primal, multipliers, gains)
        return Interval(low[group], high[group])

    def _equal(self, which: Indices) -> tuple[Indices, Indices]:
        """One of each group of equal rows, whose problems without them are the same, and all groups."""
        problem, rows = self.problem, self.problem.rows
        key = rows.scores(np.random.default_rng(0).normal(size=rows.columns))[which]
        order = np.argsort(key, kind="stable")
        sorted_rows = which[order]
        same = np.zeros(len(which), bool)
        same[1:] = key[order[1:]] == key[order[:-1]]
        for each in (problem.y, problem.costs):
            same[1:] &= each[sorted_rows[1:]] == each[sorted_rows[:-1]]
        alike = np.flatnonzero(same)
        pairs = rows.dense(sorted_rows[alike]) == rows.dense(sorted_rows[alike - 1])
        same[alike] = pairs.all(axis=1)
        group = np.empty(len(which), np.int64)
        group[order] = order[np.maximum.accumulate(np.where(same, 0, np.arange(len(which))))]
        first, group = np.unique(group, return_inverse=True)
        return first, group

    def _about(self, which: Indices, targets: Vector, primal: Vector) -> Matrix:
        """What a path has to know of each row."""
        y, costs, slack = self.problem.y[which], self.problem.costs[which], primal - self.dual
        known = [y, self.alpha[which], costs, self.rate * costs, self.margins[which], slack, targets]
        return np.column_stack(known)

    def _leave(
        self,
        which: Indices,
        about: Matrix,
        multipliers: Vector,
        gains: Vector,
        points: Matrix,
        budget: core.Budget,
    ) -> None:
        """Paths of some rows: where their multipliers end, what is gained, and a point of each."""
        core.leave_out(
            self.problem.rows.compiled,
            self.followers,
            self.combined,
            self.off,
            self.problem.rows.lengths,
            self.bias,
            self.problem.reach(self.proof.primal),
            self.last,
            which,
            self.groups[which],
            about,
            (_FEWEST + self.size) * (_WIDER if self.in_full else 1),
            self.in_full,
            multipliers,
            gains,
            points,
            budget,
        )

    def _interval(self, primal: Vector, multipliers: Vector, gains: Vector) -> Interval:
        """What the inequality says."""
        sizes = np.abs(primal) + abs(self.dual) + np.abs(gains)
        most = primal - self.dual - gains + _ROUNDINGS * UNIT * sizes
        told = np.isfinite(most) & (multipliers != 0.0)
        ends = np.divide(most, multipliers, out=np.zeros(len(most)), where=told)
        spread = 4.0 * UNIT * np.abs(ends)
        low = np.where(told & (multipliers < 0.0), ends - spread, -math.inf)
        return Interval(low, np.where(told & (multipliers > 0.0), ends + spread, math.inf))

    def _primal(self, which: Indices, points: Matrix, budget: core.Budget) -> Vector:
        """At most the objectives without the rows, at their points."""
        problem, rows = self.problem, self.problem.rows
        lengths = np.sqrt(np.square(points if not self.exact else points[:, :-1]).sum(axis=1))
        lengths *= 1.0 + (self.size + _ROUNDINGS) * UNIT
        b = np.zeros(len(points))
        if self.bias:
            b = points[:, -1] = self.bias * points[:, -1]
        sums = np.empty(len(points))
        columns = np.ascontiguousarray(points.T)
        known_rows = (problem.y, problem.costs, self.margins, 0.5 / self.rate)
        out = (sums, self.crossings)
        core.hinges_of_points(rows.compiled, *known_rows, columns, which, *out, budget)
        total = float(problem.costs.sum())
        of_lengths = core.dot(problem.costs, rows.lengths)
        products = (rows.longest + _ROUNDINGS) * UNIT * lengths * of_lengths
        adding = (rows.count + 4.0 * _ROUNDINGS) * UNIT * (sums + (np.abs(b) + 2.0) * total)
        primal: Vector = (0.5 * lengths**2 + sums) * (1.0 + _ROUNDINGS * UNIT) + 1.01 * (products + adding)
        return primal

    def _combined(self, alpha: Vector) -> tuple[Vector, float]:
        """``sum_j alpha_j y_j z_j``, and how far it can be off, as a length."""
        rows, y = self.problem.rows, self.problem.y
        combined, off = np.zeros(self.size), rows.combined_error(alpha * y)
        combined[: rows.columns] = rows.combine(alpha * y)
        if self.bias and not self.exact:
            combined[-1] = self.bias * core.dot(alpha, y)
            off += self.bias * (rows.count + _ROUNDINGS) * UNIT * float(alpha.sum())
        return combined, off

    def _soft(self, regulariser: Vector, before: HingeWithoutRows | None) -> _Soft:
        """The rows nearest to the margin, and the minimiser of the objective that is soft for them."""
        problem, proof, rows = self.problem, self.proof, self.problem.rows
        near = self._near(before)
        count = len(near)
        if before is None:
            farthest = float(np.abs(1.0 - proof.margins[near]).max())
            rate = _SPREAD / max(farthest, _NARROWEST)
        else:
            rate = before.rate * (_SHARPER if self.in_full else 1.0)
        signed = np.full((count, self.size), self.bias)
        signed[:, : rows.columns] = rows.dense(near)
        signed *= problem.y[near, np.newaxis]
        first, group = _equal_rows(signed)
        caps, own = _sums(group, problem.costs[near]), _sums(group, proof.alpha[near])
        signed = np.ascontiguousarray(signed[first])
        others = np.zeros(self.size)
        others[: rows.columns] = proof.w_of_alpha
        point = proof.w
        if self.bias:
            others[-1] = self.bias * core.dot(proof.alpha, problem.y)
            point = np.append(point, proof.b / self.bias)
        others -= signed.T @ own
        soft = _Soft(near, group, near[first], signed, caps, rate * caps, own, point)
        return _minimised(soft, others, regulariser)

    def _near(self, before: HingeWithoutRows | None) -> Indices:
        """The rows that follow."""
        counted, few = self.problem.costs > 0.0, _FEWEST + _PER_COLUMN * self.size
        distances = np.where(counted, np.abs(1.0 - self.proof.margins), math.inf)
        if before is not None and before.points > 0:
            crossings = np.where(counted, before.crossings, 0.0)
            crossings[before.first] = 0.0
            more = min(few, _MOST - len(before.first), int((crossings > 0.0).sum()))
            farthest = np.argpartition(-crossings, max(more - 1, 0))[:more]
            return np.union1d(before.first, farthest)
        if before is not None:
            few *= _WIDER
            distances /= np.maximum(before.movements(), 1e-150)
        few = min(few, _MOST, int(counted.sum()))
        return np.sort(np.argpartition(distances, few - 1)[:few])

    def movements(self) -> Vector:
        """About ``sqrt(z_i'H^-1 z_i)`` of every row, from its products with a few random vectors."""
        rows, random = self.problem.rows, np.random.default_rng(0)
        vectors = np.linalg.cholesky(self.inverse) @ random.normal(size=(self.size, _VECTORS))
        squares = np.zeros(rows.count)
        for vector in vectors.T:
            last = self.bias * vector[-1] if self.bias else 0.0
            squares += (rows.scores(vector[: rows.columns]) + last) ** 2
        return np.sqrt(squares / _VECTORS)


def _can(problem: Problem, proof: Certificate) -> bool:
    """Whether there is something to be done here."""
    rows = problem.rows
    few = rows.columns <= MOST_COLUMNS and rows.offers_single_rows and not rows.has_kernel
    plain = problem.loss.name == "hinge" and problem.fixed_intercept == 0.0
    return few and plain and proof.proven and bool((problem.costs > 0.0).any())


def _equal_rows(matrix: Matrix) -> tuple[Indices, Indices]:
    """A row of each group of equal ones, and the group of every row."""
    key = matrix @ np.random.default_rng(0).normal(size=matrix.shape[1])
    order = np.argsort(key, kind="stable")
    sorted_rows = matrix[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (sorted_rows[1:] != sorted_rows[:-1]).any(axis=1)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(begins) - 1
    return order[begins], group


def _sums(group: Indices, numbers: Vector) -> Vector:
    """The sums of some numbers over each group."""
    return np.bincount(group, numbers).astype(np.float64, copy=False)


def _hessian(soft: _Soft, between: NDArray[np.bool_], regulariser: Vector) -> Matrix:
    z = soft.signed[between]
    hessian: Matrix = z.T @ (soft.slopes[between, np.newaxis] * z)
    hessian[np.diag_indices_from(hessian)] += regulariser
    return hessian


def _inverse(matrix: Matrix) -> Matrix | None:
    try:
        inverse: Matrix = np.linalg.inv(matrix).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None


def _minimised(soft: _Soft, others: Vector, regulariser: Vector) -> _Soft:
    """The same rows at the minimiser of ``1/2 u'Ru - <others, u>`` and their soft losses.

    Newton's method: a soft loss is a parabola between its walls, so that it ends after some steps.
    """

    def at(point: Vector) -> tuple[float, Vector, Vector]:
        lacking = 1.0 - soft.signed @ point
        values = 0.5 * soft.caps + soft.slopes * lacking
        multipliers = np.clip(values, 0.0, soft.caps)
        losses = multipliers * lacking - (multipliers - 0.5 * soft.caps) ** 2 / (2.0 * soft.slopes)
        objective = 0.5 * point @ (regulariser * point) - others @ point + losses.sum()
        return float(objective), values, multipliers

    point, last = soft.point, None
    objective, values, multipliers = at(point)
    for _ in range(_MOST_STEPS):
        between = (values > 0.0) & (values < soft.caps)
        gradient = regulariser * point - others - soft.signed.T @ multipliers
        hessian = _hessian(soft, between, regulariser)
        hessian[np.diag_indices_from(hessian)] += 1e-12 * np.trace(hessian) / len(hessian)
        step = np.linalg.solve(hessian, -gradient)
        size, slope = 1.0, float(gradient @ step)
        while True:
            there, values, multipliers = at(point + size * step)
            if there <= objective + 1e-4 * size * slope + 1e-14 * abs(objective) or size < 1e-6:
                break
            size *= 0.5
        point, objective = point + size * step, there
        if size == 1.0 and last is not None and np.array_equal(last, between):
            break
        last = between if size == 1.0 else None
    return soft._replace(values=values, point=point)
