# SPDX-License-Identifier: BSD-3-Clause
"""Whether the best point of a problem is where a model file says it is.

A file says that |w - w*| <= radius, and that every best b is from low to high. With the exact gap g of the
model's point and its multipliers, v = w(alpha) and d = |w - v|,

    |w - w*|^2 <= 2 g       and, unless b is regularised,       |w - w*| <= d / 2 + sqrt(g - d^2 / 4),

so the radius has to be at least the smaller of the two. Where b is free, the slope of P by b,

    S(b; f) = sum_i C_i y_i loss'(y_i (f_i + b) + 1 - p_i),

does not decrease when b or any score f_i grows, and the scores of w* are within radius |x_i| of those of
w. So S(low) < 0 for the largest of these scores proves that all best b are above low, and S(high) > 0 for
the smallest that they are below high. docs/sure.md has the proofs.

With a nu, rows of sign y see u = y b + e alone, and the best u of each sign minimises T' u + sum_i C_i
max(0, k_i - u), k_i = p_i - y_i f_i, with half of the total, T'. So u is at least every level above which
all k_i, as low as they can be, cost more than T', and at most one above which they, as high as they can be,
cost less. Without an intercept there is one u, the shift e itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from maxmargin.independent.arithmetic import Interval, Vector, exponential, root_above, total
from maxmargin.independent.values import ZERO, ExactProblem, Proof


class Place(NamedTuple):
    """Where a file says that the best point is; its numbers may be infinite."""

    radius: float
    low: float
    high: float
    scaling: float


def wrong_place(proof: Proof, place: Place) -> Iterator[str]:
    """What a file says of the best point and its proof, one with a finite C, does not."""
    if not math.isfinite(place.radius):
        return
    problem, b = proof.problem, proof.b
    radius = Fraction(place.radius)
    if not _is_within(proof, radius):
        yield "the best w is not shown to be as near as the file says"
    if problem.total is not None:
        low, high = _levels(proof, radius)
        if not (_is_below(place.low, low) and _is_below(-place.high, None if high is None else -high)):
            yield "the best intercept is not shown to be between the ends that the file names"
        return
    if problem.intercept != "exact":
        scaling = problem.scaling if problem.intercept == "regularised" else ZERO
        if not (place.low <= b <= place.high) or Fraction(place.scaling) < scaling:
            yield "the file says that the intercept moves otherwise than it does"
        return
    scores = proof.scores
    reaches = [radius * root_above(problem.rows.squared_length(i).high) for i in range(len(scores))]
    if math.isfinite(place.low):
        highest = [score.high + reach for score, reach in zip(scores, reaches, strict=True)]
        if _slope(problem, highest, Fraction(place.low)).high >= 0:
            yield "the best intercept is not shown to be above the low end that the file names"
    if math.isfinite(place.high):
        lowest = [score.low - reach for score, reach in zip(scores, reaches, strict=True)]
        if _slope(problem, lowest, Fraction(place.high)).low <= 0:
            yield "the best intercept is not shown to be below the high end that the file names"


def _is_below(end: float, level: Fraction | None) -> bool:
    """Whether a low end is below a level; None stands for no level."""
    return end == -math.inf or (level is not None and Fraction(end) <= level)


def _levels(proof: Proof, radius: Fraction) -> tuple[Fraction | None, Fraction | None]:
    """Between which values every best b is or, without an intercept, every best shift; None: no bound."""
    problem, free = proof.problem, proof.problem.intercept == "exact"
    ends = []
    for sign in (1, -1) if free else (1,):
        own = [i for i in problem.counted if not free or problem.y[i] == sign]
        ends.append([_level(proof, radius, own, side) for side in (-1, 1)])
    if not free:
        return ends[0][0], ends[0][1]
    (low, high), (other_low, other_high) = ends
    return (
        None if low is None or other_high is None else (low - other_high) / 2,
        None if high is None or other_low is None else (high - other_low) / 2,
    )


def _level(proof: Proof, radius: Fraction, own: list[int], side: int) -> Fraction | None:
    """A bound on u of one sign: from below for a side of -1, from above for 1."""
    problem = proof.problem
    assert problem.total is not None
    wanted = problem.total / (2 if problem.intercept == "exact" else 1)
    kinks = []
    for i in own:
        score, reach = proof.scores[i], radius * root_above(problem.rows.squared_length(i).high)
        target = Fraction(1) if problem.targets is None else problem.targets[i]
        ends = [target - problem.y[i] * end for end in score]
        kinks.append(((min(ends) - reach) if side < 0 else (max(ends) + reach), problem.costs[i]))
    cost = ZERO
    for kink, own_cost in sorted(kinks, reverse=True):
        cost += own_cost
        if cost > wanted or (side > 0 and cost == wanted):
            return kink
    return None


def _is_within(proof: Proof, radius: Fraction) -> bool:
    """Whether one of the two bounds shows that w* is within a radius around w."""
    nearer = proof.problem.intercept != "regularised" and _by_both_points(proof) <= radius
    return nearer or root_above(2 * (proof.primal.high - proof.lower_bound)) <= radius


def _by_both_points(proof: Proof) -> Fraction:
    """``d / 2 + sqrt(g - d^2 / 4)``."""
    problem, w, v = proof.problem, proof.w, proof.w_of_alpha
    gap = proof.primal.high - proof.lemma_bound
    places = w.numerators.keys() | v.numerators.keys()
    difference = Vector({place: w[place] - v[place] for place in places})
    apart = min(root_above(problem.rows.squared_norm(difference).high), root_above(2 * gap))
    return apart / 2 + root_above(max(gap - apart**2 / 4, ZERO))


def _slope(problem: ExactProblem, scores: Sequence[Fraction], b: Fraction) -> Interval:
    """An interval around S(b; f)."""
    ends: tuple[list[Fraction], list[Fraction]] = [], []
    for i in problem.counted:
        y, missing = problem.y[i], ZERO if problem.targets is None else 1 - problem.targets[i]
        pull = _pull(problem.loss, y * (scores[i] + b) + missing).times(-y * problem.costs[i])
        ends[0].append(pull.low)
        ends[1].append(pull.high)
    return Interval(total(ends[0]), total(ends[1]))


def _pull(loss: str, m: Fraction) -> Interval:
    """An interval around ``-loss'(m)``; at a kink, all slopes between those of both sides."""
    if loss == "squared_hinge":
        return Interval.exactly(2 * max(1 - m, ZERO))
    if loss == "logistic":
        power = exponential(-abs(m))
        small = Interval(power.low / (1 + power.low), power.high / (1 + power.high))
        return small if m >= 0 else Interval(1 - small.high, 1 - small.low)
    kink = 1 if loss == "hinge" else 0
    return Interval(Fraction(int(m < kink)), Fraction(int(m <= kink)))
