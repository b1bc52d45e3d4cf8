# SPDX-License-Identifier: BSD-3-Clause
"""``LinearSVC(multi_class="crammer_singer")`` against LIBLINEAR -s 4, as scikit-learn calls it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import svm

from benchmarks.datasets import load
from benchmarks.family import Case, Peer
from maxmargin import LinearSVC

DATA = ("mnist", "20news_tfidf", "sector_scale", "letter_scale", "pendigits")
_TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Of LIBLINEAR, whose rule is about violations, and not about the objective."""
_JOINT: dict[str, Any] = {"multi_class": "crammer_singer", "C": 1.0, "random_state": 0}


def cases(data: list[str] | None) -> Iterator[Case]:
    """Data of several classes as they are, but for the pixels of mnist, which are divided by 255."""
    for name in DATA:
        if data is not None and name not in data:
            continue
        loaded = load(name)
        X, codes = loaded.X, np.unique(loaded.y, return_inverse=True)[1]
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float32) / np.float32(255 if name == "mnist" else 1)
        yield Case(
            "LinearSVC(multi_class='crammer_singer')",
            name,
            f"C = 1, {codes.max() + 1} classes",
            X,
            codes,
            lambda tol: LinearSVC(tol=tol, **_JOINT),
            [Peer("LIBLINEAR -s 4", peer, 2.0, _TOLERANCES)],
            partial(objective, X, codes),
        )


def peer(tol: float) -> Any:
    """LIBLINEAR's, with as many sweeps as it asks for."""
    return svm.LinearSVC(tol=tol, max_iter=100_000, **_JOINT)


def objective(X: Any, codes: NDArray[np.intp], model: Any) -> float:
    """The value of a fitted model, whose intercepts count as the weights that they are."""
    scores, rows = np.asarray(X @ model.coef_.T) + model.intercept_, np.arange(len(codes))
    own = scores[rows, codes].copy()
    scores += 1.0
    scores[rows, codes] -= 1.0
    squares = float((model.coef_**2).sum()) + float((model.intercept_**2).sum())
    return 0.5 * squares + float((scores.max(axis=1) - own).sum())
