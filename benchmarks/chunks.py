# SPDX-License-Identifier: BSD-3-Clause
"""Fits of packed data that are read in chunks, beside SGDClassifier.partial_fit at equal suboptimality."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, machine
from benchmarks.chunks_process import LONGEST, QUALITY
from benchmarks.new_process import in_new_process
from benchmarks.report import table

DATA = ("drawn_1e6", "drawn_3e7", "covtype_50", "text_4")
OFFERED = (*DATA, "drawn_1e7", "drawn_1e8", "covtype_10", "text_20")
REPEATED = {"covtype": "covtype_binary_scale", "text": "imdb_tfidf"}
"""The data set of a name, which is repeated as often as the number behind it says."""
LOSSES = ("hinge", "squared_hinge")
MEMORY = 500_000_000
"""Bytes that a fit may take beside the program."""
_NOISE = 0.01
"""The deviation of the noise on every value; of text, as a share of the value, so that zeros stay."""
_ROWS_AT_A_TIME = 250_000
_COLUMNS = 20


@dataclass(frozen=True)
class Fit:
    """One way to fit one file."""

    data: str
    rows: int
    columns: int
    nbytes: int
    loss: str
    who: str
    seconds: float
    passes: int
    above: float
    """How far the objective is above a proven lower bound, as a share of it."""
    gap: float | None
    """What the fit itself proves."""
    memory: int | None
    """The peak of memory beside what the program had before."""
    first_reading: float
    """Seconds to read the file once and to compare its checksums, as a first pass does."""
    reading: float
    """Seconds to read the file once, without."""
    packing: float
    """Seconds to make and pack it."""


def drawn(rows: int) -> Iterator[tuple[Any, Any]]:
    """Rows of two classes that overlap, drawn chunk by chunk."""
    direction = np.random.default_rng(1).normal(size=_COLUMNS) / np.sqrt(_COLUMNS)
    for first in range(0, rows, _ROWS_AT_A_TIME):
        generator = np.random.default_rng([2, first])
        count = min(_ROWS_AT_A_TIME, rows - first)
        X = generator.standard_normal((count, _COLUMNS), dtype=np.float32)
        noise = generator.standard_normal(count, dtype=np.float32)
        yield X, np.where(X @ direction.astype(np.float32) + noise > 0.3, 1, -1).astype(np.int8)


def repeated(name: str, times: int) -> Iterator[tuple[Any, Any]]:
    """A data set again and again, with other noise on every value."""
    data = datasets.load(name)
    y = np.where(data.y == data.y.max(), 1, -1).astype(np.int8)
    for time_ in range(times):
        generator = np.random.default_rng([3, time_])
        for first in range(0, len(y), _ROWS_AT_A_TIME):
            rows = slice(first, first + _ROWS_AT_A_TIME)
            X = data.X[rows].astype(np.float32)
            if hasattr(X, "toarray") and X.nnz < 0.05 * X.shape[0] * X.shape[1]:
                X.data *= 1.0 + _NOISE * generator.standard_normal(X.nnz, dtype=np.float32)
                yield X, y[rows]
                continue
            X = X.toarray() if hasattr(X, "toarray") else X
            yield X + _NOISE * generator.standard_normal(X.shape, dtype=np.float32), y[rows]


def repeated_as(name: str) -> Iterator[tuple[Any, Any]]:
    """The same, as a name such as covtype_10 says it."""
    kind, _, number = name.partition("_")
    return repeated(REPEATED[kind], int(number))


def measure(
    names: list[str], losses: list[str], kept: Path | None, tell: Callable[[str], None]
) -> list[Fit]:
    """All fits; those that ``kept`` has are not made again, nor are their data."""
    fits = [Fit(**one) for one in json.loads(kept.read_text())] if kept and kept.exists() else []
    for name in names:
        if all(sum((fit.data, fit.loss) == (name, loss) for fit in fits) == 3 for loss in losses):
            continue
        with tempfile.TemporaryDirectory() as folder:
            fits = [fit for fit in fits if fit.data != name]
            for fit in _fits(name, losses, Path(folder) / "rows.mmd", tell):
                fits.append(fit)
            if kept is not None:
                kept.write_text(json.dumps([asdict(fit) for fit in fits]))
    return [fit for name in names for fit in fits if fit.data == name and fit.loss in losses]


def _fits(name: str, losses: list[str], path: Path, tell: Callable[[str], None]) -> Iterator[Fit]:
    from maxmargin.files import pack

    tell(f"{name}: packing")
    start = time.perf_counter()
    kind, _, number = name.partition("_")
    if kind in REPEATED:
        done = pack(lambda: repeated_as(name), path)
    else:
        done = pack(lambda: drawn(int(float(number))), path)
    packing = time.perf_counter() - start
    read = in_new_process("chunks_process", "read", str(path), "-", "0")
    readings = read["first"], read["seconds"]
    for loss in losses:
        facts = (name, done.rows, done.columns, done.nbytes, loss)
        tell(f"{name}, {loss}: in chunks")
        ours = in_new_process("chunks_process", "ours", str(path), loss, str(MEMORY))
        yield Fit(
            *facts,
            "maxmargin",
            ours["seconds"],
            ours["passes"],
            ours["above"],
            ours["gap"],
            ours["memory"],
            *readings,
            packing,
        )
        for task, who in (("sgd", "SGD"), ("sgd_chosen", "SGD, steps chosen")):
            tell(f"{name}, {loss}: {who}")
            sgd = in_new_process("chunks_process", task, str(path), loss, repr(ours["dual"]))
            found = sgd["seconds"], sgd["passes"], sgd["above"]
            yield Fit(*facts, who, *found, None, None, *readings, packing)


def _times_the_reading(fit: Fit) -> str:
    """The seconds of a fit, in those of as many readings; none for a file in the processor's cache."""
    if fit.nbytes < 4 * machine.last_cache():
        return "in cache"
    return f"{fit.seconds / (fit.first_reading + (fit.passes - 1) * fit.reading):.1f}"


