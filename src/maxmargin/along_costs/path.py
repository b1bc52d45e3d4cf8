# SPDX-License-Identifier: BSD-3-Clause
"""One problem at many values of C, each solved from its neighbours and each certified.

    1  here = the first C;  solve;  leap = 1
    2  repeat
    3      there = ``leap`` values further;  solve from what the last two solved values prove there
    4      for the values between, the middle first:  solve from what their solved neighbours prove there
    5      leap = twice as many if line 4 had nothing to do, else half
    6      here = there

To solve is nothing where the gap of the start is within tol: see other_costs.py, which makes no pass over
the data. A first leap over one value is tried when the gap of a start one value ahead is small enough.

``whole_path`` chooses the values of C itself, so that every C between them is within tol: see
model_path.py. A step up to the next value is as long as the bound on the last one suggests; where the
bound is too large all the same, the step is halved.
"""

from __future__ import annotations

import bisect
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.along_costs.model_path import Path, Segment
from maxmargin.along_costs.other_costs import can_combine, carried_over, combined, start_of
from maxmargin.problem import Intercept, Penalty, Problem
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model, Status, Trace
from maxmargin.solvers import AnySolver
from maxmargin.solving.loop import Callback, Limits, Watch, solve_after
from maxmargin.solving.ways import find_way
from maxmargin.tools.interrupts import held_back
from maxmargin.types import Vector

_WORTH_A_LEAP = 1000.0
"""A leap over a value of C is tried where the start one value ahead has a gap of at most so many tol."""
_SHARE_OF_ENDS = 0.2
"""The share of tol that is the goal at the values which ``whole_path`` solves. The rest is for what lies
between them."""
_FIRST_FACTOR, _SMALLEST_FACTOR, _LARGEST_FACTOR = 2.0, 1.0 + 1e-6, 1e6
"""The factors from one value of C to the next in ``whole_path``: the first one, and the limits of all."""
_LARGEST_CHANGE = 3.0
"""The largest factor by which the logarithm of that factor changes from one step to the next."""


def path(
    problem: Problem,
    Cs: ArrayLike,
    *,
    solver: str | AnySolver = "auto",
    tol: float = 1e-4,
    max_steps: int | None = None,
    max_time: float | None = None,
    threads: int | None = None,
    callback: Callback | None = None,
) -> Path:
    """Solve the problem at every C of ``Cs``, each to a relative gap of ``tol``, each with its proof.

    Parameters
    ----------
    problem : Problem
        Its costs count as weights: C_i = C cost_i. So build it with C = 1, the default.
    Cs : array
        Values of C, up, down or in any order; the models come back in the same. The work always begins at
        the smallest: a large C is reached from smaller ones for less than a fit of its own would take.
    solver : str or Solver
        For all of them; "auto" chooses for every C.
    tol, max_steps, threads
        As in ``solve``, at every C.
    max_time : float, optional
        Seconds for the whole path.
    callback : callable, optional
        Called with a ``Progress`` as by ``solve``; its ``label`` is the C. A true answer ends the path.

    Where the path ends early, by max_time, Ctrl-C or the callback, the values of C that are left answer
    with what they would have started from: that is certified too, and its gap says how far it may be off.
    """
    started = time.perf_counter()
    _refuse_data(problem, "path", "[0.1, 1.0, 10.0]")
    limits = Limits.of(tol, max_steps, max_time, threads=threads)
    values = _checked(Cs)
    find_way(solver, problem, tol)  # whether there is such a one, before anything runs
    walk = _Walk(problem, solver, limits, Watch(callback))
    with held_back(limits.budget.stop):
        walk.along(np.unique(values).tolist())
    models = tuple(walk.models[C] for C in values.tolist())
    return Path(values, models, time.perf_counter() - started, problem)


