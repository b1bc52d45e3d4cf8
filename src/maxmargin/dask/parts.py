# SPDX-License-Identifier: BSD-3-Clause
"""The parts of Dask's collections: one task for each, that makes (X, y, weights) of some rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from distributed import Client, futures_of
from numpy.typing import NDArray
from scipy import sparse

Part = tuple[Any, NDArray[Any], NDArray[np.float64] | None]
"""X, y and weights or None."""


def delayed_parts(X: Any, y: Any, sample_weight: Any) -> tuple[list[Delayed], list[str] | None]:
    """One delayed ``Part`` for each partition, in their order; and the names of the columns."""
    pieces, names = delayed_pieces(X, y, sample_weight)
    return [delayed(plain_part)(piece, number) for number, piece in enumerate(pieces)], names


def delayed_pieces(X: Any, y: Any, sample_weight: Any) -> tuple[list[Any], list[str] | None]:
    """For each partition what ``plain_part`` makes a part of, in their order; and the columns' names.

    That is a delayed (X, y) or (X, y, weights), or a tuple of delayed ones. X, y and the weights must be
    partitioned alike. Where their sizes are known, y and the weights are partitioned as X is.
    """
    if y is None and sample_weight is None and _are_delayed(X):
        return list(X), None
    if not is_dask_collection(X) or isinstance(X, Delayed):
        raise ValueError(
            "X must be a Dask array or dataframe, or a list of delayed (X, y) or (X, y, weights) parts "
            f"without y. Got {type(X).__name__} instead; maxmargin.LinearSVC and maxmargin.Chunks take "
            "data that are not Dask's."
        )
    if y is None:
        raise ValueError("y must be given with X; only a list of delayed (X, y) parts has its own.")
    sizes = _row_sizes(X)
    columns = [_pieces(X, sizes), _pieces(y, sizes)]
    if sample_weight is not None:
        columns.append(_pieces(sample_weight, sizes))
    counts = {len(pieces) for pieces in columns}
    if len(counts) > 1:
        raise ValueError(
            "X, y and sample_weight must have the same partitions. Got "
            f"{', '.join(str(len(pieces)) for pieces in columns)}; rechunk or repartition them alike."
        )
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    return list(zip(*columns, strict=True)), names


def known_rows(X: Any, parts: int) -> list[int] | None:
    """The number of rows of each of so many partitions, where a Dask array tells it before it is made."""
    sizes = _row_sizes(X)
    return list(sizes) if sizes is not None and len(sizes) == parts else None


def places_of(client: Client, X: Any, pieces: Sequence[Any]) -> list[str | None]:
    """The worker that holds the rows of each piece of X; None where none does, or nobody knows."""
    held = futures_of(X)
    known = client.who_has(held) if held else {}
    firsts = [piece[0] if isinstance(piece, tuple) else piece for piece in pieces]
    places = [known.get(first.key) for first in firsts]
    return [min(place) if place else None for place in places]


def plain_parts(pieces: Sequence[Any], numbers: Sequence[int]) -> list[Part]:
    """Some parts as arrays."""
    return [plain_part(piece, number) for piece, number in zip(pieces, numbers, strict=True)]


def plain_part(part: Any, number: int) -> Part:
    """A part as arrays: of a dataframe, its values; the lengths are compared."""
    if not (isinstance(part, tuple) and len(part) in (2, 3)):
        raise ValueError(
            f"Partition {number} must be (X, y) or (X, y, weights). Got {type(part).__name__} instead."
        )
    X, y, weight = part if len(part) == 3 else (*part, None)
    X = X.tocsr() if sparse.issparse(X) else _values(X)
    y = _values(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if X.ndim != 2 or y.shape != (X.shape[0],):
        raise ValueError(
            f"X must be a matrix and y have one label for each of its rows. In partition {number} their "
            f"shapes are {X.shape} and {y.shape}."
        )
    if weight is not None:
        weight = np.asarray(_values(weight), np.float64)
        if weight.shape != y.shape:
            raise ValueError(
                f"There must be one weight for each of {len(y)} rows of partition {number}. Got an array "
                f"of shape {weight.shape} instead."
            )
    return X, y, weight


def row_counts(parts: Sequence[Part]) -> list[int]:
    """The number of rows of each part."""
    return [int(part[0].shape[0]) for part in parts]


def _values(values: Any) -> NDArray[Any]:
    """An array of what may be a frame or a series."""
    array = np.asarray(values)
    if array.dtype == object and array.ndim == 2:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"X must be numbers: {error}. Encode texts first, for example with maxmargin.Table."
            ) from None
    return array


def _are_delayed(parts: Any) -> bool:
    """Whether these are delayed parts, or futures of them."""
    from distributed import Future

    return (
        isinstance(parts, Sequence)
        and len(parts) > 0
        and all(isinstance(part, (Delayed, Future)) for part in parts)
    )


def _row_sizes(X: Any) -> tuple[int, ...] | None:
    """The rows of X's partitions, where they are known."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or any(np.isnan(size) for size in chunks[0]):
        return None
    return tuple(int(size) for size in chunks[0])


def _pieces(collection: Any, sizes: tuple[int, ...] | None) -> list[Any]:
    """The delayed partitions of one collection."""
    if not is_dask_collection(collection):
        raise ValueError(
            "y and sample_weight must be Dask collections as X is. Got "
            f"{type(collection).__name__} instead; dask.array.from_array makes one."
        )
    chunks = getattr(collection, "chunks", None)
    if chunks is None:
        pieces = list(collection.to_delayed())
        if len(pieces) != collection.npartitions:
            # Of Parquet, Dask reads several partitions at once where few columns are asked for: y, not X.
            pieces = list(collection.to_delayed(optimize_graph=False))
        return pieces
    if sizes is not None and sum(sizes) != sum(chunks[0]) and not np.isnan(sum(chunks[0])):
        raise ValueError(
            f"X, y and sample_weight must have as many rows. Got {sum(sizes)} and {sum(chunks[0])}."
        )
    if len(chunks) == 2 and len(chunks[1]) > 1:
        collection = collection.rechunk({1: -1})
    if sizes is not None and collection.chunks[0] != sizes and not np.isnan(sum(chunks[0])):
        collection = collection.rechunk({0: sizes})
    return list(collection.to_delayed().ravel())
