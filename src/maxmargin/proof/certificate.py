# SPDX-License-Identifier: BSD-3-Clause
"""The proof that comes with every fit.

Weak duality: for every (w, b) and every feasible alpha, ``P(w, b) >= P* >= D(alpha)``. So the gap
``P - D`` bounds how far (w, b) can be from the best value, whoever found either point. Nothing is taken on
the solver's word, and no solver imports this module.

Rounding is a part of the proof: ``primal`` is at least the exact P(w, b), ``dual`` at most the exact best
value, as docs/certificate.md proves. Where that rounding is most of the gap, as on badly scaled data, both
are computed again in twofold precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, overload
from zlib import adler32

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem import Intercept, Penalty, Problem
from maxmargin.problem.ranking import RankingProblem
from maxmargin.problem.rows import UNIT, RowSpace
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.solution import Solution
from maxmargin.tools.parameters import changed
from maxmargin.types import Indices, Tell, Vector

FROM_MARGINS = "the margins"
ROUNDING = 1e-12
"""Two intercepts that differ by at most this share differ by rounding alone."""
_CLOSE = 1e-9
"""The relative gap above which rounding is looked through, unless a smaller one is asked for."""
_SHORT_PASS = 1000
"""Rows seen through a kernel, up to which some more passes over all pairs of them do not matter."""
_OF_A_MARGIN, _UNSEEN = 1e-14, 1e-9
"""What rounding takes from a margin, at a guess; and what of the objective is too little to matter."""
_TRIFLE, _LOOKS = 1e-9, 3
"""What a margin may lack for being 1 but for rounding; and how often that is looked for."""
_EPSILON = float(np.finfo(np.float64).eps)
"""The least share of a number that can be added to it: a w has to become longer by that at least."""
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
    """alpha = C, margin at most 0: slack of 1 or more. Where a fit was cut short, whatever alpha is."""


class Off(NamedTuple):
    """Bounds on rounding."""

    per_length: float
    """The margin of a row is off by this times its length, and by the constant."""
    constant: float
    combined: float
    """The length of the vector that ``w_of_alpha`` is off by."""


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
    """A feasible dual point: inside its box, and sum_i alpha_i y_i = 0 when the intercept is exact.

    Where targets have a shift, the sum of alpha is the problem's total.
    """
    dual: float
    """D(alpha), a lower bound on the best value."""
    alpha_from: str
    """The origin of alpha, in words."""
    margins: Vector
    """y_i (<w, x_i> + b) + 1 - p_i, and the shift."""
    w_of_alpha: Vector
    """sum_i alpha_i y_i x_i, equal to w at an optimum; with the l1 penalty, to its signs if it is not 0."""
    derived: Off | None = None
    """How far the last two are off, where they come from other certificates."""
    shift: float = 0.0
    """What all targets are lowered by, where that is sought: the best for w and b."""

    def off(self, rows: RowSpace) -> Off:
        """How far margins and ``w_of_alpha`` can be from the exact ones; ``rows`` are the problem's."""
        if self.derived is not None:
            return self.derived
        return Off(*rows.score_error(self.w), rows.combined_error(self.alpha))

    @property
    def gap(self) -> float:
        """``primal - dual``: no point can be better than this one by more."""
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        """``gap / |primal|``."""
        return core.relative_gap(self.primal, self.dual)

    @cached_property
    def kkt_violation(self) -> float:
        """The largest violation of the KKT conditions: of any row's, and of ``w = w_of_alpha``.

        A regularised intercept counts as the coordinate of w that it is.
        """
        problem = self._its_problem()
        worst = problem.objective.largest_violation(self.margins, self.alpha, self.b)
        if self.w is self.w_of_alpha:
            return worst
        return max(worst, problem.distance_from_optimal(self.w, self.w_of_alpha))

    @property
    def knows_rows(self) -> bool:
        """Whether it has a multiplier and a margin for every row; that of a fit in chunks has none."""
        return True

    @cached_property
    def row_classes(self) -> NDArray[np.int8]:
        """The ``RowClass`` of every row, or group of rows: by its margin (003's table, 004's three cases).

        Within a hundredth of the margin, where 003 has equality, the multiplier tells; but not for losses
        without an upper wall, nor where multipliers were themselves made from the margins. Those of a fit
        that was cut short do not say which rows are misclassified; the margins always do.
        """
        problem = self._its_problem()
        by_margins = problem.loss.name != "hinge" or self.alpha_from == FROM_MARGINS
        margins = problem.worst(self._in_units_of_the_shift())
        alpha = self._by_group.sum(axis=1)
        classes = np.empty(len(alpha), np.int8)
        core.row_classes(margins, alpha, problem.costs[:: problem.group], by_margins, classes)
        return classes

    def _in_units_of_the_shift(self) -> Vector:
        """The margins; where all targets are 0, their distance from the shift in units of it."""
        assert self.problem is not None
        if self.problem.total is None or self.shift >= 0.0 or np.any(self.problem.targets):
            return self.margins
        return 1.0 + (self.margins - 1.0) / -self.shift

    @cached_property
    def proven(self) -> bool:
        """Whether the dual value is a lower bound: not if the function is no kernel, as most sigmoids.

        False where it is not shown to be a kernel on these rows, or where these very points refute it: for
        a kernel, no dual value is above a primal one. Values that are given are taken to be a kernel's.
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
        scores = self.problem.scores_of(self.margins, self.b, self.shift)
        low, high = self.problem.best_intercepts(scores)
        return self._snapped(low), self._snapped(high)

    def _with_interval(self, interval: tuple[float, float] | None) -> Certificate:
        """The same certificate, told the interval of best intercepts where somebody knows it."""
        if interval is not None:
            self.__dict__["b_interval"] = self._snapped(interval[0]), self._snapped(interval[1])
        return self

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
        _ = (
            self.kkt_violation,
            self.row_classes,
            self.b_interval,
            self.proven,
            self.of_regression,
            self.of_one_class,
            self.total,
            self.group,
        )  # go along
        return changed(self, problem=None, w=w, w_of_alpha=w_of_alpha, _checksum=_checksum(w))

    @property
    def is_about_its_w(self) -> bool:
        """Whether w is still what was proven: an estimator's ``coef_`` shares its memory with it."""
        return self.__dict__.get("_checksum") in (None, _checksum(self.w))

    def with_known(
        self,
        kkt_violation: float,
        row_classes: NDArray[np.int8],
        b_interval: tuple[float, float] | None,
        proven: bool,
    ) -> Certificate:
        """The same certificate, told what it could not find out without its problem."""
        # A frozen dataclass keeps its cached properties in __dict__ like any other object.
        self.__dict__["kkt_violation"] = kkt_violation
        self.__dict__["row_classes"] = row_classes
        self.__dict__["b_interval"] = b_interval
        self.__dict__["proven"] = proven
        return self

    @cached_property
    def of_regression(self) -> bool:
        """Whether every example has two rows in turn, the walls of its tube."""
        return self.problem is not None and isinstance(self.problem.rows, TwinRows)

    @cached_property
    def of_one_class(self) -> bool:
        """Whether there is no intercept but the shift of the targets: all rows are of one class."""
        problem = self.problem
        return problem is not None and problem.total is not None and problem.intercept is Intercept.NONE

    @cached_property
    def total(self) -> float | None:
        """What the multipliers add up to, where the targets have a shift that is sought."""
        return None if self.problem is None else self.problem.total

    @property
    def intercept(self) -> float:
        """What the model adds to ``<w, x>``: b, and of one class the shift, -rho."""
        return self.shift if self.of_one_class else self.b

    @cached_property
    def group(self) -> int:
        """How many rows in turn share one loss: they are those of one example."""
        return 1 if self.problem is None else self.problem.group

    @property
    def _by_group(self) -> NDArray[np.float64]:
        """The multipliers, one line for each group."""
        return self.alpha.reshape(-1, self.group)

    @property
    def support(self) -> NDArray[np.intp]:
        """Indices of the support vectors, the rows, or groups of rows, with alpha > 0."""
        return np.flatnonzero((self._by_group > 0).any(axis=1))

    def __str__(self) -> str:
        bound = "lower bound" if self.proven else "dual value"
        lines = [
            self._claim,
            f"Largest KKT violation {self.kkt_violation:.2e}; the {bound} comes from {self.alpha_from}.",
            self.rows_in_words,
            self.other_intercepts,
        ]
        return "\n".join(filter(None, lines))

    @property
    def rows_in_words(self) -> str:
        """The support vectors, and what the margins say: of a fit cut short they are not the same rows."""
        if self.of_regression:
            return self._examples_in_words
        if self.of_one_class:
            on, outside = np.count_nonzero(self.row_classes == 1), np.count_nonzero(self.row_classes > 1)
            return (
                f"{on + outside} of {len(self.alpha)} rows are support vectors: {on} on the boundary, "
                f"{outside} outside of it."
            )
        counts = np.bincount(self.row_classes, minlength=4)
        classes = f"{counts[1]} on the margin, {counts[2]} inside it, {counts[3]} misclassified."
        support, rows = len(self.support), len(self.alpha) // self.group
        if self.alpha_from == FROM_MARGINS or support == counts[1:].sum():
            return f"{counts[1:].sum()} of {rows} rows are support vectors: {classes}"
        return f"{support} of {rows} rows are support vectors. Counted by margins: {classes}"

    @property
    def _examples_in_words(self) -> str:
        """The support vectors of a regression: those that are not inside of their tube."""
        classes = self.row_classes.reshape(-1, 2).max(axis=1)
        on, outside = np.count_nonzero(classes == 1), np.count_nonzero(classes > 1)
        return (
            f"{on + outside} of {len(classes)} examples are support vectors: {on} on a wall of the tube, "
            f"{outside} outside of it."
        )

    @property
    def _claim(self) -> str:
        if not self.proven:
            return (
                f"The objective is {self.primal:.8g}. How far it is from the best is not known: the "
                f"function is not shown to be a kernel,\nso the dual value of {self.dual:.8g}, at a "
                f"relative distance of {self.relative_gap:.2e}, is no lower bound."
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


def _checksum(w: Vector) -> int:
    """A number that hardly any other w shares."""
    return adler32(w.tobytes())


def contradictory(primal: float, dual: float) -> bool:
    """Whether a dual value is above a primal one by more than rounding: no kernel has such values."""
    return dual - primal > _NO_ROUNDING * abs(primal)


class _PrimalPoint(NamedTuple):
    """Some w with the best intercept for it, whatever the solver's was."""

    w: Vector
    b: float
    margins: Vector
    b_interval: tuple[float, float] | None
    """All b that are as good, where they are known."""
    shift: float = 0.0


class _DualPoint(NamedTuple):
    """Feasible multipliers."""

    alpha: Vector
    w: Vector
    """``sum_i alpha_i y_i x_i``."""
    alpha_from: str


def certify(
    problem: Problem,
    solution: Solution,
    *,
    known: Certificate | None = None,
    budget: core.Budget = core.ALL_CORES,
    tell: Tell | None = None,
    tol: float = _CLOSE,
) -> Certificate:
    """Prove what a solution is worth: two passes over the data, all sums in float64.

    Two more in twofold precision are made where rounding alone keeps the relative gap above ``tol``.

    A w that follows from alpha, or is of ``any_length``, may be made ``longer`` where that is better. With
    ``known``, a certificate of the same problem, the better primal point and the better dual point
    of the two are kept: any two such points make a proof. ``tell`` is called now and then where that takes
    long: with a kernel, a pass is as many values as there are pairs of a support vector and a row.
    """
    if isinstance(problem, RankingProblem):  # whose terms belong to pairs of rows
        from maxmargin.proof.ranking import certify_ranking

        return certify_ranking(problem, solution, known=known, budget=budget)
    if solution.w is not None:
        w = np.ascontiguousarray(solution.w, np.float64)
        primal = _primal_point(problem, w, budget, tell)
        dual = _dual_point(problem, solution, primal.margins, budget)
    elif solution.alpha is not None:
        problem.refuse_l1("There, w does not follow from alpha. Give the solution a w.")
        dual = _dual_point(problem, solution, None, budget)
        primal = _primal_point(problem, dual.w, budget, tell)
    else:
        raise ValueError("A solution needs w, alpha, or both. Got neither.")
    may_be_longer = solution.any_length or solution.w is None
    if may_be_longer:
        primal = _of_the_best_length(problem, primal, budget)
    proof = _proof(problem, primal, dual)
    hidden = proof.relative_gap > tol and (_hides(problem, dual, proof) or _is_rounding(problem, proof))
    cleared = _longer_by_rounding(problem, proof, budget) if hidden and may_be_longer else proof
    if cleared.relative_gap <= tol:
        proof = cleared
    elif hidden:
        unpacked = problem.rows.unpacked()
        if unpacked is not None:
            proposed, as_it_is = replace(solution, alpha=dual.alpha), replace(problem, rows=unpacked)
            proof = certify(as_it_is, proposed, budget=budget, tell=tell, tol=tol)
            proof = changed(proof, problem=problem)
        else:
            proof = _twofold(problem, proof, dual)
        if cleared.primal < proof.primal:
            proof = _better_of(problem, cleared, proof)
    return proof if known is None else _better_of(problem, proof, known)


def _primal_point(problem: Problem, w: Vector, budget: core.Budget, tell: Tell | None) -> _PrimalPoint:
    """One pass for the scores, which become margins."""
    margins = problem.rows.scores(w, budget, tell)
    b, low, high, shift = problem.objective.take_best_intercept(margins)
    return _PrimalPoint(w, b, margins, (low, high), shift)


def _dual_point(
    problem: Problem, solution: Solution, margins: Vector | None, budget: core.Budget
) -> _DualPoint:
    """What the solution proposes, or else what margins suggest, made feasible; one pass for its w."""
    alpha, alpha_from = solution.alpha, solution.alpha_from
    if alpha is None:
        assert margins is not None
        alpha, alpha_from = problem.multipliers(margins), FROM_MARGINS
    alpha = feasible(problem, alpha)
    point = _DualPoint(alpha, problem.rows.combine(alpha * problem.y, budget), alpha_from)
    if alpha_from == FROM_MARGINS or problem.penalty is Penalty.L1:
        return _best_multiple(problem, point)
    return point


def _best_multiple(problem: Problem, point: _DualPoint) -> _DualPoint:
    """The part of the multipliers that is worth most: all of them, as a rule."""
    factor = problem.best_multiple(point.alpha, point.w)
    if factor == 1.0:
        return point
    return point._replace(alpha=factor * point.alpha, w=factor * point.w)


def _proof(problem: Problem, primal: _PrimalPoint, dual: _DualPoint) -> Certificate:
    """The values of two points."""
    upper = problem.primal_of(*primal[:3], shift=primal.shift)
    lower = problem.dual_of(dual.alpha, dual.w, upper)
    if lower < 0.0 and problem.total is None:
        # Worth less than alpha = 0, as multipliers of a run cut short may be; a part of them is not.
        dual = _best_multiple(problem, dual)
        lower = problem.dual_of(dual.alpha, dual.w, upper)
    if not lower >= 0.0 and problem.total is None:
        dual, lower = _DualPoint(np.zeros_like(dual.alpha), np.zeros_like(dual.w), "alpha = 0"), 0.0
    proof = Certificate(
        problem,
        primal.w,
        primal.b,
        upper,
        dual.alpha,
        lower,
        dual.alpha_from,
        primal.margins,
        dual.w,
        shift=primal.shift,
    )
    return proof._with_interval(primal.b_interval)


def _is_rounding(problem: Problem, proof: Certificate) -> bool:
    """Whether the gap is more than twice what it would be without bounds on rounding."""
    rows = problem.rows
    plain = problem.plain_value(proof.w, proof.b, proof.margins, proof.shift)
    if rows.has_kernel:
        plain += 0.5 * (rows.plain_squared_norm(proof.w) - rows.squared_norm(proof.w))
    size = problem.plain_dual_size(proof.w_of_alpha)
    return proof.gap > 2.0 * (plain - problem.objective.dual(proof.alpha, size, 0.0))


def _hides(problem: Problem, dual: _DualPoint, proof: Certificate) -> bool:
    """Whether multipliers had to make way for others because the bound on rounding hides their value."""
    if proof.alpha is dual.alpha:
        return False
    plain = problem.plain_dual_size(dual.w)
    bound = problem.rows.squared_norm(dual.w) if problem.rows.has_kernel else plain
    return problem.objective.dual(dual.alpha, 2.0 * plain - bound, 0.0) > proof.dual


def _twofold(problem: Problem, proof: Certificate, proposed: _DualPoint) -> Certificate:
    """The same two points with bounds in twofold precision, where those are better.

    The multipliers are those that were proposed, also where those of the proof are others.
    Where C is so large that what rounding takes from a margin of 1 can be seen in the objective, a w that
    is longer by as much makes up for it.
    """
    rows, objective, lacking = problem.rows, problem.objective, np.empty(problem.rows.count)
    w, b, best = proof.w, proof.b, proof
    for _ in range(_LOOKS + 1):
        scores = rows.twofold_scores(w)
        if scores is None:
            return proof
        upper = objective.twofold_primal(scores, b, lacking, proof.shift)
        if upper < best.primal:
            best = changed(best, w=w, b=b, primal=upper, margins=1.0 - lacking)
            best.__dict__.pop("b_interval", None)  # that was of another w
        trifle = float(lacking.max(where=(lacking < _TRIFLE) & (problem.costs > 0.0), initial=0.0))
        if trifle == 0.0 or not problem.margins_scale:
            break
        factor = 1.0 + 2.0 * max(trifle, _EPSILON)
        w, b = factor * w, factor * b
    size = problem.twofold_dual_size(proposed.alpha)
    lower = objective.twofold_dual(proposed.alpha, size, problem.reach(best.primal))
    if not lower > proof.dual:
        return best
    alpha, w, alpha_from = proposed
    return changed(best, dual=lower, alpha=alpha, w_of_alpha=w, alpha_from=alpha_from)


def _better_of(problem: Problem, proof: Certificate, known: Certificate) -> Certificate:
    """The better primal point of two proofs with the better dual point; in doubt, what is known is kept."""
    primal = proof if proof.primal < known.primal else known
    dual = proof if proof.dual > known.dual else known
    point, bound = (primal.w, primal.b, primal.primal), (dual.alpha, dual.dual, dual.alpha_from)
    derived = None
    if primal.derived is not None or dual.derived is not None:
        rows = problem.rows
        derived = Off(*primal.off(rows)[:2], dual.off(rows).combined)
    merged = Certificate(
        proof.problem, *point, *bound, primal.margins, dual.w_of_alpha, derived, primal.shift
    )
    return merged._with_interval(primal.__dict__.get("b_interval"))


def longer(problem: Problem, w: Vector, b: float, margins: Vector) -> tuple[Vector, float, Vector]:
    """(w, b) times the number above 1 that is worth most, with the best intercept again; for the hinge.

    Where C is so large that hardly a loss is left, it clears the trifles that a dual method leaves
    (core/passes/best_length.hpp).
    """
    if problem.loss.name != "hinge" or not problem.margins_scale:
        return w, b, margins
    costs = np.ascontiguousarray(problem.costs[:: problem.group])
    factor = core.best_length(problem.worst(margins), costs, 2.0 * problem.regulariser(w, b))
    if factor == 1.0:
        return w, b, margins
    scores = factor * (problem.y * margins - b)
    b = problem.best_intercept(scores)
    return factor * w, b, problem.y * (scores + b)


def _of_the_best_length(problem: Problem, point: _PrimalPoint, budget: core.Budget) -> _PrimalPoint:
    """The point made longer where that is better.

    Its margins come from the data again where their rounding, C times, could be seen in the objective. What
    rounding has taken from a margin of 1 is made up for by as much more length.
    """
    w, b, margins = longer(problem, point.w, point.b, point.margins)
    if w is point.w:
        return point
    many = problem.rows.has_kernel and problem.rows.count > _SHORT_PASS
    if many or problem.total_cost * _OF_A_MARGIN <= _UNSEEN * problem.regulariser(w, b):
        return _PrimalPoint(w, b, margins, None)
    for look in range(_LOOKS + 1):
        point = _primal_point(problem, w, budget, None)
        missing = 1.0 - point.margins
        trifle = float(missing.max(where=(missing < _TRIFLE) & (problem.costs > 0.0), initial=0.0))
        if trifle == 0.0 or look == _LOOKS:
            break
        w = (1.0 + 2.0 * trifle) * w
    return point


def _longer_by_rounding(problem: Problem, proof: Certificate, budget: core.Budget) -> Certificate:
    """The same proof, of a w that is longer by what rounding may take from its margins, if that is better.

    Where C is so large that hardly a loss is left, what rounding may take from a margin of 1 counts C
    times, and is most of the gap.
    """
    if problem.loss.name != "hinge" or not problem.margins_scale:
        return proof
    rows = problem.rows
    per_length, constant = rows.score_error(proof.w)
    # What is longer is rounded once more.
    least = proof.margins - (per_length * rows.lengths + constant + 8.0 * UNIT * np.abs(proof.margins))
    costs = np.ascontiguousarray(problem.costs[:: problem.group])
    held = 2.0 * problem.regulariser(proof.w, proof.b)
    factor = core.best_length(problem.worst(least), costs, held)
    if factor == 1.0:
        return proof
    w, b, margins, interval, _ = _primal_point(problem, factor * proof.w, budget, None)
    upper = problem.primal_of(w, b, margins)
    if not upper < proof.primal:
        return proof
    return changed(proof, w=w, b=b, primal=upper, margins=margins)._with_interval(interval)


def feasible(problem: Problem, alpha: Vector) -> Vector:
    """The nearest thing to alpha that is inside the box and, for an exact intercept, balanced."""
    alpha = np.array(alpha, np.float64)
    problem.objective.make_feasible(alpha)
    return alpha


class SmallProof(NamedTuple):
    """What the core proves of a small problem."""

    b: float
    low: float
    high: float
    """The ends of the interval of all intercepts that are as good as b."""
    primal: float
    dual: float
    kkt_violation: float
    length: float
    """w is so many times the sum that the multipliers make."""
    proven: bool


NUMBERS_OF_PROOF = len(SmallProof._fields) - 1
"""What the core tells of a small proof: all but whether it is one."""


class SmallProofs(Sequence[Certificate]):
    """The certificates of small problems on one kernel matrix, each made when it is first asked for.

    There are 45 of them for ten classes, and to make them all can take as long as to solve the problems.
    Problem k has the rows ``begins[k]`` to ``begins[k + 1]`` of each array.
    """

    def __init__(
        self, values: list[SmallProof], begins: Indices, beta: Vector, alpha: Vector, margins: Vector
    ) -> None:
        self.values, self.beta, self.alpha, self.margins = values, beta, alpha, margins
        self.row_classes = np.empty(len(alpha), np.int8)
        self._ends: list[int] = begins.tolist()
        self._made: dict[int, Certificate] = {}

    def __len__(self) -> int:
        return len(self.values)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}  # they would be copies of what the arrays hold

    def rows(self, k: int) -> slice:
        """The places of a problem's rows in the arrays of all problems."""
        return slice(self._ends[k], self._ends[k + 1])

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate]: ...
    def __getitem__(self, index: int | slice) -> Certificate | Sequence[Certificate]:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        k = range(len(self))[index]
        if k not in self._made:
            self._made[k] = self._make(k)
        return self._made[k]

    def _make(self, k: int) -> Certificate:
        rows, (b, low, high, primal, dual, violation, length, proven) = self.rows(k), self.values[k]
        w, alpha, margins = self.beta[rows], self.alpha[rows], self.margins[rows]
        of_alpha = w if length == 1.0 else np.copysign(alpha, w)
        proof = Certificate(None, w, b, primal, alpha, dual, "the working set", margins, of_alpha)
        return proof.with_known(violation, self.row_classes[rows], (low, high), proven)


