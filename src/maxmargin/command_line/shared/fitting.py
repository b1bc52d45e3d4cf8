# SPDX-License-Identifier: BSD-3-Clause
"""What ``train`` and ``choose`` do whatever the task: read, fit, write, try on test data, and say it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from maxmargin import files
from maxmargin.command_line.predict import Tally, predictions
from maxmargin.command_line.shared import data_options, options
from maxmargin.command_line.shared.answer import (
    DONE,
    Failure,
    attributes,
    no_interrupt,
    one_interrupt,
    print_json,
)
from maxmargin.command_line.shared.columns import encoding_as_json, encoding_in_words, made_up_in_words
from maxmargin.command_line.shared.endings import ending, peak_memory, time_and_memory
from maxmargin.command_line.shared.progress import Bars, fit_and_warnings
from maxmargin.command_line.shared.words import option_of
from maxmargin.telling.progress import Clock
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.words import bytes_in_words, counted

if TYPE_CHECKING:
    from maxmargin.command_line.shared.data_options import TrainingSet

DEFAULTS: dict[str, Any] = {"max_time": 60.0, "random_state": 0}
"""What an option left out stands for; the others are those of the estimators."""


def refuse(words: str, **given: Any) -> None:
    """Refuse options that were given, by their names; ``words`` go on after the name."""
    for name, value in given.items():
        if value:
            raise Failure(f"{option_of(name)} {words}")


def asked_for(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator: those that were given, and the usual limit of time and seed."""
    changes = DEFAULTS | {name: value for name, value in given.items() if value is not None}
    return changes | {"max_time": options.seconds_or_none(changes["max_time"])}


@dataclass(frozen=True)
class Fitting:
    """What is read and what is written, and what each part of the work took."""

    data: Path
    target: Path
    test: Path | None
    reading: data_options.TrainingData
    as_json: bool
    proof: bool = True
    model_format: str = "maxmargin"
    hold_out: float | None = None
    """The share of the rows that a first fit does not see."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    clock: Clock = field(default_factory=Clock)

    def lap(self, name: str) -> None:
        """A part of the work is done."""
        self.seconds[name] = self.clock.lap()

    def read(self, bars: Bars, **known: Any) -> TrainingSet:
        """The data to train on."""
        return self.reading.read_for_training(self.data, bars.reading(self.data.name), **known)

    def fit(self, estimator: Any, training_set: TrainingSet, bars: Bars, *data: Any) -> list[str]:
        """Fit with a bar and write the model; returns what is to be warned of, beside how it ended."""
        limit = math.inf if estimator.max_time is None else estimator.max_time
        estimator.callback = bars.solving("training", tol=estimator.tol, max_time=limit)
        with self.written(bars, lambda: self.save_fitted(estimator, training_set)):
            warned = fit_and_warnings(estimator, *data)
        self.seconds["certify"] = min(estimator.trace_.certifying, self.seconds["train"])
        return warned

    @contextmanager
    def written(self, bars: Bars, save: Callable[[], None]) -> Iterator[None]:
        """Around a fit: Ctrl-C ends it, and what that leaves is written."""
        with one_interrupt(), held_back():
            yield
            self.lap("train")
            bars.waiting("writing")
            save()
        self.lap("write")

    def save(self, model: Any, fingerprint: str | None) -> None:
        """Write the model."""
        format = cast(Any, self.model_format)
        files.save_model(model, self.target, data=fingerprint, proof=self.proof, format=format)

    def save_fitted(self, estimator: Any, training_set: TrainingSet) -> None:
        """Write the model, with what became of the columns before it saw them."""
        self.save(data_options.with_columns(estimator, training_set), training_set.fingerprint)

    def save_chosen(self, estimator: Any, training_set: TrainingSet) -> None:
        """Write a model that a search has chosen, all of it even if Ctrl-C comes now."""
        self.lap("train")
        with no_interrupt():
            self.save_fitted(estimator, training_set)
        self.lap("write")

    def tested(self) -> Tally | None:
        """What the written model makes of the test data; None where there are none."""
        if self.test is None:
            return None
        tally = Tally()
        try:
            with Bars(quiet=self.as_json) as bars:
                model = files.load_model(self.target)
                show = bars.reading(self.test.name)
                for _ in tally.of(predictions(model, self.reading, self.test, show)):
                    pass
        except ValueError as error:
            raise ValueError(f"{error} The model is trained and written to {self.target}.") from error
        self.lap("test")
        return tally

    def tell(
        self,
        estimator: Any,
        training_set: TrainingSet,
        warned: list[str],
        *,
        task: str,
        labels: str = "",
        sentences: list[str],
        answer: dict[str, Any],
        choice: Any = None,
    ) -> int:
        """Say how the fit of one problem went, on stdout; returns the exit code.

        ``labels`` end the line about the data, ``sentences`` come after the proof, and ``answer`` is what
        JSON has of the task.
        """
        proof, data, memory = estimator.certificate_, training_set.data, peak_memory()
        rows, columns = data.X.shape
        sentence, code = ending(
            estimator.status_, proof.relative_gap, estimator.tol, estimator.n_iter_, self.data
        )
        if self.as_json:
            told = {"task": task, "data": self.data, "model": self.target, "warnings": warned}
            told |= {"status": estimator.status_.name.lower(), "message": sentence, "tol": estimator.tol}
            told |= {"certified": estimator.status_.certified, "steps": estimator.n_iter_}
            told |= attributes(proof, "primal", "dual", "relative_gap")
            told |= {"rows": rows, "columns": columns, "skipped": data.skipped}
            told |= {"table": encoding_as_json(data.encoding), "solver": estimator.solver_, **answer}
            told |= {} if choice is None else {"choice": choice.as_json()}
            print_json(told | {"seconds": self.seconds, "peak_memory_bytes": memory})
            return code
        about_data(f"{self.data}: {rows} rows, {columns} columns{labels}.", training_set, choice)
        about_fit(warned, sentence, code)
        lines = [str(proof), *sentences, *about_work(estimator.solver_, self.seconds, memory, self.target)]
        typer.echo("\n".join(lines))
        return code


def about_data(first: str, training_set: TrainingSet, choice: Any) -> None:
    """Say what was read, what became of its columns, and what was chosen."""
    typer.echo("\n".join([first, *table_in_words(training_set)]))
    if training_set.data.skipped:
        typer.echo(f"{counted(training_set.data.skipped, 'malformed line')} left out.")
    if choice is not None:
        choice.print_words()


def about_fit(warned: list[str], sentence: str, code: int) -> None:
    """Say what is to be warned of, and how the training ended."""
    for words in warned:
        typer.echo(f"Warning: {' '.join(words.split())}", err=True)
    typer.echo(sentence, err=code != DONE)


def about_work(solver: str, seconds: dict[str, float], memory: int | None, target: Path) -> list[str]:
    """What it took, and what is there now."""
    size = bytes_in_words(target.stat().st_size)
    return [f"Solver: {solver}", time_and_memory(seconds, memory), f"Model: {target}, {size}."]


def table_in_words(training_set: TrainingSet) -> list[str]:
    """What became of the columns."""
    encoded = training_set.encoded
    if training_set.encoding is not None and encoded is not None:
        made_up = made_up_in_words(encoded.filled, encoded.unseen)
        return [*encoding_in_words(training_set.encoding), *made_up]
    if training_set.preparation is not None:
        return [f"Before the model: {training_set.preparation}; it is a part of the model."]
    return []
