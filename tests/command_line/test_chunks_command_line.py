# SPDX-License-Identifier: BSD-3-Clause
"""``train`` and ``certify`` on data that are read in chunks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from maxmargin.command_line import main
from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.in_chunks import bytes_of
from maxmargin.files import load_model, pack, write_libsvm

COMMAND = [sys.executable, "-m", "maxmargin.command_line"]


def drawn(rows=12_000, classes=2):
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(rows, 6)), 3)
    scores = X @ generator.normal(size=(6, classes)) + generator.normal(size=(rows, classes))
    return X, scores.argmax(axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks")
    X, y = drawn()
    write_libsvm(folder / "a.svm", X, y)
    write_libsvm(folder / "three.svm", *drawn(classes=3))
    pack(folder / "a.svm", folder / "a.mmd", dense=True)
    pack(lambda: [(X, y, 1.0 + np.arange(12_000) % 3)], folder / "weights.mmd")
    (folder / "parts").mkdir()
    for k in range(3):
        part = slice(4000 * k, 4000 * k + 4000)
        np.savez(folder / "parts" / f"{k}.npz", X=X[part], y=y[part])
    return folder


@pytest.fixture
def run(capsys):
    def called(*arguments, code=0):
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        assert ended.value.code == code, out + err
        return out + err

    return called


@pytest.mark.parametrize(
    ("data", "loss"),
    [
        ("a.svm", "hinge"),
        ("a.mmd", "squared_hinge"),
        ("three.svm", "logistic"),
        ("parts", "squared_hinge"),
        ("parts/*.npz", "hinge"),
        ("weights.mmd", "hinge"),
    ],
)
def test_what_is_trained_in_chunks_holds_in_chunks_and_in_memory(folder, run, tmp_path, data, loss):
    model = tmp_path / "model.mm"
    chunked = ("--memory", "1MB")
    answer = json.loads(
        run("train", folder / data, "-o", model, "--loss", loss, "--tol", 1e-3, *chunked, "--json")
    )
    assert answer["in_chunks"]
    assert answer["certified"]
    assert answer["rows"] == 12_000
    said = run("certify", model, folder / data, *chunked)
    assert "Holds" in said
    if data in ("a.svm", "a.mmd"):
        assert "Holds" in run("certify", model, folder / "a.svm")
    if data == "a.mmd":
        assert load_model(model).fingerprint is not None
    assert len(run("predict", model, folder / "a.svm").splitlines()) >= 12_000


def test_a_model_of_memory_is_judged_in_chunks_and_a_lie_is_found(folder, run, tmp_path):
    model = tmp_path / "model.mm"
    run("train", folder / "a.svm", "-o", model, "--loss", "hinge")
    assert "Holds" in run("certify", model, folder / "a.mmd", "--memory", "1MB")
    run("train", folder / "a.svm", "-o", model, "-C", "0.001")
    said = run("certify", model, folder / "three.svm", "--memory", "1MB", code=1)
    assert "other labels" in said


def test_train_says_that_it_reads_in_chunks_and_refuses_what_cannot_be(folder, run, tmp_path):
    model = tmp_path / "model.mm"
    said = run("train", folder / "a.svm", "-o", model, "--memory", "1MB", "-v")
    assert "so the data are read in chunks" in said
    assert "pass 2, gap" in said
    assert "in chunks" not in run("train", folder / "a.svm", "-o", model)
    for option in (["--kernel", "gaussian"], ["--hold-out", "0.2"], ["--scale", "standard"]):
        said = run("train", folder / "a.svm", "-o", model, "--memory", "1MB", *option, code=2)
        assert "needs the rows in memory" in said
    assert "these fit" in run("train", folder / "a.svm", "-o", model, "--checkpoint", "x", code=2)
    balanced = run("train", folder / "a.svm", "-o", model, "--memory", "1MB", "--class-weight", "1:3")
    assert "Certified" in balanced


def test_too_little_memory_ends_uncertified_and_says_what_to_do(run, tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 300))  # the band has room for a third of the rows on the margin
    np.savez(tmp_path / "wide.npz", X=X, y=X[:, 0] + 3 * generator.normal(size=2000) > 0)
    train = "train", tmp_path / "wide.npz", "-o", tmp_path / "m.mm", "--loss", "hinge"
    told = run(*train, "--memory", "1MB", code=3)
    assert "Not certified to --tol" in told
    assert "Raise --memory" in told
    assert "Not certified" not in run(*train, "--memory", "20MB")


@pytest.mark.parametrize(
    ("text", "count"), [("2GB", 2 * 10**9), ("500 mb", 5 * 10**8), ("1.5GiB", 3 << 29), ("1000000", 10**6)]
)
def test_sizes(text, count):
    assert bytes_of(text) == count


@pytest.mark.parametrize("text", ["", "x", "-1GB", "1e9", "12", "1.2.3MB", "99999999999TB"])
def test_what_is_no_size(text):
    with pytest.raises(Failure, match="--memory must be"):
        bytes_of(text)


SLOW = """
import sys
from maxmargin.chunks import fit
keep = fit._Run._keep
def slowly(self):
    keep(self)
    print(self.passes_made, flush=True)
    if self.passes_made == 3:
        sys.stdin.read()  # until the signal is there
