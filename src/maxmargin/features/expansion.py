# SPDX-License-Identifier: BSD-3-Clause
"""The expansion of rows into monomials: its size before it is made, and the compiled loop that makes it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin import core
from maxmargin.rows import Rows

_LARGEST_INT32 = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Expansion:
    """All monomials of degrees ``lowest`` to ``len(scales) - 1`` of rows with so many columns.

    They come by degree and then in the order of their columns: 1, x0, x1, ..., x0^2, x0 x1, ... Those of
    degree k are multiplied by ``scales[k]``. ``once``: every column at most once in a monomial.
    ``shared_repeats``: x^p is divided by sqrt(p!), as the polynomial kernel needs it.
    """

    columns: int
    lowest: int
    scales: tuple[float, ...]
    once: bool = False
    shared_repeats: bool = False

    @property
    def degree(self) -> int:
        """The highest one."""
        return len(self.scales) - 1

    @property
    def size(self) -> int:
        """Columns of the result; exact, however many."""
        return self.size_of_row(self.columns)

    def size_of_row(self, stored: int) -> int:
        """Monomials of a row with so many stored values."""
        return sum(self._size_of_degree(stored, k) for k in range(self.lowest, self.degree + 1))

    def _size_of_degree(self, stored: int, k: int) -> int:
        if self.once or k == 0:
            return math.comb(stored, k)
        return math.comb(stored + k - 1, k)

    def stored(self, X: Any) -> int:
        """Values of the result that take memory."""
        if not sparse.issparse(X):
            return int(X.shape[0]) * self.size
        rows = np.bincount(np.diff(X.indptr))
        return sum(self.size_of_row(int(length)) * int(rows[length]) for length in np.flatnonzero(rows))

    def bytes(self, X: Any, *, lazy: bool = False) -> int:
        """Memory of the result, and of one weight per column: no linear model goes without.

        ``lazy``: of the weights alone, where the result is not written out.
        """
        if lazy:
            return 8 * self.size
        stored = self.stored(X)
        each = int(X.dtype.itemsize)
        if sparse.issparse(X):
            each += self._index_type(stored).itemsize
        return stored * each + 8 * self.size

    def refuse_too_large(self, owner: Any, X: Any, *, lazy: bool = False) -> None:
        """Raises if the result would take more than the ``max_bytes`` of the map that asks."""
        from maxmargin.estimators.parameters import check_count  # with it all of scikit-learn

        limit = check_count(owner, "max_bytes", 1)
        needed = self.bytes(X, lazy=lazy)
        if needed > limit:
            what = "their weights alone" if lazy else "for this X"
            raise ValueError(
                f"{type(owner).__name__} would make {self.size:,} columns out of {self.columns:,}, and "
                f"{what} take {_in_words(needed)}; 'max_bytes' allows {_in_words(limit)}. Raise it, use a "
                'lower degree or fewer columns, or go without it: PolynomialSketch, or kernel="poly".'
            )

    def __call__(self, X: Any) -> Any:
        """The monomials of every row; CSR for CSR."""
        rows = Rows(X, check_finite=False, keep_zeros=True)
        monomials = core.Monomials(
            self.columns, self.lowest, list(self.scales), self.once, self.shared_repeats
        )
        if not sparse.issparse(X):
            out = np.empty((X.shape[0], self.size), X.dtype)
            monomials.expand_dense(rows.stored_data, out, core.ALL_CORES)
            return out
        if rows.stored != X.nnz:  # columns that a row had twice are one
            X = X.copy()
            X.sum_duplicates()
        offsets = self._offsets(X)
        indices, values = np.empty(offsets[-1], offsets.dtype), np.empty(offsets[-1], X.dtype)
        monomials.expand_sparse(rows.stored_data, offsets, indices, values, core.ALL_CORES)
        return _assembled(type(X), values, indices, offsets, (X.shape[0], self.size))

    def _offsets(self, X: Any) -> Any:
        """Where each row of the result begins; the total is known to fit into memory."""
        lengths = np.diff(X.indptr)
        sizes = np.array([self.size_of_row(m) for m in range(lengths.max(initial=0) + 1)], np.int64)
        offsets = np.zeros(X.shape[0] + 1, self._index_type(self.stored(X)))
        np.cumsum(sizes[lengths], out=offsets[1:])
        return offsets

    def _index_type(self, stored: int) -> np.dtype[Any]:
        return np.dtype(np.int32 if max(stored, self.size) <= _LARGEST_INT32 else np.int64)


def _assembled(kind: Any, values: Any, indices: Any, offsets: Any, shape: tuple[int, int]) -> Any:
    """A CSR matrix of arrays that are known to fit; SciPy would read every index again."""
    matrix = kind(shape, dtype=values.dtype)
    matrix.data, matrix.indices, matrix.indptr = values, indices, offsets
    matrix.has_canonical_format = True
    return matrix


def _in_words(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            # Whole numbers: the quotient of integers beyond all floats would overflow.
            return f"{count // size:,} {unit}" if count >= 100 * size else f"{count / size:.1f} {unit}"
    return f"{count} bytes"
