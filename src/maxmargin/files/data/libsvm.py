# SPDX-License-Identifier: BSD-3-Clause
"""LIBSVM text: ``label index:value index:value ...``, one example per line, parsed by the compiled core.

Python owns the loop: it reads blocks of whole lines, has a few of them parsed at a time, each by a thread
of its own without the interpreter's lock, and takes the results in the order of the file. The result
does not depend on the number of threads or on where blocks end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.files.data.compressed import TextSource
from maxmargin.files.data.reading import DataError, DataSet, Options, about, read, shown
from maxmargin.files.data.text_blocks import blocks, in_order
from maxmargin.types import Indices, Vector

LONGEST_LINE = 64 << 20
"""Bytes of a line: a longer one is a file without newlines, or no text at all."""
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 16, 1 << 20
"""Bytes of a block: below the first, handing it to a thread costs more than parsing it; beyond the second,
blocks in flight take memory and parse no faster."""
_BLOCKS_PER_FILE = 128
"""Blocks of a file of middle size, so that all threads end at about the same time."""
_MOST_THREADS = 8
"""Threads that parse: one alone hands out the text, and every block in flight takes memory."""
_COLUMNS_WITHOUT_ASKING = 1 << 20
"""Columns that any file may have, 8 MiB of weights; a file of more bytes may have as many as bytes."""
_WIDEST_NARROW = np.iinfo(np.int32).max

_IF_A_TABLE = "If this is a table, say format='csv' (--format csv on the command line)."
# What is wrong, and the cure.
_FAULTS = {
    "label_missing": (
        "a line must begin with its label",
        "Put the label, or a 0, in front of the first index:value.",
    ),
    "label_not_a_number": (
        "a label must be a decimal number",
        f"Give every class a number. {_IF_A_TABLE}",
    ),
    "label_not_finite": ("a label must be a finite number", "Remove the line or correct its label."),
    "label_not_alone": (
        "a line must have one label, a number with a decimal point",
        f"{_IF_A_TABLE} Several labels per line are not supported: write a file for each.",
    ),
    "index_missing": ("an index is missing before the colon", "Write index:value."),
    "index_not_a_number": ("an index must be a whole number", "Write index:value, as in 3:0.5."),
    "index_negative": ("an index must not be negative", "Number the columns from 1."),
    "index_below_first": (
        "an index is 0, but the first column is number 1",
        "If this file counts from 0, say zero_based=True (--zero-based on the command line).",
    ),
    "query_beyond_64_bits": ("the number of a query must be below 2^63", "Number the queries anew."),
    "index_beyond_64_bits": ("an index must be below 2^63", "Correct the index."),
    "index_unsorted": ("the indices of a line must increase", "Sort the values of each line by index."),
    "index_repeated": ("an index occurs twice in a line", "Remove one of the two values or add them up."),
    "colon_missing": ("a colon is missing", "Write index:value, as in 3:0.5."),
    "value_missing": ("a value is missing after the colon", "Write index:value; leave out what is 0."),
    "value_not_a_number": (
        "a value must be a decimal number",
        "Write it with a decimal point and without separators, as in 1234.5 or 1e-3.",
    ),
    "value_not_finite": ("a value must be finite", "Remove the line or replace the value."),
    "value_too_large": ("a value is too large for its type", "Scale the column, or use float64."),
    "nul_byte": (
        "a byte is 0, which text does not have",
        "The file is damaged, in UTF-16, or no text at all: save it as UTF-8.",
    ),
    "line_too_long": (
        f"a line is longer than {LONGEST_LINE >> 20} MiB",
        "A line must hold one example: check that the file's lines end with a newline.",
    ),
}


def read_libsvm(path: str | os.PathLike[str], **options: Any) -> tuple[Any, Vector]:
    """The rows of LIBSVM text as a CSR matrix, and their labels; options as in ``read``.

    Labels are float32 where that type has every one of them exactly, as it has whole numbers up to 2^24;
    else float64. A file of few values per row is mostly labels, and twice as many of them fit so.
    """
    data = read(path, format="libsvm", **options)
    assert data.y is not None
    return data.X, data.y


def write_libsvm(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    query: ArrayLike | None = None,
    *,
    zero_based: bool = False,
) -> None:
    """Write LIBSVM text that reads back to the last bit, whole or not at all.

    query : whole numbers from 0 on, one for each row, which are written as ``qid:N``.
    """
    from maxmargin.files.whole import write_whole

    rows = sparse.csr_array(X)
    labels = np.asarray(y).astype(np.float64)
    queries = [None] * rows.shape[0] if query is None else np.asarray(query).tolist()
    if not len(labels) == len(queries) == rows.shape[0]:
        raise ValueError(
            f"There must be one label and one query for each of the {rows.shape[0]} rows. Got "
            f"{len(labels)} and {len(queries)}."
        )
    if not all(number is None or (type(number) is int and 0 <= number < 2**63) for number in queries):
        raise ValueError("The queries of LIBSVM text are whole numbers from 0 to 2^63 - 1. Number them.")
    if not (np.isfinite(rows.data).all() and np.isfinite(labels).all()):
        raise ValueError("Values and labels must be finite. Got NaN or infinity instead.")
    rows.sum_duplicates()

    def lines() -> Iterator[bytes]:
        for i, (label, number) in enumerate(zip(labels.tolist(), queries, strict=True)):
            row = slice(rows.indptr[i], rows.indptr[i + 1])
            words = [repr(label).removesuffix(".0")] + ([] if number is None else [f"qid:{number}"])
            values = zip(rows.indices[row].tolist(), rows.data[row].tolist(), strict=True)
            words += [f"{index + (not zero_based)}:{value!r}".removesuffix(".0") for index, value in values]
            yield (" ".join(words) + "\n").encode()

    write_whole(path, lambda file: file.writelines(lines()))


def read_text(path: str, options: Options, *, block: int | None = None) -> DataSet:
    """Read a whole file of LIBSVM text, in little more memory than the result takes."""
    table = _Table(options)
    with about(path), TextSource(path) as source:
        for chunk in _chunks(source, options, block):
            table.add(chunk)
        limit = max(_COLUMNS_WITHOUT_ASKING, source.taken)
        _require_rows(table.rows)
        if options.columns is None and table.largest >= limit:
            raise _beyond_columns(options, limit, table.largest_at)
    return table.data_set()


def stream_text(path: str, options: Options, *, block: int | None = None) -> Iterator[DataSet]:
    """LIBSVM text in chunks of about ``block`` bytes of text."""
    rows = skipped = 0
    with about(path), TextSource(path) as source:
        for chunk in _chunks(source, options, block):
            rows += len(chunk.labels)
            if len(chunk.labels) or chunk.skipped:
                table = _Table(options)
                table.add(chunk)
                gaps = tuple(rows + skipped - len(chunk.labels) + place for place in chunk.gaps)
                yield replace(table.data_set(), gaps=gaps)
                skipped += chunk.skipped
        _require_rows(rows)


Position = dict[str, Any]
"""The place of something in the text: line, column and text of a ``DataError``."""
_NOWHERE: Position = {}


class _Chunk(NamedTuple):
    """The rows of one block."""

    values: NDArray[Any] = np.empty(0)
    indices: NDArray[Any] = np.empty(0, np.int32)
    ends: NDArray[np.int32] = np.empty(0, np.int32)
    """The place in ``values`` where each row ends."""
    labels: Vector = np.empty(0)
    queries: Indices | None = None
    """The number of each row's query, -1 for one that has none; None where no row has any."""
    skipped: int = 0
    dropped: int = 0
    largest: int = -1
    """The last column that occurs, from 0; -1 where there is none."""
    largest_at: Position = _NOWHERE
    gaps: tuple[int, ...] = ()
    """The places of rows that were left out, among all of the block."""


