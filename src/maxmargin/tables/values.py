# SPDX-License-Identifier: BSD-3-Clause
"""The values of pyarrow's columns as numbers and as texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.data.reading import DataError, printable
from maxmargin.tables.kinds import Kind, as_moment, as_number
from maxmargin.types import Vector

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAY = 86_400e6
"""Microseconds of a day."""
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def kind_of(kind: Any) -> Kind | None:
    """What a column of this type holds; None for one without values, and for types of which nothing is."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "truth"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_temporal(kind) and not types.is_interval(kind):
        return "date"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "category"
    return None


def numbers_of(name: str, kind: Kind, column: Any) -> Vector:
    """The values of a column of numbers, truth values (0, 1) or dates (days since 1970); NaN: missing."""
    from pyarrow import compute, float64, int8, types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    held = kind_of(column.type)
    if str(column.type) == "null":
        return np.full(len(column), np.nan)
    if held == "category" and kind == "number":
        texts, codes = texts_of(column)
        known = [as_number(text) for text in texts]
        values = np.array([np.nan if value is None else value for value in known] + [np.nan])
        return values[codes]
    if held == "category" and kind == "date":
        return _days_of_texts(name, column)
    if kind == "truth" and held == "number":
        held = "truth"
    if held != kind and not (kind == "number" and held == "truth"):
        raise DataError(
            f"column '{name}' holds {column.type}, and the model was trained on one of {_WORDS[kind]}",
            "Give a table whose columns are those of the training data.",
        )
    if held == "date":
        return _days(column)
    if types.is_boolean(column.type):
        column = compute.cast(column, int8())
    return np.array(compute.cast(column, float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


_WORDS = {"number": "numbers", "truth": "truth values", "date": "dates", "category": "categories"}


def _days_of_texts(name: str, column: Any) -> Vector:
    """Dates that are written as texts, each different one read once."""
    texts, codes = texts_of(column)
    days = np.full(len(texts) + 1, np.nan)
    for place, text in enumerate(texts):
        moment = as_moment(text)
        if moment is None:
            raise DataError(
                f"column '{name}' holds dates, and '{printable(text)}' is none", "Write it as 2024-12-31."
            )
        days[place] = float((moment - _BEGIN) // timedelta(microseconds=1)) / _DAY
    return days[codes]


def _days(column: Any) -> Vector:
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    unit = "us"
    if types.is_date(kind) or types.is_timestamp(kind):
        target: Any = pyarrow.timestamp(unit)
    elif types.is_time(kind):
        target = pyarrow.time64(unit)
    else:
        target = pyarrow.duration(unit)
    moments = compute.cast(compute.cast(column, target, safe=False), pyarrow.int64())
    return np.array(compute.cast(moments, pyarrow.float64()).to_numpy(zero_copy_only=False)) / _DAY


def texts_of(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The different texts of a column without the spaces around them, and which is where; -1: missing."""
    from pyarrow import compute, string, types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_floating(column.type):
        whole = compute.floor(column)
        if compute.all(compute.equal(column, whole)).as_py() is not False:
            column = compute.cast(column, "int64", safe=False)  # as they are written: 3, not 3.0
    if not types.is_string(column.type):
        column = compute.cast(column, string())
    encoded = compute.dictionary_encode(column)
    codes = np.array(compute.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
    different: Sequence[str] = encoded.dictionary.to_pylist()
    place: dict[str, int] = {}
    new = [place.setdefault(text.strip(), len(place)) if text.strip() else -1 for text in different]
    return list(place), np.array([*new, -1], np.int64)[codes]
