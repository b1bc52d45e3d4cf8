# SPDX-License-Identifier: BSD-3-Clause
"""Where coordinate descent is: a point, how all columns pull at it, and the best proof so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers.second_order.opening import Opening
from maxmargin.types import Vector

_PATIENCE = 12
"""Steps that do not halve the gap, all of them together, before models are solved with care. Texts and
other easy data halve it in 10 or fewer."""


@dataclass(kw_only=True)
class State:
    """A point with its margins, and how all columns pull at it."""

    columns: core.Data | None
    """The columns as rows; None where these are few, and are read by rows."""
    lengths: Vector
    """The length of each column; 1 for those that are empty. None are needed where columns are few."""
    w: Vector
    b: float
    margins: Vector
    multipliers: Vector
    """a_i at the point."""
    pulls: Vector
    """v_j of all columns, with these multipliers."""
    is_seen: bool
    """Whether the two are those of the point as it is now."""
    primal: float
    gap: float
    """The relative gap, but for rounding."""
    alpha: Vector | None = None
    """The best feasible multipliers so far."""
    dual: float = -np.inf
    """What they are worth, but for rounding."""
    promise: float = np.inf
    """What the last model fell by, as a share of the objective."""
    lifted: bool = True
    """Whether models are lifted to where they do not fall below 0: far from the optimum, and after a step
    that had to be cut."""
    careful: bool = False
    """Whether models are solved with care from now on: loose ones were no good."""
    halved: float = 1.0
    """The gap when it was halved last."""
    waited: int = 0
    """How many steps ago that was."""
    finished: bool = False
    """Whether a step found nothing to gain."""
    opening: Opening | None = None
    """The same problem with a sample of very many rows, at whose solution the first step begins."""

    def judge(self) -> None:
        """Count steps that do not halve the gap, and lose patience with loose models."""
        self.waited += 1
        if self.gap <= 0.5 * self.halved:
            self.halved, self.waited = self.gap, 0
        self.careful |= self.waited >= _PATIENCE


def at(problem: Problem, w: Vector) -> tuple[float, Vector, float]:
    """The best intercept for w, the margins, and the objective."""
    if w.any():
        margins = problem.rows.scores(w)
        b = problem.objective.take_best_intercept(margins)[0]
    else:
        b = _intercept_of_zero(problem)
        margins = problem.y * b
    return b, margins, problem.regulariser(w, b) + problem.loss_sum(margins)


def _intercept_of_zero(problem: Problem) -> float:
    """The best intercept for w = 0, where the rows of a class are one row of all their costs."""
    signs = np.array([1.0, -1.0])
    costs = np.array([problem.costs[problem.y == sign].sum() for sign in signs])
    number = (
        problem.intercept_scaling if problem.intercept is Intercept.REGULARISED else problem.fixed_intercept
    )
    two = core.Objective(
        problem.loss.name, signs, costs, problem.intercept.value, number, penalty=problem.penalty.value
    )
    return two.best_intercept(np.zeros(2))[0]


def is_dense(state: State) -> bool:
    """Whether every row has a value in every column, as dense data have."""
    columns = state.columns
    return columns is not None and columns.stored == columns.count * len(state.margins)


def look(problem: Problem, state: State, budget: Budget) -> None:
    """Multipliers and pulls at the point: line 2."""
    state.multipliers = problem.multipliers(state.margins)
    state.pulls = pulls_of(problem, state.columns, state.multipliers, budget)
    state.is_seen = True


def take_dual(problem: Problem, state: State, alpha: Vector, pulls: Vector) -> None:
    """The gap with the best multiple of these multipliers, if they are the best so far."""
    factor = problem.best_multiple(alpha, pulls)
    alpha *= factor
    dual = problem.objective.dual(alpha, factor * problem.plain_dual_size(pulls), 0.0)
    if dual > state.dual:
        state.alpha, state.dual = alpha, dual
    state.gap = core.relative_gap(state.primal, state.dual)


def pulls_of(problem: Problem, columns: core.Data | None, alpha: Vector, budget: Budget) -> Vector:
    """``sum_i alpha_i y_i x_ij`` of these columns, or of all."""
    if columns is None:
        return problem.rows.combine(alpha * problem.y, budget)
    return products_with(columns, alpha * problem.y, budget)


def products_with(columns: core.AnyData, values: Vector, budget: Budget) -> Vector:
    """The products of all columns with a vector."""
    out = np.empty(columns.count)
    core.scores(columns, values, out, budget)
    return out


def threshold_of(problem: Problem) -> float:
    """What a unit of b costs."""
    return 1.0 / problem.intercept_scaling if problem.intercept is Intercept.REGULARISED else 0.0
