# SPDX-License-Identifier: BSD-3-Clause
"""The columns of a table as a model file says that they become numbers, one operation of float64 at a time.

number, date    (x - center) / scale, with ``fill`` for x where it is missing; a date is in days since 1970
truth           0 or 1, or ``fill``
category        a column for each text, and one for missing values where ``missing`` says so
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

_NO_VALUE = {"", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
_NO_VALUE |= {"N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}
"""Texts that stand for no value."""
_DAY = 86_400e6
"""Microseconds of a day."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def encoded_names(encoding: Mapping[str, Any]) -> list[str]:
    """The names of the columns that the model weighs."""
    names: list[str] = []
    for column in encoding["columns"]:
        name = column["name"]
        if column["kind"] != "category":
            names.append(name)
            continue
        names += [f"{name}={text}" for text in column["categories"]]
        names += [f"{name} is missing"] if column["missing"] else []
    return names


def encoded_row(
    encoding: Mapping[str, Any], names: Sequence[str], line: Sequence[str], decimal: str = "."
) -> dict[int, float]:
    """The values of a row that are not zero, by their column."""
    values = dict(zip(names, line, strict=True))
    no_value = _NO_VALUE | set(encoding["missing"])
    row, place = {}, 0
    for column in encoding["columns"]:
        text = values[column["name"]]
        missing = text in no_value or not text.strip()
        if column["kind"] == "number" and decimal != ".":
            text = text.replace(".", " ").replace(decimal, ".")
        for value in _values(column, None if missing else text.strip()):
            if value != 0.0:
                row[place] = value
            place += 1
    return row


def _values(column: Mapping[str, Any], text: str | None) -> Iterator[float]:
    """What a value becomes; None is missing."""
    if column["kind"] == "category":
        yield from (float(text == each) for each in column["categories"])
        if column["missing"]:
            yield float(text is None)
        return
    number = None if text is None else _number(column, text)
    yield ((column["fill"] if number is None else number) - column["center"]) / column["scale"]


def _number(column: Mapping[str, Any], text: str) -> float | None:
    kind = column["kind"]
    if kind == "date":
        return _days(text)
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number) and "_" not in text:
        return number
    if column.get("lenient"):
        return None
    raise ValueError(f"column {column['name']!r} has {text!r}, which is not a finite number.")


def _days(text: str) -> float:
    """A date or a moment in days since 1970, a time of the day as a part of one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        clock = time.fromisoformat(text)
        moment = datetime.combine(_BEGIN.date(), clock)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return float((moment - _BEGIN) // timedelta(microseconds=1)) / _DAY
