# SPDX-License-Identifier: BSD-3-Clause
"""LIBSVM text: ``label index:value index:value ...``, one example per line, parsed by the compiled core.

Python owns the loop: it reads blocks of whole lines, has a few of them parsed at a time, each by a thread
of its own without the interpreter's lock, and takes the results in the order of the file. The result
does not depend on the number of threads or on where blocks end.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.files.blocks import blocks, in_order
from maxmargin.files.compressed import TextSource
from maxmargin.files.data import DataError, DataSet, Options, read, shown
from maxmargin.types import Vector

LONGEST_LINE = 64 << 20
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 18, 1 << 22
_BLOCKS_PER_FILE = 32
_MOST_THREADS = 8  # one thread alone hands out the text, and every block in flight takes memory
_COLUMNS_WITHOUT_ASKING = 1 << 20
_WIDEST_NARROW = np.iinfo(np.int32).max

# What is wrong, and the cure.
_FAULTS = {
    "label_missing": (
        "a line must begin with its label",
        "Put the label, or a 0, in front of the first index:value.",
    ),
    "label_not_a_number": ("a label must be a decimal number", "Give every class a number."),
    "label_not_finite": ("a label must be a finite number", "Remove the line or correct its label."),
    "label_not_alone": (
        "a line must have one label, a number with a decimal point",
        "Several labels per line are not supported: write a file for each.",
    ),
    "index_missing": ("an index is missing before the colon", "Write index:value."),
    "index_not_a_number": ("an index must be a whole number", "Write index:value, as in 3:0.5."),
    "index_negative": ("an index must not be negative", "Number the columns from 1."),
    "index_below_first": (
        "an index is 0, but the first column is number 1",
        "If this file counts from 0, say zero_based=True (--zero-based on the command line).",
    ),
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
    """The rows of LIBSVM text as a CSR matrix, and their labels; options as in ``read``."""
    data = read(path, format="libsvm", **options)
    assert data.y is not None
    return data.X, data.y


def read_text(path: str, options: Options, *, block: int | None = None) -> DataSet:
    """All of a file of LIBSVM text, in little more memory than the result takes."""
    with TextSource(path) as source:
        chunks = deque(_chunks(source, options, block))
        limit = max(_COLUMNS_WITHOUT_ASKING, source.taken)
    _require_rows(sum(chunk.rows for chunk in chunks), path)
    widest = max(chunks, key=lambda chunk: chunk.largest)
    if options.columns is None and widest.largest >= limit:
        raise _beyond_columns(path, options, limit, widest.largest_at)
    return _joined(chunks, options)


def stream_text(path: str, options: Options, *, block: int | None = None) -> Iterator[DataSet]:
    """LIBSVM text in chunks of about ``block`` bytes of text."""
    rows = 0
    with TextSource(path) as source:
        for chunk in _chunks(source, options, block):
            rows += chunk.rows
            if chunk.rows or chunk.skipped:
                yield _joined(deque([chunk]), options)
    _require_rows(rows, path)


Position = tuple[int, int, str]
"""Line, column and text."""


@dataclass(frozen=True, eq=False)
class _Chunk:
    """The rows of one block."""

    values: NDArray[Any]
    indices: NDArray[Any]
    ends: NDArray[np.int32]
    """Where each row ends in ``values``."""
    labels: Vector
    skipped: int
    dropped: int
    largest: int
    """The last column that occurs, from 0; -1 where there is none."""
    largest_at: Position

    @property
    def rows(self) -> int:
        return len(self.labels)


def _chunks(source: TextSource, options: Options, block: int | None) -> Iterator[_Chunk]:
    """The chunks of a text, in its order; raises DataError at the first bad line, or skips them all."""
    if block is None:
        share = _LARGEST_BLOCK if source.size is None else source.size // _BLOCKS_PER_FILE
        block = min(max(share, _SMALLEST_BLOCK), _LARGEST_BLOCK)
    threads = 1 if source.size is not None and source.size < block else _threads(options)
    limit = options.columns
    if limit is None:
        limit = 2**63 - 1 if source.largest is None else max(_COLUMNS_WITHOUT_ASKING, source.largest)

    def parse(text: memoryview | None) -> Any:
        return (text, _parse(text, options, limit)) if text is not None else None

    lines = 0
    spare: list[bytearray] = []
    texts = blocks(source, block, LONGEST_LINE, spare, skip_long=options.skip_bad_lines)
    for result in in_order(parse, texts, threads):
        if options.progress is not None and source.size is not None:
            options.progress(source.done, source.size)
        if result is None:
            lines += 1
            if not options.skip_bad_lines:
                raise _error(source.path, "line_too_long", (lines, 1, None))
            yield _nothing(skipped=1)
            continue
        text, (arrays, facts) = result
        if facts.faulty and not options.skip_bad_lines:
            position = _position(text, facts.fault_place, lines)
            if facts.fault == "index_beyond_columns":
                raise _beyond_columns(source.path, options, limit, position)
            raise _error(source.path, facts.fault, position)
        largest_at = _position(text, facts.largest_place, lines)
        lines += facts.lines
        buffer = text.obj
        text.release()  # a buffer that someone still looks at cannot grow
        spare.append(buffer)
        values, indices, ends, labels = arrays
        yield _Chunk(values, indices, ends, labels, facts.faulty, facts.dropped, facts.largest, largest_at)


def _nothing(skipped: int) -> _Chunk:
    empty = np.empty(0)
    none = np.empty(0, np.int32)
    return _Chunk(empty, none, none, empty, skipped, 0, -1, (0, 0, ""))


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


def _joined(chunks: deque[_Chunk], options: Options) -> DataSet:
    """One data set of all the chunks, which are freed as they are copied: both never exist whole."""
    rows = sum(chunk.rows for chunk in chunks)
    stored = sum(len(chunk.values) for chunk in chunks)
    skipped = sum(chunk.skipped for chunk in chunks)
    dropped = sum(chunk.dropped for chunk in chunks)
    columns = options.columns
    if columns is None:
        columns = 1 + max(chunk.largest for chunk in chunks)
    index_type = np.int32 if max(stored, columns) <= _WIDEST_NARROW else np.int64
    values = np.empty(stored, options.dtype)
    indices = np.empty(stored, index_type)
    offsets = np.zeros(rows + 1, index_type)
    labels = np.empty(rows)

    def parts() -> Iterator[tuple[_Chunk, int, int]]:
        row = begin = 0
        while chunks:
            chunk = chunks.popleft()
            yield chunk, row, begin
            row += chunk.rows
            begin += len(chunk.values)

    def copy(part: tuple[_Chunk, int, int]) -> None:
        chunk, row, begin = part
        values[begin : begin + len(chunk.values)] = chunk.values
        indices[begin : begin + len(chunk.values)] = chunk.indices
        labels[row : row + chunk.rows] = chunk.labels
        np.add(chunk.ends, begin, out=offsets[row + 1 : row + chunk.rows + 1], dtype=index_type)

    for _ in in_order(copy, parts(), min(_threads(options), len(chunks))):
        pass
    X = sparse.csr_array((values, indices, offsets), shape=(rows, columns))
    X.has_sorted_indices = X.has_canonical_format = True  # the parser has seen to it
    return DataSet(X, labels, None, skipped, dropped)


def _threads(options: Options) -> int:
    wanted = core.default_threads() if options.threads is None else options.threads
    return min(wanted, _MOST_THREADS)


def _require_rows(rows: int, path: str) -> None:
    if rows == 0:
        cure = "Check that it is the right one, and that writing it did not fail."
        raise DataError("there is not a single row in this file", path=path, cure=cure)


def _position(text: memoryview, place: core.Place, lines: int) -> Position:
    return (
        lines + place.line + 1,
        place.begin - place.line_begin + 1,
        shown(bytes(text[place.begin : min(place.end, place.begin + 100)])),
    )


def _error(path: str, fault: str, position: tuple[int, int, str | None]) -> DataError:
    problem, cure = _FAULTS[fault]
    line, column, text = position
    return DataError(problem, path=path, line=line, column=column, text=text, cure=cure)


def _beyond_columns(path: str, options: Options, limit: int, position: Position) -> DataError:
    line, column, text = position
    if options.columns is not None:
        problem = f"an index lies beyond the {limit} columns asked for"
        cure = "Ask for more columns, or say ignore_extra=True to leave such values out."
    else:
        problem = f"an index is above {limit}, the most that is taken from so small a file unasked"
        cure = (
            "A model takes 8 bytes per column. If the index is right, say columns=N with N the number of "
            "columns (--columns N on the command line)."
        )
    return DataError(problem, path=path, line=line, column=column, text=text, cure=cure)
