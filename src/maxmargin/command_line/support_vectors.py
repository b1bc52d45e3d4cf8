# SPDX-License-Identifier: BSD-3-Clause
"""The dual point of a LIBSVM file: its support vectors, found again among the rows of the data.

LIBSVM keeps the vectors themselves, with 8 digits of each value, and not their row numbers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from maxmargin.command_line.labels import label_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.files import SavedModel
    from maxmargin.types import Vector


def multipliers(model: SavedModel, X: Any, codes: NDArray[Any]) -> list[Vector] | None:
    """For each problem of a LIBSVM model, alpha of every row; None where a vector is not among the rows."""
    import numpy as np

    support = model.support
    if support is None:
        return None
    position = {label_text(label): k for k, label in enumerate(model.classes)}
    order = [position[label_text(label)] for label in support.order]
    waiting: dict[tuple[int, bytes], deque[int]] = defaultdict(deque)
    for row, key in enumerate(_keys(X)):
        waiting[int(codes[row]), key].append(row)
    alphas = [np.zeros(X.shape[0]) for _ in model.coef]
    number = {frozenset(pair): k for k, pair in enumerate(model.pairs)}
    for s, key in enumerate(_keys(support.vectors)):
        own = position[label_text(support.labels[s])]
        rows = waiting[own, key]
        if not rows:
            return None
        # Of equal rows the first: LIBSVM keeps its vectors in the order of the data.
        row = rows.popleft()
        others = [k for k in order if k != own]
        for other, coefficient in zip(others, support.coefficients[s], strict=True):
            alphas[number[frozenset((own, other))]][row] = abs(coefficient)
    return alphas


def _keys(X: Any) -> list[bytes]:
    """A key for each row: its columns and values, to the digits that LIBSVM writes."""
    import numpy as np
    from scipy import sparse

    matrix = sparse.csr_array(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    values, inverse = np.unique(matrix.data, return_inverse=True)
    kept = np.array([float(f"{value:.8g}") for value in values.tolist()])[inverse.ravel()]
    used = kept != 0.0
    indices = matrix.indices.astype(np.int64)
    ends = matrix.indptr.tolist()
    return [indices[a:b][used[a:b]].tobytes() + kept[a:b][used[a:b]].tobytes() for a, b in pairwise(ends)]
