# SPDX-License-Identifier: BSD-3-Clause
"""What ``certify`` is told besides the files: refused where the file says it itself, or cannot have it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from maxmargin import SVC, LinearSVC, NuSVR
from maxmargin.command_line import main
from maxmargin.command_line.shared import standard_input
from maxmargin.files import save_model
from written_files import write_libsvm

GENERATOR = np.random.default_rng(0)
X = np.round(GENERATOR.normal(size=(30, 3)), 2)
Y = (X[:, 0] + 0.4 * GENERATOR.normal(size=30) > 0).astype(int)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("certify")
    write_libsvm(place / "a.svm", X, Y)
    LinearSVC(loss="hinge", random_state=0).fit(X, Y).save(place / "own.mm", data=(X, Y))
    NuSVR(nu=0.5).fit(X, X[:, 0]).save(place / "nu.mm", data=(X, X[:, 0]))
    weighted = LinearSVC(
        loss="hinge", class_weight={0: 1.0, 1: 3.0}, fit_intercept=False, random_state=0, tol=1e-6
    )
    save_model(weighted.fit(X, Y), place / "theirs.model", format="liblinear")
    save_model(SVC().fit(X, Y), place / "kernel.model", format="libsvm")
    return place


@pytest.fixture
def said(folder, capsys):
    def called(model, *options, code=2):
        with pytest.raises(SystemExit) as ended:
            main(["certify", str(folder / model), str(folder / "a.svm"), *options])
        out, err = capsys.readouterr()
        assert ended.value.code == code, out + err
        return " ".join((out + err).split())

    return called


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("own.mm", ("--epsilon", "0.1"), "--epsilon is for regressors"),
        ("own.mm", ("--nu", "0.1"), "--nu is for models that were trained with one"),
        ("own.mm", ("--class-weight", "balanced"), "--class-weight"),
        ("own.mm", ("-C", "1"), "-C"),
        ("own.mm", ("--tol", "2"), "--tol must be above 0 and below 1. Got 2 instead."),
        ("nu.mm", ("--epsilon", "0.1"), "--epsilon"),
        ("theirs.model", ("-C", "-1"), "-C must be a number above 0. Got -1 instead."),
    ],
)
def test_what_is_refused(said, model, options, words):
    assert words in said(model, *options)


def test_the_weights_of_a_file_that_does_not_say_them(said):
    given = ("-C", "1", "--tol", "1e-3")
    assert "Within --tol" in said("theirs.model", *given, "--class-weight", "0:1,1:3", code=0)
    assert "Within --tol" not in said("theirs.model", *given, code=1)


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (b"PK\x03\x04...", ".npz"),
        (b"PAR1....", ".parquet"),
        (b"maxmargin data 1", ".mmd"),
        (b"1 2:3\n", ".svm"),
        (b"", ".svm"),
        (b"a\tb\n1\t2\n", ".tsv"),
        (b"a,b\n1,2\n", ".csv"),
    ],
)
def test_the_format_of_standard_input(tmp_path, content, suffix):
    (tmp_path / "data").write_bytes(content)
    assert standard_input._suffix(str(tmp_path / "data")) == suffix


def test_standard_input_is_kept_under_its_name(tmp_path, monkeypatch):
    source = tmp_path / "given"
    source.write_bytes(b"1 1:1\n")
    with source.open() as opened:
        monkeypatch.setattr("sys.stdin", opened)
        kept = standard_input.kept(Path("-"), None)
    assert os.fspath(kept).endswith(".svm")
    assert kept.read_bytes() == b"1 1:1\n"
    assert str(kept) == kept.name == "standard input"
    assert standard_input.in_its_name(f"{os.fspath(kept)}, line 1") == "standard input, line 1"
    assert standard_input.kept(source, None) is source
