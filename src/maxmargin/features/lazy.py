# SPDX-License-Identifier: BSD-3-Clause
"""The monomials of degree 2 as rows that are never written out (core/features/monomial_rows.hpp)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from maxmargin import core
from maxmargin.problem.rows import FormedRows, Rows

if TYPE_CHECKING:
    from maxmargin.features.expansion import Expansion

_CACHE = 2**25
"""Bytes up to which dense rows are read faster than formed. One number for all machines, so that the same
data give the same answer everywhere."""


class LazyMonomials(FormedRows):
    """The monomials of degree 2 of every row, formed when they are asked for.

    What ``Monomials(lazy=True)`` gives to ``LinearSVC``: rows with the columns of the written-out
    expansion, in its order, in the memory of ``base``. Indexing chooses rows; ``expand`` writes them out.
    """

    ndim = 2

    def __init__(self, base: Any, expansion: Expansion) -> None:
        """``base``: a checked CSR or dense matrix of float32 or float64; ``expansion``: of degree 2."""
        if expansion.degree != 2:
            raise ValueError(
                f"Only monomials of degree 2 are formed on the way. Got degree {expansion.degree} instead; "
                "write them out with Monomials(lazy=False)."
            )
        if base.shape[1] != expansion.columns:
            raise ValueError(
                f"The expansion is of rows with {expansion.columns} columns. Got {base.shape[1]} instead."
            )
        values = base.data if sparse.issparse(base) else base
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        # Multiplied as the core does it, a scale first.
        if not np.isfinite(max(map(abs, expansion.scales)) * largest * max(largest, 1.0)):
            raise ValueError(
                f"The products of X are beyond the range of float64: it has values up to {largest:.1e}. "
                "Scale the features."
            )
        self.base = base
        self.expansion = expansion

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns of the expansion."""
        return int(self.base.shape[0]), self.expansion.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the base's values; products are formed in float64."""
        dtype: np.dtype[Any] = self.base.dtype
        return dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> LazyMonomials:
        """Some of the rows: a slice, an array of indices or a mask."""
        if isinstance(rows, tuple):
            rows, *others = rows
            if any(other is not Ellipsis and other != slice(None) for other in others):
                raise IndexError("Columns cannot be chosen before they are written out: use expand().")
        return LazyMonomials(
            self.base[[rows] if isinstance(rows, int | np.integer) else rows], self.expansion
        )

    def expand(self) -> Any:
        """The written-out matrix, CSR for CSR: what ``Monomials(lazy=False)`` gives."""
        return self.expansion(self.base)

    def core_data(self) -> core.MonomialData:
        """Over the base in float64, which is copied where it is not like that."""
        base = sparse.csr_matrix(self.base, dtype=np.float64)
        expansion = self.expansion
        return core.MonomialData(
            Rows(base, check_finite=False).stored_data,
            expansion.lowest,
            list(expansion.scales),
            expansion.once,
            expansion.shared_repeats,
        )

    def __array__(self, dtype: Any = None, copy: Literal[True] | None = None) -> Any:
        raise TypeError(
            "These monomials are not written out, and only maxmargin's LinearSVC and LinearSVCCV read such "
            "rows. For others use Monomials(lazy=False), or SVC with kernel='poly' on the rows themselves."
        )

    def __repr__(self) -> str:
        rows, columns = self.shape
        return (
            f"<LazyMonomials: {rows:,} rows of {columns:,} monomials of {self.expansion.columns:,} columns>"
        )


def forming_pays(expansion: Expansion, X: Any, max_bytes: int) -> bool:
    """Whether rows that are not written out are expected to be the faster ones, or the only ones.

    Written-out sparse rows are visited value by value, each with its column: to form a product costs less,
    and fits of sparse data were 1.04 to 2.5 times as fast. Written-out dense rows are read eight values at
    a time: fits were 0.7 to 0.9 times as fast while they fit into a cache, 1.02 to 1.6 times beyond 32 MB.
    docs/features.md has the measurements.
    """
    if expansion.degree != 2:
        return False
    return sparse.issparse(X) or expansion.bytes(X) > min(max_bytes, _CACHE)
