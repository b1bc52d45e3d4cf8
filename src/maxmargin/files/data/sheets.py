# SPDX-License-Identifier: BSD-3-Clause
"""The text of a table: what separates its values, what its columns are called, and what reads it."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from csv import Error as CsvError
from csv import reader as csv_reader
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.files.data.compressed import TextSource
from maxmargin.files.data.reading import COMPRESSED, DataError, Options, shown

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 22
"""Bytes of CSV that are parsed at once: 4 MiB keep all cores busy."""
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What may separate values, and its word."""
_SHELL = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
"""The same as one writes it in a shell."""
_LAST_READ = 0.5
"""Seconds in which a thread that reads ahead has begun its next read, on a busy machine, too.

Only a table that is refused before its end was read waits for that long."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How text of two bytes for each character begins, which Excel calls Unicode."""


class RaggedRows:
    """Rows that have more or fewer values than the table has columns: left out and counted, or refused."""

    def __init__(self, options: Options) -> None:
        self._skips, self._header = options.skip_bad_lines, int(options.header)
        self._left_out: list[int] = []
        self.refused: Any = None
        """The row of pyarrow's that ended the reading."""

    def __call__(self, row: Any) -> str:
        """What pyarrow is to do with such a row."""
        if not self._skips:
            self.refused = row
            return "error"
        self._left_out.append((row.number or 0) - 1 - self._header)
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
    ) -> Iterator[Any]:
        """The text and pyarrow's reader of it, which takes columns to be of these types."""
        from pyarrow import csv

        given = self._options(options, ragged, types, **others)
        with TextSource(self.path) as source:
            text = _Readable(source)
            try:
                with self._refusing(ragged), csv.open_csv(text, **given) as reader:
                    yield source, reader
            finally:
                text.stop()

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
    if bytes(error.object[:2]) in _UTF16:
        return DataError(
            "the table is in UTF-16, not in UTF-8",
            "Save it as UTF-8: iconv -f UTF-16 -t UTF-8 OLD > NEW, or CSV UTF-8 in a spreadsheet.",
        )
    place = bytes(error.object[max(0, error.start - 20) : error.end + 20])
    return DataError("the table is not in UTF-8", "Save it as UTF-8.", text=shown(place))
