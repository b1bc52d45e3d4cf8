# SPDX-License-Identifier: BSD-3-Clause
"""Columns of pyarrow's every type, as numbers and as texts."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

import numpy as np
import pytest

from maxmargin.files import DataError
from maxmargin.tables.encoding import Column
from maxmargin.tables.values import kind_of, numbers_of, texts_of

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        (pa.dictionary(pa.int8(), pa.string()), "category"),
        (pa.dictionary(pa.int8(), pa.int64()), "number"),
        (pa.bool_(), "truth"),
        (pa.decimal128(5, 2), "number"),
        (pa.duration("s"), "date"),
        (pa.month_day_nano_interval(), None),
        (pa.null(), None),
        (pa.binary(), None),
    ],
)
def test_what_a_type_holds(kind, held):
    assert kind_of(kind) == held


@pytest.mark.parametrize(
    ("kind", "column", "numbers"),
    [
        ("number", pa.array([3.0, None, 3.0]).dictionary_encode(), [3.0, np.nan, 3.0]),
        ("number", pa.array([None, None]), [np.nan, np.nan]),
        ("number", pa.array([" 2.5", "two", None]), [2.5, np.nan, np.nan]),
        ("number", pa.array([True, False]), [1.0, 0.0]),
        ("truth", pa.array([1, 0]), [1.0, 0.0]),
        ("date", pa.array([date(1970, 1, 3), None]), [2.0, np.nan]),
        ("date", pa.array([datetime(1970, 1, 1, 12)]), [0.5]),
        ("date", pa.array([time(6)]), [0.25]),
        ("date", pa.array([timedelta(days=3, hours=18)]), [3.75]),
        ("date", pa.array(["1970-01-02", "1970-01-02", None]), [1.0, 1.0, np.nan]),
    ],
)
def test_columns_as_numbers(kind, column, numbers):
    np.testing.assert_array_equal(numbers_of("a", kind, column), numbers)


def test_what_does_not_fit_is_refused():
    with pytest.raises(
        DataError, match=r"column 'a' holds int64, and the model .* one of dates\. Give a t"
    ):
        numbers_of("a", "date", pa.array([1]))
    with pytest.raises(DataError, match=r"column 'a' holds dates, and 'soon' is none\. Write it as 2024-1"):
        numbers_of("a", "date", pa.array(["soon"]))


@pytest.mark.parametrize(
    ("column", "texts", "codes"),
    [
        (pa.array(["x ", " x", "  ", None, "y"]), ["x", "y"], [0, 0, -1, -1, 1]),
        (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y"], [0, 1, 0]),
        (pa.array([3.0, None, -1.0]), ["3", "-1"], [0, -1, 1]),
        (pa.array([3.0, 0.5]), ["3", "0.5"], [0, 1]),
        (pa.array([True, False]), ["true", "false"], [0, 1]),
    ],
)
def test_columns_as_texts(column, texts, codes):
    found, places = texts_of(column)
    assert found == texts
    assert places.tolist() == codes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "colour"}, "is of an unknown kind"),
        ({"scale": 0.0}, "is not scaled by finite numbers"),
        ({"fill": float("nan")}, "is not scaled by finite numbers"),
        ({"kind": "category", "center": 1.0}, "of categories is scaled"),
        ({"kind": "date", "lenient": True}, "takes texts for missing numbers, and is none of numbers"),
        ({"categories": ("x",)}, "of numbers has categories"),
        ({"kind": "category", "categories": ("x", "x")}, "has a category twice"),
        ({"kind": "category", "categories": ("x", "y")}, None),
    ],
)
def test_columns_that_contradict_themselves(changes, words):
    found = Column(**({"name": "a", "kind": "number"} | changes)).contradiction()
    assert found is None if words is None else found == f"its column 'a' {words}"
