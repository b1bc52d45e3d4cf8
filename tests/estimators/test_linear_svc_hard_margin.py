# SPDX-License-Identifier: BSD-3-Clause
"""LinearSVC with C = inf: the largest margin, the class that has none, and what is kept in files."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from hard_margins import SQUARE, XOR, assert_proof, least_norm
from maxmargin import (
    HardMarginCertificate,
    InseparabilityProof,
    InseparableError,
    LinearSVC,
    Problem,
    Status,
    solve_hard_margin,
)
from maxmargin.core import Budget
from maxmargin.files import load_model, save_model
from maxmargin.proof.model import Certificates
from maxmargin.solving.ways import solve_each


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, "benign", "malignant")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_estimator(cancer, loss):
    X, y = cancer
    model = LinearSVC(C=np.inf, loss=loss, random_state=0).fit(X, y)
    proof = model.certificate_
    assert isinstance(proof, HardMarginCertificate)
    assert model.score(X, y) == 1.0
    assert proof.margin == pytest.approx(0.00139984, rel=1e-4)
    assert model.status_ is Status.CERTIFIED
    assert "soft margins" in model.solver_
    assert proof.margin == pytest.approx(1.0 / np.linalg.norm(model.coef_), rel=1e-12)
    signs = np.where(y == "malignant", 1.0, -1.0)
    assert (signs * model.decision_function(X)).min() == pytest.approx(1.0, rel=1e-9)
    again = model.set_params(warm_start=True).fit(X, y)
    assert again.certificate_.relative_gap <= 1e-4
    assert "maxmargin-certificate" in model._repr_html_inner()


def test_estimator_with_several_classes():
    random = np.random.default_rng(0)
    centres = np.array([[8.0, 0.0], [-4.0, 7.0], [-4.0, -7.0]])
    codes = np.arange(90) % 3
    X = centres[codes] + random.normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[codes]
    model = LinearSVC(C=np.inf).fit(X, y)
    assert isinstance(model.certificate_, Certificates)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.score(X, y) == 1.0
    for k, proof in enumerate(model.certificate_):
        signs = np.where(codes == k, 1.0, -1.0)
        assert (signs * model.decision_function(X)[:, k]).min() == pytest.approx(1.0, rel=1e-9)
        assert proof.margin == pytest.approx(1.0 / least_norm(X, signs, "exact"), rel=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_inseparable_class_is_named(threads):
    X, codes = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[codes]
    model = LinearSVC(C=np.inf, n_jobs=threads)
    with pytest.raises(InseparableError, match="Class versicolor against the rest") as caught:
        model.fit(X, y)
    proof = model.certificate_
    assert proof is caught.value.certificate
    assert_proof(proof, X, y, "versicolor")
    assert 1 <= len(proof.rows) <= 6
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_failed_fit_leaves_nothing_of_the_last_one():
    model = LinearSVC(C=np.inf).fit(SQUARE, [1, 1, 0, 0])
    with pytest.raises(InseparableError):
        model.fit(SQUARE, [1, 0, 0, 1])
    assert isinstance(model.certificate_, InseparabilityProof)
    assert model.certificate_.check(SQUARE, [1, 0, 0, 1]) < 1e-15
    with pytest.raises(NotFittedError):
        model.predict(SQUARE)
    assert model._repr_html_inner() is not None
    assert model.fit(SQUARE, [1, 1, 0, 0]).score(SQUARE, [1, 1, 0, 0]) == 1.0


def test_sample_weights_only_leave_rows_out():
    X, y = np.vstack([SQUARE, [5.0, 0.0]]), [1, 1, 0, 0, 0]
    model = LinearSVC(C=np.inf).fit(X, y, sample_weight=[1.0, 3.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-9)


def test_estimator_arguments():
    with pytest.raises(ValueError, match="logistic loss does not have"):
        LinearSVC(C=np.inf, loss="logistic").fit(SQUARE, [1, 1, 0, 0])
    for C in (-np.inf, np.nan, 0.0):
        with pytest.raises(ValueError, match="'C' parameter"):
            LinearSVC(C=C).fit(SQUARE, [1, 1, 0, 0])


def test_estimator_without_time(cancer):
    with pytest.warns(ConvergenceWarning, match="max_time ran out"):
        model = LinearSVC(C=np.inf, max_time=0.0).fit(*cancer)
    assert not model.certificate_.separated


def test_an_error_ends_the_classes_after_it():
    ended = []

    def solve_one(k, budget):
        if k == 1:
            raise InseparableError(proof)
        if k > 1:
            while not budget.spent:
                time.sleep(0.01)
        ended.append(k)

    with pytest.raises(InseparableError) as caught:
        solve_hard_margin(Problem.of(SQUARE, XOR))
    proof = caught.value.certificate
    with pytest.raises(InseparableError):
        solve_each(4, solve_one, 60.0, 4)
    assert sorted(ended) == [0, 2, 3]
    assert Budget(1.0, 1).stopped is False


@pytest.fixture(scope="module")
def fitted(cancer):
    return LinearSVC(C=np.inf, random_state=0).fit(*cancer)


def test_a_model_file_holds_it(fitted, cancer, tmp_path):
    X, y = cancer
    fitted.save(tmp_path / "model.mm", data=(X, y))
    back = LinearSVC.load(tmp_path / "model.mm")
    assert math.isinf(back.C)
    assert back.get_params() == fitted.get_params()
    assert isinstance(back.certificate_, HardMarginCertificate)
    assert str(back.certificate_) == str(fitted.certificate_)
    np.testing.assert_array_equal(back.certificate_.support, fitted.certificate_.support)
    np.testing.assert_array_equal(back.decision_function(X), fitted.decision_function(X))
    assert back.set_params(warm_start=True).fit(X, y).n_iter_ == 1  # nothing left to do
    save_model(load_model(tmp_path / "model.mm"), tmp_path / "again.mm")
    assert (tmp_path / "again.mm").read_bytes() == (tmp_path / "model.mm").read_bytes()


def test_a_model_that_does_not_separate_can_be_saved(cancer, tmp_path):
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(C=np.inf, max_iter=3).fit(*cancer)
    model.save(tmp_path / "model.mm")
    back = LinearSVC.load(tmp_path / "model.mm")
    assert back.certificate_.relative_gap == np.inf
    assert str(back.certificate_) == str(model.certificate_)
