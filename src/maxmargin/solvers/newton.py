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
from maxmargin.changed import changed
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.solution import Solution
from maxmargin.solvers.base import Solver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent
from maxmargin.solvers.interior_point import InteriorPoint, affordable
from maxmargin.solvers.newton_step import Iterate, Pieces, steps_at_once
from maxmargin.solvers.newton_system import NewtonSystem
from maxmargin.solvers.opening import Opening

_ROUNDING = 1e-15
_LONG_ROW = 60


@dataclass
class State:
    """Where the method stands."""

    iterate: Iterate
    pieces: Pieces
    relative_gap: float = math.inf
    finished: bool = False
    taken: int = 1
    """Steps, in the last call."""


@dataclass(frozen=True)
class Newton(Solver[Opening | State]):
    """Newton's method with an exact line search; for the squared hinge and the logistic loss."""

    name: ClassVar[str] = "newton"
    sweeps: int | None = None
    """Of dual coordinate ascent at the start, for the squared hinge: they tell which rows count before a
    Hessian is made of them. None: one where rows are long, so that a Hessian of all is dear, else none."""
    sampling: bool = True
    """Begin with a sample where there are very many rows of few columns; then no sweeps are made."""
    until: float | None = None
    """Steps on small data follow one another inside the core until this relative gap. None: one by one."""
    resort: bool = False
    """Whether interior_point goes on where rounding ends this method short of the goal."""
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

    def init(self, problem: Problem, start: Solution | None) -> Opening | State:
        """From a sample, from a sweep of dual ascent, at zero, or at the w of a start."""
        if start is not None:
            return self._begin(problem, start, core.ALL_CORES)
        sampler = changed(self, sampling=False) if self.sampling else None
        opening = Opening.of(problem, sampler, self.sweeps_of(problem), self.seed)
        return opening or self._begin(problem, Solution(), core.ALL_CORES)

    def resume(self, problem: Problem, start: Solution | None, before: Opening | State) -> Opening | State:
        """With the Hessian of ``before``: most rows have the same curvature, but for the costs' factor."""
        if start is None or isinstance(before, Opening):
            return self.init(problem, start)
        last = before.iterate
        factor = problem.total_cost / last.problem.total_cost
        return self._begin(problem, start, core.ALL_CORES, last.system.at_costs_of(problem, factor))

    def sweeps_of(self, problem: Problem) -> int:
        """How many there are at the start of a problem."""
        sweeps = self.sweeps
        if sweeps is None:
            sweeps = int(problem.rows.stored > _LONG_ROW * problem.rows.count)
        return sweeps if sweeps == 0 or DualCoordinateAscent().accepts(problem) is None else 0

    def _begin(
        self, problem: Problem, start: Solution, budget: Budget, system: NewtonSystem | None = None
    ) -> State:
        w = start.w
        if w is None and start.alpha is not None:
            w = problem.rows.combine(start.alpha * problem.y, budget)
        known = None if start.margins is None else (start.b, start.margins)
        iterate = Iterate.at(problem, w, budget, known, system)
        pieces = Pieces(problem.loss.name, problem.costs, np.empty(0), 0.0)
        iterate.refresh(pieces, budget)
        return State(iterate, pieces)

    def step(self, problem: Problem, state: Opening | State, budget: Budget) -> Opening | State:
        """A step of the opening at first, then a Newton step, or some where they are short."""
        if isinstance(state, Opening):
            return self._begin(problem, state.solution(budget), budget) if state.step(budget) else state
        iterate = state.iterate
        most, until = steps_at_once(problem, self.until)
        state.taken, length = iterate.advance(state.pieces, budget, most, max(until, _ROUNDING))
        primal = abs(iterate.primal)
        state.relative_gap = (iterate.primal - iterate.dual) / primal if primal else 0.0
        state.finished = length == 0.0 or state.relative_gap <= _ROUNDING
        return state

    def solution(self, problem: Problem, state: Opening | State, budget: Budget) -> Solution:
        """The point w alone: the certificate makes the same multipliers from its margins."""
        if isinstance(state, Opening):
            return state.solution(budget)
        return Solution(w=state.iterate.w.copy(), b=state.iterate.b)

    def last_resort(self, problem: Problem) -> InteriorPoint | None:
        """The interior point method, where its steps are affordable."""
        return affordable(problem) if self.resort else None

    def at_once(self, tol: float) -> Newton:
        """With steps on small data inside the core."""
        return changed(self, until=tol)

    def taken(self, state: Opening | State) -> int:
        """More than one on small data."""
        return 1 if isinstance(state, Opening) else state.taken

    def estimate(self, state: Opening | State) -> float:
        """The gap itself."""
        return state.estimate if isinstance(state, Opening) else state.relative_gap

    def finished(self, state: Opening | State) -> bool:
        """Whether rounding leaves nothing to gain."""
        return not isinstance(state, Opening) and state.finished
