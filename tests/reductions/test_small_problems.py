# SPDX-License-Identifier: BSD-3-Clause
"""Kernel problems of few rows: one call of the core, Newton's end, certificates made when asked for."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, Status, core
from maxmargin.core import Budget
from maxmargin.estimators.named_kernels import why_unproven
from maxmargin.kernels import Gaussian, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.rounding import rounding_of
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import certify
from maxmargin.proof.solution import Solution
from maxmargin.reductions.kernel_fit import KernelFit
from maxmargin.reductions.linear_kernel import coefficients_of, factor_of
from maxmargin.reductions.small_problems import AlongCosts, Parts, solve_at_costs, solve_small
from maxmargin.solvers import sizes
from tests.quadratic_program import solve_by_quadratic_program

NO_LIMIT = Budget(float("inf"), 1)


def blobs(seed, n, d):
    """Two classes that overlap; every fifth row is there twice."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    X[::5] = X[1::5][: len(X[::5])] if n % 5 == 0 else X[::5]
    y = np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def solved(K, y, costs, tol=1e-3, tiny=50):
    parts = Parts(np.arange(len(y)), y, costs, np.array([0, len(y)]))
    return solve_small(K, parts, tol, tiny, NO_LIMIT, np.sqrt(np.diag(K)), 0.0)[0]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(5))
def test_few_rows_are_solved_to_rounding(seed, C):
    X, y = blobs(seed, 40, 3)
    # More free rows than columns: the system of the free multipliers is singular.
    costs = C * np.random.default_rng(seed).integers(0, 4, 40)
    costs[:2] = C
    model = solved(X @ X.T, y, costs)
    _, _, best = solve_by_quadratic_program(X, y, costs, "hinge", "exact")
    assert model.certificate.primal == pytest.approx(best, rel=1e-7)
    assert model.certificate.relative_gap <= 1e-10


@pytest.mark.parametrize("seed", range(10))
def test_few_rows_that_cannot_be_told_apart_are_solved_at_any_cost(seed):
    random = np.random.default_rng(seed)
    X, y = 100.0 * random.normal(size=(40, 20)), random.choice([-1.0, 1.0], 40)
    model = solved(X @ X.T, y, np.full(40, 1e4))
    assert model.status is Status.CERTIFIED
    assert model.certificate.relative_gap <= 1e-3  # rounding, C times


def at_one_cost(K, y, C, alpha, scores):
    parts, n = Parts(np.arange(len(y)), y, np.full(len(y), C), np.array([0, len(y)])), len(y)
    given = None if scores is None else scores[np.newaxis]
    limits = 1e-3, 0, NO_LIMIT
    return solve_at_costs(K, parts, np.full((1, n), C), alpha[np.newaxis], given, *limits)[0]


def test_the_scores_of_a_start_are_believed():
    X, y = blobs(0, 400, 4)
    K, nothing = Gaussian(0.5)(X), np.zeros(400)
    first = at_one_cost(K, y, 1.0, nothing, nothing)
    assert first.steps[0] > 0
    known = K @ (first.alpha * y)
    assert at_one_cost(K, y, 1.0, first.alpha, known).steps == [0]
    assert at_one_cost(K, y, 1.0, first.alpha, None).steps == [0]
    assert at_one_cost(K, y, 1.0, first.alpha, nothing).steps[0] > 0
    # Multipliers that are beyond their walls at another C change, and the scores with them.
    assert_allclose(
        at_one_cost(K, y, 0.5, first.alpha, known).alpha,
        at_one_cost(K, y, 0.5, first.alpha, None).alpha,
        atol=1e-9,
    )


def in_pairs(seed, n, classes):
    """Rows of so many classes, and the problems of all pairs of them."""
    random = np.random.default_rng(seed)
    X, codes = random.normal(size=(n, 4)), np.arange(n) % classes
    X[:, 0] += 0.7 * codes
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    members = [np.concatenate([np.flatnonzero(codes == k) for k in pair]) for pair in pairs]
    y = [np.where(codes[rows] == i, 1.0, -1.0) for (i, _), rows in zip(pairs, members, strict=True)]
    begins = np.cumsum([0, *map(len, members)])
    return X, Parts(np.concatenate(members), np.concatenate(y), np.ones(begins[-1]), begins)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "classes"), [(40, 2), (303, 2), (600, 2), (170, 4)])
