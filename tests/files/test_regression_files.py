# SPDX-License-Identifier: BSD-3-Clause
"""Model files of regressors: what they keep, what they refuse, and what ``certify`` makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, SVR, LinearSVC, LinearSVR
from maxmargin.files import ModelError, load_model
from maxmargin.files.models.fitted import from_estimator
from maxmargin.proof.of_files import judge_alone, judge_proof, regression_part

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(60, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 4.0 + 0.3 * RANDOM.normal(size=60)
REGRESSORS = [
    LinearSVR(C=0.5, epsilon=0.1),
    LinearSVR(C=0.5, loss="squared_epsilon_insensitive", regularize_intercept=True, intercept_scaling=2.0),
    LinearSVR(C=0.5, epsilon=0.1, fit_intercept=False),
    SVR(C=2.0, epsilon=0.2),
    SVR(C=2.0, epsilon=0.2, kernel="linear"),
]


@pytest.fixture(params=REGRESSORS, ids=repr)
def fitted(request):
    return request.param.fit(X, Y)


def rows_of(model):
    return getattr(model, "support", None)


def test_a_file_keeps_the_model_and_its_proof(fitted, tmp_path):
    path = tmp_path / "model.mm"
    fitted.save(path, data=(X, Y))
    loaded, saved = type(fitted).load(path), load_model(path)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_allclose(saved.predict(X), fitted.predict(X), rtol=1e-13)
    assert saved.is_regression
    assert saved.rows == len(Y)
    assert str(loaded.certificate_) == str(fitted.certificate_)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.status_ is fitted.status_
    assert [*loaded.trace_] == [*fitted.trace_]
    for ours, theirs in zip(loaded.prediction_bounds(X), fitted.prediction_bounds(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    again = tmp_path / "again.mm"
    loaded.save(again, data=(X, Y))
    assert again.read_bytes() == path.read_bytes()
    warm = loaded.set_params(warm_start=True).fit(X, Y)
    assert warm.certificate_.relative_gap <= warm.tol


def test_sparse_support_vectors_and_given_matrices_are_kept(tmp_path):
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    model = SVR(C=2.0).fit(rows, Y)
    model.save(tmp_path / "sparse.mm")
    np.testing.assert_array_equal(SVR.load(tmp_path / "sparse.mm").predict(rows), model.predict(rows))
    K = X @ X.T
    given = SVR(C=2.0, kernel="precomputed").fit(K, Y)
    given.save(tmp_path / "given.mm")
    np.testing.assert_array_equal(SVR.load(tmp_path / "given.mm").predict(K), given.predict(K))


def test_the_referee_finds_what_the_file_claims(fitted):
    saved = from_estimator(fitted)
    part = regression_part(saved, X, Y, C=saved.problem["C"], rows=rows_of(saved))
    finding = judge_proof(part, saved.tol)
    assert finding.reasons == []
    assert finding.relative_gap <= saved.tol
    other = regression_part(saved, X, Y + 0.1, C=saved.problem["C"], rows=rows_of(saved))
    assert judge_proof(other, saved.tol).reasons
    lying = replace(saved, claims=[replace(saved.claims[0], primal=0.9 * saved.claims[0].primal)])
    lied = regression_part(lying, X, Y, C=saved.problem["C"], rows=rows_of(saved))
    assert any("above the claimed" in reason for reason in judge_proof(lied, None).reasons)


def test_a_file_without_proof_is_measured(fitted):
    saved = replace(from_estimator(fitted), certificates=None, traces=None)
    part = regression_part(saved, X, Y, C=saved.problem["C"], rows=rows_of(saved))
    assert judge_alone(part, 1e-2, 10.0, None).reasons == []


def test_every_class_loads_its_own_files(tmp_path):
    path = tmp_path / "model.mm"
    LinearSVR().fit(X, Y).save(path)
    with pytest.raises(ModelError, match=r"model of regression. Load it with LinearSVR\.load"):
        LinearSVC.load(path)
    with pytest.raises(ModelError, match=r"without support vectors. Load it with LinearSVR\.load"):
        SVR.load(path)
    SVR().fit(X, Y).save(path)
    with pytest.raises(ModelError, match=r"with a kernel. Load it with SVR\.load"):
        LinearSVR.load(path)
    SVC().fit(X, Y > 4.0).save(path)
    with pytest.raises(ModelError, match=r"model of classification. Load it with LinearSVC\.load or SVC"):
        SVR.load(path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"classes": np.array([1.0, 2.0])}, "one problem and no classes"),
        ({"problem": {"epsilon": -1.0}}, "epsilon must be a finite number"),
        ({"problem": {"loss": "hinge"}}, "loss must be one of"),
        ({"problem": {"C": np.inf}}, "a finite C and no class_weight"),
        ({"rows": 59}, "a proof speaks of 120 to 120 rows"),
    ],
)
def test_an_unsound_model_is_refused(changes, sentence):
    saved = from_estimator(LinearSVR().fit(X, Y))
    if "problem" in changes:
        changes = {"problem": saved.problem | changes["problem"]}
    with pytest.raises(ModelError, match=sentence):
        replace(saved, **changes)
