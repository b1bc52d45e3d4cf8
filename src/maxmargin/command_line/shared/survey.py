# SPDX-License-Identifier: BSD-3-Clause
"""What can be said about data in one pass over their pieces, in memory that follows their columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files import DataSet
from maxmargin.types import Vector

MOST_LABELS = 10_000
"""Different labels that are counted, at most: more are values, not classes."""
MOST_FINGERPRINTS = 20_000_000
"""Rows that are compared with each other, at most: their prints take 8 bytes each."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, whose multiples spread over all 64 bits (splitmix64)."""


@dataclass
class Survey:
    """Counts and ranges, updated piece by piece."""

    rows: int = 0
    stored: int = 0
    """The number of values that are not zero."""
    skipped: int = 0
    empty_rows: int = 0
    labels: dict[Any, int] = field(default_factory=dict[Any, int])
    too_many_labels: bool = False
    feature_names: list[str] | None = None
    dense: bool = False
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """How many values of each column are not zero."""
    lowest: Vector = field(default_factory=lambda: np.zeros(0))
    """The lowest of those values in each column; ``highest`` has the highest."""
    highest: Vector = field(default_factory=lambda: np.zeros(0))
    _prints: list[tuple[NDArray[np.uint64], NDArray[Any]]] = field(default_factory=list[Any])

    def add(self, piece: DataSet) -> None:
        """Take in the next rows."""
        matrix = sparse.csr_array(piece.X)
        matrix.eliminate_zeros()
        self.dense = not sparse.issparse(piece.X)
        self.feature_names = piece.feature_names
        self._grow(matrix.shape[1])
        indices, values = matrix.indices, np.asarray(matrix.data, np.float64)
        self.counts[: matrix.shape[1]] += np.bincount(indices, minlength=matrix.shape[1])
        np.minimum.at(self.lowest, indices, values)
        np.maximum.at(self.highest, indices, values)
        per_row = np.diff(matrix.indptr)
        self.rows += len(per_row)
        self.stored += len(values)
        self.skipped += piece.skipped
        self.empty_rows += int(np.count_nonzero(per_row == 0))
        self._add_labels(piece.y)
        self._add_prints(matrix, piece.y)

    def _grow(self, columns: int) -> None:
        more = columns - len(self.counts)
        if more > 0:
            self.counts = np.concatenate([self.counts, np.zeros(more, np.int64)])
            self.lowest = np.concatenate([self.lowest, np.full(more, np.inf)])
            self.highest = np.concatenate([self.highest, np.full(more, -np.inf)])

    def _add_labels(self, labels: NDArray[Any] | None) -> None:
        if labels is None or self.too_many_labels:
            return
        for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
            self.labels[label.item()] = self.labels.get(label.item(), 0) + int(count)
        self.too_many_labels = len(self.labels) > MOST_LABELS

    def _add_prints(self, matrix: Any, labels: NDArray[Any] | None) -> None:
        """A 64-bit print of every row, to find equal rows with different labels in the end."""
        if labels is None or self.rows > MOST_FINGERPRINTS:
            self._prints.clear()
            return
        bits = np.ascontiguousarray(matrix.data, np.float64).view(np.uint64)
        mixed = _scrambled(bits + (matrix.indices.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        prints = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
        self._prints.append((prints, labels))

    @property
    def columns(self) -> int:
        """The number of columns: the largest index, or what the file says."""
        return len(self.counts)

    @property
    def empty_columns(self) -> NDArray[np.intp]:
        """The columns in which all values are zero."""
        return np.flatnonzero(self.counts == 0)

    @property
    def constant_columns(self) -> NDArray[np.intp]:
        """The columns with the same value, not zero, in every row."""
        same = self.lowest == self.highest
        return np.flatnonzero((self.counts == self.rows) & same & (self.counts > 0))

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest value, zeros included where there are any."""
        used = self.counts > 0
        low, high = self.lowest[used].min(initial=np.inf), self.highest[used].max(initial=-np.inf)
        if self.stored < self.rows * self.columns:
            low, high = min(low, 0.0), max(high, 0.0)
        return float(low), float(high)

    @property
    def scales(self) -> Vector:
        """The largest size of any value of each column."""
        return np.where(self.counts > 0, np.maximum(np.abs(self.lowest), np.abs(self.highest)), 0.0)

    def contradictions(self) -> int | None:
        """Rows with the values of another row and a different label; None if there are too many rows."""
        if not self._prints:
            return None
        prints = np.concatenate([prints for prints, _ in self._prints])
        _, codes = np.unique(np.concatenate([labels for _, labels in self._prints]), return_inverse=True)
        order = np.lexsort((codes.ravel(), prints))
        prints, codes = prints[order], codes.ravel()[order]
        starts = np.flatnonzero(np.concatenate([[True], prints[1:] != prints[:-1]]))
        ends = np.concatenate([starts[1:], [len(prints)]])
        mixed = codes[starts] != codes[ends - 1]
        return int((ends - starts)[mixed].sum())

    @property
    def bytes_as_csr(self) -> int:
        """The bytes of a CSR matrix of float64 values and the narrowest indices that fit."""
        width = 4 if max(self.columns, self.stored) < 2**31 else 8
        return self.stored * (8 + width) + (self.rows + 1) * width


def _scrambled(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits that depend on all bits of the number, so that sums of them hardly ever agree (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))
