# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task regression``: from a data file with numbers as labels to a regressor's file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared import options
from maxmargin.command_line.shared.answer import DONE, Failure, one_interrupt, print_json
from maxmargin.command_line.shared.columns import encoding_as_json
from maxmargin.command_line.shared.progress import Bars, fit_and_warnings
from maxmargin.command_line.shared.report import ending, peak_memory, table_in_words, time_and_memory
from maxmargin.files.data.labels import numbers_of
from maxmargin.telling.doubts import ON_THE_COMMAND_LINE, column_scales, scale_doubts
from maxmargin.telling.progress import Clock
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.words import bytes_in_words, counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

Regressor = maxmargin.LinearSVR | maxmargin.SVR | maxmargin.NuSVR
_LOSSES = {"epsilon_insensitive", "squared_epsilon_insensitive"}
_DEFAULTS: dict[str, Any] = {"max_time": 60.0, "random_state": 0}
"""What an option left out stands for; the others are those of the estimators."""
_HARDLY_BETTER = 0.95
"""The share of what the median is off by, above which a model is of little use."""


@dataclass(frozen=True)
class RegressionFiles:
    """What is read and what is written."""

    data: Path
    target: Path
    test: Path | None
    proof: bool
    hold_out: float | None = None
    """The share of the rows that a first fit does not see."""
    model_format: str = "maxmargin"


def refuse_for_regression(**given: Any) -> None:
    """Refuse options that only classifiers have, by their names."""
    for name, value in given.items():
        if value:
            raise Failure(f"--{name.replace('_', '-')} is for --task classification. Leave it out.")


