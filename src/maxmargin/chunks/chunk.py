# SPDX-License-Identifier: BSD-3-Clause
"""Some rows of the data, in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.types import Indices, Vector

BYTES_BESIDE = 48
"""Bytes that are held of a row besides its values, about: label, cost, margin, score, length, multiplier.
Of short rows they are most of what is held."""
FEW_COLUMNS = 256
"""Columns up to which the memory has room for a larger sample: the matrices of its problem are 16 MB."""
ROWS_PER_COLUMN = 2000
"""Rows of a sample for each column from which its Hessian will do: its steps are then off by two
hundredths, and a pass leaves a thousandth of the gap."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows with their labels and weights; what a task gets."""

    X: Any
    """A matrix of float32 or float64: dense in C order, or CSR with sorted indices and none twice."""
    y: NDArray[Any]
    """One label for each row, of any kind."""
    weight: Vector | None = None
    """One factor on C for each row; None: all of them are 1."""
    first: int = 0
    """The number of the first row among all rows of the data."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def numbers(self) -> Indices:
        """The number of each row among all rows of the data."""
        return np.arange(self.first, self.first + self.count, dtype=np.int64)

    @property
    def is_sparse(self) -> bool:
        """Whether the values are those of a CSR matrix."""
        return bool(sparse.issparse(self.X))


def nbytes_of(X: Any) -> int:
    """Bytes of a matrix."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def labels_of(y: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """The different labels, in order, and the place of each row's label among them."""
    if y.dtype.kind in "biuf":
        low, high = y.min(), y.max()
        above = y == high
        if low < high and bool(np.all(above | (y == low))):
            return np.array([low, high], y.dtype), above.astype(np.int64)
    labels, codes = np.unique(y, return_inverse=True)
    return labels, codes.astype(np.int64)
