# SPDX-License-Identifier: BSD-3-Clause
"""``train`` on data that are read in chunks: what it takes, and what it says at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

import maxmargin
from maxmargin.command_line.shared import data_options, options
from maxmargin.command_line.shared.answer import INTERRUPTED, Failure, attributes, print_json
from maxmargin.command_line.shared.endings import ending, peak_memory
from maxmargin.command_line.shared.fitting import Fitting, about_fit, about_work, refuse
from maxmargin.command_line.shared.in_chunks import TrainingChunks, fit_in_chunks
from maxmargin.command_line.shared.kernel_features import KernelFeatures, error_in_words
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.voice import VOICE
from maxmargin.files.data.labels import label_text, quoted_label
from maxmargin.files.models.preparation import Preparation
from maxmargin.proof.model import each_of
from maxmargin.tools.words import percent, some

if TYPE_CHECKING:
    from maxmargin import Chunks
    from maxmargin.chunks.survey import Facts

_VALUES = ("primal", "dual", "relative_gap")


class Source(Protocol):
    """What has the rows, and can be fitted on."""

    fingerprint: str | None
    """The fingerprint of the data, where it is known."""
    facts: Facts | None
    """What a fit has found out about the rows."""
    nbytes: int | None
    """Bytes of all files, where they are known."""
    features: Any
    """The fitted map that the rows go through, if there is one."""

    def fit(self, estimator: maxmargin.LinearSVC, bars: Bars, data: Path) -> list[str]:
        """Fit with progress; returns what the fit warned of beside not reaching its tolerance."""
        ...


class _Here:
    """Chunks that this process reads."""

    features: Any = None

    def __init__(self, chunks: Chunks, asked: KernelFeatures | None) -> None:
        assert chunks.files is not None
        self.asked = asked
        self.chunks, self.facts = chunks, chunks.facts
        self.fingerprint = chunks.files.fingerprint
        self.nbytes: int | None = chunks.files.nbytes

    def fit(self, estimator: maxmargin.LinearSVC, bars: Bars, data: Path) -> list[str]:
        """Fit with progress."""
        learn = None if self.asked is None else self.asked.learnt_from
        warned, self.chunks, self.features = fit_in_chunks(estimator, self.chunks, bars, data, learn)
        self.facts = self.chunks.facts
        return warned


def refuse_in_chunks(
    reason: str, reading: data_options.TrainingData, data: Path, *, dask: bool, **given: Any
) -> None:
    """Refuse what takes all rows into memory."""
    more = "" if dask else ", or raise --memory where the machine has more"
    refuse(f"needs the rows in memory, but {reason}. Leave it out{more}.", **given)
    if reading.scale not in ("auto", "none"):
        raise Failure(
            f"--scale {reading.scale} needs the rows in memory, but {reason}. Scale the columns before."
        )
    if data.is_file() and reading.is_table(data) and reading.scale != "none":
        raise Failure(
            f"The columns of a table are scaled, which needs its rows in memory, but {reason}. Say --scale "
            "none if all columns are numbers of similar size, or scale them before."
        )


def train_in_chunks(
    work: Fitting,
    given: dict[str, Any],
    class_weight: str | None,
    chunking: TrainingChunks,
    reason: str,
    asked: KernelFeatures | None = None,
) -> int:
    """Train, write the model and say how it went; returns the exit code."""
    source: Source
    reading = work.reading
    if chunking.dask is None:
        source = _Here(chunking.chunks(work.data, reading, reading.columns, chunking.checkpoint), asked)
    else:
        from maxmargin.command_line.shared.trained_by_dask import OnCluster

        source = OnCluster(chunking, reading, work.data)
    changes = {name: value for name, value in given.items() if value is not None}
    changes["max_time"] = options.seconds_or_none(changes.get("max_time", float("inf")))
    if class_weight is not None:
        changes["class_weight"] = _factors(class_weight)
    estimator = maxmargin.LinearSVC(**({"random_state": 0} | changes))
    estimator._check_parameters()
    if not work.as_json and not VOICE.quiet:
        typer.echo(f"{reason[0].upper()}{reason[1:]}.", err=True)

    def save() -> None:
        work.save(_with_features(estimator, source.features), source.fingerprint)

    with Bars(quiet=work.as_json) as bars, work.written(bars, save):
        warned = source.fit(estimator, bars, work.data)
    words, code = _ending(estimator, chunking, work.data)
    found = None if code == INTERRUPTED else work.tested()
    tested = None if found is None else (found.right, found.judged)
    facts, memory = source.facts, peak_memory()
    assert facts is not None
    if work.as_json:
        answer = _as_json(estimator, source, facts, work.target, words)
        accuracy = {"test_accuracy": tested and tested[0] / tested[1], "test_rows": tested and tested[1]}
        answer |= accuracy | {"memory": chunking.limit, "warnings": warned}
        print_json(answer | {"seconds": work.seconds, "peak_memory_bytes": memory})
        return code
    counts = [
        f"{quoted_label(label)} ({count})" for label, count in zip(facts.labels, facts.counts, strict=True)
    ]
    typer.echo(
        f"{work.data}: {facts.rows} rows, {_columns(source, facts)} columns, classes {some(counts, 10)}, "
        f"in {facts.chunks} chunks."
    )
    if source.features is not None:
        preparation = Preparation.of([source.features])
        typer.echo(f"Before the model: {preparation}; it is a part of the model.")
        typer.echo(error_in_words(source.features))
    about_fit(warned, words, code)
    each = each_of(estimator.certificate_)
    worst = max(range(len(each)), key=lambda k: each[k].relative_gap)
    if len(each) > 1:
        label = quoted_label(estimator.classes_[worst])
        typer.echo(f"The widest of {len(each)} gaps is that of {label} against the rest:")
    typer.echo(str(each[worst]))
    if tested is not None:
        typer.echo(f"Test accuracy: {percent(tested[0] / tested[1])}, {tested[0]} of {tested[1]} rows.")
    typer.echo("\n".join(about_work(estimator.solver_, work.seconds, memory, work.target)))
    return code


def _columns(source: Source, facts: Facts) -> int:
    """The columns of the data, before they go through a feature map."""
    return facts.columns if source.features is None else int(source.features.n_features_in_)


def _with_features(estimator: maxmargin.LinearSVC, features: Any) -> Any:
    """What is to be saved: the estimator, with the map that the rows went through before it saw them."""
    if features is None:
        return estimator
    from sklearn.pipeline import make_pipeline

    return make_pipeline(features, estimator)


def _ending(estimator: maxmargin.LinearSVC, chunking: TrainingChunks, data: Path) -> tuple[str, int]:
    gap = max(proof.relative_gap for proof in each_of(estimator.certificate_))
    words, code = ending(estimator.status_, gap, estimator.tol, int(estimator.n_iter_), data)
    words = words.replace(" steps", " passes").replace(", choose another --solver", "")
    if chunking.checkpoint is not None and code != 0:
        words += f" The state is kept in {chunking.checkpoint}: the same command goes on from there."
    return words, code


def _factors(text: str) -> Any:
    """The word "balanced", or a factor for each label; labels are not known before the first pass."""
    if text == "balanced":
        return text
    factors: dict[Any, float] = {}
    for part in text.split(","):
        name, _, factor = part.rpartition(":")
        try:
            label: Any = float(name)
        except ValueError:
            label = name.strip()
        try:
            factors[label] = float(factor)
        except ValueError:
            raise Failure(
                f"--class-weight must be balanced or LABEL:FACTOR,... Got {part!r} instead."
            ) from None
    return factors


def _as_json(
    estimator: maxmargin.LinearSVC, source: Source, facts: Facts, target: Path, words: str
) -> dict[str, Any]:
    each = each_of(estimator.certificate_)
    worst = max(each, key=lambda proof: proof.relative_gap)
    return {
        "model": target,
        "in_chunks": True,
        "status": estimator.status_.name.lower(),
        "message": words,
        "certified": estimator.status_.certified,
        **attributes(worst, *_VALUES),
        **attributes(estimator, "tol", "C", "loss"),
        "solver": estimator.solver_,
        "passes": int(estimator.n_iter_),
        "rows": facts.rows,
        "columns": _columns(source, facts),
        "before": [] if source.features is None else [str(Preparation.of([source.features]))],
        "stored": facts.stored,
        "chunks": facts.chunks,
        "bytes": source.nbytes,
        "classes": list(estimator.classes_),
        "class_rows": {
            label_text(label): int(n) for label, n in zip(facts.labels, facts.counts, strict=True)
        },
        "certificates": [attributes(proof, *_VALUES) for proof in each],
    }
