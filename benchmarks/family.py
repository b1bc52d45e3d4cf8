# SPDX-License-Identifier: BSD-3-Clause
"""The members of the family: seconds of a whole fit to equal quality, ours and the best of the peers.

Each member has a file in ``family_members/`` with its cases. A case has its problem's data, our estimator
and the peers', and says what the objective of a fitted one is. The best value is that of our estimator at a
tolerance of 1e-7, whose certificate bounds what that is off by.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.report import table

QUALITY = 1e-3
"""The largest relative distance from the best value that counts."""
_BEST = 1e-7
"""The tolerance of the fit whose value is taken for the best."""


@dataclass(frozen=True)
class Peer:
    """Another's estimator, at one tolerance after the other until it is good enough."""

    name: str
    make: Callable[[float], Any]
    tolerances: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5)


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
    objective: Callable[[Any, Any], float]
    """Of a fitted estimator, given ours at the best value."""

    @property
    def key(self) -> str:
        """What tells a case from others."""
        return f"{self.member}, {self.data}, {self.setting}"


@dataclass(frozen=True)
class Line:
    """What was measured of a case."""

    member: str
    data: str
    size: str
    setting: str
    ours: float
    above: float
    """How far ours is above the best value, relatively."""
    peer: str
    theirs: float
    theirs_above: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which cases, how often, and where what was measured is kept."""
    from benchmarks.family_members import MEMBERS

    parser.add_argument("--member", choices=list(MEMBERS), action="append", help="one of them, or several")
    parser.add_argument("--data", action="append", help="one of the data sets, or several")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best time counts")
    parser.add_argument("--longest", type=float, default=60.0, help="seconds for one fit of a peer")
    parser.add_argument("--fits", type=Path, help="a file that keeps what was measured, to go on from")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))


def measure(options: argparse.Namespace, tell: Callable[[str], None]) -> list[Line]:
    """A line for every case that was asked for, and those that the file has already."""
    from benchmarks.family_members import MEMBERS

    file: Path | None = options.fits
    known = json.loads(file.read_text()) if file is not None and file.exists() else {}
    for member in options.member or MEMBERS:
        for case in MEMBERS[member](options.data):
            if case.key in known:
                continue
            tell(case.key)
            known[case.key] = asdict(measured(case, options.repeat, options.longest))
            if file is not None:
                file.write_text(json.dumps(known, indent=1))
    return [Line(**line) for line in known.values()]


def measured(case: Case, repeat: int, longest: float) -> Line:
    """Ours and the fastest peer that is good enough, the best of so many rounds."""
    reference = _fitted(case, case.make(_BEST))[0]
    proof = reference.certificate_
    best, size = float(proof.primal), abs(float(proof.primal))
    ours, model = math.inf, None
    for _ in range(repeat):
        model, seconds = _fitted(case, case.make(QUALITY))
        ours = min(ours, seconds)
    above = (case.objective(model, reference) - best) / size
    fastest = ("none", math.inf, math.inf)
    for peer, seconds, of_peer in _good_enough(case, reference, best, repeat, longest):
        if seconds < fastest[1]:
            fastest = peer, seconds, of_peer
    shape = f"{case.X.shape[0]} x {case.X.shape[1]}"
    return Line(case.member, case.data, shape, case.setting, ours, max(above, 0.0), *fastest)


def _good_enough(
    case: Case, reference: Any, best: float, repeat: int, longest: float
) -> Iterator[tuple[str, float, float]]:
    """The peers that reach the quality, each at the loosest tolerance that does."""
    for peer in case.peers:
        for tolerance in peer.tolerances:
            model, seconds = _fitted(case, peer.make(tolerance))
            above = (case.objective(model, reference) - best) / abs(best)
            if above <= QUALITY:
                for _ in range(repeat - 1 if seconds < longest / repeat else 0):
                    seconds = min(seconds, _fitted(case, peer.make(tolerance))[1])
                yield peer.name, seconds, max(above, 0.0)
                break
            if seconds > longest:
                break


def _fitted(case: Case, estimator: Any) -> tuple[Any, float]:
    """The estimator, fitted, and the seconds that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        estimator.fit(case.X) if case.y is None else estimator.fit(case.X, case.y)
        return estimator, time.perf_counter() - start


_HOW = """\
# The whole family

Seconds of a whole `fit` of the members beside `LinearSVC` and `SVC`, at the loosest tolerance that brings
the objective within {quality:g} of the best value, relatively. Ours is at `tol={quality:g}`, which it
proves; the peers are tried at 0.01, 0.001 and so on, and the time is that of the first tolerance that is
good enough. The best of {repeat} rounds. The best value is ours at a proven gap of 1e-7.
{facts}."""


def markdown(options: argparse.Namespace, lines: list[Line]) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    parts = [_HOW.format(quality=QUALITY, repeat=options.repeat, facts=facts)]
    heads = ["data", "rows x columns", "setting", "ours, s", "above the best", "peer", "s"]
    heads += ["above the best", "ratio"]
    for member in dict.fromkeys(line.member for line in lines):
        parts += [f"## {member}", table(heads, [_cells(line) for line in lines if line.member == member])]
    return "\n\n".join(parts) + "\n"


def _cells(line: Line) -> list[str]:
    known = math.isfinite(line.theirs)
    return [
        line.data,
        line.size,
        line.setting,
        f"{line.ours:.3f}",
        f"{line.above:.0e}",
        line.peer,
        f"{line.theirs:.3f}" if known else "not reached",
        f"{line.theirs_above:.0e}" if known else "",
        f"{line.theirs / line.ours:.1f}" if known else "",
    ]
