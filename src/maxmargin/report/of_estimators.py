# SPDX-License-Identifier: BSD-3-Clause
"""The report on a fitted estimator: it becomes what a file would hold, and is judged like one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, column_or_1d

from maxmargin.command_line.certify import Judging, NoProof
from maxmargin.command_line.shared.progress import Bars
from maxmargin.estimators.reading import MATRIX
from maxmargin.features.lazy import LazyMonomials
from maxmargin.files.models.fitted import from_estimator
from maxmargin.files.models.stored import StoredModel
from maxmargin.files.whole import write_whole
from maxmargin.report.facts import Facts, Sample, Source
from maxmargin.report.page import page
from maxmargin.tools.words import some


def report_on(
    estimator: Any, path: str | os.PathLike[str], X: Any, y: Any, test: tuple[Any, Any] | None
) -> None:
    """Write the report on a fitted estimator; see ``CertifiedClassifier.report``."""
    text = page_about(estimator, X, y, test).encode()
    write_whole(path, lambda file: file.write(text))


def page_about(estimator: Any, X: Any, y: Any, test: tuple[Any, Any] | None = None) -> str:
    """The page of that report."""
    model = from_estimator(estimator)
    if model.is_ranking:
        raise ValueError(
            "A report is about classes, numbers or one class. Got a ranking instead. Its methods "
            "measures and score tell how well it ranks, and maxmargin certify recomputes its file's proof."
        )
    kind = type(estimator).__name__
    data = _rows(model, X, y, "the data given")
    tested = None if test is None else _rows(model, *test, "the test data")
    facts = Facts(Source(kind), model, data, tested)
    judging = Judging()
    with Bars(quiet=True) as bars:
        try:
            verdict = judging.verdict(model, Path(kind), Path(data.source.name))
            facts.judge(verdict, model.problem.get("class_weight"), judging.max_time, bars)
        except NoProof as reason:
            facts.no_proof = str(reason)
    return page(facts)


def _rows(model: StoredModel, X: Any, y: Any, name: str) -> Sample:
    """Rows and labels in memory; columns of a table are taken by their names, if the model has any."""
    if isinstance(X, LazyMonomials):
        X = X.base
    names = list(map(str, X.columns)) if hasattr(X, "columns") else None
    matrix = check_array(X, input_name="X", **MATRIX)
    labels = None if y is None and model.is_one_class else column_or_1d(y)
    check_consistent_length(matrix, labels)
    if names is not None and model.feature_names is not None:
        missing = [column for column in model.feature_names if column not in names]
        if missing:
            raise ValueError(
                f"X must have the columns of the training. It lacks {some(missing)}. Add them."
            )
        matrix = matrix[:, [names.index(column) for column in model.feature_names]]
    return Sample(Source(name), matrix, None if labels is None else np.asarray(labels))
