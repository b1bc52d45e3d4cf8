# SPDX-License-Identifier: BSD-3-Clause
"""The one problem that every solver minimises.

minimise over (w, b)   1/2 |w|^2  +  sum_i C_i loss(m_i),      C_i = C weight_i
                       m_i = y_i (<w, x_i> + b) + 1 - p_i

or over w alone, where b is a number that is given, as a rule 0. In classification every target p_i is 1. In
general the hinge is max(0, p_i - y_i (<w, x_i> + b)): row i wants a score of at least p_i, or of at most
-p_i where its sign y_i is -1. That says regression, too (problem/regression.py). Rows in a group share one
loss, that of the worst of them: so several classes are one problem (problem/class_rows.py).

With the l1 penalty, |w|_1 stands in the place of 1/2 |w|^2, and most entries of w are 0 at the optimum.

Where a ``total`` T is given, all targets are lowered by a ``shift`` e that is sought, and that costs T e:

minimise over (w, b, e)   1/2 |w|^2  +  T e  +  sum_i C_i loss(m_i)
                          m_i = y_i (<w, x_i> + b) + 1 - p_i + e

The multipliers then add up to T. That says the problems with a nu (problem/shares.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import fsum, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import core
from maxmargin.problem.losses import LOSSES, Loss
from maxmargin.problem.rows import LARGEST, UNIT, RowSpace, is_within_limits, refuse_extremes, rows_of
from maxmargin.tools.parameters import changed
from maxmargin.types import Vector

_HALVINGS = 60
"""Halvings of a bracket until float64 has no number in its middle."""


class Intercept(StrEnum):
    """The three forms of b."""

    NONE = "none"
    """b = 0, or another number that is given with the problem."""
    REGULARISED = "regularised"
    """One more feature of constant value s (the augmentation trick, 000): b^2 / (2 s^2) is added."""
    EXACT = "exact"
    """b is free, as in the lectures' problem; the dual then carries sum_i alpha_i y_i = 0."""


