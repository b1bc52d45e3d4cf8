# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's .npz: ``X`` and ``y``, or a CSR matrix as ``data``, ``indices``, ``indptr``, ``shape`` and ``y``.

Nothing in the file is trusted: sizes are compared with each other before memory is taken, there is no
pickle, and the structure of a sparse matrix is checked before SciPy, which would crash on a wrong one,
sees it.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.files.data.compressed import bound
from maxmargin.files.data.reading import DataError, DataSet, Options, about, checked, open_file
from maxmargin.types import Indices

_VALUES_AT_A_TIME = 1 << 18
"""Values of a chunk, 2 MiB of numbers."""
_ROWS_AT_A_TIME = 1 << 16
"""Row ends of a sparse matrix that are read at once, for chunks of rows with few values."""
_SPARSE = ("data", "indices", "indptr", "shape")
_WRITE_AGAIN = "Write the file again from a correct CSR matrix."
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


def read_npz(path: str, options: Options) -> DataSet:
    """Read the whole file."""
    (data,) = stream_npz(path, options, whole=True)
    return data


def stream_npz(path: str, options: Options, *, whole: bool = False) -> Iterator[DataSet]:
    """The rows in chunks, decompressed on the way; in one piece if ``whole``."""
    with about(path), open_file(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                parts = _Parts(archive, os.fstat(file.fileno()).st_size)
                rows, chunks = _chunks(parts, options, whole)
                y = parts.open("y") if options.labelled or parts.has("y") else None
                if y is not None and y.shape != (rows,):
                    raise y.error(f"has the shape {y.shape}, but there are {rows} rows")
                query = parts.open("query") if parts.has("query") else None
                if query is not None and (query.shape != (rows,) or query.dtype.kind not in "iuUS"):
                    raise query.error(f"must name the query of each of the {rows} rows")
                done = 0
                for X in chunks:
                    each = (None if part is None else part.take(X.shape[0]) for part in (y, query))
                    yield checked(X, next(each), done, options, next(each))
                    done += X.shape[0]
                    options.report(parts.size * done // rows, parts.size)
        except DataError:
            raise
        except MemoryError as error:
            raise DataError("there is not enough memory for this file") from error
        except _BROKEN as error:
            cure = "It is damaged or no .npz file: write it again with numpy.savez."
            raise DataError(f"the file cannot be read: {error}", cure) from error


class _Part:
    """One array of the file, taken piece by piece."""

    def __init__(self, name: str, member: zipfile.ZipInfo, stream: Any) -> None:
        self.name, self._stream = name, stream
        version = np.lib.format.read_magic(stream)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read_header is None:
            raise self.error(f"version {version} of its header is unknown")
        try:
            self.shape, self.fortran, self.dtype = read_header(stream)
        except Exception as error:  # NumPy reads headers as Python, and what it raises for a bad one varies
            raise self.error(f"has a header that cannot be read: {error}") from error
        if self.dtype.hasobject or self.dtype.kind not in "biufUS":
            raise self.error(f"holds {self.dtype}, and only numbers and texts can be read")
        self.count = math.prod(self.shape)
        if self.count * self.dtype.itemsize != member.file_size - stream.tell():
            raise self.error("has another size than its header says")

    def take(self, count: int | None = None) -> NDArray[Any]:
        """The next numbers, in the order of the file."""
        out = np.empty(self.count if count is None else count, self.dtype)
        room = out.view(np.uint8)
        filled = 0
        while filled < len(room):
            got = self._stream.readinto(room[filled : filled + (1 << 20)])
            if not got:
                raise self.error("ends too early")
            filled += got
        if out.dtype.kind == "U":
            self._require_characters(out)
        return out

    def _require_characters(self, texts: NDArray[Any]) -> None:
        """Python fails at numbers that are no characters, or cannot print them."""
        codes = texts.view(np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder))
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise self.error("holds texts that are none")

    def error(self, problem: str) -> DataError:
        return DataError(f"the array {self.name!r} {problem}", "Write the file again with numpy.savez.")


class _Parts:
    """The arrays of the file, by name."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.size, self._archive = size, archive
        self._members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}

    def has(self, *names: str) -> bool:
        return all(name in self._members for name in names)

    def open(self, name: str) -> _Part:
        if not self.has(name):
            raise DataError(
                f"there is no array {name!r}; there are {', '.join(sorted(self._members)) or 'none'}",
                "Write the file with numpy.savez(path, X=X, y=y), or with data, indices, indptr, "
                "shape and y of a CSR matrix.",
            )
        member = self._members[name]
        if member.file_size > bound(self.size):
            problem = f"the array {name!r} claims {member.file_size} bytes, in a file of {self.size}"
            cure = "If the file can be trusted, write it again with numpy.savez, not compressed."
            raise DataError(problem, cure)
        return _Part(name, member, self._archive.open(member))


def _chunks(parts: _Parts, options: Options, whole: bool) -> tuple[int, Iterator[Any]]:
    """The number of rows, and chunks of X."""
    if parts.has(*_SPARSE):
        rows, columns = _sparse_shape(parts)
        chunks = _sparse_chunks(parts, rows, columns, options, whole)
    else:
        X = parts.open("X")
        if len(X.shape) != 2 or X.dtype.kind not in "biuf":
            raise X.error(f"must be a matrix of numbers. Got shape {X.shape} and type {X.dtype} instead")
        rows, columns = X.shape
        chunks = _dense_chunks(X, options, whole)
    if rows == 0 or columns == 0:
        problem = f"the matrix has {rows} rows and {columns} columns"
        raise DataError(problem, "Check that it is the right file.")
    return rows, chunks


def _dense_chunks(X: _Part, options: Options, whole: bool) -> Iterator[Any]:
    rows, columns = X.shape
    if X.fortran:  # its rows do not lie together
        yield _converted(np.ascontiguousarray(X.take().reshape(columns, rows).T), options)
        return
    step = rows if whole else max(1, _VALUES_AT_A_TIME // columns)
    for first in range(0, rows, step):
        count = min(step, rows - first)
        yield _converted(X.take(count * columns).reshape(count, columns), options)


def _sparse_chunks(parts: _Parts, rows: int, columns: int, options: Options, whole: bool) -> Iterator[Any]:
    data, indices, indptr = (parts.open(name) for name in ("data", "indices", "indptr"))
    for part, kinds in ((data, "biuf"), (indices, "iu"), (indptr, "iu")):
        if len(part.shape) != 1 or part.dtype.kind not in kinds:
            raise part.error(f"must be a list of numbers. Got shape {part.shape} of {part.dtype} instead")
    if indptr.count != rows + 1 or data.count != indices.count:
        raise DataError(
            f"the lengths of data ({data.count}), indices ({indices.count}) and indptr ({indptr.count}) "
            f"do not belong to a matrix of {rows} rows",
            _WRITE_AGAIN,
        )
    begin = 0
    if (start := indptr.take(1)[0]) != 0:
        raise indptr.error(f"must begin with 0. Got {start} instead")
    for ends in _row_ends(indptr, rows, whole):
        end = int(ends[-1])
        if not begin <= end <= data.count:
            raise indptr.error(f"must increase up to {data.count}. Got {end} after {begin} instead")
        values, columns_of = data.take(end - begin), indices.take(end - begin)
        offsets = np.concatenate([[begin], ends]) - begin
        yield _csr(_converted(values, options), columns_of, offsets, columns, options)
        begin = end
    if begin != data.count:
        raise indptr.error(f"must end with {data.count}, the number of values. Got {begin} instead")


def _row_ends(indptr: _Part, rows: int, whole: bool) -> Iterator[Indices]:
    """The ends of rows, for as many rows at a time as make a chunk."""
    step = rows if whole else _ROWS_AT_A_TIME
    begin = 0
    for first in range(0, rows, step):
        ends = indptr.take(min(step, rows - first)).astype(np.int64)
        while len(ends):
            fitting = int(np.searchsorted(ends, begin + _VALUES_AT_A_TIME, side="right"))
            last = len(ends) if whole else max(fitting, 1)
            yield ends[:last]
            begin, ends = int(ends[last - 1]), ends[last:]


def _converted(values: NDArray[Any], options: Options) -> NDArray[Any]:
    with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN is refused later
        return values.astype(options.dtype, copy=False)


def _sparse_shape(parts: _Parts) -> tuple[int, int]:
    if parts.has("format"):
        layout = parts.open("format")
        name = layout.take() if layout.count == 1 else np.array(["?"])
        if name.astype(str)[0] != "csr":
            raise layout.error(f"is {str(name[0])!r}, and only CSR can be read: use X.tocsr()")
    shape = parts.open("shape")
    if shape.count != 2 or shape.dtype.kind not in "iu":
        raise shape.error("must be two whole numbers")
    rows, columns = (int(number) for number in shape.take())
    if rows < 0 or columns < 0:
        raise shape.error(f"must not be negative. Got {rows}, {columns} instead")
    if 8 * columns > bound(parts.size):
        problem = f"a model of {columns} columns would take {8 * columns} bytes, for a file of {parts.size}"
        cure = "Correct 'shape', or write the file again without columns that do not occur."
        raise DataError(problem, cure)
    return rows, columns


def _csr(
    values: NDArray[Any], indices: NDArray[Any], offsets: Indices, columns: int, options: Options
) -> Any:
    narrow = max(len(values), columns, options.columns or 0) < 2**31
    index_type = np.int32 if narrow else np.int64
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= columns):
        raise DataError(f"an index of the sparse matrix lies outside its {columns} columns", _WRITE_AGAIN)
    indices, offsets = indices.astype(index_type, copy=False), offsets.astype(index_type)
    try:
        in_order = narrow and core.Data.sparse(values, indices, offsets, columns).sorted
        X = sparse.csr_array((values, indices, offsets), shape=(len(offsets) - 1, columns))
        if not narrow:  # and the core may not take so many columns
            X.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"the sparse matrix is inconsistent: {error}", _WRITE_AGAIN) from None
    if not in_order:
        X.has_canonical_format = X.has_sorted_indices = False
        X.sum_duplicates()
    return X
