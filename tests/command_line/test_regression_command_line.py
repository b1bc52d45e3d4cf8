# SPDX-License-Identifier: BSD-3-Clause
"""``train --task regression``, and what the other commands make of its files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regression")
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.25 + 0.1 * random.normal(size=80)
    dump_svmlight_file(X, y, str(folder / "data.svm"), zero_based=False)
    colours = np.where(X[:, 0] > 0.0, "red", "blue")
    lines = [f"{c},{a:.5f},{p:.5f}\n" for c, a, p in zip(colours, X[:, 1], y, strict=True)]
    (folder / "prices.csv").write_text("colour,area,price\n" + "".join(lines))
    return folder


@pytest.fixture
def told(run, folder):
    """(exit code, stdout, stderr) of a command; words that begin with @ are files."""
    return lambda *words: run(*(folder / word[1:] if word.startswith("@") else word for word in words))


@pytest.mark.parametrize(
    "options",
    [
        ["--epsilon", "0.1"],
        ["--loss", "squared_epsilon_insensitive", "--intercept", "regularised"],
        ["--kernel", "gaussian", "--epsilon", "0.05"],
    ],
    ids=" ".join,
)
def test_a_regressor_is_trained_certified_and_used(options, told):
    code, out, _ = told(
        "train", "@data.svm", "--task", "regression", "-o", "@m.mm", "-C", "5",
        "--test", "@data.svm", *options,
    )  # fmt: skip
    assert code == 0
    assert "Certified: the relative gap" in out
    assert "Test data, 80 rows: off by" in out
    code, out, _ = told("certify", "@m.mm", "@data.svm")
    assert code == 0
    assert "regression" in out
    assert "Holds" in out
    code, out, err = told("predict", "@m.mm", "@data.svm")
    assert code == 0
    assert len(np.array(out.split(), float)) == 80
    assert "root mean square" in err
    assert told("info", "@m.mm")[1].count("regression")


def test_a_table_becomes_a_regressor(told):
    words = "train", "@prices.csv", "--label", "price", "--task", "regression", "-o", "@t.mm", "--json"
    code, out, _ = told(*words)
    assert code == 0
    answer = json.loads(out)
    assert answer["task"] == "regression"
    assert answer["relative_gap"] <= 1e-4
    assert answer["training"]["rows"] == 80
    assert told("certify", "@t.mm", "@prices.csv", "--label", "price")[0] == 0
    code, out, _ = told("predict", "@t.mm", "@prices.csv", "--label", "price", "--json")
    assert json.loads(out)["root_mean_squared_error"] > 0.0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["@prices.csv", "--label", "colour", "--task", "regression"], "the labels must be numbers"),
        (
            ["@data.svm", "--task", "sorting"],
            "--task must be classification, regression, ranking or one-class",
        ),
        (["@data.svm", "--epsilon", "1"], "--epsilon is for --task regression"),
        (["@data.svm", "--task", "regression", "--class-weight", "balanced"], "--class-weight is for"),
        (
            ["@prices.csv", "--label", "price", "--task", "regression", "--model-format", "libsvm"],
            "--model-format must be maxmargin for a table",
        ),
        (["@data.svm", "--task", "regression", "--loss", "hinge"], "--loss must be one of"),
        (
            ["@data.svm", "--task", "regression", "--kernel", "gaussian", "--intercept", "none"],
            "--intercept must be exact",
        ),
    ],
)
def test_what_does_not_fit_is_refused(words, sentence, folder, told):
    code, _, err = told("train", *words, "-o", "@refused.mm")
    assert code == 2
    assert sentence in err
    assert not (folder / "refused.mm").exists()


def test_commands_about_classes_refuse_a_regressor(told):
    told("train", "@data.svm", "--task", "regression", "-o", "@m.mm")
    assert told("report", "@m.mm", "@data.svm", "-o", "@page.html")[0] == 0
    code, _, err = told("predict", "@m.mm", "@data.svm", "--sure")
    assert (code, "predicts numbers" in err) == (2, True)
    assert told("certify", "@m.mm", "@prices.csv", "--label", "colour")[0] != 0


def test_what_a_regressor_is_worth_is_told(told, answer, folder):
    """Beside what the same number for every row would be off by, and on rows that were held out."""
    words = "@prices.csv", "--label", "price", "--task", "regression", "-o", "@t.mm", "--hold-out", "0.25"
    code, out, err = told("train", *words, "-C", "100")
    assert (code, err) == (0, "")
    for said in ("80 rows, 3 columns, labels from", "Table: 1 number, 1 category of 2 texts", "Model: "):
        assert said in out
    assert "Held out, 20 rows: off by" in out
    assert "Always to say" in out
    code, _, err = told("train", *words, "-C", "1e-6")
    assert (code, "it is of little use. Raise -C" in err) == (0, True)
    given = [folder / word[1:] if word.startswith("@") else word for word in words]
    code, found = answer("train", *given, "-C", "100")
    assert found["held_out"]["rows"] == 20
    assert found["training"]["mean_absolute_error"] < 0.5 * found["error_of_the_median"]
    code, _, err = told("train", *words[:-1], "0.999")
    assert (code, "--hold-out 0.999 must leave rows" in err) == (2, True)


def test_rows_without_a_number_are_predicted_and_not_judged(told, answer, folder):
    told("train", "@prices.csv", "--label", "price", "--task", "regression", "-o", "@t.mm")
    lines = (folder / "prices.csv").read_text().splitlines()
    (folder / "some.csv").write_text("\n".join([lines[0], lines[1].rpartition(",")[0] + ",", *lines[2:]]))
    _, some = answer("predict", folder / "t.mm", folder / "some.csv")
    _, all_of_them = answer("predict", folder / "t.mm", folder / "prices.csv")
    assert some["labels"] == all_of_them["labels"]
    assert 0 < some["mean_absolute_error"] != all_of_them["mean_absolute_error"]
