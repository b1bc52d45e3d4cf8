# SPDX-License-Identifier: BSD-3-Clause
"""The arrays of a model file: written piece by piece, and taken out one by one when it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.models.stored import ModelError
from maxmargin.proof.model import Record, Trace

TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I8": np.dtype("i1"),
}
_NAMES = {dtype: name for name, dtype in TYPES.items()}
_COLUMNS = len(Record._fields)


class Array(NamedTuple):
    """An array that is hashed and written piece by piece, so that no second copy of all is made."""

    type: str
    shape: tuple[int, ...]
    pieces: Iterable[Any]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Array:
        """A whole array, in its own type."""
        return cls(_NAMES[array.dtype.newbyteorder("<")], array.shape, [array])

    def bytes(self) -> Iterator[memoryview]:
        """The bytes of each piece, in the order of the file."""
        for piece in self.pieces:
            yield np.ascontiguousarray(piece, TYPES[self.type]).reshape(-1).view(np.uint8).data

    @property
    def size(self) -> int:
        """In bytes."""
        return int(np.prod(self.shape, dtype=object)) * TYPES[self.type].itemsize


def taken(arrays: dict[str, NDArray[Any]], name: str, dimensions: int, *types: str) -> NDArray[Any]:
    """The array of that name, removed from those that are left; of one of these types (default: F64)."""
    if name not in arrays:
        raise ModelError(f"the array {name!r} is missing.")
    array = arrays.pop(name)
    if array.ndim != dimensions or array.dtype not in [TYPES[kind] for kind in types or ("F64",)]:
        raise ModelError(f"the array {name!r} has the type {array.dtype} and the shape {array.shape}.")
    return array


def trace_array(traces: list[Trace]) -> Array:
    """The records of all traces, one below the other."""
    records = [np.array(trace.records, np.float64).reshape(-1, _COLUMNS) for trace in traces]
    return Array("F64", (sum(map(len, records)), _COLUMNS), records)


def read_traces(arrays: dict[str, NDArray[Any]], parts: list[Any]) -> list[Trace]:
    """The traces that a description tells the lengths of."""
    table = taken(arrays, "trace", 2)
    if table.shape != (sum(part["records"] for part in parts), _COLUMNS):
        raise ModelError(f"the array 'trace' has the shape {table.shape}, which its description denies.")
    steps = table[:, 0]
    whole = np.isfinite(steps).all() and bool((np.floor(steps) == steps).all())
    if not whole or not ((steps >= 0) & (steps < 2.0**53)).all():
        raise ModelError("the array 'trace' has a step that is not a whole number.")
    lines = iter(table.tolist())
    return [
        Trace(
            [Record(int(line[0]), *line[1:]) for line in islice(lines, part["records"])],
            certifying=part["certifying"],
        )
        for part in parts
    ]
