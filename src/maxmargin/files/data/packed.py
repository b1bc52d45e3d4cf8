# SPDX-License-Identifier: BSD-3-Clause
"""Packed data, ``.mmd``: rows in blocks that are read as they lie on the disk.

    head       16 bytes of magic, 8 of the length of what follows, a JSON object
    blocks     safetensors each: 8 bytes of length, a JSON header, then the arrays: ``values`` (and of
               sparse rows ``indices`` and ``offsets``), ``labels``, and where there are any ``weights`` and
               ``queries``. Texts are listed in the header, and the array has their places in the list
    index      a JSON object: rows, columns, and where each block begins
    trailer    8 bytes each: the place and the length of the index, its checksum, and magic

Heads, blocks and the index begin at multiples of 64 bytes. Every array has a CRC-32 in the header of its
block, every header one in itself. Nothing in the file is trusted: no array is larger than the bytes that
are there for it, and all rows go through the same checks as those of other formats.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.data.compressed import bound
from maxmargin.files.data.reading import DataError, DataSet, Options, about, checked, open_file

MAGIC = b"maxmargin data 1"
END = b"mmd end\n"
ALIGNMENT = 64
"""Bytes: blocks begin at multiples of a line of the processor's cache."""
TRAILER = struct.Struct("<QQQ8s")
TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("<i1"),
    "U64": np.dtype("<u8"),
    "BOOL": np.dtype("|b1"),
}
"""The types of safetensors that arrays may have."""
_LONGEST_HEADER = 100_000_000
"""Bytes of a header or an index, the most that readers of safetensors accept."""
_VALUES_AT_A_TIME = 1 << 18
"""Values of a piece that ``stream`` yields, 2 MiB of numbers."""
_KNOWN = 4096
"""Blocks whose headers are kept for later passes, at most: 16 GB of data, for some 6 MB. To read and check
a header takes a tenth of the time of a pass over its block."""
_LONGEST_LABEL = 256
"""Characters of a label, as in tables."""
_PACK_AGAIN = "It was cut off, damaged or edited: pack the data again."

Texts = dict[str, list[str]]
"""The lists of texts of a block, by the name of their array."""


