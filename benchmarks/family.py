# SPDX-License-Identifier: BSD-3-Clause
"""The members of the family: seconds of a whole fit to equal quality, ours and the peers'.

Each member has a file in ``family_members/`` with its cases. A case has its problem's data, our estimator
and the peers', and says what the objective of a fitted one is. The best value is that of our estimator at a
tolerance of 1e-5, or a lower one of any fit. Every fit is kept in a file as soon as it
is made, so that a run may be cut into pieces.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from joblib import parallel_config

from benchmarks import machine
from benchmarks.report import table

QUALITY = 1e-3
"""The largest relative distance from the best value that counts."""
_BEST = 1e-5
"""The tolerance of the fit whose value is taken for the best."""
_LONG = 10.0
"""Seconds of a fit that is made only once."""


@dataclass(frozen=True)
class Peer:
    """Another's estimator, at one tolerance after the other until it is good enough."""

    name: str
    make: Callable[[float], Any]
    goal: float
    """How many times as fast ours is to be."""
    tolerances: tuple[float, ...] = (0.1, 1e-2, 1e-3, 1e-4, 1e-5)


@dataclass(frozen=True)
class Case:
    """One problem."""

    member: str
    data: str
    setting: str
    """nu, C and the like, in words."""
    X: Any
    y: Any
    make: Callable[[float], Any]
    """Our estimator for a tolerance."""
    peers: list[Peer]
    measure: Callable[[Any], float]
    """The objective of a fitted estimator, or what its chosen parameters scored."""
    scored: bool = False
    """Whether the measure is a score: the larger the better, and every fit is good enough."""
    note: str = ""
    """Why there is no peer, where there is none."""

    @property
    def key(self) -> str:
        """What tells a case from others."""
        return f"{self.member}, {self.data}, {self.setting}"


class Stopped(Exception):
    """The time for beginning fits is over."""


class Fits:
    """What was measured, kept in a file; and the clock by which it is measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.file: Path | None = options.batches
        known = self.file.read_text() if self.file is not None and self.file.exists() else "{}"
        self.cases: dict[str, dict[str, Any]] = json.loads(known)
        self.repeat, self.longest = int(options.repeat), float(options.longest)
        self.clock = time.process_time if options.processor_time else time.perf_counter
        self.end = time.perf_counter() + 60.0 * options.minutes
        # The time of the processor is that of this process: workers of a search have to be its threads.
        own: Any = partial(parallel_config, backend="threading")
        self.workers = own if options.processor_time else nullcontext

    def fit(self, case: Case, who: str, make: Callable[[], Any], rounds: int) -> tuple[float, float]:
        """The least seconds of so many fits and the measure of the first, from the file or made now."""
        fits = self.cases.setdefault(case.key, _head(case))["fits"]
        while who not in fits or (fits[who]["rounds"] < rounds and fits[who]["seconds"] < _LONG):
            if time.perf_counter() > self.end:
                raise Stopped
            estimator = make()
            with warnings.catch_warnings(), self.workers():
                warnings.simplefilter("ignore")
                start = self.clock()
                estimator.fit(case.X) if case.y is None else estimator.fit(case.X, case.y)
                seconds = self.clock() - start
            if who not in fits:
                fits[who] = {"seconds": seconds, "value": case.measure(estimator), "rounds": 0}
            fits[who]["seconds"] = min(seconds, fits[who]["seconds"])
            fits[who]["rounds"] += 1
            self._write()
        return fits[who]["seconds"], fits[who]["value"]

    def note(self, case: Case, peer: str, who: str) -> None:
        """Keep which fit of a peer counts; "": none was good enough."""
        self.cases[case.key]["peers"][peer] = who
        self._write()

    def _write(self) -> None:
        if self.file is not None:
            self.file.write_text(json.dumps(self.cases, indent=1))


def _head(case: Case) -> dict[str, Any]:
    """What the page says of a case, and room for its fits."""
    head: dict[str, Any] = {name: getattr(case, name) for name in ("member", "data", "setting")}
    head |= {"scored": case.scored, "note": case.note, "size": f"{case.X.shape[0]} x {case.X.shape[1]}"}
    return head | {"goals": {peer.name: peer.goal for peer in case.peers}, "fits": {}, "peers": {}}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which cases, how often, and where what was measured is kept."""
    from benchmarks.family_members import MEMBERS

    parser.add_argument("--member", choices=list(MEMBERS), action="append", help="one of them, or several")
    parser.add_argument("--data", action="append", help="one of the data sets, or several")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best time counts")
    parser.add_argument("--longest", type=float, default=60.0, help="seconds: a peer's last fit if longer")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no fit begins")
    parser.add_argument("--processor-time", action="store_true", help="for a machine that has other work")
    parser.add_argument("--batches", type=Path, help="a file that keeps every fit, to go on from")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))


