# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task ranking``: from a data file with queries and relevances to a ranking's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import maxmargin
from maxmargin import files
from maxmargin.command_line.predict import predictions
from maxmargin.command_line.shared import options
from maxmargin.command_line.shared.answer import Failure, one_interrupt, print_json
from maxmargin.command_line.shared.progress import Bars, fit_and_warnings
from maxmargin.command_line.shared.ranked import Ranked, measures_of, ranked_in_words
from maxmargin.command_line.shared.report import ending
from maxmargin.files.data.labels import numbers_of
from maxmargin.telling.progress import Clock
from maxmargin.tools.interrupts import held_back

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.estimators.ranking_measures import RankingMeasures

_LOSSES = ("squared_hinge", "hinge")
_DEFAULTS: dict[str, Any] = {"max_time": 60.0, "random_state": 0}
"""What an option left out stands for; the others are those of ``RankSVM``."""


@dataclass(frozen=True)
class RankingFiles:
    """What is read and what is written."""

    data: Path
    target: Path
    test: Path | None
    proof: bool


def refuse_for_ranking(**given: Any) -> None:
    """Refuse options that a ranking does not have, by their names."""
    for name, value in given.items():
        if value:
            raise Failure(f"--{name.replace('_', '-')} is not for --task ranking. Leave it out.")


def train_ranking(
    paths: RankingFiles, given: dict[str, Any], reading: options.TrainingData, *, as_json: bool
) -> int:
    """Train, write the model and say what it is worth; ``given`` are the parameters that were asked for."""
    estimator = _estimator(given)
    clock = Clock()
    with Bars(quiet=as_json) as bars:
        training_set = reading.read_for_training(paths.data, bars.reading(paths.data.name))
        data_set = training_set.data
        relevance = numbers_of(data_set.y)
        if relevance is None:
            raise Failure(
                f"With --task ranking the labels must be numbers, larger for what is more relevant. "
                f"{paths.data} has others. Name the column of numbers with --label."
            )
        query = _queries(data_set, paths.data)
        seconds = {"read": clock.lap()}
        limit = float("inf") if estimator.max_time is None else estimator.max_time
        estimator.callback = bars.solving("training", tol=estimator.tol, max_time=limit)
        with one_interrupt(), held_back():  # it ends the training, and what that leaves is written
            warned = fit_and_warnings(estimator, data_set.X, relevance, query)
            seconds["train"] = clock.lap()
            bars.waiting("writing")
            found = options.with_columns(estimator, training_set)
            files.save_model(found, paths.target, data=training_set.fingerprint, proof=paths.proof)
        seconds["write"] = clock.lap()
    on_training = measures_of([Ranked(relevance, estimator.predict(data_set.X), query)])
    on_test = None if paths.test is None else _test(paths, reading, quiet=as_json)
    return _tell(estimator, paths, warned, seconds, [on_training, on_test], reading.query, as_json=as_json)


def _estimator(given: dict[str, Any]) -> maxmargin.RankSVM:
    """The estimator that the options ask for, its parameters checked."""
    changes = _DEFAULTS | {name: value for name, value in given.items() if value is not None}
    changes["max_time"] = options.seconds_or_none(changes["max_time"])
    if changes.get("loss", "hinge") not in _LOSSES:
        raise Failure(
            f"With --task ranking --loss must be one of {', '.join(_LOSSES)}. Got {changes['loss']!r} "
            "instead."
        )
    estimator = maxmargin.RankSVM(**changes)
    estimator._check_parameters()
    return estimator


def _queries(data_set: files.DataSet, path: Path) -> NDArray[Any] | None:
    """The query of each row; refuses a file in which only some rows have one."""
    query: NDArray[Any] | None = data_set.query
    if query is not None and query.dtype.kind == "i" and bool((query < 0).any()):
        row = int((query < 0).argmax()) + 1
        raise Failure(
            f"{path} has rows with qid:N and without: row {row} has none. Give every row its query."
        )
    return query


def _test(paths: RankingFiles, reading: options.TrainingData, *, quiet: bool) -> RankingMeasures | None:
    """How well the written model ranks the test data."""
    assert paths.test is not None
    with Bars(quiet=quiet) as bars:
        model = files.load_model(paths.target)
        pieces = predictions(model, reading, paths.test, bars.reading(paths.test.name))
        return measures_of([piece.ranked for piece in pieces if piece.ranked is not None])


def _tell(
    estimator: maxmargin.RankSVM,
    paths: RankingFiles,
    warned: list[str],
    seconds: dict[str, float],
    measured: list[RankingMeasures | None],
    query: str | None,
    *,
    as_json: bool,
) -> int:
    proof: Any = estimator.certificate_
    sentence, code = ending(
        estimator.status_, proof.relative_gap, estimator.tol, estimator.n_iter_, paths.data
    )
    if as_json:
        training, test = (None if found is None else found._asdict() for found in measured)
        answer = {"task": "ranking", "data": paths.data, "model": paths.target, "training": training}
        answer |= {"status": estimator.status_.name.lower(), "steps": estimator.n_iter_, "test": test}
        answer |= {"solver": estimator.solver_, "seconds": seconds, "warnings": warned}
        answer |= {name: getattr(proof, name) for name in ("primal", "dual", "relative_gap")}
        print_json(answer)
        return code
    typer.echo(f"{sentence}\n{proof}")
    for where, found in zip(("training", "test"), measured, strict=True):
        if found is not None:
            typer.echo(f"On the {where} data: {ranked_in_words(found)}")
    for words in warned:
        typer.echo(f"Warning: {words}")
    columns = "" if query is None else f" --query {query}"
    check = f"maxmargin certify {paths.target} {paths.data}{columns}"
    typer.echo(f"Written to {paths.target}; to check it: {check}")
    return code
