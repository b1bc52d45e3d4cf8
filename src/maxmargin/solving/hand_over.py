# SPDX-License-Identifier: BSD-3-Clause
"""Dual coordinate ascent that hands over to a second-order method once that is the cheaper way on.

All keep w and alpha, so the second goes on where the first stands. After every sweep the way on costs

    ascent          sweeps that the decay of its gap still asks for  x  what a sweep costs
    second order    ``cost``, which solving/ways.py estimates
    active_set      some factors of a matrix with a row for each multiplier that is inside its walls now

all in visits of a stored value and never in seconds: the same data and seed give the same run everywhere.
The ascent's warm-up tells more. While multipliers grow with C, so do the sweeps: a warm-up that is long
beside the other's cost is given up. Where they cease to grow, the data are nearly separable; then sweeps
hardly depend on C, and the second-order method takes several times as many steps as on data that overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.active_set import ActiveSet
from maxmargin.solvers.base import AnySolver, Report, Solver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent
from maxmargin.solvers.sizes import LARGEST_SIDE
from maxmargin.tools.changed import changed

PASS = 0.7
"""Visits that a value in a pass costs: rows come in order, and nothing is written."""
FLOP = 0.06
"""Visits that a multiply-add of a dense factorisation costs: BLAS, with one thread."""
CALL = 40_000.0
"""A step beside its passes, in visits of a stored value: calls from Python, and what they allocate."""
_ROW = 30.0
"""What it costs to come to a row and to leave it, in visits of a stored value."""
_SWEEPS_TO_JUDGE_BY = 8
"""Sweeps after which the decay of the gap can be judged."""
_SWEEPS_FROM_A_START = 16
"""The gap of a good start rises at first: sweeps change its best rows before they have seen the others."""
_LEAST_SPENT = 0.2
"""The share of the second-order method's cost that the ascent may spend before it is judged: a wrong guess
then costs little more than the way it led away from."""
_ROUNDING = 1e-15
"""The relative gap below which sweeps can gain nothing in float64."""
_LEAST_SPENT_OF_SETS = 0.1
"""The same share for active sets, which need no more of the ascent than most of the rows inside."""
_FACTORS, _PRODUCTS, _PASSES, _CALLS = 6.0, 60.0, 12.0, 1500.0
"""What ``active_set`` takes as a rule: factors of its matrix, products with it, passes over the data, and
``CALL``."""
_PROXIMAL = 1e-8
"""The first r of ``active_set``: where the ascent stands, most rows are on their side already."""
_SEPARABLE = 5.0
"""The factor on the cost of the second-order method where the data are nearly separable."""


def sweep_cost(problem: Problem, visited: int) -> float:
    """What a sweep over so many rows costs, in visits of a stored value."""
    return (problem.rows.stored / max(problem.rows.count, 1) + _ROW) * visited + CALL


def active_set_cost(problem: Problem, inside: int) -> float:
    """What ``active_set`` is expected to cost where so many multipliers are inside their walls.

    Only for data of so many columns that no other method has a factor: else those know more of the rows.
    It takes no targets.
    """
    rows = problem.rows
    if inside > LARGEST_SIDE or rows.columns <= LARGEST_SIDE or problem.targets is not None:
        return math.inf
    width = rows.stored / max(rows.count, 1)
    in_common = width * width / max(rows.columns, 1)  # columns of two rows, if no column had more values
    matrix = inside**2 * (min(width, 10.0 * in_common + 1.0) + _PRODUCTS * FLOP)
    return matrix + _FACTORS * FLOP * inside**3 / 6.0 + _PASSES * PASS * rows.stored + _CALLS * CALL


@dataclass
class State:
    """The state of the run, and the solver that is running."""

    inner: Any
    """The state of the solver that is running."""
    solver: AnySolver
    """The solver that is running."""
    cost: float
    """What the second-order method would cost, as far as is known."""
    gaps: list[float] = field(default_factory=list[float])
    """The relative gaps that the ascent estimated, sweep by sweep after its warm-up."""
    smallest: list[float] = field(default_factory=list[float])
    """The smallest of them up to each sweep: rows that come back let the gap rise for a while."""
    duals: list[float] = field(default_factory=list[float])
    """The dual values after the same sweeps."""
    sweeps: int = 0
    least_sweeps: int = 0
    """Sweeps before there is anything to judge by."""
    spent: float = 0.0
    """What the sweeps so far have cost, in visits."""

    @property
    def handed_over(self) -> bool:
        """Whether the second-order method is running."""
        return not isinstance(self.solver, DualCoordinateAscent)


@dataclass(frozen=True)
class HandOver(Solver[State]):
    """Dual coordinate ascent first, then ``second`` where that is cheaper; for the losses of both."""

    name: ClassVar[str] = "hand_over"
    takes_targets: ClassVar[bool] = True
    second: AnySolver
    cost: float
    """What it costs to solve the problem by ``second``, in visits of a stored value."""
    tol: float = 1e-4
    """The relative gap up to which costs are counted."""
    by_rows: float = 0.0
    """The part of ``cost`` that counts all rows, where only those with a multiplier above 0 take it. Then
    there are many rows to a column, and ``second`` begins best where the ascent stands, whatever its C."""
    seed: int = 0

    @property
    def first(self) -> DualCoordinateAscent:
        """The solver that begins."""
        return DualCoordinateAscent(seed=self.seed)

    def accepts(self, problem: Problem) -> str | None:
        """None where both solvers take the problem, else the refusal of one of them."""
        return self.first.accepts(problem) or self.second.accepts(problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """The state of the ascent before its first sweep."""
        least = _SWEEPS_TO_JUDGE_BY if start is None else _SWEEPS_FROM_A_START
        first = self.first
        return State(first.init(problem, start), first, self.cost, least_sweeps=least)

    def resume(self, problem: Problem, start: Solution | None, before: State) -> State:
        """Go on with the second-order method where that had taken over: it has a Hessian to go on with."""
        if not before.handed_over:
            return self.init(problem, start)
        solver = before.solver
        return State(solver.resume(problem, start, before.inner), solver, self.cost)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One step of the solver that is running; after a sweep, a look whether to hand over."""
        if state.handed_over:
            state.inner = state.solver.step(problem, state.inner, budget)
            return state
        stage, visited = state.inner.stage, len(state.inner.visits.order)
        state.inner = state.solver.step(problem, state.inner, budget)
        state.sweeps += 1
        state.spent += sweep_cost(problem, visited)
        if state.inner.stage < stage - 1:
            state.cost *= _SEPARABLE
        gap = state.solver.report(state.inner).gap
        if math.isfinite(gap):
            state.gaps.append(gap)
            state.smallest.append(min([gap, *state.smallest[-1:]]))
            state.duals.append(state.inner.dual)
        cost = state.cost
        if self.by_rows > 0.0:
            held = np.count_nonzero(state.inner.alpha) / problem.rows.count
            cost -= (1.0 - held) * self.by_rows
        if state.inner.stage > 0:
            if state.spent <= _LEAST_SPENT * cost:
                return state
            if self.by_rows > 0.0:
                if state.inner.stage_sweeps > 0:  # when C has just been raised, alpha is too large
                    self._hand_over(problem, state, self.second, self.solution(problem, state, budget))
            elif state.inner.stage < stage:
                # Multipliers of a smaller C are no start.
                self._hand_over(problem, state, self.second, None)
        elif len(state.gaps) >= state.least_sweeps:
            left = self.sweeps_left(state.gaps)
            left *= sweep_cost(problem, len(state.inner.visits.order))
            second = self._cheaper(problem, state, cost, left)
            if second is not None:
                start = state.solver.solution(problem, state.inner, budget)
                self._hand_over(problem, state, second, start)
        return state

    def _cheaper(self, problem: Problem, state: State, cost: float, left: float) -> AnySolver | None:
        """The way on if it is cheaper than the sweeps that are left; ``second`` costs so much."""
        second = self.second if state.spent > _LEAST_SPENT * cost and left > cost else None
        if problem.rows.columns <= LARGEST_SIDE or state.sweeps % _SWEEPS_TO_JUDGE_BY:
            return second
        alpha, upper = state.inner.alpha.copy(), problem.upper
        problem.objective.make_feasible(alpha)  # as active sets begin
        of_sets = active_set_cost(problem, int(np.count_nonzero((alpha > 0.0) & (alpha < upper))))
        if cost <= of_sets:
            return second
        # At large C the dual value climbs at a steady pace, while the relative gap hardly moves. What was
        # spent in vain counts, lest a wrong guess goes on for long.
        left = (
            min(self.sweeps_left(state.smallest), self.sweeps_of_climb(state)) * state.spent / state.sweeps
        )
        cheap = max(of_sets - state.spent, _LEAST_SPENT * of_sets)
        begun = state.spent > _LEAST_SPENT_OF_SETS * of_sets
        return ActiveSet(proximal=_PROXIMAL) if begun and left > cheap else None

    def _hand_over(self, problem: Problem, state: State, solver: AnySolver, start: Solution | None) -> None:
        state.inner, state.solver = solver.init(problem, start), solver

    def sweeps_left(self, gaps: list[float]) -> float:
        """The sweeps until tol, if the gap goes on shrinking as in the later half of the sweeps so far.

        A sweep that thinks itself there is asked for another while no proof says so: then until a tenth.
        """
        if len(gaps) < _SWEEPS_TO_JUDGE_BY:
            return 0.0
        half, gap = len(gaps) // 2, gaps[-1]
        goal = max(self.tol if gap > self.tol else 0.1 * gap, _ROUNDING)
        if gap <= goal or gaps[-1 - half] <= 0.0:
            return 0.0  # it is there, or has been: what is left is rounding
        shrinking = math.log(gaps[-1 - half] / gap) / half
        return math.log(gap / goal) / shrinking if shrinking > 0.0 else math.inf

    def sweeps_of_climb(self, state: State) -> float:
        """The sweeps until the dual value meets the primal one, at its pace in the later half of them."""
        duals, gap = state.duals, state.smallest[-1]
        half = len(duals) // 2
        pace = (duals[-1] - duals[-1 - half]) / max(half, 1)
        return duals[-1] * gap / (1.0 - gap) / pace if pace > 0.0 and gap < 1.0 else math.inf

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """What the solver that is running proposes."""
        return state.solver.solution(problem, state.inner, budget)

    def report(self, state: State) -> Report:
        """What the solver that is running tells, with a sentence about which one that is."""
        return state.solver.report(state.inner)._replace(story=self._story(state))

    def at_once(self, tol: float) -> HandOver:
        """The solver with a second-order method that takes several steps in a call."""
        return changed(self, second=self.second.at_once(tol))

    def _story(self, state: State) -> str:
        if not state.handed_over:
            return ""
        if state.sweeps == 0:
            return f"{state.solver.name}: it had taken over from dual_coordinate_ascent at the last C."
        return (
            f"{state.solver.name}, after {state.sweeps} sweeps of dual_coordinate_ascent: more of them "
            "would have been the more expensive way."
        )
