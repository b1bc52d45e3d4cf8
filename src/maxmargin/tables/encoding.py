# SPDX-License-Identifier: BSD-3-Clause
"""A table as the matrix that a model weighs, and back in words: numbers scaled, categories one by one.

Of each column x:

    number, date    (x - center) / scale; where x is missing, that of ``fill``; a date is in days since 1970
    truth           0 or 1; where it is missing, ``fill``
    category        a column of zeros and ones for each text, and one for missing values if there were any;
                    a text that was not there in training has zeros in all of them

An encoding is a part of its model: what it was fitted on is not looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from maxmargin.files.data.reading import DataError
from maxmargin.tables.kinds import KINDS, Kind, LeftOut, Said, Seen
from maxmargin.tables.values import numbers_of, texts_of
from maxmargin.types import Vector

Scale = Literal["standard", "max-abs", "none"]
SCALES: tuple[Scale, ...] = ("standard", "max-abs", "none")
MISSING = " is missing"
"""What the name of the column that marks missing values ends with."""
_CONSTANT = 1e-12
"""The share of its mean below which a column's deviation is rounding: such a column is not scaled."""
_SPARSE = 4
"""Times as many columns of the matrix as of the table, from which it is kept sparse."""


@dataclass(frozen=True)
class Column:
    """What becomes of one column."""

    name: str
    kind: Kind
    fill: float = 0.0
    center: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    missing: bool = False
    """Whether categories have a column for missing values."""
    lenient: bool = False
    """Whether texts among numbers count as missing values, and are not refused."""

    @property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        if self.kind != "category":
            return [self.name]
        each = [f"{self.name}={text}" for text in self.categories]
        return [*each, self.name + MISSING] if self.missing else each

    def contradiction(self) -> str | None:
        """What is wrong with a column that a file describes; None for a sound one."""
        numbers = self.fill, self.center, self.scale
        if self.kind not in KINDS:
            return f"its column {self.name!r:.60} is of an unknown kind"
        if not all(map(math.isfinite, numbers)) or not self.scale > 0:
            return f"its column {self.name!r:.60} is not scaled by finite numbers"
        if self.kind == "category" and numbers != (0.0, 0.0, 1.0):
            return f"its column {self.name!r:.60} of categories is scaled"
        if self.lenient and self.kind != "number":
            return f"its column {self.name!r:.60} takes texts for missing numbers, and is none of numbers"
        if self.kind != "category" and (self.categories or self.missing):
            return f"its column {self.name!r:.60} of numbers has categories"
        if len(set(self.categories)) < len(self.categories):
            return f"its column {self.name!r:.60} has a category twice"
        return None


class Encoded(NamedTuple):
    """Rows as the model sees them, and what had to be made up for it."""

    X: Any
    filled: dict[str, int]
    """Missing values of each column that has some."""
    unseen: dict[str, int]
    """Texts that were not there in training, of each column that has some."""


