# SPDX-License-Identifier: BSD-3-Clause
"""A fit in passes: the survey, one method for each problem, and all of them in the same passes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.chunks.added_ascent import AddedAscent
from maxmargin.chunks.band import BandMethod
from maxmargin.chunks.certificate import ChunkCertificate
from maxmargin.chunks.checkpoint import Checkpoint
from maxmargin.chunks.in_memory import InMemory
from maxmargin.chunks.memory import Memory, unsure_rows
from maxmargin.chunks.method import Method, Point, Proven, Setting
from maxmargin.chunks.newton import Newton
from maxmargin.chunks.packed_rows import Packing
from maxmargin.chunks.passes import IN_A_ROUND, LocalPasses, Passes, Rounds
from maxmargin.chunks.statement import Stated, answers
from maxmargin.chunks.survey import Facts, Sample, survey_of
from maxmargin.core import Budget, default_threads
from maxmargin.problem import Intercept
from maxmargin.problem.rows import Rows, refuse_extremes
from maxmargin.proof.model import Model, Record, Status, Trace
from maxmargin.reductions.decompositions import class_factors
from maxmargin.solvers.sizes import CHUNK_COLUMNS
from maxmargin.solving.loop import NO_LIMIT
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.words import amount

_FEW_PASSES = 2
"""Passes that are allowed, up to which rows are read in each of them."""

Told = Callable[[int, float, Any, Any], bool | None]
"""Called after every pass with its number, the seconds, the worst certificate and its label."""


@dataclass(frozen=True)
class Wanted:
    """What is to be fitted, how near, and within which limits; the names are those of ``LinearSVC``."""

    loss: str = "squared_hinge"
    C: float = 1.0
    intercept: Intercept = Intercept.EXACT
    intercept_scaling: float = 1.0
    class_weight: Any = None
    tol: float = 1e-4
    max_passes: int = NO_LIMIT
    max_time: float = math.inf
    seed: int = 0
    memory: int | None = None
    """Bytes; None: half of what is free."""
    threads: int = field(default_factory=default_threads)
    told: Told | None = None
    checkpoint: Checkpoint | None = None
    """Where the state is kept after every pass, and gone on from."""
    starts: tuple[Point, ...] = ()
    """A point for each problem to begin with; none: those of a sample."""

    @property
    def problem(self) -> str:
        """What is minimised, in words: a state of another problem is none of this one."""
        named = "loss", "C", "intercept", "intercept_scaling", "class_weight", "seed"
        return ", ".join(f"{name}={getattr(self, name)!s}" for name in named)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The models of all problems, and what the data are."""

    models: list[Model]
    facts: Facts
    passes: int
    """Passes over the data."""
    interrupted: bool


def fit_in_passes(
    passes: Passes,
    wanted: Wanted,
    known: tuple[Facts, Sample] | None = None,
    problems: Sequence[Stated] | None = None,
) -> Fitted:
    """Fit one problem for two classes, or one for each class against the rest; or other ones.

    ``known`` is what a first pass has found out before; it counts as one of this fit.
    """
    budget = Budget(wanted.max_time, wanted.threads)
    with held_back(budget.stop) as interrupts:
        run = _Run(passes, wanted, budget, known, problems)
        run.go()
        return Fitted(run.models(), run.facts, run.readings, interrupts.came)


