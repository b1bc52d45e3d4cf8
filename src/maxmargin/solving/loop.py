# SPDX-License-Identifier: BSD-3-Clause
"""The only loop of the package: step, certify when it is worth it, until done or out of budget."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.core import Budget, default_threads
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Model, Record, Status, Trace
from maxmargin.proof.solution import Solution
from maxmargin.solvers import AnySolver
from maxmargin.solving.choice import find_solver
from maxmargin.solving.lookout import LARGE, Lookout
from maxmargin.solving.reserve import Reserve

logger = logging.getLogger("maxmargin")

_SECONDS_BETWEEN_CALLS = 0.1
NO_LIMIT = sys.maxsize
"""As ``max_steps``: a run then ends where it gains nothing any more, too."""
MANY_STEPS = 100
"""Whoever allows fewer counts them."""

# With a kernel, what the last certificate may take after Ctrl-C where there is an earlier one.
_SECONDS_AFTER_INTERRUPT = 1.0

ROUNDING = 1e-9
"""A relative gap that may be all there is to gain in float64."""
_STEPS_WITHOUT_GAIN, _STEPS_FOR_NOTHING = 100, 1000


@dataclass(frozen=True)
class Progress:
    """What a callback is told: after every certificate, and about ten times a second between them."""

    step: int
    seconds: float
    certificate: Certificate | None
    """The best so far; None before the first."""
    tol: float
    estimate: float = math.nan
    """The relative gap now, as the solver guesses it without proof; NaN if it cannot tell."""
    label: Any = None
    """Of the class that is being told from the rest; None if there are only two."""

    @property
    def relative_gap(self) -> float:
        """What is proven so far; infinite before the first certificate."""
        return math.inf if self.certificate is None else self.certificate.relative_gap


Callback = Callable[[Progress], bool | None]


def solve(
    problem: Problem,
    solver: str | AnySolver = "auto",
    *,
    tol: float = 1e-4,
    max_steps: int | None = None,
    max_time: float | None = None,
    start: Solution | None = None,
    known: Certificate | None = None,
    callback: Callback | None = None,
    certify_every: int | None = None,
    threads: int | None = None,
    budget: Budget | None = None,
) -> Model:
    """Minimise the problem until the relative gap is at most ``tol``, and return the model with its proof.

    Parameters
    ----------
    problem : Problem
        What to solve.
    solver : str or Solver
        "auto", a name of the registry, or a configured solver.
    tol : float
        Relative gap ``(primal - dual) / |primal|`` to reach.
    max_steps, max_time : int, float, optional
        Budgets: steps of the solver (epochs or iterations), and seconds. The default is no limit on
        time, and on steps 1000. With a kernel, the time that the last certificate will take is estimated
        and kept free; else it comes on top.
    start : Solution, optional
        Where to begin, for instance ``Solution(alpha=model.alpha, b=model.b)``. It is certified first, and
        the answer is never worse.
    known : Certificate, optional
        Of this very problem, where one is at hand: the start is then not certified, which spares two
        passes over the data, and the answer is never worse than ``known``.
    callback : callable, optional
        Called with a ``Progress`` after every certificate, and after a step, or a piece of a long
        certificate, when the last call was 0.1 s ago; a true answer ends the run.
    certify_every : int, optional
        Certify after this many steps. By default when the solver's own estimate says that it is worth
        two passes over the data.
    threads : int, optional
        At most this many; by default OMP_NUM_THREADS or all the processor's cores.
    budget : Budget, optional
        Shared by several runs, so that stopping one stops all; replaces max_time and threads.

    Ctrl-C ends the run like any other budget: the best certified model so far is returned.
    """
    _check_arguments(tol, max_steps, max_time, certify_every, threads)
    configured, reason = find_solver(solver, problem, tol)
    if budget is None:
        budget = Budget(math.inf if max_time is None else max_time, threads or default_threads())
    return solve_after(
        None,
        problem,
        configured,
        reason,
        tol=tol,
        max_steps=max_steps,
        start=start,
        known=known,
        callback=callback,
        certify_every=certify_every,
        budget=budget,
    )[0]


def solve_after(
    before: Any,
    problem: Problem,
    configured: AnySolver,
    reason: str,
    *,
    tol: float,
    max_steps: int | None,
    start: Solution | None,
    known: Certificate | None,
    callback: Callback | None,
    budget: Budget,
    certify_every: int | None = None,
) -> tuple[Model, Any]:
    """As ``solve``, after a run on the same rows that ended in the state ``before``; and its own state.

    That is None where nothing was left to do.
    """
    max_steps = 1000 if max_steps is None else max_steps
    if callback is None and certify_every is None and max_steps >= MANY_STEPS:
        configured = configured.at_once(tol)
    run = _Run(problem, configured, tol, callback, budget)
    state = None
    steps = 0
    story = ""
    lookout = Lookout(tol, certify_every, problem.rows, watched=callback is not None)
    reserve = Reserve(problem, configured, budget)
    try:
        status = None
        stop = False
        if known is not None:
            stop = run.take(known)
        elif start is not None:
            stop = run.certify_start(start)
        lookout.begins(run.relative_gap)
        if run.relative_gap <= tol:
            status = Status.CERTIFIED
        elif stop:
            status = Status.STOPPED
        if status is None:
            if before is None:
                state = configured.init(problem, start)
            else:
                state = configured.resume(problem, start, before)
        of_step = budget
        while status is None:
            if steps >= max_steps:
                status = Status.STEPS_SPENT
            elif of_step.spent:
                status = Status.INTERRUPTED if budget.stopped else Status.TIME_SPENT
            else:
                of_step = reserve.for_step(state)
                state = configured.step(problem, state, of_step)
                steps += configured.taken(state)
                if configured.finished(state):
                    stop = run.certify(state, steps)
                    status = Status.RULE_FIRED
                elif of_step.spent or not lookout.due(steps, configured, state):
                    if run.tell_now_and_then(state, steps):
                        status = Status.STOPPED
                    continue
                elif stop := run.certify(state, steps):
                    status = Status.STOPPED
                lookout.saw(steps, run.relative_gap, configured.estimate(state))
                if run.relative_gap <= tol:
                    status = Status.CERTIFIED
                elif max_steps == NO_LIMIT and run.gets_nowhere:
                    status = Status.RULE_FIRED
                elif not stop and run.stalls(configured.estimate(state), status):
                    last = configured.last_resort(problem, state)
                    if last is not None:
                        story = (
                            f"{last.name}: the {steps} steps of other methods before it gained no more "
                            f"at a relative gap of {run.relative_gap:.1e}."
                        )
                        run.solver = configured = last
                        state, status = configured.init(problem, None), None
        if run.stale(steps):
            run.certify(state, steps)
    except KeyboardInterrupt:
        budget.stop()
        status = Status.INTERRUPTED
        if state is None:
            certificate = run.certificate or run.certify_zero(start)
        elif problem.rows.stored < LARGE and (
            run.certificate is None or reserve.seconds(state) < _SECONDS_AFTER_INTERRUPT
        ):
            run.certify(state, steps)
    interrupted = status is Status.INTERRUPTED
    certificate = run.certificate or run.certify_zero(start)
    if certificate.primal > run.primal_of_zero:
        # A run cut short on badly scaled data can be worse than no model at all.
        certificate = run.certify_zero(None)
    if certificate.relative_gap <= tol:
        status = Status.within_tol(certificate)
    if story:
        state = None  # of the last resort, which no other run can go on from
    elif state is not None:
        story = configured.story(state)
    model = Model(
        certificate, run.trace, status, tol, steps, story or reason, run.notes, story, interrupted
    )
    return model, state


def _check_arguments(
    tol: float,
    max_steps: int | None,
    max_time: float | None,
    certify_every: int | None,
    threads: int | None,
) -> None:
    at_least = {"tol": (tol, 0), "max_steps": (max_steps, 0), "max_time": (max_time, 0)}
    at_least |= {"certify_every": (certify_every, 1), "threads": (threads, 1)}
    for name, (value, least) in at_least.items():
        if value is not None and not value >= least:
            raise ValueError(f"{name} must be a number of at least {least}. Got {value!r} instead.")


class _Run:
    """The certificates of one run: the best so far, the trace, and the clock."""

    def __init__(
        self,
        problem: Problem,
        solver: AnySolver,
        tol: float,
        callback: Callback | None,
        budget: Budget,
    ) -> None:
        self.problem, self.solver, self.tol = problem, solver, tol
        self.callback, self.budget = callback, budget
        self.trace = Trace()
        self.certificate: Certificate | None = None
        self.notes: dict[str, float] = {}
        self.started = self.told = time.perf_counter()

    @property
    def relative_gap(self) -> float:
        return math.inf if self.certificate is None else self.certificate.relative_gap

    def stale(self, steps: int) -> bool:
        """Whether steps were taken since the last certificate, or none was made."""
        return not len(self.trace) or self.trace[-1].step < steps

    def stalls(self, estimate: float, status: Status | None) -> bool:
        """Whether the solver has ended, or takes steps and gains nothing, far from the optimum."""
        *before, last = self.trace.records
        if last.relative_gap <= ROUNDING or status is not None:
            return last.relative_gap > ROUNDING
        # One that thinks itself there is asked twice, others have time.
        patience = 1 if estimate <= self.tol else _STEPS_WITHOUT_GAIN
        earlier = [record.relative_gap for record in before if record.step <= last.step - patience]
        return bool(earlier) and last.relative_gap > 0.9 * min(earlier)

    @property
    def gets_nowhere(self) -> bool:
        """Whether a great many steps have changed neither value by as much as shows."""
        last = self.trace.records[-1]
        earlier = [record for record in self.trace.records if record.step <= last.step - _STEPS_FOR_NOTHING]
        return bool(earlier) and (
            last.relative_gap > 0.99 * earlier[-1].relative_gap and last.dual < 1.01 * earlier[-1].dual
        )

    def certify(self, state: object, step: int) -> bool:
        """Certify the state; true when the callback wants to stop."""
        return self._certify(lambda: self.solver.solution(self.problem, state, self.budget), step, state)

    def certify_start(self, start: Solution) -> bool:
        """Certify what the run begins with; true when the callback wants to stop."""
        return self._certify(lambda: start, 0, None)

    def take(self, known: Certificate) -> bool:
        """Begin with a certificate that is known; true when the callback wants to stop."""
        self.certificate = known
        return self._record(0, None)

    def _certify(self, propose: Callable[[], Solution], step: int, state: object) -> bool:
        before = time.perf_counter()
        solution = propose()
        stop = False

        def tell() -> None:
            nonlocal stop
            stop = self.tell_now_and_then(state, step) or stop

        self.certificate = certify(
            self.problem, solution, known=self.certificate, budget=self.budget, tell=tell
        )
        self.trace.certifying += time.perf_counter() - before
        self.notes = solution.notes
        return self._record(step, state) or stop

    def _record(self, step: int, state: object) -> bool:
        certificate, now = self.certificate, time.perf_counter()
        assert certificate is not None
        gap = certificate.relative_gap
        self.trace.records.append(
            Record(step, now - self.started, certificate.primal, certificate.dual, gap)
        )
        logger.debug("%s: step %d, relative gap %.3e", self.solver.name, step, gap)
        return self._tell(state, step, now)

    def tell_now_and_then(self, state: object, step: int) -> bool:
        """Call the callback if it has not been called for a while; true when it wants to stop."""
        now = time.perf_counter()
        return now - self.told >= _SECONDS_BETWEEN_CALLS and self._tell(state, step, now)

    def _tell(self, state: object, step: int, now: float) -> bool:
        self.told = now
        if self.callback is None:
            return False
        estimate = math.nan if state is None else self.solver.estimate(state)
        progress = Progress(step, now - self.started, self.certificate, self.tol, estimate)
        return bool(self.callback(progress))

    def certify_zero(self, start: Solution | None) -> Certificate:
        """For a run that ended before its first step: what it started from."""
        rows = self.problem.rows
        if start is None or rows.stored >= LARGE:
            start = Solution(w=np.zeros(rows.columns), alpha=np.zeros(rows.count))  # needs no pass
        self.certificate = certify(self.problem, start, known=self.certificate, budget=self.budget)
        return self.certificate

    @property
    def primal_of_zero(self) -> float:
        """The objective at w = 0 and b = 0, or at the b that is fixed."""
        if self.problem.fixed_intercept:
            return self.problem.loss_sum(self.problem.fixed_intercept * self.problem.y)
        return self.problem.total_cost * self.problem.loss.at_zero
