# SPDX-License-Identifier: BSD-3-Clause
"""Kernel fits against scikit-learn-intelex, both at their defaults, on data of thousands of rows."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.report import table

DATA = (
    "svmguide1",
    "abalone",
    "sector_scale",
    "pendigits",
    "mushrooms",
    "cpusmall",
    "20news_tfidf",
    "letter_scale",
    "news20_counts",
    "news20_binary_like",
    "reuters_moneyfx",
    "imdb_tfidf",
    "a9a",
    "ijcnn1",
    "mnist",
    "skin_nonskin",
    "covtype_binary_scale",
)
PARAMETERS = ((1.0, 1.0), (32.0, 1.0), (32.0, 8.0))
"""C, and gamma in units of "scale"."""
_ENOUGH = 2.0
"""The ratio below which a line is in bold."""


@dataclass(frozen=True)
class Pair:
    """One problem: seconds of a fit, ours and theirs."""

    data: str
    rows: int
    columns: int
    classes: int
    C: float
    gamma: float
    ours: float
    """NaN: it took longer than the limit."""
    theirs: float
    relative_gap: float
    """That our fit proves, of several problems the worst."""
    support: int
    """Support vectors of ours."""


def measure(
    names: list[str],
    most_rows: int,
    longest: float,
    repeat: int,
    kept: Path | None,
    tell: Callable[[str], None],
) -> list[Pair]:
    """The best of some fits of each, in processes of their own that end after ``longest`` seconds.

    A file that is ``kept`` gets a line for each problem that is done, and what it has is not measured
    again: a run that was cut short goes on.
    """
    known = {(pair.data, pair.C, pair.gamma): pair for pair in _kept_in(kept)}
    pairs = []
    for name in names:
        for C, gamma in PARAMETERS:
            tell(f"{name}, C = {C:g}, gamma = {gamma:g} of scale")
            pair = known.get((name, C, gamma)) or _measured(name, C, gamma, most_rows, longest, repeat)
            if pair is None:
                continue
            pairs.append(pair)
            if kept is not None and (name, C, gamma) not in known:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(pair)) + "\n")
    return pairs


def _kept_in(file: Path | None) -> list[Pair]:
    if file is None or not file.exists():
        return []
    return [Pair(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def _measured(
    name: str, C: float, gamma: float, most_rows: int, longest: float, repeat: int
) -> Pair | None:
    """One problem; None where neither of the two was in time."""
    asked = {"data": name, "rows": most_rows, "C": C, "gamma": gamma, "repeat": repeat}
    theirs = _in_time(asked | {"which": "theirs"}, longest)
    ours = _in_time(asked | {"which": "ours"}, longest)
    known = ours or theirs
    if known is None:
        return None
    return Pair(
        name,
        int(known["rows"]),
        int(known["columns"]),
        int(known["classes"]),
        C,
        gamma,
        math.nan if ours is None else ours["seconds"],
        math.nan if theirs is None else theirs["seconds"],
        math.nan if ours is None else ours["relative_gap"],
        0 if ours is None else int(ours["support"]),
    )


def _in_time(asked: dict[str, object], longest: float) -> dict[str, float] | None:
    """What the process tells; None where it took longer."""
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "benchmarks.intelex_process", json.dumps(asked)],
            cwd=Path(__file__).resolve().parent.parent,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
            timeout=longest,
        )
    except subprocess.TimeoutExpired:
        return None
    told: dict[str, float] = json.loads(answer.stdout)
    return told


_HOW = """\
# Kernels of thousands of rows, beside scikit-learn-intelex

Seconds of a whole `fit` of `SVC` with the Gaussian kernel, float32, all cores, both libraries at their
defaults: the best of {repeat}, each library in a process of its own that has fitted something before. Of
larger data sets {rows} rows were drawn. `gamma` is in units of "scale". The ratio is theirs to ours; lines
where it is below {enough:g} are in **bold**. Ours proves the relative gap, theirs ends by a rule of its
own. "-": longer than {longest:g} s.
{facts}."""


def markdown(pairs: list[Pair], rows: int, longest: float, repeat: int) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    how = _HOW.format(rows=f"{rows:,}", longest=longest, repeat=repeat, enough=_ENOUGH, facts=facts)
    heads = ["data", "rows x columns", "classes", "C", "gamma", "ours, s", "theirs, s", "ratio"]
    parts = [how, table([*heads, "relative gap", "SV"], [_line(pair) for pair in pairs])]
    ratios = [pair.theirs / pair.ours for pair in pairs if not math.isnan(pair.theirs / pair.ours)]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        enough = sum(ratio >= _ENOUGH for ratio in ratios)
        parts.append(
            f"Geometric mean of the ratios {mean:.1f}; {enough} of {len(ratios)} are {_ENOUGH:g} or more."
        )
    return "\n\n".join(filter(None, parts)) + "\n"


def _line(pair: Pair) -> list[str]:
    ratio = pair.theirs / pair.ours
    cells = [
        pair.data,
        f"{pair.rows} x {pair.columns}",
        f"{pair.classes}",
        f"{pair.C:g}",
        f"{pair.gamma:g}",
        _seconds(pair.ours),
        _seconds(pair.theirs),
        "-" if math.isnan(ratio) else f"{ratio:.2f}",
        "-" if math.isnan(pair.relative_gap) else f"{pair.relative_gap:.0e}",
        f"{pair.support}",
    ]
    return [f"**{cell}**" for cell in cells] if ratio < _ENOUGH else cells


def _seconds(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds:.3g}"
