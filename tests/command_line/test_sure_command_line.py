# SPDX-License-Identifier: BSD-3-Clause
"""``predict --sure``, and the share of sure rows that ``train`` tells."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from maxmargin import SVC, LinearSVC
from maxmargin.command_line import app
from written_files import write_libsvm

X, Y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("sure") / "data.svm"
    write_libsvm(path, X, Y)
    return path


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), standalone_mode=False)
    return result.return_value, result


@pytest.mark.parametrize("options", [[], ["--kernel", "gaussian"], ["--features", "monomials:2"]])
def test_labels_are_marked_as_the_estimator_says(data, tmp_path, options):
    model = tmp_path / "model.mm"
    code, trained = run("train", data, "-o", model, "--json", *options)
    assert code == 0
    kind = SVC if "--kernel" in options else LinearSVC
    expected = kind.load(model).is_sure(X)
    assert 0.1 < expected.mean() <= 1.0
    report = json.loads(trained.stdout)
    assert report["sure_share"] == pytest.approx(expected.mean())
    assert 0 < report["proven_idle_rows"] + report["proven_rows_at_cost"] <= 150
    code, said = run("predict", model, data, "--sure", "--json")
    said = json.loads(said.stdout)
    assert (code, said["sure"], said["sure_rows"]) == (0, expected.tolist(), expected.sum())
    assert len(said["labels"]) == 150


def test_marks_stand_between_labels_and_scores(data, tmp_path):
    model = tmp_path / "model.mm"
    _, trained = run("train", data, "-o", model)
    assert "of 150 training rows have the class that the best model gives them." in trained.stdout
    assert "\nSettled: at the optimum " in trained.stdout
    code, said = run("predict", model, data, "--sure", "--scores")
    assert code == 0
    lines = [line.split("\t") for line in said.stdout.splitlines()[:150]]
    assert {line[1] for line in lines} <= {"sure", "open"}
    np.testing.assert_allclose(
        [float(line[2]) for line in lines], LinearSVC.load(model).decision_function(X)[:, 0]
    )
    assert "Sure: " in said.stderr
    _, plain = run("predict", model, data)
    assert plain.stdout.splitlines()[:150] == [line[0] for line in lines]


def test_models_that_do_not_tell_are_refused(data, tmp_path):
    model = tmp_path / "model.txt"
    run("train", data, "-o", model, "--model-format", "liblinear")
    code, said = run("predict", model, data, "--sure")
    assert code == 2
    assert "does not say it" in said.stderr


def test_what_a_file_says_of_the_best_model_holds_in_another_order_of_sums(data, tmp_path):
    LinearSVC().fit(X, Y).save(tmp_path / "model.mm", data=(X, Y))
    code, result = run("certify", tmp_path / "model.mm", data)
    assert code == 0, result.stdout
