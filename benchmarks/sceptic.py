# SPDX-License-Identifier: BSD-3-Clause
"""Random fits whose proofs are recomputed in exact arithmetic: what was found, and how to see it again.

A long run keeps what each batch of fits came to in a file, one line of JSON for each. Whoever stops it
loses the batches that are under way; whoever starts it again with the same file goes on after them.
"""

from __future__ import annotations

import json
import math
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from benchmarks.exact_family import ShiftedProof
from benchmarks.sceptic_cases import Case, Claim
from benchmarks.sceptic_draws import draw
from benchmarks.sceptic_family import draw_family
from benchmarks.sceptic_runs import run
from benchmarks.separation import separates
from maxmargin.independent.arithmetic import root_above
from maxmargin.independent.places import Place, wrong_place
from maxmargin.independent.values import (
    ZERO,
    Proof,
    hard_margin_lower_bound,
    hard_margin_primal,
    relative_gap,
)

FINDINGS = {
    "primal too low": "the primal value is below the exact objective of the model",
    "dual too high": "the dual value is above what its multipliers prove in exact arithmetic",
    "dual above primal": "the dual value is above the exact objective of the model: no lower bound",
    "gap above tol": "CERTIFIED, and the exact gap is above tol",
    "certified, not proven": "CERTIFIED with `proven` False",
    "not a kernel": "proven, and the function is not a kernel",
    "false inseparability": "InseparableError, and a hyperplane separates the rows",
    "false separation": "a hard margin, and the hyperplane does not separate the rows",
    "wrong place": "the best model is said to be nearer than exact arithmetic proves",
    "narrow bounds": "bounds on the best model's scores that need not hold them",
    "open row": "a multiplier at the optimum is said to be 0, or C, and exact arithmetic leaves it open",
    "crash": "an exception that is no part of the interface",
    "warning": "a warning that is no part of the interface",
    "too long": "a fit and its check took more than a minute",
}
AT_A_TIME = 200
"""Fits of a batch: what a process makes before it tells what it found."""
_TASKS = 25
"""Batches of a process: a minute or so."""
LONGEST = 60
"""Seconds of a processor for one fit and its check."""
_MARGIN = Fraction(1, 10**9)
"""A share of tol by which an exact gap may be above it: the values are told as float64."""


class Fault(NamedTuple):
    """One thing that is wrong with a fit."""

    name: str
    size: float
    """How far a value is on the wrong side, as a share of the exact objective; 0 without a value."""
    text: str
    """The numbers."""


@dataclass
class Found:
    """What some of the fits came to."""

    most_shown: ClassVar[int] = 10
    """Findings that are shown, for each name: the worst."""
    fits: Counter[str] = field(default_factory=Counter[str])
    """By kind."""
    claims: Counter[str] = field(default_factory=Counter[str])
    certified: Counter[str] = field(default_factory=Counter[str])
    """Certificates within tol, by kind."""
    statuses: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Fits by kind and by how they ended."""
    refused: Counter[str] = field(default_factory=Counter[str])
    findings: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By name and kind."""
    shown: list[tuple[Fault, str]] = field(default_factory=list[tuple[Fault, str]])
    """The worst findings of each name, with the lines that show them."""
    seconds: float = 0.0
    """Of processors, in all."""

    def add(self, other: Found) -> None:
        """Count what another found."""
        for name in _COUNTED:
            getattr(self, name).update(getattr(other, name))
        self.shown = _worst(self.shown + other.shown, self.most_shown)
        self.seconds += other.seconds

    def plain(self) -> dict[str, Any]:
        """All of it in values that JSON knows: of a counter, pairs of what was counted and its number."""
        counters = {name: list(getattr(self, name).items()) for name in _COUNTED}
        return counters | {"shown": self.shown, "seconds": self.seconds}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Self:
        """The same from such values."""
        found = cls(seconds=plain["seconds"])
        for name in _COUNTED:
            pairs = [(tuple(key) if isinstance(key, list) else key, n) for key, n in plain[name]]
            setattr(found, name, Counter(dict(pairs)))
        found.shown = [(Fault(*fault), text) for fault, text in plain["shown"]]
        return found


