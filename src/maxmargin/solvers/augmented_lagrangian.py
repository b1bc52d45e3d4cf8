# SPDX-License-Identifier: BSD-3-Clause
"""Augmented Lagrangian with semismooth Newton inside, for the hinge.

    minimise over v = (w, b)   1/2 v'Rv + sum_i C_i max(0, 1 - m_i),      m_i = y_i <v, z_i>

R and z_i as in newton_system.py. The kink of each loss is rounded off over a stretch of 1/k around a place
that alpha_i says; when the smooth problem is nearly solved, its multipliers are the next alpha, and k
grows.

    1  repeat
    2      a_i = clip(alpha_i + k C_i (1 - m_i), 0, C_i);      J = the rows with 0 < a_i < C_i
    3      g   = R v - sum_i a_i y_i z_i
    4      if g'R^-1 g / 2 is a small part of the gap between v and a:   alpha = a;  k = 3 k
    5      solve (R + k sum_J C_i z_i z_i') p = -g
    6      s   = the best step along p;   v += s p;   m_i += s y_i <p, z_i>

A step costs two passes over the data, most of which are spared rows whose a_i stays, and the factor. The
number of steps hardly depends on C. Three things make them few:

* the start is a few sweeps of dual coordinate ascent, whose alpha knows most of the rows already; or, for
  very many rows of few columns, the w of a sample of them;
* after line 4, J is taken over: a_i of its rows is not clipped in the first g, so that the first step aims
  at m_i = 1 for all of them;
* a row that has just left J counts for 0.3 of its curvature once more, since it often comes back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.solution import Solution
from maxmargin.solvers.base import Solver
from maxmargin.solvers.newton_step import Iterate, Pieces
from maxmargin.solvers.opening import Opening
from maxmargin.types import Vector

_STIFFEST = 1e7
"""Beyond, rounding of the margins is all that the multipliers of free rows show."""
_ROUNDING = 1e-14
_ENOUGH = 1e-9
"""A run that can go no further and has a wider gap begins again."""
_MOST_RESTARTS = 5
_SOFTEN = 1000.0
_MOST_IDLE_STEPS = 10
_MOST_IDLE_STEPS_AT_ROUNDING = 2
_AT_ROUNDING = 1e-11
_AFTER_SAMPLE = 10.0
"""The first k after a sample: its margins are nearer to the end than those after a few sweeps."""
_NEAR_ROUNDING = 1e-8
"""Before, steps may well bring the smooth problem closer to its end and neither value to the other."""


@dataclass
class State:
    """Where the method stands."""

    iterate: Iterate
    alpha: Vector
    stiffness: float
    """k."""
    begun: bool = False
    """Whether the first step of this alpha has been taken."""
    primal: float = math.inf
    dual: float = -math.inf
    """Of the best multipliers, as far as the b of ``best_v`` can tell."""
    best_v: Vector | None = None
    best_multipliers: Vector | None = None
    best_imbalance: float = 0.0
    """Of the best multipliers; see Iterate."""
    relative_gap: float = math.inf
    idle: int = 0
    """Steps in a row that brought neither value closer, beyond rounding."""
    restarts: int = 0
    finished: bool = False

    def pieces(self, problem: Problem) -> Pieces:
        """The smooth problem of line 2."""
        return Pieces("hinge", problem.costs, self.alpha, self.stiffness)


@dataclass(frozen=True)
class AugmentedLagrangian(Solver[Opening | State]):
    """Augmented Lagrangian with semismooth Newton inside; for the hinge."""

    name: ClassVar[str] = "augmented_lagrangian"
    sweeps: int = 4
    """Of dual coordinate ascent at the start; a given start needs none, nor does a sample."""
    sampling: bool = True
    """Begin with a sample where there are very many rows of few columns."""
    stiffness: float = 3.0
    """The first k."""
    raise_by: float = 3.0
    """The factor on k in line 4."""
    small_part: float = 0.2
    """How small |g|^2 / 2 must be beside the gap in line 4."""
    seed: int = 0
    """Of the order of the sweeps."""

    def accepts(self, problem: Problem) -> str | None:
        """The hinge."""
        if problem.loss.name != "hinge":
            return (
                "augmented_lagrangian rounds off the kink of the hinge. Got the loss "
                f"{problem.loss.name!r} instead. Use newton for the smooth losses."
            )
        return None

    def init(self, problem: Problem, start: Solution | None) -> Opening | State:
        """From a sample, from sweeps of dual ascent, or from a given w, alpha or both."""
        if start is None and self.sampling:
            opening = Opening.by_sample(problem, replace(self, sampling=False))
            if opening is not None:
                return opening
        if start is None and self.sweeps > 0:
            return Opening.by_sweeps(problem, self.sweeps, self.seed)
        return self._begin(problem, start or Solution(), core.ALL_CORES)

    def _begin(self, problem: Problem, start: Solution, budget: Budget) -> State:
        # Multipliers that nothing is known of are in the middle: the rounded kink is then around m = 1.
        alpha = 0.5 * problem.costs
        if start.alpha is not None:
            alpha = np.clip(np.nan_to_num(start.alpha), 0.0, problem.costs)
        w = start.w
        if w is None and start.alpha is not None:
            w = problem.rows.combine(alpha * problem.y, budget)
        known = None if start.margins is None else (start.b, start.margins)
        iterate = Iterate.at(problem, w, budget, known)
        iterate.multipliers[:] = alpha
        iterate.combined = iterate.system.combine(alpha * problem.y, budget)
        free = (alpha > 0.0) & (alpha < problem.costs)
        iterate.curvatures[free] = self.stiffness * problem.costs[free]
        primal = problem.regulariser(iterate.w, iterate.b) + problem.loss_sum(iterate.margins)
        state = State(iterate, alpha, self.stiffness)
        state.primal, state.best_v, state.best_multipliers = primal, iterate.v.copy(), alpha.copy()
        if start.alpha is None:
            # Without multipliers, the margins tell which rows are free.
            iterate.refresh(state.pieces(problem), budget)
            state.begun = True
        return state

    def step(self, problem: Problem, state: Opening | State, budget: Budget) -> Opening | State:
        """A step of the opening at first, then a Newton step."""
        if isinstance(state, Opening):
            if not state.step(budget):
                return state
            stiffness = max(self.stiffness, _AFTER_SAMPLE) if state.sampled else self.stiffness
            return replace(self, stiffness=stiffness)._begin(problem, state.solution(budget), budget)
        iterate = state.iterate
        pieces = state.pieces(problem)
        gradient = iterate.gradient
        first = not state.begun
        if first:
            unclipped = np.where(iterate.curvatures > 0.0, pieces.stiffness * problem.costs, 0.0)
            unclipped *= problem.y * (1.0 - iterate.margins)
            gradient -= iterate.system.combine(unclipped, budget)
            state.begun = True
        length = iterate.advance(pieces, gradient, budget)
        self._remember(state)
        state.finished |= length == 0.0 and not first
        residual = iterate.gradient
        error = 0.5 * core.dot(residual, residual / iterate.system.pull) + abs(iterate.imbalance)
        if error <= self.small_part * (iterate.primal - iterate.dual):
            self._next_alpha(state)
        if state.finished and state.restarts < _MOST_RESTARTS and _is_wide(problem, state):
            return self._restart(problem, state, budget)
        return state

    def _remember(self, state: State) -> None:
        before = state.primal - state.dual
        self._remember_point(state)
        self._remember_multipliers(state)
        gap = state.primal - state.dual
        state.relative_gap = gap / abs(state.primal) if state.primal else 0.0
        stands = state.relative_gap <= _NEAR_ROUNDING and before - gap <= _ROUNDING * abs(state.primal)
        state.idle = state.idle + 1 if stands else 0
        at_rounding = state.relative_gap <= _AT_ROUNDING
        state.finished |= state.idle >= (_MOST_IDLE_STEPS_AT_ROUNDING if at_rounding else _MOST_IDLE_STEPS)

    def _remember_point(self, state: State) -> None:
        iterate = state.iterate
        if iterate.primal < state.primal:
            assert state.best_v is not None
            # A better b tells more about multipliers that are out of balance.
            state.dual -= state.best_imbalance * (iterate.v[-1] - state.best_v[-1])
            state.primal, state.best_v = iterate.primal, iterate.v.copy()
        if _is_false(state, state.dual, state.best_imbalance):
            state.dual = -math.inf

    def _remember_multipliers(self, state: State) -> None:
        iterate = state.iterate
        assert state.best_v is not None
        # Restoring the balance moves margins by about 1, in the end.
        moved = iterate.imbalance * (state.best_v[-1] - iterate.v[-1])
        dual = iterate.dual - moved - abs(iterate.imbalance)
        if _is_false(state, dual, iterate.imbalance):
            dual = -math.inf
        if dual > state.dual or state.dual == -math.inf:
            state.dual, state.best_multipliers = dual, iterate.multipliers.copy()
            state.best_imbalance = iterate.imbalance

    def _restart(self, problem: Problem, state: State, budget: Budget) -> State:
        """From the best multipliers with a smaller k: too stiff a system leaves only rounding."""
        softer = replace(self, stiffness=state.stiffness / _SOFTEN)
        new = softer._begin(problem, Solution(alpha=state.best_multipliers), budget)
        new.restarts = state.restarts + 1
        new.primal, new.best_v = state.primal, state.best_v
        new.dual, new.best_imbalance = state.dual, state.best_imbalance
        new.relative_gap = state.relative_gap
        return new

    def _next_alpha(self, state: State) -> None:
        state.finished |= state.stiffness > _STIFFEST
        state.alpha = state.iterate.multipliers.copy()
        state.stiffness *= self.raise_by
        state.begun = False
        state.iterate.curvatures *= self.raise_by
        state.iterate.system.scale(self.raise_by)

    def solution(self, problem: Problem, state: Opening | State, budget: Budget) -> Solution:
        """The best v and the best multipliers so far: any two points make a proof."""
        if isinstance(state, Opening):
            return state.solution(budget)
        v, columns = state.best_v, problem.rows.columns
        assert v is not None
        return Solution(w=v[:columns], alpha=state.best_multipliers)

    def estimate(self, state: Opening | State) -> float:
        """The gap itself, but for the rounding of a balance."""
        return state.estimate if isinstance(state, Opening) else state.relative_gap

    def finished(self, state: Opening | State) -> bool:
        """Whether rounding leaves nothing to gain."""
        return not isinstance(state, Opening) and state.finished


def _is_false(state: State, dual: float, imbalance: float) -> bool:
    """Whether b is too far off to tell what multipliers out of balance are worth: above the primal."""
    scale = abs(state.primal)
    return dual - state.primal > _AT_ROUNDING * scale and abs(imbalance) > _ROUNDING * scale


def _is_wide(problem: Problem, state: State) -> bool:
    """Whether the gap is more than margins tell that are off by a rounding."""
    unseen = float(np.finfo(float).eps) * problem.total_cost
    return state.primal - state.dual > max(_ENOUGH * abs(state.primal), unseen)
