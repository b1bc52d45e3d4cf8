# SPDX-License-Identifier: BSD-3-Clause
"""The proof that comes with a hard margin.

    minimise  1/2 |w|^2   subject to   y_i (<w, x_i> + b) >= 1      (+ b^2 / (2 s^2) if b is regularised)

Any (w, b) whose smallest margin m is positive gives the feasible point (w, b) / m, so the best value is at
most ``1/2 |w|^2 / m^2``. Any alpha >= 0 but 0, balanced where b is exact, gives at its best multiple the
dual value ``(sum_i alpha_i)^2 / (2 |w_of_alpha|^2)``, and the best value is at least that. As margins: what
(w, b) reaches <= the best margin <= half the distance of the two points of the classes' hulls that alpha
names. Nothing is taken on the solver's word, and both values are bounds of the exact ones, rounding
included.

A balanced alpha is balanced up to a rounding t = sum_i alpha_i y_i. Of the best (w, b), some row has the
margin 1, so |b| <= 1 + |w| R for rows of at most the length R, and the sum of alpha_i times margin i, which
is at least ``sum_i alpha_i``, is at most ``|w| |w_of_alpha| + |b t|``. So |w| is at least
``(sum_i alpha_i - |t|) / (|w_of_alpha| + R |t|)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import HINGE
from maxmargin.problem.rows import UNIT
from maxmargin.proof.certificate import FROM_MARGINS, Certificate, RowClass
from maxmargin.proof.solution import Solution
from maxmargin.types import Vector

_SEEN = 1e-10
"""The share of a value that rounding may take before it is looked through in twofold precision."""
_A_FEW = 1.0 + 16.0 * UNIT
"""The factor that covers a few roundings."""


@dataclass(frozen=True, eq=False, repr=False)
class HardMarginCertificate(Certificate):
    """A separating hyperplane, scaled to the smallest margin 1, and a bound on the margin of any other.

    Where none was found, ``primal`` and the gap are infinite, and w is not scaled.
    """

    @property
    def separated(self) -> bool:
        """Whether (w, b) has every row on its right side, beyond rounding."""
        return math.isfinite(self.primal)

    @property
    def margin(self) -> float:
        """The geometric margin 1 / |w|: the distance of the hyperplane from the nearest row.

        A regularised intercept counts as the coordinate b / s of w that it is.
        """
        return 1.0 / math.sqrt(2.0 * self.primal) if self.primal > 0.0 else math.inf

    @property
    def margin_bound(self) -> float:
        """No hyperplane has a margin above this."""
        return 1.0 / math.sqrt(2.0 * self.dual) if self.dual > 0.0 else math.inf

    @property
    def hull_distance(self) -> float:
        """The distance of the two points of the classes' hulls that alpha names: twice the bound."""
        return 2.0 * self.margin_bound

    @property
    def gap(self) -> float:
        """``primal - dual``: no point can be better than this one by more."""
        return max(self.primal - self.dual, 0.0) if self.separated else math.inf

    @property
    def relative_gap(self) -> float:
        """``gap / primal``, for small gaps twice the relative distance of the two margins."""
        return core.relative_gap(self.primal, self.dual) if self.separated else math.inf

    @cached_property
    def kkt_violation(self) -> float:
        """The largest violation of the KKT conditions: ``alpha = 0`` wants m >= 1, ``alpha > 0`` m = 1."""
        problem = self._its_problem()
        counted = problem.costs > 0
        rows = HINGE.kkt_violation(self.margins[counted], self.alpha[counted], np.array(np.inf))
        worst = max(float(rows.max(initial=0.0)), float(np.abs(self.w - self.w_of_alpha).max(initial=0.0)))
        if problem.intercept is Intercept.REGULARISED:
            s = problem.intercept_scaling
            worst = max(worst, abs(self.b / s - s * core.dot(self.alpha, problem.y)))
        return worst

    @cached_property
    def row_classes(self) -> NDArray[np.int8]:
        """The ``RowClass`` of every row; of a separating hyperplane, support vectors are on the margin."""
        classes = np.zeros(len(self.alpha), np.int8)
        classes[self.alpha > 0] = RowClass.ON_MARGIN
        if not self.separated:
            counted = self._its_problem().costs > 0
            classes[counted & (self.margins < 1.0)] = RowClass.INSIDE_MARGIN
            classes[counted & (self.margins <= 0.0)] = RowClass.MISCLASSIFIED
        return classes

    @cached_property
    def b_interval(self) -> tuple[float, float] | None:
        """All b that leave every margin at 1 or more for w; a point where there are two classes."""
        problem = self.problem
        if problem is None:
            return None
        low, high = self.b, self.b
        if self.separated and problem.intercept is Intercept.EXACT:
            low, high = problem.objective.intercepts_without_loss(problem.y * self.margins - self.b)
        return min(self._snapped(low), self.b), max(self._snapped(high), self.b)

    def __str__(self) -> str:
        if not self.separated:
            return (
                f"No separating hyperplane was found. None has a margin above {self.margin_bound:.8g};\n"
                f"the bound comes from {self.alpha_from}."
            )
        return (
            f"The margin is {self.margin:.8g}. No hyperplane has one above {self.margin_bound:.8g}:\n"
            f"1/2 |w|^2 is {self.primal:.8g}, at least {self.dual:.8g} for any, a relative gap of "
            f"{self.relative_gap:.2e}.\n"
            f"Largest KKT violation {self.kkt_violation:.2e}; the bound comes from {self.alpha_from}.\n"
            f"{len(self.support)} of {len(self.alpha)} rows are support vectors."
        )

    def __repr__(self) -> str:
        return (
            f"HardMarginCertificate(margin={self.margin:.10g}, margin_bound={self.margin_bound:.10g}, "
            f"relative_gap={self.relative_gap:.3e})"
        )


