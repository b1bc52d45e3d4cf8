# SPDX-License-Identifier: BSD-3-Clause
"""What the model texts of LIBLINEAR and LIBSVM have in common: a header of words, then lines of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.models.stored import ModelError
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.files.models.stored import SavedModel

_LONGEST_HEADER_LINE = 1 << 24
"""Bytes of a header's line: 16 MiB have the labels of a million classes."""


def shown(text: bytes) -> str:
    """Offending text for a message: short and printable."""
    return ascii(text[:40].decode("latin-1")) + ("..." if len(text) > 40 else "")


def to_number(text: bytes, line: int) -> float:
    """A finite decimal number."""
    try:
        # Python also reads 1_000, which no other program does.
        value = math.nan if b"_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ModelError(f"line {line}: {shown(text)} is not a finite number.")
    return value


def to_integer(text: bytes, line: int, least: int, most: int) -> int:
    """A whole number in a range."""
    digits = text.removeprefix(b"-")
    if digits.isdigit() and len(digits) <= 19 and least <= int(text) <= most:
        return int(text)
    raise ModelError(f"line {line}: {shown(text)} is not a whole number from {least} to {most}.")


class Lines:
    """The lines of an open file of known size, with their numbers."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size, self.number = file, size, 0

    def next(self, limit: int = -1) -> bytes:
        """The next line; an error where the file ends."""
        line = self.file.readline(limit)
        self.number += 1
        if not line:
            raise ModelError(f"line {self.number}: the file ends here, but more should follow.")
        return line

    def header(self, known: set[str], end: str) -> Header:
        """The lines of a keyword and its values up to the keyword ``end``."""
        values: dict[str, tuple[int, list[bytes]]] = {}
        while True:
            line = self.next(_LONGEST_HEADER_LINE)
            words, number = line.split(), self.number
            if words == [end.encode()]:
                return Header(values, number)
            name = words[0].decode("latin-1") if words else ""
            if name not in known:
                raise ModelError(f"line {number}: {shown(line.strip())} is not a line of such a header.")
            if name in values:
                raise ModelError(f"line {number}: {name!r} was given before, in line {values[name][0]}.")
            values[name] = number, words[1:]

    def room_for(self, count: int, what: str) -> None:
        """Refuse counts that the rest of the file, of at least two bytes per number, cannot hold."""
        if 2 * count > self.size - self.file.tell() + 1:
            raise ModelError(
                f"the header speaks of {what}, but the file of {self.size} bytes is too short for them: it "
                "was cut off, or the header is wrong."
            )

    def read_numbers(self, row: Vector) -> None:
        """Fill a row from the next line, which has to have exactly its numbers."""
        line = self.next()
        words = line.split()
        if len(words) != len(row):
            raise ModelError(
                f"line {self.number}: {len(row)} numbers should be here, not the {len(words)} words of "
                f"{shown(line.strip())}."
            )
        row[:] = [to_number(word, self.number) for word in words]

    def expect_end(self) -> None:
        """Nothing but blank lines may follow."""
        while line := self.file.readline(1 << 20):
            self.number += 1
            if line.strip():
                raise ModelError(f"line {self.number}: the model is complete, but {shown(line)} follows.")


class Header:
    """The values of a header, checked as they are taken."""

    def __init__(self, values: dict[str, tuple[int, list[bytes]]], end: int) -> None:
        self.values, self.end = values, end

    def line(self, name: str) -> int:
        """The line in which a keyword stands."""
        return self.values[name][0]

    def words(self, name: str, count: int | None = None) -> list[bytes]:
        """The values of a keyword, of which there have to be so many."""
        if name not in self.values:
            raise ModelError(f"line {self.end}: the header ends here and lacks {name!r}.")
        line, words = self.values[name]
        if count is not None and len(words) != count:
            raise ModelError(f"line {line}: {name!r} should have {count} values, not {len(words)}.")
        return words

    def word(self, name: str) -> str:
        """The one word of a keyword."""
        return self.words(name, 1)[0].decode("latin-1")

    def count(self, name: str, least: int) -> int:
        """The one whole number of a keyword, which is at least so large."""
        return to_integer(self.words(name, 1)[0], self.line(name), least, 2**63 - 1)

    def number(self, name: str) -> float:
        """The one finite number of a keyword."""
        return self.numbers(name, 1)[0]

    def numbers(self, name: str, count: int) -> list[float]:
        """The finite numbers of a keyword, of which there have to be so many."""
        return [to_number(word, self.line(name)) for word in self.words(name, count)]

    def labels(self, name: str, count: int) -> NDArray[np.int64]:
        """The labels of so many classes, all different."""
        line = self.line(name) if name in self.values else self.end
        labels = [to_integer(word, line, -(2**31), 2**31 - 1) for word in self.words(name, count)]
        if len(set(labels)) < count:
            raise ModelError(f"line {line}: a label occurs twice.")
        return np.array(labels, np.int64)


def refuse_features(model: SavedModel, peer: str) -> None:
    """Refuse a model of monomials: whoever reads the text would take its weights for those of columns."""
    if model.expansion is not None:
        raise ModelError(
            f"A file of {peer} weighs the columns of the data, and this model monomials of them. Save it "
            "with format='maxmargin' instead, or fit on monomials that are written out, Monomials("
            "lazy=False), and give such data to the other program too."
        )


def integer_labels(classes: NDArray[Any], peer: str) -> list[int]:
    """The classes as the whole numbers that the texts of others ask for."""
    values = classes.tolist()
    if all(isinstance(v, int | float) and v == int(v) and -(2**31) <= v < 2**31 for v in values):
        return [int(v) for v in values]
    raise ModelError(
        f"The labels in a file of {peer} are whole numbers. Got classes such as {values[0]!r} instead. "
        "Train with such labels (sklearn.preprocessing.LabelEncoder makes them), or save with "
        "format='maxmargin'."
    )
