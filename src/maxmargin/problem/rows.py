# SPDX-License-Identifier: BSD-3-Clause
"""The data of a problem, one row per example, read in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.types import Indices, Tell, Vector


class FormedRows(ABC):
    """Rows whose values are formed when they are read; ``Rows`` takes them like a matrix."""

    @abstractmethod
    def core_data(self) -> core.MonomialData:
        """As the core reads them."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Of what they are formed from."""


class Rows:
    """A read-only view of ``X``: dense or sparse, float32 or float64, 32- or 64-bit indices.

    Read in place, without any copy: C-ordered matrices (also a slice of columns of one) and CSR
    matrices with sorted indices and no duplicates, of float32 or float64. Copied once: F-ordered
    matrices (to C order), CSC and other sparse formats (to CSR), CSR with unsorted or repeated
    indices, column indices of 64 bits (to 32, enough for 2,147,483,647 columns), large dense data of which
    at most one value in four is not zero (to CSR, a smaller copy), and values of any other type (to
    float64). Sparse data are never made dense. ``FormedRows`` are never written out.

    NaN and infinite values are refused; ``check_finite=False`` trusts that there are none. ``keep_zeros``
    leaves dense data dense, however many zeros there are.
    """

    kernel_is_none: bool = False
    """Whether the rows are seen through a function that is known to be no kernel: that proves nothing."""

    def __init__(self, X: Any, *, check_finite: bool = True, keep_zeros: bool = False) -> None:
        self.data: core.Data | core.MonomialData
        self.dtype: np.dtype[Any]
        if isinstance(X, FormedRows):
            self.data, self.dtype = X.core_data(), X.dtype
            return  # what they are formed from has been checked
        if sparse.issparse(X):
            matrix = X if X.format == "csr" else X.tocsr()
            if matrix.dtype not in (np.float32, np.float64):
                matrix = matrix.astype(np.float64)
            self.data = data = _sparse_data(matrix)
            if not data.sorted:
                # Only now: SciPy trusts indices that the core has just checked.
                matrix = matrix.copy() if matrix is X else matrix
                matrix.has_canonical_format = matrix.has_sorted_indices = False
                matrix.sum_duplicates()
                self.data = _sparse_data(matrix)
            values = matrix.data
            self.dtype = matrix.dtype
        else:
            values = _row_major(X)
            dense = core.Data.dense(values)
            self.data = dense if keep_zeros else dense.without_zeros(core.ALL_CORES) or dense
            self.dtype = values.dtype
        if check_finite:
            from sklearn.utils import assert_all_finite  # slow to import, quick to check

            assert_all_finite(values, input_name="X")

    def take(self, order: Indices) -> Rows:
        """A copy of some rows, in the order given."""
        taken = object.__new__(Rows)
        taken.data, taken.dtype = self.stored_data.take(order), self.dtype
        return taken

    @property
    def stored_data(self) -> core.Data:
        """The data, for what reads values in place and cannot do with rows that are formed."""
        if isinstance(self.data, core.MonomialData):
            raise ValueError("Stored rows are needed here: write the monomials out, with expand().")
        return self.data

    @property
    def count(self) -> int:
        """Number of rows, n."""
        return self.data.count

    @property
    def columns(self) -> int:
        """Number of columns, d."""
        return self.data.columns

    @property
    def stored(self) -> int:
        """Number of stored values: the cost of one pass."""
        return self.data.stored

    @cached_property
    def squared_norms(self) -> Vector:
        """``|x_i|^2`` of every row."""
        out = np.empty(self.count)
        core.squared_norms(self.data, out, core.ALL_CORES)
        return out

    @cached_property
    def mean_squared_norm(self) -> float:
        """Of all rows."""
        return float(self.squared_norms.mean())

    @cached_property
    def without_private_columns(self) -> tuple[core.CompactData, Vector] | None:
        """A smaller float32 copy of stored rows for dual methods, or None where it would not pay.

        Columns that occur in one row only are left out; the second part holds, for every row, the sum
        of their squared values. See core/data/private_columns.hpp.
        """
        if isinstance(self.data, core.MonomialData):
            return None
        return core.without_private_columns(self.data, core.ALL_CORES)

    def squared_norm(self, w: Vector) -> float:
        """``|w|^2``."""
        return core.dot(w, w)

    def score_error(self, w: Vector) -> float:
        """How far a score can be from the true one: not at all, beyond rounding."""
        return 0.0

    def scores(self, w: Vector, budget: core.Budget = core.ALL_CORES, tell: Tell | None = None) -> Vector:
        """``<w, x_i>`` of every row: one pass, none for w = 0."""
        if not w.any():
            return np.zeros(self.count)
        out = np.empty(self.count)
        core.scores(self.data, np.ascontiguousarray(w, np.float64), out, budget)
        return out

    def combine(self, coefficients: Vector, budget: core.Budget = core.ALL_CORES) -> Vector:
        """``sum_i coefficient_i x_i``: one pass over the rows whose coefficient is not zero."""
        out = np.empty(self.columns)
        core.combine(self.data, np.ascontiguousarray(coefficients, np.float64), out, budget)
        return out


def _sparse_data(matrix: Any) -> core.Data:
    values, indices, offsets = map(np.ascontiguousarray, (matrix.data, matrix.indices, matrix.indptr))
    if indices.dtype != offsets.dtype:
        wider = np.result_type(indices, offsets)
        indices, offsets = indices.astype(wider), offsets.astype(wider)
    return core.Data.sparse(values, indices, offsets, matrix.shape[1])


def _row_major(X: Any) -> NDArray[Any]:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"Rows need a matrix with one row per example. Got an array of {array.ndim} dimensions "
            "instead. Reshape it with X.reshape(-1, 1) if it has a single feature."
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    unit = array.dtype.itemsize
    if (array.shape[1] > 1 and array.strides[1] != unit) or array.strides[0] % unit:
        array = np.ascontiguousarray(array)
    return array
