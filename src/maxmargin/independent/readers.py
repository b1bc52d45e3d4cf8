# SPDX-License-Identifier: BSD-3-Clause
"""Simple readers of the files that are checked: LIBSVM text, CSV, and maxmargin's own model files."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import json
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.tables import encoded_names, encoded_row

_LABEL_NAMES = ("label", "target", "y", "class")
"""What a column of labels may be called without being named, in the order of preference."""
_TYPES = {"F64": ("d", 8), "F32": ("f", 4), "I64": ("q", 8), "I32": ("i", 4), "I8": ("b", 1)}
"""The letter of each type for ``struct``, and its bytes."""


class Unreadable(ValueError):
    """A file that cannot be read here, or that this checker cannot judge; the message says why."""


# ---- data ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Rows with their labels, as a file has them."""

    rows: list[dict[int, float]]
    """The values of each row by their column; columns count from 0, and what is not there is 0."""
    labels: list[str]
    names: list[str] | None = None
    """The names of the columns, where the file has them."""
    queries: list[str | None] | None = None
    """The query of each row, None for one without; None where no row has any, or no column is asked for."""

    @property
    def columns(self) -> int:
        """As many as the last one that occurs asks for."""
        if self.names is not None:
            return len(self.names)
        return 1 + max((column for row in self.rows for column in row), default=-1)


@dataclass(frozen=True)
class Sheet:
    """How CSV is written."""

    delimiter: str | None = None
    """Between values; None is a comma, and a tab in .tsv."""
    decimal: str = "."
    """Before the decimals of numbers."""
    header: bool = True
    """Whether the first line names the columns; else they are called 1, 2, ..."""


COMMAS = Sheet()


def read_data(
    path: Path,
    *,
    label: str | None = None,
    query: str | None = None,
    zero_based: bool = False,
    encoding: Mapping[str, Any] | None = None,
    sheet: Sheet = COMMAS,
    labelled: bool = True,
) -> Data:
    """Read CSV where the name of the file says so, LIBSVM text otherwise; both may be packed.

    ``encoding`` says what becomes of the columns of CSV, where they are not the numbers that they are.
    Where rows need not be ``labelled``, CSV may lack the column.
    """
    stem = path.name.lower().removesuffix(".gz").removesuffix(".bz2")
    if stem.endswith((".npz", ".parquet", ".zst")):
        raise Unreadable(f"{path}: this checker reads LIBSVM text and CSV, plain, .gz or .bz2.")
    try:
        raw = path.read_bytes()
        text = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(path.suffix.lower(), bytes)(raw).decode(
            "utf-8-sig"
        )
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise Unreadable(f"{path}: the file cannot be read: {error}.") from error
    try:
        if stem.endswith((".csv", ".tsv")):
            delimiter = sheet.delimiter or ("\t" if stem.endswith(".tsv") else ",")
            lines = [line for line in csv.reader(io.StringIO(text), delimiter=delimiter) if line]
            if not sheet.header:
                lines.insert(0, [str(number) for number in range(1, len(lines[0]) + 1)] if lines else [])
            names = [name.strip() for name in lines[0]] if lines else []
            if any(len(line) != len(names) for line in lines):
                raise ValueError("a row has another number of values than the first line has names.")
            named = label or (encoding or {}).get("label")
            if not labelled and named is None and not any(name in _LABEL_NAMES for name in names):
                label = "no label"  # a column that says nothing, for those who need none
                lines = [[*line, label if k == 0 else "0"] for k, line in enumerate(lines)]
            if query is None:
                return _table(lines, label, encoding, sheet.decimal)
            if query not in names:
                raise ValueError(f"no column is called {query!r}. Name the queries' one with --query.")
            place = names.index(query)
            rest = _table(
                [line[:place] + line[place + 1 :] for line in lines], label, encoding, sheet.decimal
            )
            return replace(rest, queries=[line[place].strip() for line in lines[1:]])
        if encoding is not None:
            raise ValueError("the model was trained on a table; this checker reads it from CSV.")
        return _libsvm(text, 0 if zero_based else 1)
    except (ValueError, csv.Error) as error:
        raise Unreadable(f"{path}: {error}") from error


def _libsvm(text: str, first: int) -> Data:
    rows, labels = [], []
    queries: list[str | None] = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        query = words.pop(1)[4:] if len(words) > 1 and words[1].startswith("qid:") else None
        if query is not None and not (query.isascii() and query.isdigit()):
            raise ValueError(f"line {number} has a query that is not a whole number.")
        queries.append(None if query is None else str(int(query)))
        pairs = [word.split(":") for word in words[1:]]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError(f"line {number} is not a label followed by index:value.")
        row = {int(index) - first: _number(value) for index, value in pairs}
        if len(row) < len(pairs) or min(row, default=0) < 0:
            raise ValueError(f"line {number} has an index twice, or one below {first}.")
        rows.append(row)
        labels.append(label_text(_number(words[0])))
    return Data(rows, labels, queries=None if set(queries) <= {None} else queries)


