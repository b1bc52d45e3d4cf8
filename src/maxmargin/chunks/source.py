# SPDX-License-Identifier: BSD-3-Clause
"""Where chunks come from: arrays, lists of parts, files, and whatever can be read from its beginning."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.chunks.chunk import BYTES_BESIDE, Chunk

if TYPE_CHECKING:
    from maxmargin.chunks.checkpoint import Checkpoint
    from maxmargin.chunks.from_files import FileParts
    from maxmargin.chunks.survey import Facts, Sample
    from maxmargin.features.base import FeatureMap
    from maxmargin.gpu.cards import Card

CHUNK_BYTES = 1 << 24
"""Bytes of a chunk of which nobody has said how many rows it has: 16 MB, read in some milliseconds, and far
more than a pass needs to set out for one."""
_CHUNKS_IN_MEMORY = 64
"""Chunks that the memory of a fit has room for, at least: some are read ahead, each is copied."""
_LEAST_ROWS = 256
"""Rows of a chunk, at least, also where they are very long."""

Part = tuple[Any, Any, NDArray[Any] | None]
"""X, y and weights or None, of any number of rows."""


class Chunks:
    """Data in chunks of a fixed number of rows, for fits that read them several times.

    Parameters
    ----------
    source
        (X, y) or (X, y, weights), arrays or memory maps; a list of such parts; the path of a data file, a
        folder of them, a pattern (``"folder/*.parquet"``), or a list of these, of any format that
        ``maxmargin.files`` reads; or a function without arguments that returns an iterator over parts, anew
        at each call. A part that is empty is passed over.
    rows : int, optional
        Rows of a chunk; by default the blocks of packed data, and else as many as make 16 MB; or as many as
        make a 64th of ``memory``.
    memory : int, optional
        Bytes that a fit should take beside the program; by default half of what is free when it begins. The
        blocks of a packed file count, and parts that come from elsewhere do not.
    columns : int, optional
        Columns of X, where LIBSVM text does not say: without it the first pass over such files looks.
    label : str, optional
        The label column of tables.
    checkpoint : path, optional
        A file that keeps the state of a fit after every pass, whole or not at all. A fit of the same data
        and problem goes on from it; after one of others it is refused.
    **options
        For files, the other arguments of ``maxmargin.files.read``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Chunks, LinearSVC
    >>> def parts():
    ...     for seed in range(3):
    ...         generator = np.random.default_rng(seed)
    ...         X = generator.normal(size=(1000, 5))
    ...         yield X, X[:, 0] + 0.3 * generator.normal(size=1000) > 0
    >>> model = LinearSVC(loss="hinge").fit(Chunks(parts))
    >>> bool(model.certificate_.relative_gap <= 1e-4)
    True
    """

    def __init__(
        self,
        source: Any,
        *,
        rows: int | None = None,
        memory: int | None = None,
        columns: int | None = None,
        label: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        for name, value in (("rows", rows), ("memory", memory), ("columns", columns)):
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be a number above 0, or None. Got {value!r} instead.")
        self.chunk_rows, self.memory = rows, memory
        self._parts, self.rows = _started_again(source, columns, label, options)
        self._columns = columns
        self._checkpoint = checkpoint
        self.facts: Facts | None = None
        """What a fit has found out about the rows."""
        self.surveyed: tuple[Facts, Sample] | None = None
        """What the pass has found out from which a feature map has learnt: the first one of a fit."""
        self._maps: tuple[FeatureMap, ...] = ()
        self._card: Card | None = None

    @property
    def kept_in(self) -> Checkpoint | None:
        """Where the state of a fit is kept; None where it is not."""
        if self._checkpoint is None:
            return None
        from maxmargin.chunks.checkpoint import Checkpoint
        from maxmargin.chunks.mapped import digest_of

        identity = None if self.files is None else self.files.identity
        for features in self._maps:
            identity = f"{identity} through {digest_of(features)}"
        if self._card is not None:  # what a CPU maps has other last digits, and a proof is about one kind
            identity = f"{identity} on {self._card.name}"
        return Checkpoint(self._checkpoint, identity)

    @property
    def files(self) -> FileParts | None:
        """The files that the rows come from; None where they come from elsewhere."""
        from maxmargin.chunks.from_files import FileParts

        return self._parts if isinstance(self._parts, FileParts) else None

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns of tables, once they have been read; a map's have none."""
        return None if self.files is None or self._maps else self.files.feature_names

    def mapped(self, features: FeatureMap, rows: int | None = None) -> Chunks:
        """The same rows as a fitted feature map makes them, in chunks of so many rows where none were set.

        ``make_pipeline(Nystroem(1000), LinearSVC()).fit(Chunks(...))`` fits the map, too, on rows that are
        drawn from every chunk.
        """
        other = copy.copy(self)
        other._maps, other.surveyed = (*self._maps, features), None
        other.chunk_rows = self.chunk_rows or rows
        return other

    def mapped_on(self, card: Card) -> Chunks:
        """The same rows, which go through their feature maps on a GPU and come back, chunk after chunk.

        One chunk is mapped at a time, all of it in the same way in every pass: so every pass sees the same
        bits, and sums of different passes are about the same problem.
        """
        if not self._maps:
            raise ValueError(
                "On a GPU chunks are mapped, and these have no map: sums over rows as they are read are "
                "made on the CPU. Leave device out, or put RandomFourier or Nystroem before in a pipeline."
            )
        other = copy.copy(self)
        other._card = card
        return other

    def __iter__(self) -> Iterator[Chunk]:
        """All chunks, from the beginning."""
        for chunk in self._as_read():
            yield through(self._maps, chunk, self._card)

    def _as_read(self) -> Iterator[Chunk]:
        """All chunks, before they go through a feature map."""
        if self.files is not None and self.files.is_packed and self.chunk_rows is None:
            yield from self._blocks(self.files)
            return
        first, held, count = 0, [], 0
        for part in self._parts():
            X, y, weight = _checked(part, first + count)
            if not len(y):
                continue
            if self._columns is None:
                self._columns = X.shape[1]
            if X.shape[1] != self._columns:
                raise ValueError(
                    f"All rows must have the same columns. From row {first + count} on there are "
                    f"{X.shape[1]}, and {self._columns} before."
                )
            if self.chunk_rows is None:
                self.chunk_rows = rows_for(_row_bytes(X), self.memory)
            begin = 0
            while begin < len(y):
                end = min(len(y), begin + self.chunk_rows - count)
                held.append((X[begin:end], y[begin:end], None if weight is None else weight[begin:end]))
                count, begin = count + end - begin, end
                if count == self.chunk_rows:
                    yield joined(held, first)
                    first, held, count = first + count, [], 0
        if held:
            yield joined(held, first)
            first += count
        if not first:
            raise ValueError(
                "There is no row in these chunks. Give at least one row of each of two classes."
            )
        self.rows = first

    def _blocks(self, files: FileParts) -> Iterator[Chunk]:
        """The blocks of packed data, or equal parts of them where memory is short."""
        if self.memory is not None:
            files.most_bytes = max(1, self.memory // _CHUNKS_IN_MEMORY)
        first = 0
        for part in files():
            X, y, weight = part
            self._columns = self._columns or X.shape[1]
            if X.shape[1] != self._columns:
                raise ValueError(
                    f"columns must be {X.shape[1]}, as many as the file has. Got {self._columns} instead."
                )
            yield joined([(X, y, None if weight is None else weight.astype(np.float64))], first)
            first += len(y)


def _started_again(
    source: Any, columns: int | None, label: str | None, options: dict[str, Any]
) -> tuple[Callable[[], Iterable[Any]], int | None]:
    """What begins anew at each call, and the number of all rows where it is known without reading."""
    if options and not (isinstance(source, (str, os.PathLike)) or _are_paths(source)):
        raise ValueError(f"Only files take the options {', '.join(sorted(options))}. Leave them out.")
    if callable(source):
        return source, None
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if isinstance(source, tuple) and len(source) in (2, 3) and not isinstance(source[0], tuple):
        source = [source]
    if isinstance(source, Sequence) and source:
        if _are_paths(source):
            from maxmargin.chunks.from_files import FileParts

            parts = FileParts([os.fspath(each) for each in source], columns, label, options)
            return parts, parts.rows
        if all(isinstance(each, tuple) and len(each) in (2, 3) for each in source):
            return lambda: source, sum(int(each[0].shape[0]) for each in source)
    raise ValueError(
        "Chunks are made from (X, y), (X, y, weights), a list of such parts, paths of files, or a function "
        f"that returns an iterator over parts, anew at each call. Got {type(source).__name__} instead. An "
        "iterator can be read once only: wrap what makes it into a function."
    )


def _are_paths(source: Any) -> bool:
    return isinstance(source, Sequence) and all(isinstance(each, (str, os.PathLike)) for each in source)


def _checked(part: Any, first: int) -> Part:
    """A part as arrays, its lengths compared."""
    if not (isinstance(part, tuple) and len(part) in (2, 3)):
        raise ValueError(f"A part must be (X, y) or (X, y, weights). Got {type(part).__name__} instead.")
    X, y, weight = part if len(part) == 3 else (*part, None)
    if not sparse.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix. The part from row {first} on has {X.ndim} dimensions.")
    elif X.format != "csr":
        X = X.tocsr()
    y = np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(
            f"y must hold one label for each of {X.shape[0]} rows from row {first} on. Got an array of "
            f"shape {y.shape} instead."
        )
    if weight is not None:
        weight = np.asarray(weight, np.float64)
        if weight.shape != y.shape:
            raise ValueError(
                f"There must be one weight for each of {len(y)} rows from row {first} on. Got an array of "
                f"shape {weight.shape} instead."
            )
    return X, y, weight


def rows_for(row_bytes: float, memory: int | None) -> int:
    """How many rows of so many bytes make a chunk."""
    most = CHUNK_BYTES / max(1.0, row_bytes)
    if memory is not None:
        most = min(most, memory / _CHUNKS_IN_MEMORY / (BYTES_BESIDE + row_bytes))
    return max(_LEAST_ROWS, int(most))


def _row_bytes(X: Any) -> float:
    """Bytes of the values of a row, on average."""
    size = (X.data.nbytes + X.indices.nbytes) if sparse.issparse(X) else X.nbytes
    return float(size) / max(1, int(X.shape[0]))


def through(maps: Sequence[FeatureMap], chunk: Chunk, card: Card | None = None) -> Chunk:
    """A chunk as feature maps make it, one after the other; its rows are checked by whoever reads them."""
    for features in maps:
        if chunk.columns != features.n_features_in_:
            raise ValueError(
                f"{type(features).__name__} was fitted to {features.n_features_in_} columns. Got "
                f"{chunk.columns} in the rows from {chunk.first} on. Fit it to such rows."
            )
        chunk = replace(chunk, X=mapped_rows(features, chunk.X, card))
    return chunk


def mapped_rows(features: FeatureMap, X: Any, card: Card | None = None) -> Any:
    """Rows as a feature map makes them, on a GPU if one is given; what stands for a kernel is in double."""
    from maxmargin.features.dense_maps import in_double

    X = in_double(X) if features.learns_from_a_sample else X
    if card is None:
        return features._map(X)
    from maxmargin.gpu.maps import mapped_and_back

    return mapped_and_back(features, card, X)


def joined(held: list[Part], first: int) -> Chunk:
    """Parts as one chunk, in a form that the core reads in place."""
    weighted = any(part[2] is not None for part in held)
    weight = None
    if weighted:
        weight = np.concatenate([np.ones(len(y)) if w is None else w for _, y, w in held])
    y = held[0][1] if len(held) == 1 else np.concatenate([part[1] for part in held])
    matrices = [part[0] for part in held]
    if any(map(sparse.issparse, matrices)):
        X: Any = sparse.vstack(matrices, format="csr") if len(held) > 1 else matrices[0]
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = matrices[0] if len(held) == 1 else np.concatenate(matrices)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        X = np.ascontiguousarray(X)
    return Chunk(X, y, weight, first)
