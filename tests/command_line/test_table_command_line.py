# SPDX-License-Identifier: BSD-3-Clause
"""A newcomer's table on the command line: trained on, proven, predicted, shown, or refused with a cure."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pandas
import pytest
import zstandard

from maxmargin.command_line.shared.words import as_options
from maxmargin.files import load_model
from maxmargin.files.data import sheets

CITIES = ("Oslo", "Paris", "Rome")


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    count = 120
    frame = pandas.DataFrame(
        {
            "customer": [f"c{k}" for k in range(count)],
            "age": random.integers(18, 80, count).astype(float),
            "city": random.choice(CITIES, count),
            "since": pandas.Timestamp("2020-01-01")
            + pandas.to_timedelta(random.integers(0, 900, count), "D"),
            "active": random.random(count) < 0.5,
            "charges": 1e4 * random.random(count),
        }
    )
    score = (frame["age"] - 50) / 10 + 2 * (frame["city"] == "Rome") + random.normal(size=count)
    frame["churn"] = np.where(score > 0.5, "yes", "no")
    frame.loc[3, "age"] = None
    frame.loc[5, "city"] = None
    return frame


@pytest.fixture
def table(frame, tmp_path):
    frame.to_csv(tmp_path / "churn.csv")
    return tmp_path / "churn.csv"


def changed(table, old, new, count=-1):
    text = table.read_text()
    assert old in text
    other = table.with_name("other.csv")
    other.write_text(text.replace(old, new, count))
    return other


def test_a_table_is_trained_on_proven_predicted_and_shown(run, answer, table, tmp_path):
    model = tmp_path / "m.mm"
    code, out, err = run("train", table, "--label", "churn", "-o", model, "--hold-out", "0.25")
    assert (code, err) == (0, "")
    for words in (
        "120 rows, 8 columns, classes no (",
        "Table: 2 numbers, 1 truth value, 1 date, 1 category of 3 texts; numbers scaled to mean 0",
        "Left out: '' (pandas' numbers of the rows), 'customer' (120 different texts in 120 rows).",
        "Missing values: 'age' (1), 'city' (1).",
        "Predicted by a model of the other 90 rows.",
    ):
        assert words in out
    code, said = answer("certify", model, table)
    assert (code, said["holds"], said["same_data"]) == (0, True, True)
    code, said = answer("predict", model, table)
    assert (code, said["rows"], said["filled_values"]) == (0, 120, {"age": 1, "city": 1})
    assert said["accuracy"] > 0.75
    code, out, _ = run("info", model)
    assert "category, a column for each of Oslo, Paris, Rome, and for none" in out
    assert "Left out: '' (pandas' numbers of the rows)" in out
    code, out, _ = run("info", table, "--label", "churn")
    assert "city      category: " in out
    assert "since     date from 2020-0" in out
    assert "customer  left out: 120 different texts" in out


def test_every_format_and_way_in_gives_the_same(answer, frame, table, tmp_path, monkeypatch):
    frame.set_index("customer").to_parquet(tmp_path / "churn.parquet")
    frame.to_csv(tmp_path / "churn.tsv", sep="\t", index=False)
    frame.to_csv(tmp_path / "semicolons.csv", sep=";", index=False)
    (tmp_path / "churn.csv.gz").write_bytes(gzip.compress(table.read_bytes()))
    model = tmp_path / "m.mm"
    _, first = answer("train", table, "--label", "churn", "-o", model)
    labels = answer("predict", model, table)[1]["labels"]
    for name, options in (
        ("churn.parquet", []),
        ("churn.tsv", []),
        ("semicolons.csv", ["--delimiter", ";"]),
        ("churn.csv.gz", []),
    ):
        _, said = answer(
            "train",
            tmp_path / name,
            "--label",
            "churn",
            "-o",
            tmp_path / "n.mm",
            "--drop",
            "customer",
            *options,
        )
        assert said["primal"] == pytest.approx(first["primal"], rel=1e-12), name
        assert answer("predict", model, tmp_path / name, *options)[1]["labels"] == labels
    packed = zstandard.ZstdCompressor().compress(table.read_bytes())
    for content in (table.read_bytes(), gzip.compress(table.read_bytes()), packed):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert answer("predict", model, "-")[1]["labels"] == labels


@pytest.mark.parametrize(
    "options", [["--kernel", "gaussian"], ["--features", "monomials:2"], ["--no-proof"]]
)
def test_every_kind_of_model_has_its_table(answer, table, tmp_path, options):
    model = tmp_path / "m.mm"
    assert answer("train", table, "--label", "churn", "-o", model, *options)[0] == 0
    code, said = answer("certify", model, table)
    assert (code, said["reasons"]) == (0, [])
    assert answer("predict", model, table)[1]["accuracy"] > 0.75
    assert load_model(model).encoding.label == "churn"


@pytest.mark.parametrize(
    "options", [[], ["--kernel", "poly"], ["--scale", "max-abs", "--categorical", "age"]]
)
def test_the_independent_checker_makes_the_same_of_a_table(answer, table, tmp_path, options):
    model = tmp_path / "m.mm"
    answer("train", table, "--label", "churn", "-o", model, *options)
    code, said = answer("certify", "--independent", model, table)
    assert (code, said["reasons"], said["holds"]) == (0, [], True)
    marked = table.with_name("marked.csv")
    marked.write_bytes(b"\xef\xbb\xbf" + table.read_bytes().replace(b"\n", b"\r\n"))
    for command in (["certify"], ["certify", "--independent"]):
        assert answer(*command, model, marked)[1]["holds"]
    lacking = changed(table, "city", "town", 1)
    assert "lacks the column 'city'" in answer("certify", "--independent", model, lacking)[1]["error"]
    code, said = answer("certify", "--independent", model, changed(table, "Rome", "Oslo", 1))
    assert (code, said["holds"]) == (1, False)


def test_chosen_resumed_and_tested_on_tables(answer, table, tmp_path):
    model = tmp_path / "m.mm"
    code, said = answer("choose", table, "--label", "churn", "-o", model, "--values", "3", "--test", table)
    assert (code, said["test_accuracy"] > 0.75) == (0, True)
    assert answer("certify", model, table)[1]["holds"]
    code, _ = answer("train", table, "--label", "churn", "-o", model, "--max-iter", "1", "--loss", "hinge")
    assert code == 3
    code, said = answer("train", table, "--label", "churn", "--resume", model, "--max-iter", "100000")
    assert (code, said["table"]["label"]) == (0, "churn")


def test_predictions_stand_in_the_lines_of_their_rows(run, answer, table, tmp_path):
    model = tmp_path / "m.mm"
    run("train", table, "--label", "churn", "-o", model)
    lines = table.read_text().splitlines()
    labels = answer("predict", model, table)[1]["labels"]
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("\n".join([*lines[:3], "1,2,3", *lines[3:50], "4", *lines[50:]]) + "\n")
    code, said = answer("predict", model, ragged, "--skip-bad-lines")
    assert (code, said["skipped"]) == (0, 2)
    assert said["labels"] == [*labels[:2], None, *labels[2:49], None, *labels[49:]]
    run("predict", model, ragged, "--skip-bad-lines", "-o", tmp_path / "labels.txt.gz")
    written = gzip.decompress((tmp_path / "labels.txt.gz").read_bytes()).decode().split("\n")
    assert written[:4] == [*labels[:2], "", labels[2]]
    code, _, err = run("predict", model, ragged)
    assert code == 2
    assert "line 4: a row has 3 values, and the table 8 columns: '1,2,3'" in err


def test_predictions_of_libsvm_text_stand_in_the_lines_of_their_rows(run, answer, tmp_path):
    data = tmp_path / "data.svm"
    lines = [f"{k % 2} 1:{k % 2 + 0.1 * (k % 7)}" for k in range(20)]
    data.write_text("\n".join(lines) + "\n")
    run("train", data, "-o", tmp_path / "m.mm")
    labels = answer("predict", tmp_path / "m.mm", data)[1]["labels"]
    data.write_text("\n".join([*lines[:4], "1 x:y", "# nothing", *lines[4:], "0 1:"]) + "\n")
    code, said = answer("predict", tmp_path / "m.mm", data, "--skip-bad-lines")
    assert (code, said["labels"]) == (0, [*labels[:4], None, *labels[4:], None])


def test_texts_that_are_new_are_told(run, table, tmp_path):
    run("train", table, "--label", "churn", "-o", tmp_path / "m.mm")
    code, _, err = run("predict", tmp_path / "m.mm", changed(table, "Rome", "Bern"), "-o", tmp_path / "o")
    assert code == 0
    assert "Texts that were not there in training: 'city' (" in err


def test_a_column_that_alone_separates_the_classes_is_told(run, frame, tmp_path):
    frame.assign(left=np.where(frame["churn"] == "yes", 3, 1)).to_csv(tmp_path / "leak.csv", index=False)
    arguments = ["train", tmp_path / "leak.csv", "--label", "churn", "-o", tmp_path / "m.mm"]
    assert "Column 'left' alone separates the classes" in run(*arguments)[2]
    assert run(*arguments, "--drop", "left")[2] == ""
    frame.assign(number=range(7, 127)).to_csv(tmp_path / "leak.csv", index=False)
    assert "Column 'number' counts the rows" in run(*arguments)[2]


def test_scaling_is_told_and_can_be_had_otherwise(run, answer, table, tmp_path):
    arguments = ["train", table, "--label", "churn", "-o", tmp_path / "m.mm"]
    _, out, err = run(*arguments, "--scale", "none")
    assert "numbers as they are (--scale none)" in out
    assert "orders of magnitude apart" in err
    assert "Add --scale standard" in err
    assert answer(*arguments, "--scale", "max-abs")[1]["table"]["scale"] == "max-abs"


def test_wrong_tables_are_refused_with_cause_and_cure(run, frame, table, tmp_path):
    semicolons, headless = tmp_path / "semicolons.csv", tmp_path / "headless.csv"
    frame.to_csv(semicolons, sep=";", index=False)
    frame[["age", "charges"]].fillna(1).assign(label=frame["churn"]).to_csv(
        headless, header=False, index=False
    )
    odd = changed(table, frame["charges"].astype(str)[7], "unknown")
    numbers = tmp_path / "data.svm"
    numbers.write_text("1 1:2\n0 1:3\n")
    for arguments, complaint in (
        ([semicolons, "--label", "churn"], "separated by semicolons, not by commas. Say --delimiter ';'."),
        ([headless], "holds values instead of the names of the columns"),
        ([headless], "Say --no-header; the columns are then called 1, 2, ..."),
        ([table], "Name the label column with --label."),
        ([table, "--label", "chrun"], "Did you mean 'churn'?"),
        ([odd, "--label", "churn"], "column 'charges' holds numbers but for texts such as 'unknown'"),
        ([odd, "--label", "churn"], "--missing 'unknown'"),
        ([table, "--label", "churn", "--drop", "nobody"], "no column is called 'nobody'"),
        ([table, "--label", "age"], "row 4 has no label in column 'age'"),
        ([table, "--label", "charges"], "The labels are numbers with decimals, not classes"),
        ([table, "--label", "churn", "--scale", "big"], "--scale must be auto, standard, max-abs, none"),
        ([table, "--label", "churn", "--delimiter", ";;"], "--delimiter must be one character"),
        ([table, "--label", "churn", "--model-format", "liblinear"], "--model-format must be maxmargin"),
        ([numbers, "--drop", "a"], "--drop is for tables"),
    ):
        code, out, err = run("train", *arguments, "-o", tmp_path / "m.mm")
        assert (code, out) == (2, ""), arguments
        assert complaint in err
    for options in (["--missing", "unknown"], ["--numeric", "charges"], ["--categorical", "charges"]):
        assert run("train", odd, "--label", "churn", "-o", tmp_path / "m.mm", *options)[0] == 0
        assert run("certify", tmp_path / "m.mm", odd)[0] == 0
        assert run("certify", "--independent", tmp_path / "m.mm", odd)[0] == 0
    assert run("train", headless, "--no-header", "--label", "3", "-o", tmp_path / "m.mm")[0] == 0
    code, _, err = run("predict", tmp_path / "m.mm", numbers)
    assert (code, "must be a table" in err) == (2, True)


def test_numbers_that_become_texts_further_on(answer, tmp_path, monkeypatch):
    """The first block of a file holds numbers alone; a later one does not."""
    monkeypatch.setattr(sheets, "_BLOCK", 1 << 12)
    lines = [f"{k % 2},{k % 50},{k % 7}" for k in range(3000)]
    data = tmp_path / "late.csv"
    data.write_text("label,code,value\n" + "\n".join([*lines, "1,other,3"]) + "\n")
    _, said = answer("info", data)
    assert "numbers but for texts such as 'other'" in said["table"]["code"]
    _, said = answer("info", data, "--missing", "other")
    assert said["table"]["code"] == "number from 0 to 49, 1 missing"


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("The 'max_iter' parameter of LinearSVC must be an int in", "--max-iter must be a whole number in"),
        ("say zero_based=True (--zero-based on the command line).", "say --zero-based."),
        ("Use loss='hinge'.", "Use --loss hinge."),
    ],
)
def test_messages_speak_of_options(python, command):
    assert as_options(python) == command


def test_decimal_commas_are_told_and_read(run, answer, frame, table, tmp_path):
    """A table as spreadsheets of many countries write it."""
    model, commas = tmp_path / "m.mm", tmp_path / "commas.csv"
    frame.to_csv(commas, sep=";", decimal=",")
    semicolons = ["--label", "churn", "--delimiter", ";"]
    code, _, err = run("train", commas, *semicolons, "-o", model)
    assert (code, "column 'age' holds numbers with decimal commas" in err) == (2, True)
    assert "--decimal ','" in err
    for options in ([], ["--numeric", "age"]):
        layout = ["--delimiter", ";", "--decimal", ","]
        _, here = answer("train", commas, "--label", "churn", *layout, *options, "-o", model)
        _, there = answer("train", table, "--label", "churn", *options, "-o", tmp_path / "other.mm")
        assert here["primal"] == pytest.approx(there["primal"], rel=1e-12)
        assert run("certify", model, commas, *layout)[0] == 0
        assert run("certify", "--independent", model, commas, *layout)[0] == 0
        labels = answer("predict", model, commas, *layout)[1]["labels"]
        assert labels == answer("predict", tmp_path / "other.mm", table)[1]["labels"]
    code, _, err = run("predict", model, commas, "--delimiter", ";")
    assert (code, "--decimal ','" in err) == (2, True)
    code, _, err = run("train", commas, "--label", "churn", "--decimal", ",", "-o", model)
    assert (code, "--delimiter ';'" in err) == (2, True)


def test_a_row_without_a_label_is_predicted_and_not_judged(answer, run, frame, table, tmp_path):
    model, some = tmp_path / "m.mm", tmp_path / "some.csv"
    run("train", table, "--label", "churn", "-o", model)
    frame.assign(churn=frame["churn"].where(np.arange(len(frame)) >= 20)).to_csv(some)
    code, said = answer("predict", model, some)
    assert (code, len(said["labels"])) == (0, len(frame))
    right = np.array(said["labels"][20:]) == frame["churn"][20:]
    assert said["accuracy"] == pytest.approx(right.mean())
    assert "20 rows were not counted: no label is given." in run("predict", model, some)[2]


def test_labels_with_spaces_and_commas_stand_in_quotes(answer, run, frame, tmp_path):
    labels = frame["churn"].map({"yes": "gone, sadly", "no": "still here ☺"})
    frame.assign(churn=labels).to_csv(tmp_path / "texts.csv")
    given = ["train", tmp_path / "texts.csv", "--label", "churn", "-o", tmp_path / "m.mm"]
    code, out, _ = run(*given, "--class-weight", "gone, sadly:2,still here ☺:1")
    assert (code, "'gone, sadly' (" in out) == (0, True)
    assert "'still here ☺'" in run("info", tmp_path / "m.mm")[1]
    predicted = answer("predict", tmp_path / "m.mm", tmp_path / "texts.csv")[1]["labels"]
    assert set(predicted) == {"gone, sadly", "still here ☺"}
    assert run("certify", tmp_path / "m.mm", tmp_path / "texts.csv")[0] == 0
