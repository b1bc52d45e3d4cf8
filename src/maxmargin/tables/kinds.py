# SPDX-License-Identifier: BSD-3-Clause
"""What a column of a table holds: found in its values, or said by whoever knows better."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from maxmargin.files.data.reading import DataError, printable

Kind = Literal["number", "truth", "date", "category"]
KINDS: tuple[Kind, ...] = ("number", "truth", "date", "category")
MOST_CATEGORIES = 1000
"""Different texts of a column that is found to be one of categories: each becomes a column of its own."""
_FEW_TEXTS = 20
"""Different texts that may be categories even where hardly any of them occurs twice."""
_MOSTLY = 0.9
"""The share of texts that are numbers from which a column of texts looks like numbers with a few faults."""
_INDEX = re.compile(r"(__index_level_\d+__|Unnamed: \d+(\.\d+)?|)")
"""The names that pandas gives the numbers of its rows in Parquet and in CSV, where the last has no name."""
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_SIGNED = re.compile(r"[+-]?[$€£¥]? ?[+-]?(\d+|\d{1,3}([,.' \u00a0\u202f]\d{3})+)([.,]\d+)? ?[%$€£¥]?")
"""A number with signs of thousands, of money or of shares."""
_OTHER_DATE = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d{2}|\d{4}([./])\d{1,2}\3\d{1,2})( .*)?"
)
"""A date that does not say which of its numbers is the month, or has other signs than hyphens."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?")
"""A date or a moment of ISO 8601."""


