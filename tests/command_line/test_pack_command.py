# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin pack``, and the other commands on what it writes."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest

from maxmargin.command_line import main
from maxmargin.files import pack, write_libsvm


class Answer(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys):
    def called(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        return Answer(ended.value.code, *capsys.readouterr())

    return called


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 4))
    y = np.where(X[:, 0] + generator.normal(size=300) > 0, 1, -1)
    for k in range(3):
        write_libsvm(tmp_path / f"{k}.svm", X[100 * k : 100 * k + 100], y[100 * k : 100 * k + 100])
    write_libsvm(tmp_path / "all.libsvm", X, y)
    return tmp_path


def test_a_model_of_packed_data_is_one_of_their_sources(folder, run):
    packed = run("pack", folder / "*.svm", folder / "all.mmd", "--json")
    assert packed.exit_code == 0, packed
    assert json.loads(packed.stdout)["rows"] == 300
    assert run("train", folder / "all.mmd", "-o", folder / "a.mm").exit_code == 0
    assert "Holds" in run("certify", folder / "a.mm", folder / "all.libsvm").stdout
    assert run("train", folder / "all.libsvm", "-o", folder / "b.mm").exit_code == 0
    assert "Holds" in run("certify", folder / "b.mm", folder / "all.mmd").stdout
    assert "rows      300" in run("info", folder / "all.mmd").stdout
    assert len(run("predict", folder / "a.mm", folder / "all.mmd").stdout.splitlines()) >= 300


def test_what_pack_says(folder, run):
    said = run("pack", folder / "0.svm", folder / "1.svm", folder / "two.mmd").stdout
    assert "200 sparse rows of 4 columns from 2 files" in said
    assert "must be called *.mmd" in run("pack", folder / "0.svm", folder / "1.svm").stderr
    assert "Got one name alone" in run("pack", folder / "two.mmd").stderr
    (folder / "bad.svm").write_text("1 1:1\n1 1:y\n")
    assert "bad.svm, line 2" in run("pack", folder / "bad.svm", folder / "bad.mmd").stderr


def test_weights_count_where_they_are_understood(folder, run):
    X = np.vstack([np.eye(4), -np.eye(4)])
    y = np.repeat([1, -1], 4)
    pack(lambda: [(X, y, np.arange(8.0))], folder / "w.mmd")
    trained = run("train", folder / "w.mmd", "-o", folder / "w.mm", "--json")
    assert trained.exit_code == 0, trained
    refused = run("choose", folder / "w.mmd", "-o", folder / "c.mm")
    assert refused.exit_code == 2
    assert "has weights" in refused.stderr