def train_regressor(
    paths: RegressionFiles, given: dict[str, Any], reading: options.TrainingData, *, as_json: bool
) -> int:
    """Train, write the model and say what it is worth; ``given`` are the parameters that were asked for."""
    estimator = _estimator(given)
    clock, seconds = Clock(), dict[str, float]()
    with Bars(quiet=as_json) as bars:
        training_set = reading.read_for_training(paths.data, bars.reading(paths.data.name))
        values = numbers_to_predict(training_set.data.y, paths.data)
        options.check_columns(training_set, paths.model_format)
        seconds["read"] = clock.lap()
        held_out = None
        if paths.hold_out is not None:
            bars.waiting("holding rows out")
            held_out = _held_out(estimator, training_set, values, paths.hold_out, reading)
            seconds["hold out"] = clock.lap()
        limit = float("inf") if estimator.max_time is None else estimator.max_time
        estimator.callback = bars.solving("training", tol=estimator.tol, max_time=limit)
        with one_interrupt(), held_back():  # it ends the training, and what that leaves is written
            warned = fit_and_warnings(estimator, training_set.data.X, values)
            seconds["train"] = clock.lap()
            bars.waiting("writing")
            found = options.with_columns(estimator, training_set)
            files.save_model(
                found,
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
    found = Trained(estimator, paths, training_set, values, warned, seconds, held_out, tested)
    return found.tell(as_json=as_json)


def _estimator(given: dict[str, Any]) -> Regressor:
    """The estimator that the options ask for, its parameters checked."""
    changes = _DEFAULTS | {name: value for name, value in given.items() if value is not None}
    changes["max_time"] = options.seconds_or_none(changes["max_time"])
    if "loss" in changes and changes["loss"] not in _LOSSES:
        raise Failure(
            f"With --task regression --loss must be one of {', '.join(sorted(_LOSSES))}. Got "
            f"{changes['loss']!r} instead."
        )
    if "nu" in changes and "kernel" not in changes:
        raise Failure("--nu needs a kernel. Add --kernel, or give --epsilon instead.")
    if "kernel" not in changes:
        linear = maxmargin.LinearSVR(**changes)
        linear._check_parameters()
        return linear
    if changes.pop("loss", "epsilon_insensitive") != "epsilon_insensitive":
        raise Failure("With a kernel --loss must be epsilon_insensitive. Leave --loss or --kernel out.")
    if {"fit_intercept", "regularize_intercept"} & set(changes):
        raise Failure("With a kernel --intercept must be exact. Leave --intercept or --kernel out.")
    if "nu" in changes and "epsilon" in changes:
        raise Failure("--nu stands in the place of epsilon. Leave --epsilon or --nu out.")
    seen = maxmargin.NuSVR(**changes) if "nu" in changes else maxmargin.SVR(**changes)
    seen._check_parameters()
    return seen


def epsilon_of(model: Any) -> float:
    """Half the width of the tube: as given, or as the fit found it for its nu."""
    return float(model.epsilon_ if hasattr(model, "nu") else model.epsilon)


def numbers_to_predict(labels: Any, path: Path) -> NDArray[Any]:
    """The numbers that labels are; refuses others."""
    values = numbers_of(labels)
    if values is None:
        raise Failure(
            f"With --task regression the labels must be numbers. {path} has others. Name the column of "
            "numbers with --label, or use --task classification."
        )
    return values


def _test(paths: RegressionFiles, reading: options.TrainingData, *, quiet: bool) -> dict[str, Any]:
    """What the written model is off by on the test data."""
    import numpy as np

    from maxmargin.command_line.predict import predictions

    assert paths.test is not None
    with Bars(quiet=quiet) as bars:
        model = files.load_model(paths.target)
        pieces = list(predictions(model, reading, paths.test, bars.reading(paths.test.name)))
    errors = [piece.errors for piece in pieces if piece.errors is not None]
    return _measures(np.concatenate(errors)) if errors else {}


def _held_out(
    estimator: Any,
    training_set: options.TrainingSet,
    values: NDArray[Any],
    share: float,
    reading: options.TrainingData,
) -> dict[str, Any]:
    """What a model of the other rows is off by on rows that had no part in it."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    seed = estimator.random_state
    try:
        kept, out = train_test_split(np.arange(len(values)), test_size=share, random_state=seed)
    except ValueError:
        raise Failure(
            f"--hold-out {share:g} must leave rows on both sides. Got {len(values)} rows. Choose another "
            "share, or leave it out."
        ) from None
    X, X_out = training_set.split(kept, out, reading)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said, the fit of all rows says
        model = clone(estimator).set_params(callback=None).fit(X, values[kept])
    return _measures(model.predict(X_out) - values[out])


def _measures(errors: NDArray[Any]) -> dict[str, Any]:
    """What predictions are off by."""
    return {
        "rows": len(errors),
        "mean_absolute_error": float(abs(errors).mean()),
        "root_mean_squared_error": float((errors**2).mean()) ** 0.5,
    }


def _in_words(where: str, found: dict[str, Any]) -> str:
    return (
        f"{where}, {found['rows']} rows: off by {found['mean_absolute_error']:.6g} in the mean, root mean "
        f"square {found['root_mean_squared_error']:.6g}."
    )


@dataclass(frozen=True)
class Trained:
    """A regressor, what it was trained on, and what it is off by."""

    estimator: Regressor
    paths: RegressionFiles
    training_set: options.TrainingSet
    values: NDArray[Any]
    warned: list[str]
    seconds: dict[str, float]
    held_out: dict[str, Any] | None
    tested: dict[str, Any] | None
    choice: Any = None
    """How its values were chosen, if they were."""

    def tested_on(self, paths: RegressionFiles, reading: options.TrainingData, *, quiet: bool) -> Trained:
        """The same, with what it is off by on the test data, if there are any."""
        return self if paths.test is None else replace(self, tested=_test(paths, reading, quiet=quiet))

    @cached_property
    def on_training(self) -> dict[str, Any]:
        """On the rows it was trained on."""
        return _measures(self.estimator.predict(self.training_set.data.X) - self.values)

    @cached_property
    def constant(self) -> tuple[float, float]:
        """The median of the labels, and what it is off by in the mean: no other number is off by less."""
        import numpy as np

        median = float(np.median(self.values))
        return median, float(abs(self.values - median).mean())

    @cached_property
    def doubts(self) -> list[str]:
        """What the fit warned of, and what makes the model useless whatever its proof says."""
        data = self.training_set.data
        names = data.feature_names

        def name(column: int) -> str:
            return str(column + 1) if names is None else f"'{names[column]}'"

        doubts = scale_doubts(column_scales(data.X), name, ON_THE_COMMAND_LINE, large=False)
        error, of = self.on_training["mean_absolute_error"], self.constant[1]
        if of > 0.0 and error > _HARDLY_BETTER * of:
            doubts.append(
                f"The model is off by {error:.6g} in the mean, and the same number for every row by "
                f"{of:.6g}: it is of little use. Raise -C, which weighs errors in the unit of the labels, "
                "try --kernel gaussian, or look for columns that say more."
            )
        return [*self.warned, *doubts]

    def tell(self, *, as_json: bool) -> int:
        """Say how it went, on stdout; returns the exit code."""
        model, paths, data = self.estimator, self.paths, self.training_set.data
        proof: Any = model.certificate_
        sentence, code = ending(model.status_, proof.relative_gap, model.tol, model.n_iter_, paths.data)
        memory = peak_memory()
        if as_json:
            answer = {"task": "regression", "data": paths.data, "model": paths.target}
            answer |= {"status": model.status_.name.lower(), "message": sentence, "steps": model.n_iter_}
            answer |= {"certified": model.status_.certified, "warnings": self.doubts}
            answer |= {name: getattr(proof, name) for name in ("primal", "dual", "relative_gap")}
            answer |= {name: getattr(model, name) for name in ("tol", "C")}
            answer |= {"epsilon": epsilon_of(model), "nu": getattr(model, "nu", None)}
            answer |= {"rows": data.X.shape[0], "columns": data.X.shape[1], "skipped": data.skipped}
            answer |= {"table": encoding_as_json(data.encoding), "training": self.on_training}
            answer |= {"error_of_the_median": self.constant[1], "held_out": self.held_out}
            answer |= {"test": self.tested, "solver": model.solver_, "seconds": self.seconds}
            answer |= {} if self.choice is None else {"choice": self.choice.as_json()}
            print_json(answer | {"peak_memory_bytes": memory})
            return code
        low, high = float(self.values.min()), float(self.values.max())
        rows, columns = data.X.shape
        typer.echo(f"{paths.data}: {rows} rows, {columns} columns, labels from {low:.6g} to {high:.6g}.")
        for words in table_in_words(self.training_set):
            typer.echo(words)
        if data.skipped:
            typer.echo(f"{counted(data.skipped, 'malformed line')} left out.")
        if self.choice is not None:
            self.choice.print_words()
        for words in self.doubts:
            typer.echo(f"Warning: {' '.join(words.split())}", err=True)
        typer.echo(sentence, err=code != DONE)
        typer.echo(str(proof))
        if isinstance(model, maxmargin.NuSVR):
            typer.echo(f"With nu = {model.nu:g}, the tube is {model.epsilon_:.6g} to either side.")
        median, error = self.constant
        always = f"Always to say {median:.6g} would be off by {error:.6g}."
        typer.echo(f"{_in_words('Training data', self.on_training)} {always}")
        if self.held_out is not None:
            others = f"Predicted by a model of the other {rows - self.held_out['rows']} rows."
            typer.echo(f"{_in_words('Held out', self.held_out)} {others}")
        if self.tested:
            typer.echo(_in_words("Test data", self.tested))
        typer.echo(f"Solver: {model.solver_}")
        typer.echo(time_and_memory(self.seconds, memory))
        typer.echo(f"Model: {paths.target}, {bytes_in_words(paths.target.stat().st_size)}.")
        return code
