# SPDX-License-Identifier: BSD-3-Clause
"""The l1 penalty against LIBLINEAR -s 5 and -s 6, as scikit-learn calls them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn import linear_model, svm

from benchmarks.datasets import load
from benchmarks.family import Case, Peer
from maxmargin import LinearSVC

COSTS = {
    "a9a": (1.0,),
    "ijcnn1": (1.0,),
    "mnist38": (0.1,),
    "covtype_binary_scale": (1.0,),
    "imdb_tfidf": (1.0, 10.0),
    "20news_tfidf": (1.0, 10.0),
    "rcv1_vw1k": (10.0,),
    "news20_binary_like": (10.0,),
}
"""Values of C. Of 20news the first class is told from the others."""
_TOLERANCES = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)


def cases(data: list[str] | None) -> Iterator[Case]:
    """Data of two classes, with the penalised intercept that LIBLINEAR has."""
    for name, costs in COSTS.items():
        if data is not None and name not in data:
            continue
        loaded = load(name, "float64")
        y = np.where(loaded.y == (loaded.y.min() if name == "20news_tfidf" else loaded.y.max()), 1.0, -1.0)
        for C in costs:
            for loss in ("squared_hinge", "logistic"):
                own: dict[str, Any] = {"C": C, "penalty": "l1", "random_state": 0}
                yield Case(
                    "LinearSVC(penalty='l1')",
                    name,
                    f"{loss}, C = {C:g}",
                    loaded.X,
                    y,
                    lambda tol, own=own, loss=loss: LinearSVC(
                        tol=tol, loss=loss, regularize_intercept=True, **own
                    ),
                    [_peer(own, loss)],
                    partial(objective, loaded.X, y, C, loss),
                )


def _peer(own: dict[str, Any], loss: str) -> Peer:
    if loss == "squared_hinge":
        return Peer(
            "LIBLINEAR -s 5",
            lambda tol: svm.LinearSVC(tol=tol, dual=False, max_iter=20_000, **own),
            3.0,
            _TOLERANCES,
        )
    return Peer(
        "LIBLINEAR -s 6",
        lambda tol: linear_model.LogisticRegression(tol=tol, solver="liblinear", max_iter=20_000, **own),
        3.0,
        _TOLERANCES,
    )


def objective(X: Any, y: Any, C: float, loss: str, model: Any) -> float:
    """The value of a fitted model, whose intercept is penalised as the weight that it is."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    margins = y * (X @ w + b)
    slack = np.logaddexp(0.0, -margins) if loss == "logistic" else np.maximum(1.0 - margins, 0.0) ** 2
    return float(np.abs(w).sum()) + abs(b) + C * float(slack.sum())
