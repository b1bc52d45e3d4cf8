# SPDX-License-Identifier: BSD-3-Clause
"""All rows in memory, packed: where that has room for them so, the source is read once.

Truth values, categories, whole numbers and decimals of few digits take few bits each, if a table for each
column says which values there are (core/data/codes.hpp). The first pass packs chunk after chunk, and every
later one unpacks them, to the last bit: it is the same pass, over the same chunks, without reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.chunks.chunk import Chunk, labels_of, nbytes_of
from maxmargin.chunks.passes import in_order
from maxmargin.problem.rows import Rows
from maxmargin.types import Vector

T = TypeVar("T")

_WORTH = 1 / 4
"""The share of their bytes that packed rows take, at most, to be worth the time."""
_PROBED = 5000
"""Rows of the first chunk that are packed to see what is to be gained: enough to tell few values from
many."""


@dataclass(frozen=True, eq=False)
class PackedChunk:
    """The rows of one chunk, in bits."""

    book: core.Codebook
    words: NDArray[np.uint32]
    widths: NDArray[np.uint8]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    stored: int | None
    """Values of sparse rows; None: the rows are dense."""
    labels: NDArray[Any]
    """Those that occur."""
    codes: NDArray[Any]
    """Their places among these, of each row: bits, where there are two."""
    weight: Vector | None
    first: int

    @classmethod
    def of(cls, book: core.Codebook, chunk: Chunk) -> PackedChunk:
        """A chunk, with the tables that more of its kind share."""
        words, widths = book.pack(Rows(chunk.X, check_finite=False, keep_zeros=True).stored_data)
        labels, codes = labels_of(chunk.y)
        stored = int(chunk.X.nnz) if chunk.is_sparse else None
        return cls(
            book,
            words,
            widths,
            chunk.X.shape,
            chunk.X.dtype,
            stored,
            labels,
            np.packbits(codes.astype(np.uint8))
            if len(labels) <= 2
            else codes.astype(np.min_scalar_type(len(labels))),
            chunk.weight,
            chunk.first,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of what is held, without the tables."""
        return sum(each.nbytes for each in (self.words, self.widths, self.codes)) + (
            0 if self.weight is None else self.weight.nbytes
        )

    def unpacked(self) -> Chunk:
        """The chunk as it was."""
        rows, columns = self.shape
        X: Any
        if self.stored is None:
            X = np.empty(self.shape, self.dtype)
            self.book.unpack_dense(self.words, self.widths, X)
        else:
            values, indices = np.empty(self.stored, self.dtype), np.empty(self.stored, np.int32)
            offsets = np.empty(rows + 1, np.int32)
            self.book.unpack_sparse(self.words, self.widths, values, indices, offsets)
            X = sparse.csr_array((values, indices, offsets), shape=(rows, columns))
            X.has_sorted_indices = X.has_canonical_format = True
        codes = np.unpackbits(self.codes, count=rows) if len(self.labels) <= 2 else self.codes
        return Chunk(X, self.labels[codes], self.weight, self.first)


class Packing:
    """What the first pass packs, as long as all rows may have room.

    It hangs on the rows, their order and the limit alone, so that the number of workers changes nothing.
    """

    def __init__(self, limit: int, workers: int = 1) -> None:
        self.limit, self.workers = limit, workers
        """Bytes that the packed rows may take, and the threads that unpack them."""
        self.chunks: list[PackedChunk] = []
        self.given_up = False
        self._book: core.Codebook | None = None
        self._bytes = self._rows = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all that is held."""
        return self._bytes + (0 if self._book is None else self._book.nbytes)

    def take(self, chunks: Sequence[Chunk]) -> None:
        """Pack the next chunks; or give all up where there is no room."""
        for chunk in chunks:
            if not self.given_up and not self._takes(chunk):
                self.chunks, self._book, self._bytes, self.given_up = [], None, 0, True

    def _takes(self, chunk: Chunk) -> bool:
        like = chunk.X.dtype, chunk.is_sparse, chunk.columns
        if self._book is None:
            some = replace(chunk, X=chunk.X[:_PROBED], y=chunk.y[:_PROBED])
            if not self._gains(PackedChunk.of(_book_for(chunk), some), some):
                return False
            self._book, self._like = _book_for(chunk), like
        if like != self._like:
            return False
        packed = PackedChunk.of(self._book, chunk)
        self.chunks.append(packed)
        self._bytes, self._rows = self._bytes + packed.nbytes, self._rows + chunk.count
        return self.nbytes <= self.limit and self._gains(packed, chunk)

    def _gains(self, packed: PackedChunk, chunk: Chunk) -> bool:
        return packed.words.nbytes <= _WORTH * nbytes_of(chunk.X)

    def passes(self) -> PackedPasses | None:
        """Passes over what is held, to which nothing more is added; None where that are not all rows."""
        if self._book is None:
            return None
        self._book.close()
        return PackedPasses(self.chunks, self._rows, self.limit, self.workers)


def _book_for(chunk: Chunk) -> core.Codebook:
    return core.Codebook(chunk.columns, chunk.X.dtype == np.float32)


class PackedPasses:
    """Passes over packed chunks, each of which is unpacked by the task that needs it."""

    def __init__(self, chunks: list[PackedChunk], rows: int, limit: int, workers: int) -> None:
        self._chunks, self._rows, self._limit, self._workers = chunks, rows, limit, workers

    def over(
        self, task: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None
    ) -> Iterator[T]:
        """``task(chunk, *arguments)`` of every chunk, in the order of the chunks."""
        return in_order(self._chunks, self._workers, self._limit, _of_unpacked, (task, *arguments), each)

    def rows(self) -> int:
        """The number of all rows."""
        return self._rows


def _of_unpacked(packed: PackedChunk, task: Callable[..., T], *arguments: Any) -> T:
    return task(packed.unpacked(), *arguments)