def whole_path(
    problem: Problem,
    low: float,
    high: float,
    *,
    solver: str | AnySolver = "auto",
    tol: float = 1e-2,
    max_steps: int | None = None,
    max_time: float | None = None,
    threads: int | None = None,
    callback: Callback | None = None,
) -> Path:
    """The path at every C from ``low`` to ``high``, each within a relative gap of ``tol``.

    The answer holds the models at as many values of C as that takes; its ``at(C)`` is a point with its
    proof at any other, without a pass over the data, and ``largest_gap`` what is proven of all of them.

    Parameters
    ----------
    problem : Problem
        Its costs count as weights: C_i = C cost_i. So build it with C = 1, the default.
    low, high : float
        The smallest and the largest C.
    solver, max_steps, max_time, threads, callback
        As in ``path``.
    tol : float
        Relative gap that no C may exceed. The number of values of C grows as 1 / sqrt(tol).

    Where it ends early, by max_time, Ctrl-C or the callback, ``largest_gap`` says what is proven so far.
    """
    _refuse_data(problem, "whole_path", "0.1, 10.0")
    started = time.perf_counter()
    limits = Limits.of(tol, max_steps, max_time, threads=threads)
    low, high = _checked([low, high]).tolist()
    if not (low < high and tol > 0.0):
        raise ValueError(f"low must be below high, and tol above 0. Got {low}, {high} and {tol} instead.")
    if not can_combine(problem):
        raise ValueError(
            "whole_path takes rows without a kernel, losses other than the perceptron's, and the l2 "
            "penalty. Use path for values of C of your own."
        )
    find_way(solver, problem, tol)  # whether there is such a one, before anything runs
    walk = _Walk(problem, solver, replace(limits, tol=_SHARE_OF_ENDS * tol), Watch(callback))
    with held_back(limits.budget.stop):
        walk.everywhere(low, high, tol)
    values = sorted(walk.models)
    models = tuple(walk.models[C] for C in values)
    return Path(np.array(values), models, time.perf_counter() - started, problem)


def smallest_C(problem: Problem) -> float:
    """The C at which the first column gets a weight, with the l1 penalty: the beginning of a path.

    Up to it, w = 0 is the best. There, all margins are those of b alone, and C times the largest pull of
    a column at C = 1 is 1. A regularised intercept counts as a column, as in scikit-learn's ``l1_min_c``.
    Infinite where no column pulls at any C. The costs of the problem count as weights, as in ``path``.
    """
    _refuse_data(problem, "smallest_C", "")
    if problem.penalty is not Penalty.L1:
        raise ValueError(
            "smallest_C is about the l1 penalty. Got a problem with the l2 penalty instead, whose w is not "
            "0 at any C. Use Problem.of(X, y, penalty='l1')."
        )
    scores, exact = np.zeros(problem.rows.count), problem.intercept is Intercept.EXACT
    alpha = problem.multipliers(
        problem.margins_of(scores, problem.best_intercept(scores) if exact else 0.0)
    )
    largest = float(np.abs(problem.rows.combine(alpha * problem.y)).max(initial=0.0))
    if problem.intercept is Intercept.REGULARISED:
        largest = max(largest, problem.intercept_scaling * abs(float(alpha @ problem.y)))
    return 1.0 / largest if largest > 0.0 else math.inf