class Penalty(StrEnum):
    """What keeps w small."""

    L2 = "l2"
    """1/2 |w|^2."""
    L1 = "l1"
    """|w|_1, the sum of the magnitudes: it makes w sparse. A regularised b adds |b| / s."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, loss and intercept form; what is to be solved, and nothing about how.

    Use ``Problem.of(X, y, C=...)`` to build one from arrays. An array that lies on a GPU stays there.
    """

    rows: RowSpace
    y: Vector
    """Labels, -1.0 or 1.0."""
    costs: Vector
    """C_i >= 0, one for each row."""
    loss: Loss
    intercept: Intercept
    intercept_scaling: float = 1.0
    """Value s of the constant feature when the intercept is regularised."""
    fixed_intercept: float = 0.0
    """b itself when there is none to be sought."""
    targets: Vector | None = None
    """p_i, one for each row; None where all of them are 1."""
    penalty: Penalty = Penalty.L2
    group: int = 1
    """How many rows in turn share one loss, that of the smallest margin; all of them have the same C_i."""
    total: float | None = None
    """What the multipliers add up to where all targets have a shift that is sought; None where not."""
    targets_rest: Vector | None = None
    """What rounding took from the targets, which proofs add to them again; None where that is 0."""

    @classmethod
    def of(
        cls,
        X: Any,
        y: ArrayLike,
        C: float = 1.0,
        *,
        loss: str | Loss = "hinge",
        intercept: str | Intercept = Intercept.EXACT,
        weights: ArrayLike | None = None,
        intercept_scaling: float = 1.0,
        fixed_intercept: float = 0.0,
        targets: ArrayLike | None = None,
        penalty: str | Penalty = Penalty.L2,
        group: int = 1,
        total: float | None = None,
        targets_rest: Vector | None = None,
    ) -> Problem:
        """Check the arguments and build the problem; ``X`` is copied only as ``Rows`` says."""
        rows = rows_of(X)
        if rows.count == 0:
            raise ValueError("A problem needs at least one row. Got 0 rows. Look at how X was made.")
        labels = np.ascontiguousarray(y, dtype=np.float64)
        if labels.shape != (rows.count,):
            raise ValueError(
                f"y must hold one label for each of the {rows.count} rows of X. "
                f"Got an array of shape {labels.shape} instead."
            )
        strange = labels[np.abs(labels) != 1.0]
        if len(strange):
            raise ValueError(
                f"The labels y of a problem must be -1 or 1. Got {strange[0]:g} instead. LinearSVC takes "
                "labels of any kind and any number of classes."
            )
        if not (np.isfinite(C) and C > 0):
            raise ValueError(
                f"C must be a finite number above 0. Got {C!r} instead. C weighs the losses: a larger "
                "C fits the data harder. The hard margin, C = inf, is solve_hard_margin's."
            )
        if not is_within_limits(intercept_scaling):
            raise ValueError(
                "intercept_scaling must be a finite number above 0, "
                f"from {1.0 / LARGEST:g} to {LARGEST:g}. Got {intercept_scaling!r} instead."
            )
        if intercept not in list(Intercept):
            names = ", ".join(repr(form.value) for form in Intercept)
            raise ValueError(f"intercept must be one of {names}. Got {intercept!r} instead.")
        if not np.isfinite(fixed_intercept) or (fixed_intercept != 0.0 and intercept != Intercept.NONE):
            raise ValueError(
                "fixed_intercept must be a finite number, and 0 unless intercept='none'. Got "
                f"{fixed_intercept!r} with intercept={str(intercept)!r} instead. A b that is fixed is not "
                "sought: use intercept='none'."
            )
        costs = np.full(rows.count, float(C))
        if weights is not None:
            with np.errstate(over="ignore"):  # which is refused below
                costs *= _checked_weights(np.asarray(weights, dtype=np.float64), rows.count)
        if isinstance(loss, str):
            if loss not in LOSSES:
                raise ValueError(f"loss must be one of {', '.join(LOSSES)}. Got {loss!r} instead.")
            loss = LOSSES[loss]
        scaling, fixed = float(intercept_scaling), float(fixed_intercept)
        wanted = None if targets is None else _checked_targets(targets, rows.count)
        kind = _checked_penalty(penalty, rows, loss)
        if group > 1 and not (loss.name == "hinge" and intercept == Intercept.NONE and wanted is None):
            raise ValueError(
                "Groups of rows can share a hinge without an intercept and without targets. Got "
                f"loss={loss.name!r} and intercept={str(intercept)!r} with group={group} instead."
            )
        form = Intercept(intercept), scaling, fixed
        problem = cls(rows, labels, costs, loss, *form, wanted, kind, group, targets_rest=targets_rest)
        if total is not None:
            problem = replace(problem, total=checked_total(problem, float(total)))
        if rows.has_kernel:
            refuse_extremes(problem.total_cost, 0.0)
        else:
            refuse_extremes(problem.total_cost, max(rows.largest_length, problem.bias_feature))
        return problem

    def with_costs_times(self, factor: float) -> Problem:
        """The same problem with every C_i multiplied; the rows and all that is known of them are shared."""
        if not (np.isfinite(factor) and factor > 0):
            raise ValueError(
                f"The factor on the costs must be a finite number above 0. Got {factor!r} instead."
            )
        return replace(self, costs=self.costs * float(factor))

    def with_labels(self, y: Vector) -> Problem:
        """The same problem for other labels, -1.0 or 1.0; what is known without them is shared."""
        other = changed(self, y=y)
        other.__dict__.pop("objective", None)
        return other

    @cached_property
    def upper(self) -> Vector:
        """Upper end of each multiplier's box."""
        return self.loss.upper(self.costs)

    @cached_property
    def total_cost(self) -> float:
        """``sum_i C_i``; the objective divided by it is that of 001 with lambda = 1 / total_cost.

        The cost of a group counts once.
        """
        return float(self.costs[:: self.group].sum())

    @cached_property
    def spread(self) -> float:
        """How far apart the scores are that rows want, y_i p_i: their mean distance from their mean.

        In classification it counts as 1. Steps and stops that margins tell are in units of it.
        """
        if self.targets is None or not self.total_cost > 0.0:
            return 1.0
        wishes, shares = self.y * self.targets, self.costs / self.total_cost
        distances = np.abs(wishes - core.dot(shares, wishes))
        return core.dot(shares, distances) or 1.0

    @cached_property
    def objective(self) -> core.Objective:
        """The values of margins and of multipliers, and all else that needs no row to be looked at."""
        number = self.fixed_intercept
        if self.intercept is Intercept.REGULARISED:
            number = self.intercept_scaling
        stated = self.loss.name, self.y, self.costs, self.intercept.value, number
        more = self.penalty.value, self.group, self.total, self.targets_rest
        return core.Objective(*stated, self.targets, *more)

    def worst(self, margins: Vector) -> Vector:
        """The smallest margin of each group: the losses are those of these."""
        return margins if self.group == 1 else margins.reshape(-1, self.group).min(axis=1)

    @property
    def bias_feature(self) -> float:
        """Value of the constant feature that makes b a coordinate of w; 0 without intercept."""
        return {
            Intercept.NONE: 0.0,
            Intercept.REGULARISED: self.intercept_scaling,
            Intercept.EXACT: 1.0,
        }[self.intercept]

    def regulariser(self, w: Vector, b: float) -> float:
        """``1/2 |w|^2``, and ``b^2 / (2 s^2)`` more when the intercept is regularised.

        With the l1 penalty ``|w|_1``, and ``|b| / s`` more.
        """
        beta = b / self.intercept_scaling if self.intercept is Intercept.REGULARISED else 0.0
        if self.penalty is Penalty.L1:
            return self.size(w) + abs(beta)
        # The square may be infinite: a power would be an OverflowError.
        return 0.5 * self.rows.squared_norm(w) + 0.5 * beta * beta

    def size(self, w: Vector) -> float:
        """An upper bound on what the penalty measures of w: ``|w|^2``, or ``|w|_1``."""
        if self.penalty is Penalty.L2:
            return self.rows.squared_norm(w)
        return float(np.abs(w).sum()) * (1.0 + core.sum_rounding(len(w)))

    def regulariser_diagonal(self) -> Vector:
        """The diagonal of R, with which the regulariser is ``1/2 (w, b)' R (w, b)``, or ``1/2 w' R w``."""
        diagonal = np.ones(self.rows.columns + (self.intercept is not Intercept.NONE))
        if self.intercept is Intercept.REGULARISED:
            diagonal[-1] = self.intercept_scaling**-2
        elif self.intercept is Intercept.EXACT:
            diagonal[-1] = 0.0
        return diagonal

    def loss_sum(self, margins: Vector) -> float:
        """``sum_i C_i loss(m_i)``."""
        return self.objective.loss_sum(margins)

    def multipliers(self, margins: Vector) -> Vector:
        """``-C_i loss'(m_i)``, feasible multipliers for any margins."""
        out = np.empty_like(margins)
        self.objective.multipliers(margins, out)
        return out

    @property
    def margins_scale(self) -> bool:
        """Whether the margins of a multiple of (w, b) are that multiple of its own."""
        return self.fixed_intercept == 0.0 and self.targets is None

    def margins(self, w: Vector, b: float, shift: float = 0.0) -> Vector:
        """``y_i (<w, x_i> + b) + 1 - p_i + shift``: one pass over the data."""
        return self.margins_of(self.rows.scores(w), b, shift)

    def margins_of(self, scores: Vector, b: float, shift: float = 0.0) -> Vector:
        """The margins of rows whose ``<w, x_i>`` are known."""
        margins = self.y * (scores + b)
        return margins if self.targets is None else margins + ((1.0 - self.targets) + shift)

    def scores_of(self, margins: Vector, b: float, shift: float = 0.0) -> Vector:
        """``<w, x_i>``, from the margins."""
        if self.targets is not None:
            margins = margins - ((1.0 - self.targets) + shift)
        return self.y * margins - b

    def primal(self, w: Vector, b: float = 0.0, shift: float = 0.0) -> float:
        """The objective at (w, b), up to rounding; at the shift, too, where one is sought."""
        return self.plain_value(w, b, self.margins(w, b, shift), shift)

    def plain_value(self, w: Vector, b: float, margins: Vector, shift: float) -> float:
        """The same, of a point whose margins are known."""
        return self.regulariser(w, b) + (self.total or 0.0) * shift + self.loss_sum(margins)

    def primal_of(
        self,
        w: Vector,
        b: float,
        margins: Vector,
        error: tuple[float, float] | None = None,
        shift: float = 0.0,
    ) -> float:
        """An upper bound on the objective at a point whose margins were computed, rounding included.

        ``error`` bounds that rounding, as ``rows.score_error`` does, where margins come from other points.
        """
        rows = self.rows
        error = rows.score_error(w) if error is None else error
        return self.objective.primal(margins, b, self.size(w), rows.lengths, *error, shift=shift)

    @property
    def primal_of_zero(self) -> float:
        """The objective at w = 0 and b = 0, or at the b that is fixed."""
        if self.targets is not None and self.loss.name in ("hinge", "squared_hinge"):
            # A margin of 1 - p_i would have lost the digits of a small target.
            wanted = self.targets
            if self.fixed_intercept:
                wanted = wanted - self.y * self.fixed_intercept
            lacking = np.maximum(wanted, 0.0)
            if self.loss.name == "squared_hinge":
                lacking *= lacking
            return core.dot(self.costs, lacking)
        if self.fixed_intercept or self.targets is not None:
            return self.loss_sum(self.margins_of(np.zeros(self.rows.count), self.fixed_intercept))
        return self.total_cost * self.loss.at_zero

    def dual(self, alpha: Vector) -> float:
        """A lower bound on the dual objective, equal but for rounding; ``-inf`` if alpha is not feasible.

        Rounding may leave the sum of alpha_i y_i at a little more than 0, and the bound takes that into
        account.
        """
        if np.any(alpha < 0) or np.any(alpha > self.upper):
            return -np.inf
        excess = abs(core.dot(alpha, self.y))
        if self.intercept is Intercept.EXACT and excess > 1e-12 * float(alpha.sum()):
            return -np.inf
        if self.total is not None and abs(float(alpha.sum()) - self.total) > 1e-12 * self.total:
            return -np.inf
        return self.dual_of(alpha, self.rows.combine(alpha * self.y))

    def dual_of(
        self, alpha: Vector, w: Vector, upper: float | None = None, error: float | None = None
    ) -> float:
        """A lower bound on the best value: the dual objective of an alpha in its box, rounding included.

        ``w`` is the computed ``sum_i alpha_i y_i x_i``, which may be off by a vector of length ``error``
        where it comes from other sums, and ``upper`` a bound from above on the best value, if one is known.
        Where b is exact, what alpha lacks for balance counts as often as b can be large.
        """
        return self.objective.dual(alpha, self.dual_size(alpha, w, error), self.reach(upper))

    def dual_size(self, alpha: Vector, w: Vector, error: float | None = None) -> float:
        """An upper bound on what the dual asks of ``sum_i alpha_i y_i x_i``, which was computed as ``w``.

        That is its squared length, or with the l1 penalty its largest magnitude, which must not be above 1.
        """
        rows = self.rows
        if self.penalty is Penalty.L1:
            off = rows.combined_error(alpha) if error is None else error
            return (float(np.abs(w).max(initial=0.0)) + off) * (1.0 + 4.0 * UNIT)
        # Through a kernel, w is its coefficients; otherwise only the sizes of these count, without signs.
        return rows.squared_norm_of(w if rows.has_kernel else alpha, w, error)

    def plain_dual_size(self, w: Vector) -> float:
        """The same without a bound on rounding."""
        if self.penalty is Penalty.L1:
            return float(np.abs(w).max(initial=0.0))
        return self.rows.plain_squared_norm(w)

    def twofold_dual_size(self, alpha: Vector) -> float:
        """The same in twofold precision, for rows that have it."""
        if self.penalty is Penalty.L1:
            return core.twofold_largest(self.rows.stored_data, alpha * self.y)
        return self.rows.twofold_squared_norm_of(alpha * self.y)

    def distance_from_optimal(self, w: Vector, w_of_alpha: Vector) -> float:
        """How far a w is from what the second, ``sum_i alpha_i y_i x_i``, is to be at the optimum.

        The two are equal there; with the l1 penalty the second is the sign of w, and at most 1 where w is
        0.
        """
        if self.penalty is Penalty.L1:
            off = np.where(w == 0.0, np.abs(w_of_alpha) - 1.0, np.abs(w_of_alpha - np.sign(w)))
            return float(off.max(initial=0.0))
        return float(np.abs(w - w_of_alpha).max(initial=0.0))

    def reach(self, upper: float | None = None) -> float:
        """A bound on |b| at some optimum, where b is exact and the best value is at most ``upper``."""
        if self.intercept is not Intercept.EXACT and self.total is None:
            return 0.0
        most = self.primal_of_zero * (1.0 + (self.rows.count + 16) * UNIT)
        if upper is not None:
            most = min(upper, most)
        return self.objective.reach(most, self.rows.largest_length)

    def best_multiple(self, alpha: Vector, w: Vector) -> float:
        """The t in [0, 1] that makes ``D(t alpha)`` largest, for losses whose dual is quadratic in t.

        ``w`` is ``sum_i alpha_i y_i x_i``. Multipliers made from the margins of a point far from the
        optimum are far too large; this much of them is worth most. All of them where they have a total.
        With the l1 penalty, the largest t is that of feasible multipliers, and any smooth loss will do.
        """
        if self.penalty is Penalty.L1:
            return self._best_feasible_multiple(alpha, w)
        if self.loss.name not in ("hinge", "squared_hinge") or self.total is not None:
            return 1.0
        linear = self.linear_gain(alpha)
        quadratic = linear - self.objective.dual(alpha, self.rows.squared_norm(w), 0.0)
        return min(1.0, max(0.0, 0.5 * linear / quadratic)) if quadratic > 0 else 1.0

    def _best_feasible_multiple(self, alpha: Vector, w: Vector) -> float:
        counted = alpha > 0.0
        if not counted.any():
            return 1.0
        # A little less than what is feasible, so that rounding asks for no second look.
        most = (1.0 - 16.0 * UNIT) / self.objective.divisor(alpha, self.dual_size(alpha, w))
        if self.loss.name == "squared_hinge":
            linear = self.linear_gain(alpha)
            shares = np.divide(alpha, self.costs, where=counted, out=alpha * 0.0)
            quadratic = 0.25 * core.dot(alpha, shares)  # the square of a multiplier could be 0
            return min(most, 0.5 * linear / quadratic)
        fixed = self.fixed_intercept * core.dot(alpha, self.y) if self.fixed_intercept else 0.0
        own, costs = (alpha, self.costs) if counted.all() else (alpha[counted], self.costs[counted])
        shares = own / costs

        def slope(t: float) -> float:
            taken = t * shares
            with np.errstate(divide="ignore"):  # a share that rounds to 0 or 1 pulls without end
                return -core.dot(own, np.log(taken / (1.0 - taken))) - fixed

        if slope(most) >= 0.0:
            return most
        low, high = 0.0, most
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
        return low or most

    def linear_gain(self, alpha: Vector) -> float:
        """The part of ``D(t alpha)`` that is linear in t, for the hinge and the squared hinge."""
        fixed = self.fixed_intercept * core.dot(alpha, self.y) if self.fixed_intercept else 0.0
        return (float(alpha.sum()) if self.targets is None else core.dot(alpha, self.targets)) - fixed

    def primal_from_dual(self, alpha: Vector) -> tuple[Vector, float]:
        """``w = sum_i alpha_i y_i x_i`` with the best intercept for it: two passes."""
        self.refuse_l1("w follows from alpha alone with the l2 penalty. Give w.")
        w = self.rows.combine(alpha * self.y)
        return w, self.best_intercept(self.rows.scores(w))

    def refuse_l1(self, why: str) -> None:
        """Raise ValueError where the penalty is l1."""
        if self.penalty is Penalty.L1:
            raise ValueError(f"penalty must be 'l2' here. Got 'l1' instead. {why}")

    def best_intercept(self, scores: Vector) -> float:
        """A b that minimises the objective for given ``<w, x_i>``: the middle of all that do."""
        return self.objective.best_intercept(scores)[0]

    def best_intercepts(self, scores: Vector) -> tuple[float, float]:
        """All b that minimise the objective for given ``<w, x_i>``, as an interval: O(n) per look.

        A point where the intercept is regularised or fixed, and as a rule for smooth losses. With one class
        only an end may be infinite.
        """
        return self.objective.best_intercept(scores)[1:3]


