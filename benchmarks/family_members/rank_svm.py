# SPDX-License-Identifier: BSD-3-Clause
"""``RankSVM`` against LIBLINEAR on all pairs of rows, written out: scikit-learn's ``LinearSVC``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import svm
from sklearn.preprocessing import scale

from benchmarks.datasets import load
from benchmarks.family import Case, Peer
from maxmargin import RankSVM, ranking_problem

PER_PAIR = 10.0
"""C times the number of pairs, for each row: pairs of one row are about as many as rows."""
_PAIRS_WRITTEN_OUT = 10_000_000
"""Pairs beyond which they are not written out: LIBLINEAR has taken 3 GB at that number already."""
_QUERY = 100
"""Rows of a query, where the data have none of their own."""

Data = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


def cases(data: list[str] | None) -> Iterator[Case]:
    """Numbers as relevances, of one query or of queries of a hundred rows; and what looks like LETOR."""
    for name in ("abalone", "cpusmall", "cpusmall in queries", "synthetic"):
        if data is not None and name.split()[0] not in data:
            continue
        X, y, query = _data(name)
        for loss in ("squared_hinge", "hinge"):
            pairs = ranking_problem(X, y, query=query, loss=loss).pair_weights
            C = PER_PAIR * len(y) / pairs
            problem = ranking_problem(X, y, C, query=query, loss=loss)
            written_out = Peer("LIBLINEAR on all pairs", partial(_WrittenOut, query, C, loss), 2.0)
            few = pairs <= _PAIRS_WRITTEN_OUT
            yield Case(
                "RankSVM",
                name,
                f"{loss}, {pairs:.2g} pairs",
                X,
                y,
                partial(_InQueries, query, C, loss),
                [written_out] if few else [],
                lambda model, problem=problem: problem.primal(model.coef_),
                note="" if few else "none: too many pairs to be written out",
            )


def _data(name: str) -> Data:
    if name == "synthetic":
        return synthetic()
    found = load(name.split()[0])
    X, y = scale(found.X.toarray() if hasattr(found.X, "toarray") else found.X), found.y.astype(float)
    queries = len(y) // _QUERY if name.endswith("queries") else 1
    return X, y, np.random.default_rng(0).integers(0, queries, len(y))


def synthetic(rows: int = 100_000, columns: int = 46) -> Data:
    """A thousand queries of a hundred rows with five grades, of which most are the lowest."""
    random = np.random.default_rng(0)
    X = random.random((rows, columns)) ** 2
    query = np.repeat(np.arange(rows // _QUERY), _QUERY)
    wish = (X - X.mean(axis=0)) @ random.normal(size=columns) + 0.8 * random.normal(size=rows)
    wish += random.normal(size=rows // _QUERY)[query]
    return X, np.digitize(wish, np.quantile(wish, [0.6, 0.8, 0.92, 0.98])).astype(float), query


class _InQueries:
    """``RankSVM`` that has been told the queries."""

    def __init__(self, query: NDArray[np.int64], C: float, loss: Any, tol: float) -> None:
        self.query, self.inner = query, RankSVM(C=C, loss=loss, tol=tol)

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        self.inner.fit(X, y, self.query)
        self.coef_, self.certificate_ = self.inner.coef_, self.inner.certificate_


class _WrittenOut:
    """LIBLINEAR on the differences of all pairs, half of them with the other sign and label."""

    def __init__(self, query: NDArray[np.int64], C: float, loss: str, tol: float) -> None:
        self.query, options = query, {"dual": loss == "hinge", "max_iter": 100_000}
        self.inner = svm.LinearSVC(C=C, loss=loss, tol=tol, fit_intercept=False, random_state=0, **options)

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        first, second = all_pairs(y, self.query)
        signs = np.where(np.arange(len(first)) % 2, 1.0, -1.0)
        self.coef_ = self.inner.fit(signs[:, np.newaxis] * (X[first] - X[second]), signs).coef_[0]


def all_pairs(y: NDArray[np.float64], query: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The more relevant and the less relevant row of each pair of one query."""
    order = np.argsort(query, kind="stable")
    each = []
    for group in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        i, j = np.nonzero(y[group][:, np.newaxis] > y[group][np.newaxis, :])
        each.append((group[i], group[j]))
    return np.concatenate([i for i, _ in each]), np.concatenate([j for _, j in each])