def markdown(fits: list[Fit]) -> str:
    """The page."""
    heads = [
        "data",
        "rows x columns",
        "file",
        "loss",
        "who",
        "seconds",
        "passes",
        "GB read",
        "times the reading",
        "above the optimum",
        "gap proven",
        "peak memory",
    ]
    lines = [
        [
            fit.data,
            f"{fit.rows:,} x {fit.columns}",
            f"{fit.nbytes / 1e9:.2f} GB",
            fit.loss.replace("_", " "),
            fit.who,
            f"{fit.seconds:.1f}",
            str(fit.passes),
            f"{fit.passes * fit.nbytes / 1e9:.1f}",
            _times_the_reading(fit),
            f"{fit.above:.1e}",
            "" if fit.gap is None else f"{fit.gap:.1e}",
            "" if fit.memory is None else f"{fit.memory / 1e6:.0f} MB, {fit.memory / MEMORY:.2f} of it",
        ]
        for fit in fits
    ]
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    speeds = sorted({(fit.data, fit.first_reading, fit.reading, fit.packing) for fit in fits})
    read = ", ".join(
        f"{name} {first:.2f} s and {later:.2f} s (packed in {pack:.0f} s)"
        for name, first, later, pack in speeds
    )
    return f"""# Bigger than memory, measured

Whole fits of `LinearSVC(C=1, tol=1e-3).fit(Chunks("rows.mmd", memory={MEMORY:_}))`, each in a process of
its own, on {machine.cores()} cores, for {LONGEST:g} s at most. Data are drawn, or covtype, or imdb_tfidf
as "text", repeated so many times with other noise on every value, and packed in float32. "Above the
optimum" is recomputed by NumPy at the model's own w and b, against the lower bound that the fit in chunks
has proven.
Beside it is scikit-learn's `SGDClassifier` with `alpha` = 1 / (C n), whose `partial_fit` is given the same
blocks, epoch after epoch, until it truly is as near as {QUALITY:g}, or 10 s are over (an epoch that would
take more than 20 s is cut short): with its default step sizes, and with "steps chosen". Those were chosen
by hand on a million of the drawn rows, the very data of this page, and the search for them is not counted:
on other data they may be wrong. SGD does not know when it is near enough: evaluating it took the bound of
ours, and is not counted. "Peak memory" is what the fit took beside the program, and the share of the limit
that this is. "Times the reading" compares a fit with reading the file as often as it made passes, by one
thread, from the system's cache: every block is copied into new arrays and nothing is computed, but the
first time its checksums. Where the processor's own cache holds a quarter of the file or more, that says
nothing, and is left out. The first and a later reading take: {read}.
{facts}.

{table(heads, lines)}
"""
