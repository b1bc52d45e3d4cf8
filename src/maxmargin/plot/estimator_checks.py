# SPDX-License-Identifier: BSD-3-Clause
"""What the pictures need to know of a fitted estimator, also at the end of a pipeline or a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted


def check_classifier(estimator: Any) -> NDArray[Any]:
    """The classes of a fitted classifier that has scores."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "decision_function"):
        raise ValueError(
            "The estimator must be a fitted classifier with a decision_function. "
            f"Got {type(estimator).__name__} instead. LinearSVC and SVC have one, and pipelines that end "
            "in them."
        )
    return np.asarray(estimator.classes_)


def check_labels(classes: NDArray[Any], y: ArrayLike, count: int) -> NDArray[Any]:
    """The labels as an array, each one known to the estimator."""
    labels = np.asarray(y)
    if labels.shape != (count,):
        raise ValueError(
            f"y must hold one label for each of the {count} rows of X. Got an array of shape "
            f"{labels.shape} instead."
        )
    strange = labels[~np.isin(labels, classes)]
    if len(strange):
        raise ValueError(
            f"The labels y must be among the classes of the estimator, {classes.tolist()}. "
            f"Got {strange.tolist()[0]!r} instead. Give the labels that it was trained with."
        )
    return labels


def columns_of(X: Any) -> tuple[NDArray[np.float64], list[str] | None]:
    """X as an array, and the names of its columns if it has any."""
    names = list(map(str, X.columns)) if hasattr(X, "columns") else None
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"X must be a matrix with one row per example. Got an array of shape {values.shape} instead."
        )
    return values, names


def last_step(estimator: Any) -> Any:
    """The estimator that holds the certificate: of a search the best, of a pipeline the last."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            return estimator
