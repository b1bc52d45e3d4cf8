# SPDX-License-Identifier: BSD-3-Clause
"""``train --task one-class`` and ``--nu``: from data files to models that ``certify`` finds to hold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, make_moons

from maxmargin import LinearOneClassSVM, NuSVC, NuSVR, OneClassSVM

X, Y = make_moons(80, noise=0.3, random_state=0)
X = X + 2.0
TASKS = {
    "half-space": (["--task", "one-class", "--nu", 0.2], LinearOneClassSVM),
    "region": (["--task", "one-class", "--nu", 0.2, "--kernel", "gaussian", "--gamma", 0.5], OneClassSVM),
    "classes": (["--nu", 0.4, "--kernel", "gaussian"], NuSVC),
    "numbers": (["--task", "regression", "--nu", 0.3, "--kernel", "gaussian", "-C", 2], NuSVR),
}


@pytest.fixture
def data(tmp_path):
    dump_svmlight_file(X, Y, str(tmp_path / "data.svm"), zero_based=False)
    return tmp_path / "data.svm"


@pytest.mark.parametrize("name", TASKS)
def test_train_certify_and_predict(name, data, tmp_path, run, answer):
    options, kind = TASKS[name]
    model = tmp_path / "model.mm"
    code, out, _ = run("train", data, "-o", model, *options, "--test", data)
    assert code == 0
    assert "No (w, b) can bring it below" in out
    assert ("rows are outside" in out) == ("one-class" in options)
    assert run("certify", model, data)[0] == 0
    assert run("certify", model, data, "--independent")[0] == 0
    loaded = kind.load(model)
    code, out, _ = run("predict", model, data)
    labels = np.array(out.split(), float)
    np.testing.assert_allclose(labels, loaded.predict(X), rtol=1e-9)
    code, said = answer("train", data, "-o", model, *options)
    assert (code, said["status"]) == (0, "certified")
    run("train", data, "-o", model, *options, "--no-proof")
    assert run("certify", model, data)[0] == 0


def test_a_table_needs_no_labels(tmp_path, run, answer):
    lines = ["a,b", *(f"{x!r},{z!r}" for x, z in X.tolist())]
    (tmp_path / "usual.csv").write_text("\n".join(lines) + "\n")
    model = tmp_path / "model.mm"
    given = ["train", tmp_path / "usual.csv", "-o", model, "--task", "one-class", "--scale", "max-abs"]
    code, said = answer(*given, "--nu", 0.1)
    assert (code, said["training"]["outside"] <= 8) == (0, True)
    code, out, err = run("certify", model, tmp_path / "usual.csv")
    assert (code, "fingerprint" in out + err) == (0, False)
    assert run("certify", model, tmp_path / "usual.csv", "--independent")[0] == 0
    assert run("predict", model, tmp_path / "usual.csv")[0] == 0


def test_labels_of_one_and_minus_one_are_compared(tmp_path, data, run, answer):
    signs = np.where(np.arange(80) < 70, 1, -1)
    rows = np.vstack([X[:70], X[:10] + 50.0])
    dump_svmlight_file(rows, signs, str(tmp_path / "test.svm"), zero_based=False)
    given = ["train", data, "-o", tmp_path / "m.mm", "--task", "one-class", "--kernel", "rbf", "--nu", 0.1]
    code, said = answer(*given, "--test", tmp_path / "test.svm")
    assert (code, said["test"]["accuracy"] > 0.8) == (0, True)
    code, out, err = run("predict", tmp_path / "m.mm", tmp_path / "test.svm")
    assert "Accuracy" in out + err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--nu", 0.3], "--nu needs a kernel for classification"),
        (["--nu", 0.3, "--kernel", "rbf", "-C", 1], "--nu stands in the place of C"),
        (["--nu", 0.3, "--task", "regression"], "--nu needs a kernel"),
        (["--nu", 0.3, "--task", "regression", "--kernel", "rbf", "--epsilon", 1], "place of epsilon"),
        (["--task", "one-class", "-C", 1], "-C is not for --task one-class"),
        (["--task", "one-class", "--loss", "hinge"], "--loss is not for --task one-class"),
        (["--nu", 0.3, "--task", "ranking"], "--nu is not for --task ranking"),
        (["--nu", 2, "--task", "one-class"], "--nu must be a number in the range (0, 1]"),
        (["--nu", 1, "--kernel", "rbf", "--class-weight", "balanced"], "--class-weight is not for --nu"),
    ],
)
def test_what_makes_no_sense_is_refused(data, tmp_path, run, options, sentence):
    code, _, err = run("train", data, "-o", tmp_path / "model.mm", *options)
    assert (code, sentence in err) == (2, True), err


def test_text_of_others(data, tmp_path, run):
    given = ["train", data, "-o", tmp_path / "m", "--task", "one-class", "--nu", 0.2]
    assert run(*given, "--model-format", "liblinear")[0] == 0
    assert (tmp_path / "m").read_text().startswith("solver_type ONECLASS_SVM\nnr_class 2\n")
    assert run("certify", tmp_path / "m", data, "--nu", 0.2)[0] == 0
    assert run("certify", tmp_path / "m", data, "--nu", 0.1)[0] == 1
    assert run(*given, "--model-format", "libsvm", "--kernel", "rbf")[0] == 0
    assert (tmp_path / "m").read_text().startswith("svm_type one_class\nkernel_type rbf\n")
    assert run("certify", tmp_path / "m", data, "--nu", 0.2)[0] == 0
