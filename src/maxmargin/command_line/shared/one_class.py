# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task one-class``: from a data file to the region where its rows are found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import typer

import maxmargin
from maxmargin import files
from maxmargin.command_line.predict import predictions
from maxmargin.command_line.shared import options
from maxmargin.command_line.shared.answer import DONE, Failure, one_interrupt, print_json
from maxmargin.command_line.shared.columns import encoding_as_json
from maxmargin.command_line.shared.progress import Bars, fit_and_warnings
from maxmargin.command_line.shared.report import ending, peak_memory, table_in_words, time_and_memory
from maxmargin.telling.progress import Clock
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.words import bytes_in_words, counted

_DEFAULTS: dict[str, Any] = {"max_time": 60.0, "random_state": 0}
"""What an option left out stands for; the others are those of the estimators."""


@dataclass(frozen=True)
class OneClassFiles:
    """What is read and what is written."""

    data: Path
    target: Path
    test: Path | None
    proof: bool
    model_format: str


def refuse_for_one_class(**given: Any) -> None:
    """Refuse options that one class does not have, by their names."""
    for name, value in given.items():
        if value:
            option = "-C" if name == "C" else f"--{name.replace('_', '-')}"
            raise Failure(f"{option} is not for --task one-class. Leave it out.")


def train_one_class(
    paths: OneClassFiles, given: dict[str, Any], reading: options.TrainingData, *, as_json: bool
) -> int:
    """Train, write the model and say what it is worth; ``given`` are the parameters that were asked for."""
    estimator = _estimator(given)
    clock, seconds = Clock(), dict[str, float]()
    with Bars(quiet=as_json) as bars:
        training_set = reading.read_for_training(paths.data, bars.reading(paths.data.name), labelled=False)
        options.check_columns(training_set, paths.model_format)
        seconds["read"] = clock.lap()
        limit = float("inf") if estimator.max_time is None else estimator.max_time
        estimator.callback = bars.solving("training", tol=estimator.tol, max_time=limit)
        with one_interrupt(), held_back():  # it ends the training, and what that leaves is written
            warned = fit_and_warnings(estimator, training_set.data.X)
            seconds["train"] = clock.lap()
            bars.waiting("writing")
            files.save_model(
                options.with_columns(estimator, training_set),
                paths.target,
                data=training_set.fingerprint,
                proof=paths.proof,
                format=cast(Any, paths.model_format),
            )
        seconds["write"] = clock.lap()
    seconds["certify"] = min(estimator.trace_.certifying, seconds["train"])
    tested = None
    if paths.test is not None:
        tested = _test(paths, reading, quiet=as_json)
        seconds["test"] = clock.lap()
    return _tell(estimator, paths, training_set, warned, seconds, tested, as_json=as_json)


def _estimator(given: dict[str, Any]) -> maxmargin.OneClassSVM | maxmargin.LinearOneClassSVM:
    """The estimator that the options ask for, its parameters checked."""
    changes = _DEFAULTS | {name: value for name, value in given.items() if value is not None}
    changes["max_time"] = options.seconds_or_none(changes["max_time"])
    kind = maxmargin.OneClassSVM if "kernel" in changes else maxmargin.LinearOneClassSVM
    estimator: maxmargin.OneClassSVM | maxmargin.LinearOneClassSVM = kind(**changes)
    estimator._check_parameters()
    return estimator


def _test(paths: OneClassFiles, reading: options.TrainingData, *, quiet: bool) -> dict[str, Any]:
    """How many rows of the test data are outside, and how many labels 1 and -1 are right."""
    import numpy as np

    assert paths.test is not None
    with Bars(quiet=quiet) as bars:
        model = files.load_model(paths.target)
        pieces = list(predictions(model, reading, paths.test, bars.reading(paths.test.name)))
    labels = np.concatenate([piece.labels for piece in pieces])
    known, right = sum(piece.known for piece in pieces), sum(piece.right for piece in pieces)
    found: dict[str, Any] = {"rows": len(labels), "outside": int(np.count_nonzero(labels < 0))}
    return found | {"accuracy": right / len(labels) if known == len(labels) > 0 else None}


def _in_words(where: str, found: dict[str, Any]) -> str:
    share = 100.0 * found["outside"] / max(found["rows"], 1)
    words = f"{where}: {found['outside']} of {found['rows']} rows are outside, {share:.3g} %."
    if found.get("accuracy") is not None:
        words += f" Labels 1 and -1 are right for {100.0 * found['accuracy']:.2f} %."
    return words


def _tell(
    model: Any,
    paths: OneClassFiles,
    training_set: options.TrainingSet,
    warned: list[str],
    seconds: dict[str, float],
    tested: dict[str, Any] | None,
    *,
    as_json: bool,
) -> int:
    """Say how it went, on stdout; returns the exit code."""
    import numpy as np

    data, proof, memory = training_set.data, model.certificate_, peak_memory()
    rows, columns = data.X.shape
    outside = int(np.count_nonzero(model.predict(data.X) < 0))
    training = {"rows": rows, "outside": outside}
    sentence, code = ending(model.status_, proof.relative_gap, model.tol, model.n_iter_, paths.data)
    if as_json:
        answer = {"task": "one-class", "data": paths.data, "model": paths.target, "warnings": warned}
        answer |= {"status": model.status_.name.lower(), "message": sentence, "steps": model.n_iter_}
        answer |= {name: getattr(proof, name) for name in ("primal", "dual", "relative_gap")}
        answer |= {"tol": model.tol, "nu": model.nu, "rho": model.offset_, "columns": columns}
        answer |= {"certified": model.status_.certified, "skipped": data.skipped, "training": training}
        answer |= {"table": encoding_as_json(data.encoding), "test": tested, "solver": model.solver_}
        print_json(answer | {"seconds": seconds, "peak_memory_bytes": memory})
        return code
    typer.echo(f"{paths.data}: {rows} rows, {columns} columns.")
    for words in table_in_words(training_set):
        typer.echo(words)
    if data.skipped:
        typer.echo(f"{counted(data.skipped, 'malformed line')} left out.")
    for words in warned:
        typer.echo(f"Warning: {' '.join(words.split())}", err=True)
    typer.echo(sentence, err=code != DONE)
    typer.echo(str(proof))
    typer.echo(_in_words("Training data", training))
    if tested is not None:
        typer.echo(_in_words("Test data", tested))
    typer.echo(f"Solver: {model.solver_}")
    typer.echo(time_and_memory(seconds, memory))
    typer.echo(f"Model: {paths.target}, {bytes_in_words(paths.target.stat().st_size)}.")
    return code
