# SPDX-License-Identifier: BSD-3-Clause
"""What a certificate says about predictions: scores that hold the best model's, and rows that are decided.

Let (w*, b*) be a best point, g the gap of a certificate, and v = sum_i alpha_i y_i x_i of its
multipliers. Then

    1/2 |w - w*|^2 + 1/2 |v - w*|^2 <= g,

as docs/certificate.md proves. So w* is at most sqrt(2 g) from w. It is nearer where v is near w: the sum is
|w* - (w + v) / 2|^2 + |w - v|^2 / 4, so that with d = |w - v|

    |w - w*| <= r = d / 2 + sqrt(g - d^2 / 4),      at most sqrt(2 g), and sqrt(g) where w = v.

The score of a row x moves by at most r |x|, and b does as follows.

* There is none, or it is fixed: not at all.
* It is regularised: (w, b / s) is a point like w, so the score moves by at most sqrt(2 g (|x|^2 + s^2)).
* It is exact: b* is best for the scores f* of w*, each of which is between f_i - r |x_i| and f_i + r
  |x_i|. The slope of P by b, ``sum_i C_i y_i loss'(y_i (f_i + b))``, grows with b and with every f_i, as
  losses are convex. So where it is negative at some b for all f_i + r |x_i|, it is negative there for f*,
  and b* is above that b; in the same way from above. Only the sign of the slope decides, with an error
  bound on its sum.

A hard margin is no different: its 1/2 |w|^2 is as convex, and b* is the largest ``1 - f*_i`` of the
positive rows and the smallest ``-1 - f*_i`` of the negative ones.

All bounds are rounded outwards, and what rounding can do to a computed score is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem import Intercept
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.rows import UNIT
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.proof.certificate import Certificate, Off

Matrix = NDArray[np.float64]

_ROUNDINGS = 16.0
"""Roundings on the way to a bound besides those of its longest sum."""
_NO_SLOPE = 1e-60
"""The share of all costs below which a slope is taken for none: a checker need not tell it from 0."""
_STEPS_OUTWARDS = 60
"""Steps, each four times as long as the last, after which no bound on b is found."""


class Neighbourhood(NamedTuple):
    """Where the best points of a problem are, as seen from the point (w, b) of its certificate."""

    radius: float
    """w* is at most this far from w; of a regularised intercept, (w*, b* / s) from (w, b / s)."""
    low: float
    high: float
    """Every b* is between the two; b itself where it moves with w or not at all."""
    scaling: float = 0.0
    """s where the intercept is regularised, else 0."""


NOWHERE = Neighbourhood(math.inf, -math.inf, math.inf)
"""What is known of the best point where nothing is proven."""


class Side(NamedTuple):
    """What the rows of a problem are to it, without their values."""

    y: Vector
    costs: Vector
    lengths: Vector
    """|x_i|, or the square roots of k(x_i, x_i)."""
    loss: str
    intercept: Intercept
    scaling: float
    errors: Vector
    """How far the computed score of each row can be off."""
    has_kernel: bool
    hard: bool
    targets: Vector | None = None
    """p_i; None where all of them are 1."""
    group: int = 1
    """How many rows in turn share one loss, that of the smallest margin."""
    total: float | None = None
    """What the multipliers add up to where the targets have a shift; None where not."""

    def margins_of(self, scores: Vector, b: float) -> Vector:
        """The margins of rows with these scores."""
        margins = self.y * (scores + b)
        return margins if self.targets is None else margins + (1.0 - self.targets)

    def scores_of(self, margins: Vector, b: float, shift: float = 0.0) -> Vector:
        """The scores, without b, of rows with these margins; off by a few roundings of both and of 1."""
        if self.targets is None:
            return self.y * margins - b
        return self.y * (margins - ((1.0 - self.targets) + shift)) - b


def neighbourhood(proof: Certificate, side: Side) -> Neighbourhood:
    """Where the best points are, of a problem whose certificate and rows these are."""
    if not (proof.proven and math.isfinite(proof.primal) and math.isfinite(proof.dual)):
        return NOWHERE
    radius = _radius(proof, side)
    if side.intercept is Intercept.REGULARISED:
        return Neighbourhood(radius, proof.b, proof.b, side.scaling)
    if side.intercept is Intercept.NONE and side.total is None:
        return Neighbourhood(radius, proof.b, proof.b)
    scores, reach = _scores_and_reach(proof, side, radius)
    if side.total is not None:
        return Neighbourhood(radius, *_with_shift(side, scores, reach))
    if side.hard:
        return Neighbourhood(radius, *_hard_intercepts(side, scores, reach))
    low = _beyond(side, scores + reach, -1.0)
    high = _beyond(side, scores - reach, 1.0)
    return Neighbourhood(radius, min(low, proof.b), max(high, proof.b))


def _scores_and_reach(proof: Certificate, side: Side, radius: float) -> tuple[Vector, Vector]:
    """The scores of rows, without b, and how far those of the best w can be from them."""
    shift = 0.0 if side.total is None else proof.shift
    scores = side.scores_of(proof.margins, proof.b, shift)
    errors = _errors(proof, side) + 4.0 * UNIT * (np.abs(scores) + abs(proof.b))
    if side.targets is not None:
        errors += 8.0 * UNIT * (1.0 + abs(shift) + np.abs(side.targets))
    return scores, (radius * side.lengths + errors) * (1.0 + _ROUNDINGS * UNIT)


def _errors(proof: Certificate, side: Side) -> Vector:
    """How far the scores behind a certificate's margins can be off, which others' may have been made of."""
    derived: Off | None = getattr(proof, "derived", None)  # that of a hard margin has none
    if derived is None:
        return side.errors
    return side.errors + (derived.per_length * side.lengths + derived.constant)


def _radius(proof: Certificate, side: Side) -> float:
    """How far w* can be from w."""
    gap = _up(max(proof.primal - proof.dual, 0.0) + 2.0 * UNIT * abs(proof.primal))
    most = math.sqrt(2.0 * gap)
    if side.hard:
        # The feasible point is (w, b) over the smallest margin, which is 1 but for rounding.
        most += abs(math.sqrt(core.dot(proof.w, proof.w)) - math.sqrt(2.0 * proof.primal))
    elif side.intercept is not Intercept.REGULARISED and (
        proof.dual > 0.0 or side.total is not None  # else 0 is a bound without alpha
    ):
        apart = min(_distance(proof, side), most)
        most = min(most, 0.5 * apart + math.sqrt(max(gap - 0.25 * apart**2, 0.0)))
    return _up(most)


def _distance(proof: Certificate, side: Side) -> float:
    """At most how far w is from ``sum_i alpha_i y_i x_i``; infinite where that takes values of a kernel."""
    if side.has_kernel:
        return 0.0 if np.array_equal(proof.w, proof.w_of_alpha) else math.inf
    difference = proof.w - proof.w_of_alpha
    rounding = (len(proof.alpha) + _ROUNDINGS) * UNIT * core.dot(proof.alpha, side.lengths)
    if proof.derived is not None:
        rounding += proof.derived.combined
    return _up(
        math.sqrt(core.dot(difference, difference)) * (1.0 + (len(difference) + 8) * UNIT) + rounding
    )


def _with_shift(side: Side, scores: Vector, reach: Vector) -> tuple[float, float]:
    """All b that can be the best one where the targets have a shift e; without an intercept, all e.

    Rows of sign y see y b + e alone: each sign has a level of its own, with half of the total.
    """
    assert side.total is not None
    assert side.targets is not None
    kinks = side.targets - side.y * scores
    levels = [
        _level(kinks[own], reach[own], side.costs[own], total) for own, total in _sides_of_levels(side)
    ]
    if side.intercept is Intercept.NONE:
        return levels[0]
    above, below = levels
    return 0.5 * (above[0] - below[1]), 0.5 * (above[1] - below[0])


def _sides_of_levels(side: Side) -> list[tuple[NDArray[np.bool_], float]]:
    """The rows that share a level, and what their multipliers add up to."""
    assert side.total is not None
    if side.intercept is Intercept.NONE:
        return [(np.ones(len(side.y), bool), side.total)]
    return [(side.y == sign, 0.5 * side.total) for sign in (1.0, -1.0)]


def _level(kinks: Vector, reach: Vector, costs: Vector, total: float) -> tuple[float, float]:
    """Between which values u minimises ``total u + sum_i C_i max(0, k_i - u)``, each k_i within its reach.

    u is at least every value above which kinks cost more than the total, and at most one above which they
    cost less: both are looked for with all kinks as low, or as high, as they can be.
    """
    trifle = (len(kinks) + _ROUNDINGS) * UNIT * (total + float(costs.sum()))
    ends = []
    for sign, level in ((-1.0, total + trifle), (1.0, total - trifle)):
        moved = kinks + sign * reach
        moved += sign * _ROUNDINGS * UNIT * np.abs(moved)
        order = np.argsort(-moved)
        place = int(np.searchsorted(np.cumsum(costs[order]), level, "right" if sign < 0.0 else "left"))
        ends.append(float(moved[order[place]]) if place < len(order) else -math.inf)
    return ends[0], ends[1]


def _hard_intercepts(side: Side, scores: Vector, reach: Vector) -> tuple[float, float]:
    """All b that can be the best one of a hard margin."""
    counted = side.costs > 0.0
    ours, theirs = counted & (side.y > 0.0), counted & (side.y < 0.0)
    if not (ours.any() and theirs.any()):
        return -math.inf, math.inf
    low = max((1.0 - scores - reach)[ours].max(), (-1.0 - scores - reach)[theirs].min())
    high = min((1.0 - scores + reach)[ours].max(), (-1.0 - scores + reach)[theirs].min())
    trifle = _ROUNDINGS * UNIT * (1.0 + abs(low) + abs(high))
    return float(low - trifle), float(high + trifle)


def _beyond(side: Side, scores: Vector, direction: float) -> float:
    """A b that is on one side of all best ones for these scores: below them for -1, above them for 1."""
    stated = side.loss, side.y, side.costs, Intercept.EXACT.value, 0.0
    objective = core.Objective(*stated, side.targets)
    b = objective.best_intercept(scores)[1 if direction < 0.0 else 2]
    loss, step, total = LOSSES[side.loss], UNIT * (1.0 + abs(b)), float(side.costs.sum())
    for _ in range(_STEPS_OUTWARDS):
        if not math.isfinite(b):
            break
        # The slope grows with every score: those moved by as much as rounding can be give a bound on it.
        largest = 1.0 if side.targets is None else 1.0 + np.abs(side.targets)
        moved = scores - direction * 8.0 * UNIT * (np.abs(scores) + abs(b) + largest)
        pulls = side.costs * side.y * loss.derivative(side.margins_of(moved, b))
        error = (len(pulls) + 2.0 * _ROUNDINGS) * UNIT * float(np.abs(pulls).sum()) + _NO_SLOPE * total
        if direction * float(pulls.sum()) > error:
            return b
        b, step = b + direction * step, 4.0 * step
    return math.copysign(math.inf, direction)


def _up(number: float) -> float:
    """A little more than a number that is not negative."""
    return math.nextafter(number * (1.0 + 8.0 * UNIT), math.inf)


def score_bounds(
    scores: Matrix, lengths: Vector, errors: Matrix, places: Sequence[Neighbourhood], intercepts: Vector
) -> tuple[Matrix, Matrix]:
    """Two matrices between which the scores of the best models are, one column for each problem.

    ``scores`` are computed ones, with their intercepts, and ``errors`` how far off they can be.
    """
    low, high = np.full(scores.shape, -math.inf), np.full(scores.shape, math.inf)
    for k, (place, b) in enumerate(zip(places, intercepts.tolist(), strict=True)):
        if not math.isfinite(place.radius):
            continue
        reach = place.radius * np.hypot(lengths, place.scaling) + errors[:, k]
        reach = reach * (1.0 + _ROUNDINGS * UNIT) + 4.0 * UNIT * (np.abs(scores[:, k]) + abs(b))
        below, above = place.low - b, place.high - b
        low[:, k] = scores[:, k] - reach + (below - 4.0 * UNIT * abs(below))
        high[:, k] = scores[:, k] + reach + (above + 4.0 * UNIT * abs(above))
    return np.nextafter(low, -math.inf), np.nextafter(high, math.inf)


def margin_bounds(proof: Certificate, side: Side) -> tuple[Vector, Vector]:
    """Two vectors between which the margins of a problem's own rows are at every optimum."""
    scores, errors, b = side.y * proof.margins, _errors(proof, side), np.array([proof.b])
    place = neighbourhood(proof, side)
    low, high = score_bounds(scores[:, np.newaxis], side.lengths, errors[:, np.newaxis], [place], b)
    ours = side.y > 0.0
    return np.where(ours, low[:, 0], -high[:, 0]), np.where(ours, high[:, 0], -low[:, 0])


