# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task regression``: from a data file with numbers as labels to a regressor's file."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared import data_options
from maxmargin.command_line.shared.answer import Failure, attributes
from maxmargin.command_line.shared.fitting import Fitting, asked_for
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.words import column_name
from maxmargin.files.data.labels import numbers_of
from maxmargin.telling.doubts import ON_THE_COMMAND_LINE, column_scales, scale_doubts

if TYPE_CHECKING:
    from numpy.typing import NDArray

Regressor = maxmargin.LinearSVR | maxmargin.SVR | maxmargin.NuSVR
_LOSSES = {"epsilon_insensitive", "squared_epsilon_insensitive"}
_HARDLY_BETTER = 0.95
"""The share of what the median is off by, above which a model is of little use."""


def train_regressor(work: Fitting, given: dict[str, Any]) -> int:
    """Train, write the model and say what it is worth; ``given`` are the parameters that were asked for."""
    estimator = _estimator(asked_for(given))
    with Bars(quiet=work.as_json) as bars:
        training_set = work.read(bars)
        values = numbers_to_predict(training_set.data.y, work.data)
        data_options.check_columns(training_set, work.model_format)
        work.lap("read")
        held_out = None
        if work.hold_out is not None:
            bars.waiting("holding rows out")
            held_out = _held_out(estimator, training_set, values, work.hold_out, work.reading)
            work.lap("hold out")
        warned = work.fit(estimator, training_set, bars, training_set.data.X, values)
    return tell_regressor(work, estimator, training_set, values, warned, held_out=held_out)


def _estimator(changes: dict[str, Any]) -> Regressor:
    """The estimator that the options ask for, its parameters checked."""
    if "loss" in changes and changes["loss"] not in _LOSSES:
        raise Failure(
            f"With --task regression --loss must be one of {', '.join(sorted(_LOSSES))}. Got "
            f"{changes['loss']!r} instead."
        )
    seen: Regressor
    if "kernel" not in changes:
        if "nu" in changes:
            raise Failure("--nu needs a kernel. Add --kernel, or give --epsilon instead.")
        seen = maxmargin.LinearSVR(**changes)
    else:
        if changes.pop("loss", "epsilon_insensitive") != "epsilon_insensitive":
            raise Failure("With a kernel --loss must be epsilon_insensitive. Leave --loss or --kernel out.")
        if {"fit_intercept", "regularize_intercept"} & set(changes):
            raise Failure("With a kernel --intercept must be exact. Leave --intercept or --kernel out.")
        if changes.pop("device", "cpu") == "cuda":
            raise Failure(
                "With a kernel, --task regression works on the CPU. Leave --device out, or --kernel: "
                "without one it takes a GPU."
            )
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


def _held_out(
    estimator: Any,
    training_set: data_options.TrainingSet,
    values: NDArray[Any],
    share: float,
    reading: data_options.TrainingData,
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


def tell_regressor(
    work: Fitting,
    model: Regressor,
    training_set: data_options.TrainingSet,
    values: NDArray[Any],
    warned: list[str],
    *,
    held_out: dict[str, Any] | None = None,
    choice: Any = None,
) -> int:
    """Say what a regressor is worth; returns the exit code."""
    import numpy as np

    data, found = training_set.data, work.tested()
    training = _measures(model.predict(data.X) - values)
    median = float(np.median(values))  # no other number is off by less, in the mean
    off = float(abs(values - median).mean())
    always = f"Always to say {median:.6g} would be off by {off:.6g}."
    sentences = [f"{_in_words('Training data', training)} {always}"]
    if isinstance(model, maxmargin.NuSVR):
        sentences.insert(0, f"With nu = {model.nu:g}, the tube is {model.epsilon_:.6g} to either side.")
    if held_out is not None:
        others = f"Predicted by a model of the other {len(values) - held_out['rows']} rows."
        sentences.append(f"{_in_words('Held out', held_out)} {others}")
    tested: dict[str, Any] | None = None
    if found is not None:
        errors = attributes(found, "mean_absolute_error", "root_mean_squared_error")
        tested = {"rows": found.compared, **errors} if found.compared else {}
        sentences += [_in_words("Test data", tested)] if tested else []
    answer = {"C": model.C, "epsilon": epsilon_of(model), "nu": getattr(model, "nu", None)}
    answer |= {"training": training, "error_of_the_median": off, "held_out": held_out, "test": tested}
    return work.tell(
        model,
        training_set,
        [*warned, *_doubts(data, training["mean_absolute_error"], off)],
        task="regression",
        labels=f", labels from {values.min():.6g} to {values.max():.6g}",
        sentences=sentences,
        answer=answer,
        choice=choice,
    )


def _doubts(data: files.DataSet, error: float, off: float) -> list[str]:
    """What makes the model useless whatever its proof says."""
    doubts = scale_doubts(
        column_scales(data.X), partial(column_name, data.feature_names), ON_THE_COMMAND_LINE, large=False
    )
    if off > 0.0 and error > _HARDLY_BETTER * off:
        doubts.append(
            f"The model is off by {error:.6g} in the mean, and the same number for every row by "
            f"{off:.6g}: it is of little use. Raise -C, which weighs errors in the unit of the labels, "
            "try --kernel gaussian, or look for columns that say more."
        )
    return doubts