def test_models_at_one_C_after_the_other_are_those_that_certify_proves(n, classes, threads):
    X, parts = in_pairs(n, n, classes)
    K, Cs, kernel = Gaussian(0.3)(X), np.array([0.01, 0.3, 0.3, 20.0]), Gaussian(0.3)
    weights = np.random.default_rng(0).integers(0, 3, size=(3, len(parts.y))).astype(float)
    rounding = rounding_of(kernel, Rows(X).stored_data)
    budget = Budget(float("inf"), threads)
    along = AlongCosts(
        K, parts, weights, Cs, 1e-3, 50, budget, *rounding.simple, kernel_is_none=False, rounds=100
    )
    assert along.proven == len(Cs)
    for number, C in enumerate(Cs):
        for line, own in enumerate(weights):
            models = along.models(number, line)
            assert along.largest_gap(number, line) == models.relative_gaps.max() <= 1e-3
            for k, model in enumerate(models):
                rows = parts.which[slice(*parts.begins[k : k + 2])]
                part = slice(*parts.begins[k : k + 2])
                problem = Problem.of(
                    KernelRows(Rows(X), kernel, which=rows), parts.y[part], C, weights=own[part]
                )
                again = certify(problem, Solution(alpha=model.certificate.alpha))
                # That one may make w a little longer.
                assert again.primal <= model.certificate.primal * (1 + 1e-12)
                assert model.certificate.primal == pytest.approx(again.primal, rel=1e-3)
                assert model.certificate.dual == pytest.approx(again.dual, rel=1e-9)
                scores = again.problem.rows.scores(model.certificate.w)
                assert_allclose(
                    model.certificate.margins, parts.y[part] * (scores + model.certificate.b), atol=1e-9
                )
                assert (model.certificate.alpha <= C * own[part]).all()
                # The best intercepts are found near the free multipliers; here they are found among all.
                best = problem.objective.take_best_intercept(scores.copy())
                assert_allclose([model.certificate.b, *model.certificate.b_interval], best[:3], atol=1e-9)


def value_in_longdouble(K, proof, y, C):
    """The objective of the very w and b that were proven, as a matrix in a wider format has it."""
    w, b = proof.w.astype(np.longdouble), np.longdouble(proof.b)
    scores = K.astype(np.longdouble) @ w
    return 0.5 * w @ scores + C * np.maximum(1 - y * (scores + b), 0).sum()


@pytest.mark.parametrize("seed", range(5))
def test_a_w_is_longer_by_what_rounding_may_take_from_its_margins(seed):
    """Where all rows are free and C is large, that would be most of the objective."""
    random = np.random.default_rng(seed)
    n, off, C = 150, 1e-10 * (seed + 1), 1e5
    X, y = random.normal(size=(n, 6)), random.choice([-1.0, 1.0], n)
    K, lengths = Gaussian(1.0)(X), np.ones(n)
    parts = Parts(np.arange(n), y, np.full(n, C), np.array([0, n]))
    model = solve_small(K, parts, 1e-3, 50, NO_LIMIT, lengths, off)[0]
    proof = model.certificate
    lost = off * np.abs(proof.w).sum() * C * n
    assert lost > 2e-3 * proof.primal, "a w as long as alpha makes it would not be proven to tol"
    assert proof.relative_gap <= 1e-3
    lengths_of_w = np.abs(proof.w[proof.alpha > 0]) / proof.alpha[proof.alpha > 0]
    assert_allclose(lengths_of_w, lengths_of_w[0])
    assert lengths_of_w[0] > 1.0 + off
    assert_allclose(proof.margins, y * (K @ proof.w + proof.b), atol=1e-9)
    assert_allclose(proof.w_of_alpha, proof.alpha * y, rtol=0)
    assert proof.kkt_violation >= (1 - 1e-6) * np.abs(proof.w - proof.w_of_alpha).max()
    # The bound holds for every matrix whose values are off by as much: also where all margins fall.
    for change in (0.0, -off, off):
        values = K + change * np.outer(np.sign(proof.w), np.sign(proof.w))
        assert value_in_longdouble(values, proof, y, C) <= proof.primal
    others = AlongCosts(
        K,
        parts,
        np.ones((1, n)),
        np.array([1.0, C, 2 * C]),
        1e-3,
        50,
        NO_LIMIT,
        lengths,
        off,
        kernel_is_none=False,
    )
    assert others.proven == 3
    for number in range(3):
        proof = others.models(number, 0)[0].certificate
        assert_allclose(others.coefficients(0)[number], proof.w, rtol=0)


