# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of the columns of a table, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin.tools.words import some

if TYPE_CHECKING:
    from maxmargin.tables.encoding import Column, Encoding

_MOST_NAMES = 5
"""Columns that are named in a sentence."""
_SCALED = {
    "standard": "numbers scaled to mean 0 and variance 1",
    "max-abs": "numbers scaled to at most 1 in size",
    "none": "numbers as they are",
}
_MANY = {"number": "numbers", "truth": "truth values", "date": "dates", "category": "categories"}
_ONE = {"number": "number", "truth": "truth value", "date": "date", "category": "category"}


def encoding_in_words(encoding: Encoding) -> list[str]:
    """How many columns hold what, how they are scaled, and which are left out."""
    kinds = [column.kind for column in encoding.columns]
    counts = {kind: kinds.count(kind) for kind in _MANY if kind in kinds}
    parts = [f"{n} {(_ONE if n == 1 else _MANY)[kind]}" for kind, n in counts.items()]
    texts = sum(len(column.categories) for column in encoding.columns)
    if texts:
        parts[-1] += f" of {texts} texts"
    words = [f"Table: {', '.join(parts)}; {_SCALED[encoding.scale]} (--scale {encoding.scale})."]
    if encoding.left_out:
        each = [f"'{column.name}' ({column.reason})" for column in encoding.left_out]
        words.append(f"Left out: {some(each, _MOST_NAMES)}.")
    return words


def made_up_in_words(filled: dict[str, int], unseen: dict[str, int]) -> list[str]:
    """Which values were missing, and which texts not known, by the names of columns."""
    words = []
    if filled:
        each = [f"'{name}' ({count})" for name, count in filled.items()]
        words.append(f"Missing values: {some(each, _MOST_NAMES)}.")
    if unseen:
        each = [f"'{name}' ({count})" for name, count in unseen.items()]
        words.append(
            f"Texts that were not there in training: {some(each, _MOST_NAMES)}. They count as none of the "
            "categories."
        )
    return words


def column_in_words(column: Column) -> str:
    """What becomes of one column, in a few words."""
    if column.kind == "category":
        missing = ", and for none" if column.missing else ""
        return f"category, a column for each of {some(list(column.categories), _MOST_NAMES)}{missing}"
    words = {"number": "number", "truth": "truth value as 0 or 1", "date": "date in days since 1970"}
    text = words[column.kind]
    if (column.center, column.scale) != (0.0, 1.0):
        less = f"less {column.center:.6g}, " if column.center else ""
        text += f", {less}divided by {column.scale:.6g}"
    return f"{text}, missing: {column.fill:.6g}" if column.fill else text


def encoding_as_json(encoding: Encoding | None) -> dict[str, Any] | None:
    """The same in plain values; None where the columns are weighed as they are."""
    from maxmargin.files.models.description import described_encoding

    return None if encoding is None else described_encoding(encoding)