def checked_total(problem: Problem, total: float) -> float:
    """A total that multipliers inside their boxes can have; the largest one, but for rounding."""
    if (
        problem.loss.name != "hinge"
        or problem.targets is None
        or problem.intercept is Intercept.REGULARISED
    ):
        raise ValueError(
            "A total needs the hinge loss, targets that can be lowered, and an intercept that is exact or "
            f"none. Got loss={problem.loss.name!r} and intercept={problem.intercept.value!r} instead."
        )
    most = fsum(problem.costs)
    if problem.intercept is Intercept.EXACT:
        most = 2.0 * min(fsum(problem.costs[problem.y == sign]) for sign in (1.0, -1.0))
    if not 0.0 < total <= most * (1.0 + 1e-12):
        raise ValueError(
            f"total must be above 0 and at most {most:g}, what the multipliers inside their boxes can add "
            f"up to. Got {total!r} instead."
        )
    return min(total, nextafter(most, 0.0))


def _checked_penalty(penalty: str | Penalty, rows: RowSpace, loss: Loss) -> Penalty:
    if penalty not in list(Penalty):
        names = ", ".join(repr(kind.value) for kind in Penalty)
        raise ValueError(f"penalty must be one of {names}. Got {penalty!r} instead.")
    if penalty == Penalty.L1 and not loss.smooth:
        raise ValueError(
            f"The l1 penalty is offered with smooth losses. Got the loss {loss.name!r} instead. Use "
            "'squared_hinge' or 'logistic'."
        )
    if penalty == Penalty.L1 and rows.has_kernel:
        raise ValueError(
            "The l1 penalty is on the columns of w, and rows that are seen through a kernel have none. Use "
            "the rows themselves, or a feature map before them."
        )
    return Penalty(penalty)