_COUNTED = ("fits", "claims", "certified", "statuses", "refused", "findings")
"""The counters of ``Found``."""


def _worst(shown: list[tuple[Fault, str]], most: int) -> list[tuple[Fault, str]]:
    """So many of each name, the largest first."""
    kept: list[tuple[Fault, str]] = []
    for name in dict.fromkeys(fault.name for fault, _ in shown):
        of_name = [each for each in shown if each[0].name == name]
        kept += sorted(of_name, key=lambda each: -each[0].size)[:most]
    return kept


def judge(claim: Claim) -> Iterator[Fault]:
    """What is wrong with a claim."""
    values = f"primal {claim.primal!r}, dual {claim.dual!r}"
    if claim.certified and not claim.proven:
        yield Fault("certified, not proven", 0.0, values)
    if claim.proven and not claim.is_kernel:
        yield Fault("not a kernel", 0.0, values)
    if not (claim.proven and claim.is_kernel):
        return
    if math.isnan(claim.primal) or math.isnan(claim.dual):
        yield Fault("gap above tol", math.inf, values)
    elif claim.hard:
        yield from _judge_hard(claim)
    else:
        proof = claim.prove(claim.problem, claim.w, claim.b, claim.alpha)
        usual, shifted = isinstance(proof, Proof), isinstance(proof, ShiftedProof)
        # The lemma's bound often suffices, and another one that is better takes as long again.
        quick = max(proof.lemma_bound, ZERO) if usual and not shifted else proof.lemma_bound
        if any(_judge_values(claim, *proof.primal, quick)):
            yield from _judge_values(claim, *proof.primal, proof.lower_bound)
        if claim.place is not None:
            for reason in wrong_place(proof, claim.place) if usual else proof.wrong_place(claim.place):
                yield Fault("wrong place", 0.0, f"{reason}: {claim.place}")
            yield from _judge_rows(claim, claim.place, proof)


def _judge_rows(claim: Claim, place: Place, proof: Proof) -> Iterator[Fault]:
    """What is wrong with what is said of rows; the place of the best model is taken as it is told."""
    if claim.scores is None or not all(map(math.isfinite, place[:3])):
        return
    settled = claim.settled
    if isinstance(proof, ShiftedProof) and settled is not None:
        for text in proof.open_rows(place, settled):
            yield Fault("open row", 0.0, text)
        settled = None
    rows, radius = claim.problem.rows, Fraction(place.radius)
    square = Fraction(place.scaling) ** 2
    for i, score in enumerate(proof.scores):
        reach = radius * root_above(rows.squared_length(i).high + square)
        low, high = score.low - reach + Fraction(place.low), score.high + reach + Fraction(place.high)
        told = claim.scores[0][i], claim.scores[1][i]
        if not (told[0] <= low and high <= told[1]):
            yield Fault("narrow bounds", 0.0, f"row {i}, {told} and not {_shown(low)}, {_shown(high)}")
        if settled is None or claim.problem.costs[i] == 0:
            continue
        ends = sorted((claim.problem.y[i] * low, claim.problem.y[i] * high))
        if (settled[0][i] and not ends[0] > 1) or (settled[1][i] and not ends[1] < 1):
            yield Fault("open row", 0.0, f"row {i}, margin from {_shown(ends[0])} to {_shown(ends[1])}")


def _judge_hard(claim: Claim) -> Iterator[Fault]:
    value = hard_margin_primal(claim.problem, claim.w, claim.b)
    bound = hard_margin_lower_bound(claim.problem, claim.alpha)
    if value is None:
        if math.isfinite(claim.primal):
            yield Fault("false separation", 0.0, f"primal {claim.primal!r}")
    elif bound is None:
        text = "the multipliers prove that there is no hyperplane, and there is one"
        yield Fault("dual above primal", math.inf, text)
    else:
        yield from _judge_values(claim, value.low, value.high, bound)


