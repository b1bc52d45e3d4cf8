# SPDX-License-Identifier: BSD-3-Clause
"""LogisticRegression is LinearSVC with the logistic loss, and knows probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.datasets import load_iris
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, LogisticRegression, files
from scikit_learn import assert_passes

IRIS = load_iris(return_X_y=True)


@parametrize_with_checks([LogisticRegression(), LogisticRegression(penalty="l1")])
def test_scikit_learn_checks(estimator, check):
    assert_passes(check, estimator)


def test_two_classes_have_the_probabilities_of_scikit_learn(breast_cancer):
    X, y = breast_cancer
    ours = LogisticRegression(C=0.3, class_weight="balanced", tol=1e-10).fit(X, y)
    theirs = linear_model.LogisticRegression(C=0.3, class_weight="balanced", tol=1e-10, max_iter=1000)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X))
    assert ours.certificate_.relative_gap <= 1e-10


def test_several_classes_have_those_of_one_against_the_rest():
    X, y = IRIS
    ours = LogisticRegression(tol=1e-10).fit(X, y)
    theirs = OneVsRestClassifier(linear_model.LogisticRegression(tol=1e-10, max_iter=1000)).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_it_is_the_linear_machine_of_the_logistic_loss():
    X, y = IRIS
    model = LogisticRegression(C=2.0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, LinearSVC(loss="logistic", C=2.0).fit(X, y).coef_)
    assert "loss" not in model.get_params()
    assert model.certificate_.relative_gap <= 1e-4


def test_hopeless_rows_have_finite_logarithms():
    model = LogisticRegression().fit(*IRIS)
    values = model.predict_log_proba(1e6 * IRIS[0][:3])
    assert np.isfinite(values).all()
    np.testing.assert_allclose(np.exp(values).sum(axis=1), 1.0)


def test_files_are_read_by_both_classes_where_the_loss_allows(tmp_path):
    X, y = IRIS
    path = tmp_path / "model.mm"
    model = LogisticRegression(C=2.0).fit(X, y)
    model.save(path, data=(X, y))
    np.testing.assert_array_equal(LogisticRegression.load(path).predict_proba(X), model.predict_proba(X))
    assert LinearSVC.load(path).get_params()["loss"] == "logistic"
    LinearSVC(loss="logistic").fit(X, y).save(path)
    assert LogisticRegression.load(path).C == 1.0
    LinearSVC(loss="logistic", regularize_intercept=True).fit(X, y).save(path, format="liblinear")
    assert LogisticRegression.load(path).predict_proba(X).shape == (150, 3)
    LinearSVC().fit(X, y).save(path)
    with pytest.raises(files.ModelError, match=r"LinearSVC\.load"):
        LogisticRegression.load(path)


def test_an_infinite_C_is_refused_with_the_parameter():
    with pytest.raises(ValueError, match=r"'C' parameter of LogisticRegression .* \(0, inf\)"):
        LogisticRegression(C=np.inf).fit(*IRIS)
