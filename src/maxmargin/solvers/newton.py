# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method for the smooth losses: semismooth for the squared hinge, plain for the logistic loss.

    minimise over v = (w, b)   1/2 v'Rv + sum_i C_i loss(m_i),      m_i = y_i <v, z_i>

    1  repeat
    2      a_i = -C_i loss'(m_i);      h_i = C_i loss''(m_i)
    3      g   = R v - sum_i a_i y_i z_i
    4      solve (R + sum_i h_i z_i z_i') p = -g
    5      s   = the best step along p;   v += s p;   m_i += s y_i <p, z_i>

R and z_i as in newton_system.py. The squared hinge has a second derivative everywhere but at m = 1: h_i is
2 C_i below and 0 above. Along a line the objective is a parabola from kink to kink. A few steps are enough:
the last ones square the error. With a as multipliers the gap is |g|^2 / 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.solution import Solution
from maxmargin.solvers.base import Solver
from maxmargin.solvers.dual_coordinate_ascent import ALPHA, DualCoordinateAscent
from maxmargin.solvers.newton_step import Iterate, Pieces
from maxmargin.solvers.newton_system import NewtonSystem
from maxmargin.types import Vector

_ROUNDING = 1e-15
_LONG_ROW = 60


@dataclass
class State:
    """Where the method stands."""

    iterate: Iterate
    pieces: Pieces
    sweeps_left: int = 0
    relative_gap: float = math.inf
    finished: bool = False


@dataclass(frozen=True)
class Newton(Solver[State]):
    """Newton's method with an exact line search; for the squared hinge and the logistic loss."""

    name: ClassVar[str] = "newton"
    sweeps: int | None = None
    """Of dual coordinate ascent at the start, for the squared hinge: they tell which rows count before a
    Hessian is made of them. None: one where rows are long, so that a Hessian of all is dear, else none."""
    seed: int = 0
    """Of the order of the sweeps."""

    def accepts(self, problem: Problem) -> str | None:
        """The smooth losses."""
        if not problem.loss.smooth:
            return (
                f"newton needs a loss with a slope everywhere. Got the loss {problem.loss.name!r} instead, "
                "which has a kink. Use augmented_lagrangian for the hinge."
            )
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """At zero, or at the w of a start."""
        return self._init(problem, start, None)

    def resume(self, problem: Problem, start: Solution | None, before: State) -> State:
        """With the Hessian of ``before``: most rows have the same curvature, but for the costs' factor."""
        last = before.iterate
        factor = problem.total_cost / last.problem.total_cost
        return self._init(problem, start, last.system.at_costs_of(problem, factor))

    def _init(self, problem: Problem, start: Solution | None, system: NewtonSystem | None) -> State:
        w = known = None
        if start is not None:
            if start.margins is not None:
                known = start.b, start.margins
            w = start.w
            if w is None and start.alpha is not None:
                w = problem.rows.combine(start.alpha * problem.y)
        pieces = Pieces(problem.loss.name, problem.costs, np.empty(0), 0.0)
        sweeps = self._sweeps(problem) if start is None else 0
        iterate = self._begin(problem, w, pieces, core.ALL_CORES, known, system)
        return State(iterate, pieces, sweeps)

    def _sweeps(self, problem: Problem) -> int:
        if DualCoordinateAscent().accepts(problem) is not None:
            return 0
        if self.sweeps is not None:
            return self.sweeps
        return int(problem.rows.stored > _LONG_ROW * problem.rows.count)

    def _begin(
        self,
        problem: Problem,
        w: Vector | None,
        pieces: Pieces,
        budget: Budget,
        known: tuple[float, Vector] | None = None,
        system: NewtonSystem | None = None,
    ) -> Iterate:
        iterate = Iterate.at(problem, w, budget, known, system)
        iterate.refresh(pieces, budget)
        return iterate

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One Newton step; the first may be the sweeps."""
        if state.sweeps_left > 0:
            ascent = DualCoordinateAscent(seed=self.seed)
            inner = ascent.init(problem, None)
            for _ in range(state.sweeps_left):
                inner = ascent.step(problem, inner, budget)
            alpha = inner.coordinates[:, ALPHA]
            w = problem.rows.combine(alpha * problem.y, budget)
            state.iterate, state.sweeps_left = self._begin(problem, w, state.pieces, budget), 0
            return state
        iterate = state.iterate
        length = iterate.advance(state.pieces, iterate.gradient, budget)
        primal = abs(iterate.primal)
        state.relative_gap = (iterate.primal - iterate.dual) / primal if primal else 0.0
        state.finished = length == 0.0 or state.relative_gap <= _ROUNDING
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The point w alone: the certificate makes the same multipliers from its margins."""
        return Solution(w=state.iterate.w.copy(), b=state.iterate.b)

    def estimate(self, state: State) -> float:
        """The gap itself."""
        return state.relative_gap

    def finished(self, state: State) -> bool:
        """Whether rounding leaves nothing to gain."""
        return state.finished
