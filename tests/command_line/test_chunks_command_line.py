# SPDX-License-Identifier: BSD-3-Clause
"""``train`` and ``certify`` on data that are read in chunks."""

from __future__ import annotations

import json
import os
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


def test_too_little_memory_ends_uncertified_and_says_what_to_do(folder, run, tmp_path):
    train = "train", folder / "three.svm", "-o", tmp_path / "m.mm", "--loss", "hinge"
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
import sys, time
from maxmargin.chunks import fit
keep = fit._Run._keep
def slowly(self):
    keep(self)
    print(self.passes_made, flush=True)
    time.sleep(0.5 if self.passes_made < 3 else 30)
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
        [sys.executable, "-c", SLOW, *arguments], stdout=subprocess.PIPE, text=True, env=os.environ
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
