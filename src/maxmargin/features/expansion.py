# SPDX-License-Identifier: BSD-3-Clause
"""The expansion of rows into monomials: its size before it is made, and the compiled loop that makes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin import core
from maxmargin.problem.rows import Rows
from maxmargin.tools.parameters import check_options

_LARGEST_INT32 = np.iinfo(np.int32).max
"""Up to this many stored values and columns, indices have 32 bits."""
_LARGE_PAGE = 2**21
"""The bytes of a large page of memory on most systems."""


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
        """The highest degree of a monomial."""
        return len(self.scales) - 1

    @property
    def size(self) -> int:
        """The number of columns of the result; exact, however many there are."""
        return self.size_of_row(self.columns)

    def size_of_row(self, stored: int) -> int:
        """The number of monomials of a row with so many stored values."""
        return self._sizes_of_rows([stored])[0]

    def _sizes_of_rows(self, stored: Sequence[int]) -> list[int]:
        lowest, degree = self.lowest, self.degree
        if self.once:
            return [sum(math.comb(m, k) for k in range(lowest, degree + 1)) for m in stored]
        # Multisets of up to ``degree`` of m columns are those of exactly that many of m + 1.
        up_to_degree = [math.comb(m + degree, degree) for m in stored]
        if lowest == 0:
            return up_to_degree
        return [
            size - math.comb(m + lowest - 1, lowest - 1)
            for m, size in zip(stored, up_to_degree, strict=True)
        ]

    def stored(self, X: Any) -> int:
        """The number of values of the result that take memory."""
        if not sparse.issparse(X):
            return int(X.shape[0]) * self.size
        rows = np.bincount(np.diff(X.indptr))
        lengths = np.flatnonzero(rows)
        return sum(map(mul, self._sizes_of_rows(lengths.tolist()), rows[lengths].tolist()))

    def bytes(self, X: Any, *, lazy: bool = False) -> int:
        """The bytes of the result and of one weight per column, which every linear model needs.

        ``lazy`` counts the weights alone, where the result is not written out.
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
        check_options(owner)
        needed, limit = self.bytes(X, lazy=lazy), owner.max_bytes
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
        indices, values = _place(offsets[-1], offsets.dtype), _place(offsets[-1], X.dtype)
        monomials.expand_sparse(rows.stored_data, offsets, indices, values, core.ALL_CORES)
        return _assembled(type(X), values, indices, offsets, (X.shape[0], self.size))

    def _offsets(self, X: Any) -> Any:
        """Where each row of the result begins; the total is known to fit into memory."""
        lengths = np.diff(X.indptr)
        sizes = np.array(self._sizes_of_rows(range(lengths.max(initial=0) + 1)), np.int64)
        each = sizes[lengths]
        offsets = np.zeros(X.shape[0] + 1, self._index_type(int(each.sum())))
        np.cumsum(each, out=offsets[1:])
        return offsets

    def _index_type(self, stored: int) -> np.dtype[Any]:
        return np.dtype(np.int32 if max(stored, self.size) <= _LARGEST_INT32 else np.int64)


def _place(count: int, dtype: np.dtype[Any]) -> Any:
    """Memory for a result, all of it in large pages where NumPy asks for these.

    An array usually begins and ends between two of them, and the small pages there take the system as long
    as several large ones. What is added on both sides is never touched.
    """
    page = _LARGE_PAGE // dtype.itemsize
    if count < 2 * page:  # NumPy does not ask
        return np.empty(count, dtype)
    whole = np.empty(count + 2 * page, dtype)
    skipped = -whole.ctypes.data % _LARGE_PAGE // dtype.itemsize
    return whole[skipped : skipped + count]


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
