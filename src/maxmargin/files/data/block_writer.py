# SPDX-License-Identifier: BSD-3-Clause
"""The blocks of a packed file, written one by one, and those of an earlier run taken over."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.data.fingerprints import RunningFingerprint
from maxmargin.files.data.packed import (
    ALIGNMENT,
    END,
    MAGIC,
    TRAILER,
    TYPES,
    Block,
    Pieces,
    aligned,
    header_checksum,
    read_block,
    read_head,
)
from maxmargin.files.data.reading import DataError, DataSet

BLOCK_BYTES = 1 << 22
"""Bytes of a block's values, about: 4 MiB are read in a millisecond, and far more than a header costs."""
_LEAST_ROWS = 256
"""Rows of a block, at least."""
_NAMES = {dtype: name for name, dtype in TYPES.items()}


class Taken(NamedTuple):
    """How far the sources have been read: the number of the file, its rows, bad lines of those before."""

    file: int = 0
    rows: int = 0
    skipped: int = 0


class BlockWriter:
    """The blocks written so far, and the rows that wait for the next one."""

    def __init__(self, file: Any, head: dict[str, Any], dense: bool, hashes: bool) -> None:
        self.file, self.dense = file, dense
        self.rows = self.columns = self.stored = 0
        self.places: list[tuple[int, int]] = []
        self.identity = hashlib.blake2b(digest_size=16)
        self.fingerprint = RunningFingerprint() if hashes else None
        self.taken = self.latest = Taken()
        self.block_rows: int | None = None
        self.waiting: list[DataSet] = []
        self.count = 0
        self.kinds: str | None = None
        self.layout: str | None = None
        self.names: list[str] | None = None
        if not self._go_on(head):
            file.seek(0)
            file.truncate(0)
            text = json.dumps(head).encode()
            _write(file, MAGIC + struct.pack("<Q", len(text)) + text)
        self.at = _pad(file)

    def _go_on(self, head: dict[str, Any]) -> bool:
        """Take the whole blocks of an earlier packing of the same data; False where there is none."""
        size = os.fstat(self.file.fileno()).st_size
        try:
            found, offset = read_head(self.file, size)
        except DataError:
            return False
        if found != head or head["source"] is None:
            return False
        while offset < size:
            try:
                block = read_block(self.file, offset, size)
                facts = _facts(self.file, offset)
                pieces = Pieces(self.file, block)
                X, y, _, _ = pieces.take(block.rows, block.columns)
            except (DataError, KeyError, ValueError, TypeError):
                break
            self._count(block, offset, Taken(*facts["taken"]), X)
            self.block_rows = self.block_rows or block.rows
            self.kinds, self.layout = _kinds(y), _layout(block)
            self.names = facts["names"] if self.names is None else self.names
            offset = block.end
        self.file.truncate(min(offset, size))
        self.file.seek(0, os.SEEK_END)
        return True

    def _count(self, block: Block, offset: int, taken: Taken, X: Any) -> None:
        self.rows += block.rows
        self.columns = max(self.columns, block.columns)
        self.stored += block.stored
        self.places.append((offset, block.rows))
        self.taken = taken
        for place in block.arrays.values():
            self.identity.update(f"{place.shape} {place.dtype} {place.checksum} ".encode())
        if self.fingerprint is not None:
            self.fingerprint.add(X)

    def add(self, data: DataSet, taken: Taken) -> None:
        """Take some rows, and write the blocks that they fill."""
        count = data.X.shape[0]
        if not count:
            return
        if self.dense and sparse.issparse(data.X):
            data = replace(data, X=data.X.toarray())
        self._check(data)
        if self.block_rows is None:
            size = 4 * (data.X.nnz * 2 if sparse.issparse(data.X) else data.X.size)
            self.block_rows = max(_LEAST_ROWS, BLOCK_BYTES * count // max(1, size))
        self.latest, begin = taken, 0
        while begin < count:
            end = min(count, begin + self.block_rows - self.count)
            self.waiting.append(some_rows(data, begin, end))
            self.count += end - begin
            begin = end
            if self.count == self.block_rows:
                self._write(taken._replace(rows=taken.rows - (count - end)))

    def _check(self, data: DataSet) -> None:
        """All rows must be of one kind."""
        kinds = _kinds(data.y)
        weights = "without weights" if data.weight is None else "with weights"
        layout = f"{'sparse' if sparse.issparse(data.X) else 'dense'} rows {weights}"
        if self.layout is None:
            self.kinds, self.layout, self.names = kinds, layout, data.feature_names
        if (kinds, layout) != (self.kinds, self.layout):
            raise DataError(
                f"here are {layout} whose labels are {kinds}, and before were {self.layout} whose labels "
                f"are {self.kinds}",
                "Files that are packed together must be of one kind.",
            )
        if data.feature_names != self.names:
            raise DataError(
                "the columns have other names, or another order, than those before",
                "Files that are packed together must have the same columns.",
            )
        known = self.columns or (self.waiting[0].X.shape[1] if self.waiting else data.X.shape[1])
        if not sparse.issparse(data.X) and data.X.shape[1] != known:
            raise DataError(
                f"here are {data.X.shape[1]} columns, and before were {known}",
                "Files that are packed together must have the same columns.",
            )

    def _write(self, taken: Taken) -> None:
        """Write the rows that wait as a block."""
        arrays, texts, X = _arrays(self.waiting)
        rows, columns = X.shape
        header, sums, end = {}, {}, 0
        for name, array in arrays.items():
            begin, end = end, end + array.nbytes
            header[name] = {
                "dtype": _NAMES[array.dtype.newbyteorder("<") if array.dtype.itemsize > 1 else array.dtype],
                "shape": list(array.shape),
                "data_offsets": [begin, end],
            }
            sums[name] = zlib.crc32(_bytes(array))
        facts = {
            "rows": str(rows),
            "columns": str(columns),
            "texts": json.dumps(texts),
            "checksums": json.dumps(sums),
            "taken": json.dumps(taken),
            "names": json.dumps(self.names) if not self.places else "null",
        }
        facts["checksum"] = str(header_checksum(header, facts))
        text = json.dumps({"__metadata__": facts} | header).encode()
        text += b" " * (-(len(text) + 8) % ALIGNMENT)
        _write(self.file, struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            _write(self.file, _bytes(array))
        at, self.at = self.at, _pad(self.file)
        self._count(read_block(self.file, at, self.at), at, taken, X)
        self.file.seek(0, os.SEEK_END)
        self.waiting, self.count = [], 0

    def finish(self) -> dict[str, Any]:
        """Write the last rows, the index and the trailer."""
        if self.waiting:
            self._write(self.latest)
        if not self.rows:
            raise DataError("there is not a single row", "Check the sources.")
        fingerprint = None
        if self.fingerprint is not None:
            fingerprint = self.fingerprint.of(self.columns, self._labels())
        layout = self.layout or ""
        index = {
            "rows": self.rows,
            "columns": self.columns,
            "sparse": layout.startswith("sparse"),
            "weighted": layout.endswith("with weights"),
            "feature_names": self.names,
            "fingerprint": fingerprint,
            "identity": self.identity.hexdigest(),
            "blocks": self.places,
        }
        text = json.dumps(index).encode()
        self.file.seek(0, os.SEEK_END)
        _write(self.file, text + TRAILER.pack(self.at, len(text), zlib.crc32(text), END))
        return index

    def _labels(self) -> Iterator[NDArray[Any]]:
        """The labels of all blocks, read again: they are not kept."""
        for offset, _ in self.places:
            block = read_block(self.file, offset, self.at)
            yield Pieces(self.file, block).labels()


def _facts(file: Any, offset: int) -> dict[str, Any]:
    """What a block says of its sources."""
    file.seek(offset)
    length = int.from_bytes(file.read(8), "little")
    facts = json.loads(file.read(length))["__metadata__"]
    return {"taken": json.loads(facts["taken"]), "names": json.loads(facts["names"])}


def _kinds(y: NDArray[Any]) -> str:
    return "texts" if y.dtype.kind in "US" else "numbers"


def _layout(block: Block) -> str:
    weights = "with weights" if "weights" in block.arrays else "without weights"
    return f"{'sparse' if block.is_sparse else 'dense'} rows {weights}"


def _arrays(waiting: list[DataSet]) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]], Any]:
    """The arrays of some rows, the texts among them, and X."""
    matrices = [data.X for data in waiting]
    arrays: dict[str, NDArray[Any]] = {}
    if sparse.issparse(matrices[0]):
        columns = max(X.shape[1] for X in matrices)
        wide = [sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], columns)) for X in matrices]
        X = sparse.vstack(wide, format="csr") if len(wide) > 1 else wide[0]
        arrays["values"] = _narrow(X.data)
        arrays["indices"] = X.indices.astype(np.int32 if columns < 2**31 else np.int64, copy=False)
        arrays["offsets"] = X.indptr.astype(np.int64)
    else:
        X = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
        arrays["values"] = _narrow(np.ascontiguousarray(X))
    texts: dict[str, list[str]] = {}
    for name, field in (("labels", "y"), ("weights", "weight"), ("queries", "query")):
        found = [getattr(data, field) for data in waiting]
        if all(part is None for part in found):
            continue
        if any(part is None for part in found):  # LIBSVM text in which no line of a piece has a query
            found = [np.full(len(d.y), -1) if p is None else p for d, p in zip(waiting, found, strict=True)]
        values = np.concatenate(found)
        if values.dtype.kind in "US":
            listed, codes = np.unique(values.astype(str), return_inverse=True)
            texts[name], values = listed.tolist(), codes.astype(np.int64)
        arrays[name] = _small(values)
    return arrays, texts, X


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Values in float32 where that has all of them exactly."""
    if values.dtype == np.float32:
        return values
    values = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):  # what becomes infinite is not the same
        narrow = values.astype(np.float32)
    return narrow if np.array_equal(narrow, values) else values


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in the smallest type that has them; other numbers in float32 if that has them."""
    if values.dtype == np.bool_:
        return values
    if values.dtype.kind == "u":
        if len(values) and int(values.max()) >= 2**63:
            return values.astype(np.uint64)
        values = values.astype(np.int64)
    if values.dtype.kind == "f":
        return _narrow(values)
    for kind in (np.int8, np.int16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= values.min() and values.max() <= limits.max:
            return values.astype(kind)
    return values.astype(np.int64)


def _bytes(array: NDArray[Any]) -> memoryview:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8).data


def _write(file: Any, content: bytes | memoryview) -> None:
    """All of it: a file without a buffer may take less at a time."""
    view = memoryview(content)
    while len(view):
        view = view[file.write(view) :]


def _pad(file: Any) -> int:
    """Fill up to the next place of a block, and return it."""
    at = file.seek(0, os.SEEK_END)
    _write(file, bytes(aligned(at) - at))
    return aligned(at)


def some_rows(data: DataSet, first: int, last: int) -> DataSet:
    """Some rows of a piece."""
    y, weight, query = (
        None if part is None else part[first:last] for part in (data.y, data.weight, data.query)
    )
    return replace(data, X=data.X[first:last], y=y, weight=weight, query=query)
