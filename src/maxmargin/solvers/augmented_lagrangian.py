# SPDX-License-Identifier: BSD-3-Clause
"""Augmented Lagrangian with semismooth Newton inside, for the hinge.

    minimise over v = (w, b)   1/2 v'Rv + sum_i C_i max(0, 1 - m_i),      m_i = y_i <v, z_i>

R and z_i as in second_order/system.py. The kink of each loss is rounded off over a stretch of 1/k around
a place that alpha_i says; when the smooth problem is nearly solved, its multipliers are the next alpha,
and k grows.

    1  repeat
    2      a_i = clip(alpha_i + k C_i (1 - m_i), 0, C_i);      J = the rows with 0 < a_i < C_i
    3      g   = R v - sum_i a_i y_i z_i
    4      if g'R^-1 g / 2 is a small part of the gap between v and a:   alpha = a;  k = 3 k or 10 k
    5      solve (R + k sum_J C_i z_i z_i') p = -g
    6      s   = the best step along p;   v += s p;   m_i += s y_i <p, z_i>

A step costs two passes over the data, most of which are spared rows whose a_i stays, and the factor. The
number of steps hardly depends on C. Three things make them few:

* the start is a few sweeps of dual coordinate ascent, whose alpha knows most of the rows already; or, for
  very many rows of few columns, the w of a sample of them. Few and short rows begin at zero;
* after line 4, J is taken over: a_i of its rows is not clipped in the first g, so that the first step aims
  at m_i = 1 for all of them;
* a row that has just left J counts for 0.3 of its curvature once more, since it often comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.second_order.base import Begun, SecondOrder
from maxmargin.solvers.second_order.opening import Opening
from maxmargin.solvers.second_order.step import Iterate, Pieces, steps_at_once
from maxmargin.solvers.second_order.system import FEW_VALUES, TOO_LARGE, Hessian, NewtonSystem
from maxmargin.tools.parameters import Positive, Range
from maxmargin.types import Vector

_STIFFEST = 1e7
"""Beyond, rounding of the margins is all that the multipliers of free rows show."""
_ENOUGH = 1e-9
"""A run that can go no further and has a wider gap begins again."""
_MOST_RESTARTS = 5
_SOFTEN = 1000.0
_EPSILON = float(np.finfo(float).eps)
_SWEEPS = 4
_LONG_ROW = 40
_FEW_COLUMNS = 20
_AFTER_SAMPLE = 10.0
"""The first k after a sample: its margins are nearer to the end than those after a few sweeps."""


@dataclass
class State(Begun):
    """Where the method stands."""

    alpha: Vector
    stiffness: float
    """k."""
    best_v: Vector
    best_multipliers: Vector
    standing: core.Standing
    """The values of these two, and whether there is more to gain."""
    begun: bool = False
    """Whether the first step of this alpha has been taken."""
    restarts: int = 0

    def pieces(self, problem: Problem) -> Pieces:
        """The smooth problem of line 2."""
        return Pieces("hinge", problem.costs, self.alpha, self.stiffness)


@dataclass(frozen=True)
class AugmentedLagrangian(SecondOrder[State]):
    """Augmented Lagrangian with semismooth Newton inside; for the hinge."""

    name: ClassVar[str] = "augmented_lagrangian"
    stiffness: Positive = 3.0
    """The first k."""
    raise_by: Annotated[float, Range("[1, inf)")] | None = None
    """The factor on k in line 4. None: 3; 10 for at most 20 columns, since few rows can then be free, and a
    step finds them from further away."""
    small_part: Positive = 0.2
    """How small |g|^2 / 2 must be beside the gap in line 4."""

    def accepts(self, problem: Problem) -> str | None:
        """The hinge."""
        if problem.loss.name != "hinge":
            return (
                "augmented_lagrangian rounds off the kink of the hinge. Got the loss "
                f"{problem.loss.name!r} instead. Use newton for the smooth losses."
            )
        return None

    def after(self, opening: Opening) -> AugmentedLagrangian:
        """Stiffer after a sample."""
        return replace(self, stiffness=max(self.stiffness, _AFTER_SAMPLE)) if opening.sampled else self

    def stiffer(self, before: State) -> float:
        """By its k."""
        return before.stiffness / self.stiffness

    def sweeps_of(self, problem: Problem) -> int:
        """By default four; none for few and short rows, where they cost as much as the steps they spare."""
        if self.sweeps is not None:
            return self.sweeps
        rows = problem.rows
        return 0 if rows.stored <= min(FEW_VALUES, _LONG_ROW * rows.count) else _SWEEPS

    def begin(
        self, problem: Problem, start: Solution, budget: Budget, system: NewtonSystem | None = None
    ) -> State:
        """With the alpha of the start, or the middle of the box where it has none."""
        # Multipliers that nothing is known of are in the middle: the rounded kink is then around m = 1.
        alpha = 0.5 * problem.costs
        if start.alpha is not None:
            alpha = np.clip(np.nan_to_num(start.alpha), 0.0, problem.costs)
        w = start.w
        if w is None and start.alpha is not None:
            w = problem.rows.combine(alpha * problem.y, budget)
        known = None if start.margins is None else (start.b, start.margins)
        iterate = Iterate.at(problem, w, budget, known, system)
        state = State(
            alpha, self.stiffness, iterate.v.copy(), alpha.copy(), core.Standing(), iterate=iterate
        )
        np.multiply(self.stiffness, problem.costs, out=iterate.curvatures)
        if start.alpha is None:
            # Without multipliers, the margins tell which rows are free.
            iterate.refresh(state.pieces(problem), budget)
            state.begun, state.standing.primal = True, iterate.primal
            return state
        iterate.multipliers[:] = alpha
        iterate.combined = iterate.system.combine(alpha * problem.y, budget, start.w_of_alpha)
        iterate.curvatures[(alpha <= 0.0) | (alpha >= problem.costs)] = 0.0
        regulariser = problem.regulariser(iterate.w, iterate.b)
        state.standing.primal = regulariser + problem.loss_sum(iterate.margins)
        return state

    def advance(self, problem: Problem, state: State, budget: Budget) -> State:
        """Lines 2 to 6; or again from the best multipliers, where rounding has ended a run too early."""
        hessian = state.iterate.system.small_hessian
        if hessian is None:
            self._step(problem, state, budget)
        else:
            self._small_steps(problem, state, hessian, budget)
        if state.standing.finished and state.restarts < _MOST_RESTARTS and _is_wide(problem, state):
            state = self._restart(problem, state, budget)
        state.relative_gap, state.finished = state.standing.relative_gap, state.standing.finished
        return state

    def _step(self, problem: Problem, state: State, budget: Budget) -> None:
        iterate, standing = state.iterate, state.standing
        pieces = state.pieces(problem)
        gradient = iterate.gradient
        first = not state.begun
        if first:
            unclipped = np.where(iterate.curvatures > 0.0, pieces.stiffness * problem.costs, 0.0)
            unclipped *= problem.y * (1.0 - iterate.margins)
            gradient -= iterate.system.combine(unclipped, budget)
            state.begun = True
        length = iterate.move(pieces, gradient, budget)
        iterate.refresh(pieces, budget)
        imbalance, multipliers = iterate.imbalance, iterate.multipliers
        balancing = core.cost_of_balancing(imbalance, state.stiffness, multipliers, problem.costs)
        values = iterate.primal, iterate.dual, imbalance, balancing
        standing.remember(*values, iterate.v, multipliers, state.best_v, state.best_multipliers)
        standing.finished |= length == 0.0 and not first
        residual = iterate.gradient
        error = 0.5 * core.dot(residual, residual / iterate.system.pull) + balancing
        if error <= self.small_part * (iterate.primal - iterate.dual):
            self._next_alpha(state, self.raise_by_of(problem))

    def _small_steps(self, problem: Problem, state: State, hessian: Hessian, budget: Budget) -> None:
        """The same, one or several in one call; see core/linear/augmented_lagrangian.hpp."""
        iterate = state.iterate
        state.taken, state.stiffness, state.begun, *values = core.small_augmented_lagrangian_steps(
            problem.rows.data,
            problem.costs,
            state.alpha,
            state.stiffness,
            state.begun,
            self.raise_by_of(problem),
            self.small_part,
            *iterate.arrays(hessian),
            state.standing,
            state.best_v,
            state.best_multipliers,
            problem.intercept is Intercept.EXACT,
            *steps_at_once(problem, self.until),
            budget,
        )
        if state.taken == 0:
            raise FloatingPointError(TOO_LARGE)
        iterate.primal, iterate.dual, iterate.imbalance = values

    def _restart(self, problem: Problem, state: State, budget: Budget) -> State:
        """From the best multipliers with a smaller k: too stiff a system leaves only rounding."""
        softer = replace(self, stiffness=state.stiffness / _SOFTEN)
        new = softer.begin(problem, Solution(alpha=state.best_multipliers), budget)
        new.restarts, new.taken = state.restarts + 1, state.taken
        new.best_v = state.best_v
        for name in ("primal", "dual", "best_imbalance", "relative_gap"):
            setattr(new.standing, name, getattr(state.standing, name))
        return new

    def raise_by_of(self, problem: Problem) -> float:
        """The factor on k for a problem."""
        if self.raise_by is not None:
            return self.raise_by
        return 10.0 if problem.rows.columns <= _FEW_COLUMNS else 3.0

    def _next_alpha(self, state: State, raise_by: float) -> None:
        state.standing.finished |= state.stiffness > _STIFFEST
        state.alpha = state.iterate.multipliers.copy()
        state.stiffness *= raise_by
        state.begun = False
        state.iterate.curvatures *= raise_by
        state.iterate.system.scale(raise_by)

    def reached(self, problem: Problem, state: State) -> Solution:
        """The best v and the best multipliers so far: any two points make a proof."""
        w = state.best_v[: problem.rows.columns]
        return Solution(w=w.copy(), alpha=state.best_multipliers.copy(), any_length=True)


def _is_wide(problem: Problem, state: State) -> bool:
    """Whether the gap is more than margins tell that are off by a rounding."""
    unseen = _EPSILON * problem.total_cost
    primal = state.standing.primal
    return primal - state.standing.dual > max(_ENOUGH * abs(primal), unseen)