class SettledRows(NamedTuple):
    """What is proven of the multipliers of rows at the optimum."""

    idle: NDArray[np.bool_]
    """The margin is above 1, so the multiplier is 0: without the row, the optimum is the same."""
    at_cost: NDArray[np.bool_]
    """The loss is the hinge and the margin is below 1, so the multiplier is C_i; of a group their sum."""


def settled_rows(proof: Certificate, side: Side) -> SettledRows:
    """The rows that cannot be support vectors, and those that are at C: at the optimum, not only here.

    A multiplier there is ``-C_i loss'(m_i)``, of which a hinge knows only 0 above a margin of 1, and C_i
    below it. The logistic loss has neither, and a hard margin has no C.
    """
    if side.total is not None:
        return _settled_by_levels(proof, side)
    return settled_by(margin_bounds(proof, side), side)


def _settled_by_levels(proof: Certificate, side: Side) -> SettledRows:
    """The same where targets have a shift: rows whose kinks are on one side of every best level.

    The shift of the optimum is not that of the certificate, so margins alone do not tell.
    """
    assert side.total is not None
    assert side.targets is not None
    idle, at_cost = side.costs == 0.0, np.zeros(len(side.costs), bool)
    if proof.proven and math.isfinite(proof.primal) and math.isfinite(proof.dual):
        scores, reach = _scores_and_reach(proof, side, _radius(proof, side))
        kinks = side.targets - side.y * scores
        reach = reach + _ROUNDINGS * UNIT * (np.abs(side.targets) + np.abs(scores) + reach)
        for own, total in _sides_of_levels(side):
            low, high = _level(kinks[own], reach[own], side.costs[own], total)
            idle[own] |= kinks[own] + reach[own] < low
            at_cost[own] = (kinks[own] - reach[own] > high) & (side.costs[own] > 0.0)
    return SettledRows(idle, at_cost)