def certify_hard_margin(
    problem: Problem,
    solution: Solution,
    *,
    known: HardMarginCertificate | None = None,
    budget: core.Budget = core.ALL_CORES,
) -> HardMarginCertificate:
    """Prove what a solution is worth for the hard margin: two passes over the data, all sums in float64.

    The problem's loss and C are without effect, and a row of cost 0 is no part of it. With ``known``, the
    better primal point and the better dual point of the two are kept: any two such points make a proof.
    """
    refuse_fixed_intercept(problem)
    alpha, w, w_of_alpha = solution.alpha, solution.w, None
    alpha_from = solution.alpha_from
    if w is None:
        if alpha is None:
            raise ValueError("A solution needs w, alpha, or both. Got neither.")
        alpha, w_of_alpha = _at_its_best(problem, alpha, budget)
        w = w_of_alpha
    w = np.array(w, np.float64)
    scores = problem.rows.scores(w, budget)
    b = _best_intercept(problem, w, scores, solution.b)
    margins = problem.y * (scores + b)
    smallest = float(margins[problem.costs > 0].min(initial=np.inf))
    primal = math.inf
    if 0.0 < smallest < math.inf:
        w, b, margins = w / smallest, b / smallest, margins / smallest
        primal = _primal(problem, w, b, margins)
    if alpha is None:
        alpha, alpha_from = _nearest_rows(problem, margins), FROM_MARGINS
    if w_of_alpha is None:
        alpha, w_of_alpha = _at_its_best(problem, alpha, budget)
    dual = _dual(problem, alpha, w_of_alpha)
    if known is not None and known.primal <= primal:
        w, b, primal, margins = known.w, known.b, known.primal, known.margins
    if known is not None and known.dual >= dual:
        alpha, dual, w_of_alpha = known.alpha, known.dual, known.w_of_alpha
        alpha_from = known.alpha_from
    return HardMarginCertificate(problem, w, b, primal, alpha, dual, alpha_from, margins, w_of_alpha)


def refuse_fixed_intercept(problem: Problem) -> None:
    """A hard margin is scaled, and b with it; its margins are 1."""
    if problem.targets is not None:
        raise ValueError("The hard margin is one of classification, where every target is 1. Got targets.")
    if problem.fixed_intercept != 0.0:
        raise ValueError(
            f"The hard margin has no fixed intercept. Got fixed_intercept={problem.fixed_intercept:g}. Use "
            "fixed_intercept=0 or intercept='exact'."
        )


def _primal(problem: Problem, w: Vector, b: float, margins: Vector) -> float:
    """An upper bound on what (w, b) is worth, scaled to the smallest margin 1, which it nearly has."""
    rows, counted = problem.rows, problem.costs > 0
    per_length, constant = rows.score_error(w)
    off = per_length * rows.lengths + constant + 4.0 * UNIT * np.abs(margins)
    least = float((margins - off)[counted].min(initial=np.inf))
    if not least > 1.0 - _SEEN and (twofold := rows.twofold_scores(w)) is not None:
        lacking = np.empty(rows.count)
        problem.objective.twofold_primal(twofold, b, lacking, 0.0)
        least = max(least, 1.0 - float(lacking[counted].max(initial=-np.inf)))
    return problem.regulariser(w, b) / least**2 * _A_FEW if least > 0.0 else math.inf


