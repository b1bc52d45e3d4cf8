# SPDX-License-Identifier: BSD-3-Clause
"""Reports on regressors, on classifiers with a nu, and on the region of one class."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import mean_absolute_error, r2_score

from maxmargin import SVR, LinearOneClassSVM, LinearSVR, NuSVC, NuSVR, OneClassSVM, RankSVM
from maxmargin.files.models.fitted import from_estimator
from maxmargin.report.numbers import Numbers
from well_formed import read
from written_files import write_libsvm

X, Y = make_moons(80, noise=0.3, random_state=0)
X = X + 2.0
VALUES = np.sin(2.0 * X[:, 0]) + 0.1 * X[:, 1]
MODELS = {
    "linear": (LinearSVR(epsilon=0.1), VALUES),
    "kernel": (SVR(), VALUES),
    "nu, numbers": (NuSVR(), VALUES),
    "nu, classes": (NuSVC(nu=0.4), Y),
    "region": (OneClassSVM(nu=0.2), None),
    "half-space": (LinearOneClassSVM(nu=0.2), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_member_has_its_page(name, tmp_path):
    model, y = MODELS[name]
    model.fit(X, y).report(tmp_path / "page.html", X, y, test=(X[:20], None if y is None else y[:20]))
    page = read((tmp_path / "page.html").read_text("utf-8"))
    words = " ".join(" ".join(page.text).split())
    assert "The proof holds" in words
    assert f"{model.certificate_.primal:.8g}" in words
    assert "script" not in page.tags
    if name in ("linear", "kernel", "nu, numbers"):
        assert f"{mean_absolute_error(y, model.predict(X)):.6g}" in words
        assert "within the tube" in words
    if y is None:
        assert f"{np.count_nonzero(model.predict(X) < 0)} of 80 rows are outside" in words
        assert "nu = 0.2" in words
    assert ("Accuracy" in words) == (name == "nu, classes")


def test_errors_are_those_of_scikit_learn():
    model = SVR().fit(X, VALUES)
    found = Numbers(from_estimator(model), X, VALUES)
    predicted = model.predict(X)
    assert found.mean_absolute_error == pytest.approx(mean_absolute_error(VALUES, predicted))
    assert found.explained == pytest.approx(r2_score(VALUES, predicted))
    assert Numbers(from_estimator(model), X, np.array(["a"] * 80)).errors is None
    assert Numbers(from_estimator(SVR().fit(X, np.ones(80))), X, np.ones(80)).explained is None


def test_the_command_reports_on_files(tmp_path, run, answer):
    for name, (model, y) in MODELS.items():
        data, path, out = tmp_path / "data.svm", tmp_path / "model.mm", tmp_path / "page.html"
        write_libsvm(data, X, np.zeros(80) if y is None else y)
        model.fit(X, y).save(path)
        code, said = answer("report", path, data, "-o", out)
        assert (code, said["holds"]) == (0, True), name
        json.dumps(said)
        out.unlink()
        code, words, _ = run("report", path, data, "-o", out)
        assert ("outside" in words) == (y is None)
    RankSVM().fit(X, VALUES).save(path)
    code, _, err = run("report", path, data, "-o", out)
    assert (code, "does not write about rankings" in err) == (2, True)
    with pytest.raises(ValueError, match="Got a ranking instead"):
        RankSVM().fit(X, VALUES).report(out, X, VALUES)
