# SPDX-License-Identifier: BSD-3-Clause
"""``train`` and ``certify`` on data that do not fit into memory: chunk by chunk, in passes over them."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.progress import Bars, fit_and_warnings

if TYPE_CHECKING:
    import maxmargin
    from maxmargin import Chunks, files
    from maxmargin.command_line.shared.data_options import Layout
    from maxmargin.proof.of_files import Finding

_UNITS = "kmgt"
_OF_THE_PROGRAM = 250_000_000
"""Bytes of Python with NumPy, SciPy and scikit-learn, and of what readers of text hold."""
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="BYTES",
        help="As in 2GB or 500MB: data that need more are read in chunks.",
        show_default="what is free",
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="In chunks, keep the state after every pass; the same command goes on from it.",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Train on the cluster of Dask whose scheduler is at tcp://HOST:PORT; its workers read the "
        "data.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Chunking:
    """What is said about memory."""

    memory: Memory = None

    @property
    def limit(self) -> int:
        """Bytes."""
        from maxmargin.chunks.memory import free_memory

        return free_memory() if self.memory is None else bytes_of(self.memory)

    def reason(self, data: Path, layout: Layout, made: int = 0) -> str | None:
        """Why these data are read in chunks; None where they are not.

        ``made`` are the columns of the feature map that the rows go through, if they go through one.
        """
        if str(data) == "-" or (data.exists() and not data.is_file() and not data.is_dir()):
            return None  # a pipe can be read only once
        from maxmargin.chunks.memory import TIMES_IN_MEMORY
        from maxmargin.files.data.several import bytes_in_memory, data_files, most_rows
        from maxmargin.tools.words import bytes_in_words

        paths = data_files(os.fspath(data))
        if len(paths) > 1:
            return f"{len(paths)} files are read in chunks"
        needed = TIMES_IN_MEMORY * bytes_in_memory(paths, layout.format)
        if made and needed <= self.limit:
            row = TIMES_IN_MEMORY * 8 * made
            needed = row * most_rows(paths, layout.format, enough=self.limit // row)
        if needed <= self.limit:
            return None
        return (
            f"a fit in memory would take about {bytes_in_words(needed)}, more than the "
            f"{bytes_in_words(self.limit)} allowed, so the data are read in chunks"
        )

    def chunks(self, data: Path, layout: Layout, columns: int | None, checkpoint: Path | None) -> Chunks:
        """The data in chunks."""
        from maxmargin import Chunks

        given = {name: value for name, value in layout.given.items() if name != "query"}
        if layout.format is not None:
            given["format"] = layout.format
        return Chunks(
            os.fspath(data),
            columns=columns,
            memory=for_a_fit(self.limit),
            checkpoint=checkpoint,
            **given,
        )


@dataclass(frozen=True)
class TrainingChunks(Chunking):
    """The same for ``train``."""

    checkpoint: CheckpointFile = None
    dask: Scheduler = None

    def reason(self, data: Path, layout: Layout, made: int = 0) -> str | None:
        """Why these data are read in chunks; None where they are not."""
        if self.dask is not None:
            return f"the cluster of Dask at {self.dask} reads the data"
        return super().reason(data, layout, made)


def is_several(data: Path) -> bool:
    """Whether a path stands for several files."""
    return data.is_dir() or (glob.has_magic(os.fspath(data)) and not data.exists())


def bytes_of(text: str) -> int:
    """``2GB``, ``500MB``, ``1.5GiB`` or a number of bytes."""
    found = re.fullmatch(rf"\s*(\d+\.?\d*)\s*([{_UNITS}]?)(i?)b?\s*", text.lower())
    if found is None:
        raise Failure(f"--memory must be a size, as in 2GB or 500MB. Got {text!r} instead.")
    power = 1 + _UNITS.index(found[2]) if found[2] else 0
    count = float(found[1]) * (1024 if found[3] else 1000) ** power
    if not 10**6 <= count < 2**62:
        raise Failure(f"--memory must be at least 1MB. Got {text!r} instead.")
    return int(count)


def for_a_fit(limit: int) -> int:
    """What the chunks of a fit may take of the memory allowed: the program itself takes a part of it."""
    return max(limit // 4, limit - _OF_THE_PROGRAM)


class Passing:
    """Tells how far a fit in passes is: the pass, how much of it is read, the gap, and the time left."""

    def __init__(self, bars: Bars, name: str, tol: float, max_time: float) -> None:
        from maxmargin.telling.progress import TimeLeft

        self._left, self._tol = TimeLeft(tol, max_time), tol
        self._passes, self._words, self._share, self._gap = 0, "", 0.0, ""
        self._show = bars.passing(name, lambda: (self._share, self._words))

    def read(self, done: int, total: int) -> None:
        """So many bytes of a pass are read."""
        if self._show is not None:
            self._share = done / max(total, 1)
            self._words = f"pass {self._passes + 1}{self._gap}"
            self._show(at_end=False)

    def passed(self, progress: maxmargin.Progress) -> None:
        """A pass has ended."""
        from maxmargin.telling.progress import gap_words

        self._passes = progress.step
        self._left.saw(progress.seconds, progress.relative_gap)
        self._gap = f", {gap_words(progress.relative_gap, 'certified', self._left.seconds)}"
        self._share, self._words = 1.0, f"pass {self._passes}{self._gap}"
        if self._show is not None:
            self._show(at_end=True)


def fit_in_chunks(
    estimator: maxmargin.LinearSVC,
    chunks: Chunks,
    bars: Bars,
    data: Path,
    learn: Callable[[Any], Any] | None = None,
) -> tuple[list[str], Chunks, Any]:
    """Fit with progress, through the map that ``learn`` makes of drawn rows.

    Returns what the fit warned of beside not reaching its tolerance, the chunks it was of, and the map.
    """
    limit = math.inf if estimator.max_time is None else estimator.max_time
    passing = Passing(bars, f"training on {data.name}", estimator.tol, limit)
    assert chunks.files is not None
    chunks.files.progress = passing.read
    estimator.callback = passing.passed
    from maxmargin.chunks.memory import TooLittleMemory
    from maxmargin.tools.words import amount

    features = None
    try:
        if learn is not None:
            from maxmargin.chunks.mapped import learned

            seed = estimator.random_state if isinstance(estimator.random_state, int) else 0
            features, chunks = learned(chunks, seed, learn)
        return fit_and_warnings(estimator, chunks), chunks, features
    except TooLittleMemory as error:
        needed = -(-(error.needed + _OF_THE_PROGRAM) // 10**6)
        raise Failure(
            f"--memory must be at least {needed}MB for the program and "
            f"{amount(error.problems, 'problem')} of {error.columns} columns. It leaves "
            f"{error.limit // 10**6}MB for a fit. Raise it, or use fewer columns."
        ) from None


def through_map(chunks: Chunks, features: Any, made: int) -> Chunks:
    """The chunks as a fitted map of so many columns makes them."""
    from maxmargin.chunks.source import rows_for

    return chunks.mapped(features, rows_for(8 * made, chunks.memory))


def can_be_judged_in_chunks(model: files.StoredModel) -> bool:
    """Whether sums over all rows say what a model is worth: a linear classifier.

    Its columns are plain, or those of a feature map that is learnt from a sample.
    """
    from maxmargin import files

    steps = () if model.preparation is None else model.preparation.transformers
    known = len(steps) < 2 and all(getattr(step, "learns_from_a_sample", False) for step in steps)
    plain = model.encoding is None and known
    if not (isinstance(model, files.SavedModel) and plain and model.has_classes and not model.is_joint):
        return False
    C = model.problem.get("C")
    soft = C is None or not math.isinf(C)
    return model.expansion is None and soft and model.problem.get("penalty", "l2") == "l2"


def judged_in_chunks(
    model: files.SavedModel,
    chunks: Chunks,
    *,
    C: float,
    class_weight: Any,
    tol: float,
    max_time: float,
    bars: Bars,
) -> tuple[list[Finding], list[str]]:
    """What the points of a model are worth on all rows, and why nothing can be said.

    The first pass looks at the data, the second computes P at the file's w and b, and a lower bound; the
    next ones only raise that, where it is too low.
    """
    from maxmargin.chunks.fit import Wanted, fit_in_passes
    from maxmargin.chunks.passes import LocalPasses
    from maxmargin.files.data.labels import label_text
    from maxmargin.problem import Intercept
    from maxmargin.proof.of_files import Finding, statement, unconfirmed
    from maxmargin.solving.loop import Progress

    stated = statement(model, C, class_weight)
    classes = [label_text(label) for label in model.classes]
    weight = stated["class_weight"]
    if isinstance(weight, dict):
        weight = {
            label: weight[label_text(label)] for label in model.classes if label_text(label) in weight
        }
    passing = Passing(bars, "recomputing the proof", tol, max_time)
    assert chunks.files is not None
    chunks.files.progress = passing.read

    def told(step: int, seconds: float, certificate: Any, label: Any) -> None:
        passing.passed(Progress(step, seconds, certificate, tol, label=label))

    if model.preparation is not None:
        chunks = through_map(chunks, model.preparation.transformers[0], model.own_features)
    starts = tuple((w.copy(), float(b)) for w, b in zip(model.coef, model.intercept, strict=True))
    wanted = Wanted(
        loss=stated["loss"],
        C=C,
        intercept=Intercept(stated["intercept"]),
        intercept_scaling=stated["intercept_scaling"],
        class_weight=weight,
        tol=tol / 4,
        max_time=max_time,
        memory=chunks.memory,
        starts=starts,
        told=told,
    )
    fitted = fit_in_passes(LocalPasses(chunks), wanted)
    facts = fitted.facts
    refusals = []
    if [label_text(label) for label in facts.labels] != classes:
        refusals.append("the data have other labels than the model")
    if facts.columns != model.own_features:
        refusals.append(f"the data have {facts.columns} columns, and the model {model.features}")
    if model.rows is not None and model.rows != facts.rows:
        refusals.append(f"the data have {facts.rows} rows, and the model was trained on {model.rows}")
    if bool(model.problem.get("sample_weights")) != facts.weighted:
        has = "weights" if facts.weighted else "no weights"
        refusals.append(f"the data have {has}, and the model was trained otherwise")
    if fitted.interrupted:
        raise KeyboardInterrupt
    if refusals:
        return [], refusals
    findings = []
    for k, one in enumerate(fitted.models):
        if not one.trace.records:
            refusals.append(f"--max-time {max_time:g} s did not suffice for two passes over the data")
            return [], refusals
        name = "" if len(fitted.models) == 1 else f"{classes[k]} against the rest"
        claim = None if model.claims is None else model.claims[k]
        proof = one.certificate
        first = one.trace.records[0].primal  # at the file's own point
        finding = Finding(name, first, proof.dual, proof.primal, proof.alpha_from, claim)
        finding.reasons.extend(unconfirmed(finding, tol, max_time))
        findings.append(finding)
    return findings, refusals
