# SPDX-License-Identifier: BSD-3-Clause
"""What the columns of a table become: found, said, filled, scaled, one by one."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas
import pyarrow
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from maxmargin import SVC, LinearSVC, LinearSVR, Table
from maxmargin.files import DataError, ModelError, load_model, save_model
from maxmargin.tables.encoding import Column, Encoding
from written_files import parts_of, signed

DAY = datetime.date(2020, 1, 1)


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    count = 60
    return pandas.DataFrame(
        {
            "name": [f"person {k}" for k in range(count)],
            "age": [np.nan, *random.integers(18, 80, count - 1)],
            "city": [None, *random.choice(["Oslo", "Rome"], count - 1)],
            "since": [DAY + datetime.timedelta(days=k) for k in range(count)],
            "active": random.random(count) < 0.5,
            "empty": [None] * count,
            "Unnamed: 0": range(count),
        }
    )


def test_kinds_are_found(frame):
    table = Table().fit(frame)
    kinds = {column.name: column.kind for column in table.encoding_.columns}
    assert kinds == {"age": "number", "city": "category", "since": "date", "active": "truth"}
    reasons = dict(table.encoding_.left_out)
    assert reasons["name"] == "60 different texts in 60 rows"
    assert reasons["empty"] == "it has no values"
    assert reasons["Unnamed: 0"] == "pandas' numbers of the rows"
    names = ["age", "city=Oslo", "city=Rome", "city is missing", "since", "active"]
    assert table.get_feature_names_out().tolist() == names


def test_the_matrix_is_what_is_said(frame):
    X = Table().fit_transform(frame)
    age = frame["age"].to_numpy()
    filled = np.where(np.isnan(age), np.nanmedian(age), age)
    np.testing.assert_allclose(X[:, 0], (filled - np.nanmean(age)) / np.nanstd(age), rtol=1e-12)
    np.testing.assert_array_equal(X[:, 1:4].sum(axis=1), 1.0)
    np.testing.assert_array_equal(X[:, 3], np.arange(60) == 0)
    assert X[:, 4].mean() == pytest.approx(0.0, abs=1e-9)
    assert X[:, 4].std() == pytest.approx(1.0)
    assert set(X[:, 5]) == {0.0, 1.0}
    plain = Table(scale="none").fit_transform(frame)
    assert plain[0, 4] == (DAY - datetime.date(1970, 1, 1)).days
    assert np.abs(Table(scale="max-abs").fit_transform(frame)).max() == 1.0


def test_what_is_said_goes_before_what_is_found(frame):
    table = Table(drop="age", categorical=("name",), numeric=["city"]).fit(frame)
    kinds = {column.name: column.kind for column in table.encoding_.columns}
    assert kinds == {"name": "category", "city": "number", "since": "date", "active": "truth"}
    with pytest.raises(DataError, match="no column is called 'nobody'"):
        Table(drop="nobody").fit(frame)
    with pytest.raises(DataError, match="two things at once"):
        Table(drop="age", numeric="age").fit(frame)
    with pytest.raises(ValueError, match="'scale' parameter of Table must be one of 'standard'"):
        clone(Table(scale="big")).fit(frame)
    with pytest.raises(ValueError, match="must be a table"):
        Table().fit(np.eye(2))


def test_texts_that_were_not_there_count_as_none_of_them(frame):
    table = Table().fit(frame)
    other = frame.iloc[1:4].assign(city=["Bern", "Oslo", None])
    X = table.transform(other)
    np.testing.assert_array_equal(X[:, 1:4], [[0, 0, 0], [1, 0, 0], [0, 0, 1]])
    encoded = table.encoding_.encode(pyarrow.Table.from_pandas(other))
    assert (encoded.unseen, encoded.filled) == ({"city": 1}, {"city": 1})
    with pytest.raises(DataError, match="lacks columns that the model was trained on: 'age'"):
        table.transform(frame.drop(columns="age"))
    with pytest.raises(DataError, match="column 'since' holds int64, and the model was trained on"):
        table.transform(frame.assign(since=range(60)))


def test_many_categories_make_a_sparse_matrix():
    texts = [f"t{k % 30}" for k in range(90)]
    X = Table().fit_transform(pandas.DataFrame({"text": texts, "number": range(90)}))
    assert sparse.issparse(X)
    assert X.shape == (90, 31)
    assert np.all(X[:, :30].sum(axis=1) == 1)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ([[1], [2], [3]], "neither number nor text nor date"),
        ([*map(str, range(29)), "?"], r"numbers but for texts such as '\?'"),
        ([*map(str, range(30))], "numbers that are written as texts"),
        ([float("inf"), 1.0, 2.0], "has an infinite value"),
    ],
)
def test_what_cannot_be_found_out_is_refused_with_the_cure(values, complaint):
    with pytest.raises(DataError, match=complaint):
        Table().fit({"column": values})


@pytest.mark.parametrize("model", [LinearSVC(), SVC(gamma=0.5)])
def test_a_pipeline_is_one_file(frame, tmp_path, model):
    y = np.where((frame["age"].fillna(50) > 50) ^ (frame["city"] == "Rome"), "yes", "no")
    pipeline = make_pipeline(Table(), model).fit(frame, y)
    save_model(pipeline, tmp_path / "m.mm")
    saved = load_model(tmp_path / "m.mm")
    assert saved.encoding == pipeline[0].encoding_
    np.testing.assert_array_equal(saved.predict(frame), pipeline.predict(frame))
    np.testing.assert_array_equal(saved.predict(pipeline[0].transform(frame)), pipeline.predict(frame))
    with pytest.raises(
        ModelError, match=r"can be saved where it is made of a maxmargin.Table.* Got a Table"
    ):
        save_model(make_pipeline(Table(), Table(), model), tmp_path / "m.mm")


CHANGES = {
    "kind": ("colour", "should be one of number"),
    "scale": (0.0, "is not scaled by finite numbers"),
    "name": ("city", "names a column of its table twice"),
    "categories": (["a"], "has categories"),
    "fill": ("inf", "should be a finite number"),
}


@pytest.mark.parametrize("field", CHANGES)
def test_what_a_file_says_of_its_table_is_not_trusted(frame, tmp_path, field):
    save_model(make_pipeline(Table(), LinearSVC()).fit(frame, frame["active"]), tmp_path / "m.mm")
    texts, description, arrays = parts_of(tmp_path / "m.mm")
    assert texts["version"] == "4"
    value, complaint = CHANGES[field]
    description["encoding"]["columns"][0][field] = value
    signed(tmp_path / "m.mm", texts, description, arrays)
    with pytest.raises(ModelError, match=complaint):
        load_model(tmp_path / "m.mm")


def test_an_encoding_that_is_not_of_the_model_is_refused(frame, tmp_path):
    save_model(make_pipeline(Table(), LinearSVC()).fit(frame, frame["active"]), tmp_path / "m.mm")
    texts, description, arrays = parts_of(tmp_path / "m.mm")
    description["encoding"]["columns"].pop()
    signed(tmp_path / "m.mm", texts, description, arrays)
    with pytest.raises(ModelError, match="are not those that it weighs"):
        load_model(tmp_path / "m.mm")


def test_plain_numbers_need_no_encoding():
    plain = Encoding((Column("a", "number"), Column("b", "truth")), "none")
    assert plain.is_plain
    assert not Encoding((Column("a", "number", fill=1.0),), "none").is_plain
    assert not Encoding((Column("a", "date"),), "none").is_plain


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}.05.2020", "dates that are not written as 2024-12-31"),
        ("2020/05/{} 10:00", "dates that are not written as 2024-12-31"),
        ("$ {},000.50", "numbers with signs in them"),
        ("{} %", "numbers with signs in them"),
        ("{},123", "numbers with signs in them"),
        ("{},5", "numbers with decimal commas, such as '10,5'. Read it with decimal=','"),
    ],
)
def test_numbers_and_dates_in_other_forms_are_refused(text, complaint):
    frame = pandas.DataFrame({"a": [text.format(k) for k in range(10, 29)] * 3})
    with pytest.raises(DataError, match="column 'a' holds " + re.escape(complaint)):
        Table().fit(frame)
    assert Table(categorical="a").fit(frame).transform(frame).shape[1] == 19
    codes = pandas.DataFrame({"a": ["12-34", "v1.2.3", "10.0.0.1", "0123 456"] * 9})
    assert Table().fit(codes).transform(codes).shape[1] == 4


def test_dates_that_are_texts_are_dates():
    """As pandas.read_csv leaves them."""
    texts = ["2020-01-01", "2020-01-03", None, "2020-01-02 12:00:00"]
    model = Table("none").fit(pandas.DataFrame({"day": texts}))
    assert model.encoding_.columns[0].kind == "date"
    days = model.transform(pandas.DataFrame({"day": ["1970-01-02", "1970-01-01T06:00:00+00:00"]}))
    np.testing.assert_array_equal(days, [[1.0], [0.25]])
    with pytest.raises(DataError, match="'soon' is none"):
        model.transform(pandas.DataFrame({"day": ["soon"]}))


def test_a_column_without_values_is_left_out():
    nothing = pandas.array([None, None], dtype="float64")
    table = pyarrow.table({"nan": [float("nan")] * 2, "null": nothing, "x": [1.0, 2.0], "who": ["a", "b"]})
    model = Table(drop="who").fit(table)
    assert model.left_out_ == {
        "nan": "it has no values",
        "null": "it has no values",
        "who": "as said by --drop",
    }
    assert model.transform(table).shape == (2, 1)


def test_who_takes_texts_is_told_with_the_error_about_them(frame):
    for estimator, values in ((LinearSVC(), frame), (SVC(), frame), (LinearSVR(), frame.assign(city=0.0))):
        with pytest.raises((ValueError, TypeError)) as caught:
            estimator.fit(values, np.arange(len(frame)) % 2)
        assert "maxmargin.Table" in caught.value.__notes__[0]
    with pytest.raises(DataError, match="two columns are called 'city'"):
        Table().fit(pandas.concat([frame, frame[["city"]]], axis=1))
