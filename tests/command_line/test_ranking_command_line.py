# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task ranking``, and what the other commands make of its files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin.files import load_model, write_libsvm
from ranked_rows import ranked_rows

X, Y, QUERY, _ = ranked_rows(n=80, levels=4, queries=6)


@pytest.fixture
def files(tmp_path):
    text, table, model = tmp_path / "data.svm", tmp_path / "data.csv", tmp_path / "model.mm"
    write_libsvm(text, X, Y, QUERY)
    lines = [
        f"q{q},{','.join(map(repr, row))},{int(y)}" for q, row, y in zip(QUERY, X.tolist(), Y, strict=True)
    ]
    table.write_text("\n".join(["session,a,b,c,d,grade", *lines]) + "\n")
    return text, table, model


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_text_with_queries(files, run, loss):
    text, _, model = files
    code, out, _ = run(
        "train", str(text), "--task", "ranking", "-C", "0.1", "--loss", loss, "-o", str(model)
    )
    assert code == 0
    assert "nDCG" in out
    assert load_model(model).is_ranking
    for words in ([], ["--independent"]):
        code, out, _ = run("certify", str(model), str(text), *words)
        assert (code, "Holds" in out) == (0, True)
    code, out, err = run("predict", str(model), str(text))
    assert code == 0
    np.testing.assert_allclose(np.array(out.split(), float), X @ load_model(model).coef[0])
    assert "pairs in order" in err
    code, out, _ = run("info", str(model))
    assert "ranking" in out
    code, out, _ = run("report", str(model), str(text), "-o", str(model.with_suffix(".html")))
    assert code == 2


def test_a_table_with_a_column_of_queries(files, run):
    _, table, model = files
    words = ["--label", "grade", "--query", "session"]
    code, out, _ = run(
        "train", str(table), "--task", "ranking", *words, "-o", str(model), "--test", str(table), "--json"
    )
    assert code == 0
    answer = json.loads(out)
    assert answer["task"] == "ranking"
    assert answer["training"]["queries"] == answer["test"]["queries"] == 5
    assert answer["training"]["ndcg"] == pytest.approx(answer["test"]["ndcg"])
    assert load_model(model).feature_names == ["a", "b", "c", "d"]
    assert run("certify", str(model), str(table), *words)[0] == 0
    assert run("certify", str(model), str(table), *words, "--independent")[0] == 0
    assert run("certify", str(model), str(table), "--label", "grade")[0] == 1  # all rows are one query then
    code, out, _ = run("predict", str(model), str(table), *words, "--json")
    assert json.loads(out)["ranking"]["ndcg"] == pytest.approx(answer["test"]["ndcg"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--task", "ranking", "--kernel", "gaussian"], "--kernel is not for --task ranking"),
        (["--task", "ranking", "--intercept", "exact"], "--intercept is not for --task ranking"),
        (["--task", "ranking", "--loss", "logistic"], "--loss must be one of squared_hinge, hinge"),
        (["--task", "ordering"], "--task must be classification, regression, ranking or one-class"),
        (["--query", "session"], "--query is for --task ranking"),
    ],
)
def test_options_that_make_no_sense_are_refused(files, run, words, expected):
    code, _, err = run("train", str(files[0]), "-o", str(files[2]), *words)
    assert code == 2
    assert expected in " ".join(err.split())
    assert not files[2].exists()


def test_rows_with_and_without_a_query_are_refused(files, run):
    text, _, model = files
    text.write_text("1 qid:1 1:1\n0 1:2\n2 qid:1 1:3\n")
    code, _, err = run("train", str(text), "--task", "ranking", "-o", str(model))
    assert code == 2
    assert "row 2 has none" in err
