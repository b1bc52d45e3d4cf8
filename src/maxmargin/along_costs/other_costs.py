# SPDX-License-Identifier: BSD-3-Clause
"""What certificates prove of the same problem with all costs multiplied: with hardly a pass over the data.

    w     = w1 + s (w2 - w1)              its margins are  m1 + s (m2 - m1)
    alpha = t1 alpha1 + t2 alpha2         sum_i alpha_i y_i x_i  is made of the two sums in the same way

Any such w is a primal point, and any such alpha with t1, t2 >= 0 that is inside the box is a dual point: a
sum of balanced multipliers is balanced. Line searches find the best s, t1 and t2. Between two values of C
that are solved this is often proof enough; beyond them it is a good start.

The squared hinge has no upper wall, and its multipliers bend along C, which t of both signs follow. The few
that become negative are set to 0, and their rows alone are read to correct the sum.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from maxmargin import core
from maxmargin.problem import Intercept, Penalty, Problem
from maxmargin.problem.rows import UNIT
from maxmargin.proof.certificate import Certificate, Off, certify, longer
from maxmargin.proof.solution import Solution
from maxmargin.types import Vector

_ROUNDED_OVER = 0.03
"""The stretch of margins over which a line search rounds off the kink of the hinge."""
_SAME_POINT = 1e-6
"""Relative distance: the direction from one point to another as near as this is mostly rounding."""
_QUADRATIC = ("hinge", "squared_hinge")
_ROUNDING = 1e-14
"""The share of the upper wall that rounding may take from a multiplier that rests on it."""
_SHARERS = 64
"""Rows, at least, that share what a cut has left unbalanced where they can."""


class Point(NamedTuple):
    """A primal point, with its margins."""

    w: Vector
    b: float
    margins: Vector
    error: tuple[float, float]
    """How far margins can be off, as ``rows.score_error`` says it: a sum of sums rounds more often."""

    @classmethod
    def of(cls, proof: Certificate, problem: Problem) -> Point:
        """The primal point of a certificate."""
        return cls(proof.w, proof.b, proof.margins, proof.off(problem.rows)[:2])


class _DualPoint(NamedTuple):
    alpha: Vector
    w: Vector
    """sum_i alpha_i y_i x_i."""
    error: float
    """The length of the vector that w can be off by."""
    value: float

    @classmethod
    def worth(cls, problem: Problem, alpha: Vector, w: Vector, error: float) -> _DualPoint:
        """The point with its value."""
        return cls(alpha, w, error, problem.dual_of(alpha, w, error=error))


def start_of(known: Certificate) -> Solution:
    """The points of a certificate as a start, with its margins and sums, which spare two passes."""
    return Solution(
        w=known.w, b=known.b, alpha=known.alpha, margins=known.margins, w_of_alpha=known.w_of_alpha
    )


def carried_over(certificate: Certificate, problem: Problem, factor: float) -> Certificate:
    """What a certificate proves of the same problem with all costs times ``factor``.

    The point w stays, and so does b unless it is regularised. Of the multiples of alpha that are inside
    the box, the one is taken that is worth most. With the l1 penalty, multipliers are those of the margins
    at the other costs, which takes two passes.
    """
    if problem.penalty is Penalty.L1:
        return certify(problem, Solution(w=certificate.w, b=certificate.b))
    point = Point.of(certificate, problem)
    if problem.intercept is Intercept.REGULARISED:
        point = _with_best_intercept(problem, point)
    point = _longer(problem, point)
    alpha, w_of_alpha = certificate.alpha, certificate.w_of_alpha
    multiple = factor
    if problem.loss.name in _QUADRATIC:
        # D(t alpha) = t linear - t^2 quadratic
        linear = problem.linear_gain(alpha)
        quadratic = linear - problem.dual_of(alpha, w_of_alpha)
        room = np.divide(problem.upper, alpha, out=np.full(len(alpha), np.inf), where=alpha > 0)
        multiple = min(float(room.min()), max(0.0, 0.5 * linear / quadratic) if quadratic > 0 else factor)
    before = multiple * alpha
    alpha = _in_box(before, problem.upper)
    error = multiple * certificate.off(problem.rows).combined + _rounding_of_sum(problem, alpha, before)
    dual = _DualPoint.worth(problem, alpha, multiple * w_of_alpha, error)
    return _proof(problem, point, problem.primal_of(*point), dual, certificate.alpha_from)


def can_combine(problem: Problem) -> bool:
    """Whether ``combined`` takes it: seen through a kernel, inner products of two w would need a pass.

    Its line searches are on squared lengths, which the l1 penalty does not have.
    """
    l2 = problem.penalty is Penalty.L2
    return problem.loss.name != "perceptron" and not problem.rows.has_kernel and l2


def combined(
    pair: tuple[Certificate, Certificate],
    problem: Problem,
    factors: tuple[float, float],
    budget: core.Budget = core.ALL_CORES,
    tol: float = 0.0,
) -> Certificate:
    """What two certificates prove of the same problem at other costs.

    ``factors`` are the costs of ``problem`` as multiples of those of the two. Nothing better than a
    relative gap of ``tol`` is looked for.
    """
    dual = _best_dual(pair, problem, factors, budget)
    if min(factors) < 1.0 < max(factors):
        # Between the two, w is nearly a linear function of log C.
        share = math.log(factors[0]) / math.log(factors[0] / factors[1])
        point, primal = point_between(problem, *pair, share)
        if primal - dual.value <= tol * primal:
            return _proof(problem, point, primal, dual, pair[1].alpha_from)
    point = _best_point(pair, problem, budget)
    return _proof(problem, point, problem.primal_of(*point), dual, pair[1].alpha_from)


def _proof(problem: Problem, point: Point, primal: float, dual: _DualPoint, alpha_from: str) -> Certificate:
    bound, off = (dual.alpha, dual.value, alpha_from), Off(*point.error, dual.error)
    return Certificate(problem, point.w, point.b, primal, *bound, point.margins, dual.w, off)


def _best_dual(
    pair: tuple[Certificate, Certificate],
    problem: Problem,
    factors: tuple[float, float],
    budget: core.Budget,
) -> _DualPoint:
    multiples = np.array([0.0, factors[1]])
    if problem.loss.name in _QUADRATIC:
        linear, quadratic = _dual_in_multiples(pair, problem)
        free = _solve(quadratic, linear)
        bounds = factors if problem.loss.name == "hinge" else (np.inf, np.inf)
        multiples = _best_multiples(linear, quadratic, np.array(bounds), free)
        if problem.loss.name == "squared_hinge" and free.min() < 0.0:
            cut = _cut_off(free, pair, problem, budget)
            if cut is not None and cut.value > _worth(multiples, linear, quadratic):
                return cut
    elif min(factors) < 1.0 < max(factors):
        share = (1.0 - 1.0 / factors[0]) / (1.0 / factors[1] - 1.0 / factors[0])
        multiples = np.array([1.0 - share, share])
    return _sum_of(multiples, pair, problem)


def _sum_of(multiples: Vector, pair: tuple[Certificate, Certificate], problem: Problem) -> _DualPoint:
    before = alpha = _sum(multiples, pair[0].alpha, pair[1].alpha)
    if problem.loss.name != "squared_hinge":
        alpha = _in_box(alpha, problem.upper)
    w = _sum(multiples, pair[0].w_of_alpha, pair[1].w_of_alpha)
    return _DualPoint.worth(problem, alpha, w, _error_of(multiples, pair, problem, alpha, before))


def _error_of(
    multiples: Vector,
    pair: tuple[Certificate, Certificate],
    problem: Problem,
    alpha: Vector,
    before: Vector,
) -> float:
    """How far the sum of two w_of_alpha is from the one of alpha, which was ``before`` it was cut."""
    sizes = np.abs(multiples)
    error = float(sizes @ [proof.off(problem.rows).combined for proof in pair])
    summed = _sum(sizes, pair[0].alpha, pair[1].alpha)
    return (
        error
        + _rounding_of_sum(problem, alpha, before)
        + 4.0 * UNIT * core.dot(summed, problem.rows.lengths)
    )


def _rounding_of_sum(problem: Problem, alpha: Vector, before: Vector) -> float:
    """What a few roundings of alpha, and its way into the box, are worth in its sum."""
    lengths = problem.rows.lengths
    return core.dot(np.abs(alpha - before), lengths) + 8.0 * UNIT * core.dot(alpha, lengths)


def _cut_off(
    multiples: Vector, pair: tuple[Certificate, Certificate], problem: Problem, budget: core.Budget
) -> _DualPoint | None:
    """The sum with what is negative set to 0; None where that cannot be balanced."""
    alpha = _sum(multiples, pair[0].alpha, pair[1].alpha)
    change = np.maximum(-alpha, 0.0)
    if problem.intercept is Intercept.EXACT and not _balance(alpha, change, problem.y):
        return None
    before, alpha = alpha + change, np.maximum(alpha + change, 0.0)
    w = _sum(multiples, pair[0].w_of_alpha, pair[1].w_of_alpha)
    w += problem.rows.combine(change * problem.y, budget)
    error = _error_of(multiples, pair, problem, alpha, before) + problem.rows.combined_error(change)
    return _DualPoint.worth(problem, alpha, w, error)


def _balance(alpha: Vector, change: Vector, y: Vector) -> bool:
    """Take what a change adds to one class from other rows of it: few if that is enough; whether it is."""
    excess = core.dot(change, y)
    few = max(int(np.count_nonzero(change)) // 8, _SHARERS)
    share, first = abs(excess) / few, slice(16 * few)
    some = np.flatnonzero((alpha[first] > 2.0 * share) & (y[first] * excess > 0.0))[:few]
    if len(some) == few:
        change[some] -= share
        return True
    giving = np.where((alpha > 0.0) & (y * excess > 0.0), alpha, 0.0)
    total = float(giving.sum())
    if total > abs(excess):
        change -= giving * (abs(excess) / total)
    return total > abs(excess) or excess == 0.0


def _in_box(alpha: Vector, upper: Vector) -> Vector:
    """Rows at the wall stay there: rounding may leave a multiple a little beyond it, or before it.

    Before it a row would count as free, and solvers treat thousands of such rows as what decides.
    """
    return np.where(alpha > (1.0 - _ROUNDING) * upper, upper, alpha)


def _sum(multiples: Vector, first: Vector, second: Vector) -> Vector:
    return np.asarray(multiples[0] * first + multiples[1] * second)


def _best_point(pair: tuple[Certificate, Certificate], problem: Problem, budget: core.Budget) -> Point:
    """The best on the line through both, with the best intercept."""
    first, second = (Point.of(proof, problem) for proof in pair)
    # Of the hinge the search sees a rounded one: its answer may be worse than where it began.
    points = [_best_on_line(problem, first, second, budget), first, second]
    best = min(points, key=lambda point: problem.primal_of(*point))
    return _longer(problem, _with_best_intercept(problem, best))


def _longer(problem: Problem, point: Point) -> Point:
    """The point times the number above 1 that is worth most, with the best intercept for it."""
    w, b, margins = longer(problem, point.w, point.b, point.margins)
    if w is point.w:
        return point
    factor = math.sqrt(problem.rows.squared_norm(w) / max(core.dot(point.w, point.w), sys.float_info.min))
    per_length, constant = factor * point.error[0], factor * point.error[1]
    rounded = 8.0 * UNIT * (abs(b) + factor * abs(point.b))
    return Point(w, b, margins, (1.01 * per_length, 1.01 * constant + rounded))


def _with_best_intercept(problem: Problem, point: Point) -> Point:
    if problem.intercept is Intercept.NONE:
        return point
    scores = problem.y * point.margins - point.b
    b = problem.best_intercept(scores)
    error = point.error[0], point.error[1] + 4.0 * UNIT * (abs(b) + abs(point.b))
    return Point(point.w, b, problem.y * (scores + b), error)


def _best_on_line(problem: Problem, first: Point, second: Point, budget: core.Budget) -> Point:
    along = Point(first.w - second.w, first.b - second.b, first.margins - second.margins, first.error)
    pull = 0.0
    if problem.intercept is Intercept.REGULARISED:
        pull = problem.intercept_scaling**-2
    slope = core.dot(second.w, along.w) + pull * second.b * along.b
    curvature = core.dot(along.w, along.w) + pull * along.b**2
    if curvature <= _SAME_POINT**2 * (core.dot(second.w, second.w) + pull * second.b**2):
        return second  # a long way on that line would take the margins away from those of w
    centre = 0.5 * problem.costs if problem.loss.name == "hinge" else problem.costs
    pieces = (problem.loss.name, problem.costs, centre, 1.0 / _ROUNDED_OVER)
    s = core.line_search(*pieces, second.margins, along.margins, slope, curvature, budget)
    if s == 0.0:
        s = -core.line_search(*pieces, second.margins, -along.margins, -slope, curvature, budget)
    return _between(first, second, 1.0 - s)


def point_between(
    problem: Problem, first: Certificate, second: Certificate, share: float
) -> tuple[Point, float]:
    """The point at a share of the line from one point to the other, and the objective there."""
    point = _between(Point.of(first, problem), Point.of(second, problem), share)
    return point, problem.primal_of(*point)


def _between(first: Point, second: Point, share: float) -> Point:
    """The point at a share of the line from the first to the second."""
    multiples = np.array([1.0 - share, share])
    b = float(multiples @ [first.b, second.b])
    sizes, both = np.abs(multiples), (first, second)
    # Margins at rows of length 1, and w itself, round a few times more.
    lengths = [math.sqrt(core.dot(point.w, point.w)) for point in both]
    intercepts = [1.0 + abs(point.b) for point in both]
    per_length = float(sizes @ [point.error[0] for point in both]) + 8.0 * UNIT * float(sizes @ lengths)
    constant = float(sizes @ [point.error[1] for point in both]) + 8.0 * UNIT * float(sizes @ intercepts)
    margins = _sum(multiples, first.margins, second.margins)
    return Point(_sum(multiples, first.w, second.w), b, margins, (per_length, constant))


def _dual_in_multiples(pair: tuple[Certificate, Certificate], problem: Problem) -> tuple[Vector, Vector]:
    """The l and Q of  D(t1 alpha1 + t2 alpha2) = l't - 1/2 t'Qt."""
    linear = np.array([problem.linear_gain(proof.alpha) for proof in pair])
    quadratic = np.array([[core.dot(one.w_of_alpha, two.w_of_alpha) for two in pair] for one in pair])
    if problem.intercept is Intercept.REGULARISED:
        sums = [problem.intercept_scaling * core.dot(proof.alpha, problem.y) for proof in pair]
        quadratic += np.outer(sums, sums)
    if problem.loss.name == "squared_hinge":
        costs = problem.costs
        inverse = np.divide(0.5, costs, out=np.zeros(len(costs)), where=costs > 0)
        weighted = [inverse * proof.alpha for proof in pair]
        quadratic += [[core.dot(one, two.alpha) for two in pair] for one in weighted]
    return linear, quadratic


def _solve(quadratic: Vector, linear: Vector) -> Vector:
    """The multiples at which the gradient is zero; of nearly parallel points only the second counts."""
    (a, b), (_, c) = quadratic
    determinant = a * c - b * b
    if not determinant > 1e-10 * a * c:
        return np.array([0.0, linear[1] / c if c > 0 else 0.0])
    return np.array([c * linear[0] - b * linear[1], a * linear[1] - b * linear[0]]) / float(determinant)


def _worth(t: Vector, linear: Vector, quadratic: Vector) -> float:
    return float(linear @ t - 0.5 * t @ quadratic @ t)


def _best_multiples(linear: Vector, quadratic: Vector, bounds: Vector, free: Vector) -> Vector:
    """The t >= 0 with  t1 / bound1 + t2 / bound2 <= 1  that makes D largest."""
    candidates = [free] if free.min() >= 0.0 and float((free / bounds).sum()) <= 1.0 else []
    for k in range(2):
        corner = np.zeros(2)
        best = linear[k] / quadratic[k, k] if quadratic[k, k] > 0 else math.inf
        corner[k] = min(best, bounds[k]) if linear[k] > 0 and min(best, bounds[k]) < math.inf else 0.0
        candidates.append(corner)
    if np.isfinite(bounds).all():
        from_corner, along = np.array([bounds[0], 0.0]), np.array([-bounds[0], bounds[1]])
        bend = float(along @ quadratic @ along)
        rise = float(linear @ along - from_corner @ quadratic @ along)
        share = min(max(rise / bend, 0.0), 1.0) if bend > 0 else float(rise > 0)
        candidates.append(from_corner + share * along)
    return max(candidates, key=lambda t: _worth(t, linear, quadratic))
