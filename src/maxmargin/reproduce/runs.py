# SPDX-License-Identifier: BSD-3-Clause
"""Runs for curves: the steps of a solver on the clock, what they are worth beside it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Record, Trace
from maxmargin.solvers import AnySolver
from maxmargin.solvers.dual_coordinate_ascent import smaller_copy
from maxmargin.solving.loop import solve
from maxmargin.types import Vector


def states(
    problem: Problem, solver: AnySolver, *, steps: int, seconds: float = math.inf
) -> Iterator[tuple[Any, float]]:
    """The state after every step, with the seconds of processor time that the steps took so far.

    Unlike ``solve``, which certifies and keeps the best point, this shows every iterate. What else the
    machine does meanwhile does not count, as it would on the clock.
    """
    refusal = solver.accepts(problem)
    if refusal is not None:
        raise ValueError(refusal)
    # Shared by all solvers, so that the first one does not pay for it.
    _ = problem.rows.squared_norms, smaller_copy(problem.rows)
    budget = Budget(math.inf, 1)
    spent = 0.0
    before = time.process_time()
    state = solver.init(problem, None)
    for _ in range(steps):
        state = solver.step(problem, state, budget)
        spent += time.process_time() - before
        yield state, spent
        if spent >= seconds or solver.report(state).finished:
            return
        before = time.process_time()


def timed_trace(
    problem: Problem,
    solver: AnySolver,
    *,
    steps: int,
    seconds: float,
    look: Callable[[Vector], object] | None = None,
) -> Trace:
    """The best primal value so far against seconds of steps alone; certificates do not count.

    Looks are taken after steps that grow by a fifth, and after the last. ``look`` is called at each of them
    with the w of that moment, which need not be the best so far.
    """
    trace = Trace()
    certificate = None
    due, last = 1.0, None
    for step, (state, spent) in enumerate(states(problem, solver, steps=steps, seconds=seconds), start=1):
        last = step, state, spent
        if step < due:
            continue
        due = max(step + 1.0, 1.2 * step)
        certificate = _look(problem, solver, trace, last, certificate, look)
    if last is not None and trace[-1].step < last[0]:
        _look(problem, solver, trace, last, certificate, look)
    return trace


def _look(
    problem: Problem,
    solver: AnySolver,
    trace: Trace,
    at: tuple[int, Any, float],
    known: Certificate | None,
    look: Callable[[Vector], object] | None,
) -> Certificate:
    step, state, spent = at
    solution = solver.solution(problem, state, Budget(math.inf, 1))
    proof = certify(problem, solution, known=known)
    trace.records.append(Record(step, spent, proof.primal, proof.dual, proof.relative_gap))
    if look is not None:
        w = solution.w
        if w is None:
            assert solution.alpha is not None
            w = problem.rows.combine(solution.alpha * problem.y)
        look(w)
    return proof


def best_model(problem: Problem, tol: float = 1e-9, seconds: float = 60.0) -> Certificate:
    """What a tight run proves: no primal value is below its dual one."""
    return solve(problem, tol=tol, max_steps=10_000, max_time=seconds).certificate


def best_value(problem: Problem, tol: float = 1e-9, seconds: float = 60.0) -> float:
    """The largest lower bound that a tight run proves: no primal value is below it."""
    return best_model(problem, tol, seconds).dual
