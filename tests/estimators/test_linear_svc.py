# SPDX-License-Identifier: BSD-3-Clause
"""The estimator: scikit-learn's contract, its numbers, and the proof on top."""

from __future__ import annotations

import logging
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
from combinations import every_pair
from maxmargin import LinearSVC, Problem, RowClass, Status
from maxmargin.proof.model import Certificates
from maxmargin.solvers import LINEAR_SOLVERS, DualCoordinateAscent, Pegasos
from scikit_learn import assert_passes


@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(loss="hinge", regularize_intercept=True),
        LinearSVC(penalty="l1"),
        LinearSVC(multi_class="crammer_singer"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    assert_passes(check, estimator)


def test_plain_arrays_are_read_as_scikit_learn_reads_them(breast_cancer):
    X, y = breast_cancer
    wide = np.concatenate([X, X], axis=1)
    same = LinearSVC().fit(X, y)
    for other in (wide[:, :30], np.asfortranarray(X), X.tolist(), X[:, ::1]):
        model = LinearSVC().fit(other, y)
        np.testing.assert_array_equal(model.coef_, same.coef_)
        assert model.n_features_in_ == 30
    assert not np.shares_memory(LinearSVC().fit(X, y).coef_, X)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, np.nan], [1.0, 2.0]], [0, 1], "Input X contains NaN"),
        ([[1.0, np.inf], [1.0, 2.0]], [0, 1], "Input X contains infinity"),
        ([[1.0], [2.0]], [0, 1, 1], "inconsistent numbers of samples"),
        ([1.0, 2.0], [0, 1], "Expected 2D array"),
        (np.empty((0, 2)), [], "0 sample"),
        (np.empty((2, 0)), [0, 1], "0 feature"),
        ([[1.0], [2.0]], [[0, 1], [1, 0]], "y should be a 1d array"),
    ],
)
def test_unsound_arrays_are_refused_in_scikit_learns_words(X, y, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(np.array(X), np.array(y))


def test_names_of_features_are_forgotten_with_plain_arrays(breast_cancer):
    pandas = pytest.importorskip("pandas")
    X, y = breast_cancer
    model = LinearSVC().fit(pandas.DataFrame(X).rename(columns=str), y)
    assert len(model.feature_names_in_) == 30
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_values_whose_squares_are_beyond_all_numbers_are_not_called_infinite():
    X, y = np.array([[1e160], [-1e160], [2e160]]), np.array([0, 1, 1])
    with pytest.raises(ValueError, match="no room for the squares"):
        LinearSVC(loss="hinge", solver="dual_coordinate_ascent", max_iter=2).fit(X, y)


def objective(X, y, w, b, C, loss, weights=1.0):
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    losses = slack if loss == "hinge" else slack**2
    return 0.5 * w @ w + C * np.sum(weights * losses)


@every_pair(
    shape=[(20, 3), (900, 200)],
    stored=[np.float32, np.float64, sparse.csr_array, sparse.csc_array],
    value=[np.nan, np.inf, -np.inf],
)
def test_values_that_are_not_finite_are_refused_as_in_scikit_learn(shape, stored, value):
    random = np.random.default_rng(0)
    X = random.normal(size=shape) * (random.random(shape) < 0.1)  # the larger one is copied without zeros
    X[-1, -1] = value
    y = np.arange(len(X)) % 2
    with pytest.raises(ValueError, match="Input X contains") as refusal:
        LinearSVC().fit(stored(X), y)
    with pytest.raises(ValueError, match="Input X contains") as expected:
        check_array(stored(X), accept_sparse=True, dtype=None, estimator=svm.LinearSVC(), input_name="X")
    assert str(refusal.value) == str(expected.value)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_regularised_intercept_is_scikit_learns_problem(breast_cancer, loss):
    X, y = breast_cancer
    options = dict(C=0.3, loss=loss, intercept_scaling=2.0, random_state=0)
    ours = LinearSVC(regularize_intercept=True, tol=1e-9, max_iter=100_000, **options).fit(X, y)
    theirs = svm.LinearSVC(tol=1e-10, max_iter=1_000_000, dual=True, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


def test_the_exact_intercept_is_that_of_svc(breast_cancer):
    X, y = breast_cancer
    ours = LinearSVC(C=0.3, loss="hinge", tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
    theirs = svm.SVC(C=0.3, kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


def test_no_intercept(breast_cancer):
    X, y = breast_cancer
    model = LinearSVC(fit_intercept=False).fit(X, y)
    assert model.intercept_ == [0.0]


def test_the_certificate_is_about_the_fitted_numbers(breast_cancer):
    X, y = breast_cancer
    model = LinearSVC(loss="hinge", C=2.0, random_state=0).fit(X, y)
    certificate = model.certificate_
    value = objective(X, 2.0 * y - 1.0, model.coef_[0], model.intercept_[0], 2.0, "hinge")
    assert certificate.primal == pytest.approx(value, rel=1e-12)
    assert certificate.dual <= certificate.primal
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
    assert certificate.relative_gap <= model.tol
    assert certificate.kkt_violation >= 0.0
    assert model.status_ is Status.CERTIFIED
    assert model.trace_[-1].relative_gap == certificate.relative_gap
    assert model.solver_.startswith("augmented_lagrangian: for 569 rows of 30 columns")
    assert f"{certificate.relative_gap:.2e}" in str(certificate)
    assert certificate.row_classes[certificate.support].min() >= RowClass.ON_MARGIN


def test_several_classes_have_a_certificate_each(digits):
    X, y = digits
    model = LinearSVC(C=0.1, random_state=0).fit(X, y)
    certificates = model.certificate_
    assert isinstance(certificates, Certificates)
    assert len(certificates) == 10 == len(model.trace_)
    assert certificates.worst.relative_gap == max(c.relative_gap for c in certificates)
    assert certificates.relative_gap == certificates.worst.relative_gap <= model.tol
    assert model.coef_.shape == (10, 64)
    for k, certificate in enumerate(certificates):
        value = objective(
            X, np.where(y == k, 1.0, -1.0), model.coef_[k], model.intercept_[k], 0.1, "squared_hinge"
        )
        assert certificate.primal == pytest.approx(value, rel=1e-12)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5, 2: 1.0}])
def test_class_weights_mean_what_scikit_learn_means(class_weight):
    X, y = make_classification(
        300, 8, n_informative=6, n_classes=3, weights=[0.6, 0.3], random_state=0, flip_y=0.1
    )
    options = dict(C=0.1, class_weight=class_weight, random_state=0)
    ours = LinearSVC(regularize_intercept=True, tol=1e-9, max_iter=100_000, **options).fit(X, y)
    theirs = svm.LinearSVC(tol=1e-10, max_iter=1_000_000, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_balanced_classes_count_weights_as_repetitions(breast_cancer):
    X, y = breast_cancer
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    options = dict(class_weight="balanced", tol=1e-7, C=0.1, max_iter=20_000, random_state=0)
    weighted = LinearSVC(**options).fit(X, y, sample_weight=weights)
    repeated = LinearSVC(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-7)


def test_an_unknown_class_weight_is_refused():
    with pytest.raises(ValueError, match="class_weight"):
        LinearSVC(class_weight="fair").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_a_weight_is_a_repetition(breast_cancer, loss):
    X, y = breast_cancer
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    solver = "subgradient" if loss == "logistic" else "auto"
    options = dict(loss=loss, tol=1e-7, C=0.1, max_iter=20_000, random_state=0, solver=solver)
    weighted = LinearSVC(**options).fit(X, y, sample_weight=weights)
    repeated = LinearSVC(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-7)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-3)


def test_the_number_of_threads_changes_nothing(digits):
    X, y = digits
    one = LinearSVC(n_jobs=1, random_state=3).fit(sparse.csr_matrix(X), y)
    two = LinearSVC(n_jobs=2, random_state=3).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("value_type", [np.float32, np.float64])
def test_sparse_data_of_every_type(digits, index_type, value_type):
    X, y = digits
    matrix = sparse.csr_matrix(X.astype(value_type))
    matrix.indices, matrix.indptr = matrix.indices.astype(index_type), matrix.indptr.astype(index_type)
    # The automatic choice, extrapolation and momentum count stored values: dense data have more of them.
    solver = DualCoordinateAscent(extrapolation=False, momentum=False)
    expected = LinearSVC(solver=solver, random_state=0).fit(X, y)
    model = LinearSVC(solver=solver, random_state=0).fit(matrix, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(model.predict(matrix), expected.predict(X))


def test_a_configured_solver_is_used(breast_cancer):
    X, y = breast_cancer
    solver = Pegasos(batch=8, average="suffix")
    model = LinearSVC(solver=solver, loss="hinge", tol=5e-2, random_state=0).fit(X, y)
    assert model.solver_.startswith("pegasos")
    assert model.status_ is Status.CERTIFIED


@pytest.mark.parametrize("solver", [name for name in LINEAR_SOLVERS if name != "perceptron"])
def test_every_solver_fits(breast_cancer, solver):
    X, y = breast_cancer
    l1 = LINEAR_SOLVERS[solver].takes_l1
    loss = "squared_hinge" if solver == "newton" or l1 else "hinge"
    model = LinearSVC("l1" if l1 else "l2", loss, solver=solver, tol=1e-2, max_iter=3000, random_state=0)
    model.fit(X.astype(np.float32), y)
    assert model.certificate_.relative_gap <= 1e-2
    assert model.score(X, y) > 0.97


def test_spent_budget_warns_with_the_gap_and_the_cure(breast_cancer):
    X, y = breast_cancer
    model = LinearSVC(loss="hinge", tol=1e-12, max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"relative gap is .*Raise max_iter"):
        model.fit(X, y)
    assert model.status_ is Status.STEPS_SPENT
    assert model.n_iter_ == 2
    assert 0 < model.certificate_.relative_gap < 1


def test_no_time_at_all_still_gives_a_certified_model(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = LinearSVC(max_time=0.0).fit(X, y)
    assert model.status_ is Status.TIME_SPENT
    assert all(np.isfinite(c.primal) and c.dual <= c.primal for c in model.certificate_)


def test_callback_sees_progress_and_can_stop(breast_cancer):
    X, y = breast_cancer
    seen = []

    def stop_at_the_first(progress):
        seen.append(progress)
        return True

    with pytest.warns(ConvergenceWarning, match="callback"):
        model = LinearSVC(loss="hinge", tol=1e-12, callback=stop_at_the_first).fit(X, y)
    assert len(seen) == 1
    assert seen[0].certificate.relative_gap == model.certificate_.relative_gap
    assert model.status_ is Status.STOPPED


def test_warm_start_goes_on(digits):
    X, y = digits
    model = LinearSVC(
        loss="hinge",
        solver="dual_coordinate_ascent",
        tol=1e-10,
        max_iter=20,
        warm_start=True,
        random_state=0,
    )
    gaps = []
    for _ in range(3):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        gaps.append(model.certificate_.relative_gap)
    assert gaps[2] < gaps[1] < gaps[0]
    # Other data: the multipliers do not fit, the coefficients do.
    with pytest.warns(ConvergenceWarning):
        model.fit(X[:1000], y[:1000])
    # Other classes: a fresh start.
    model.set_params(tol=1e-3, max_iter=2000).fit(X, y > 4)
    assert model.coef_.shape == (1, 64)


def test_verbose_logs_and_prints_nothing(breast_cancer, caplog, capsys):
    X, y = breast_cancer
    with caplog.at_level(logging.INFO, logger="maxmargin"):
        LinearSVC(loss="hinge", verbose=1, random_state=0).fit(X, y)
    assert any("relative gap" in record.getMessage() for record in caplog.records)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_pickle_keeps_the_proof_and_not_the_data(breast_cancer):
    X, y = breast_cancer
    model = LinearSVC(loss="hinge", random_state=0).fit(X, y)
    assert model.certificate_.problem is None
    again = pickle.loads(pickle.dumps(model))
    assert str(again.certificate_) == str(model.certificate_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()


def test_feature_names_and_labels_of_any_kind():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"long": [0.0, 1.0, 2.0, 3.0], "wide": [1.0, 0.0, 1.0, 0.0]})
    model = LinearSVC().fit(frame, ["no", "no", "yes", "yes"])
    assert list(model.feature_names_in_) == ["long", "wide"]
    assert list(model.predict(frame)) == ["no", "no", "yes", "yes"]


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("C", -1, r"The 'C' parameter of LinearSVC must be a float in the range \(0, inf\). Got -1 inst"),
        ("C", -np.inf, "Got -inf instead"),
        ("C", True, "Got True instead"),
        ("tol", np.nan, "relative gap"),
        ("loss", "epsilon", "'squared_hinge', 'hinge', 'logistic'"),
        ("penalty", "elasticnet", "zero"),
        ("multi_class", "ovo", "all classes in one problem"),
        ("solver", "newton_raphson", "'dual_coordinate_ascent'"),
        ("solver", 3, "or a Solver"),
        ("max_iter", 1.5, "max_iter"),
        ("max_time", -1, "max_time"),
        ("n_jobs", 0, "n_jobs"),
        ("callback", "print", "callable"),
        ("intercept_scaling", 0, "intercept_scaling"),
        ("dual", "yes", "dual"),
    ],
)
def test_wrong_parameters_are_named_with_the_cure(parameter, value, message):
    model = LinearSVC(**{parameter: value})
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], [0, 1])