fit._Run._keep = slowly
from maxmargin.command_line import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_a_training_that_was_killed_goes_on(folder, run, tmp_path, how):
    state, model = tmp_path / "run.state", tmp_path / "model.mm"
    arguments = ["train", folder / "a.mmd", "-o", model, "--loss", "hinge", "--tol", 1e-6]
    arguments = [str(each) for each in [*arguments, "--memory", "1MB", "--checkpoint", state, "--json"]]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "3":
            break
    started = time.monotonic()
    process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
    out, _ = process.communicate()
    if how == "kill":
        assert not model.exists()
    else:
        assert process.returncode == 130
        assert "interrupted" in out
        assert load_model(model).rows == 12_000
    assert time.monotonic() - started < 40
    went_on = json.loads(run(*arguments))
    straight = json.loads(run(*arguments[:-3], "--json"))
    assert went_on["certified"]
    assert (went_on["primal"], went_on["dual"], went_on["passes"]) == (
        straight["primal"],
        straight["dual"],
        straight["passes"],
    )
    refused = run(*arguments, "-C", "2", code=2)
    assert "a fit with other parameters" in refused


@pytest.fixture
def small(tmp_path):
    """Folders of two small files each, which are read in chunks because they are two."""
    for name, classes, rows in (("two", 2, 240), ("three", 3, 240), ("fewer", 2, 200)):
        (tmp_path / name).mkdir()
        X, y = drawn(rows, classes)
        half = rows // 2
        write_libsvm(tmp_path / name / "a.svm", X[:half], y[:half])
        write_libsvm(tmp_path / name / "b.svm", X[half:], y[half:])
    return tmp_path


def test_the_words_at_the_end_of_a_training_in_chunks(small, run):
    model = small / "model.mm"
    said = run("train", small / "three", "-o", model, "--test", small / "three" / "a.svm", "-C", "1e-4")
    assert "2 files are read in chunks" in said.lower()
    assert "240 rows, 6 columns, classes " in said
    assert re.search(r"The widest of 3 gaps is that of [012] against the rest:", said)
    right, of = map(int, re.search(r"Test accuracy: [0-9.]+ %, (\d+) of (\d+) rows", said).groups())
    predicted = [float(line) for line in run("predict", model, small / "three" / "a.svm", "-q").split()]
    y = drawn(240, 3)[1][:120]
    assert (right, of) == (int((np.array(predicted) == y).sum()), 120)
    answer = json.loads(
        run("train", small / "two", "-o", model, "--test", small / "two" / "b.svm", "--json")
    )
    assert answer["test_rows"] == 120
    assert 0.5 < answer["test_accuracy"] <= 1.0
    assert sum(answer["class_rows"].values()) == 240


