# SPDX-License-Identifier: BSD-3-Clause
"""The proof that comes with every fit.

Weak duality: for every (w, b) and every feasible alpha, ``P(w, b) >= P* >= D(alpha)``. So the gap
``P - D`` bounds how far (w, b) can be from the best value, whoever found either point. Everything here
is computed from the problem in float64; nothing is taken on the solver's word, and no solver imports
this module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem import Intercept, Problem, middle_of
from maxmargin.proof.solution import Solution
from maxmargin.tools.changed import changed
from maxmargin.types import Tell, Vector

FROM_MARGINS = "the margins"
ROUNDING = 1e-12
_FEW_LOSSES = 0.25
"""Of |w|^2: where losses of rows below half the margin are more, they are a part of the optimum."""
_PULL = 2.0
"""How much harder rows must pull at the length of w than it is held, for a better length to be sought."""
_SHORT_PASS = 1000
"""Rows seen through a kernel, up to which one more pass over all pairs of them does not matter."""
_OF_A_MARGIN, _UNSEEN = 1e-14, 1e-9
"""What rounding takes from a margin, at a guess; and what of the objective is too little to matter."""
_TRIFLE, _LOOKS = 1e-9, 3
"""What a margin may lack for being 1 but for rounding; and how often that is looked for."""
_NO_ROUNDING = 1e-6
"""A dual value above the primal one by this share of it is no matter of rounding."""


class RowClass(IntEnum):
    """What a row is to the solution: 004's three cases, the last split by its "consequences"."""

    NOT_SUPPORT_VECTOR = 0
    """alpha = 0, margin at least 1."""
    ON_MARGIN = 1
    """0 < alpha < C, margin 1."""
    INSIDE_MARGIN = 2
    """alpha = C, margin in (0, 1]: right side, but slack is needed."""
    MISCLASSIFIED = 3
    """alpha = C, margin at most 0: slack of 1 or more."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """A primal point, a feasible dual point, and the gap between their values."""

    problem: Problem | None
    """None in a fitted estimator, which does not hold on to its training data."""
    w: Vector
    b: float
    """The best intercept for w, the middle of ``b_interval``."""
    primal: float
    """P(w, b), an upper bound on the best value."""
    alpha: Vector
    """A feasible dual point: inside its box, and sum_i alpha_i y_i = 0 when the intercept is exact."""
    dual: float
    """D(alpha), a lower bound on the best value."""
    alpha_from: str
    """Where alpha comes from, in words."""
    margins: Vector
    """y_i (<w, x_i> + b)."""
    w_of_alpha: Vector
    """sum_i alpha_i y_i x_i, equal to w at an optimum."""

    @property
    def gap(self) -> float:
        """``primal - dual``: no point can be better than this one by more."""
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        """``gap / |primal|``."""
        return relative_gap(self.primal, self.dual)

    @cached_property
    def kkt_violation(self) -> float:
        """The largest violation of the KKT conditions: of any row's, and of ``w = w_of_alpha``.

        A regularised intercept counts as the coordinate of w that it is.
        """
        problem = self._its_problem()
        worst = core.largest_violation(problem.loss.name, self.margins, self.alpha, problem.costs)
        if problem.intercept is Intercept.REGULARISED:
            s = problem.intercept_scaling
            worst = max(worst, abs(self.b / s - s * core.dot(self.alpha, problem.y)))
        if self.w is self.w_of_alpha:
            return worst
        return max(worst, float(np.abs(self.w - self.w_of_alpha).max(initial=0.0)))

    @cached_property
    def row_classes(self) -> NDArray[np.int8]:
        """The ``RowClass`` of every row: by its multiplier (003's table, 004's three cases).

        By its margin where multipliers do not tell: for losses without an upper wall, and for
        multipliers that were themselves made from the margins.
        """
        problem = self._its_problem()
        by_margins = problem.loss.name != "hinge" or self.alpha_from == FROM_MARGINS
        classes = np.empty(len(self.alpha), np.int8)
        core.row_classes(self.margins, self.alpha, problem.costs, by_margins, classes)
        return classes

    @cached_property
    def proven(self) -> bool:
        """Whether the dual value is a lower bound: not if the function is not a kernel, as most sigmoids.

        False where the rows' function is known not to be a kernel, or where these very points show it: for
        a kernel, no dual value is above a primal one. True means that nothing speaks against the kernel.
        """
        if self.problem is not None and self.problem.rows.kernel_is_none:
            return False
        return not contradictory(self.primal, self.dual)

    @cached_property
    def b_interval(self) -> tuple[float, float] | None:
        """All b that are as good as this one for w: (low, high), a point where low = high.

        A free support vector, one with 0 < alpha < C, leaves one b only. None where the problem is gone and
        its file does not tell.
        """
        if self.problem is None:
            return None
        low, high = self.problem.best_intercepts(self.problem.y * self.margins - self.b)
        return self._snapped(low), self._snapped(high)

    def _snapped(self, end: float) -> float:
        """An end of the interval, or b where only the rounding of scores tells the two apart."""
        return self.b if abs(end - self.b) <= ROUNDING * (1.0 + abs(self.b)) else end

    @property
    def other_intercepts(self) -> str:
        """The sentence about ``b_interval`` where no row is on the margin to tell b; else empty."""
        if self.b_interval is None or (self.row_classes == RowClass.ON_MARGIN).any():
            return ""
        low, high = (f"{end:.6g}" for end in self.b_interval)
        return "" if low == high else f"Any intercept from {low} to {high} is as good as {self.b:.6g}."

    def _its_problem(self) -> Problem:
        if self.problem is None:
            raise AttributeError("This certificate was separated from its problem.")
        return self.problem

    def without_problem(self, w: Vector) -> Certificate:
        """The same proof, to be kept without the data it is about; ``w`` is where its w lies now."""
        w_of_alpha = w if self.w_of_alpha is self.w else self.w_of_alpha
        _ = self.kkt_violation, self.row_classes, self.b_interval, self.proven  # go along
        return changed(self, problem=None, w=w, w_of_alpha=w_of_alpha)

    def with_known(
        self,
        kkt_violation: float,
        row_classes: NDArray[np.int8],
        b_interval: tuple[float, float] | None,
        proven: bool,
    ) -> Certificate:
        """The same, told what it could not find out without its problem."""
        # A frozen dataclass keeps its cached properties in __dict__ like any other object.
        self.__dict__["kkt_violation"] = kkt_violation
        self.__dict__["row_classes"] = row_classes
        self.__dict__["b_interval"] = b_interval
        self.__dict__["proven"] = proven
        return self

    @property
    def support(self) -> NDArray[np.intp]:
        """Indices of the support vectors, the rows with alpha > 0."""
        return np.flatnonzero(self.alpha > 0)

    def __str__(self) -> str:
        counts = np.bincount(self.row_classes, minlength=4)
        support, on, inside, wrong = counts[1:].sum(), counts[1], counts[2], counts[3]
        bound = "lower bound" if self.proven else "dual value"
        lines = [
            self._claim,
            f"Largest KKT violation {self.kkt_violation:.2e}; the {bound} comes from {self.alpha_from}.",
            f"{support} of {len(self.alpha)} rows are support vectors: {on} on the margin, "
            f"{inside} inside it, {wrong} misclassified.",
            self.other_intercepts,
        ]
        return "\n".join(filter(None, lines))

    @property
    def _claim(self) -> str:
        if not self.proven:
            return (
                f"The objective is {self.primal:.8g}. How far it is from the best is not known: the "
                f"function is not a kernel,\nso the dual value of {self.dual:.8g}, at a relative distance "
                f"of {self.relative_gap:.2e}, is no lower bound."
            )
        return (
            f"The objective is {self.primal:.8g}. No (w, b) can bring it below {self.dual:.8g}:\n"
            f"this fit is within {self.gap:.3g} of the best, a relative gap of {self.relative_gap:.2e}."
        )

    def __repr__(self) -> str:
        return (
            f"Certificate(primal={self.primal:.10g}, dual={self.dual:.10g}, "
            f"relative_gap={self.relative_gap:.3e}{'' if self.proven else ', proven=False'})"
        )


def relative_gap(primal: float, dual: float) -> float:
    """``(primal - dual) / |primal|``, and 0 where that is negative; infinite with an infinite primal value.

    A primal value is infinite where (w, b) does not have the hard margin that was asked for.
    """
    if primal == math.inf:
        return math.inf
    gap = primal - dual
    if gap <= 0.0:
        return 0.0
    return gap / abs(primal) if primal != 0.0 else math.inf


def contradictory(primal: Any, dual: Any) -> Any:
    """Whether a dual value is above a primal one by more than rounding: no kernel has such values."""
    return dual - primal > _NO_ROUNDING * abs(primal)


def certify(
    problem: Problem,
    solution: Solution,
    *,
    known: Certificate | None = None,
    budget: core.Budget = core.ALL_CORES,
    tell: Tell | None = None,
) -> Certificate:
    """Prove what a solution is worth: two passes over the data, all sums in float64.

    A w that follows from alpha, or is of ``any_length``, may be made ``longer`` where that is better. With
    ``known``, a certificate of the same problem, the better primal point and the better dual point
    of the two are kept: any two such points make a proof. ``tell`` is called now and then where that takes
    long: with a kernel, a pass is as many values as there are pairs of a support vector and a row.
    """
    interval: tuple[float, float] | None
    if solution.w is None:
        if solution.alpha is None:
            raise ValueError("A solution needs w, alpha, or both. Got neither.")
        alpha, alpha_from = feasible(problem, solution.alpha), solution.alpha_from
        w = w_of_alpha = problem.rows.combine(alpha * problem.y, budget)
        b, margins, interval = _best_margins(problem, w, budget, tell)
    else:
        w = np.ascontiguousarray(solution.w, np.float64)
        b, margins, interval = _best_margins(problem, w, budget, tell)
        proposed, alpha_from = solution.alpha, solution.alpha_from
        if proposed is None:
            proposed, alpha_from = problem.multipliers(margins), FROM_MARGINS
        alpha = feasible(problem, proposed)
        w_of_alpha = problem.rows.combine(alpha * problem.y, budget)
        if alpha_from == FROM_MARGINS:
            factor = problem.best_multiple(alpha, w_of_alpha)
            alpha, w_of_alpha = factor * alpha, factor * w_of_alpha
    if solution.any_length or solution.w is None:
        before = w
        w, b, margins = longer(problem, w, b, margins)
        if w is not before:
            interval = None  # that was another w's
            w, b, margins = _seen_again(problem, w, b, margins, budget)
    primal = problem.regulariser(w, b) + problem.loss_sum(margins)
    # No loss rises faster than its margin falls, where margins are known but for a small error.
    primal += problem.total_cost * problem.rows.score_error(w)
    dual = problem.dual_of(alpha, w_of_alpha)
    if dual < 0.0:
        # Worth less than alpha = 0, as multipliers of a run cut short may be; a part of them is not.
        factor = problem.best_multiple(alpha, w_of_alpha)
        alpha, w_of_alpha = factor * alpha, factor * w_of_alpha
        dual = problem.dual_of(alpha, w_of_alpha)
    if 0.0 < dual - primal <= ROUNDING * abs(primal):
        dual = primal  # both are the optimum, to the last digits of their sums
    if known is not None and not primal < known.primal:
        w, b, primal, margins = known.w, known.b, known.primal, known.margins
        interval = known.b_interval
    if known is not None and not dual > known.dual:
        alpha, dual, w_of_alpha = known.alpha, known.dual, known.w_of_alpha
        alpha_from = known.alpha_from
    proof = Certificate(problem, w, b, primal, alpha, dual, alpha_from, margins, w_of_alpha)
    if interval is not None:
        proof.__dict__["b_interval"] = proof._snapped(interval[0]), proof._snapped(interval[1])
    return proof


def _best_margins(
    problem: Problem, w: Vector, budget: core.Budget, tell: Tell | None
) -> tuple[float, Vector, tuple[float, float]]:
    """The best intercept for w, whatever the solver's was, its margins, and all b that are as good."""
    scores = problem.rows.scores(w, budget, tell)
    interval = problem.best_intercepts(scores)
    b = middle_of(*interval)
    scores += b
    scores *= problem.y
    return b, scores, interval