def _table(
    lines: list[list[str]], label: str | None, encoding: Mapping[str, Any] | None, decimal: str
) -> Data:
    names = lines[0] if lines else []
    if encoding is not None:
        names = [name.strip() for name in names]
        if lacking := [each["name"] for each in encoding["columns"] if each["name"] not in names]:
            raise ValueError(f"the table lacks the column {lacking[0]!r}.")
        label = label or encoding["label"]
    wanted = [label] if label is not None else [name for name in _LABEL_NAMES if name in names]
    if not wanted or wanted[0] not in names:
        raise ValueError("no column holds the labels. Name it with --label.")
    place = names.index(wanted[0])
    rows = []
    for line in lines[1:]:
        if encoding is not None:
            rows.append(encoded_row(encoding, names, line, decimal))
            continue
        values = [_number(value.replace(decimal, ".")) for k, value in enumerate(line) if k != place]
        rows.append({k: value for k, value in enumerate(values) if value != 0.0})
    labels = [line[place] for line in lines[1:]]
    if encoding is not None:
        return Data(rows, [text.strip() for text in labels], encoded_names(encoding))
    return Data(rows, labels, [name for k, name in enumerate(names) if k != place])


def _number(text: str) -> float:
    truth = {"true": 1.0, "false": 0.0}.get(text.lower())
    number = float(text) if truth is None else truth
    if not math.isfinite(number) or "_" in text:
        raise ValueError(f"{text!r} is not a finite number.")
    return number


def label_text(label: Any) -> str:
    """A label as text: whole numbers without a decimal point."""
    if isinstance(label, float) and label.is_integer() and abs(label) < 2**53:
        return str(int(label))
    return str(label)


def class_of(label: str, classes: Sequence[str]) -> int:
    """The place of a label among the classes, as it stands or as the number that it is; -1: none."""
    if label in classes:
        return classes.index(label)
    try:
        number = label_text(float(label))
    except ValueError:
        return -1
    return classes.index(number) if number in classes else -1


# ---- models -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A model file: its description, and its arrays with their shapes."""

    description: dict[str, Any]
    arrays: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]]

    def lines(self, name: str) -> list[tuple[Any, ...]]:
        """The lines of an array that is a matrix."""
        shape, numbers = self._of(name)
        if len(shape) != 2:
            raise Unreadable(f"The array {name!r} of the model is not a matrix.")
        return [numbers[k * shape[1] : (k + 1) * shape[1]] for k in range(shape[0])]

    def numbers(self, name: str) -> tuple[Any, ...]:
        """The numbers of an array, one line after the other."""
        return self._of(name)[1]

    def vectors(self) -> list[Vector]:
        """The support vectors."""
        if "vectors" in self.arrays:
            return [Vector.of(line) for line in self.lines("vectors")]
        values, columns, ends = (self.numbers(name) for name in ("values", "indices", "offsets"))
        return [Vector(dict(zip(columns[a:b], values[a:b], strict=True))) for a, b in pairwise(ends)]

    def _of(self, name: str) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        if name not in self.arrays:
            raise Unreadable(f"The model has no array {name!r}.")
        shape, numbers = self.arrays[name]
        if not all(map(math.isfinite, numbers)):
            raise Unreadable(f"The array {name!r} of the model holds NaN or infinity.")
        return shape, numbers


def read_model(path: Path) -> Model:
    """Read a model file: eight bytes that tell the length of a JSON header, the header, and arrays."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: the file cannot be read: {error}.") from error
    try:
        return _model(raw)
    except (KeyError, TypeError, ValueError, struct.error, RecursionError) as error:
        reason = (
            str(error) if isinstance(error, Unreadable) else "it is damaged, or not a model of maxmargin."
        )
        raise Unreadable(f"{path}: {reason}") from error


def _model(raw: bytes) -> Model:
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    texts, body = header.pop("__metadata__"), raw[8 + length :]
    if texts["format"] != "maxmargin model":
        raise Unreadable("it is not a model of maxmargin.")
    pieces = dict(_pieces(header, body))
    if _checksum(texts, header, pieces) != texts["checksum"]:
        raise Unreadable("its contents do not match its checksum: the file was damaged or edited.")
    arrays = {}
    for name, piece in pieces.items():
        letter, size = _TYPES[header[name]["dtype"]]
        numbers = struct.unpack(f"<{len(piece) // size}{letter}", piece)
        shape = tuple(header[name]["shape"])
        if len(numbers) != math.prod(shape):
            raise Unreadable(f"its array {name!r} has another size than it says.")
        arrays[name] = shape, numbers
    return Model(json.loads(texts["model"]), arrays)


def _pieces(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, bytes]]:
    """The bytes of each array."""
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end <= len(body):
            raise Unreadable("it was cut off.")
        yield name, body[begin:end]


def _checksum(texts: Mapping[str, str], header: Mapping[str, Any], pieces: Mapping[str, bytes]) -> str:
    """BLAKE2b over three texts, each after its length, and over the arrays in the order of their names."""
    total = hashlib.blake2b(digest_size=32)
    for name in ("format", "version", "model"):
        total.update(_counted(texts[name]))
    for name in sorted(pieces):
        total.update(_counted(f"{name} {header[name]['dtype']} {list(header[name]['shape'])}"))
        total.update(pieces[name])
    return f"blake2b:{total.hexdigest()}"


def _counted(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded
