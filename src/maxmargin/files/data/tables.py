# SPDX-License-Identifier: BSD-3-Clause
"""CSV and Parquet with a label column, read batch by batch through pyarrow."""

from __future__ import annotations

import codecs
import io
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from csv import Error as CsvError
from csv import reader as csv_reader
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple

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
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What may separate values, and its word."""
_SHELL = {",": "','", ";": "';'", "\t": "$'\\t'", "|": "'|'"}
"""The same as one writes it in a shell."""
_LAST_READ = 0.05
"""Seconds after which a thread that reads ahead has begun its next read, if it does."""


def read_table(path: str, options: Options, *, format: str) -> DataSet:
    """Read the whole table."""
    if format == "parquet":
        with about(path):
            require_modest_size(path)
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
    rows, lines = 0, list[int]()
    with about(path):
        pyarrow = load_pyarrow()
        try:
            for batch, ragged in (_csv if format == "csv" else parquet_batches)(path, options):
                lines = sorted([*lines, *ragged])
                data = _Table(batch.schema, options).data_set(batch, rows)
                rows += batch.num_rows
                gaps = sorted([*_among_all(data.gaps, lines), *ragged])
                yield replace(data, skipped=data.skipped + len(ragged), gaps=tuple(gaps))
        except DataError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            cure = "Correct the file" + (", or leave such rows out with skip_bad_lines." if rows else ".")
            raise DataError(f"the table cannot be read after row {rows}: {error}", cure) from error
        if rows == 0:
            raise DataError("there is not a single row in this table", "Check the file.")


def _among_all(rows: tuple[int, ...], ragged: list[int]) -> Iterator[int]:
    """The places of rows among all of a file, of which those that are ragged were not counted."""
    for row in rows:
        for line in ragged:
            row += line <= row
        yield row


def label_among(names: list[str], options: Options) -> str | None:
    """The column of labels; None where there is none and need not be."""
    wanted = options.label
    found = [wanted] if wanted is not None else [name for name in _LABEL_NAMES if name in names]
    if found and found[0] in names:
        return found[0]
    if not options.labelled:
        return None
    listed = ", ".join(_quoted(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
    problem = "no column is called label, target, y or class"
    if wanted is not None:
        problem = f"no column is called {_quoted(wanted)}"
    cure = "Name the label column with label=... (--label on the command line)."
    if close := get_close_matches(wanted or "", names, 1):
        cure = f"Did you mean {_quoted(close[0])}? {cure}"
    elif options.header and any(map(_is_number, names)):
        cure += " If the first line is a row already, say header=False (--no-header on the command line)."
    raise DataError(f"{problem}; the columns are {listed}", cure)


def refuse_twice(names: list[str]) -> None:
    """Refuse a table with two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns are called {_quoted(twice)}", "Rename one.")


class _Table:
    """Which columns of a table are what."""

    def __init__(self, schema: Any, options: Options) -> None:
        self.options = options
        names = list(schema.names)
        refuse_twice(names)
        self.label = label_among(names, options)
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
            y = label_array(self.label, column, np.flatnonzero(~missing))
        data = checked(X[~missing] if missing.any() else X, y, 0, self.options)
        names, kept = self.features[: data.X.shape[1]], np.flatnonzero(~missing)
        gaps = [*(first + np.flatnonzero(missing)), *(first + kept[list(data.gaps)])]
        return replace(
            data,
            feature_names=names,
            skipped=data.skipped + int(missing.sum()),
            gaps=() if self.options.labelled else tuple(sorted(map(int, gaps))),
        )

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


def _csv(path: str, options: Options) -> Iterator[tuple[Any, list[int]]]:
    """Batches, and the rows that were left out since the last one, counted from 0."""
    from pyarrow import RecordBatch, float64

    ragged: list[int] = []

    def skip(row: Any) -> str:
        ragged.append((row.number or 0) - 1 - options.header)
        return "skip" if options.skip_bad_lines else "error"

    if options.skip_bad_lines:
        options = replace(options, threads=1)  # only then it is known which lines are left out

    # The first block alone tells numbers from texts; numbers may have decimals only further on.
    sheet = Sheet.of(path, options)
    table = _Table(sheet.schema(options, skip), options)
    types = {name: float64() for name, numeric in table.numeric.items() if numeric == "number"}
    ragged.clear()
    with sheet.opened(options, skip, types) as (source, reader):
        for batch in reader:
            left_out, ragged[:] = list(ragged), []
            yield batch, left_out
            options.report(source.done, source.size)
        if ragged:
            yield RecordBatch.from_pylist([], schema=reader.schema), ragged