def certify_each(
    problems: core.SmallProblems,
    y: Vector,
    costs: Vector,
    begins: Indices,
    alpha: Vector,
    lengths: Vector,
    value_error: float,
    budget: core.Budget,
    *,
    kernel_is_none: bool = False,
) -> SmallProofs:
    """Prove what multipliers of small problems are worth, by the same sums as ``certify``, in one call.

    The problems are those of ``SmallProofs``, with the hinge loss and an exact intercept. Alpha is made
    feasible in place. The values of the matrix are each off by at most ``value_error`` times the lengths of
    both rows.
    """
    margins, values = np.empty(len(y)), np.empty((len(begins) - 1, NUMBERS_OF_PROOF))
    problems.prove(alpha, margins, lengths, value_error, values, budget)
    return proofs_of(values, y, costs, begins, alpha, margins, kernel_is_none=kernel_is_none)


def proofs_of(
    values: NDArray[np.float64],
    y: Vector,
    costs: Vector,
    begins: Indices,
    alpha: Vector,
    margins: Vector,
    *,
    kernel_is_none: bool,
) -> SmallProofs:
    """The certificates of small problems by what the core has proven of each, a line of numbers."""
    each = []
    for b, low, high, primal, dual, violation, length in values.tolist():
        proven = not (kernel_is_none or contradictory(primal, dual))
        each.append(SmallProof(b, low, high, primal, max(dual, 0.0), violation, length, proven))
    beta = alpha * y
    if any(proof.length != 1.0 for proof in each):
        beta *= np.repeat([proof.length for proof in each], np.diff(begins))
    proofs = SmallProofs(each, begins, beta, alpha, margins)
    core.row_classes(margins, alpha, costs, False, proofs.row_classes)
    return proofs
