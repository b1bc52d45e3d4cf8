# SPDX-License-Identifier: BSD-3-Clause
"""CSV and Parquet with a label column, read batch by batch through pyarrow."""

from __future__ import annotations

import codecs
import io
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.data.compressed import TextSource, bound
from maxmargin.files.data.reading import DataError, DataSet, Options, open_file, shown
from maxmargin.files.models.checked import checked

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_LABEL_NAMES = ("label", "target", "y", "class")
_BLOCK = 1 << 22
_VALUES_AT_A_TIME = 1 << 18
_LONGEST_LABEL = 256
_LAST_READ = 0.05  # seconds after which a thread that reads ahead has begun its next read, if it does


def read_table(path: str, options: Options, *, format: str) -> DataSet:
    """All of the table."""
    if format == "parquet":
        _require_modest_size(path)
    chunks = deque(stream_table(path, options, format=format))
    rows = sum(len(chunk.X) for chunk in chunks)
    skipped = sum(chunk.skipped for chunk in chunks)
    dropped = sum(chunk.dropped for chunk in chunks)
    names, columns = chunks[0].feature_names, chunks[0].X.shape[1]
    y = None if chunks[0].y is None else np.concatenate([chunk.y for chunk in chunks])
    X = np.empty((rows, columns), options.dtype)
    row = 0
    while chunks:  # freed as they are copied: both never exist whole
        part = chunks.popleft().X
        X[row : row + len(part)] = part
        row += len(part)
    return DataSet(X, y, names, skipped, dropped)


def stream_table(path: str, options: Options, *, format: str) -> Iterator[DataSet]:
    """The rows of the table in chunks."""
    pyarrow = _pyarrow(path)
    rows = 0
    try:
        for batch, skipped in (_csv if format == "csv" else _parquet)(path, options):
            table = _Table(path, batch.schema, options)
            data = table.data_set(batch, rows)
            rows += batch.num_rows
            yield DataSet(data.X, data.y, data.feature_names, data.skipped + skipped, data.dropped)
    except DataError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        cure = "Correct the file" + (", or leave such rows out with skip_bad_lines." if rows else ".")
        problem = f"the table cannot be read after row {rows}: {error}"
        raise DataError(problem, path=path, cure=cure) from error
    if rows == 0:
        raise DataError("there is not a single row in this table", path=path, cure="Check the file.")


class _Table:
    """Which columns of a table are what."""

    def __init__(self, path: str, schema: Any, options: Options) -> None:
        self.path, self.options = path, options
        names = list(schema.names)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two columns are called {_quoted(twice)}", path=path, cure="Rename one.")
        self.label = self._label_among(names)
        self.features = [name for name in names if name != self.label]
        self.numeric = {name: _is_numeric(schema.field(name).type) for name in names if name != self.label}

    def data_set(self, batch: Any, first: int) -> DataSet:
        """``first`` rows came before."""
        X = np.empty((batch.num_rows, len(self.features)), self.options.dtype)
        missing: dict[int, str] = {}
        for place, name in enumerate(self.features):
            column = batch.column(batch.schema.get_field_index(name))
            if not self.numeric[name]:
                raise self._not_numeric(name, column, first)
            if column.null_count:
                self._note_missing(missing, name, column, first)
            with np.errstate(over="ignore", invalid="ignore"):  # what is infinite or NaN is refused below
                X[:, place] = _numbers(column)
        y = self._labels(batch, missing, first)
        keep = np.ones(len(X), np.bool_)
        keep[list(missing)] = False
        data = checked(self.path, X[keep] if missing else X, y, first, self.options)
        names = self.features[: data.X.shape[1]]
        return DataSet(data.X, data.y, names, data.skipped + len(missing), data.dropped)

    def _labels(self, batch: Any, missing: dict[int, str], first: int) -> NDArray[Any] | None:
        if self.label is None:
            return None
        column = batch.column(batch.schema.get_field_index(self.label))
        if column.null_count:
            self._note_missing(missing, self.label, column, first)
        return _label_array(self.path, self.label, column, sorted(set(range(len(column))) - set(missing)))

    def _note_missing(self, missing: dict[int, str], name: str, column: Any, first: int) -> None:
        rows = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
        if not self.options.skip_bad_lines:
            raise DataError(
                f"row {first + int(rows[0]) + 1} has no value in column {_quoted(name)}",
                path=self.path,
                cure="Fill it in, remove the row, or leave such rows out with skip_bad_lines=True "
                "(--skip-bad-lines on the command line).",
            )
        missing.update(dict.fromkeys(rows.tolist(), name))

    def _not_numeric(self, name: str, column: Any, first: int) -> DataError:
        return DataError(
            f"column {_quoted(name)} holds {column.type} and no numbers",
            path=self.path,
            cure="Encode it as numbers, remove it, or name it as the label column "
            f"with label={name!r} (--label on the command line).",
        )

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
        raise DataError(
            f"{problem}; the columns are {listed}",
            path=self.path,
            cure="Name the label column with label=... (--label on the command line).",
        )


