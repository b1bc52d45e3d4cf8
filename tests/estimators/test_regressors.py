# SPDX-License-Identifier: BSD-3-Clause
"""``LinearSVR`` and ``SVR``: what they answer, and what they prove of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVR, LinearSVR, Status
from maxmargin.kernels import Gaussian
from quadratic_program import solve_by_quadratic_program
from scikit_learn import assert_passes

X, Y = load_diabetes(return_X_y=True)
X, Y = scale(X)[:200], Y[:200]
LOSSES = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}
REGRESSORS = [LinearSVR(C=0.5, epsilon=3.0), SVR(C=5.0, epsilon=3.0)]


@parametrize_with_checks([LinearSVR(), SVR(), SVR(kernel="linear")])
def test_scikit_learn_has_nothing_to_say_against(estimator, check):
    assert_passes(check, estimator)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["none", "regularised", "exact"])
def test_a_linear_fit_is_within_tol_of_the_optimum(loss, form):
    model = LinearSVR(C=0.3, epsilon=2.0, loss=loss, tol=1e-6, fit_intercept=form != "none")
    model.set_params(regularize_intercept=form == "regularised", intercept_scaling=2.0).fit(X, Y)
    twice, signs = np.repeat(X, 2, axis=0), np.tile([1.0, -1.0], len(Y))
    targets = np.column_stack([Y - 2.0, -(Y + 2.0)]).ravel()
    stated = twice, signs, np.full(2 * len(Y), 0.3), LOSSES[loss], form, 2.0
    best = solve_by_quadratic_program(*stated, targets=targets)[2]
    proof = model.certificate_
    assert model.status_ is Status.CERTIFIED
    assert best * (1 - 1e-8) <= proof.primal <= best * (1 + 2e-6)
    assert proof.dual <= best * (1 + 1e-8)
    assert model.coef_.shape == (X.shape[1],)
    assert model.intercept_.shape == (1,)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)


@pytest.mark.parametrize(
    "options", [{}, {"kernel": "poly", "degree": 2}, {"kernel": "linear"}, {"gamma": 1.0}]
)
def test_a_kernel_fit_is_that_of_libsvm(options):
    ours = SVR(C=20.0, epsilon=4.0, tol=1e-8, **options).fit(X, Y)
    theirs = sklearn.svm.SVR(C=20.0, epsilon=4.0, tol=1e-9, **options).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=0.02)
    if options.get("kernel") != "linear":  # where w says more than multipliers, which it leaves open
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=0.05)
        assert ours.n_support_.tolist() == theirs.n_support_.tolist()
    else:
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.02)


def test_all_ways_to_give_a_kernel_are_one():
    model = SVR(C=20.0, gamma=0.1, tol=1e-6).fit(X, Y)
    K = Gaussian(0.1)(X)
    for other, rows in (
        (SVR(C=20.0, kernel="precomputed", tol=1e-6), K),
        (SVR(C=20.0, kernel=lambda A, B: Gaussian(0.1)(A, B), tol=1e-6), X),
        (SVR(C=20.0, kernel=Gaussian(0.1), tol=1e-6), sparse.csr_matrix(X)),
    ):
        other.fit(rows, Y)
        assert other.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-5)
        np.testing.assert_allclose(other.predict(rows), model.predict(X), atol=0.3)
    with pytest.raises(ValueError, match="must be a square matrix"):
        SVR(kernel="precomputed").fit(X, Y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVR(kernel="precomputed").fit(sparse.csr_matrix(K), Y)


def test_a_function_that_is_no_kernel_proves_nothing():
    with pytest.warns(UserWarning, match="is no proof"):
        model = SVR(kernel="sigmoid", gamma=3.0, coef0=-1.0, max_iter=3).fit(X, Y)
    assert not model.certificate_.proven
    assert model.fit_status_ == 1


@pytest.mark.parametrize("model", REGRESSORS, ids=repr)
def test_a_weight_is_a_repetition_and_sparse_is_dense(model):
    times = np.arange(len(Y)) % 3
    model = clone(model).set_params(tol=1e-7, **({"gamma": 0.1} if isinstance(model, SVR) else {}))
    fits = [
        clone(model).fit(X, Y, sample_weight=times),
        clone(model).fit(np.repeat(X, times, axis=0), np.repeat(Y, times)),
        clone(model).fit(sparse.csr_matrix(X), Y, sample_weight=times),
    ]
    for other in fits[1:]:
        assert other.certificate_.primal == pytest.approx(fits[0].certificate_.primal, rel=1e-6)
        np.testing.assert_allclose(other.predict(X), fits[0].predict(X), atol=0.2)


@pytest.mark.parametrize("model", REGRESSORS, ids=repr)
def test_the_bounds_hold_the_predictions_of_the_best_model(model):
    rough, best = clone(model).set_params(tol=0.05).fit(X, Y), clone(model).set_params(tol=1e-10).fit(X, Y)
    low, high = rough.prediction_bounds(X)
    truth = best.predict(X)
    assert (low <= truth).all()
    assert (truth <= high).all()
    assert np.isfinite(high - low).all()
    near = best.prediction_bounds(X)
    assert (near[1] - near[0]).max() <= (high - low).max()


@pytest.mark.parametrize("model", REGRESSORS, ids=repr)
def test_a_fit_says_how_it_ended(model):
    fitted = clone(model).fit(X, Y)
    assert "examples are support vectors" in str(fitted.certificate_)
    assert fitted.trace_[-1].relative_gap == fitted.certificate_.relative_gap <= fitted.tol
    assert fitted.solver_
    assert "primal value" in fitted._repr_html_inner()
    again = clone(model).set_params(warm_start=True).fit(X, Y).fit(X, Y)
    assert again.certificate_.relative_gap <= again.tol
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        short = clone(model).set_params(max_iter=0, tol=1e-12, solver="auto").fit(X, Y)
    assert not short.status_.certified
    assert short.certificate_.dual <= fitted.certificate_.primal


@pytest.mark.parametrize("model", REGRESSORS, ids=repr)
def test_a_callback_is_told_and_may_stop(model):
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clone(model).set_params(callback=lambda progress: seen.append(progress) or True, tol=1e-12).fit(
            X, Y
        )
    assert seen
    assert seen[0].label is None


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (LinearSVR(epsilon=-1.0), "The 'epsilon' parameter of LinearSVR must be a float in the range"),
        (LinearSVR(loss="huber"), "The 'loss' parameter of LinearSVR"),
        (SVR(C=0.0), "The 'C' parameter of SVR"),
        (SVR(kernel="cosine"), "The 'kernel' parameter of SVR"),
        (LinearSVR(solver="pegasos"), "where every target is 1"),
        (SVR(solver="newton"), "takes no kernel"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused(model, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, Y)


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("factor", [1e-5, 1.0, 1e5])
def test_the_unit_of_y_does_not_matter(factor, shift):
    values = factor * (Y + shift)
    for loss, C in (("epsilon_insensitive", factor), ("squared_epsilon_insensitive", 1.0)):
        model = LinearSVR(C=0.5 * C, epsilon=3.0 * factor, loss=loss).fit(X, values)
        assert model.status_ is Status.CERTIFIED
    assert SVR(C=20.0 * factor, epsilon=3.0 * factor).fit(X, values).status_ is Status.CERTIFIED


@pytest.mark.parametrize("kind", [LinearSVR, SVR])
def test_numbers_are_needed(kind):
    with pytest.raises(ValueError, match="requires y"):
        kind().fit(np.eye(3), None)


def test_values_that_are_all_0_end_a_fit_without_a_tube():
    """The best objective is 0, of which no gap is a share: there is nothing to go on for."""
    X = sparse.csr_matrix((6, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVR(C=1e-4, epsilon=0.0, gamma=1.0, max_time=10).fit(X, np.zeros(6))
    assert model.status_ is Status.RULE_FIRED  # and not the limit on time
    assert model.certificate_.dual == 0.0 <= model.certificate_.primal < 1e-300
    assert not model.predict(X).any()
