# SPDX-License-Identifier: BSD-3-Clause
"""CSV and Parquet with a label column, read batch by batch through pyarrow."""

from __future__ import annotations

import codecs
import io
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.data.compressed import TextSource, bound
from maxmargin.files.data.reading import (
    COMPRESSED,
    DataError,
    DataSet,
    Options,
    about,
    checked,
    open_file,
    shown,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_LABEL_NAMES = ("label", "target", "y", "class")
"""What a label column may be called without being named, in the order of preference."""
_BLOCK = 1 << 22
"""Bytes of CSV that are parsed at once: 4 MiB keep all cores busy."""
_VALUES_AT_A_TIME = 1 << 18
"""Values of Parquet that are read at once, 2 MiB of numbers."""
_LONGEST_LABEL = 256
"""Characters of a label: a longer text is not a class, and NumPy would give every label its width."""
_LAST_READ = 0.05
"""Seconds after which a thread that reads ahead has begun its next read, if it does."""


def read_table(path: str, options: Options, *, format: str) -> DataSet:
    """Read the whole table."""
    if format == "parquet":
        with about(path):
            _require_modest_size(path)
    chunks = deque(stream_table(path, options, format=format))
    first = chunks[0]
    skipped, dropped = sum(chunk.skipped for chunk in chunks), sum(chunk.dropped for chunk in chunks)
    y = None if first.y is None else np.concatenate([chunk.y for chunk in chunks])
    X = np.empty((sum(len(chunk.X) for chunk in chunks), first.X.shape[1]), options.dtype)
    row = 0
    while chunks:  # freed as they are copied: both never exist whole
        part = chunks.popleft().X
        X[row : row + len(part)] = part
        row += len(part)
    return DataSet(X, y, first.feature_names, skipped, dropped)


def stream_table(path: str, options: Options, *, format: str) -> Iterator[DataSet]:
    """Read the rows of the table in chunks."""
    rows = 0
    with about(path):
        pyarrow = _pyarrow()
        try:
            for batch, skipped in (_csv if format == "csv" else _parquet)(path, options):
                data = _Table(batch.schema, options).data_set(batch, rows)
                rows += batch.num_rows
                yield replace(data, skipped=data.skipped + skipped)
        except DataError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            cure = "Correct the file" + (", or leave such rows out with skip_bad_lines." if rows else ".")
            raise DataError(f"the table cannot be read after row {rows}: {error}", cure) from error
        if rows == 0:
            raise DataError("there is not a single row in this table", "Check the file.")


class _Table:
    """Which columns of a table are what."""

    def __init__(self, schema: Any, options: Options) -> None:
        self.options = options
        names = list(schema.names)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two columns are called {_quoted(twice)}", "Rename one.")
        self.label = self._label_among(names)
        self.features = [name for name in names if name != self.label]
        self.numeric = {name: _is_numeric(schema.field(name).type) for name in names if name != self.label}

    def data_set(self, batch: Any, first: int) -> DataSet:
        """The rows of a batch; ``first`` rows came before."""
        X = np.empty((batch.num_rows, len(self.features)), self.options.dtype)
        missing = np.zeros(len(X), np.bool_)
        for place, name in enumerate(self.features):
            column = batch.column(batch.schema.get_field_index(name))
            if not self.numeric[name]:
                raise DataError(
                    f"column {_quoted(name)} holds {column.type} and no numbers",
                    "Encode it as numbers, remove it, or name it as the label column "
                    f"with label={name!r} (--label on the command line).",
                )
            missing |= self._missing(name, column, first)
            with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN is refused below
                X[:, place] = _numbers(column)
        y = None
        if self.label is not None:
            column = batch.column(batch.schema.get_field_index(self.label))
            missing |= self._missing(self.label, column, first)
            y = _label_array(self.label, column, np.flatnonzero(~missing))
        data = checked(X[~missing] if missing.any() else X, y, first, self.options)
        names = self.features[: data.X.shape[1]]
        return replace(data, feature_names=names, skipped=data.skipped + int(missing.sum()))

    def _missing(self, name: str, column: Any, first: int) -> NDArray[np.bool_] | bool:
        """Which rows of a column have no value; they are refused unless bad lines are skipped."""
        if not column.null_count:
            return False
        missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        if not self.options.skip_bad_lines:
            raise DataError(
                f"row {first + int(np.argmax(missing)) + 1} has no value in column {_quoted(name)}",
                "Fill it in, remove the row, or leave such rows out with skip_bad_lines=True "
                "(--skip-bad-lines on the command line).",
            )
        return missing

    def _label_among(self, names: list[str]) -> str | None:
        wanted = self.options.label
        found = [wanted] if wanted is not None else [name for name in _LABEL_NAMES if name in names]
        if found and found[0] in names:
            return found[0]
        if not self.options.labelled:
            return None
        listed = ", ".join(_quoted(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
        problem = "no column is called label, target, y or class"
        if wanted is not None:
            problem = f"no column is called {_quoted(wanted)}"
        cure = "Name the label column with label=... (--label on the command line)."
        raise DataError(f"{problem}; the columns are {listed}", cure)


def _csv(path: str, options: Options) -> Iterator[tuple[Any, int]]:
    """Batches, and the number of lines that were skipped before each."""
    from pyarrow import RecordBatch, float64

    skipped = 0

    def skip(row: Any) -> str:
        nonlocal skipped
        skipped += 1
        return "skip" if options.skip_bad_lines else "error"

    # The first block alone tells numbers from texts; numbers may have decimals only further on.
    with _opened_csv(path, options, skip, {}) as (_, reader):
        table = _Table(reader.schema, options)
    types = {name: float64() for name, numeric in table.numeric.items() if numeric == "number"}
    skipped = 0
    with _opened_csv(path, options, skip, types) as (source, reader):
        for batch in reader:
            count, skipped = skipped, 0
            yield batch, count
            options.report(source.done, source.size)
        if skipped:
            yield RecordBatch.from_pylist([], schema=reader.schema), skipped


def _parquet(path: str, options: Options) -> Iterator[tuple[Any, int]]:
    from pyarrow import parquet

    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        table = parquet.ParquetFile(file)
        total, done = table.metadata.num_rows, 0
        step = max(1, _VALUES_AT_A_TIME // max(1, table.metadata.num_columns))
        for batch in table.iter_batches(batch_size=step, use_threads=options.threads != 1):
            yield batch, 0
            done += batch.num_rows
            options.report(size * done // max(total, 1), size)


def _require_modest_size(path: str) -> None:
    """A few bytes of Parquet can stand for any number of equal rows."""
    pyarrow = _pyarrow()
    from pyarrow import parquet

    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            metadata = parquet.ParquetFile(file).metadata
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise DataError(f"the table cannot be read: {error}") from error
    needed = 8 * metadata.num_rows * metadata.num_columns
    if needed > bound(size):
        raise DataError(
            f"{metadata.num_rows} rows of {metadata.num_columns} columns would take {needed} bytes, from "
            f"a file of {size}",
            "If the file can be trusted, read it with maxmargin.files.stream, chunk by chunk.",
        )


@contextmanager
def _opened_csv(path: str, options: Options, skip: Any, types: dict[str, Any]) -> Iterator[Any]:
    """The text and pyarrow's reader of it, which takes columns to be of these types."""
    from pyarrow import csv

    stem = path.removesuffix(Path(path).suffix) if Path(path).suffix in COMPRESSED else path
    delimiter = "\t" if stem.lower().endswith(".tsv") else ","
    with TextSource(path) as source:
        if source.size is None:
            raise DataError("a table cannot be read from a pipe", "Save it as a file.")
        text = _Readable(source)
        try:
            with csv.open_csv(
                text,
                read_options=csv.ReadOptions(block_size=_BLOCK, use_threads=options.threads != 1),
                parse_options=csv.ParseOptions(delimiter=delimiter, invalid_row_handler=skip),
                convert_options=csv.ConvertOptions(column_types=types),
            ) as reader:
                yield source, reader
        finally:
            text.stop()


class _Readable(io.RawIOBase):
    """A TextSource as the file object that pyarrow asks for, which has to be UTF-8."""

    def __init__(self, source: TextSource) -> None:
        super().__init__()
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._busy, self._ended = Lock(), Event()
        self._stopped = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        with self._busy:
            try:
                count = 0 if self._stopped else self._fill(memoryview(buffer).cast("B"))
            except BaseException:
                self._ended.set()
                raise
            if count == 0:
                self._ended.set()
            return count

    def stop(self) -> None:
        """Wait until pyarrow, which reads ahead on a thread of its own, has stopped to do so.

        A program that ends in the middle of such a read is aborted by Python.
        """
        self._stopped = True
        with self._busy:
            pass
        self._ended.wait(_LAST_READ)

    def _fill(self, room: memoryview) -> int:
        count = self._source.fill(room)
        try:
            # pyarrow would print a traceback where it meets a bad row that is not.
            self._decoder.decode(room[:count], final=count < len(room))
        except UnicodeDecodeError as error:
            raise DataError(
                "the table is not in UTF-8",
                "Save it as UTF-8.",
                text=shown(bytes(error.object[max(0, error.start - 20) : error.end + 20])),
            ) from None
        return count


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        problem = "CSV and Parquet need pyarrow, which is not installed"
        cure = "Install it with pip install 'maxmargin[tables]'."
        raise DataError(problem, cure) from None
    return pyarrow


def _is_numeric(kind: Any) -> str | None:
    """What a column of this type holds: "number", "truth" or None."""
    from pyarrow import types

    if types.is_boolean(kind):
        return "truth"
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return "number" if any(test(kind) for test in numeric) else None


def _numbers(column: Any) -> NDArray[np.float64]:
    from pyarrow import compute, float64, int8, types

    if types.is_boolean(column.type):
        column = compute.cast(column, int8())
    return np.asarray(compute.cast(column, float64(), safe=False).to_numpy(zero_copy_only=False))


def _label_array(name: str, column: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if len(rows) < len(column):
        column = column.take(rows)
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        labels = column.to_pylist()
        longest = max(labels, key=len, default="")
        if len(longest) > _LONGEST_LABEL:
            raise DataError(
                f"a label in column {_quoted(name)} has {len(longest)} characters",
                "Name the column that holds the classes with label=... .",
                text=shown(longest.encode()),
            )
        return np.array(labels, dtype=str)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    problem = f"the label column {_quoted(name)} holds {kind}"
    raise DataError(problem, "Labels must be numbers, truth values or texts.")


def _quoted(name: str) -> str:
    return f"'{shown(name.encode())}'"
