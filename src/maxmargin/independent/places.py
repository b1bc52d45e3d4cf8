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