def _judge_values(claim: Claim, low: Fraction, high: Fraction, bound: Fraction) -> Iterator[Fault]:
    """What is wrong with two values; the exact objective is from ``low`` to ``high``."""
    gap = relative_gap(low, bound)
    text = (
        f"primal {claim.primal!r}, exact {_shown(low)}; dual {claim.dual!r}, exact {_shown(bound)}; "
        f"exact gap {'infinite' if gap is None else f'{float(gap):.3e}'}, tol {claim.tol:g}"
    )
    if math.isfinite(claim.primal) and Fraction(claim.primal) < low:
        yield Fault("primal too low", _share(low - Fraction(claim.primal), low), text)
    if claim.dual == math.inf:
        yield Fault("dual above primal", math.inf, text)
    elif math.isfinite(claim.dual):
        dual = Fraction(claim.dual)
        if dual > bound:
            yield Fault("dual too high", _share(dual - bound, low), text)
        if dual > high:
            yield Fault("dual above primal", _share(dual - high, low), text)
    if claim.certified and (gap is None or gap > Fraction(claim.tol) * (1 + _MARGIN)):
        yield Fault("gap above tol", math.inf if gap is None else _share(gap, Fraction(claim.tol)), text)


def _share(part: Fraction, whole: Fraction) -> float:
    return float(part / whole) if whole and part / whole < 10**300 else math.inf


def _shown(number: Fraction) -> str:
    return repr(float(number)) if abs(number) < 10**300 else "beyond float64"


def examine(case: Case, found: Found) -> list[Fault]:
    """What is wrong with one fit, the worst of each name; it is counted as well."""
    found.fits[case.kind] += 1
    try:
        outcome = run(case)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return [Fault("crash", 0.0, f"{type(error).__name__}: {error} ({last.name})")]
    found.claims[case.kind] += len(outcome.claims)
    found.certified[case.kind] += sum(claim.certified for claim in outcome.claims)
    if outcome.refused:
        found.refused[outcome.refused] += 1
    else:
        end = "inseparable" if outcome.inseparable else outcome.status.lower().replace("_", " ")
        usual = not {"tol", "solver"} & case.options.keys()
        found.statuses[case.kind, f"{end}, {'default' if usual else 'other'} tol and solver"] += 1
    faults = [Fault("warning", 0.0, text) for text in outcome.complaints]
    for claim in outcome.claims:
        faults.extend(judge(claim))
    if outcome.inseparable and _is_separable(case):
        text = "a linear program in exact arithmetic finds a hyperplane"
        faults.append(Fault("false inseparability", 0.0, text))
    of_each_name = {fault.name: fault for fault in sorted(faults, key=lambda fault: fault.size)}
    return list(of_each_name.values())


def _is_separable(case: Case) -> bool:
    kept = np.ones(len(case.y), bool) if case.weights is None else case.weights > 0
    labels = np.where(case.y[kept] > 0, 1, -1).tolist()
    return separates(case.X[kept].tolist(), labels, intercept=case.options.get("fit_intercept", True))


def smaller(case: Case, name: str) -> Case:
    """The same finding with as few rows as leaving out one after the other leads to."""
    row = 0
    while row < len(case.y):
        less = case.without(row)
        labels = less.y if less.weights is None else less.y[less.weights > 0]
        both = case.kind in _WITHOUT_CLASSES or len(np.unique(labels)) == len(np.unique(case.y))
        if both and any(fault.name == name for fault in examine(less, Found())):
            case = less
        else:
            row += 1
    return case


_WITHOUT_CLASSES = ("regression", "nu regression", "one class", "ranking")


class TooLong(BaseException):
    pass


def _ring(*_: Any) -> None:
    raise TooLong


@contextmanager
def in_time() -> Iterator[None]:
    """Raises ``TooLong`` in what takes longer; the time that a process has to wait does not count."""
    signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def examine_family(seed: int, numbers: range) -> Found:
    """What the fits of these numbers came to, of the members of the family."""
    return examine_numbers(seed, numbers, draw_family)