def _chunks(source: TextSource, options: Options, block: int | None) -> Iterator[_Chunk]:
    """The chunks of a text, in its order; raises DataError at the first bad line, or skips them all."""
    if block is None:
        share = _LARGEST_BLOCK if source.size is None else source.size // _BLOCKS_PER_FILE
        block = min(max(share, _SMALLEST_BLOCK), _LARGEST_BLOCK)
    wanted = core.default_threads() if options.threads is None else options.threads
    threads = 1 if source.size is not None and source.size < block else min(wanted, _MOST_THREADS)
    limit = options.columns
    if limit is None:
        limit = 2**63 - 1 if source.largest is None else max(_COLUMNS_WITHOUT_ASKING, source.largest)

    def parse(text: memoryview | None) -> Any:
        return (text, _parse(text, options, limit)) if text is not None else None

    lines = 0
    spare: list[bytearray] = []
    texts = blocks(source, block, LONGEST_LINE, spare, skip_long=options.skip_bad_lines)
    for result in in_order(parse, texts, threads):
        options.report(source.done, source.size)
        if result is None:
            lines += 1
            if not options.skip_bad_lines:
                raise _error("line_too_long", {"line": lines, "column": 1})
            yield _Chunk(skipped=1, gaps=(0,))
            continue
        text, (arrays, facts) = result
        if facts.faulty and not options.skip_bad_lines:
            position = _position(text, facts.fault_place, lines)
            if facts.fault == "index_beyond_columns":
                raise _beyond_columns(options, limit, position)
            raise _error(facts.fault, position)
        largest_at = _position(text, facts.largest_place, lines)
        lines += facts.lines
        gaps = _gaps(text, options, limit) if facts.faulty and not options.labelled else ()
        buffer = text.obj
        text.release()  # a buffer that someone still looks at cannot grow
        spare.append(buffer)
        queries = arrays[4] if facts.with_query else None
        found = facts.faulty, facts.dropped, facts.largest, largest_at, gaps
        values, indices, ends, labels, _ = arrays
        yield _Chunk(values, indices, ends, labels, queries, *found)


