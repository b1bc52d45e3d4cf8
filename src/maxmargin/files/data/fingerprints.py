# SPDX-License-Identifier: BSD-3-Clause
"""A short text that tells whether two data sets are the same, however they are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.features.lazy import LazyMonomials
from maxmargin.types import Indices, Vector

_VALUES_AT_A_TIME = 1 << 20
"""Values that are hashed at once, 8 MiB of numbers."""
_SIZE = 32
"""Bytes of a hash: nobody finds two data sets with the same one."""


def fingerprint(X: Any, y: Any) -> str:
    """``"blake2b:"`` and 64 hexadecimal digits that stand for the values, the shape and the labels.

    Dense or sparse, float32 or float64 of the same values, indices of 32 or 64 bits, sorted or not, zeros
    stored or left out, labels as integers or as floats: all give the same. It takes one pass and a few
    MB of memory. Of ``LazyMonomials`` it is that of the rows they are formed from.
    """
    if isinstance(X, LazyMonomials):
        X = X.base
    if not sparse.issparse(X):
        X = np.asarray(X)
    whole = RunningFingerprint()
    whole.add(X)
    return whole.of(X.shape[1], [np.asarray(y)])


class RunningFingerprint:
    """The same for rows that come piece by piece, and their labels after them."""

    def __init__(self) -> None:
        self._parts = [hashlib.blake2b(digest_size=_SIZE) for _ in range(3)]
        self._rows = 0

    def add(self, X: Any) -> None:
        """Take the next rows."""
        self._rows += X.shape[0]
        for rows in _parts_of(X):
            for part, numbers in zip(self._parts, rows, strict=True):
                part.update(_portable(numbers))

    def of(self, columns: int, labels: Iterable[NDArray[Any]]) -> str:
        """The text, given the number of columns and all labels, piece by piece."""
        whole = hashlib.blake2b(digest_size=_SIZE)
        whole.update(_portable(np.array((self._rows, columns), np.int64)))
        for part in self._parts:
            whole.update(part.digest())
        first = True
        for piece in labels:
            whole.update(_label_bytes(piece, first))
            first = False
        return f"blake2b:{whole.hexdigest()}"


def fingerprint_of(X: Any, y: Any) -> str:
    """The fingerprint of rows with labels, or without any: that is the one of labels that are all 0."""
    return fingerprint(X, np.zeros(X.shape[0]) if y is None else y)


def _parts_of(X: Any) -> Iterator[tuple[Vector, Indices, Indices]]:
    """Nonzero values, their columns, and how many each row has; a few rows at a time."""
    if sparse.issparse(X):
        X = X if X.format == "csr" else X.tocsr()
        offsets = X.indptr
    else:
        offsets = np.arange(X.shape[0] + 1) * X.shape[1]
    first, count = 0, X.shape[0]
    while first < count:
        last = int(np.searchsorted(offsets, offsets[first] + _VALUES_AT_A_TIME, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield _nonzeros(X[first:last])
        first = last


def _nonzeros(rows: Any) -> tuple[Vector, Indices, Indices]:
    if sparse.issparse(rows):
        rows.has_canonical_format = rows.has_sorted_indices = False  # what X says may be out of date
        rows.sum_duplicates()
        kept = rows.data != 0
        counts = np.diff(np.concatenate([[0], np.cumsum(kept)])[rows.indptr])
        values, columns = rows.data[kept], rows.indices[kept]
    else:
        row, columns = np.nonzero(rows)
        values = rows[row, columns]
        counts = np.bincount(row, minlength=len(rows))
    return values.astype(np.float64), columns.astype(np.int64), counts.astype(np.int64)


def _label_bytes(y: NDArray[Any], first: bool) -> bytes:
    if y.dtype.kind in "biuf":
        return b"numbers" * first + _portable(y.astype(np.float64) + 0.0)  # -0.0 becomes 0.0
    texts = [str(label).encode() for label in y.tolist()]
    return b"texts" * first + b"".join(b"%d:%b" % (len(text), text) for text in texts)


def _portable(numbers: NDArray[Any]) -> bytes:
    """The bytes of the numbers, in the same order on every machine."""
    return numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes()