def examine_numbers(seed: int, numbers: range, draw: Callable[[int, int], Case] = draw) -> Found:
    """What the fits of these numbers came to."""
    start, found = time.process_time(), Found()
    seen: list[tuple[Fault, Any]] = []
    for number in numbers:
        case = draw(seed, number)
        try:
            with in_time():
                faults = examine(case, found)
        except TooLong:
            faults = [Fault("too long", 0.0, f"more than {LONGEST} s")]
        found.findings.update((fault.name, case.kind) for fault in faults)
        seen += [(fault, (number, case)) for fault in faults]
    for fault, (number, case) in _worst(seen, 1):
        found.shown.append((fault, _reproduction(seed, number, case, fault)))
    found.seconds = time.process_time() - start
    return found


def _reproduction(seed: int, number: int, case: Case, fault: Fault) -> str:
    """The lines that show a fault, with as few rows as it takes."""
    rows = len(case.y)
    if fault.name != "too long":
        try:
            with in_time():
                case = smaller(case, fault.name)
                fault = next(each for each in examine(case, Found()) if each.name == fault.name)
        except (TooLong, StopIteration):
            pass
    start = f"# {fault.name}: seed {seed}, fit {number}, {case.kind}, {len(case.y)} of {rows} rows"
    return f"{start}\n# {fault.text}\n{case.code()}\n"


class Batches:
    """What batches of fits came to, and the file that keeps it; without one, only of this run."""

    def __init__(self, file: Path | None = None, kind: type[Found] = Found) -> None:
        self.file, self.total = file, kind()
        self.done: set[tuple[int, int]] = set()
        """Seed and first number of each batch."""
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                self._count_line(line)

    def _count_line(self, line: str) -> None:
        try:
            batch = json.loads(line)
        except ValueError:
            return  # a line that was being written when the run was stopped
        if (batch["seed"], batch["first"]) not in self.done:
            self._count(batch["seed"], batch["first"], type(self.total).of(batch["found"]))

    def _count(self, seed: int, first: int, found: Found) -> None:
        self.done.add((seed, first))
        self.total.add(found)

    def add(self, seed: int, first: int, found: Found) -> None:
        """Count a batch that is done, and write it down."""
        self._count(seed, first, found)
        if self.file is None:
            return
        line = json.dumps({"seed": seed, "first": first, "found": found.plain()})
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")  # a new line, in case the last one was not finished

    def open_from(self, seed: int, first: int) -> Iterator[int]:
        """The first numbers of batches that have not been made yet."""
        return (begin for begin in count(first, AT_A_TIME) if (seed, begin) not in self.done)

    @property
    def seeds(self) -> list[int]:
        """Of all that was drawn."""
        return sorted({seed for seed, _ in self.done})


def _begin() -> None:
    """Of a process that examines: it is the first one that hears of an end, and fractions are quick."""
    from benchmarks import quick_fractions

    quick_fractions.take()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def measure(
    minutes: float,
    seed: int,
    first: int,
    processes: int,
    tell: Callable[[str], None],
    file: Path | None = None,
    kind: type[Found] = Found,
    work: Callable[[int, range], Found] = examine_numbers,
) -> Batches:
    """Draw and examine fits for so many minutes, in some processes; the worst findings are printed.

    SIGTERM and Ctrl-C end it like the clock: batches that are under way are finished and counted.
    """
    batches = Batches(file, kind)
    end, begins = time.monotonic() + 60.0 * minutes, batches.open_from(seed, first)
    stopped: list[int] = []
    before = [signal.signal(n, lambda n, _: stopped.append(n)) for n in (signal.SIGINT, signal.SIGTERM)]
    waiting: dict[Any, int] = {}
    # What gmpy2 and the fits leave behind grows by some megabytes a second: processes begin anew.
    pool_of = partial(ProcessPoolExecutor, processes, initializer=_begin)
    with pool_of(mp_context=get_context("spawn"), max_tasks_per_child=_TASKS) as pool:
        while True:
            while not stopped and time.monotonic() < end and len(waiting) < processes:
                begin = next(begins)
                job = pool.submit(work, seed, range(begin, begin + AT_A_TIME))
                waiting[job] = begin
            if not waiting:
                break
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for job in done:
                batches.add(seed, waiting.pop(job), job.result())
            total = batches.total
            tell(f"{sum(total.fits.values())} fits, {sum(total.findings.values())} findings")
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
        signal.signal(number, handler)
    for _, text in batches.total.shown:
        print(text)
    return batches
