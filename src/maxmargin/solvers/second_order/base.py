# SPDX-License-Identifier: BSD-3-Clause
"""What the second-order solvers share: an opening first, then steps, on small data many in one call."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Solver
from maxmargin.solvers.interior_point import InteriorPoint, affordable
from maxmargin.solvers.second_order.opening import Opening
from maxmargin.solvers.second_order.step import Iterate
from maxmargin.solvers.second_order.system import NewtonSystem
from maxmargin.tools.parameters import Natural, NotNegative, Seed


@dataclass(kw_only=True)
class Begun:
    """What a state after the opening has."""

    iterate: Iterate
    taken: int = 1
    """Steps, in the last call."""
    relative_gap: float = math.inf
    finished: bool = False
    """Whether rounding leaves nothing to gain."""


State = TypeVar("State", bound=Begun)


@dataclass(frozen=True)
class SecondOrder(Solver[Opening | State], Generic[State]):
    """A solver with an opening; subclasses say how they begin, step, and what they have reached."""

    sweeps: Natural | None = None
    """Sweeps of dual coordinate ascent at the start; a given start needs none, nor does a sample. None: as
    many as ``sweeps_of`` says."""
    sampling: bool = True
    """Begin with a sample where there are very many rows of few columns."""
    until: NotNegative | None = None
    """Steps on small data follow one another inside the core until this relative gap. None: one by one."""
    resort: bool = False
    """Whether interior_point goes on where rounding ends this method short of the goal."""
    seed: Seed = 0
    """The seed of the order of the sweeps."""

    @abstractmethod
    def sweeps_of(self, problem: Problem) -> int:
        """How many there are at the start of a problem."""

    @abstractmethod
    def begin(
        self, problem: Problem, start: Solution, budget: Budget, system: NewtonSystem | None = None
    ) -> State:
        """The state at a start, or at zero where that says nothing; with a system to go on with."""

    @abstractmethod
    def advance(self, problem: Problem, state: State, budget: Budget) -> State:
        """One step, or some where they are short."""

    @abstractmethod
    def reached(self, problem: Problem, state: State) -> Solution:
        """What the state amounts to."""

    def after(self, opening: Opening) -> Self:
        """The solver as it begins after the opening."""
        return self

    def stiffer(self, before: State) -> float:
        """How many times the curvatures of ``before`` are those of a beginning at the same costs."""
        return 1.0

    def init(self, problem: Problem, start: Solution | None) -> Opening | State:
        """From a sample, from sweeps of dual ascent, at zero, or from a given w, alpha or both."""
        if start is not None:
            return self.begin(problem, start, core.ALL_CORES)
        sampler = self.with_options(sampling=False) if self.sampling else None
        opening = Opening.of(problem, sampler, self.sweeps_of(problem), self.seed)
        return opening or self.begin(problem, Solution(), core.ALL_CORES)

    def resume(self, problem: Problem, start: Solution | None, before: Opening | State) -> Opening | State:
        """With the Hessian of ``before``: most rows have the same curvature, but for the costs' factor."""
        if start is None or isinstance(before, Opening):
            return self.init(problem, start)
        last = before.iterate
        factor = problem.total_cost / last.problem.total_cost / self.stiffer(before)
        return self.begin(problem, start, core.ALL_CORES, last.system.at_costs_of(problem, factor))

    def step(self, problem: Problem, state: Opening | State, budget: Budget) -> Opening | State:
        """A step of the opening at first, then of the solver's own."""
        if not isinstance(state, Opening):
            return self.advance(problem, state, budget)
        if not state.step(budget):
            return state
        return self.after(state).begin(problem, state.solution(budget), budget)

    def solution(self, problem: Problem, state: Opening | State, budget: Budget) -> Solution:
        """What the opening or the last step has reached."""
        return state.solution(budget) if isinstance(state, Opening) else self.reached(problem, state)

    def last_resort(self, problem: Problem, state: Opening | State) -> InteriorPoint | None:
        """The interior point method, where its steps are affordable."""
        return affordable(problem) if self.resort else None

    def at_once(self, tol: float) -> Self:
        """With steps on small data inside the core."""
        return self.with_options(until=tol)

    def taken(self, state: Opening | State) -> int:
        """More than one on small data."""
        return 1 if isinstance(state, Opening) else state.taken

    def estimate(self, state: Opening | State) -> float:
        """The gap itself, but for the rounding of a balance."""
        return state.estimate if isinstance(state, Opening) else state.relative_gap

    def finished(self, state: Opening | State) -> bool:
        """Whether rounding leaves nothing to gain."""
        return not isinstance(state, Opening) and state.finished
