# SPDX-License-Identifier: BSD-3-Clause
"""Random problems for the automatic choice: shapes, scales, noise and C over many orders."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_ROWS, _COLUMNS = (100.0, 100_000.0), (2.0, 5_000.0)
_DENSITIES = 1e-3, 0.2
"""Of sparse data: the share of values that are stored."""
_MOST_VALUES = 10_000_000
"""Stored values: 80 MB where rows are dense."""
_COSTS = 1e-4, 1e4
_NOISE = 0.0, 0.1, 0.5, 3.0
"""Of the labels, in units of what the plane makes of the rows: from none, so that they separate."""
_SPREAD = 0.7
"""Orders of magnitude by which columns that are not scaled differ, as a standard deviation."""
_RANK_NOISE = 0.1
"""What correlated rows have of their own, beside what they share."""
_FORMS = ("normal", "correlated", "sparse", "sparse")


@dataclass(frozen=True)
class Case:
    """One problem of the hinge, the squared hinge or the logistic loss."""

    words: str
    """What the data are, in one line."""
    X: Any
    y: NDArray[np.float64]
    loss: str
    C: float


def draw(seed: int, number: int) -> Case:
    """The problem of this number; the same at every call."""
    random = np.random.default_rng([seed, number])
    loss = str(random.choice(["hinge", "squared_hinge", "logistic"]))
    form = str(random.choice(_FORMS))
    rows, columns, density = _shape(random, form)
    X = (
        _sparse_rows(random, rows, columns, density)
        if form == "sparse"
        else _dense_rows(random, form, rows, columns)
    )
    noise = float(random.choice(_NOISE))
    y = _labels(random, X, noise)
    if scaled := bool(random.random() < 0.5):
        if form == "sparse":
            X = sparse.diags_array(1.0 / np.sqrt(X.power(2).sum(axis=1))) @ X
    else:
        factors = 10.0 ** (_SPREAD * random.normal(size=columns))
        X = X @ sparse.diags_array(factors) if form == "sparse" else X * factors
    C = float(f"{_between(random, _COSTS):.3g}")
    words = f"{rows} x {columns} {form}"
    if form == "sparse":
        X = sparse.csr_array(X)
        words += f" ({X.nnz / rows:.3g} values a row)"
    words += ", scaled" if scaled else ", not scaled"
    words += f", noise {noise:g}" if noise else ", separable"
    return Case(words, X, y, loss, C)


def _between(random: np.random.Generator, ends: tuple[float, float]) -> float:
    return 10.0 ** random.uniform(math.log10(ends[0]), math.log10(ends[1]))


def _shape(random: np.random.Generator, form: str) -> tuple[int, int, float]:
    """Rows, columns and the share of values that are stored."""
    while True:
        rows, columns = round(_between(random, _ROWS)), round(_between(random, _COLUMNS))
        density = _between(random, _DENSITIES) if form == "sparse" else 1.0
        density = max(density, min(1.0, 2.0 / columns))
        if rows * columns * density <= _MOST_VALUES:
            return rows, columns, density


def _dense_rows(random: np.random.Generator, form: str, rows: int, columns: int) -> NDArray[np.float64]:
    if form == "normal":
        return random.normal(size=(rows, columns))
    rank = max(1, min(rows, columns) // int(random.choice([2, 5, 20])))
    shared = random.normal(size=(rows, rank)) @ random.normal(size=(rank, columns)) / math.sqrt(rank)
    return shared + _RANK_NOISE * random.normal(size=(rows, columns))


def _sparse_rows(random: np.random.Generator, rows: int, columns: int, density: float) -> Any:
    """Some columns are frequent and many are rare, like words; no row is empty."""
    stored = rows * max(1, round(density * columns))
    frequency = 1.0 / np.arange(1.0, columns + 1.0) ** random.uniform(0.0, 1.0)
    where = random.choice(columns, stored, p=frequency / frequency.sum())
    row = np.concatenate([np.arange(rows), random.integers(rows, size=stored - rows)])
    counts = sparse.coo_array((np.ones(stored), (row, where)), (rows, columns)).tocsr()
    counts.data = np.log1p(counts.data) if random.random() < 0.5 else np.ones(counts.nnz)
    return counts


def _labels(random: np.random.Generator, X: Any, noise: float) -> NDArray[np.float64]:
    """By a plane, which has one row in two on its one side, or one in ten."""
    scores = X @ random.normal(size=X.shape[1])
    scores = scores + noise * float(scores.std()) * random.normal(size=len(scores))
    order = np.argsort(scores)
    y = -np.ones(len(scores))
    y[order[: len(order) // int(random.choice([2, 2, 10]))]] = 1.0
    return y