def test_a_training_in_chunks_that_ends_early_says_where_it_goes_on(small, run):
    model, state = small / "model.mm", small / "state"
    given = ["train", small / "two", "-o", model, "--loss", "hinge", "--tol", "1e-12", "--max-iter", "2"]
    said = run(*given, "--checkpoint", state, code=3)
    assert f"The state is kept in {state}: the same command goes on from there." in " ".join(said.split())
    assert "choose another --solver" not in said
    assert state.exists()


@pytest.mark.parametrize("factors", ["balanced", "0:2,1:0.5"])
def test_classes_in_chunks_have_the_weights_that_they_have_in_memory(small, run, factors):
    write_libsvm(small / "one.svm", *drawn(240))
    shared = ("--class-weight", factors, "--tol", "1e-6", "--json")
    chunked = json.loads(run("train", small / "two", "-o", small / "a.mm", *shared))
    whole = json.loads(run("train", small / "one.svm", "-o", small / "b.mm", "--scale", "none", *shared))
    assert chunked["in_chunks"]
    assert chunked["primal"] == pytest.approx(whole["primal"], rel=2e-6)
    assert "Holds" in run("certify", small / "a.mm", small / "two")


def test_what_training_in_chunks_refuses(small, run):
    model = small / "model.mm"
    said = run("train", small / "two", "-o", model, "--class-weight", "1:x", code=2)
    assert "--class-weight must be balanced or LABEL:FACTOR,... Got '1:x' instead." in said
    X, y = drawn(12_000)
    table = small / "a.csv"
    lines = (",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), y, strict=True))
    table.write_text("a,b,c,d,e,f,label\n" + "\n".join(lines) + "\n")
    said = run("train", table, "-o", model, "--memory", "1MB", code=2)
    assert "The columns of a table are scaled, which needs its rows in memory" in said
    assert "Say --scale none" in " ".join(said.split())


def test_certify_in_chunks_says_what_other_data_are(small, run):
    model = small / "model.mm"
    run("train", small / "two", "-o", model)
    assert "Holds" in run("certify", model, small / "two")
    said = run("certify", model, small / "fewer", code=1)
    assert "the data have 200 rows, and the model was trained on 240" in said
    X, y = drawn(240)
    for name in "cd":
        pack(lambda: [(np.c_[X, X[:, :1]][:120], y[:120])], small / f"{name}.mmd")
    said = run("certify", model, small / "*.mmd", code=2)
    assert "there are 7 columns, and 6 were asked for" in said
    pack(lambda: [(X, y, np.ones(240))], small / "c.mmd")
    pack(lambda: [(X, y, np.ones(240))], small / "d.mmd")
    run("train", small / "*.mmd", "-o", model)
    pack(lambda: [(X, y)], small / "c.mmd")
    pack(lambda: [(X, y)], small / "d.mmd")
    said = run("certify", model, small / "*.mmd", code=1)
    assert "the data have no weights, and the model was trained otherwise" in said


def test_texts_as_labels_in_chunks_have_factors(tmp_path, run):
    X, y = drawn(240)
    for name, part in (("a", slice(0, 120)), ("b", slice(120, 240))):
        lines = [
            ",".join([*map(str, row), "yes" if label else "no"])
            for row, label in zip(X[part].tolist(), y[part], strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("a,b,c,d,e,f,label\n" + "\n".join(lines) + "\n")
    given = ("train", tmp_path / "*.csv", "-o", tmp_path / "model.mm", "--scale", "none", "--json")
    plain = json.loads(run(*given))
    answer = json.loads(run(*given, "--class-weight", "yes:3,no:1"))
    assert answer["classes"] == ["no", "yes"]
    assert answer["certified"]
    assert answer["primal"] > plain["primal"]