def test_a_solver_that_does_not_take_the_loss_says_so():
    with pytest.raises(ValueError, match="pegasos solves the hinge, not squared_hinge"):
        LinearSVC(solver="pegasos").fit([[0.0], [1.0]], [0, 1])


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two different labels"):
        LinearSVC().fit([[0.0], [1.0]], [1, 1])


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_costs_end_with_a_valid_proof(C):
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        certificate = LinearSVC(C=C, loss="hinge", random_state=0).fit(X, y).certificate_
    assert np.isfinite(certificate.primal)
    assert certificate.dual <= certificate.primal


def test_features_over_twelve_orders_of_magnitude_end_with_a_valid_proof():
    X, y = make_classification(60, 4, n_informative=4, n_redundant=0, random_state=0)
    X = X * [1e-6, 1.0, 1e3, 1e6]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        certificate = LinearSVC(loss="hinge", random_state=0).fit(X, y).certificate_
    assert certificate.dual <= certificate.primal <= 60.0 * (1 + 1e-12)


def test_solve_and_the_estimator_agree(breast_cancer):
    X, y = breast_cancer
    problem = Problem.of(X, 2.0 * y - 1.0, 0.5, loss="hinge")
    model = maxmargin.solve(problem, DualCoordinateAscent(seed=1), tol=1e-7, max_steps=50_000)
    fitted = LinearSVC(C=0.5, loss="hinge", tol=1e-7, max_iter=50_000, random_state=0).fit(X, y)
    assert model.certificate.primal == pytest.approx(fitted.certificate_.primal, rel=2e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_fit_that_nobody_watches_takes_the_same_steps(loss, breast_cancer):
    """Small data: many steps in one call, or one by one for a callback; they are counted alike."""
    X, y = breast_cancer
    alone = LinearSVC(loss=loss, random_state=0).fit(X, y)
    watched = LinearSVC(loss=loss, random_state=0, callback=lambda progress: False).fit(X, y)
    assert alone.n_iter_ == watched.n_iter_ > 5
    np.testing.assert_allclose(alone.coef_, watched.coef_, rtol=1e-6)
    assert len(alone.trace_) <= len(watched.trace_)


def test_sparse_coefficients_predict_the_same_and_are_proven_still(tmp_path, breast_cancer):
    X, y = breast_cancer
    model = LinearSVC(random_state=0).fit(X, y)
    dense, scores, bounds = model.coef_, model.decision_function(X), model.decision_bounds(X)
    assert model.sparsify() is model
    assert sparse.issparse(model.coef_)
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-12)
    np.testing.assert_array_equal(model.decision_bounds(X)[0].shape, bounds[0].shape)
    model.save(tmp_path / "model.mm", data=(X, y))
    np.testing.assert_array_equal(LinearSVC.load(tmp_path / "model.mm").coef_, dense)
    np.testing.assert_array_equal(model.densify().coef_, dense)
