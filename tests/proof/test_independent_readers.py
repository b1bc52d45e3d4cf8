# SPDX-License-Identifier: BSD-3-Clause
"""The simple readers of the independent checker: rare forms, and files that they refuse."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

from maxmargin import LinearSVC
from maxmargin.independent.readers import Sheet, Unreadable, class_of, label_text, read_data, read_model
from written_files import parts_of, signed

PACKED = gzip.compress(b"1 1:1\n", mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("a.npz", b"", {}, "this checker reads LIBSVM text and CSV"),
        ("no such.svm", None, {}, "the file cannot be read"),
        ("a.svm", b"\xff\n", {}, "the file cannot be read"),
        ("a.svm.gz", PACKED[:-6], {}, "the file cannot be read"),
        ("a.svm.gz", PACKED[:10] + b"\xff" * 9, {}, "the file cannot be read"),
        ("a.svm", b"1 1:1\n", {"encoding": {}}, "this checker reads it from CSV"),
        ("a.svm", b"1 qid:x 1:1\n", {}, "line 1 has a query that is not a whole number"),
        ("a.svm", b"\n1 1:1:1\n", {}, "line 2 is not a label followed by index:value"),
        ("a.svm", b"1 1:1 1:2\n", {}, "line 1 has an index twice, or one below 1"),
        ("a.svm", b"1 0:1\n", {}, "line 1 has an index twice, or one below 1"),
        ("a.svm", b"1 1:1_0\n", {}, "'1_0' is not a finite number"),
        ("a.csv", b"", {}, "no column holds the labels. Name it with --label."),
        ("a.csv", b"a,b\n1,2\n", {}, "no column holds the labels"),
        ("a.csv", b"a,label\n1,2\n1\n", {}, "a row has another number of values"),
        ("a.csv", b"a,label\n1\r2,3\n", {}, "new-line character"),
        ("a.csv", b"a,label\n1,2\n", {"query": "q"}, "no column is called 'q'. Name the queries' one"),
        ("a.csv", b"a,label,q\n1,2,3\n1,2\n", {"query": "q"}, "a row has another number of values"),
        (
            "a.csv",
            b"a,label\n1,2\n",
            {"encoding": {"columns": [{"name": "b"}], "label": "label"}},
            "the table lacks the column 'b'",
        ),
    ],
)
def test_what_is_refused(tmp_path, name, content, options, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Unreadable, match=re.escape(words)):
        read_data(tmp_path / name, **options)


def test_rare_forms_are_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1,5\tyes\t7\ntrue\tno\t8\n")
    found = read_data(path, label="2", query="3", sheet=Sheet(decimal=",", header=False))
    assert found.rows == [{0: 1.5}, {0: 1.0}]
    assert (found.labels, found.queries, found.names) == (["yes", "no"], ["7", "8"], ["1"])
    assert found.columns == 1
    (tmp_path / "b.csv").write_text("a,b\n1,0\n")
    assert read_data(tmp_path / "b.csv", labelled=False).rows == [{0: 1.0}]
    (tmp_path / "c.svm").write_text("1 # nothing\n2 qid:03 0:1 # a remark\n")
    found = read_data(tmp_path / "c.svm", zero_based=True)
    assert found.rows == [{}, {0: 1.0}]
    assert found.queries == [None, "3"]
    assert found.columns == 1


def test_labels_are_known_as_they_stand_or_as_numbers():
    assert [label_text(label) for label in (3.0, 2.5, 1e300, "a")] == ["3", "2.5", "1e+300", "a"]
    assert [class_of(label, ["3", "a"]) for label in ("a", "3.0", "4", "b")] == [1, 0, -1, -1]


def test_models_that_are_refused(tmp_path):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    LinearSVC().fit(X, [0, 0, 1, 1]).save(tmp_path / "model.mm", data=(X, [0, 0, 1, 1]))
    texts, description, arrays = parts_of(tmp_path / "model.mm")
    model, path = read_model(tmp_path / "model.mm"), tmp_path / "other.mm"
    assert len(model.lines("coef")) == 1
    with pytest.raises(Unreadable, match="'intercept' of the model is not a matrix"):
        model.lines("intercept")
    with pytest.raises(Unreadable, match="has no array 'vectors of nothing'"):
        model.numbers("vectors of nothing")
    signed(path, texts, description, arrays | {"coef": arrays["coef"] * np.nan})
    with pytest.raises(Unreadable, match="'coef' of the model holds NaN or infinity"):
        read_model(path).lines("coef")
    signed(path, {**texts, "format": "another model"}, description, arrays)
    with pytest.raises(Unreadable, match="it is not a model of maxmargin"):
        read_model(path)
    content = (tmp_path / "model.mm").read_bytes()
    for damaged, words in (
        (content[:-9], "it was cut off"),
        (content[:-1] + bytes([content[-1] ^ 1]), "do not match its checksum"),
        (content[:30], "it is damaged, or not a model of maxmargin"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(Unreadable, match=words):
            read_model(path)
    with pytest.raises(Unreadable, match="the file cannot be read"):
        read_model(tmp_path / "no such.mm")