def test_what_falls_short_ends_the_call():
    X, parts = in_pairs(1, 200, 2)
    K, Cs = Gaussian(0.3)(X), np.array([1.0, 10.0])
    given = K, parts, np.ones((2, 200)), Cs
    never = AlongCosts(*given, -1.0, 0, NO_LIMIT, np.ones(200), 0.0, kernel_is_none=False, rounds=1)
    assert never.proven == 0


@pytest.mark.parametrize(
    ("kernel", "way"), [("linear", "on the columns"), ("rbf", "a factor of the kernel")]
)
def test_few_rows_that_the_quick_way_fails_on_are_proven_all_the_same(kernel, way, monkeypatch):
    def hopeless(self):
        # No gap is below 0, so all of them fall short.
        matrix, parts = self.problems.matrix, self.problems.in_a_row()
        return solve_small(matrix, parts, -1.0, 0, NO_LIMIT, *self.problems.rounding.simple, rounds=1)

    monkeypatch.setattr(KernelFit, "_all_in_one_call", hopeless)
    X, y = blobs(1, 40, 5)
    model = SVC(kernel=kernel, C=100.0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    assert way in model.solver_


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_pairs_of_classes_that_share_values_get_the_models_they_have_alone(stored, jobs, monkeypatch):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(300, 70)) * (random.random((300, 70)) < 0.1), np.arange(300) % 12
    monkeypatch.setattr(sizes, "ALL_KERNEL_VALUES", 10)
    together = SVC(n_jobs=jobs).fit(stored(X), y)
    monkeypatch.setattr(sizes, "SHARE_OF_CACHE", 0.0)
    alone = SVC(n_jobs=jobs).fit(stored(X), y)
    ours, theirs = (sparse.csr_matrix(model.dual_coef_).toarray() for model in (together, alone))
    # Which columns of sparse rows are common depends on the rows, and so does the order of a sum.
    rounding = 0.0 if stored is np.asarray else 1e-12
    assert_allclose(ours, theirs, rounding, rounding)
    assert_allclose(together.intercept_, alone.intercept_, rounding, rounding)
    assert together.cache_use_.peak_bytes == 8 * 300**2 > alone.cache_use_.peak_bytes
    assert together.cache_use_.rows_computed == 300


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3), Polynomial(2, 0.5, 1.0)], ids=str)
def test_a_row_twice_is_a_row_of_weight_two(kernel):
    X, y = blobs(7, 24, 4)
    copies = np.random.default_rng(7).integers(1, 3, 24)
    again, labels = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    weighted = SVC(kernel=kernel).fit(X, y, sample_weight=copies)
    repeated = SVC(kernel=kernel).fit(again, labels)
    assert_allclose(repeated.decision_function(X), weighted.decision_function(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("n", [51, 130])
def test_more_rows_are_solved_to_the_gap_asked_for(n, tol):
    X, y = blobs(3, n, 5)
    K = Gaussian(0.2)(X)
    model = solved(K, y, np.full(n, 10.0), tol)
    assert model.status is Status.CERTIFIED
    assert model.certificate.relative_gap <= tol
    # The square root of K stands in for the images.
    values, vectors = np.linalg.eigh(K)
    images = vectors * np.sqrt(np.maximum(values, 0.0))
    _, _, best = solve_by_quadratic_program(images, y, np.full(n, 10.0), "hinge", "exact")
    assert model.certificate.dual <= best * (1 + 1e-6)
    assert model.certificate.primal >= best * (1 - 1e-6)


@pytest.mark.parametrize(
    "kernel", [Linear(), Gaussian(0.1), Polynomial(3, 0.1, 1.0), Sigmoid(0.1)], ids=str
)
@pytest.mark.parametrize("n", [5, 64, 65, 203])
def test_the_matrix_of_rows_with_themselves_is_mirrored(kernel, n):
    X = np.random.default_rng(n).normal(size=(n, 9))
    order = np.random.default_rng(0).permutation(n)
    data, values, other = Rows(X).stored_data, np.empty((n, n)), np.empty((n, n))
    for threads in (1, 2):
        core.kernel_block(kernel.compiled, data, order, data, order, values, Budget(float("inf"), threads))
        # Not recognised as the same rows, so that all values are computed.
        core.kernel_block(
            kernel.compiled, data, order, Rows(X).stored_data, order, other, Budget(float("inf"), threads)
        )
        assert_array_equal(values, values.T)
        assert_allclose(values, other, rtol=1e-12, atol=1e-14)


def test_given_values_are_not_mirrored():
    given = np.arange(100.0 * 100.0).reshape(100, 100)
    data, values, order = Rows(given, keep_zeros=True).stored_data, np.empty((100, 100)), np.arange(100)
    core.kernel_block(Precomputed().compiled, data, order, data, order, values, NO_LIMIT)
    assert_array_equal(values, given)


def test_certificates_made_late_are_a_sequence_like_any_other():
    X, y = load_digits(return_X_y=True)
    model = SVC().fit(X[:100], y[:100])
    proofs = model.certificate_
    kept = pickle.loads(pickle.dumps(model)).certificate_
    copied = copy.deepcopy(proofs)
    assert proofs[-1] is proofs[44] is list(proofs)[44]
    assert [proof.primal for proof in proofs[2:7]] == [proofs[k].primal for k in range(2, 7)]
    with pytest.raises(IndexError):
        proofs[45]
    size = len(pickle.dumps(SVC().fit(X[:100], y[:100])))
    assert len(pickle.dumps(model)) == size
    for other in (kept, copied):
        assert len(other) == 45
        for one, two in zip(proofs, other, strict=True):
            assert one.relative_gap == two.relative_gap
            assert one.kkt_violation == two.kkt_violation
            assert one.b_interval == two.b_interval
            assert one.proven == two.proven
            for name in ("w", "alpha", "margins", "row_classes"):
                assert_array_equal(getattr(one, name), getattr(two, name))
    assert max(proof.relative_gap for proof in proofs) == proofs.relative_gap
    assert [trace[-1].relative_gap for trace in model.trace_] == [proof.relative_gap for proof in proofs]


def test_what_is_no_kernel_is_found_whatever_the_rows_that_show_it():
    random = np.random.default_rng(0)
    # Far apart, so that tanh of the products is nearly diagonal; only the last two rows are alike.
    X = 3.0 * np.eye(80)
    X[78] = 0.0
    X[78, 79], X[79, 79] = 0.1, 3.0
    doubt = why_unproven(Sigmoid(1.0), X, Sigmoid(1.0)(X))
    assert "No kernel" in doubt
    assert "over 80 rows" in doubt
    # So for an unlucky order of the rows, and for few of them.
    assert "No kernel" in why_unproven(Sigmoid(1.0), X[random.permutation(80)], None)
    assert "over 10 rows" in why_unproven(Sigmoid(1.0), X[70:], Sigmoid(1.0)(X[70:]))
    assert why_unproven(Sigmoid(1.0), X[:70], Sigmoid(1.0)(X[:70])) == ""


def test_labels_of_many_values_are_still_doubted():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(UserWarning, match="unique classes"):
        SVC().fit(X, np.arange(30))
    with pytest.raises(ValueError, match="Unknown label type"):
        SVC().fit(X, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (np.int8, np.uint16, bool, float, str):
            labels = (np.arange(30) % 2).astype(kind)
            assert_array_equal(SVC().fit(X, labels).classes_, np.unique(labels))


def test_a_factor_has_the_matrix_as_products():
    random = np.random.default_rng(3)
    thin = random.normal(size=(30, 4)) * 10.0 ** random.uniform(-6, 6, (30, 1))
    matrix = thin @ thin.T
    factor = factor_of(matrix, 30)
    assert factor.rows.shape == (30, 4)
    scale = np.sqrt(np.diagonal(matrix))
    unit = np.outer(scale, scale)
    assert_allclose(factor.rows @ factor.rows.T / unit, matrix / unit, atol=1e-12)
    w = random.normal(size=4)
    for c in (coefficients_of(w, factor.rows), factor.coefficients_of(w)):
        assert_allclose(c @ factor.rows, w, rtol=1e-9)
    assert factor_of(np.diag([1.0, -1.0]), 2) is None
    assert factor_of(np.array([[1.0, 2.0], [2.0, 1.0]]), 2) is None
    assert factor_of(np.full((2, 2), np.inf), 2) is None
    assert factor_of(np.zeros((3, 3)), 3).rows.shape == (3, 0)


@pytest.mark.parametrize("seed", range(12))
def test_values_of_a_polynomial_many_orders_apart_end_in_a_proof(seed):
    """Pairs of rows need steps without end here: the columns differ by four orders of magnitude."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, 4)) * 10.0 ** np.linspace(-1, 1.5, 4)
    y = random.choice([-1, 1], 50)
    model = SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0, C=100.0).fit(X, y)
    assert model.status_ is Status.CERTIFIED
    matrix = Polynomial(3, 1.0, 1.0)(X)
    c = np.zeros(50)
    c[model.support_] = model.dual_coef_[0]
    margins = y * (matrix @ c + model.intercept_[0])
    primal = 0.5 * c @ matrix @ c + 100.0 * np.maximum(0.0, 1.0 - margins).sum()
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-3)  # float64 has no more here
    assert primal <= model.certificate_.dual * (1 + 2e-3)


def test_steps_on_pairs_give_way_to_a_factor_in_watched_fits_too():
    random = np.random.default_rng(4)
    X = random.normal(size=(60, 4)) * 10.0 ** np.linspace(-1, 1.5, 4)
    y = random.choice([-1, 1], 60)
    watched = SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0, C=100.0, callback=lambda *_: False).fit(
        X, y
    )
    assert watched.status_ is Status.CERTIFIED
    assert "a factor of the kernel" in watched.solver_
    with pytest.warns(ConvergenceWarning, match="120 steps"):
        limited = watched.set_params(max_iter=120).fit(X, y)
    assert "working_set" in limited.solver_


def test_a_fit_that_is_stopped_on_the_factor_is_no_worse_than_the_pairs_were(monkeypatch):
    monkeypatch.setattr(sizes, "LEAST_WORK_ON_PAIRS", 1e8)  # more steps than are seen on the factor
    random = np.random.default_rng(4)
    X = random.normal(size=(60, 4)) * 10.0 ** np.linspace(-1, 1.5, 4)
    y = random.choice([-1, 1], 60)
    gaps, steps = [], []

    def stop_at_the_second_way(progress):
        again = bool(steps) and progress.step < steps[-1]
        steps.append(progress.step)
        if progress.certificate is not None and not again:
            gaps.append(progress.certificate.relative_gap)
        return again

    model = SVC(kernel="poly", degree=3, gamma=1.0, coef0=1.0, C=100.0, callback=stop_at_the_second_way)
    with pytest.warns(ConvergenceWarning, match="callback"):
        model.fit(X, y)
    assert model.certificate_.relative_gap <= min(gaps)


def test_a_fit_without_limit_ends_where_it_gains_nothing():
    """Values of the kernel up to 1e17 times C: in float64 no multipliers make the best w."""
    random = np.random.default_rng(301)
    X = random.normal(size=(30, 2)) * [100.0, 0.1]
    y = random.choice([-1, 1], 30)
    with pytest.warns(ConvergenceWarning):
        model = SVC(kernel="poly", degree=4, gamma=1.0, C=1e4).fit(X, y)
    assert model.certificate_.relative_gap > 1e-3 or not model.certificate_.proven
