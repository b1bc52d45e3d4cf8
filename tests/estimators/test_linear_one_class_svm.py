# SPDX-License-Identifier: BSD-3-Clause
"""``LinearOneClassSVM``: what it answers, what it proves of it, and what becomes of its files."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from liblinear import liblinearutil
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import SGDOneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import DoubtfulModelWarning, LinearOneClassSVM, OneClassSVM, Status, files
from maxmargin.files import ModelError, load_model
from oracles import shares as oracle
from peer_programs import as_rows, liblinear_values
from scikit_learn import assert_passes

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 4)) + np.array([1.0, 2.0, 0.0, -1.0])
FINE = {"nu": 0.3, "tol": 1e-9}


@parametrize_with_checks([LinearOneClassSVM(), LinearOneClassSVM(nu=0.1)])
def test_scikit_learn_has_nothing_to_say_against(estimator, check):
    assert_passes(check, estimator)


@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_fit_is_that_of_the_linear_kernel(nu, scale):
    tol = 1e-9 if scale == 1.0 else 1e-7  # rounding is a larger part of both values where rows are short
    ours, other = LinearOneClassSVM(nu=nu, tol=tol), OneClassSVM(nu=nu, tol=tol, kernel="linear")
    ours.fit(scale * X)
    other.fit(scale * X)
    assert ours.status_ is Status.CERTIFIED
    assert ours.certificate_.primal == pytest.approx(other.certificate_.primal, rel=10 * tol)
    size = np.abs(other.coef_).max()
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-4 * size)
    assert (ours.predict(scale * X) == -1).mean() <= nu


def test_the_gap_bounds_the_truth():
    ones, zeros = np.ones(len(X)), np.zeros(len(X))
    value = oracle.best(X, ones, ones, zeros, 0.2 * len(X), with_b=False)[-1]
    for tol in (1e-2, 1e-4, 1e-8):
        proof = LinearOneClassSVM(nu=0.2, tol=tol).fit(X).certificate_
        assert proof.dual <= value + 1e-6 * abs(value)
        assert value <= proof.primal + 1e-6 * abs(value)
        assert proof.relative_gap <= tol


def test_weights_are_repetition_order_does_not_matter_and_sparse_is_dense():
    weights = RANDOM.integers(0, 4, size=len(X)).astype(float)
    which = np.repeat(np.arange(len(X)), weights.astype(int))
    order = RANDOM.permutation(len(X))
    usual = LinearOneClassSVM(**FINE).fit(X)
    for one, other in (
        (LinearOneClassSVM(**FINE).fit(X, sample_weight=weights), LinearOneClassSVM(**FINE).fit(X[which])),
        (LinearOneClassSVM(**FINE).fit(X[order]), usual),
        (LinearOneClassSVM(**FINE).fit(sparse.csr_matrix(X)), usual),
        (LinearOneClassSVM(**FINE).fit(X.astype(np.float32)), usual),
    ):
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=2e-3)


def test_bounds_hold_the_best_scores():
    rough, fine = LinearOneClassSVM(nu=0.3, tol=1e-2).fit(X), LinearOneClassSVM(**FINE).fit(X)
    low, high = rough.decision_bounds(X)
    best = fine.decision_function(X)
    assert (low <= best + 1e-6).all()
    assert (best <= high + 1e-6).all()
    sure = fine.is_sure(X)
    assert sure.mean() > 0.5
    assert np.array_equal(fine.predict(X)[sure], fine.predict(X)[sure])


def test_budgets_end_a_fit_and_a_warm_start_goes_on():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        none = LinearOneClassSVM(max_time=0.0, tol=1e-12).fit(X)
        few = LinearOneClassSVM(max_iter=2, tol=1e-12).fit(X)
        stopped = LinearOneClassSVM(tol=1e-12, callback=lambda progress: True).fit(X)
    assert none.status_ is Status.TIME_SPENT
    assert few.status_ is Status.STEPS_SPENT
    assert stopped.status_ in (Status.STOPPED, Status.CERTIFIED)
    for model in (none, few, stopped):
        assert model.certificate_.dual <= model.certificate_.primal
    model = LinearOneClassSVM(**FINE, warm_start=True).fit(X)
    first = model.n_iter_
    assert model.fit(X).n_iter_ < first
    assert model.certificate_.relative_gap <= 1e-9


def test_a_mean_at_the_origin_is_told():
    with pytest.warns(DoubtfulModelWarning, match="some mean of the rows is the origin"):
        LinearOneClassSVM(nu=0.9).fit(X - X.mean(axis=0))


@pytest.mark.parametrize("rows", [X, sparse.csr_matrix(np.where(X > 0.5, X, 0.0))])
def test_files_keep_the_model_and_its_proof(rows, tmp_path, run):
    model = LinearOneClassSVM(nu=0.2).fit(rows)
    path, data = tmp_path / "model.mm", tmp_path / "data.svm"
    dump_svmlight_file(rows, np.zeros(rows.shape[0]), str(data), zero_based=False)
    model.save(path, data=(rows, None))
    loaded = LinearOneClassSVM.load(path)
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    np.testing.assert_array_equal(loaded.decision_bounds(rows), model.decision_bounds(rows))
    np.testing.assert_array_equal(load_model(path).predict(rows), model.predict(rows))
    assert str(loaded.certificate_) == str(model.certificate_)
    for more in ((), ("--independent",)):
        code, out, _ = run("certify", path, data, *more)
        assert (code, "Holds" in out) == (0, True)
    model.save(tmp_path / "small.mm", proof=False)
    assert run("certify", tmp_path / "small.mm", data)[0] == 0
    with pytest.raises(ModelError, match=r"Load it with LinearOneClassSVM\.load"):
        OneClassSVM.load(path)
    skops = pytest.importorskip("skops.io")
    for again in (
        pickle.loads(pickle.dumps(model)),
        skops.loads(skops.dumps(model), trusted=files.skops_types()),
    ):
        np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))


def test_liblinear_writes_and_we_read_and_the_other_way_round(tmp_path, run):
    data, path = tmp_path / "data.svm", tmp_path / "their.model"
    dump_svmlight_file(X, np.ones(len(X)), str(data), zero_based=False)
    theirs = liblinearutil.train(np.ones(len(X)), as_rows(X), "-s 21 -n 0.2 -e 1e-6 -q")
    liblinearutil.save_model(str(path), theirs)
    labels, _ = liblinear_values(theirs, X)
    assert (load_model(path).predict(X) == labels).mean() > 0.95
    code, out, _ = run("certify", path, data, "--nu", 0.2, "--tol", 1e-3)
    assert (code, "Within --tol" in out) == (0, True)
    assert run("certify", path, data, "--nu", 0.4)[0] == 1
    ours = LinearOneClassSVM(nu=0.2, tol=1e-9).fit(X)
    ours.save(path, format="liblinear")
    clear = np.abs(ours.decision_function(X)) > 1e-6
    again, _ = liblinear_values(liblinearutil.load_model(str(path)), X)
    np.testing.assert_array_equal(again[clear], ours.predict(X)[clear])
    ours.save(path, format="libsvm")
    np.testing.assert_array_equal(load_model(path).predict(X)[clear], ours.predict(X)[clear])


def test_the_objective_is_that_of_stochastic_descent_and_lower():
    rows, nu = RANDOM.normal(size=(3000, 5)) + 1.0, 0.1
    ours = LinearOneClassSVM(nu=nu).fit(rows)
    theirs = SGDOneClassSVM(nu=nu, random_state=0, max_iter=50, tol=None).fit(rows)
    total = nu * len(rows)
    w, rho = total * theirs.coef_, total * float(theirs.offset_[0])
    losses = np.maximum(rho - rows @ w, 0.0).sum()
    value = 0.5 * float(np.square(w).sum()) - total * rho + losses
    best = ours.certificate_.primal
    assert best <= value
    assert value - best <= 0.2 * abs(best)