def parquet_batches(path: str, options: Options) -> Iterator[tuple[Any, list[int]]]:
    """Batches, none of whose rows is ever left out."""
    from pyarrow import parquet

    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        table = parquet.ParquetFile(file)
        total, done = table.metadata.num_rows, 0
        step = max(1, _VALUES_AT_A_TIME // max(1, table.metadata.num_columns))
        for batch in table.iter_batches(batch_size=step, use_threads=options.threads != 1):
            yield batch, []
            done += batch.num_rows
            options.report(size * done // max(total, 1), size)


def require_modest_size(path: str) -> None:
    """A few bytes of Parquet can stand for any number of equal rows."""
    pyarrow = load_pyarrow()
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


class Sheet(NamedTuple):
    """How the text of a table is laid out."""

    path: str
    delimiter: str
    names: list[str] | None
    """The names of the columns, where the file does not tell them."""
    start: bytes
    """The first lines of the text, as many as fit into a block."""

    @classmethod
    def of(cls, path: str, options: Options) -> Sheet:
        """Refuses a table that is not as it is said to be."""
        with TextSource(path) as source:
            if source.size is None:
                raise DataError("a table cannot be read from a pipe", "Save it as a file.")
            buffer = bytearray(_BLOCK)
            start = bytes(buffer[: source.fill(memoryview(buffer))])
        if len(start) == _BLOCK and b"\n" in start:
            start = start[: start.rfind(b"\n") + 1]
        try:
            start.decode()  # pyarrow would print a traceback where it meets a bad row that is not
        except UnicodeDecodeError as error:
            raise not_utf8(error) from None
        stem = path.removesuffix(Path(path).suffix) if Path(path).suffix in COMPRESSED else path
        delimiter = options.delimiter or ("\t" if stem.lower().endswith(".tsv") else ",")
        return cls(path, delimiter, _names(start, delimiter, options), start)

    def schema(self, options: Options, skip: Any, **others: Any) -> Any:
        """The types that the first lines of the text have."""
        from pyarrow import BufferReader, csv

        with csv.open_csv(BufferReader(self.start), **self._options(options, skip, {}, **others)) as reader:
            return reader.schema

    @contextmanager
    def opened(self, options: Options, skip: Any, types: dict[str, Any], **others: Any) -> Iterator[Any]:
        """The text and pyarrow's reader of it, which takes columns to be of these types."""
        from pyarrow import csv

        with TextSource(self.path) as source:
            text = _Readable(source)
            try:
                with csv.open_csv(text, **self._options(options, skip, types, **others)) as reader:
                    yield source, reader
            finally:
                text.stop()

    def _options(
        self, options: Options, skip: Any, types: dict[str, Any], *, texts_may_be_missing: bool = False
    ) -> dict[str, Any]:
        from pyarrow import csv

        return {
            "read_options": csv.ReadOptions(
                block_size=_BLOCK, use_threads=options.threads != 1, column_names=self.names
            ),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=skip),
            "convert_options": csv.ConvertOptions(
                column_types=types,
                null_values=[*csv.ConvertOptions().null_values, " ", *options.missing],
                strings_can_be_null=texts_may_be_missing,
            ),
        }


def _names(start: bytes, delimiter: str, options: Options) -> list[str] | None:
    """The names of the columns where the text does not tell them."""
    line, _, _ = start.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n").partition(b"\n")
    try:
        first = next(csv_reader([line.decode()], delimiter=delimiter), [])
    except (UnicodeDecodeError, CsvError):
        return None  # the reader says what is wrong
    if len(first) == 1 and options.delimiter is None:
        for other, word in _DELIMITERS.items():
            if other != delimiter and other in first[0]:
                raise DataError(
                    f"the values are separated by {word}, not by {_DELIMITERS[delimiter]}",
                    f"Say delimiter={other!r} (--delimiter {_SHELL[other]} on the command line).",
                )
    if not options.header:
        return [str(number) for number in range(1, len(first) + 1)]
    numbers = [field for field in first if _is_number(field)]
    looks_like_values = len(set(numbers)) < len(numbers) or any("." in field for field in numbers)
    if 2 * len(numbers) > len(first) and looks_like_values:
        raise DataError(
            "the first line holds values instead of the names of the columns",
            "Say header=False (--no-header on the command line); the columns are then called 1, 2, ...",
            text=shown(line.strip()),
        )
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
            raise not_utf8(error) from None
        return count


def not_utf8(error: UnicodeDecodeError) -> DataError:
    """What is said of a table in another encoding."""
    place = bytes(error.object[max(0, error.start - 20) : error.end + 20])
    return DataError("the table is not in UTF-8", "Save it as UTF-8.", text=shown(place))


def load_pyarrow() -> Any:
    """The module; a DataError says how to install it."""
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


def label_array(name: str, column: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
    """The labels of some rows."""
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