def _csv(path: str, options: Options) -> Iterator[tuple[Any, int]]:
    """Batches, and the number of lines that were skipped before each."""
    from pyarrow import RecordBatch, csv, float64

    skipped = 0

    def skip(row: Any) -> str:
        nonlocal skipped
        skipped += 1
        return "skip" if options.skip_bad_lines else "error"

    stem = path.removesuffix(Path(path).suffix) if Path(path).suffix in (".gz", ".bz2", ".zst") else path
    parse = csv.ParseOptions(
        delimiter="\t" if stem.lower().endswith(".tsv") else ",", invalid_row_handler=skip
    )
    how = csv.ReadOptions(block_size=_BLOCK, use_threads=options.threads != 1)
    # The first block alone tells numbers from texts; numbers may have decimals only further on.
    with TextSource(path) as source:
        if source.size is None:
            raise DataError("a table cannot be read from a pipe", path=path, cure="Save it as a file.")
        with _readable(source) as text, csv.open_csv(text, read_options=how, parse_options=parse) as reader:
            schema = reader.schema
    table = _Table(path, schema, options)
    types = {name: float64() for name, numeric in table.numeric.items() if numeric == "number"}
    skipped = 0
    with (
        TextSource(path) as source,
        _readable(source) as text,
        csv.open_csv(
            text,
            read_options=how,
            parse_options=parse,
            convert_options=csv.ConvertOptions(column_types=types),
        ) as reader,
    ):
        for batch in reader:
            count, skipped = skipped, 0
            yield batch, count
            if options.progress is not None:
                options.progress(source.done, source.size or 0)
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
            if options.progress is not None:
                options.progress(size * done // max(total, 1), size)


def _require_modest_size(path: str) -> None:
    """A few bytes of Parquet can stand for any number of equal rows."""
    pyarrow = _pyarrow(path)
    from pyarrow import parquet

    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            metadata = parquet.ParquetFile(file).metadata
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise DataError(f"the table cannot be read: {error}", path=path) from error
    needed = 8 * metadata.num_rows * metadata.num_columns
    if needed > bound(size):
        raise DataError(
            f"{metadata.num_rows} rows of {metadata.num_columns} columns would take {needed} bytes, from "
            f"a file of {size}",
            path=path,
            cure="If the file can be trusted, read it with maxmargin.files.stream, chunk by chunk.",
        )


@contextmanager
def _readable(source: TextSource) -> Iterator[_Readable]:
    text = _Readable(source)
    try:
        yield text
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
                path=self._source.path,
                text=shown(bytes(error.object[max(0, error.start - 20) : error.end + 20])),
                cure="Save it as UTF-8.",
            ) from None
        return count


def _pyarrow(path: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise DataError(
            "CSV and Parquet need pyarrow, which is not installed",
            path=path,
            cure="Install it with pip install 'maxmargin[tables]'.",
        ) from None
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


def _label_array(path: str, name: str, column: Any, rows: list[int]) -> NDArray[Any]:
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if len(rows) < len(column):
        column = column.take(np.array(rows, np.int64))
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        labels = column.to_pylist()
        longest = max(labels, key=len, default="")
        if len(longest) > _LONGEST_LABEL:
            raise DataError(
                f"a label in column {_quoted(name)} has {len(longest)} characters",
                path=path,
                text=shown(longest.encode()),
                cure="Name the column that holds the classes with label=... .",
            )
        return np.array(labels, dtype=str)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    raise DataError(
        f"the label column {_quoted(name)} holds {kind}",
        path=path,
        cure="Labels must be numbers, truth values or texts.",
    )


def _quoted(name: str) -> str:
    return f"'{shown(name.encode())}'"
