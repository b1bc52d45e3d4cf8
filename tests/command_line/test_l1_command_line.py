# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin`` with the l1 penalty, from training to both checkers, and LIBLINEAR's own models of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from combinations import every_pair
from maxmargin import LinearSVC
from written_files import parts_of, signed


@pytest.fixture(scope="module", params=["two classes", "three classes"])
def data(request, tmp_path_factory):
    load = load_breast_cancer if request.param == "two classes" else load_iris
    X, y = load(return_X_y=True)
    X = np.round(scale(X)[::4], 2)
    path = tmp_path_factory.mktemp("l1") / "data.svm"
    dump_svmlight_file(X, y[::4], str(path), zero_based=False)
    return path, X, y[::4]


@every_pair(loss=["squared_hinge", "logistic"], intercept=["none", "regularised", "exact"])
def test_train_predict_certify(run, data, tmp_path, loss, intercept):
    path, X, _ = data
    model = tmp_path / "model.mm"
    options = ["--penalty", "l1", "--loss", loss, "--intercept", intercept, "-C", 0.3]
    code, out, _ = run("train", path, "-o", model, *options)
    assert code == 0
    loaded = LinearSVC.load(model)
    used = np.count_nonzero(np.any(loaded.coef_ != 0.0, axis=0))
    assert f"Columns: {used} of {X.shape[1]} have a weight" in out
    assert "Sure" not in out
    for checker in ([], ["--independent"]):
        code, out, _ = run("certify", model, path, *checker)
        assert code == 0, out
    assert "l1 penalty" in run("info", model)[1]
    assert run("predict", model, path, "-o", tmp_path / "out")[0] == 0
    assert run("report", model, path, "-o", tmp_path / "report.html")[0] == 0
    again = run("train", path, "--resume", model, "--json")[1]
    assert json.loads(again)["columns_used"] == used
    assert LinearSVC.load(model).penalty == "l1"
    # More than was proven is found out by both.
    texts, described, arrays = parts_of(model)
    assert described["problem"]["penalty"] == "l1"
    arrays["alpha"] = 0.5 * arrays["alpha"]
    signed(model, texts, described, arrays)
    for checker in ([], ["--independent"]):
        assert run("certify", model, path, *checker)[0] == 1


@pytest.mark.parametrize("solver", [5, 6])
@pytest.mark.parametrize("bias", [-1, 2])
def test_models_of_liblinear_are_judged(run, data, tmp_path, solver, bias):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil")
    path, X, y = data
    model = tmp_path / "theirs"
    for tolerance, code in ((1e-7, 0), (10.0, 1)):
        theirs = liblinearutil.train(
            y, sparse.csr_matrix(X), f"-s {solver} -c 0.7 -B {bias} -e {tolerance} -q"
        )
        liblinearutil.save_model(str(model), theirs)
        found, out, _ = run("certify", model, path, "-C", 0.7, "--tol", 1e-3)
        assert found == code, out


def test_what_the_l1_penalty_does_not_go_with(run, data, tmp_path):
    path, _, _ = data
    for options, word in (
        (["--kernel", "gaussian"], "With a kernel --penalty must be l2"),
        (["--loss", "hinge"], "Unsupported set of arguments"),
        (["--task", "regression"], "--penalty is for --task classification"),
    ):
        code, _, err = run("train", path, "-o", tmp_path / "model.mm", "--penalty", "l1", *options)
        assert code == 2
        assert word in " ".join(err.split())
