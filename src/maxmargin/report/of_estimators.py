# SPDX-License-Identifier: BSD-3-Clause
"""The report on a fitted estimator: it becomes what a file would hold, and is judged like one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from maxmargin.command_line.certify import Judging
from maxmargin.command_line.shared.progress import Bars
from maxmargin.features.lazy import LazyMonomials
from maxmargin.files.models.fitted import from_estimator
from maxmargin.files.models.stored import StoredModel
from maxmargin.files.whole import write_whole
from maxmargin.report.facts import Facts, Rows, Source
from maxmargin.report.page import page


def report_on(
    estimator: Any, path: str | os.PathLike[str], X: Any, y: Any, test: tuple[Any, Any] | None
) -> None:
    """Write the report on a fitted estimator; see ``CertifiedClassifier.report``."""
    model = from_estimator(estimator)
    kind = type(estimator).__name__
    data = _rows(model, X, y, "the data given")
    tested = None if test is None else _rows(model, *test, "the test data")
    facts = Facts(Source(kind), model, data, tested)
    judging = Judging()
    verdict = judging.verdict(model, Path(kind), Path("the data given"))
    with Bars(quiet=True) as bars:
        facts.judge(verdict, model.problem.get("class_weight"), judging.max_time, bars)
    text = page(facts).encode()
    write_whole(path, lambda file: file.write(text))


def _rows(model: StoredModel, X: Any, y: Any, name: str) -> Rows:
    """Rows and labels in memory; columns of a table are taken by their names, if the model has any."""
    if hasattr(X, "columns") and model.feature_names is not None:
        missing = [column for column in model.feature_names if column not in list(map(str, X.columns))]
        if missing:
            raise ValueError(
                f"X must have the columns that the model was trained on. It lacks {missing[:5]}. Add them."
            )
        X = X.set_axis(list(map(str, X.columns)), axis=1)[model.feature_names]
    if isinstance(X, LazyMonomials):
        X = X.base
    matrix = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"X must be a matrix with one row per example. Got {matrix.ndim} dimensions instead."
        )
    labels = column_or_1d(y)
    check_consistent_length(matrix, labels)
    return Rows(Source(name), matrix, np.asarray(labels))
