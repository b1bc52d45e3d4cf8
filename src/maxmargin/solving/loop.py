# SPDX-License-Identifier: BSD-3-Clause
"""The loop that solves one problem: step, certify when due, until it ends.

Every solver runs in this loop, and nothing else takes its steps until a proof suffices. Small problems can
skip it: one compiled call takes all their steps, and they are proven and answered with the same ``Model``.
What has several problems to solve (classes, values of C, a growing C for the hard margin) calls ``solve``
for each.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.core import Budget, default_threads
from maxmargin.problem import Problem
from maxmargin.problem.rows import TellingOfRoom
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Model, Record, Status, Trace
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import AnySolver, Report
from maxmargin.solvers.sizes import LARGE_VALUES
from maxmargin.solving.lookout import Lookout, Reserve
from maxmargin.solving.ways import Way, find_way
from maxmargin.tools.interrupts import held_back, let_through

logger = logging.getLogger("maxmargin")

_SECONDS_BETWEEN_CALLS = 0.1
"""Seconds between two calls of a callback while no certificate is made."""
_DEFAULT_STEPS = 1000
"""The limit on steps where none is given."""
NO_LIMIT = sys.maxsize
"""The ``max_steps`` of a run without a limit: it ends where it gains nothing any more, too."""
MANY_STEPS = 100
"""Steps: whoever allows fewer wants to count them, and gets them one by one."""
_SECONDS_AFTER_INTERRUPT = 0.1
"""What the last certificate may take after Ctrl-C, with a kernel."""
_SHARE_AFTER_INTERRUPT = 0.05
"""The share of the time of a run that its first certificate may take after Ctrl-C: without one, all the
time was spent for nothing."""
ROUNDING = 1e-9
"""A relative gap that may be all there is to gain in float64."""
_STEPS_WITHOUT_GAIN = 100
"""Steps after which a gap that has not fallen by a tenth calls for another way."""
_STEPS_FOR_NOTHING = 1000
"""Steps after which a run without a limit on them ends if neither value has changed by a hundredth."""


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
    """The class that is being told from the rest; None if there are only two."""

    @property
    def relative_gap(self) -> float:
        """What is proven so far; infinite before the first certificate."""
        return math.inf if self.certificate is None else self.certificate.relative_gap


Callback = Callable[[Progress], bool | None]


class Watch:
    """A callback of several runs: once it has been told to stop, it stops all of them."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.stopped = False

    def __call__(self, progress: Progress) -> bool:
        """Whether to stop."""
        if not self.stopped and self.callback is not None:
            self.stopped = bool(self.callback(progress))
        return self.stopped

    def of(self, label: Any) -> Callback | None:
        """The callback of one of the runs, which is told this label; None where nobody watches."""
        return None if self.callback is None else lambda progress: self(replace(progress, label=label))


