# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task regression``: from a data file with numbers as labels to a regressor's file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared import options
from maxmargin.command_line.shared.answer import Failure, one_interrupt, print_json
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.report import ending
from maxmargin.files.data.labels import numbers_of
from maxmargin.telling.progress import Clock
from maxmargin.tools.interrupts import held_back

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LOSSES = {"epsilon_insensitive", "squared_epsilon_insensitive"}
_DEFAULTS: dict[str, Any] = {"max_time": 60.0, "random_state": 0}
"""What an option left out stands for; the others are those of the estimators."""


@dataclass(frozen=True)
class RegressionFiles:
    """What is read and what is written."""

    data: Path
    target: Path
    test: Path | None
    proof: bool


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
    clock = Clock()
    with Bars(quiet=as_json) as bars:
        training_set = reading.read_for_training(paths.data, bars.reading(paths.data.name))
        data_set = training_set.data
        values = _numbers(data_set.y, paths.data)
        seconds = {"read": clock.lap()}
        limit = float("inf") if estimator.max_time is None else estimator.max_time
        estimator.callback = bars.solving("training", tol=estimator.tol, max_time=limit)
        with one_interrupt(), held_back():  # it ends the training, and what that leaves is written
            warned = _fit(estimator, data_set, values)
            seconds["train"] = clock.lap()
            bars.waiting("writing")
            found = options.with_columns(estimator, training_set)
            files.save_model(found, paths.target, data=training_set.fingerprint, proof=paths.proof)
        seconds["write"] = clock.lap()
    tested = None if paths.test is None else _test(paths, reading, quiet=as_json)
    return _tell(estimator, paths, values, warned, seconds, tested, data_set.X, as_json=as_json)


def _estimator(given: dict[str, Any]) -> maxmargin.LinearSVR | maxmargin.SVR:
    """The estimator that the options ask for, its parameters checked."""
    changes = _DEFAULTS | {name: value for name, value in given.items() if value is not None}
    changes["max_time"] = options.seconds_or_none(changes["max_time"])
    if "loss" in changes and changes["loss"] not in _LOSSES:
        raise Failure(
            f"With --task regression --loss must be one of {', '.join(sorted(_LOSSES))}. Got "
            f"{changes['loss']!r} instead."
        )
    if "kernel" not in changes:
        linear = maxmargin.LinearSVR(**changes)
        linear._check_parameters()
        return linear
    if changes.pop("loss", "epsilon_insensitive") != "epsilon_insensitive":
        raise Failure("With a kernel --loss must be epsilon_insensitive. Leave --loss or --kernel out.")
    if {"fit_intercept", "regularize_intercept"} & set(changes):
        raise Failure("With a kernel --intercept must be exact. Leave --intercept or --kernel out.")
    seen = maxmargin.SVR(**changes)
    seen._check_parameters()
    return seen


def _numbers(labels: Any, path: Path) -> NDArray[Any]:
    values = numbers_of(labels)
    if values is None:
        raise Failure(
            f"With --task regression the labels must be numbers. {path} has others. Name the column of "
            "numbers with --label, or use --task classification."
        )
    return values


def _fit(estimator: Any, data_set: files.DataSet, values: NDArray[Any]) -> list[str]:
    """Fit with a progress bar; what is to be warned of, beside how it ended."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(data_set.X, values)
    estimator.set_params(callback=None)
    return [str(one.message) for one in caught if not issubclass(one.category, ConvergenceWarning)]


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


def _measures(errors: NDArray[Any]) -> dict[str, Any]:
    """What predictions are off by."""
    return {
        "rows": len(errors),
        "mean_absolute_error": float(abs(errors).mean()),
        "root_mean_squared_error": float((errors**2).mean()) ** 0.5,
    }


def _tell(
    estimator: maxmargin.LinearSVR | maxmargin.SVR,
    paths: RegressionFiles,
    values: NDArray[Any],
    warned: list[str],
    seconds: dict[str, float],
    tested: dict[str, Any] | None,
    X: Any,
    *,
    as_json: bool,
) -> int:
    proof: Any = estimator.certificate_
    on_training = _measures(estimator.predict(X) - values)
    sentence, code = ending(
        estimator.status_, proof.relative_gap, estimator.tol, estimator.n_iter_, paths.data
    )
    if as_json:
        answer = {"task": "regression", "data": paths.data, "model": paths.target, "training": on_training}
        answer |= {"status": estimator.status_.name.lower(), "steps": estimator.n_iter_, "test": tested}
        answer |= {"solver": estimator.solver_, "seconds": seconds, "warnings": warned}
        answer |= {name: getattr(proof, name) for name in ("primal", "dual", "relative_gap")}
        print_json(answer)
        return code
    typer.echo(f"{sentence}\n{proof}")
    for where, found in (("training", on_training), ("test", tested)):
        if found:
            typer.echo(
                f"On the {found['rows']} rows of the {where} data predictions are off by "
                f"{found['mean_absolute_error']:.6g} in the mean, root mean square "
                f"{found['root_mean_squared_error']:.6g}."
            )
    for words in warned:
        typer.echo(f"Warning: {words}")
    typer.echo(f"Written to {paths.target}; to check it: maxmargin certify {paths.target} {paths.data}")
    return code
