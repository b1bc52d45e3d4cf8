# SPDX-License-Identifier: BSD-3-Clause
"""The text of a table: what separates its values, what its columns are called, and what reads it."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from csv import Error as CsvError
from csv import reader as csv_reader
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.files.data.compressed import TextSource
from maxmargin.files.data.reading import COMPRESSED, DataError, Options, shown

_BLOCK = 1 << 22
"""Bytes of CSV that a thread parses at once."""
_BLOCKS = 4
"""Blocks of a piece: enough to keep several threads busy, and soon parsed where a table is refused."""
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What may separate values, and its word."""
_SHELL = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
"""The same as one writes it in a shell."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How text of two bytes for each character begins, which Excel calls Unicode."""


class RaggedRows:
    """Rows that have more or fewer values than the table has columns: left out and counted, or refused."""

    def __init__(self, options: Options) -> None:
        self._skips, self._header = options.skip_bad_lines, int(options.header)
        self._left_out: list[int] = []
        self.count = 0
        """The rows that were left out so far."""
        self.before = 0
        """The rows of the table before the piece of it that is read now."""
        self.refused: Any = None
        """The row of pyarrow's that ended the reading."""

    def __call__(self, row: Any) -> str:
        """What pyarrow is to do with such a row."""
        if not self._skips:
            self.refused = row
            return "error"
        self.count += 1
        header = self._header if self.before == 0 else 0
        self._left_out.append(self.before + (row.number or 0) - 1 - header)
        return "skip"

    def taken(self) -> list[int]:
        """The rows that were left out since the last call, counted from 0."""
        rows, self._left_out = self._left_out, []
        return rows


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

    def schema(self, options: Options, ragged: RaggedRows, **others: Any) -> Any:
        """The types that the first lines of the text have."""
        from pyarrow import BufferReader, csv

        if not self.start.removeprefix(codecs.BOM_UTF8).strip():
            raise DataError("the file is empty", "Check that it is the right one.")
        given = self._options(options, ragged, {}, **others)
        with self._refusing(ragged), csv.open_csv(BufferReader(self.start), **given) as reader:
            return reader.schema

    @contextmanager
    def opened(
        self, options: Options, ragged: RaggedRows, types: dict[str, Any], **others: Any
    ) -> Iterator[tuple[TextSource, Batches]]:
        """The text and its rows, whose columns are taken to be of these types.

        pyarrow gets pieces of the text that are in memory. From a file object of ours it would read ahead
        on a thread of its own, of which nobody can tell when it comes to its end: a program that ends
        while such a thread is about to call Python is aborted.
        """
        from pyarrow import BufferReader, csv

        def parsed(piece: memoryview, known: Any) -> Any:
            columns = types if known is None else dict(zip(known.names, known.types, strict=True))
            given = self._options(options, ragged, columns, **others)
            if known is not None:
                given["read_options"].column_names = known.names
            return csv.open_csv(BufferReader(piece), **given)

        with TextSource(self.path) as source, ThreadPoolExecutor(1, "maxmargin") as ahead:
            batches = Batches(_Pieces(source, ahead), parsed, ragged)
            try:
                with self._refusing(ragged):
                    yield source, batches
            finally:
                batches.close()

    @contextmanager
    def _refusing(self, ragged: RaggedRows) -> Iterator[None]:
        """Say of a row with too many or too few values which one it is."""
        try:
            yield
        except ValueError as error:
            if ragged.refused is None or isinstance(error, DataError):
                raise
            row = ragged.refused
            found, names = row.actual_columns, row.expected_columns
            raise DataError(
                f"a row has {found} {'value' if found == 1 else 'values'}, and the table {names} "
                f"{'column' if names == 1 else 'columns'}",
                "Correct it (values that hold the delimiter stand in quotes), or leave such rows out with "
                "skip_bad_lines=True (--skip-bad-lines on the command line).",
                text=shown(row.text.encode()),
                line=self._line_of(row.text),
            ) from None

    def _line_of(self, row: str) -> int | None:
        """The number of a line: pyarrow does not count them where several threads read."""
        wanted, number = row.encode(), 0
        with TextSource(self.path) as source:
            buffer, rest = bytearray(_BLOCK), b""
            while count := source.fill(memoryview(buffer)):
                lines = (rest + bytes(buffer[:count])).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    number += 1
                    if line.rstrip(b"\r") == wanted:
                        return number
        return number + 1 if rest.rstrip(b"\r") == wanted else None

    def _options(
        self,
        options: Options,
        ragged: RaggedRows,
        types: dict[str, Any],
        *,
        texts_may_be_missing: bool = False,
    ) -> dict[str, Any]:
        from pyarrow import csv

        return {
            "read_options": csv.ReadOptions(
                block_size=_BLOCK, use_threads=options.threads != 1, column_names=self.names
            ),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=ragged),
            "convert_options": csv.ConvertOptions(
                column_types=types,
                null_values=[*csv.ConvertOptions().null_values, " ", *options.missing],
                strings_can_be_null=texts_may_be_missing,
                decimal_point=options.decimal,
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
    numbers = [field for field in first if is_number(field)]
    looks_like_values = len(set(numbers)) < len(numbers) or any("." in field for field in numbers)
    if 2 * len(numbers) > len(first) and looks_like_values:
        raise DataError(
            "the first line holds values instead of the names of the columns",
            "Say header=False (--no-header on the command line); the columns are then called 1, 2, ...",
            text=shown(line.strip()),
        )
    return None


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


class Batches:
    """The rows of a table, one batch after the other; pieces after the first have the types of that."""

    def __init__(
        self, pieces: _Pieces, parsed: Callable[[memoryview, Any], Any], ragged: RaggedRows
    ) -> None:
        self._pieces, self._parsed, self._ragged = pieces, parsed, ragged
        self._reader: Any = None
        self.schema: Any = None
        """The columns; None before the first batch."""

    def __iter__(self) -> Iterator[Any]:
        rows, seen = 0, self._ragged.count  # by the first look at the table
        for piece in self._pieces:
            self._ragged.before = rows + self._ragged.count - seen
            self._reader = self._parsed(piece, self.schema)
            self.schema = self._reader.schema
            for batch in self._reader:
                rows += batch.num_rows
                yield batch
        self._reader = None

    def close(self) -> None:
        """Wait until no thread of pyarrow is at work any more.

        It calls Python for a row that has too many values, so it must not outlive the program. Before it
        ends with the text or with an error, all its threads have ended.
        """
        if self._reader is not None:
            with suppress(Exception):
                while True:
                    self._reader.read_next_batch()
            self._reader = None


class _Pieces:
    """The text of a source in pieces of whole lines; a thread reads the next one ahead."""

    def __init__(self, source: TextSource, ahead: ThreadPoolExecutor) -> None:
        self._source, self._ahead = source, ahead
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = b""

    def __iter__(self) -> Iterator[memoryview]:
        following = self._ahead.submit(self._next)
        while len(piece := following.result()):
            following = self._ahead.submit(self._next)
            if bytes(piece[:_BLOCK]).strip(b"\r\n") or bytes(piece).strip(b"\r\n"):
                yield piece  # pyarrow takes a text of empty lines for an error

    def _next(self) -> memoryview:
        """The next piece; empty at the end of the text. All but the last one end with a line."""
        start = len(self._rest)
        text = bytearray(start + _BLOCKS * _BLOCK)
        text[:start] = self._rest
        room, end = memoryview(text), start
        while end < len(text):
            some = room[end : end + _BLOCK]
            count = self._source.fill(some)
            end += count
            try:
                # pyarrow would print a traceback where it meets a bad row that is not.
                self._decoder.decode(some[:count], final=count < len(some))
            except UnicodeDecodeError as error:
                raise not_utf8(error) from None
            if count < len(some):
                self._rest = b""
                return room[:end]
        lines = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 or end
        self._rest = bytes(room[lines:end])
        return room[:lines]


def not_utf8(error: UnicodeDecodeError) -> DataError:
    """What is said of a table in another encoding."""
    if bytes(error.object[:2]) in _UTF16:
        return DataError(
            "the table is in UTF-16, not in UTF-8",
            "Save it as UTF-8: iconv -f UTF-16 -t UTF-8 OLD > NEW, or CSV UTF-8 in a spreadsheet.",
        )
    place = bytes(error.object[max(0, error.start - 20) : error.end + 20])
    return DataError("the table is not in UTF-8", "Save it as UTF-8.", text=shown(place))