def _gaps(text: memoryview, options: Options, columns: int) -> tuple[int, ...]:
    """Which rows of a block are faulty: its lines one by one, which only blocks with faults are worth."""
    row, gaps = 0, []
    for line in bytes(text).split(b"\n")[:-1]:  # the core knows no other end of a line
        (_, _, _, labels, _), facts = _parse(memoryview(line + b"\n"), options, columns)
        if facts.faulty:
            gaps.append(row)
        row += len(labels) + facts.faulty
    return tuple(gaps)


def _parse(text: memoryview, options: Options, columns: int) -> tuple[Any, core.ParsedRows]:
    """Arrays and facts. The indices have 64 bits only where 32 do not do."""
    for wide in (False, True):
        arrays, facts = core.parse_libsvm(
            np.frombuffer(text, np.uint8),
            wide=wide,
            single=options.dtype == np.float32,
            first_index=0 if options.zero_based else 1,
            columns=columns,
            drop_extra=options.ignore_extra and options.columns is not None,
            labels_optional=not options.labelled,
            skip_faulty=options.skip_bad_lines,
        )
        if not facts.too_narrow:
            break
    return arrays, facts


class _Table:
    """The rows read so far, in memory that grows in place: only the last blocks are ever held twice."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.rows = self.stored = self.skipped = self.dropped = 0
        self.largest = -1
        self.largest_at = _NOWHERE
        self.index_type, self.label_type = "int32", "float32"
        self.queries: core.GrowingBytes | None = None  # made where a row has one
        self.values, self.indices, self.offsets, self.labels = (core.GrowingBytes() for _ in range(4))
        self.offsets.append(np.zeros(1, np.int32))

    def add(self, chunk: _Chunk) -> None:
        """Append the rows of a block."""
        if chunk.largest > self.largest:
            self.largest, self.largest_at = chunk.largest, chunk.largest_at
        if max(self.stored + len(chunk.values), chunk.largest) > _WIDEST_NARROW:
            self._widen()
        self.values.append(chunk.values)
        self.indices.append(chunk.indices.astype(self.index_type, copy=False))
        self.offsets.append(np.add(chunk.ends, self.stored, dtype=self.index_type))
        self._add_labels(chunk.labels)
        self._add_queries(chunk)
        self.rows += len(chunk.labels)
        self.stored += len(chunk.values)
        self.skipped += chunk.skipped
        self.dropped += chunk.dropped

    def _add_labels(self, labels: Vector) -> None:
        with np.errstate(over="ignore"):  # what becomes infinite is not the same
            narrow = labels.astype(self.label_type)
        if not np.array_equal(narrow, labels, equal_nan=True):
            self.labels.append(self.labels.take("float32").astype(np.float64))
            self.label_type, narrow = "float64", labels
        self.labels.append(narrow)

    def _add_queries(self, chunk: _Chunk) -> None:
        if self.queries is None:
            if chunk.queries is None:
                return
            self.queries = core.GrowingBytes()
            self.queries.append(np.full(self.rows, -1, np.int64))
        none = np.full(len(chunk.labels), -1, np.int64)
        self.queries.append(none if chunk.queries is None else chunk.queries)

    def _widen(self) -> None:
        if self.index_type == "int32":
            self.index_type = "int64"
            for array in (self.indices, self.offsets):
                array.append(array.take("int32").astype(np.int64))

    def data_set(self) -> DataSet:
        """What has been read; nothing can be added afterwards."""
        columns = self.largest + 1 if self.options.columns is None else self.options.columns
        if columns > _WIDEST_NARROW:
            self._widen()
        values = self.values.take(np.dtype(self.options.dtype).name)
        indices, offsets = self.indices.take(self.index_type), self.offsets.take(self.index_type)
        X = sparse.csr_array((values, indices, offsets), shape=(self.rows, columns))
        X.has_sorted_indices = X.has_canonical_format = True  # the parser has seen to it
        queries = None if self.queries is None else self.queries.take("int64")
        labels = self.labels.take(self.label_type)
        return DataSet(X, labels, None, self.skipped, self.dropped, query=queries)


def _require_rows(rows: int) -> None:
    if rows == 0:
        cure = "Check that it is the right one, and that writing it did not fail."
        raise DataError("there is not a single row in this file", cure)


def _position(text: memoryview, place: core.Place, lines: int) -> Position:
    """A place of a block in the whole text, of which so many lines came before."""
    return {
        "line": lines + place.line + 1,
        "column": place.begin - place.line_begin + 1,
        "text": shown(bytes(text[place.begin : min(place.end, place.begin + 100)])),
    }


def _error(fault: str, position: Position) -> DataError:
    return DataError(*_FAULTS[fault], **position)


def _beyond_columns(options: Options, limit: int, position: Position) -> DataError:
    problem = f"an index lies beyond the {limit} columns asked for"
    cure = "Ask for more columns, or say ignore_extra=True to leave such values out."
    if options.columns is None:
        problem = f"an index is above {limit}, the most that is taken from so small a file unasked"
        cure = (
            "A model takes 8 bytes per column. If the index is right, say columns=N with N the number of "
            "columns (--columns N on the command line)."
        )
    return DataError(problem, cure, **position)