def solve(
    problem: Problem,
    solver: str | AnySolver | Way = "auto",
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
    solver : str, Solver or Way
        "auto", a name of the registry, a configured solver, or the way that was found for the problem.
    tol : float
        Relative gap ``(primal - dual) / |primal|`` to reach.
    max_steps, max_time : int, float, optional
        Budgets: steps of the solver (epochs or iterations), and seconds. The default is no limit on
        time, and on steps 1000. With a kernel, the time that the last certificate will take is estimated
        and kept free; else it comes on top.
    start : Solution, optional
        Where to begin, for instance ``Solution(alpha=model.alpha, b=model.b)``. It is certified first, and
        the answer is never worse; but not where a kernel's multipliers come with the margins of their w.
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
    limits = Limits.of(tol, max_steps, max_time, callback, certify_every, threads, budget)
    return solve_after(None, problem, find_way(solver, problem, tol), limits, start, known)[0]


@dataclass(frozen=True)
class Limits:
    """How near a run has to come, how far it may go, and who watches it."""

    tol: float
    """The relative gap to reach."""
    budget: Budget
    max_steps: int = _DEFAULT_STEPS
    callback: Callback | None = None
    certify_every: int | None = None
    """Steps between certificates; None: when the solver's estimate says that one is worth its price."""

    @classmethod
    def of(
        cls,
        tol: float,
        max_steps: int | None = None,
        max_time: float | None = None,
        callback: Callback | None = None,
        certify_every: int | None = None,
        threads: int | None = None,
        budget: Budget | None = None,
    ) -> Limits:
        """The limits that the arguments of ``solve`` set; raises ValueError where one of these is wrong."""
        at_least = {"tol": (tol, 0), "max_steps": (max_steps, 0), "max_time": (max_time, 0)}
        at_least |= {"certify_every": (certify_every, 1), "threads": (threads, 1)}
        for name, (value, least) in at_least.items():
            if value is not None and not value >= least:
                raise ValueError(f"{name} must be a number of at least {least}. Got {value!r} instead.")
        if budget is None:
            budget = Budget(math.inf if max_time is None else max_time, threads or default_threads())
        return cls(tol, budget, _DEFAULT_STEPS if max_steps is None else max_steps, callback, certify_every)

    @property
    def steps_are_counted(self) -> bool:
        """Whether somebody wants to see every step, so that none may hide in a call of several."""
        watched = self.callback is not None or self.certify_every is not None
        return watched or self.max_steps < MANY_STEPS


def solve_after(
    before: Any,
    problem: Problem,
    way: Way,
    limits: Limits,
    start: Solution | None = None,
    known: Certificate | None = None,
) -> tuple[Model, Any]:
    """The answer of ``solve`` after a run on the same rows that ended in ``before``, and its own state.

    That is None where nothing was left to do, and where another way than the first had to go on.
    """
    run = _Run(problem, way, limits, start)
    with held_back(limits.budget.stop), TellingOfRoom():
        try:
            run.begin(known, before)
            while run.goes_on():
                run.step()
                if run.certificate_is_due():
                    run.certify()
                    run.judge()
                else:
                    run.tell_now_and_then()
            run.certify_last_steps()
        except KeyboardInterrupt:  # of a callback, or of a debugger
            run.take_interrupt()
        return run.model(), run.state_to_go_on_from


class _Run:
    """The state of a run: the solver's own, the best certificate so far, the trace, and why it ends."""

    def __init__(self, problem: Problem, way: Way, limits: Limits, start: Solution | None) -> None:
        self.problem, self.way, self.limits, self.start = problem, way, limits, start
        self.solver = way.solver if limits.steps_are_counted else way.solver.at_once(limits.tol)
        self.state: Any = None
        """The state of the solver; None before it begins."""
        self.report = Report()
        """What the solver told after its last step."""
        self.steps = 0
        self.budget_of_step = limits.budget
        self.status: Status | None = None
        """Why the run ends; None while it goes on."""
        self.interrupted = False
        self.wants_to_stop = False
        """Whether the callback has asked for the end."""
        self.resorted = ""
        """Which way had to go on where the first gained no more, and why; as a rule empty."""
        self.certificate: Certificate | None = None
        self.notes: dict[str, float] = {}
        self.trace = Trace()
        self.lookout = Lookout(limits.tol, limits.certify_every, problem.rows, limits.callback is not None)
        self.reserve = Reserve(problem.rows, limits.budget)
        self.started = self.told = time.perf_counter()
        self.stopped = math.inf
        """When a certificate was first seen to be waited for."""

    @property
    def relative_gap(self) -> float:
        """What is proven so far; infinite before the first certificate."""
        return math.inf if self.certificate is None else self.certificate.relative_gap

    # The parts of the loop, in the order in which it calls them.

    def begin(self, known: Certificate | None, before: Any) -> None:
        """Look at what is known at the start, and prepare the solver if that is not enough."""
        if known is not None:
            self.certificate = known
            self._record()
        elif (start := self.start) is not None and not self._is_at_hand(start):
            self._certify(lambda: start)
        self.lookout.begins(self.relative_gap)
        if self.relative_gap <= self.limits.tol:
            self.status = Status.CERTIFIED
        elif self.wants_to_stop:
            self.status = Status.STOPPED
        elif self.limits.budget.stopped:
            self.status = Status.INTERRUPTED
        elif before is None:
            self._enter(self.solver.init(self.problem, self.start))
        else:
            self._enter(self.solver.resume(self.problem, self.start, before))

    def _is_at_hand(self, start: Solution) -> bool:
        """Whether a start spares the solver what a proof of it would take: all values of its rows."""
        return self.problem.rows.has_kernel and start.w is None and start.margins is not None

    def goes_on(self) -> bool:
        """Whether nothing has ended the run, and steps and time are left for another step."""
        if self.status is None:
            if self.steps >= self.limits.max_steps:
                self.status = Status.STEPS_SPENT
            elif self.budget_of_step.spent:
                stopped = self.limits.budget.stopped
                self.status = Status.INTERRUPTED if stopped else Status.TIME_SPENT
        return self.status is None

    def step(self) -> None:
        """One call of the solver's step, as far as the time that is kept for the last proof allows."""
        self.budget_of_step = self.reserve.for_step(self.propose)
        self.state = self.solver.step(self.problem, self.state, self.budget_of_step)
        self.report = self.solver.report(self.state)
        self.steps += self.report.steps

    def certificate_is_due(self) -> bool:
        """Whether the last step is worth a proof; one cut short gets it after the loop."""
        if self.report.finished:
            return True
        return not self.budget_of_step.spent and self.lookout.due(self.steps, self.report)

    def certify(self) -> None:
        """Prove what the state is worth."""
        self._certify(self.propose)

    def judge(self) -> None:
        """Decide what the certificate of the last step means: the end, another way, or nothing."""
        self.lookout.saw(self.steps, self.relative_gap, self.report.gap)
        if self.relative_gap <= self.limits.tol:
            self.status = Status.CERTIFIED
        elif (next_way := self._next_way()) is not None:
            self._change_to(next_way)
        elif self.report.finished or (self.limits.max_steps == NO_LIMIT and self._gets_nowhere()):
            self.status = Status.RULE_FIRED
        elif self.wants_to_stop:
            self.status = Status.STOPPED

    def tell_now_and_then(self) -> None:
        """Call the callback if it has not been called for a while; it may end the run."""
        if self.limits.callback is not None:
            self._tell_if_it_is_time()
            if self.wants_to_stop:
                self.status = Status.STOPPED

    def certify_last_steps(self) -> None:
        """Prove the steps since the last certificate, if there are any or there is none."""
        if self.limits.budget.stopped:
            self.take_interrupt()
        elif not len(self.trace) or self.trace[-1].step < self.steps:
            self.certify()

    def take_interrupt(self) -> None:
        """End after Ctrl-C, with a last certificate only where that is made soon; nobody is told."""
        self.limits.budget.stop()
        self.interrupted = True
        if self.status is Status.CERTIFIED:
            return
        self.status = Status.INTERRUPTED
        if self.state is None:
            return
        self._enter(self.state)  # the step that was cut short has changed it
        if self.problem.rows.stored >= LARGE_VALUES:
            return
        if self.reserve.seconds(self.propose) < self._wait_after_interrupt:
            with suppress(KeyboardInterrupt):  # it took longer than that
                self.certify()

    def model(self) -> Model:
        """The answer: the best certificate, why the run ended, and what ran."""
        status = self.status
        assert status is not None
        certificate = self.certificate or self._certify_zero(self.start)
        if not certificate.primal <= (1.0 + ROUNDING) * self.problem.primal_of_zero:
            # A run cut short on badly scaled data can be worse than no model at all.
            certificate = self._certify_zero(None)
        tol = self.limits.tol
        if certificate.relative_gap <= tol:
            status = Status.within_tol(certificate)
        story = self.resorted or self.report.story
        what_ran = story or self.way.reason
        return Model(
            certificate, self.trace, status, tol, self.steps, what_ran, self.notes, story, self.interrupted
        )

    @property
    def state_to_go_on_from(self) -> Any:
        """What the next run on the same rows may take over; None where another way has gone on."""
        return None if self.resorted else self.state

    # What the parts are made of.

    def propose(self) -> Solution:
        """What the state amounts to."""
        return self.solver.solution(self.problem, self.state, self.limits.budget)

    def _enter(self, state: Any) -> None:
        self.state, self.report = state, self.solver.report(state)

    def _certify(self, propose: Callable[[], Solution]) -> None:
        before = time.perf_counter()
        solution = propose()
        self.certificate = certify(
            self.problem,
            solution,
            known=self.certificate,
            budget=self.limits.budget,
            tell=self._look_up,
            tol=self.limits.tol,
        )
        self.trace.certifying += time.perf_counter() - before
        self.notes = solution.notes
        self._record()

    def _record(self) -> None:
        certificate, now = self.certificate, time.perf_counter()
        assert certificate is not None
        gap = certificate.relative_gap
        self.trace.records.append(
            Record(self.steps, now - self.started, certificate.primal, certificate.dual, gap)
        )
        logger.debug("%s: step %d, relative gap %.3e", self.solver.name, self.steps, gap)
        self._tell(now)

    def _look_up(self) -> None:
        """Between the parts of a long certificate: one that Ctrl-C would wait for too long is given up."""
        if self.limits.budget.stopped:
            now = time.perf_counter()
            self.stopped = min(self.stopped, now)
            if now - self.stopped > self._wait_after_interrupt:
                raise KeyboardInterrupt
        self._tell_if_it_is_time()

    @property
    def _wait_after_interrupt(self) -> float:
        """Seconds that the last certificate may take after Ctrl-C."""
        if self.certificate is not None:
            return _SECONDS_AFTER_INTERRUPT
        return max(_SECONDS_AFTER_INTERRUPT, _SHARE_AFTER_INTERRUPT * (time.perf_counter() - self.started))

    def _tell_if_it_is_time(self) -> None:
        now = time.perf_counter()
        if now - self.told >= _SECONDS_BETWEEN_CALLS:
            self._tell(now)

    def _tell(self, now: float) -> None:
        self.told = now
        if self.limits.callback is not None and not self.interrupted:
            seconds, tol = now - self.started, self.limits.tol
            progress = Progress(self.steps, seconds, self.certificate, tol, self.report.gap)
            with let_through():
                self.wants_to_stop |= bool(self.limits.callback(progress))

    def _next_way(self) -> Way | None:
        """The way that goes on where this one gains nothing any more, far from the optimum."""
        if self.way.then is None or self.wants_to_stop or self.relative_gap <= ROUNDING:
            return None
        if not (self.report.finished or self._stalls()):
            return None
        return self.way.then(self.problem, self.state)

    def _change_to(self, way: Way) -> None:
        """Go on from zero on another way."""
        self.way, self.solver = way, way.solver
        self.resorted = way.reason.format(steps=self.steps, gap=self.relative_gap)
        self._enter(self.solver.init(self.problem, None))

    def _stalls(self) -> bool:
        """Whether steps are taken and gain nothing."""
        # A solver that thinks itself there is asked twice, others have time.
        patience = 1 if self.report.gap <= self.limits.tol else _STEPS_WITHOUT_GAIN
        earlier = [record.relative_gap for record in self._records_before(patience)]
        return bool(earlier) and self.relative_gap > 0.9 * min(earlier)

    def _gets_nowhere(self) -> bool:
        """Whether a great many steps have changed neither value by as much as shows."""
        last, earlier = self.trace[-1], self._records_before(_STEPS_FOR_NOTHING)
        return bool(earlier) and (
            last.relative_gap > 0.99 * earlier[-1].relative_gap
            and last.dual < earlier[-1].dual + 0.01 * abs(earlier[-1].dual)
        )

    def _records_before(self, steps: int) -> list[Record]:
        """The certificates that were made at least so many steps ago."""
        return [record for record in self.trace if record.step <= self.steps - steps]

    def _certify_zero(self, start: Solution | None) -> Certificate:
        """For a run that ended before its first step: what it started from, unless that takes long."""
        rows = self.problem.rows
        if start is None or rows.stored >= LARGE_VALUES or (rows.has_kernel and self.interrupted):
            start = Solution(w=np.zeros(rows.columns), alpha=np.zeros(rows.count))  # needs no pass
        self.certificate = certify(self.problem, start, known=self.certificate, budget=self.limits.budget)
        return self.certificate
