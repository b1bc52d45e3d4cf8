# SPDX-License-Identifier: BSD-3-Clause
"""Dual coordinate ascent that hands over to a second-order method once that is the cheaper way on.

All keep w and alpha, so the second goes on where the first stands. After every sweep the way on costs

    ascent              sweeps that the decay of its gap still asks for  x  what a sweep costs
    second order        ``augmented_lagrangian`` or ``newton``
    active_set          on the multipliers that are inside their walls now
    interior_point      always about the same

all in visits of a stored value (solving/costs.py) and never in seconds: the same data and seed give the
same run everywhere. The ascent's warm-up tells more. While multipliers grow with C, so do the sweeps: a
warm-up that is long beside the other's cost is given up. Where they cease to grow, the data are nearly
separable; then sweeps hardly depend on C, and the second-order method takes several times as many steps as
on data that overlap.

A method that has cost more than was expected of it hands over once more, to the cheapest that has not had
its turn; the steps of the interior point are always about as many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.active_set import ActiveSet
from maxmargin.solvers.base import AnySolver, Report, Solver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solving.costs import NONE, Costs, costs_of_ways, second_order_steps, sweep_cost
from maxmargin.tools.parameters import changed

_SWEEPS_TO_JUDGE_BY = 8
"""Sweeps after which the decay of the gap can be judged well."""
_SWEEPS_BETWEEN = 4
"""Sweeps from one judgement to the next: it takes as long as a sweep of a few hundred rows."""
_SWEEPS_FROM_A_START = 16
"""The gap of a good start rises at first: sweeps change its best rows before they have seen the others."""
_LEAST_SPENT = 0.2
"""The share of the second-order method's cost that the ascent may spend before it is judged: a wrong guess
then costs little more than the way it led away from."""
_LEAST_SPENT_OF_OTHERS = 0.3
"""The same share for active sets and the interior point, which take over from any gap: by then it is known
better how the ascent goes."""
_LEAST_SPENT_EARLY = 0.5
"""The same share while there are fewer sweeps to judge by than one would wish."""
_ROUNDING = 1e-15
"""The relative gap below which sweeps can gain nothing in float64."""
_GOES_ON = 0.6
"""The share of its cost that the second-order method is expected to take where the interior point seems
cheaper: it goes on from the ascent, and the interior point begins anew. On 79 random problems of the hinge
it took 0.66 times the steps that were expected, the interior point 1.12 times its own (geometric means)."""
_SEPARABLE = 5.0
"""The factor on the cost of the second-order method where the data are nearly separable."""
_MANY_ROWS = 10.0
"""Rows to a column: data are then seldom separable, and ``newton`` needs few steps from any start."""
_SET_STEPS = 4.0
"""Steps of ``active_set``, as a rule."""
_OVERRUN = 2.0
"""How many times its expected cost a method may cost before the next one takes over; and at least as much
as that costs."""
_OVERRUN_OF_SETS = 5.0
"""The same for ``active_set``: where rows are alike it takes up to 20 steps, and gets there."""
_NEARLY = 30.0
"""A relative gap of so many times tol is nearly there: second-order methods are fastest at the end."""
_FAR = 0.5
"""A relative gap above which it hardly moves, while the dual value may climb at a steady pace."""
_PROXIMAL = 1e-8
"""The first r of ``active_set``: where the ascent stands, most rows are on their side already."""


@dataclass
class State:
    """The state of the run, and the solver that is running."""

    inner: Any
    """The state of the solver that is running."""
    solver: AnySolver
    """The solver that is running."""
    gaps: list[float] = field(default_factory=list[float])
    """The relative gaps that the ascent estimated, sweep by sweep after its warm-up."""
    smallest: list[float] = field(default_factory=list[float])
    """The smallest of them up to each sweep: rows that come back let the gap rise for a while."""
    duals: list[float] = field(default_factory=list[float])
    """The dual values after the same sweeps."""
    sweeps: int = 0
    least_sweeps: int = 0
    """Sweeps before there is anything to judge by."""
    separable: bool = False
    """Whether the warm-up has ended early."""
    spent: float = 0.0
    """What the sweeps, or the steps of the method that has taken over, have cost so far, in visits."""
    step_cost: float = 0.0
    """What a step of that method costs."""
    allowed: float = math.inf
    """What it may cost."""
    costs: Costs = NONE
    """What the methods cost that have not had their turn."""
    steps: int = 0
    """The steps that it has taken."""
    before: tuple[str, ...] = ()
    """What ran before, and for how long."""

    @property
    def handed_over(self) -> bool:
        """Whether another method than the ascent is running."""
        return not isinstance(self.solver, DualCoordinateAscent)


@dataclass(frozen=True)
class HandOver(Solver[State]):
    """Dual coordinate ascent first, then ``second`` or another where that is cheaper; for their losses."""

    name: ClassVar[str] = "hand_over"
    takes_targets: ClassVar[bool] = True
    second: AnySolver
    tol: float = 1e-4
    """The relative gap up to which costs are counted."""
    at_first: AnySolver | None = None
    """What begins where it is so cheap that no sweep is worth its time; None: the ascent."""
    costs: Callable[[Problem, float, int | None], Costs] = costs_of_ways
    """What the ways on cost, given ``tol`` and the number of multipliers inside their walls."""
    seed: int = 0

    @property
    def first(self) -> DualCoordinateAscent:
        """The ascent."""
        return DualCoordinateAscent(seed=self.seed)

    def accepts(self, problem: Problem) -> str | None:
        """None where both solvers take the problem, else the refusal of one of them."""
        return self.first.accepts(problem) or self.second.accepts(problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """The state of what begins, before its first step."""
        first = self.first
        state = State(None, first)
        if self.at_first is not None:
            costs = self.costs(problem, self.tol, None)
            self._begin(problem, state, self.at_first, costs, start)
            return state
        state.inner = first.init(problem, start)
        state.least_sweeps = _SWEEPS_BETWEEN if start is None else _SWEEPS_FROM_A_START
        return state

    def resume(self, problem: Problem, start: Solution | None, before: State) -> State:
        """Go on with the method that had taken over: it has a matrix to go on with."""
        if not before.handed_over:
            return self.init(problem, start)
        solver = before.solver
        return State(solver.resume(problem, start, before.inner), solver)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One step of the solver that is running, and a look whether to hand over."""
        if state.handed_over:
            return self._step_of_other(problem, state, budget)
        stage, visited = state.inner.stage, len(state.inner.visits.order)
        state.inner = state.solver.step(problem, state.inner, budget)
        state.sweeps += 1
        state.spent += sweep_cost(problem, visited)
        state.separable |= state.inner.stage < stage - 1
        gap = state.solver.report(state.inner).gap
        if math.isfinite(gap):
            state.gaps.append(gap)
            state.smallest.append(min([gap, *state.smallest[-1:]]))
            state.duals.append(state.inner.dual)
        if state.inner.stage > 0:
            self._judge_warm_up(problem, state, budget, state.inner.stage < stage)
        elif len(state.gaps) >= state.least_sweeps and len(state.gaps) % _SWEEPS_BETWEEN == 0:
            self._judge(problem, state, budget)
        return state

    def _judge_warm_up(self, problem: Problem, state: State, budget: Budget, stage_ended: bool) -> None:
        """Give up a warm-up that has become long beside another way."""
        rows, squared = problem.rows, problem.loss.name == "squared_hinge"
        many = squared and rows.count >= _MANY_ROWS * rows.columns
        # Multipliers of the squared hinge are inside wherever C is; those of the hinge come from U later.
        costs = self._costs(problem, state, _inside(problem, state) if squared else None)
        if many:
            # ``newton`` begins best where the ascent stands, whatever its C; but alpha is too large when C
            # has just been raised.
            if state.spent > _LEAST_SPENT * costs.second and state.inner.stage_sweeps > 0:
                start = self.solution(problem, state, budget)
                self._hand_over(problem, state, self.second, costs, start)
        elif stage_ended:
            solver, cost, least = self._cheapest(costs._replace(interior_point=math.inf))
            if state.spent > least * cost:
                self._hand_over(
                    problem, state, solver, costs, None
                )  # multipliers of a smaller C are no start

    def _judge(self, problem: Problem, state: State, budget: Budget) -> None:
        """Hand over where sweeps would be the more expensive way on."""
        inside = _inside(problem, state)
        if inside is not None and inside > problem.rows.columns:
            state.separable = False  # of rows that a plane separates, few are inside
        costs = self._costs(problem, state, inside)
        if costs.interior_point < costs.second:
            costs = costs._replace(second=_GOES_ON * costs.second)
        solver, cost, least = self._cheapest(costs)
        early = len(state.gaps) < _SWEEPS_TO_JUDGE_BY
        if state.spent <= (_LEAST_SPENT_EARLY if early else least) * cost:
            return
        left = self.sweeps_left(state.smallest)
        if state.gaps[-1] > _FAR:
            left = min(left, self.sweeps_of_climb(state))
        # What was spent in vain counts, lest a wrong guess goes on for long.
        cheap = cost if early else max(cost - state.spent, _LEAST_SPENT * cost)
        if left * sweep_cost(problem, len(state.inner.visits.order)) > cheap:
            start = None if isinstance(solver, InteriorPoint) else self.solution(problem, state, budget)
            self._hand_over(problem, state, solver, costs, start)

    def _cheapest(self, costs: Costs) -> tuple[AnySolver, float, float]:
        """The cheapest way on, its cost, and the share of it that the ascent has before it is judged."""
        cost = min(costs)
        if cost == costs.second:
            return self.second, cost, _LEAST_SPENT
        other: AnySolver = ActiveSet() if cost == costs.active_set else InteriorPoint()
        return other, cost, _LEAST_SPENT_OF_OTHERS

    def _costs(self, problem: Problem, state: State, inside: int | None) -> Costs:
        costs = self.costs(problem, self.tol, inside)
        return costs._replace(second=_SEPARABLE * costs.second) if state.separable else costs

    def _hand_over(
        self, problem: Problem, state: State, solver: AnySolver, costs: Costs, start: Solution | None
    ) -> None:
        steps = f"{state.steps} steps of" if state.handed_over else f"{state.sweeps} sweeps of"
        state.before = (*state.before, f"{steps} {state.solver.name}")
        self._begin(problem, state, solver, costs, start)

    def _begin(
        self, problem: Problem, state: State, solver: AnySolver, costs: Costs, start: Solution | None
    ) -> None:
        solver = solver.with_seed(self.seed)
        if isinstance(solver, ActiveSet) and start is not None:
            solver = changed(solver, proximal=_PROXIMAL)
        state.inner, state.solver = solver.init(problem, start), solver
        state.spent, state.steps = 0.0, 0
        taken = self._costs_of(solver, costs)
        steps = _SET_STEPS if isinstance(solver, ActiveSet) else second_order_steps(problem, self.tol)
        others = [math.inf if cost == taken else cost for cost in costs]
        if state.separable:
            others[0] /= _SEPARABLE  # where others fail, the guess may have been wrong
        state.costs = Costs(*others)
        state.step_cost = taken / steps
        overrun = _OVERRUN_OF_SETS if isinstance(solver, ActiveSet) else _OVERRUN
        state.allowed = max(overrun * taken, min(state.costs))

    def _costs_of(self, solver: AnySolver, costs: Costs) -> float:
        if isinstance(solver, InteriorPoint):
            return costs.interior_point
        return costs.active_set if isinstance(solver, ActiveSet) else costs.second

    def _step_of_other(self, problem: Problem, state: State, budget: Budget) -> State:
        """A step of the method that has taken over; where it costs too much, the next one's turn."""
        state.inner = state.solver.step(problem, state.inner, budget)
        report = state.solver.report(state.inner)
        state.steps += report.steps
        state.spent += report.steps * state.step_cost
        if state.spent > state.allowed and report.gap > _NEARLY * self.tol and not report.finished:
            self._hand_over(problem, state, self._cheapest(state.costs)[0], state.costs, None)
        return state

    def sweeps_left(self, gaps: list[float]) -> float:
        """The sweeps until tol, if the gap goes on shrinking as in the later half of the sweeps so far.

        A sweep that thinks itself there is asked for another while no proof says so: then until a tenth.
        """
        if len(gaps) < _SWEEPS_BETWEEN:
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
        """The solver with second-order methods that take several steps in a call."""
        at_first = None if self.at_first is None else self.at_first.at_once(tol)
        return changed(self, second=self.second.at_once(tol), at_first=at_first)

    def _story(self, state: State) -> str:
        if state.before:
            return (
                f"{state.solver.name}, after {' and '.join(state.before)}: more of them would have been "
                "the more expensive way."
            )
        if state.handed_over and self.at_first is None:
            return f"{state.solver.name}: it had taken over from dual_coordinate_ascent at the last C."
        return ""


def _inside(problem: Problem, state: State) -> int | None:
    """The multipliers of the ascent that are inside their walls once balanced; None: nobody asks for it."""
    if problem.targets is not None:
        return None
    alpha = state.inner.alpha.copy()
    problem.objective.make_feasible(alpha)  # as active sets begin
    return int(np.count_nonzero((alpha > 0.0) & (alpha < problem.upper)))
