# SPDX-License-Identifier: BSD-3-Clause
"""``sum_s coefficient_s k(x_s, x)`` for rows x that were not trained on: how kernel models predict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.kernels.base import Function, Kernel, Precomputed
from maxmargin.problem.rows import Matrix, Rows
from maxmargin.types import Indices

_BLOCK_BYTES = 64_000_000
"""The bytes that one block of rows may need beside the data."""


class Among(NamedTuple):
    """Support vectors as places among the rows that were trained on, all of which a function is given."""

    rows: Any
    places: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Expansions:
    """Sums over support vectors: one for each row of ``coefficients`` and each segment.

    Segments are consecutive shares of the support vectors. One-vs-one has one for each class, so that all
    pairs share the values of the kernel.
    """

    kernel: Kernel
    support: Any
    """The support vectors, dense or CSR; with a precomputed kernel their columns in the matrix, and with a
    function ``Among`` the rows that were trained on."""
    coefficients: Matrix
    segments: Indices

    def __call__(self, X: Any, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``out[segment * len(coefficients) + r, i]``, for all rows i of X.

        In single precision where both X and the support vectors are, and no value overflows there, else in
        double; sums are always in double. Memory beside the answer is bounded.
        """
        given = isinstance(self.kernel, Precomputed | Function)
        count = X.shape[0] if hasattr(X, "shape") else len(X)
        sums = len(self.coefficients) * (len(self.segments) - 1)
        out = np.zeros((sums, count))
        if not self.coefficients.shape[1]:
            return out
        support = None if given else self._support_like(X)
        width = self.coefficients.shape[1] if given else sums
        if isinstance(self.kernel, Function):
            rows = self.support.rows
            width = max(1, rows.shape[0] if hasattr(rows, "shape") else len(rows))
        for block in row_blocks(count, max(1, width)):
            if support is None:
                out[:, block] = self._sums_of(self._given_values(X[block]))
            else:
                found = self._compiled(support, _in_form_of(support, X[block]), budget)
                if support.dtype == np.float32 and not np.isfinite(found).all():
                    support = support.astype(np.float64)
                    found = self._compiled(support, _in_form_of(support, X[block]), budget)
                out[:, block] = found
        return out

    def _support_like(self, X: Any) -> Any:
        """The support vectors in the precision in which they will meet X."""
        dtype = np.result_type(self.support.dtype, X.dtype)
        return self.support.astype(dtype, copy=False)

    def _compiled(self, support: Any, X: Any, budget: core.Budget) -> Matrix:
        out = np.empty((len(self.coefficients) * (len(self.segments) - 1), X.shape[0]))
        queries = Rows(X, check_finite=False, keep_zeros=True)
        self.kernel.refuse_negative(queries)
        core.kernel_expansions(
            self.kernel.compiled,
            Rows(support, check_finite=False, keep_zeros=True).stored_data,
            np.arange(support.shape[0]),
            queries.stored_data,
            np.arange(X.shape[0]),
            out,
            coefficients=self.coefficients,
            segments=self.segments,
            single=support.dtype == np.float32,
            budget=budget,
        )
        return out

    def _given_values(self, X: Any) -> Matrix:
        if isinstance(self.kernel, Function):
            return self.kernel(X, self.support.rows)[:, self.support.places]
        return np.asarray(X[:, self.support], np.float64)

    def _sums_of(self, values: Matrix) -> Matrix:
        parts = zip(self.segments[:-1], self.segments[1:], strict=True)
        return np.concatenate(
            [self.coefficients[:, begin:end] @ values[:, begin:end].T for begin, end in parts]
        )


def row_blocks(count: int, width: int, at_least: int = 256) -> Iterator[slice]:
    """Shares of so many rows, for each of which so many numbers are needed; ``at_least`` so many each."""
    size = max(at_least, _BLOCK_BYTES // (8 * width))
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))


def _in_form_of(support: Any, X: Any) -> Any:
    """X as the core wants it beside the support vectors: both dense, or both sparse with equal types."""
    if not sparse.issparse(support):
        dense = X.toarray() if sparse.issparse(X) else X
        return np.asarray(dense, support.dtype)
    matrix = sparse.csr_matrix(X, dtype=support.dtype)
    if matrix.indices.dtype != support.indices.dtype:
        matrix.indices = matrix.indices.astype(support.indices.dtype)
        matrix.indptr = matrix.indptr.astype(support.indices.dtype)
    return matrix
