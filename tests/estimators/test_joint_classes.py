# SPDX-License-Identifier: BSD-3-Clause
"""LinearSVC(multi_class="crammer_singer"): against scikit-learn, its proof, and its files."""

from __future__ import annotations

import signal
import threading
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from maxmargin import LinearSVC, LinearSVCCV
from maxmargin.files import load_model
from tests.combinations import every_pair

IRIS = load_iris(return_X_y=True)
DIGITS = load_digits(return_X_y=True)


def joint(**parameters):
    return LinearSVC(multi_class="crammer_singer", random_state=0, **parameters)


@every_pair(
    classes=[2, 3],
    fit_intercept=[True, False],
    intercept_scaling=[1.0, 4.0],
    class_weight=[None, "balanced", {0: 3.0, 1: 0.5}],
    weighted=[True, False],
    C=[0.1, 2.0],
)
def test_it_is_the_model_of_scikit_learn(
    classes, fit_intercept, intercept_scaling, class_weight, weighted, C
):
    X, y = IRIS
    X, y = scale(X)[y < classes], y[y < classes]
    options = {"C": C, "fit_intercept": fit_intercept, "intercept_scaling": intercept_scaling}
    options |= {"class_weight": class_weight, "multi_class": "crammer_singer", "random_state": 0}
    weights = 0.5 + np.arange(len(y)) % 3 if weighted else None
    ours = LinearSVC(tol=1e-8, **options).fit(X, y, weights)
    theirs = svm.LinearSVC(tol=1e-7, max_iter=10**6, **options).fit(X, y, weights)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == (1 if classes == 2 else 3,)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(
        ours.intercept_, np.broadcast_to(theirs.intercept_, ours.intercept_.shape), atol=2e-3
    )
    # A row may lie where two scores are equal, and rounding decides.
    sure = ours.is_sure(X)
    assert sure.mean() > 0.98
    np.testing.assert_array_equal(ours.predict(X)[sure], theirs.predict(X)[sure])
    assert ours.certificate_.relative_gap <= 1e-8


def test_the_parameters_that_are_without_effect():
    X, y = IRIS
    one = joint().fit(X, y)
    for others in ({"loss": "hinge"}, {"regularize_intercept": True}, {"dual": True}):
        np.testing.assert_array_equal(joint(**others).fit(X, y).coef_, one.coef_)
    assert one._stated_problem["intercept"] == "regularised"
    assert "crammer_singer" in one.solver_


def test_sparse_and_float32_data_give_the_same_answer():
    X, y = DIGITS
    X = X / 16.0
    proofs = [
        joint(tol=1e-4).fit(data, y).certificate_
        for data in (X, sparse.csr_matrix(X), X.astype(np.float32), np.asfortranarray(X))
    ]
    for proof in proofs:
        assert proof.relative_gap <= 1e-4
        assert proof.dual <= proofs[0].primal
        assert proofs[0].dual <= proof.primal


def test_sure_rows_are_those_of_the_best_model():
    X, y = DIGITS
    X = X[:600] / 16.0
    y = y[:600]
    rough, best = joint(tol=1e-4).fit(X, y), joint(tol=1e-6).fit(X, y)
    low, high = rough.decision_bounds(X)
    scores = best.decision_function(X)
    assert ((low <= scores) & (scores <= high)).all()
    sure = rough.is_sure(X)
    assert sure.any()
    np.testing.assert_array_equal(rough.predict(X)[sure], best.predict(X)[sure])
    assert best.is_sure(X).sum() > sure.sum()
    two = joint(tol=1e-3).fit(X[y < 2], y[y < 2])
    exact = joint(tol=1e-9).fit(X[y < 2], y[y < 2])
    low, high = two.decision_bounds(X)
    assert ((low <= exact.decision_function(X)) & (exact.decision_function(X) <= high)).all()
    two.coef_ = two.coef_ + 1.0
    with pytest.raises(ValueError, match="they were changed since"):
        two.decision_bounds(X)


