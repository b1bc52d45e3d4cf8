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
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.certificate import Certificate
from maxmargin.choose import find_solver
from maxmargin.core import Budget, default_threads
from maxmargin.loop import Callback, Progress, _check_arguments, solve_after
from maxmargin.model import Model, Status, Trace
from maxmargin.other_costs import can_combine, carried_over, combined, start_of
from maxmargin.problem import Problem
from maxmargin.solvers import AnySolver
from maxmargin.types import Vector

_WORTH_A_LEAP = 1000.0
"""Times tol: the gap of a start one value ahead, up to which it is worth trying to leap over a value."""


@dataclass(frozen=True, eq=False)
class Path(Sequence[Model]):
    """The models of ``path``, in the order in which the values of C were given."""

    C: Vector
    """The values of C."""
    models: tuple[Model, ...]
    seconds: float
    """Of the whole path."""

    @property
    def primal(self) -> Vector:
        """The objective at each C."""
        return np.array([model.certificate.primal for model in self.models])

    @property
    def dual(self) -> Vector:
        """The lower bound on it at each C."""
        return np.array([model.certificate.dual for model in self.models])

    @property
    def gaps(self) -> Vector:
        """The relative gap at each C."""
        return np.array([model.certificate.relative_gap for model in self.models])

    @property
    def steps(self) -> Vector:
        """The steps taken at each C."""
        return np.array([model.steps for model in self.models], np.float64)

    @property
    def certified(self) -> bool:
        """Whether every model is within tol."""
        return all(model.status.certified for model in self.models)

    @overload
    def __getitem__(self, index: int) -> Model: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Model]: ...
    def __getitem__(self, index: int | slice) -> Model | Sequence[Model]:
        return self.models[index]

    def __len__(self) -> int:
        return len(self.models)

    def __str__(self) -> str:
        lines = ["         C         primal           dual  relative gap  steps"]
        for C, model in zip(self.C, self.models, strict=True):
            proof = model.certificate
            values = f"{C:10.4g} {proof.primal:14.8g} {proof.dual:14.8g}"
            lines.append(f"{values} {proof.relative_gap:13.1e} {model.steps:6d}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Path({len(self)} values of C, largest relative gap {self.gaps.max():.1e})"


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
    tol : float
        Relative gap ``(primal - dual) / |primal|`` to reach at every C.
    max_steps : int, optional
        Steps of the solver at one C.
    max_time : float, optional
        Seconds for the whole path.
    threads : int, optional
        At most this many; by default OMP_NUM_THREADS or all the processor's cores.
    callback : callable, optional
        Called with a ``Progress`` as by ``solve``; its ``label`` is the C. A true answer ends the path.

    Where the path ends early, by max_time, Ctrl-C or the callback, the values of C that are left answer
    with what they would have started from: that is certified too, and its gap says how far it may be off.
    """
    started = time.perf_counter()
    _check_arguments(tol, max_steps, max_time, None, threads)
    values = _checked(Cs)
    find_solver(solver, problem, tol)  # whether there is such a one, before anything runs
    budget = Budget(float("inf") if max_time is None else max_time, threads or default_threads())
    different, places = np.unique(values, return_inverse=True)
    walk = _Walk(problem, different, solver, tol, max_steps, budget, _Teller(callback))
    walk.go()
    models = tuple(walk.models[int(place)] for place in places)
    return Path(values, models, time.perf_counter() - started)


class _Walk:
    """The way along the values of C: in leaps while they pay, each filled in from both ends."""

    def __init__(
        self,
        problem: Problem,
        values: Vector,
        solver: str | AnySolver,
        tol: float,
        max_steps: int | None,
        budget: Budget,
        teller: _Teller,
    ) -> None:
        self.problem, self.values, self.solver = problem, values, solver
        self.tol, self.max_steps, self.budget, self.teller = tol, max_steps, budget, teller
        self.models: dict[int, Model] = {}
        self.solved: list[int] = []
        """The places where steps were taken, in ascending order; all others follow from these."""
        self.last: tuple[AnySolver | None, Any] = None, None
        """The solver that took the last steps, and its state."""
        self.end: Status | None = None
        """Why the path ends early."""

    def go(self) -> None:
        """Visit every place."""
        here, leap, last = 0, 1, len(self.values) - 1
        gap, reach = self.visit(0), _WORTH_A_LEAP * self.tol
        while here < last:
            place = min(here + leap, last)
            start_gap = self.visit(place)
            filled = self.fill(here + 1, place)
            if place == here + 1:
                gap = start_gap
                leap = 2 if gap <= reach else 1
            elif filled:
                leap = 2 * leap
            else:
                leap = leap // 2
                reach = min(reach, 0.5 * gap)
            here = place

    def fill(self, first: int, end: int) -> bool:
        """Visit the places from ``first`` to before ``end``, the middle first; whether without a step."""
        if first >= end:
            return True
        middle = (first + end) // 2
        self.visit(middle)
        filled = not self.models[middle].steps
        filled &= self.fill(first, middle)
        return self.fill(middle + 1, end) and filled

    def visit(self, place: int) -> float:
        """Solve the problem at a place, or see that nothing is left to do; the gap of the start."""
        here = self.problem.with_costs_times(float(self.values[place]))
        try:
            known = self.start(place, here)
        except KeyboardInterrupt:
            self.end = Status.INTERRUPTED
            known = self.start(place, here)
        solver, reason = find_solver(self.solver, here, self.tol)
        if self.end is not None and known is not None:
            status = Status.within_tol(known) if known.relative_gap <= self.tol else self.end
            self.models[place] = Model(known, Trace(), status, self.tol, 0, reason, {})
            return known.relative_gap
        model, state = solve_after(
            self.last[1] if self.last[0] == solver else None,
            here,
            solver,
            reason,
            tol=self.tol,
            max_steps=self.max_steps,
            start=None if known is None else start_of(known),
            known=known,
            callback=self.teller.at(float(self.values[place])),
            budget=self.budget,
        )
        self.models[place] = model
        if state is not None or not self.solved:
            self.last = solver, state
            bisect.insort(self.solved, place)
        if self.teller.stopped:
            self.end = Status.STOPPED
        elif self.budget.spent:
            self.end = Status.INTERRUPTED if self.budget.stopped else Status.TIME_SPENT
        return math.inf if known is None else known.relative_gap

    def start(self, place: int, here: Problem) -> Certificate | None:
        """What the nearest solved places prove here, on either side if there are."""
        if not self.solved:
            return None
        above = bisect.bisect(self.solved, place)
        near = self.solved[max(0, min(above, len(self.solved) - 1) - 1) :][:2]
        factors = [float(self.values[place] / self.values[k]) for k in near]
        proofs = [self.models[k].certificate for k in near]
        if len(near) == 1 or not can_combine(here):
            return carried_over(proofs[-1], here, factors[-1])
        return combined((proofs[0], proofs[1]), here, (factors[0], factors[1]), self.budget, self.tol)


def _checked(Cs: ArrayLike) -> Vector:
    values = np.array(Cs, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"Cs must be a list of values of C. Got an array of shape {values.shape} instead.")
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if len(wrong):
        raise ValueError(f"Every C must be a finite number above 0. Got {wrong[0]} instead.")
    return values


class _Teller:
    """Tells a callback the C, and remembers whether it wanted to stop: a certified model does not say."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.stopped = False

    def at(self, C: float) -> Callback | None:
        callback = self.callback
        if callback is None:
            return None

        def tell(progress: Progress) -> bool:
            self.stopped |= bool(callback(replace(progress, label=C)))
            return self.stopped

        return tell
