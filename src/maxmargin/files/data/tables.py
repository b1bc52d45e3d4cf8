# SPDX-License-Identifier: BSD-3-Clause
"""CSV and Parquet with a label column, read batch by batch through pyarrow."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.data.compressed import bound
from maxmargin.files.data.reading import DataError, DataSet, Options, about, checked, open_file, shown
from maxmargin.files.data.sheets import RaggedRows, Sheet, is_number

_LABEL_NAMES = ("label", "target", "y", "class")
"""What a label column may be called without being named, in the order of preference."""
_VALUES_AT_A_TIME = 1 << 18
"""Values of Parquet that are read at once, 2 MiB of numbers."""
_LONGEST_LABEL = 256
"""Characters of a label: a longer text is not a class, and NumPy would give every label its width."""


def read_table(path: str, options: Options, *, format: str) -> DataSet:
    """Read the whole table."""
    if format == "parquet":
        with about(path):
            require_modest_size(path)
    chunks = deque(stream_table(path, options, format=format))
    first = chunks[0]
    skipped, dropped = sum(chunk.skipped for chunk in chunks), sum(chunk.dropped for chunk in chunks)
    y = None if first.y is None else np.concatenate([chunk.y for chunk in chunks])
    query = None if first.query is None else np.concatenate([chunk.query for chunk in chunks])
    X = np.empty((sum(len(chunk.X) for chunk in chunks), first.X.shape[1]), options.dtype)
    row = 0
    while chunks:  # freed as they are copied: both never exist whole
        part = chunks.popleft().X
        X[row : row + len(part)] = part
        row += len(part)
    return DataSet(X, y, first.feature_names, skipped, dropped, query=query)


def stream_table(path: str, options: Options, *, format: str) -> Iterator[DataSet]:
    """Read the rows of the table in chunks."""
    lines = list[int]()
    with counted_rows(path) as read:
        for batch, ragged in (_csv if format == "csv" else parquet_batches)(path, options):
            lines = sorted([*lines, *ragged])
            data = _Table(batch.schema, options).data_set(batch, read.rows)
            read.rows += batch.num_rows
            gaps = sorted([*_among_all(data.gaps, lines), *ragged])
            yield replace(data, skipped=data.skipped + len(ragged), gaps=tuple(gaps))


@dataclass
class CountedRows:
    """How many rows of a table have been read."""

    rows: int = 0


@contextmanager
def counted_rows(path: str) -> Iterator[CountedRows]:
    """For the time in which a table is read by whoever counts its rows: faults say where they are."""
    read = CountedRows()
    with about(path):
        pyarrow = load_pyarrow()
        try:
            yield read
        except DataError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            place = f"after row {read.rows}"
            raise DataError(f"the table cannot be read {place}: {error}", "Correct it.") from error
        if read.rows == 0:
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
    elif options.header and any(map(is_number, names)):
        cure += " If the first line is a row already, say header=False (--no-header on the command line)."
    raise DataError(f"{problem}; the columns are {listed}", cure)


def query_among(names: list[str], options: Options) -> str | None:
    """The column of queries; None where none is asked for."""
    wanted = options.query
    if wanted is None or wanted in names:
        return wanted
    listed = ", ".join(_quoted(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
    cure = "Name the column of the queries with query=... (--query on the command line)."
    raise DataError(f"no column is called {_quoted(wanted)}; the columns are {listed}", cure)


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
        self.query = query_among(names, options)
        self.features = [name for name in names if name not in (self.label, self.query)]
        self.numeric = {name: _is_numeric(schema.field(name).type) for name in self.features}

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
        query = None
        if self.query is not None:
            column = batch.column(batch.schema.get_field_index(self.query))
            lacking = self._missing(self.query, column, first)
            if y is not None and np.any(lacking & ~missing):
                y = y[~np.asarray(lacking)[~missing]]
            missing |= lacking
            query = label_array(self.query, column, np.flatnonzero(~missing))
        data = checked(X[~missing] if missing.any() else X, y, 0, self.options, query)
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

    ragged = RaggedRows(options)
    if options.skip_bad_lines:
        options = replace(options, threads=1)  # only then it is known which lines are left out

    # The first block alone tells numbers from texts; numbers may have decimals only further on.
    sheet = Sheet.of(path, options)
    table = _Table(sheet.schema(options, ragged), options)
    types = {name: float64() for name, numeric in table.numeric.items() if numeric == "number"}
    ragged.taken()
    with sheet.opened(options, ragged, types) as (source, reader):
        for batch in reader:
            yield batch, ragged.taken()
            options.report(source.done, source.size)
        if left_out := ragged.taken():
            yield RecordBatch.from_pylist([], schema=reader.schema), left_out


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