class LeftOut(NamedTuple):
    """A column that the model does not see, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Said:
    """What is said about columns, and not to be found out."""

    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()

    def check(self, columns: Iterable[str]) -> None:
        """Raises DataError where something is said of a column that is not there, or two things of one."""
        known, said = list(columns), (*self.drop, *self.categorical, *self.numeric)
        for name in said:
            if name not in known:
                listed = ", ".join(f"'{each}'" for each in known[:20]) + (
                    ", ..." if len(known) > 20 else ""
                )
                raise DataError(
                    f"no column is called '{name}'; the columns are {listed}", "Correct the name."
                )
            if said.count(name) > 1:
                raise DataError(
                    f"column '{name}' is said to be two things at once", "Name it in one option only."
                )


@dataclass
class Seen:
    """What was seen in a column, batch by batch."""

    name: str
    rows: int = 0
    missing: int = 0
    kind: Kind | None = None
    """None while no value was seen."""
    unknown: str | None = None
    """The type of values that none of the kinds has."""
    texts: dict[str, int] = field(default_factory=dict[str, int])
    """How often each text occurs; at most one more than could be categories are kept."""
    many: bool = False
    """Whether there were more different texts than that."""
    odd: str | None = None
    """The first text that is no number."""
    dates: bool = True
    """Whether all texts are dates."""
    decimal: str = "."
    """What stands before the decimals of numbers."""

    def add(self, column: Any) -> None:
        """Take in the values of a pyarrow array."""
        from maxmargin.tables.values import kind_of, texts_of

        found = kind_of(column.type)
        self.rows += len(column)
        if found == "category":
            texts, codes = texts_of(column)
            counts = codes[codes >= 0]
            self.missing += len(codes) - len(counts)
            self._count(texts, counts)
        else:
            self.missing += _without_value(column)
        if found is not None:
            self.kind = found
        elif str(column.type) != "null":
            self.unknown = str(column.type)

    def _count(self, texts: list[str], codes: Any) -> None:
        import numpy as np

        for text, count in zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True):
            if self.odd is None and as_number(text, self.decimal) is None:
                self.odd = text
            self.dates = self.dates and as_moment(text) is not None
            if text in self.texts or len(self.texts) <= MOST_CATEGORIES:
                self.texts[text] = self.texts.get(text, 0) + count
            else:
                self.many = True

    @property
    def different(self) -> str:
        """How many different texts there are, in words."""
        return f"more than {MOST_CATEGORIES}" if self.many else str(len(self.texts))

    def decide(self, said: Said) -> Kind | LeftOut:
        """What becomes of the column; raises DataError where that cannot be found out."""
        if self.name in said.drop:
            return LeftOut(self.name, "as said by --drop")
        if self.name in said.categorical:
            return "category"
        if self.name in said.numeric:
            return "number"
        if _INDEX.fullmatch(self.name):
            return LeftOut(self.name, "pandas' numbers of the rows")
        if self.unknown is not None:
            raise DataError(
                f"column '{self.name}' holds {self.unknown}, which is neither number nor text nor date",
                f"Leave it out with drop='{self.name}' (--drop '{self.name}' on the command line).",
            )
        if self.kind is None or self.missing == self.rows:
            return LeftOut(self.name, "it has no values")
        if self.kind == "category":
            return self._decide_text()
        return self.kind

    def _decide_text(self) -> Kind | LeftOut:
        if self.dates:
            return "date"
        self._refuse_other_forms()
        wrong = sum(as_number(text, self.decimal) is None for text in self.texts)
        if wrong <= (1 - _MOSTLY) * len(self.texts) and len(self.texts) > 1:
            here, name = "on the command line", self.name
            what, cure = f"column '{name}' holds numbers that are written as texts", "Say that it holds"
            if self.odd is not None:
                odd = printable(self.odd)
                what = f"column '{name}' holds numbers but for texts such as '{odd}'"
                cure = (
                    f"Say that this one stands for no value with missing='{odd}' (--missing '{odd}' "
                    f"{here}), or that the column holds"
                )
            raise DataError(
                what,
                f"{cure} numbers, and texts stand for no value, with numeric='{name}' (--numeric '{name}' "
                f"{here}), or categories with categorical='{name}' (--categorical '{name}' {here}).",
            )
        present = self.rows - self.missing
        if self.many or (len(self.texts) > _FEW_TEXTS and len(self.texts) > present / 2):
            return LeftOut(self.name, f"{self.different} different texts in {present} rows")
        return "category"

    def _refuse_other_forms(self) -> None:
        """Raise DataError where texts are numbers or dates in a form that is not read."""
        others = [text for text in self.texts if as_number(text, self.decimal) is None]
        name, here, enough = self.name, "on the command line", _MOSTLY * len(self.texts)
        numbers = len(self.texts) - len(others)
        if not others or numbers >= enough:
            return
        otherwise = (
            f"leave it out with drop='{name}' (--drop '{name}' {here}), or say that it holds categories "
            f"with categorical='{name}' (--categorical '{name}' {here})."
        )
        commas = [text for text in others if has_decimal_comma(text)]
        thousands = all(_SIGNED.fullmatch(text) and len(text.partition(",")[2]) == 3 for text in commas)
        if commas and not thousands and numbers + len(commas) >= enough:
            raise DataError(
                f"column '{name}' holds numbers with decimal commas, such as '{printable(commas[0])}'",
                f"Read it with decimal=',' (--decimal ',' {here}), {otherwise}",
            )
        for form, what, cure in (
            (_SIGNED, "numbers with signs in them", "Write them as in 1234.5"),
            (_OTHER_DATE, "dates that are not written as 2024-12-31", "Write them so"),
        ):
            found = [text for text in others if form.fullmatch(text)]
            if found and len(found) + numbers * (form is _SIGNED) >= enough:
                raise DataError(
                    f"column '{name}' holds {what}, such as '{printable(found[0])}'", f"{cure}, {otherwise}"
                )


def _without_value(column: Any) -> int:
    """How many values of a pyarrow array are missing; of numbers, NaN too."""
    from pyarrow import compute, types

    if not types.is_floating(column.type):
        return int(column.null_count)
    return int(compute.sum(compute.is_null(column, nan_is_null=True)).as_py() or 0)


def as_number(text: str, decimal: str = ".") -> float | None:
    """The number that a text is, or None; "nan" and "inf" are none."""
    plain = text if decimal == "." else text.replace(".", " ").replace(decimal, ".")
    return float(plain) if _NUMBER.fullmatch(plain) else None


def has_decimal_comma(text: str) -> bool:
    """Whether a text is a number but for a comma in the place of its decimal point."""
    return _DECIMAL_COMMA.fullmatch(text.strip()) is not None


def as_moment(text: str) -> datetime | None:
    """The date or the moment of ISO 8601 that a text is, in UTC where it says nothing else; or None."""
    try:
        moment = datetime.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=UTC)