@every_pair(classes=[2, 3], fit_intercept=[True, False], intercept_scaling=[1.0, 3.7], proof=[True, False])
def test_files(tmp_path, classes, fit_intercept, intercept_scaling, proof):
    X, y = IRIS
    X, y = X[y < classes], y[y < classes]
    model = joint(fit_intercept=fit_intercept, intercept_scaling=intercept_scaling).fit(X, y)
    model.save(tmp_path / "model.mm", data=(X, y), proof=proof)
    again = LinearSVC.load(tmp_path / "model.mm")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    np.testing.assert_array_equal(again.is_sure(X) if proof else model.is_sure(X), model.is_sure(X))
    np.testing.assert_array_equal(load_model(tmp_path / "model.mm").predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    if proof:
        assert str(again.certificate_) == str(model.certificate_)
        assert again.set_params(warm_start=True).fit(X, y).n_iter_ <= max(2, model.n_iter_)
    model.save(tmp_path / "model.txt", format="liblinear")
    text = LinearSVC.load(tmp_path / "model.txt")
    assert text.multi_class == "crammer_singer"
    np.testing.assert_allclose(text.coef_, model.coef_, rtol=1e-15)
    np.testing.assert_array_equal(text.predict(X), model.predict(X))


def test_the_command_line(run, tmp_path):
    X, y = IRIS
    lines = [
        " ".join([str(label), *(f"{j + 1}:{x}" for j, x in enumerate(row))])
        for row, label in zip(X, y, strict=True)
    ]
    (tmp_path / "data.svm").write_text("\n".join(lines) + "\n")
    model, data = tmp_path / "model.mm", tmp_path / "data.svm"
    code, out, _ = run("train", data, "-o", model, "--multi-class", "crammer-singer")
    assert code == 0
    assert "crammer_singer" in out
    code, out, _ = run("certify", model, data)
    assert code == 0
    assert "all classes in one problem" in out
    assert run("certify", model, data, "--independent")[0] == 0
    liblinear = tmp_path / "model.txt"
    run("train", data, "-o", liblinear, "--multi-class", "crammer-singer", "--model-format", "liblinear")
    assert run("certify", liblinear, data, "-C", "1")[0] == 0
    for wrong in (["--kernel", "gaussian"], ["--intercept", "exact"], ["--loss", "logistic"]):
        code, _, err = run("train", data, "-o", model, "--multi-class", "crammer-singer", *wrong)
        assert code == 2
        assert "--multi-class crammer-singer is for linear models" in err
    assert "must be ovr or crammer-singer" in run("train", data, "-o", model, "--multi-class", "ovo")[2]


def test_a_changed_model_is_not_saved_with_its_proof(tmp_path):
    model = joint().fit(*IRIS)
    model.coef_ = 2.0 * model.coef_
    with pytest.raises(ValueError, match="must be those that the fit proved"):
        model.save(tmp_path / "model.mm")


def test_budgets_callbacks_and_warm_starts():
    X, y = DIGITS
    X = X / 16.0
    seen = []
    with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
        joint(tol=1e-9, callback=lambda progress: seen.append(progress) or len(seen) > 2).fit(X, y)
    assert seen[0].label is None
    with pytest.warns(ConvergenceWarning, match="max_time ran out"):
        model = joint(tol=1e-12, max_time=0.1, warm_start=True).fit(X, y)
    before = model.certificate_.dual
    with pytest.warns(ConvergenceWarning, match="3 steps"):
        model.set_params(max_time=None, max_iter=3).fit(X, y)
    assert model.certificate_.dual >= before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(max_iter=-1, tol=1e-2).fit(X, y)
    assert model.set_params(fit_intercept=False).fit(X, y).certificate_.relative_gap <= 1e-2


def test_an_interrupt_keeps_the_best_model_so_far():
    X, y = DIGITS
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = joint(tol=0.0, C=10.0).fit(X / 16.0, y)
    assert model.certificate_.dual > 0.0
    assert model.certificate_.primal < np.inf


def test_what_is_refused():
    X, y = IRIS
    with pytest.raises(ValueError, match="C must be finite"):
        joint(C=np.inf).fit(X, y)
    with pytest.raises(ValueError, match="newton does not take all classes"):
        joint(solver="newton").fit(X, y)
    with pytest.raises(ValueError, match="Rows left out of a fit"):
        joint().fit(X, y).leave_one_out(X, y)
    with pytest.raises(ValueError, match="that of LinearSVC alone"):
        LinearSVCCV(multi_class="crammer_singer").fit(X, y)
