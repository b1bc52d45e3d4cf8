# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task ranking``: from a data file with queries and relevances to a ranking's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.fitting import Fitting, asked_for
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.ranked import Ranked, measures_of, ranked_in_words
from maxmargin.files.data.labels import numbers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LOSSES = ("squared_hinge", "hinge")


def train_ranking(work: Fitting, given: dict[str, Any]) -> int:
    """Train, write the model and say what it is worth; ``given`` are the parameters that were asked for."""
    estimator = _estimator(given)
    with Bars(quiet=work.as_json) as bars:
        training_set = work.read(bars)
        data_set = training_set.data
        relevance = numbers_of(data_set.y)
        if relevance is None:
            raise Failure(
                f"With --task ranking the labels must be numbers, larger for what is more relevant. "
                f"{work.data} has others. Name the column of numbers with --label."
            )
        query = _queries(data_set, work.data)
        work.lap("read")
        warned = work.fit(estimator, training_set, bars, data_set.X, relevance, query)
    tested = work.tested()
    measured = {
        "training": measures_of([Ranked(relevance, estimator.predict(data_set.X), query)]),
        "test": None if tested is None else measures_of(tested.ranked),
    }
    sentences = [
        f"On the {where} data: {ranked_in_words(found)}"
        for where, found in measured.items()
        if found is not None
    ]
    columns = "" if work.reading.query is None else f" --query {work.reading.query}"
    check = f"maxmargin certify {work.target} {work.data}{columns}"
    sentences.append(f"Written to {work.target}; to check it: {check}")
    answer = {name: None if found is None else found._asdict() for name, found in measured.items()}
    return work.tell(estimator, training_set, warned, task="ranking", sentences=sentences, answer=answer)


def _estimator(given: dict[str, Any]) -> maxmargin.RankSVM:
    """The estimator that the options ask for, its parameters checked."""
    changes = asked_for(given)
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