@dataclass(frozen=True)
class Place:
    """Where an array lies in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    checksum: int

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Block:
    """Some rows of the file, in a row."""

    rows: int
    columns: int
    arrays: dict[str, Place]
    texts: Texts
    end: int
    """The byte after it."""

    @property
    def is_sparse(self) -> bool:
        """Whether it is a CSR matrix."""
        return "indices" in self.arrays

    @property
    def stored(self) -> int:
        """Values that it holds."""
        return math.prod(self.arrays["values"].shape)


class Pieces:
    """The rows of one block, taken piece by piece; the checksums are compared at the end of each array."""

    def __init__(self, file: Any, block: Block, verify: bool = True) -> None:
        self._file, self.block, self._verify = file, block, verify
        self._sums = dict.fromkeys(block.arrays, 0)
        self._done = dict.fromkeys(block.arrays, 0)
        self._row = 0
        if block.is_sparse:
            self._offsets = self._take("offsets", block.rows + 1)
            self._check_offsets()

    def take(self, rows: int, columns: int) -> tuple[Any, NDArray[Any], Any, Any]:
        """X of so many columns, labels, weights and queries of the next rows."""
        X = self._sparse(rows, columns) if self.block.is_sparse else self._dense(rows)
        self._row += rows
        labels = self._named("labels", rows)
        assert labels is not None
        return X, labels, self._named("weights", rows), self._named("queries", rows)

    def labels(self) -> NDArray[Any]:
        """Those of all rows, without the rest."""
        found = self._named("labels", self.block.rows)
        assert found is not None
        return found

    def _dense(self, rows: int) -> NDArray[Any]:
        return self._take("values", rows * self.block.columns).reshape(rows, self.block.columns)

    def _sparse(self, rows: int, columns: int) -> Any:
        offsets = self._offsets[self._row : self._row + rows + 1]
        count = int(offsets[-1] - offsets[0])
        values, indices = self._take("values", count), self._take("indices", count)
        if count and (int(indices.min()) < 0 or int(indices.max()) >= columns):
            raise DataError(f"an index of a block lies outside the {columns} columns", _PACK_AGAIN)
        narrow = max(count, columns) < 2**31
        kind = np.int32 if narrow else np.int64
        offsets, indices = (offsets - offsets[0]).astype(kind), indices.astype(kind, copy=False)
        X = sparse.csr_array((values, indices, offsets), shape=(rows, columns))
        if count > 1:
            inside = np.ones(count - 1, np.bool_)
            ends = offsets[(offsets > 0) & (offsets < count)]
            inside[ends - 1] = False
            if not (np.diff(indices) > 0)[inside].all():
                raise DataError("the indices of a row in a block do not increase", _PACK_AGAIN)
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    def _check_offsets(self) -> None:
        offsets = self._offsets
        if offsets[0] != 0 or offsets[-1] != self.block.stored or (np.diff(offsets) < 0).any():
            raise DataError(
                f"the ends of a block's rows must increase from 0 to {self.block.stored}", _PACK_AGAIN
            )

    def _named(self, name: str, rows: int) -> NDArray[Any] | None:
        """Labels, weights or queries: the array, or the texts that it has the places of."""
        if name not in self.block.arrays:
            return None
        values = self._take(name, rows)
        if name not in self.block.texts:
            if values.dtype == np.bool_:
                return np.asarray(values.view(np.uint8) != 0)  # a byte may be more than 1
            return values.astype(np.int64) if values.dtype.kind == "i" else values
        texts = np.array(self.block.texts[name], dtype=str)
        if values.dtype.kind != "i" or not len(texts) or values.min() < 0 or values.max() >= len(texts):
            raise DataError(f"the {name} of a block lie outside their list", _PACK_AGAIN)
        return np.asarray(texts[values])

    def _take(self, name: str, count: int) -> NDArray[Any]:
        place, done = self.block.arrays[name], self._done[name]
        out = np.empty(count, place.dtype)
        room = memoryview(out.view(np.uint8).data) if count else memoryview(b"")
        self._file.seek(place.offset + done)
        filled = 0
        while filled < len(room):
            got = self._file.readinto(room[filled:])
            if not got:
                raise DataError("the file ends too early", _PACK_AGAIN)
            filled += got
        self._done[name] = done + filled
        if self._verify:
            self._sums[name] = zlib.crc32(room, self._sums[name])
            if self._done[name] == place.nbytes and self._sums[name] != place.checksum:
                raise DataError(f"the {name} of a block do not match their checksum", _PACK_AGAIN)
        return out


class Packed:
    """An open packed file: what it says of itself, and its blocks."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.size = os.fstat(file.fileno()).st_size
        self.head, _ = read_head(file, self.size)
        index = _index(file, self.size)
        try:
            self.rows, self.columns = _count(index["rows"]), _count(index["columns"])
            self.places = [(_count(offset), _count(rows)) for offset, rows in index["blocks"]]
            names = index["feature_names"]
            self.fingerprint: str | None = index["fingerprint"]
            """That of ``files.fingerprint``, where it is known."""
            self.is_sparse, self.weighted = bool(index["sparse"]), bool(index["weighted"])
            self.identity = str(index["identity"])[:_LONGEST_LABEL]
            """Other for other contents."""
            if names is not None and not (
                isinstance(names, list)
                and all(isinstance(name, str) for name in names)
                and len(names) == self.columns
            ):
                raise ValueError("the names of the columns are not as many as there are columns")
            if self.fingerprint is not None and not _is_fingerprint(self.fingerprint):
                raise ValueError("the fingerprint is none")
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"the index of the file cannot be read: {error}", _PACK_AGAIN) from None
        self.feature_names: list[str] | None = names
        if self.rows == 0 or self.columns == 0:
            raise DataError(
                f"the matrix has {self.rows} rows and {self.columns} columns",
                "Check that it is the right file.",
            )
        if sum(rows for _, rows in self.places) != self.rows:
            raise DataError("the blocks have other rows than the index says", _PACK_AGAIN)
        if 8 * self.columns > bound(self.size):
            raise DataError(
                f"a model of {self.columns} columns would take {8 * self.columns} bytes, for a file of "
                f"{self.size}",
                _PACK_AGAIN,
            )

    def blocks(self, known: dict[int, Block] | None = None) -> Iterator[Block]:
        """The blocks, in their order; ``known`` has some of them by their numbers, and takes along more."""
        begin = 0
        for number, (offset, rows) in enumerate(self.places):
            if known is not None and number in known:
                begin = known[number].end
                yield known[number]
                continue
            if offset < begin:
                raise DataError("two blocks overlap", _PACK_AGAIN)
            block = read_block(self.file, offset, self.size)
            if block.rows != rows or block.is_sparse != self.is_sparse:
                raise DataError("a block is not what the index says", _PACK_AGAIN)
            if block.columns > self.columns or (not block.is_sparse and block.columns != self.columns):
                raise DataError(
                    f"a block has {block.columns} columns, and the file {self.columns}", _PACK_AGAIN
                )
            if ("weights" in block.arrays) != self.weighted:
                raise DataError("some rows have weights, and others have none", _PACK_AGAIN)
            begin = block.end
            if known is not None and number < _KNOWN:
                known[number] = block
            yield block

    def pieces(
        self, rows: int | None = None, verify: bool = True, known: dict[int, Block] | None = None
    ) -> Iterator[tuple[Any, NDArray[Any], Any, Any]]:
        """X, labels, weights and queries of at most so many rows at a time; never of two blocks."""
        for block in self.blocks(known):
            step = rows or self._rows_of_a_piece(block)
            taken = Pieces(self.file, block, verify)
            for first in range(0, block.rows, step):
                yield taken.take(min(step, block.rows - first), self.columns)

    def _rows_of_a_piece(self, block: Block) -> int:
        return max(1, _VALUES_AT_A_TIME * block.rows // max(1, block.stored))


def is_packed(path: str) -> bool:
    """Whether a file begins as packed data do."""
    with open_file(path) as file:
        return bool(file.read(len(MAGIC)) == MAGIC)


def read_packed(path: str, options: Options) -> DataSet:
    """Read the whole file."""
    with about(path), open_file(path) as file:
        packed = Packed(file)
        kept = list(_data_sets(packed, options, packed.rows))
    if len(kept) == 1:
        return kept[0]
    matrices = [data.X for data in kept]
    X: Any = sparse.vstack(matrices, format="csr") if packed.is_sparse else np.concatenate(matrices)
    if packed.is_sparse:
        X.has_sorted_indices = X.has_canonical_format = True
    y, weight, query = (
        None if getattr(kept[0], name) is None else np.concatenate([getattr(data, name) for data in kept])
        for name in ("y", "weight", "query")
    )
    skipped, dropped = sum(data.skipped for data in kept), sum(data.dropped for data in kept)
    gaps = tuple(gap for data in kept for gap in data.gaps)
    return DataSet(X, y, kept[0].feature_names, skipped, dropped, gaps, query=query, weight=weight)


def stream_packed(path: str, options: Options) -> Iterator[DataSet]:
    """The rows in pieces of a few MB."""
    with about(path), open_file(path) as file:
        yield from _data_sets(Packed(file), options, None)


def _data_sets(packed: Packed, options: Options, rows: int | None) -> Iterator[DataSet]:
    done = 0
    for X, y, weight, query in packed.pieces(rows):
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN is refused later
            X = X.astype(options.dtype, copy=False)
        found = checked(X, y, done, options, query, weight)
        done += len(y)
        if packed.feature_names is not None and found.X.shape[1] == packed.columns:
            found = replace(found, feature_names=packed.feature_names)
        yield found
        options.report(packed.size * done // packed.rows, packed.size)


def read_head(file: Any, size: int) -> tuple[dict[str, Any], int]:
    """The JSON object at the beginning, and the byte after it."""
    file.seek(0)
    start = file.read(len(MAGIC) + 8)
    if start[: len(MAGIC)] != MAGIC:
        raise DataError("this is not a packed file", "Write one with maxmargin pack.")
    if len(start) < len(MAGIC) + 8:
        raise DataError("the file ends too early", _PACK_AGAIN)
    (length,) = struct.unpack("<Q", start[len(MAGIC) :])
    return read_json(file, len(MAGIC) + 8, length, size), aligned(len(MAGIC) + 8 + length)


def read_block(file: Any, offset: int, size: int) -> Block:
    """What lies at a place of the file: the header alone is read."""
    if offset + 8 > size:
        raise DataError("a block begins beyond the end of the file", _PACK_AGAIN)
    file.seek(offset)
    start = file.read(8)
    length = int.from_bytes(start, "little")
    header = read_json(file, offset + 8, length, size)
    begin = offset + 8 + length
    try:
        return _block(header, begin, size)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the header of a block cannot be read: {error}", _PACK_AGAIN) from None


def _block(header: dict[str, Any], begin: int, size: int) -> Block:
    facts: dict[str, str] = header.pop("__metadata__")
    sums: dict[str, int] = json.loads(facts["checksums"])
    texts: Texts = json.loads(facts["texts"])
    if int(facts["checksum"]) != header_checksum(header, facts):
        raise DataError("the header of a block does not match its checksum", _PACK_AGAIN)
    arrays, end = {}, begin
    for name, entry in header.items():
        shape = tuple(_count(number) for number in entry["shape"])
        first, last = entry["data_offsets"]
        place = Place(TYPES[entry["dtype"]], shape, begin + _count(first), _count(sums[name]))
        if place.offset + place.nbytes != begin + _count(last) or place.offset != end:
            raise ValueError(f"the array {name!r} has another size than its shape says")
        arrays[name], end = place, place.offset + place.nbytes
    if end > size:
        raise DataError("a block is cut off", _PACK_AGAIN)
    rows, columns = _count(json.loads(facts["rows"])), _count(json.loads(facts["columns"]))
    _check_shapes(arrays, texts, rows, columns)
    return Block(rows, columns, arrays, texts, aligned(end))


def _check_shapes(arrays: Mapping[str, Place], texts: Texts, rows: int, columns: int) -> None:
    """What the arrays of a block must be."""
    sparse_rows = "indices" in arrays
    values = arrays["values"]
    expected: dict[str, tuple[tuple[int, ...], str]] = {"labels": ((rows,), "fiub")}
    if sparse_rows:
        expected["values"] = (values.shape[:1], "f")
        expected["indices"] = (values.shape[:1], "i")
        expected["offsets"] = ((rows + 1,), "i")
    else:
        expected["values"] = ((rows, columns), "f")
    for name, kinds in (("weights", "f"), ("queries", "iu")):
        if name in arrays:
            expected[name] = ((rows,), kinds)
    if set(arrays) != set(expected):
        raise ValueError(f"its arrays are {', '.join(sorted(arrays))}")
    for name, (shape, kinds) in expected.items():
        if arrays[name].shape != shape or arrays[name].dtype.kind not in kinds:
            raise ValueError(f"its array {name!r} has the shape {arrays[name].shape}")
    for name, each in texts.items():
        if name not in ("labels", "queries") or not isinstance(each, list):
            raise ValueError("its texts are of no array")
        for text in each:
            if not (isinstance(text, str) and len(text) <= _LONGEST_LABEL and _is_text(text)):
                raise ValueError("a label is no text, or too long")
    if not rows:
        raise ValueError("it has no row")


def _is_text(text: str) -> bool:
    """JSON can hold halves of characters, which cannot be printed; NumPy drops zeros at the end."""
    return not text.endswith("\0") and not any(0xD800 <= ord(c) < 0xE000 for c in text)


def _is_fingerprint(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch("blake2b:[0-9a-f]{64}", text) is not None


def _index(file: Any, size: int) -> dict[str, Any]:
    if size < TRAILER.size + ALIGNMENT:
        raise DataError("the file ends too early", _PACK_AGAIN)
    file.seek(size - TRAILER.size)
    place, length, checksum, end = TRAILER.unpack(file.read(TRAILER.size))
    if end != END:
        raise DataError("the file ends too early", _PACK_AGAIN)
    found = read_json(file, place, length, size)
    file.seek(place)
    if zlib.crc32(file.read(length)) != checksum:
        raise DataError("the index does not match its checksum", _PACK_AGAIN)
    return found


def read_json(file: Any, offset: int, length: int, size: int) -> dict[str, Any]:
    """The JSON object of some bytes of the file, which must be there."""
    if length > min(_LONGEST_HEADER, size) or offset + length > size:
        raise DataError(f"a header should have {length} bytes, and the file has {size}", _PACK_AGAIN)
    file.seek(offset)
    try:
        found = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise DataError(f"a header cannot be read: {error}", _PACK_AGAIN) from None
    if not isinstance(found, dict):
        raise DataError("a header is no JSON object", _PACK_AGAIN)
    return found


def header_checksum(header: Mapping[str, Any], facts: Mapping[str, str]) -> int:
    """That of all of a block's header but itself."""
    rest = {name: value for name, value in facts.items() if name != "checksum"}
    return zlib.crc32(json.dumps([header, rest], sort_keys=True).encode())


def aligned(offset: int) -> int:
    """The next place at which a block may begin."""
    return offset + -offset % ALIGNMENT


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{str(number)[:40]!r} is no count")
    return number
