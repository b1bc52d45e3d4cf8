# SPDX-License-Identifier: BSD-3-Clause
"""What the second-order solvers share: an opening first, then steps, on small data many in one call."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.second_order.opening import Opening
from maxmargin.solvers.second_order.system import NewtonSystem
from maxmargin.solvers.sizes import FEW_VALUES
from maxmargin.tools.parameters import Natural, NotNegative, Seed
from maxmargin.types import Vector

_MOST_AT_ONCE = 32
"""Steps of one call on small data; the loop looks at its budget and its callback between calls."""


@dataclass(kw_only=True)
class Begun:
    """The state after the opening: a problem, its linear system, and the method in mid-run."""

    problem: Problem
    system: NewtonSystem
    method: core.SecondOrderMethod
    taken: int = 1
    """The number of steps in the last call."""
    beyond_float64: bool = False
    """Whether there was no step, because curvatures are too large for float64."""

    @property
    def relative_gap(self) -> float:
        """The relative gap that the method has reached, as far as it can tell."""
        return self.method.relative_gap

    @property
    def finished(self) -> bool:
        """Whether rounding leaves nothing to gain, or no step."""
        return self.method.finished or self.beyond_float64


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
    """Whether another way goes on where rounding ends this method short of the goal."""
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
    def reached(self, problem: Problem, state: State) -> Solution:
        """What the state amounts to."""

    def advance(self, problem: Problem, state: State, budget: Budget) -> State:
        """Take one step, or several in one call where the data are small and nobody watches."""
        most, until = 1, 0.0
        if self.until is not None and problem.rows.stored <= FEW_VALUES:
            most, until = _MOST_AT_ONCE, self.until
        try:
            state.taken = state.method.steps(state.system.for_steps, most, until, budget)
        except FloatingPointError:
            state.taken = 0
        state.beyond_float64 = state.taken == 0
        return state

    def nests_samples(self, problem: Problem) -> bool:
        """Whether a larger sample comes after the first one."""
        return False

    def after_opening(self, problem: Problem, opening: Opening, budget: Budget) -> Opening | State:
        """The state after the last step of an opening, at the point that it has found."""
        return self.begin(problem, opening.solution(budget), budget)

    def stiffer(self, before: State) -> float:
        """How many times the curvatures of ``before`` are those of a beginning at the same costs."""
        return 1.0

    def init(self, problem: Problem, start: Solution | None) -> Opening | State:
        """Begin with a sample, with sweeps of dual ascent, at zero, or with a given w, alpha or both."""
        if start is not None:
            return self.begin(problem, start, core.ALL_CORES)
        sampler = self.with_options(sampling=False) if self.sampling else None
        sweeps, nested = self.sweeps_of(problem), self.nests_samples(problem)
        opening = Opening.of(problem, sampler, nested, sweeps, self.seed)
        return opening or self.begin(problem, Solution(), core.ALL_CORES)

    def resume(self, problem: Problem, start: Solution | None, before: Opening | State) -> Opening | State:
        """Begin with the Hessian of ``before``: most rows have its curvature, but for the costs' factor."""
        if start is None or isinstance(before, Opening):
            return self.init(problem, start)
        factor = problem.total_cost / before.problem.total_cost / self.stiffer(before)
        return self.begin(problem, start, core.ALL_CORES, before.system.at_costs_of(problem, factor))

    def step(self, problem: Problem, state: Opening | State, budget: Budget) -> Opening | State:
        """A step of the opening at first, then of the solver's own.

        All steps on a sample are one: a proof between two of them would take longer than all of them.
        """
        if not isinstance(state, Opening):
            return self.advance(problem, state, budget)
        while not state.step(budget):
            if not state.sampled or budget.spent:
                return state
        return self.after_opening(problem, state, budget)

    def solution(self, problem: Problem, state: Opening | State, budget: Budget) -> Solution:
        """What the opening or the last step has reached."""
        return state.solution(budget) if isinstance(state, Opening) else self.reached(problem, state)

    def at_once(self, tol: float) -> Self:
        """The solver as it takes steps on small data inside the core."""
        return self.with_options(until=tol)

    def report(self, state: Opening | State) -> Report:
        """The gap itself, but for the rounding of a balance; and several steps on small data."""
        if isinstance(state, Opening):
            return Report(state.estimate)
        return Report(state.relative_gap, state.finished, state.taken)


def multipliers_of(problem: Problem, start: Solution) -> Vector | None:
    """The alpha of a start, inside its box."""
    return None if start.alpha is None else np.clip(np.nan_to_num(start.alpha), 0.0, problem.upper)


def point_of(
    system: NewtonSystem, start: Solution, alpha: Vector | None, budget: Budget
) -> tuple[Vector, Vector]:
    """The v of a start and its margins: the best intercept goes with a w whose margins are not known."""
    problem, w = system.problem, start.w
    if w is None and alpha is not None:
        w = problem.rows.combine(alpha * problem.y, budget)
    v = np.zeros(len(system.regulariser))
    if w is not None:
        v[: system.columns] = w
    b, margins = start.b, start.margins
    if w is None or margins is None:
        scores = problem.rows.scores(v[: system.columns], budget)
        if system.has_intercept:
            b, margins = problem.objective.take_best_intercept(scores)[0], scores
        else:
            b, margins = 0.0, problem.margins_of(scores, 0.0)
    v[system.columns :] = b
    return v, margins