def _dual(problem: Problem, alpha: Vector, w_of_alpha: Vector) -> float:
    """A lower bound on the best value."""
    rows, signed = problem.rows, alpha * problem.y
    total = float(alpha.sum()) / _A_FEW / (1.0 + core.sum_rounding(len(alpha)))
    squared = rows.squared_norm_of(signed, w_of_alpha)
    if squared > (1.0 + _SEEN) * core.dot(w_of_alpha, w_of_alpha) and rows.twofold_scores(w_of_alpha):
        squared = min(squared, rows.twofold_squared_norm_of(signed))
    # |t| for an exact intercept, and for a regularised one half the square of the coordinate that it is.
    excess = problem.objective.worth_of_excess(alpha, 1.0)
    if problem.intercept is Intercept.EXACT:
        total -= excess
        squared = (math.sqrt(squared) + rows.largest_length * excess) ** 2
    elif problem.intercept is Intercept.REGULARISED:
        squared += 2.0 * excess
    if total <= 0.0:
        return 0.0
    return 0.5 * total / (squared * _A_FEW) * total if squared > 0.0 else math.inf


def rounding(problem: Problem, w: Vector, b: float) -> float:
    """How far a computed margin may be from the exact one."""
    rows = problem.rows
    per_length, constant = rows.score_error(w)
    largest = math.sqrt(rows.squared_norm(w)) * rows.largest_length + abs(b)
    return per_length * rows.largest_length + constant + 4.0 * UNIT * largest


def primal_at(problem: Problem, w: Vector, b: float) -> float:
    """What the hyperplane (w, b) as it stands is worth, scaled to the smallest margin 1."""
    margins = problem.margins(w, b)
    smallest = float(margins[problem.costs > 0].min(initial=np.inf))
    if not 0.0 < smallest < math.inf:
        return math.inf
    return _primal(problem, w / smallest, b / smallest, margins / smallest)


def _best_intercept(problem: Problem, w: Vector, scores: Vector, proposed: float) -> float:
    """The b with the largest margin for w."""
    if problem.intercept is Intercept.NONE:
        return 0.0
    counted = problem.costs > 0
    lowest = float(scores[counted & (problem.y > 0)].min(initial=np.inf))
    highest = float(scores[counted & (problem.y < 0)].max(initial=-np.inf))
    middle = -0.5 * (lowest + highest)
    if problem.intercept is Intercept.EXACT:
        return middle if math.isfinite(middle) else proposed
    # The margin over the norm, min(lowest + b, -highest - b) / sqrt(|w|^2 + b^2 / s^2), has its largest
    # value at the middle or where the derivative of one of the two parts is 0.
    squared = core.dot(w, w)
    stationary = problem.intercept_scaling**2 * squared
    choices = [middle, proposed, *(stationary / end for end in (lowest, highest) if end != 0.0)]

    def worth(b: float) -> float:
        norm = math.sqrt(2.0 * problem.regulariser(w, b))
        return min(lowest + b, -highest - b) / norm if norm > 0.0 else -math.inf

    return max(filter(math.isfinite, choices), key=worth)


def _nearest_rows(problem: Problem, margins: Vector) -> Vector:
    """For a point without multipliers: weight on the row of the smallest margin, in each class."""
    alpha = np.zeros(len(margins))
    for label in (-1.0, 1.0):
        of_class = np.flatnonzero((problem.y == label) & (problem.costs > 0))
        if len(of_class):
            alpha[of_class[margins[of_class].argmin()]] = 1.0
    return alpha


def _at_its_best(problem: Problem, alpha: Vector, budget: core.Budget) -> tuple[Vector, Vector]:
    """A feasible alpha near the proposed one, at its best multiple, and its ``w_of_alpha``."""
    alpha = np.where(problem.costs > 0, np.maximum(np.nan_to_num(np.asarray(alpha, np.float64)), 0.0), 0.0)
    if problem.intercept is Intercept.EXACT:
        for _ in range(2):  # the second time for rounding
            sums = [float(alpha[problem.y == label].sum()) for label in (-1.0, 1.0)]
            for label, own in zip((-1.0, 1.0), sums, strict=True):
                if own > min(sums):
                    alpha[problem.y == label] *= min(sums) / own
    total = float(alpha.sum())
    if total == 0.0:
        return alpha, np.zeros(problem.rows.columns)
    alpha /= total  # lest squares overflow
    w = problem.rows.combine(alpha * problem.y, budget)
    squared = 2.0 * problem.regulariser(w, problem.intercept_scaling * _pull_of_intercept(problem, alpha))
    factor = 1.0 / squared if squared > 0.0 else 1.0
    return factor * alpha, factor * w


def _pull_of_intercept(problem: Problem, alpha: Vector) -> float:
    """The coordinate of ``w_of_alpha`` that a regularised intercept is."""
    if problem.intercept is not Intercept.REGULARISED:
        return 0.0
    return problem.intercept_scaling * core.dot(alpha, problem.y)
