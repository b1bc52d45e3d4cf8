# SPDX-License-Identifier: BSD-3-Clause
"""What is true of every member of the family: each property of each of them, on small data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from maxmargin import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    RankSVM,
    Status,
)
from maxmargin.proof.model import each_of

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(60, 4)) + np.array([2.0, 1.0, 0.0, 0.5])
CLASSES = (X[:, 0] + 0.7 * RANDOM.normal(size=60) > 2.0).astype(int) + (X[:, 1] > 1.5)
NUMBERS = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * RANDOM.normal(size=60)
TWO = (CLASSES > 0).astype(int)
MEMBERS = {
    "LinearSVC": (LinearSVC(), CLASSES),
    "LinearSVC, hinge": (LinearSVC(loss="hinge"), TWO),
    "LinearSVC, l1": (LinearSVC(penalty="l1", C=0.5), CLASSES),
    "LinearSVC, crammer_singer": (LinearSVC(multi_class="crammer_singer"), CLASSES),
    "LogisticRegression": (LogisticRegression(), CLASSES),
    "LogisticRegression, l1": (LogisticRegression(penalty="l1"), TWO),
    "SVC": (SVC(gamma=0.3), CLASSES),
    "NuSVC": (NuSVC(nu=0.3, gamma=0.3), CLASSES),
    "LinearSVR": (LinearSVR(epsilon=0.1), NUMBERS),
    "SVR": (SVR(gamma=0.3), NUMBERS),
    "NuSVR": (NuSVR(gamma=0.3), NUMBERS),
    "OneClassSVM": (OneClassSVM(nu=0.3, gamma=0.3), None),
    "LinearOneClassSVM": (LinearOneClassSVM(nu=0.3), None),
    "RankSVM": (RankSVM(), np.digitize(NUMBERS, [0.0, 2.0])),
}


def fitted(name, rows=X, which=slice(None), *, weights=None, **options):
    model, y = MEMBERS[name]
    model = clone(model).set_params(**{"tol": 1e-8, **options})
    y = None if y is None else y[which]
    return model.fit(rows, y) if weights is None else model.fit(rows, y, sample_weight=weights)


def answers(model, rows=X):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


def proof_holds(model):
    proofs = list(each_of(model.certificate_))
    return all(p.dual <= p.primal for p in proofs) and all(np.isfinite(p.dual) for p in proofs)


def assert_close(one, other):
    """Two fits of one problem, each within a gap of 1e-8, answer nearly the same."""
    ours, theirs = answers(one), answers(other)
    np.testing.assert_allclose(ours, theirs, atol=2e-3 * max(1.0, float(np.abs(theirs).max())))


def no_value_is_below_the_dual_one(name, tmp_path):
    rough, fine = fitted(name, tol=1e-2), fitted(name)
    assert fine.status_ is Status.CERTIFIED
    if name == "NuSVC":  # in units of each fit's own rho
        return
    pairs = zip(each_of(rough.certificate_), each_of(fine.certificate_), strict=True)
    for at, best in pairs:
        assert at.dual <= best.primal
        assert best.dual <= at.primal


def a_weight_is_a_repetition(name, tmp_path):
    weights = RANDOM.integers(1, 3, size=len(X))
    which = np.repeat(np.arange(len(X)), weights)
    if name == "RankSVM":  # whose weights are those of pairs, not of repeated rows alone
        weights = np.full(len(X), 2)
        pair = fitted(name, weights=weights.astype(float), C=0.1)
        assert_close(pair, fitted(name, C=0.4))
        return
    assert_close(fitted(name, weights=weights.astype(float)), fitted(name, X[which], which))


def the_order_of_rows_does_not_matter(name, tmp_path):
    order = RANDOM.permutation(len(X))
    assert_close(fitted(name, X[order], order), fitted(name))


def sparse_is_dense(name, tmp_path):
    assert_close(fitted(name, sparse.csr_matrix(X)), fitted(name))


def a_time_limit_leaves_a_model_with_a_proof(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(name, max_time=0.0, tol=1e-13)
    assert model.status_ in (Status.TIME_SPENT, Status.CERTIFIED, Status.RULE_FIRED)
    assert proof_holds(model)
    assert np.isfinite(answers(model)).all()


def a_warm_start_goes_on(name, tmp_path):
    model = fitted(name, tol=1e-2, warm_start=True)
    y = MEMBERS[name][1]
    assert_close(model.set_params(tol=1e-8).fit(X, y), fitted(name))
    assert model.status_ is Status.CERTIFIED


def a_file_keeps_it(name, tmp_path):
    model = fitted(name, tol=1e-4)
    model.save(tmp_path / "model.mm")
    loaded = type(model).load(tmp_path / "model.mm")
    np.testing.assert_array_equal(answers(loaded), answers(model))
    assert str(loaded.certificate_) == str(model.certificate_)
    assert loaded.status_ is model.status_


PROPERTIES = [
    no_value_is_below_the_dual_one,
    a_weight_is_a_repetition,
    the_order_of_rows_does_not_matter,
    sparse_is_dense,
    a_time_limit_leaves_a_model_with_a_proof,
    a_warm_start_goes_on,
    a_file_keeps_it,
]


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("property_of", PROPERTIES, ids=lambda function: function.__name__)
def test_every_member_has_every_property(property_of, name, tmp_path):
    property_of(name, tmp_path)
