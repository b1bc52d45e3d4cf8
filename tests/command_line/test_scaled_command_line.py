# SPDX-License-Identifier: BSD-3-Clause
"""``--scale`` for files that are not tables: told, stored in the model, applied by all commands."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from maxmargin import LinearSVC, files
from maxmargin.files.models import preparation
from written_files import write_libsvm

SCALERS = {"max-abs": MaxAbsScaler(), "standard": StandardScaler()}
WORDS = {
    "max-abs": "columns scaled to at most 1 in size",
    "standard": "columns scaled to mean 0 and variance 1",
}
X, y = make_classification(300, 8, n_informative=6, random_state=0)
X = np.where(np.abs(X) > 0.3, X, 0.0) * 10.0 ** np.arange(-3, 5)


@pytest.fixture
def data(tmp_path):
    write_libsvm(tmp_path / "data.svm", X, y)
    return tmp_path / "data.svm"


@pytest.mark.parametrize("scale", SCALERS)
def test_it_is_a_part_of_the_model(scale, data, run, tmp_path):
    model = tmp_path / "model.mm"
    code, out, err = run("train", data, "-o", model, "--scale", scale)
    assert code == 0
    assert f"Before the model: {WORDS[scale]}; it is a part of the model." in out
    assert "orders of magnitude apart" not in err
    expected = make_pipeline(SCALERS[scale], LinearSVC(random_state=0)).fit(X, y)
    stored = files.load_model(model)
    np.testing.assert_array_equal(stored.predict(X), expected.predict(X))
    assert stored.fingerprint == files.fingerprint(sparse.csr_matrix(X), y.astype(float))
    code, out, _ = run("predict", model, data)
    assert [float(line) for line in out.split()] == expected.predict(X).tolist()
    code, out, _ = run("certify", model, data)
    assert code == 0
    assert "Holds" in out
    assert "fingerprint" not in out
    assert WORDS[scale] in run("info", model)[1]
    loaded = files.load_pipeline(model)
    assert type(loaded[0]) is type(SCALERS[scale])
    np.testing.assert_array_equal(loaded.predict(X), expected.predict(X))


def test_without_it_a_warning_names_the_option(data, run, tmp_path):
    _, out, err = run("train", data, "-o", tmp_path / "model.mm")
    assert "orders of magnitude apart" in err
    assert "--scale standard, or --scale max-abs where most values are zero" in " ".join(err.split())
    assert "Before the model" not in out
    assert files.load_model(tmp_path / "model.mm").preparation is None


def test_held_out_rows_other_kernels_features_and_going_on(data, run, answer, tmp_path):
    model = tmp_path / "model.mm"
    for options in (["--hold-out", "0.2"], ["--kernel", "rbf"], ["--features", "monomials:2"]):
        code, told = answer("train", data, "-o", model, "--scale", "max-abs", "--test", data, *options)
        assert code == 0
        assert told["before"] == ["max_abs_scaler"]
        assert told["test_accuracy"] == told["training_accuracy"]
        assert run("certify", model, data)[0] == 0
    code, _, _ = run(
        "train", data, "-o", model, "--scale", "standard", "--max-iter", "1", "--solver", "pegasos"
    )
    assert code == 3
    code, _, _ = run("train", data, "--resume", model, "--solver", "auto", "--max-iter", "-1")
    assert code == 0
    assert files.load_model(model).preparation.steps[0].name == "standard_scaler"
    assert run("certify", model, data)[0] == 0
    assert run("report", model, data, "-o", tmp_path / "report.html")[0] == 0


def test_choose_takes_it_too(data, run, tmp_path):
    for options in ([], ["--kernel", "gaussian", "--values", "2", "--gammas", "1"]):
        code, out, _ = run(
            *("choose", data, "-o", tmp_path / "model.mm", "--scale", "max-abs", "--folds", "2"),
            *("--low", "0.1", "--high", "10", *options),
        )
        assert code == 0
        assert "Before the model" in out
        assert run("certify", tmp_path / "model.mm", data)[0] == 0


def test_regression_has_it(data, run, tmp_path):
    model = tmp_path / "model.mm"
    for scale in SCALERS:
        assert run("train", data, "-o", model, "--task", "regression", "--scale", scale)[0] == 0
        assert run("certify", model, data)[0] == 0
        pipeline = files.load_pipeline(model)
        np.testing.assert_allclose(files.load_model(model).predict(X), pipeline.predict(X), rtol=1e-9)


def test_npz_has_it_as_well(run, tmp_path):
    np.savez(tmp_path / "data.npz", X=X, y=y)
    code, _, _ = run("train", tmp_path / "data.npz", "-o", tmp_path / "model.mm", "--scale", "standard")
    assert code == 0
    assert run("certify", tmp_path / "model.mm", tmp_path / "data.npz")[0] == 0


def test_what_will_not_do_is_refused_with_the_cure(data, run, tmp_path, monkeypatch):
    arguments = "train", data, "-o", tmp_path / "model.mm", "--scale"
    code, _, err = run(*arguments, "max-abs", "--model-format", "liblinear")
    assert code == 2
    assert "for columns that are scaled" in err
    code, _, err = run(*arguments, "wild")
    assert code == 2
    assert "--scale must be auto, standard, max-abs, none" in err
    monkeypatch.setattr(preparation, "MOST_DENSE", 100)
    code, _, err = run(*arguments, "standard")
    assert code == 2
    assert "--scale max-abs" in err
    assert run(*arguments, "max-abs")[0] == 0
