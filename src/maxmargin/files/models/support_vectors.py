# SPDX-License-Identifier: BSD-3-Clause
"""Support vectors of a model file, found again among the rows of the data.

LIBSVM keeps the vectors themselves, with 8 digits of each value, and not their row numbers. Our own files
keep both.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.models.stored import SavedKernelModel, StoredModel, widened
from maxmargin.types import Vector


def with_support_vectors(model: StoredModel) -> SavedKernelModel | None:
    """The model as one of support vectors, if it has any."""
    return model if isinstance(model, SavedKernelModel) else getattr(model, "support", None)


def multipliers(model: SavedKernelModel, rows: NDArray[Any], count: int) -> list[Vector]:
    """The alpha of every one of ``count`` rows in each problem, given the rows of the support vectors."""
    alphas = [np.zeros(count) for _ in model.intercept]
    for k, alpha in enumerate(alphas):
        alpha[rows] = np.abs(model.coefficients_of(k))
    return alphas


def found_rows(model: SavedKernelModel, X: Any, codes: NDArray[Any]) -> NDArray[Any] | None:
    """The row of each support vector, of its class and equal to 8 digits; None where one is not there."""
    if model.vectors is None:
        return model.support
    waiting: dict[tuple[int, bytes], deque[int]] = defaultdict(deque)
    for row, key in enumerate(_keys(X)):
        waiting[int(codes[row]), key].append(row)
    rows = []
    for owner, key in zip(model.owners.tolist(), _keys(model.vectors), strict=True):
        candidates = waiting[owner, key]
        if not candidates:
            return None
        # Of equal rows the first: LIBSVM keeps its vectors in the order of the data.
        rows.append(candidates.popleft())
    return np.array(rows, np.int64)


def are_rows(model: SavedKernelModel, X: Any, codes: NDArray[Any], rows: NDArray[Any]) -> bool:
    """Whether the support vectors are exactly these rows, with the labels that the model gives them."""
    if not np.array_equal(codes[rows], model.owners):
        return False
    if model.vectors is None:
        return True
    width = max(X.shape[1], model.own_features)
    ours, theirs = (sparse.csr_array(part, dtype=np.float64) for part in (X[rows], model.vectors))
    return bool((widened(ours, width) != widened(theirs, width)).nnz == 0)


def _keys(X: Any) -> list[bytes]:
    """A key for each row: its columns and values, to the digits that LIBSVM writes."""
    matrix = sparse.csr_array(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    values, inverse = np.unique(matrix.data, return_inverse=True)
    kept = np.array([float(f"{value:.8g}") for value in values.tolist()])[inverse.ravel()]
    used = kept != 0.0
    indices = matrix.indices.astype(np.int64)
    ends = matrix.indptr.tolist()
    return [indices[a:b][used[a:b]].tobytes() + kept[a:b][used[a:b]].tobytes() for a, b in pairwise(ends)]