def settled_by(margins: tuple[Vector, Vector], side: Side) -> SettledRows:
    """The same, from bounds on the margins that are known."""
    low, high = (each.reshape(-1, side.group).min(axis=1) for each in margins)
    costs = side.costs[:: side.group]
    return SettledRows(
        (low > 1.0) & (side.loss in ("hinge", "squared_hinge")) | (costs == 0.0),
        (high < 1.0) & (side.loss == "hinge" and not side.hard) & (costs > 0.0),
    )


def linear_errors(coef: Matrix, lengths: Vector, terms: int) -> Matrix:
    """How far computed scores of linear models can be off: as many roundings as there are products."""
    norms = np.sqrt(np.square(coef).sum(axis=1)) * (1.0 + (coef.shape[1] + 8) * UNIT)
    errors: Matrix = (terms + _ROUNDINGS) * UNIT * np.outer(lengths, norms)
    return errors


def kernel_errors(
    value_error: float, each: Sequence[Vector], of_support: Vector, of_rows: Vector, columns: int
) -> Matrix:
    """How far computed scores of kernel models can be off: by the errors of values, and by their sum.

    ``each`` holds the coefficients of the support vectors in each problem, ``of_support`` and ``of_rows``
    are lengths of images, in units of which ``value_error`` is. With a linear kernel, a sum over the
    support vectors may have come first, and then one over the columns.
    """
    relative = 1.01 * (value_error + (len(of_support) + columns + _ROUNDINGS) * UNIT)
    sums = np.array([core.dot(np.abs(coefficients), of_support) for coefficients in each])
    errors: Matrix = relative * np.outer(of_rows, sums)
    return errors