def measure(options: argparse.Namespace, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Every case that was asked for, and those that the file has already."""
    from benchmarks.family_members import MEMBERS

    fits = Fits(options)
    try:
        for member in options.member or MEMBERS:
            for case in MEMBERS[member](options.data):
                _measure(case, fits, tell)
    except Stopped:
        print("The time is over before all is measured: the same command goes on.")
    return list(fits.cases.values())


def _measure(case: Case, fits: Fits, tell: Callable[[str], None]) -> None:
    """Ours, and each peer at the loosest tolerance that is good enough."""
    best = math.nan
    if not case.scored:
        tell(f"{case.key}: the best value")
        best = fits.fit(case, "best", lambda: case.make(_BEST), 1)[1]
    tell(f"{case.key}: ours")
    fits.fit(case, "ours", lambda: case.make(QUALITY), fits.repeat)
    for peer in case.peers:
        chosen = ""
        for tolerance in peer.tolerances:
            who = f"{peer.name} at {tolerance:g}"
            tell(f"{case.key}: {who}")

            def make(peer: Peer = peer, tolerance: float = tolerance) -> Any:
                return peer.make(tolerance)

            seconds, value = fits.fit(case, who, make, 1)
            if case.scored or value - best <= QUALITY * abs(best):
                fits.fit(case, who, make, fits.repeat)
                chosen = who
                break
            if seconds > fits.longest:
                break
        fits.note(case, peer.name, chosen)


_HOW = """\
# The whole family

Seconds of a whole `fit` of the members beside `LinearSVC` and `SVC`, at the loosest tolerance that brings
the objective within {quality:g} of the best value, relatively. Ours is at `tol={quality:g}`, which it
proves. The peers prove nothing and get credit for the truth: they are tried at tolerances of 0.1, 0.01 and
so on, and the time is that of the first one that is good enough, as if it had been known beforehand. The
best of {repeat} rounds, but for fits of more than {long:g} seconds, which are made once. The best value is
the least of all fits, of which one of ours is at `tol=1e-5`. "Ratio" is how many times as fast ours is, in
bold where it is below the goal.
Cases that were not measured are not shown. With the l1 penalty, "above the best" says what a proof costs: a
dual point that is made feasible by scaling proves the gap long after the objective is that good.
{facts}."""


def markdown(options: argparse.Namespace, cases: list[dict[str, Any]]) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts(("scikit-learn-intelex",)).items())
    how = _HOW.format(quality=QUALITY, repeat=options.repeat, long=_LONG, facts=facts)
    parts = [how]
    if options.processor_time:
        parts.append(
            "**These are seconds of the processor, all cores together, on a machine that had other work: "
            "what two cores gain is not in them.**"
        )
    whole = [
        case for case in cases if "ours" in case["fits"] and case["peers"].keys() == case["goals"].keys()
    ]
    for member in dict.fromkeys(case["member"] for case in whole):
        own = [case for case in whole if case["member"] == member]
        quality = "score" if own[0]["scored"] else "above the best"
        heads = [
            "data",
            "rows x columns",
            "setting",
            "ours, s",
            quality,
            "peer",
            "s",
            quality,
            "ratio",
            "goal",
        ]
        parts += [f"## {member}", table(heads, [cells for case in own for cells in _cells(case)])]
    return "\n\n".join(parts) + "\n"


def _cells(case: dict[str, Any]) -> Iterator[list[str]]:
    """A line for each peer, or one that says why there is none."""
    fits = case["fits"]

    def quality(who: str) -> str:
        if case["scored"]:
            return f"{fits[who]['value']:.4f}"
        best = min(fit["value"] for fit in fits.values())
        return f"{max(fits[who]['value'] - best, 0.0) / abs(best):.0e}"

    ours = fits["ours"]["seconds"]
    start = [case["data"], case["size"], case["setting"], f"{ours:.3f}", quality("ours")]
    if not case["peers"]:
        yield [*start, case["note"], "", "", "", ""]
    for peer, who in case["peers"].items():
        goal = case["goals"][peer]
        if not who:
            tried = max(fit["seconds"] for name, fit in fits.items() if name.startswith(f"{peer} at "))
            yield [*start, peer, f"not reached in {tried:.1f}", "", "", f"{goal:g}"]
            continue
        ratio = fits[who]["seconds"] / ours
        shown = f"{ratio:.1f}" if ratio >= goal else f"**{ratio:.1f}**"
        yield [*start, who, f"{fits[who]['seconds']:.3f}", quality(who), shown, f"{goal:g}"]
