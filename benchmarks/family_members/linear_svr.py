# SPDX-License-Identifier: BSD-3-Clause
"""``LinearSVR`` against LIBLINEAR -s 11, -s 12 and -s 13, as scikit-learn calls them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import svm
from sklearn.preprocessing import scale

from benchmarks.datasets import load
from benchmarks.family import Case, Peer
from maxmargin import LinearSVR

COSTS = {
    "cpusmall": (1.0, 100.0),
    "abalone": (1.0, 100.0),
    "housing_scale": (10.0,),
    "imdb_tfidf": (1.0, 10.0),
    "covtype_binary_scale": (1.0,),
}
"""Values of C. The labels of the last two are taken for numbers."""
_EPSILON = 0.1
_TOLERANCES = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)


def cases(data: list[str] | None) -> Iterator[Case]:
    """Dense columns and values that are standardised, text as it is; LIBLINEAR's regularised intercept."""
    for name, costs in COSTS.items():
        if data is not None and name not in data:
            continue
        loaded = load(name)
        X, y = loaded.X, scale(loaded.y.astype(float))
        X = X.astype(np.float64) if sparse.issparse(X) else scale(X.astype(np.float64))
        for C in costs:
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
                own: dict[str, Any] = {"C": C, "epsilon": _EPSILON, "loss": loss, "random_state": 0}
                yield Case(
                    "LinearSVR",
                    name,
                    f"{loss}, C = {C:g}",
                    X,
                    y,
                    lambda tol, own=own: LinearSVR(tol=tol, regularize_intercept=True, **own),
                    list(_peers(own)),
                    partial(objective, X, y, C, loss),
                )


def _peers(own: dict[str, Any]) -> Iterator[Peer]:
    squared = own["loss"].startswith("squared")
    for dual in (True, False) if squared else (True,):
        name = {True: "-s 12" if squared else "-s 13", False: "-s 11"}[dual]
        yield Peer(
            f"LIBLINEAR {name}",
            lambda tol, dual=dual: svm.LinearSVR(tol=tol, dual=dual, max_iter=20_000, **own),
            5.0,
            _TOLERANCES,
        )


def objective(X: Any, y: Any, C: float, loss: str, model: Any) -> float:
    """The value of a fitted model, whose intercept counts as the weight that it is."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    slack = np.maximum(np.abs(X @ w + b - y) - _EPSILON, 0.0)
    return 0.5 * float(w @ w + b * b) + C * float((slack**2 if loss.startswith("squared") else slack).sum())