@dataclass(frozen=True)
class Encoding:
    """What becomes of the columns of a table."""

    columns: tuple[Column, ...]
    scale: Scale
    left_out: tuple[LeftOut, ...] = ()
    label: str | None = None
    missing: tuple[str, ...] = ()
    """Texts that stand for missing values, beside the usual ones."""

    @classmethod
    def of(
        cls,
        table: Any,
        seen: Iterable[Seen],
        said: Said,
        scale: Scale,
        *,
        label: str | None = None,
        missing: tuple[str, ...] = (),
    ) -> Encoding:
        """Fitted to the columns of a pyarrow table, of which ``seen`` tells what they hold."""
        columns, left_out = [], []
        for one in seen:
            kind = one.decide(said)
            if isinstance(kind, LeftOut):
                left_out.append(kind)
            else:
                column = _fitted(one.name, kind, table.column(one.name).combine_chunks(), scale)
                columns.append(replace(column, lenient=one.name in said.numeric))
        if not columns:
            raise DataError(
                "no column is left to learn from",
                "Name columns of texts that are categories with categorical=... (--categorical on the "
                "command line).",
            )
        return cls(tuple(columns), scale, tuple(left_out), label, missing)

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for column in self.columns for name in column.names]

    @property
    def is_plain(self) -> bool:
        """Whether it is the table as it is: nothing filled, scaled, made of texts or left out."""
        plain = (column == Column(column.name, column.kind) for column in self.columns)
        numbers = all(column.kind in ("number", "truth") for column in self.columns)
        return numbers and all(plain) and not self.left_out and not self.missing

    def contradiction(self) -> str | None:
        """What is wrong with an encoding that a file describes; None for a sound one."""
        names = [column.name for column in self.columns] + [column.name for column in self.left_out]
        if len(set(names)) < len(names):
            return "it names a column of its table twice"
        return next(filter(None, (column.contradiction() for column in self.columns)), None)

    def encode(self, table: Any) -> Encoded:
        """The rows of a pyarrow table or batch; columns are found by their names."""
        known = set(table.schema.names)
        if lacking := [column.name for column in self.columns if column.name not in known]:
            listed = ", ".join(f"'{name}'" for name in lacking[:5])
            raise DataError(
                f"the table lacks columns that the model was trained on: {listed}",
                "Add them, or give the file that has them.",
            )
        filled: dict[str, int] = {}
        unseen: dict[str, int] = {}
        parts = []
        for column in self.columns:
            values = table.column(column.name)
            values = values.combine_chunks() if hasattr(values, "combine_chunks") else values
            part, missing, strange = _encoded(column, values)
            parts.append(part)
            filled |= {column.name: missing} if missing else {}
            unseen |= {column.name: strange} if strange else {}
        return Encoded(self._side_by_side(parts, table.num_rows), filled, unseen)

    def _side_by_side(self, parts: Sequence[Any], rows: int) -> Any:
        if len(self.names) > _SPARSE * len(self.columns):
            each = [sparse.csr_array(part) for part in parts]
            X = sparse.csr_matrix(sparse.hstack(each, format="csr"))
            X.sort_indices()
            return X
        X = np.empty((rows, len(self.names)))
        place = 0
        for part in parts:
            width = part.shape[1]
            X[:, place : place + width] = part.toarray() if sparse.issparse(part) else part
            place += width
        return X


def _fitted(name: str, kind: Kind, values: Any, scale: Scale) -> Column:
    """What becomes of a column, by its values in training."""
    if kind == "category":
        texts, codes = texts_of(values)
        return Column(name, kind, categories=tuple(sorted(texts)), missing=bool((codes < 0).any()))
    numbers = numbers_of(name, kind, values)
    present = numbers[~np.isnan(numbers)]
    _refuse_infinite(name, numbers)
    if not len(present):
        return Column(name, kind)
    fill = 0.0 if len(present) == len(numbers) else float(np.median(present))
    if kind == "truth":
        return Column(name, kind, fill=float(round(fill)))
    column = Column(name, kind, fill=fill)
    if scale == "standard":
        mean, deviation = float(present.mean()), float(present.std())
        if deviation > _CONSTANT * abs(mean):
            return replace(column, center=mean, scale=deviation)
    elif scale == "max-abs" and (largest := float(np.abs(present).max())) > 0:
        return replace(column, scale=largest)
    return column


def _encoded(column: Column, values: Any) -> tuple[Any, int, int]:
    """The part of the matrix that a column becomes, its missing values and its unknown texts."""
    if column.kind == "category":
        return _one_hot(column, values)
    numbers = numbers_of(column.name, column.kind, values)
    _refuse_infinite(column.name, numbers)
    missing = np.isnan(numbers)
    numbers[missing] = column.fill
    return ((numbers - column.center) / column.scale)[:, np.newaxis], int(missing.sum()), 0


def _one_hot(column: Column, values: Any) -> tuple[Any, int, int]:
    texts, codes = texts_of(values)
    place = {text: k for k, text in enumerate(column.categories)}
    places = np.array([*(place.get(text, -1) for text in texts), -1], np.int64)[codes]
    missing = codes < 0
    strange = int(np.count_nonzero((places < 0) & ~missing))
    if column.missing:
        places[missing] = len(column.categories)
    known = np.flatnonzero(places >= 0)
    ones: Vector = np.ones(len(known))
    shape = (len(codes), len(column.names))
    return sparse.csr_array((ones, (known, places[known])), shape=shape), int(missing.sum()), strange


def _refuse_infinite(name: str, numbers: Vector) -> None:
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers))) + 1
        raise DataError(
            f"column '{name}' has an infinite value, in row {row} of this part", "Replace the value."
        )