class _Run:
    """The state of a fit."""

    def __init__(
        self,
        passes: Passes,
        wanted: Wanted,
        budget: Budget,
        known: tuple[Facts, Sample] | None,
        problems: Sequence[Stated] | None,
    ) -> None:
        self.passes, self.wanted, self.budget = passes, wanted, budget
        self.started = time.perf_counter()
        memory = Memory.of(wanted.memory)
        # In memory there would be no state to keep before the end.
        room = memory.room_of_hinge(wanted.tol) if wanted.loss == "hinge" else memory.room
        if wanted.checkpoint is not None:
            room = replace(room, whole=0)
        kept = None if wanted.checkpoint is None else wanted.checkpoint.load(wanted.problem)
        packing, many = None, wanted.checkpoint is None and wanted.max_passes > _FEW_PASSES
        # A state on the disk has no rows. Arrays and packed files are read in less time than rows unpacked.
        if many and isinstance(passes, LocalPasses) and passes.rows() is None:
            packing = Packing(memory.packed_bytes(wanted.loss), passes.workers)
        if kept is None:
            self.facts, sample = known or survey_of(passes, room, wanted.seed, packing=packing)
        else:
            self.facts, sample = Facts(**kept["facts"]), Sample(**kept["sample"])
        self.passes_made = self.readings = 1
        """Passes made, and those of them that read the source."""
        self.is_packed = False
        if packing is not None and known is None and not sample.is_all_of(self.facts):
            packed = packing.passes()
            if packed is not None:
                self.passes, self.is_packed = packed, True
                left = memory.without(packing.nbytes)
                sample = sample.thinned(left.limit / memory.limit, wanted.seed)
                memory = left
        facts, self.sample = self.facts, sample
        codes = np.searchsorted(facts.labels, sample.y)
        stated = problems_of(wanted, facts) if problems is None else problems
        self.together = memory.together(facts, sample.count, wanted.loss, len(stated))
        together = min(self.together, len(stated))
        unsure = unsure_rows(facts, sample.count)
        # A band that has no room for all of these leaves steps as far off as a small sample does.
        short = memory.band_rows(facts, sample.count, together, False) < unsure
        zoned = memory.has_room_for_zones(facts, sample.count, together, short)
        band_rows = memory.band_rows(facts, sample.count, together, zoned)
        first = min(band_rows, unsure)
        in_a_round = getattr(passes, "in_a_round", IN_A_ROUND)
        rest = wanted.tol, wanted.seed, wanted.threads, band_rows, first, in_a_round, zoned
        setting = Setting(facts, sample, codes, *rest)
        settings = {one.held_out: _without(setting, one) for one in stated}
        method: type[Proven] = BandMethod if wanted.loss == "hinge" else Newton
        if facts.columns > CHUNK_COLUMNS:
            method = AddedAscent
        if room.whole and sample.is_all_of(facts):
            method = InMemory
        self.methods = [method(one, settings[one.held_out]) for one in stated]
        self.passing = [one for one in self.methods if isinstance(one, Method)]
        """The same, or none: where all rows are in memory, no passes are made."""
        self.traces = [Trace() for _ in self.methods]
        self.statuses: list[Status | None] = [None] * len(self.methods)
        for one in self.methods:
            refuse_extremes(sum(one.class_costs), facts.largest_length)
        for one, start in zip(self.methods, wanted.starts, strict=False):
            one.start = start if len(start[0]) == facts.columns else None
        self.begun: set[int] = set()
        self.released: set[int] = set()
        """The problems of which the answer is all that is left."""
        if kept is not None:
            self._go_on(kept)
        else:
            self._keep()

    def _keep(self) -> None:
        """Write the state to the disk, if it is to be kept."""
        if self.wanted.checkpoint is None:
            return
        state = {
            "facts": self.facts,
            "sample": self.sample,
            "passes": self.passes_made,
            "seconds": time.perf_counter() - self.started,
            "methods": {k: self.passing[k].state() for k in sorted(self.begun)},
            "traces": [[tuple(record) for record in trace.records] for trace in self.traces],
            "ended": {
                k: status.name
                for k, status in enumerate(self.statuses)
                if status is not None and k in self.released
            },
        }
        self.wanted.checkpoint.save(self.wanted.problem, state)

    def _go_on(self, kept: dict[str, Any]) -> None:
        """Take a state from the disk."""
        self.passes_made = self.readings = kept["passes"]
        self.started -= kept["seconds"]
        for k, state in kept["methods"].items():
            self.passing[k].restore(state)
            self.begun.add(k)
            if self.methods[k].relative_gap <= self.wanted.tol:
                self.statuses[k] = Status.CERTIFIED
            if k in kept["ended"]:
                self.statuses[k] = Status[kept["ended"][k]]
                self._release(k)
        for trace, records in zip(self.traces, kept["traces"], strict=True):
            trace.records.extend(Record(*record) for record in records)

    def go(self) -> None:
        """Pass after pass, until every problem has ended."""
        if not self.passing:
            self._solve_all()
        while going := self._going():
            for k in going:
                if k not in self.begun:
                    with one_blas_thread():
                        self.passing[k].begin()
                    self.begun.add(k)
            totals = self._pass(going)
            if totals is None:
                self._end([k for k, status in enumerate(self.statuses) if status is None])
                return
            core.give_memory_back()
            self.passes_made += 1
            self.readings += 0 if self.is_packed else 1
            for k in going:
                with one_blas_thread():  # sums over rows, where others wait by spinning
                    self.passing[k].tell(totals.pop(0))  # which nobody else holds: the method gives it up
                self._record(k)
            self._keep()
            if self._told(going):
                self.statuses = [status or Status.STOPPED for status in self.statuses]

    def _solve_all(self) -> None:
        """Solve one problem after the other where all rows are in memory, and no pass is left to make."""
        rows = Rows(self.sample.X, check_finite=False)
        for k, method in enumerate(self.methods):
            assert isinstance(method, InMemory)
            if self.budget.spent:
                return
            if method.start is not None:
                method.look(rows)
                self._record(k)
            self.statuses[k] = method.solve(rows, self.budget)
            self._record(k)
            if self._told([k]):
                self.statuses = [status or Status.STOPPED for status in self.statuses]
                return

    def _going(self) -> list[int]:
        """The first problems that have not ended, as many as memory has room for, or none for another pass.

        Those that end make room for others.
        """
        left = [k for k, status in enumerate(self.statuses) if status is None]
        going = left[: self.together]
        if going and self.budget.spent:
            self._end(left)
            return []
        if going and self.passes_made > self.wanted.max_passes:
            for k in left:
                self.statuses[k] = Status.STEPS_SPENT
            return []
        return going

    def _end(self, which: list[int]) -> None:
        status = Status.INTERRUPTED if self.budget.stopped else Status.TIME_SPENT
        for k in which:
            self.statuses[k] = status

    def _pass(self, which: list[int]) -> list[Any] | None:
        """The sums of one pass, for each of some problems; None where it was given up on the way."""
        asked = [(self.methods[k].stated, self.passing[k].ask()) for k in which]
        totals: list[Any] | None = None
        methods = [self.passing[k] for k in which]
        own = _Own(methods) if methods[0].keeps else None
        for shares in self.passes.over(answers, self.facts.labels, asked, each=own):
            for method, share in zip(methods, shares, strict=True):
                method.heard(share)
            if totals is None:
                totals = shares
            else:
                totals = [total.plus(share) for total, share in zip(totals, shares, strict=True)]
            if self.budget.spent:
                return None
        return totals

    def _record(self, k: int) -> None:
        """Write down what a pass has proven of a problem, and whether that is the end of it."""
        method, seconds = self.methods[k], time.perf_counter() - self.started
        gap = method.relative_gap
        records = self.traces[k].records
        records.append(Record(self.passes_made, seconds, method.primal, method.dual, gap))
        if gap <= self.wanted.tol:
            self.statuses[k] = Status.CERTIFIED
        elif self.passing and self._gains_nothing(self.passing[k], records):
            self.statuses[k] = Status.NO_GAIN
        if self.statuses[k] is Status.CERTIFIED or (
            self.statuses[k] is not None and len(self.methods) > self.together
        ):
            self._release(k)

    def _gains_nothing(self, method: Method, records: list[Record]) -> bool:
        """Whether the last passes have hardly lowered the gap, or there is nothing left to try."""
        before = records[-1 - method.patience :][0].relative_gap
        return method.stuck or (len(records) > method.patience and method.relative_gap > 0.9 * before)

    def _release(self, k: int) -> None:
        """Give up what a problem that has ended needs no more: others may need the memory."""
        self.methods[k].release()
        self.released.add(k)

    def _told(self, which: list[int]) -> bool:
        if self.wanted.told is None:
            return False
        worst = max(which, key=lambda k: self.methods[k].relative_gap)
        label = (
            self.facts.labels[self.methods[worst].stated.positive] if len(self.facts.labels) > 2 else None
        )
        seconds = time.perf_counter() - self.started
        return bool(self.wanted.told(self.passes_made, seconds, self._certificate(worst), label))

    def _certificate(self, k: int) -> ChunkCertificate:
        method = self.methods[k]
        point = method.point if math.isfinite(method.primal) else (np.zeros(self.facts.columns), 0.0)
        primal = method.primal
        if not math.isfinite(primal):
            primal = sum(method.class_costs) * (1.0 + 1e-6)
        return ChunkCertificate.of(
            *point, primal, method.dual, method.w_of_alpha, method.alpha_from, self.facts.rows
        )

    def models(self) -> list[Model]:
        """What was found for each problem."""
        found = []
        for k, method in enumerate(self.methods):
            status, certificate = self.statuses[k], self._certificate(k)
            assert status is not None
            solver = (
                f"{method.name}: {method.reason}; {amount(self.readings, 'pass', 'passes')} over "
                f"{self.facts.rows} rows in {self.facts.chunks} chunks"
            )
            if self.is_packed:
                solver += f", then {self.passes_made - 1} over them as they are packed in memory"
            interrupted = status is Status.INTERRUPTED
            model = Model(
                certificate,
                self.traces[k],
                status,
                self.wanted.tol,
                self.readings,
                solver,
                {},
                "",
                interrupted,
            )
            found.append(model)
        return found


class _Own(Rounds):
    """What all problems of a pass give each chunk of its own, made when it is asked for."""

    def __init__(self, methods: Sequence[Method]) -> None:
        self._methods, self.size = methods, methods[0].in_a_round

    def __len__(self) -> int:
        return self._methods[0].setting.facts.chunks

    def __getitem__(self, chunk: Any) -> Any:
        return [method.own(chunk) for method in self._methods]


def _without(setting: Setting, stated: Stated) -> Setting:
    """What the problems without a fold have in common."""
    if stated.folding is None:
        return setting
    return replace(
        setting,
        facts=setting.facts.without(stated.held_out),
        sample=setting.sample.without(stated.folding, stated.held_out),
    )


def problems_of(wanted: Wanted, facts: Facts) -> list[Stated]:
    """The problems of two classes, or of each class against the rest."""
    labels = facts.labels
    factors = class_factors(wanted.class_weight, labels, np.arange(len(labels)), facts.weights)
    rest = wanted.C, wanted.loss, wanted.intercept, wanted.intercept_scaling
    if len(labels) == 2:
        return [Stated(1, (float(factors[1]), float(factors[0])), *rest)]
    return [Stated(k, (float(factors[k]), 1.0), *rest) for k in range(len(labels))]
