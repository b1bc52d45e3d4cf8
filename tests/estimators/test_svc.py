# SPDX-License-Identifier: BSD-3-Clause
"""The kernel estimator: scikit-learn's contract, its numbers, and the proof on top."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise
from sklearn.preprocessing import minmax_scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from combinations import every_pair
from maxmargin import SVC, DoubtfulModelWarning, Problem, Solution, Status, certify, kernels
from maxmargin.estimators.named_kernels import find_kernel
from maxmargin.estimators.summary import fitted_summary
from maxmargin.files import load_model
from maxmargin.kernels import KernelRows, Linear, expansions
from maxmargin.kernels.expansions import Expansions
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Certificates, PairCertificates
from maxmargin.solvers import WorkingSet, sizes
from scikit_learn import assert_passes

TIGHT = 1e-9


@parametrize_with_checks(
    [SVC(), SVC(kernel="precomputed"), SVC(kernel="linear", multi_class="ovr", solver="working_set")]
)
def test_scikit_learn_checks(estimator, check):
    assert_passes(check, estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500] / 16.0, y[:500]


@pytest.fixture(params=["at once", "one by one"])
def small_or_not(request, monkeypatch):
    """Both ways a small fit can take: with the whole kernel matrix at hand, and without."""
    if request.param == "one by one":
        monkeypatch.setattr(sizes, "ALL_KERNEL_VALUES", 0)


def in_form(X, form):
    if form.startswith("sparse"):
        X = sparse.csr_matrix(X)
        if form.endswith("64"):
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.usefixtures("small_or_not")
@every_pair(
    options=[
        dict(kernel="linear"),
        dict(kernel="rbf"),
        dict(kernel="rbf", gamma="auto", C=10.0),
        dict(kernel="poly", degree=2, coef0=1.0, gamma=0.1),
    ],
    dtype=[np.float32, np.float64],
    form=["dense", "sparse 32", "sparse 64"],
)
def test_two_classes_are_those_of_scikit_learn(breast_cancer, options, dtype, form):
    X, y = breast_cancer
    dense = (X * (np.abs(X) > 0.5)).astype(dtype)
    X = in_form(dense, form)
    ours = SVC(tol=1e-7, **options).fit(X, y)
    theirs = svm.SVC(tol=1e-7, **options).fit(dense, y)
    assert ours.kernel_ == find_kernel(ours, X, np.ones(len(y)))
    expected = theirs.decision_function(dense)
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=2e-3 * np.abs(expected).max())
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(dense))
    assert ours.support_vectors_.dtype == dtype
    assert sparse.issparse(ours.support_vectors_) == sparse.issparse(ours.dual_coef_) == (form != "dense")
    assert abs(len(ours.support_) - len(theirs.support_)) <= 2
    if options["kernel"] == "linear":
        coef = ours.coef_.toarray() if form != "dense" else ours.coef_
        np.testing.assert_allclose(coef, theirs.coef_, atol=2e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("form", ["dense", "sparse 32"])
@pytest.mark.usefixtures("small_or_not")
def test_pairs_are_those_of_scikit_learn(digits, kernel, form):
    X, y = digits
    X = in_form(X, form)
    options = dict(kernel=kernel, C=2.0, decision_function_shape="ovo")
    ours = SVC(tol=TIGHT, **options).fit(X, y)
    theirs = svm.SVC(tol=1e-8, **options).fit(X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    dense = (lambda table: table.toarray()) if form != "dense" else np.asarray
    np.testing.assert_allclose(dense(ours.dual_coef_), dense(theirs.dual_coef_), atol=1e-4)
    for name in ("support_", "support_vectors_", "dual_coef_", "intercept_", "n_support_", "n_iter_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == theirs.fit_status_ == 0
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    if kernel == "linear":
        np.testing.assert_allclose(dense(ours.coef_), dense(theirs.coef_), atol=1e-4)
    else:
        assert not hasattr(ours, "coef_")
    scores = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), scores, atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for model in (ours, theirs):
        model.set_params(decision_function_shape="ovr")
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    for model in (ours, theirs):
        model.set_params(break_ties=True)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_votes_that_tie_are_broken_as_scikit_learn_does():
    random = np.random.default_rng(1)
    X, y = random.standard_normal((90, 2)), random.integers(0, 5, 90)
    queries = random.standard_normal((2000, 2))
    for options in (dict(), dict(break_ties=True)):
        ours = SVC(C=0.5, tol=1e-10, **options).fit(X, y).predict(queries)
        theirs = svm.SVC(C=0.5, tol=1e-10, **options).fit(X, y).predict(queries)
        assert np.mean(ours != theirs) <= 1e-3
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(X, y).predict(X)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5, 2: 1.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_mean_what_scikit_learn_means(class_weight, weighted):
    X, y = make_classification(
        300, 8, n_informative=6, n_classes=3, weights=[0.6, 0.3], random_state=0, flip_y=0.1
    )
    weights = np.random.default_rng(0).random(300) * 3.0 if weighted else None
    if weighted and class_weight == "balanced":
        pytest.skip("scikit-learn balances without regard to the weights of rows")
    options = dict(C=0.5, gamma=0.1, class_weight=class_weight, decision_function_shape="ovo")
    ours = SVC(tol=TIGHT, **options).fit(X, y, weights)
    theirs = svm.SVC(tol=1e-8, **options).fit(X, y, weights)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_weight_is_a_repetition(breast_cancer, kernel):
    X, y = breast_cancer
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    options = dict(kernel=kernel, tol=1e-8, class_weight="balanced")
    weighted = SVC(**options).fit(X, y, sample_weight=weights)
    repeated = SVC(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.kernel_.gamma == pytest.approx(repeated.kernel_.gamma, rel=1e-12)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-8)


@pytest.mark.parametrize("form", ["dense", "sparse 32"])
def test_gamma_is_that_of_scikit_learn(digits, form):
    X, y = digits
    X = in_form(X, form)
    for gamma in ("scale", "auto", 0.3):
        theirs = svm.SVC(gamma=gamma).fit(X, y)._gamma
        assert SVC(gamma=gamma).fit(X, y).kernel_.gamma == pytest.approx(theirs, rel=1e-12)
    constant = np.full((4, 2), 3.0)
    assert SVC().fit(constant, [0, 1, 0, 1]).kernel_.gamma == 1.0


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        ("laplacian", pairwise.laplacian_kernel),
        ("chi2", pairwise.chi2_kernel),
        (kernels.Linear() + 2.0 * kernels.Gaussian(0.5), None),
        (kernels.Precomputed(), None),
    ],
    ids=["laplacian", "chi2", "sum", "precomputed"],
)
@pytest.mark.usefixtures("small_or_not")
def test_other_kernels_against_their_matrices(kernel, function):
    X, y = load_iris(return_X_y=True)
    X = minmax_scale(X)[::2]
    y = y[::2]
    options = dict(C=3.0, decision_function_shape="ovo")
    if isinstance(kernel, kernels.Precomputed):
        X = matrix = X @ X.T
    elif function is None:
        matrix = X @ X.T + 2.0 * np.exp(-0.5 * pairwise.euclidean_distances(X, squared=True))
    else:
        options["gamma"] = 0.7
        matrix = function(X, gamma=0.7)
    ours = SVC(kernel=kernel, tol=TIGHT, **options).fit(X, y)
    theirs = svm.SVC(kernel="precomputed", tol=1e-8, **options).fit(matrix, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(matrix), atol=1e-4)


@pytest.mark.usefixtures("small_or_not")
def test_functions_and_given_matrices():
    words = ["tree", "bees", "seem", "deep", "cat", "hat", "bat", "mast"] * 3
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 3)

    def common_letters(first, second):
        count = [[len(set(a) & set(b)) for b in second] for a in first]
        return np.array(count, float)

    model = SVC(kernel=common_letters, C=10.0).fit(words, y)
    assert list(model.predict(["bee", "tat"])) == [0, 1]
    assert len(model.support_vectors_) == len(model.support_)
    matrix = common_letters(words, words)
    given = SVC(kernel="precomputed", C=10.0).fit(matrix, y)
    np.testing.assert_allclose(given.decision_function(matrix), model.decision_function(words))
    assert given.support_vectors_.size == 0
    with pytest.raises(TypeError, match="toarray"):
        SVC(kernel="precomputed").fit(sparse.csr_matrix(matrix), y)
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(matrix[:, :5], y)
    with pytest.raises(ValueError, match="one value per pair"):
        SVC(kernel=lambda first, second: np.ones(3)).fit(words, y)


def test_each_class_against_the_rest(digits):
    X, y = digits
    model = SVC(multi_class="ovr", tol=1e-6).fit(X, y)
    assert type(model.certificate_) is Certificates
    assert model.dual_coef_.shape == (10, len(model.support_))
    assert model.decision_function(X).shape == (500, 10)
    for k in (0, 7):
        alone = svm.SVC(tol=1e-6).fit(X, y == k)
        np.testing.assert_allclose(model.decision_function(X)[:, k], alone.decision_function(X), atol=5e-3)
    assert model.score(X, y) > 0.98


@pytest.mark.parametrize("one_vs_rest", [False, True])
@pytest.mark.usefixtures("small_or_not")
def test_every_problem_has_a_certificate_about_the_fitted_numbers(digits, one_vs_rest):
    X, y = digits
    X, y = X[y < 4], y[y < 4]
    model = SVC(C=2.0, gamma=0.05, multi_class="ovr" if one_vs_rest else "ovo").fit(X, y)
    assert len(model.certificate_) == len(model.trace_) == len(model.intercept_)
    assert model.certificate_.relative_gap <= model.tol
    assert model.status_ is Status.CERTIFIED
    rest = np.arange(4)
    problems = [(k, rest) for k in rest] if one_vs_rest else [(i, j) for i in rest for j in range(i + 1, 4)]
    K = np.exp(-0.05 * pairwise.euclidean_distances(X, squared=True))
    for (i, others), proof, b in zip(problems, model.certificate_, model.intercept_, strict=True):
        if one_vs_rest:
            which, labels = np.arange(len(y)), np.where(y == i, 1.0, -1.0)
        else:
            which = np.concatenate([np.flatnonzero(y == i), np.flatnonzero(y == others)])
            labels = np.where(y[which] == i, 1.0, -1.0)
        square = K[np.ix_(which, which)]
        slack = np.maximum(0.0, 1.0 - labels * (square @ proof.w + b))
        value = 0.5 * proof.w @ square @ proof.w + 2.0 * slack.sum()
        beta = proof.alpha * labels
        assert proof.primal == pytest.approx(value, rel=1e-10)
        assert proof.dual == pytest.approx(proof.alpha.sum() - 0.5 * beta @ square @ beta, rel=1e-10)
        assert abs(beta.sum()) <= 1e-12 * proof.alpha.sum()
        assert proof.alpha.min() >= 0.0
        assert proof.alpha.max() <= 2.0
        np.testing.assert_allclose(proof.margins, labels * (square @ proof.w + b), atol=1e-9)


def test_the_certificates_of_small_problems_are_those_of_certify(digits):
    X, y = digits
    model = SVC(C=0.5, tol=1e-4).fit(X, y)
    K = model.kernel_(X)
    for (i, j), proof in zip(model.certificate_.pairs, model.certificate_, strict=True):
        which = np.concatenate([np.flatnonzero(y == i), np.flatnonzero(y == j)])
        labels = np.where(y[which] == i, 1.0, -1.0)
        part = kernels.KernelRows(K, kernels.Precomputed(), which=which)
        again = certify(Problem.of(part, labels, 0.5), Solution(alpha=proof.alpha))
        np.testing.assert_allclose(again.alpha, proof.alpha, rtol=1e-12, atol=1e-15)
        for name in ("b", "primal", "dual", "kkt_violation"):
            assert getattr(proof, name) == pytest.approx(getattr(again, name), rel=1e-9, abs=1e-11)
        np.testing.assert_array_equal(proof.row_classes, again.row_classes)


def test_the_certificates_of_pairs_print_themselves(digits):
    X, y = digits
    names = np.array([f"digit {k}" for k in range(10)])
    model = SVC().fit(X, names[y])
    proofs = model.certificate_
    assert isinstance(proofs, PairCertificates)
    assert len(proofs) == len(proofs.pairs) == 45
    first, second = proofs.worst_pair
    assert proofs.of(second, first) is proofs.worst
    assert f"{first} against {second}" in str(proofs)
    assert "45 pairs" in str(proofs)
    assert "45 pairs" in repr(proofs)
    with pytest.raises(KeyError, match="digit 1"):
        proofs.of("digit 1", "digit 1")
    page = fitted_summary(model)
    assert f"{first} against {second}" in page
    assert "and 35 more pairs" in page
    assert page in model._repr_html_()


@pytest.mark.usefixtures("small_or_not")
def test_one_row_or_many_score_alike(digits):
    X, y = digits
    model = SVC().fit(X[:300], y[:300])
    scores = model.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X[7:8]), scores[7:8], atol=1e-12)
    np.testing.assert_allclose(model.decision_function(sparse.csr_matrix(X)), scores, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(X.astype(np.float32)), scores, atol=1e-4)
    matrix = SVC().fit(sparse.csr_matrix(X[:300]), y[:300])
    np.testing.assert_allclose(matrix.decision_function(X), scores, atol=1e-10)


def test_blocks_of_rows_change_nothing(digits, monkeypatch):
    X, y = digits
    options = dict(decision_function_shape="ovo", tol=1e-6)
    function = SVC(kernel=pairwise.rbf_kernel, **options).fit(X, y)
    model = SVC(gamma=1.0 / 64, **options).fit(X, y)
    whole = [function.decision_function(X), model.decision_function(X)]
    monkeypatch.setattr("maxmargin.kernels.expansions._BLOCK_BYTES", 1)
    blocks = [function.decision_function(X), model.decision_function(X)]
    np.testing.assert_allclose(blocks, whole, atol=1e-12)
    np.testing.assert_allclose(whole[0], whole[1], atol=1e-2)


def test_single_precision_is_kept_and_close(digits):
    X, y = digits
    single = SVC(tol=1e-5).fit(X.astype(np.float32), y)
    double = SVC(tol=1e-5).fit(X, y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(
        single.decision_function(X.astype(np.float32)), double.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.usefixtures("small_or_not")
def test_the_number_of_threads_changes_nothing(digits, n_jobs):
    X, y = digits
    reference = SVC(n_jobs=None).fit(X, y)
    model = SVC(n_jobs=n_jobs).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=1e-9)


def test_spent_steps_warn_with_the_gap_and_the_cure(breast_cancer):
    X, y = breast_cancer
    model = SVC(C=1e4, tol=1e-12, max_iter=1, solver=WorkingSet(size=4))
    with pytest.warns(ConvergenceWarning, match=r"relative gap is .*Raise max_iter"):
        model.fit(X, y)
    assert model.status_ is Status.STEPS_SPENT
    assert model.n_iter_.tolist() == [1]
    assert model.fit_status_ == 1
    assert model.certificate_.relative_gap > 0


def test_no_time_at_all_still_gives_a_certified_model(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(max_time=0.0).fit(X, y)
    assert model.status_ is Status.TIME_SPENT
    assert all(np.isfinite(proof.primal) and proof.dual <= proof.primal for proof in model.certificate_)
    assert len(model.predict(X)) == 500


def test_callback_sees_progress_and_can_stop(digits):
    X, y = digits
    seen = []

    def stop_at_the_first(progress):
        seen.append(progress.label)
        return True

    with pytest.warns(ConvergenceWarning, match="callback"):
        model = SVC(C=1e4, tol=1e-13, callback=stop_at_the_first, solver=WorkingSet(size=4)).fit(X, y)
    assert set(seen) == set(model.certificate_.pairs)


def test_warm_start_goes_on(breast_cancer):
    X, y = breast_cancer
    model = SVC(C=100.0, tol=1e-9, max_iter=1, warm_start=True, solver=WorkingSet(size=4))
    gaps = []
    for _ in range(3):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        gaps.append(model.certificate_.relative_gap)
    assert gaps[2] < gaps[1] < gaps[0]
    # Another C: the multipliers are brought into their box, balanced, and go on from there.
    model.set_params(C=0.5, solver="auto", max_iter=-1, tol=1e-4).fit(X, y)
    fresh = SVC(C=0.5, tol=1e-4).fit(X, y)
    assert model.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=2e-4)
    # Other data: a fresh start.
    assert model.fit(X[:100], y[:100]).certificate_.relative_gap <= 1e-4


def test_verbose_logs_and_prints_nothing(breast_cancer, caplog, capsys):
    X, y = breast_cancer
    with caplog.at_level(logging.INFO, logger="maxmargin"):
        SVC(verbose=1).fit(X, y)
    assert any("relative gap" in record.getMessage() for record in caplog.records)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_pickle_keeps_the_proof_and_not_the_data(digits):
    X, y = digits
    model = SVC(kernel=kernels.Gaussian(0.1) + kernels.Linear()).fit(X, y)
    assert all(proof.problem is None for proof in model.certificate_)
    again = pickle.loads(pickle.dumps(model))
    assert str(again.certificate_) == str(model.certificate_)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert repr(clone(model).kernel) == repr(model.kernel)


@pytest.mark.usefixtures("small_or_not")
def test_an_indefinite_kernel_warns_with_its_proof_and_ends(breast_cancer):
    X, y = breast_cancer
    model = SVC(kernel="sigmoid", gamma=0.5, coef0=-1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(UserWarning, match=r"v'Kv = -.*no proof"):
            model.fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert not model.status_.certified
    assert model.fit_status_ == 1
    assert not model.certificate_.proven
    assert "no lower bound" in str(model.certificate_)
    assert "No (w, b) can bring it below" not in str(model.certificate_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = SVC(kernel="precomputed").fit(X @ X.T, y)
    assert given.status_.certified
    assert given.certificate_.proven


def test_feature_names_and_labels_of_any_kind():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"long": [0.0, 1.0, 2.0, 3.0], "wide": [1.0, 0.0, 1.0, 0.0]})
    model = SVC(kernel="linear", C=10.0).fit(frame, ["no", "no", "yes", "yes"])
    assert list(model.feature_names_in_) == ["long", "wide"]
    assert list(model.predict(frame)) == ["no", "no", "yes", "yes"]


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("C", 0, r"The 'C' parameter of SVC must be a float in the range \(0, inf\). Got 0 inst"),
        ("C", -np.inf, "Got -inf instead"),
        ("kernel", "rbff", "'poly', 'rbf', 'chi2'"),
        ("kernel", 3, "or a maxmargin.kernels object"),
        ("gamma", "auto_scale", "'scale', 'auto'"),
        ("gamma", -1.0, "variance of X"),
        ("degree", 2.5, "degree"),
        ("tol", -1, "relative gap"),
        ("cache_size", 0, "megabytes"),
        ("max_iter", -2, "-1 sets no limit"),
        ("decision_function_shape", "pairs", "'ovr', 'ovo'"),
        ("multi_class", "crammer_singer", "'ovr', 'ovo'"),
        ("probability", "platt", "True is 'sigmoid'"),
        ("solver", "smo", "'working_set'"),
        ("solver", "pegasos", "takes no kernel"),
        ("max_time", -1, "max_time"),
        ("callback", "print", "callable"),
        ("n_jobs", 0, "n_jobs"),
    ],
)
def test_wrong_parameters_are_named_with_the_cure(parameter, value, message):
    model = SVC(**{parameter: value})
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], [0, 1])


def test_wrong_data_are_named_with_the_cure(breast_cancer):
    X, y = breast_cancer
    with pytest.raises(ValueError, match="at least two different labels"):
        SVC().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(ValueError, match="weight above 0"):
        SVC().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"], sample_weight=[1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="MinMaxScaler"):
        SVC(kernel="chi2").fit(X, y)
    with pytest.raises(ValueError, match="no pairs"):
        SVC(multi_class="ovr", decision_function_shape="ovo").fit(X, y)


@pytest.mark.parametrize("C", [1e-9, 1e9])
@pytest.mark.usefixtures("small_or_not")
def test_extreme_costs_end_with_a_valid_proof(C):
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0, flip_y=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        proof = SVC(C=C, max_time=5.0).fit(X, y).certificate_
    assert np.isfinite(proof.primal)
    assert proof.dual <= proof.primal


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_an_interrupt_keeps_the_best_certified_model():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((4000, 10)), random.integers(0, 2, 4000)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = SVC(C=1e6, tol=0.0, max_time=60.0).fit(X, y)
    finally:
        timer.cancel()
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.dual <= model.certificate_.primal
    assert model.predict(X).shape == (4000,)


# ---- the linear kernel on its columns --------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("shape", ["two classes", "ovo", "ovr"])
def test_a_linear_kernel_is_solved_on_the_columns(shape, layout, monkeypatch):
    monkeypatch.setattr(sizes, "QUICK_ROWS", 0)  # easy ones are solved by pairs in no time
    random = np.random.default_rng(5)
    X = random.normal(size=(240, 5))
    scores = X @ random.normal(size=5) + random.normal(size=240)
    y = np.digitize(scores, [0.0] if shape == "two classes" else [-1.0, 1.0])
    weights = random.integers(0, 3, 240)
    options = {"kernel": "linear", "C": 10.0, "tol": 1e-6}
    options["multi_class"] = "ovr" if shape == "ovr" else "ovo"
    model = SVC(**options).fit(layout(X), y, sample_weight=weights)
    assert "on the columns" in model.solver_
    assert model.status_.certified
    pairs = SVC(solver="sequential_minimal_optimization", **options).fit(
        layout(X), y, sample_weight=weights
    )
    assert "on the columns" not in pairs.solver_
    for mine, other in zip(_each(model), _each(pairs), strict=True):
        assert mine.relative_gap <= 1e-6
        assert mine.primal == pytest.approx(other.primal, rel=2e-6)
        assert mine.w is mine.w_of_alpha or not mine.w.any()  # held by its coefficients, or the best is 0
    np.testing.assert_allclose(model.decision_function(X), pairs.decision_function(X), rtol=0, atol=0.02)


def _each(model):
    proof = model.certificate_
    return [proof] if isinstance(proof, Certificate) else list(proof)


@pytest.mark.parametrize("form", ["dense", "single", "sparse 32", "sparse 64"])
@pytest.mark.parametrize("shape", ["two classes", "ovo", "ovr"])
def test_a_linear_kernel_predicts_with_w_where_that_is_cheaper(shape, form, monkeypatch, tmp_path):
    random = np.random.default_rng(7)
    dense = random.normal(size=(300, 4)) * (random.random((300, 4)) < 0.8)
    y = np.digitize(dense.sum(axis=1) + random.normal(size=300), [0] if shape == "two classes" else [-1, 1])
    X = in_form(dense.astype(np.float32 if form == "single" else np.float64), form)
    options = {"multi_class": "ovr"} if shape == "ovr" else {"decision_function_shape": "ovo"}
    model = SVC(kernel="linear", **options).fit(X, y)
    model.save(tmp_path / "model")
    expected = _sums_over_support_vectors(model, dense.astype(X.dtype).astype(np.float64))
    monkeypatch.setattr(Expansions, "__call__", _never)
    stored = load_model(tmp_path / "model")
    for scored in (model, SVC.load(tmp_path / "model"), stored, pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(scored.decision_function(X), expected, atol=1e-9)
    # Those of a file take columns for zeros that are missing at the end.
    narrow = _sums_over_support_vectors(model, dense.astype(X.dtype) * [1.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(stored.decision_function(X[:, :3]), narrow, atol=1e-9)


def _sums_over_support_vectors(model, X):
    """``sum_s coefficient_s <x_s, x> + b`` of every problem, by hand."""
    vectors, table = model.support_vectors_, model.dual_coef_
    if sparse.issparse(vectors):
        vectors, table = vectors.toarray(), table.toarray()
    values = X @ vectors.astype(np.float64).T
    owners = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    if len(model.intercept_) == 1:
        return values @ table[0] + model.intercept_[0]
    if model.multi_class == "ovr":
        return values @ table.T + model.intercept_
    return np.column_stack(
        [
            values @ (table[j - 1] * (owners == i) + table[i] * (owners == j)) + b
            for (i, j), b in zip(combinations(range(3), 2), model.intercept_, strict=True)
        ]
    )


def _never(*arguments):
    raise AssertionError("sums over support vectors were formed")


def test_a_linear_kernel_predicts_with_w_of_many_columns(monkeypatch):
    monkeypatch.setattr(expansions, "_BLOCK_BYTES", 16_000)  # two w of a thousand columns at a time
    X = sparse.random(12, 1000, density=0.01, format="csr", random_state=8)
    model = SVC(kernel="linear", decision_function_shape="ovo").fit(X, np.arange(12) % 3)
    assert model.support_vectors_.nnz < model.coef_.shape[1]
    monkeypatch.setattr(Expansions, "__call__", _never)
    many = sparse.random(200, 1000, density=0.05, format="csr", random_state=9)
    expected = many @ model.coef_.toarray().T + model.intercept_
    for given in (many, many.toarray()):
        np.testing.assert_allclose(model.decision_function(given), expected, atol=1e-12)
    alone = np.vstack([model.decision_function(many[[i]]) for i in range(5)])
    np.testing.assert_array_equal(alone, model.decision_function(many)[:5])


def test_a_linear_kernel_predicts_with_fewer_support_vectors_than_pairs_of_classes(monkeypatch):
    X = sparse.random(8, 1000, density=0.01, format="csr", random_state=8)
    model = SVC(kernel="linear", decision_function_shape="ovo").fit(X, np.arange(8))
    expected = X @ model.coef_.toarray().T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-12)
    monkeypatch.setattr(Expansions, "__call__", _never)
    with pytest.raises(AssertionError, match="support vectors were formed"):
        model.decision_function(X)


def test_a_linear_kernel_predicts_with_support_vectors_where_w_is_beyond_all_numbers():
    X, y = np.array([[-1.0], [-2.0], [1.0], [2.0]]), [0, 0, 1, 1]
    model = SVC(kernel="linear").fit(X, y)
    model._problem_scores = replace(
        model._problem_scores,
        support=np.array([[1e200], [1e200]]),
        coefficients=np.array([[-1e200, 1e200]]),
    )
    assert np.isfinite(model.decision_function([[0.0]])).all()


def test_linear_sums_take_two_passes_and_are_those_of_all_pairs():
    random = np.random.default_rng(6)
    X, which = random.normal(size=(30, 4)), np.array([3, 29, 0, 7, 3])
    rows, w = KernelRows(X, Linear(), which=which), random.normal(size=5)
    np.testing.assert_allclose(rows.scores(w), X[which] @ X[which].T @ w, atol=1e-12)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_variance_beyond_float64_is_an_error_with_its_cure(factor, make):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 3)), np.arange(20) % 2
    if factor < 1:
        X, factor = X * 1e-100, 1e-58  # so small a number has a square, but that has no inverse
    with pytest.raises(ValueError, match=r"gamma='scale' needs a variance .* Scale the features"):
        SVC().fit(make(X * factor), y)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_predictions_do_not_overflow_in_single_precision(layout):
    X = np.array([[1.3e9, -1.4e22], [8.8e6, -5.9e18], [3.0e5, -1.7e18]], np.float32)
    model = SVC(kernel="poly", gamma=1.8e-44, coef0=0.1, C=0.14).fit(layout(X), [0, 2, 1])
    single, double = (model.decision_function(layout(rows)) for rows in (X, X.astype(np.float64)))
    assert np.isfinite(single).all()
    np.testing.assert_allclose(single, double, rtol=1e-6)


def test_an_infinite_c_is_one_that_no_multiplier_reaches():
    X, y = load_iris(return_X_y=True)
    apart = SVC(C=np.inf).fit(X[:100], y[:100])
    assert apart.certificate_.alpha.max() < 1e9
    np.testing.assert_array_equal(apart.predict(X), SVC(C=1e10).fit(X[:100], y[:100]).predict(X))
    same = np.vstack([X[:20], X[:20]]), np.repeat([0, 1], 20)
    with pytest.warns(DoubtfulModelWarning, match="C = inf asks that no row costs anything"):
        SVC(C=np.inf, max_time=1.0).fit(*same)


def test_a_function_is_called_with_all_rows_of_the_training():
    X, y = load_iris(return_X_y=True)
    asked = []

    def kernel(A, B):
        asked.append(len(B))
        return A @ B.T

    model = SVC(kernel=kernel).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), SVC(kernel="linear").fit(X, y).decision_function(X), atol=0.05
    )
    assert set(asked) == {len(X)}


def test_what_converters_look_for_is_there():
    X, y = load_iris(return_X_y=True)
    model = SVC(probability=True).fit(X[:100], y[:100])
    with pytest.warns(FutureWarning, match="`probA_` was deprecated"):
        slope = model.probA_
    with pytest.warns(FutureWarning, match="`probB_` was deprecated"):
        offset = model.probB_
    scores = model.decision_function(X[:100])
    np.testing.assert_allclose(
        1.0 / (1.0 + np.exp(slope * scores + offset)), model.predict_proba(X[:100])[:, 1]
    )
    np.testing.assert_array_equal(model._dual_coef_, -model.dual_coef_)
    np.testing.assert_array_equal(model._intercept_, -model.intercept_)
    model.n_support_[0] += 1
    with pytest.raises(ValueError, match="internal representation of SVC was altered"):
        model.predict(X)