class _Walk:
    """The way along C."""

    def __init__(self, problem: Problem, solver: str | AnySolver, limits: Limits, watch: Watch) -> None:
        self.problem, self.solver, self.limits, self.watch = problem, solver, limits, watch
        self.tol, self.budget = limits.tol, limits.budget
        self.models: dict[float, Model] = {}
        """The models by their C."""
        self.solved: list[float] = []
        """The values at which steps were taken, in ascending order; all others follow from these."""
        self.last: tuple[AnySolver | None, Any] = None, None
        """The solver that took the last steps, and its state."""
        self.end: Status | None = None
        """Why the path ends early."""

    def along(self, values: list[float]) -> None:
        """Visit these, upwards: in leaps while they pay, each filled in from both ends."""
        here, leap, last = 0, 1, len(values) - 1
        gap, reach = self.visit(values[0]), _WORTH_A_LEAP * self.tol
        while here < last:
            place = min(here + leap, last)
            start_gap = self.visit(values[place])
            filled = self.fill(values[here + 1 : place])
            if place == here + 1:
                gap = start_gap
                leap = 2 if gap <= reach else 1
            elif filled:
                leap = 2 * leap
            else:
                leap = leap // 2
                reach = min(reach, 0.5 * gap)
            here = place

    def fill(self, values: list[float]) -> bool:
        """Visit these, the middle first; whether without a step."""
        if not values:
            return True
        middle = len(values) // 2
        self.visit(values[middle])
        filled = not self.models[values[middle]].steps
        filled &= self.fill(values[:middle])
        return self.fill(values[middle + 1 :]) and filled

    def everywhere(self, low: float, high: float, tol: float) -> None:
        """Visit as many values as prove every C between the two to be within tol."""
        self.visit(low)
        here, factor = low, _FIRST_FACTOR
        while here < high:
            there = high if self.end is not None else min(here * factor, high)
            self.visit(there)
            bound = self.halve(here, there, tol)
            if self.are_solved(here, there):
                change = math.sqrt(0.8 * tol / bound) if bound > 0.0 else math.inf
                factor **= min(max(change, 1.0 / _LARGEST_CHANGE), _LARGEST_CHANGE)
                factor = min(max(factor, _SMALLEST_FACTOR), _LARGEST_FACTOR)
            here = there

    def halve(self, low: float, high: float, tol: float) -> float:
        """Visit the middle, and those of both halves, while the bound is too large; the first bound."""
        first, second = self.models[low].certificate, self.models[high].certificate
        bound = Segment(self.problem, low, high, first, second).largest_gap
        goes_on = self.end is None and self.are_solved(low, high) and high >= _SMALLEST_FACTOR * low
        if goes_on and bound > tol:
            middle = math.sqrt(low * high)
            self.visit(middle)
            self.halve(low, middle, tol)
            self.halve(middle, high, tol)
        return bound

    def are_solved(self, *values: float) -> bool:
        """Whether what is left of the gap between these is not their own."""
        return all(self.models[C].certificate.relative_gap <= self.tol for C in values)

    def visit(self, C: float) -> float:
        """Solve the problem at C, or see that nothing is left to do; the gap of the start."""
        here = self.problem.with_costs_times(C)
        known = self.start(C, here)
        way = find_way(self.solver, here, self.tol)
        if self.end is not None and known is not None:
            status = Status.within_tol(known) if known.relative_gap <= self.tol else self.end
            interrupted = self.end is Status.INTERRUPTED
            self.models[C] = Model(known, Trace(), status, self.tol, 0, way.reason, {}, "", interrupted)
            return known.relative_gap
        model, state = solve_after(
            self.last[1] if self.last[0] == way.solver else None,
            here,
            way,
            replace(self.limits, callback=self.watch.of(C)),
            start=None if known is None else start_of(known),
            known=known,
        )
        self.models[C] = model
        if state is not None or not self.solved:
            self.last = way.solver, state
            bisect.insort(self.solved, C)
        if self.watch.stopped:
            self.end = Status.STOPPED
        elif self.budget.spent:
            self.end = Status.INTERRUPTED if self.budget.stopped else Status.TIME_SPENT
        return math.inf if known is None else known.relative_gap

    def start(self, C: float, here: Problem) -> Certificate | None:
        """What the nearest solved values prove here, on either side if there are."""
        if not self.solved:
            return None
        above = bisect.bisect(self.solved, C)
        near = self.solved[max(0, min(above, len(self.solved) - 1) - 1) :][:2]
        factors = [C / other for other in near]
        proofs = [self.models[other].certificate for other in near]
        if len(near) == 1 or not can_combine(here):
            return carried_over(proofs[-1], here, factors[-1])
        return combined((proofs[0], proofs[1]), here, (factors[0], factors[1]), self.budget, self.tol)


def _refuse_data(problem: Any, name: str, costs: str) -> None:
    """Refuse X in the place of a problem, since data and labels make one together; and targets."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"The first argument of {name} must be a Problem. Got {type(problem).__name__} instead. Make "
            f"one of the data and of labels that are 1 and -1: {name}(Problem.of(X, y), {costs})."
        )
    if problem.targets is not None:
        raise ValueError(
            f"{name} takes problems of classification, whose targets are 1. Use solve at each C."
        )


def _checked(Cs: ArrayLike) -> Vector:
    values = np.array(Cs, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"Cs must be a list of values of C. Got an array of shape {values.shape} instead.")
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if len(wrong):
        raise ValueError(f"Every C must be a finite number above 0. Got {wrong[0]} instead.")
    return values