def _checked_targets(targets: ArrayLike, count: int) -> Vector:
    wanted = np.ascontiguousarray(targets, dtype=np.float64)
    if wanted.shape != (count,):
        raise ValueError(
            f"targets must hold one number for each of the {count} rows of X. "
            f"Got an array of shape {wanted.shape} instead."
        )
    largest = float(np.abs(wanted).max(initial=0.0))
    if not largest <= LARGEST:
        raise ValueError(
            f"The targets (in regression y - epsilon and y + epsilon) must be numbers of at most "
            f"{LARGEST:g}. Got {largest!r} instead. Divide y and epsilon by a number that makes them "
            "smaller, and multiply predictions by it."
        )
    if 0.0 < largest < 1.0 / LARGEST:
        raise ValueError(
            "The targets (in regression y - epsilon and y + epsilon) must be 0, or some of them "
            f"{1.0 / LARGEST:g} or more. The largest is {largest!r}: products of such numbers leave "
            "float64. Multiply y and epsilon by a number that makes them larger, and divide predictions by "
            "it."
        )
    return wanted


def _checked_weights(weights: Vector, count: int) -> Vector:
    if weights.shape != (count,):
        raise ValueError(
            f"weights must hold one number for each of the {count} rows of X. "
            f"Got an array of shape {weights.shape} instead."
        )
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(wrong):
        raise ValueError(f"weights must be finite and not negative. Got {wrong[0]} instead.")
    if not weights.any():
        raise ValueError("weights must not all be 0: some row has to count.")
    return weights