def longer(problem: Problem, w: Vector, b: float, margins: Vector) -> tuple[Vector, float, Vector]:
    """(w, b) times the number above 1 that is worth most, with the best intercept again; for the hinge.

    Where C is so large that hardly a loss is left at the optimum, every trifle that a row lacks counts C
    times, and a dual method leaves thousands of trifles. A w that is longer by as little clears them.
    """
    if problem.loss.name != "hinge" or problem.fixed_intercept:
        return w, b, margins
    if problem.rows.has_kernel and problem.rows.count > _SHORT_PASS:
        return w, b, margins  # through a kernel, the length of w takes a pass of its own
    held = 2.0 * problem.regulariser(w, b)
    if problem.loss_sum(margins + 0.5) > _FEW_LOSSES * held:
        return w, b, margins
    if core.dot(problem.multipliers(margins), margins) <= _PULL * held:
        return w, b, margins
    # At s (w, b) the objective rises by  s held - sum of C_i m_i over the rows with s m_i < 1.
    weights = np.maximum(problem.costs * margins, 0.0)
    crossings = np.divide(1.0, margins, out=np.zeros_like(margins), where=weights > 0.0)
    level = core.dot(problem.costs, margins)
    factor = core.weighted_quantile(crossings, weights, level, held)[0]
    if not 1.0 < factor < np.inf:
        return w, b, margins
    scores = factor * (problem.y * margins - b)
    b = problem.best_intercept(scores)
    return factor * w, b, problem.y * (scores + b)


def _seen_again(
    problem: Problem, w: Vector, b: float, margins: Vector, budget: core.Budget
) -> tuple[Vector, float, Vector]:
    """A longer w with margins from the data where their rounding, C times, could be seen in the objective.

    What rounding has taken from a margin of 1 is made up for by as much more length.
    """
    if problem.total_cost * _OF_A_MARGIN <= _UNSEEN * problem.regulariser(w, b):
        return w, b, margins
    for _ in range(_LOOKS):
        b, margins, _ = _best_margins(problem, w, budget, None)
        missing = 1.0 - margins
        trifle = float(missing.max(where=(missing < _TRIFLE) & (problem.costs > 0.0), initial=0.0))
        if trifle == 0.0:
            break
        w = (1.0 + 2.0 * trifle) * w
    else:
        b, margins, _ = _best_margins(problem, w, budget, None)
    return w, b, margins


def feasible(problem: Problem, alpha: Vector) -> Vector:
    """The nearest thing to alpha that is inside the box and, for an exact intercept, balanced."""
    alpha = np.array(alpha, np.float64)
    core.make_feasible(alpha, problem.y, problem.upper, problem.intercept is Intercept.EXACT)
    return alpha
