# SPDX-License-Identifier: BSD-3-Clause
"""Dual coordinate ascent that hands over to a second-order method once that is the cheaper way on.

Both keep w and alpha, so the second goes on where the first stands. After every sweep the way on costs

    ascent          sweeps that the decay of its gap still asks for  x  values that a sweep visits
    second order    ``cost``, which choose.py estimates

both in visits of a stored value and never in seconds: the same data and seed give the same run everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.solution import Solution
from maxmargin.solvers.base import AnySolver, Solver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent

_SWEEPS_TO_JUDGE_BY = 8
_SWEEPS_FROM_A_START = 16
"""The gap of a good start rises at first: sweeps change its best rows before they have seen the others."""
_LEAST_SPENT = 0.1
"""Of the other's cost: a guess that is wrong then costs little more than the way it led away from."""
_FULL_SWEEPS = 0.2
"""The share of all rows that a sweep visits on average, however few shrinking has left."""


@dataclass
class State:
    """Of the solver that is running."""

    inner: Any
    second: AnySolver | None = None
    """The solver that has taken over."""
    gaps: list[float] = field(default_factory=list[float])
    """As the ascent estimated them, sweep by sweep after its warm-up."""
    sweeps: int = 0
    least_sweeps: int = 0
    """Before there is anything to judge by."""
    spent: float = 0.0
    """Visits so far."""


@dataclass(frozen=True)
class HandOver(Solver[State]):
    """Dual coordinate ascent first, then ``second`` where that is cheaper; for the losses of both."""

    name: ClassVar[str] = "hand_over"
    second: AnySolver
    cost: float
    """Of solving the problem by ``second``, in visits of a stored value."""
    tol: float = 1e-4
    """The relative gap up to which costs are counted."""
    seed: int = 0

    @property
    def first(self) -> DualCoordinateAscent:
        """The solver that begins."""
        return DualCoordinateAscent(seed=self.seed)

    def accepts(self, problem: Problem) -> str | None:
        """What both take."""
        return self.first.accepts(problem) or self.second.accepts(problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """The ascent's own."""
        least = _SWEEPS_TO_JUDGE_BY if start is None else _SWEEPS_FROM_A_START
        return State(self.first.init(problem, start), least_sweeps=least)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One of the solver that is running."""
        if state.second is not None:
            state.inner = state.second.step(problem, state.inner, budget)
            return state
        state.inner = self.first.step(problem, state.inner, budget)
        state.sweeps += 1
        gap = self.first.estimate(state.inner)
        if math.isfinite(gap):
            state.gaps.append(gap)
        rows = problem.rows
        visited = max(len(state.inner.order) / rows.count, _FULL_SWEEPS) * max(rows.stored, rows.count)
        state.spent += visited
        judged = len(state.gaps) >= state.least_sweeps and state.spent > _LEAST_SPENT * self.cost
        if judged and self.sweeps_left(state.gaps) * visited > self.cost:
            start = self.first.solution(problem, state.inner, budget)
            state.inner = self.second.init(problem, start)
            state.second = self.second
        return state

    def sweeps_left(self, gaps: list[float]) -> float:
        """Until tol, if the gap goes on shrinking as in the later half of the sweeps so far."""
        if len(gaps) < _SWEEPS_TO_JUDGE_BY or gaps[-1] <= self.tol:
            return 0.0
        half = len(gaps) // 2
        if gaps[-1 - half] <= 0.0:
            return 0.0  # it has been there: what is left is rounding
        shrinking = math.log(gaps[-1 - half] / gaps[-1]) / half if gaps[-1] > 0.0 else math.inf
        return math.log(gaps[-1] / max(self.tol, 1e-15)) / shrinking if shrinking > 0.0 else math.inf

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Of the solver that is running."""
        return (state.second or self.first).solution(problem, state.inner, budget)

    def estimate(self, state: State) -> float:
        """Of the solver that is running."""
        return (state.second or self.first).estimate(state.inner)

    def finished(self, state: State) -> bool:
        """Of the solver that is running."""
        return (state.second or self.first).finished(state.inner)

    def last_resort(self, problem: Problem, state: State) -> AnySolver | None:
        """Of the second. An ascent that goes on needs none: its gap may rise for some sweeps."""
        if state.second is None and not self.finished(state):
            return None
        return self.second.last_resort(problem, state.inner)

    def story(self, state: State) -> str:
        """What ran, in one sentence."""
        if state.second is None:
            return ""
        return (
            f"{state.second.name}, after {state.sweeps} sweeps of dual_coordinate_ascent: more of them "
            "would have been the dearer way."
        )
