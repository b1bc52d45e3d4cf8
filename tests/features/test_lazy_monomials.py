# SPDX-License-Identifier: BSD-3-Clause
"""Monomials that are not written out: everything against the written-out expansion."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC as ScikitLinearSVC

from maxmargin import (
    SVC,
    InseparableError,
    LinearSVC,
    LinearSVCCV,
    Problem,
    Rows,
    certify,
    core,
    path,
    solve,
)
from maxmargin.features import Monomials
from maxmargin.features.expansion import Expansion
from maxmargin.features.lazy import LazyMonomials
from maxmargin.kernels import KernelRows, Linear
from maxmargin.proof.solution import Solution
from maxmargin.solvers import LINEAR_SOLVERS, SOLVERS

FORMS = {
    "plain": {},
    "plain with constant": {"include_bias": True},
    "once": {"interaction_only": True},
    "once with constant": {"interaction_only": True, "include_bias": True},
    "kernel": {"scaling": "kernel", "gamma": 0.3, "coef0": 1.5},
    "kernel without constant": {"scaling": "kernel", "gamma": 0.3, "include_bias": False},
    "kernel of degree 2 alone": {"scaling": "kernel", "gamma": 2.0, "coef0": 0.0},
}
ALONE = core.Budget(math.inf, 1)


def some_rows(n=30, d=11, density=0.6, seed=0):
    """Rows of all lengths: what is left over behind blocks of four matters."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    X[random.uniform(size=X.shape) > density * 2 * random.uniform(size=(n, 1))] = 0.0
    X[n // 2] = 0.0
    X[0] = random.normal(size=d)
    return X


def both(X, **options):
    """(rows that are formed, the written-out matrix in float64)"""
    lazy = Monomials(2, lazy=True, **options).fit_transform(X)
    written = Monomials(2, **options).fit_transform(np.asarray(X.todense() if sparse.issparse(X) else X))
    assert isinstance(lazy, LazyMonomials)
    assert lazy.shape == written.shape
    return Rows(lazy), np.asarray(written, np.float64)


# ---- the row functions ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 11])
def test_every_function_of_the_rows(form, columns):
    X = some_rows(d=columns)
    rows, phi = both(X, **FORMS[form])
    random = np.random.default_rng(1)
    n, size = phi.shape
    close = {"rtol": 1e-12, "atol": 1e-12 * max(1.0, float(np.abs(phi).max(initial=0.0)) ** 2)}
    w, coefficients = random.normal(size=size), random.normal(size=n)
    assert (rows.count, rows.columns) == phi.shape
    assert rows.stored == Monomials(2, **FORMS[form]).fit_transform(sparse.csr_array(X)).nnz
    assert rows.without_private_columns is None
    np.testing.assert_allclose(rows.scores(w), phi @ w, **close)
    np.testing.assert_allclose(rows.combine(coefficients), coefficients @ phi, **close)
    np.testing.assert_allclose(rows.squared_norms, np.square(phi).sum(axis=1), **close)
    order = random.permutation(n)[: n // 2]
    products = np.empty((len(order), n))
    core.inner_products(rows.compiled, order, np.arange(n), products, ALONE)
    np.testing.assert_allclose(products, phi[order] @ phi.T, **close)
    scores = np.empty(len(order))
    core.scores_of(rows.compiled, order, w, scores, ALONE)
    np.testing.assert_allclose(scores, phi[order] @ w, **close)
    with_one = np.column_stack([phi, np.ones(n)])
    for Z in (phi, with_one):
        gathered = np.full((len(order), Z.shape[1]), np.nan)
        core.gather(rows.compiled, order, coefficients[order], gathered, ALONE)
        np.testing.assert_allclose(gathered, coefficients[order, None] * Z[order], **close)
        lower = np.zeros((Z.shape[1], Z.shape[1]))
        core.add_outer_products(rows.compiled, np.abs(coefficients), lower, ALONE)
        expected = Z.T @ (np.abs(coefficients)[:, None] * Z)
        np.testing.assert_allclose(np.tril(lower), np.tril(expected), **close)
    out = np.empty(size)
    total = core.curvature_product(rows.compiled, np.abs(coefficients), w, 0.5, out, ALONE)
    h = np.abs(coefficients) * (phi @ w + 0.5)
    np.testing.assert_allclose(out, h @ phi, **close)
    assert total == pytest.approx(h.sum(), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("kind", ["CSR float32", "CSR int64 indices", "unsorted CSR", "dense float32"])
def test_all_kinds_of_base_rows(kind):
    X = some_rows().astype(np.float32).astype(np.float64)
    base = sparse.csr_array(X)
    if kind == "CSR int64 indices":
        base.indices, base.indptr = base.indices.astype(np.int64), base.indptr.astype(np.int64)
    elif kind == "unsorted CSR":
        for begin, end in itertools.pairwise(base.indptr):
            base.indices[begin:end] = base.indices[begin:end][::-1].copy()
            base.data[begin:end] = base.data[begin:end][::-1].copy()
        base.has_sorted_indices = False
    else:
        base = base.astype(np.float32) if kind == "CSR float32" else X.astype(np.float32)
    before = base.copy()
    lazy = Monomials(2, lazy=True).fit_transform(base)
    w = np.random.default_rng(2).normal(size=lazy.shape[1])
    assert lazy.dtype == Rows(lazy).dtype == before.dtype
    np.testing.assert_allclose(
        Rows(lazy).scores(w), Monomials(2).fit_transform(X) @ w, rtol=1e-12, atol=1e-12
    )
    assert abs(base - before).sum() == 0.0  # what was given is left alone
    if kind == "unsorted CSR":
        np.testing.assert_array_equal(base.indices, before.indices)


def test_several_threads_add_up_to_the_same():
    X = sparse.random_array((20_000, 60), density=0.3, format="csr", rng=np.random.default_rng(3))
    rows = Rows(Monomials(2, lazy=True).fit_transform(X))
    random = np.random.default_rng(4)
    w, coefficients = random.normal(size=rows.columns), random.normal(size=rows.count)
    four = core.Budget(math.inf, 4)
    np.testing.assert_array_equal(rows.scores(w, four), rows.scores(w, ALONE))
    np.testing.assert_allclose(
        rows.combine(coefficients, four), rows.combine(coefficients, ALONE), rtol=1e-9, atol=1e-9
    )
    which = np.arange(2000)
    ours, theirs = np.empty((100, 2000)), np.empty((100, 2000))
    core.inner_products(rows.compiled, which[:100], which, ours, four)
    core.inner_products(rows.compiled, which[:100], which, theirs, ALONE)
    np.testing.assert_array_equal(ours, theirs)


def test_the_core_trusts_no_one():
    good = Rows(sparse.csr_matrix(np.ones((2, 3)))).stored_data
    assert core.MonomialData(good, 1, [1.0, 1.0, 1.0], False, False).columns == 9
    for lowest, scales in ((3, [1.0] * 3), (-1, [1.0] * 3), (0, [1.0] * 2), (0, [1.0, math.nan, 1.0])):
        with pytest.raises(ValueError, match="scales"):
            core.MonomialData(good, lowest, scales, False, False)
    with pytest.raises(ValueError, match="without squares, degree 1 is needed"):
        core.MonomialData(good, 2, [1.0] * 3, True, False)
    for wrong in (np.ones((2, 3)), sparse.csr_matrix(np.ones((2, 3), np.float32))):
        with pytest.raises(ValueError, match="sparse rows of float64"):
            core.MonomialData(Rows(wrong).stored_data, 1, [1.0] * 3, False, False)
    backwards = core.Data.sparse(np.ones(2), np.array([1, 0], np.int32), np.array([0, 2], np.int32), 3)
    with pytest.raises(ValueError, match="in order"):
        core.MonomialData(backwards, 1, [1.0] * 3, False, False)
    rows = Rows(Monomials(2, lazy=True).fit_transform(np.ones((2, 3))))
    with pytest.raises(ValueError, match="one number per column"):
        rows.scores(np.ones(3))


# ---- the same problem ----------------------------------------------------------------------------


def labels_for(phi, seed=5):
    """Of a quadratic rule, with some of them wrong."""
    random = np.random.default_rng(seed)
    scores = phi @ random.normal(size=phi.shape[1])
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    y[random.choice(len(y), len(y) // 10, replace=False)] *= -1.0
    return y


def problems(loss, intercept, form="kernel", n=40, d=6, C=0.3):
    X = some_rows(n, d, seed=6)
    rows, phi = both(X, **FORMS[form])
    y = labels_for(phi)
    options = {"loss": loss, "intercept": intercept}
    return Problem.of(rows, y, C, **options), Problem.of(phi, y, C, **options)


TAKEN = [
    (name, loss, intercept)
    for name, loss, intercept in itertools.product(
        LINEAR_SOLVERS, ["hinge", "squared_hinge", "logistic"], ["none", "regularised", "exact"]
    )
    if SOLVERS[name]().accepts(problems(loss, intercept)[1]) is None
]
"""What the solvers take when it is written out."""


@pytest.mark.parametrize(("name", "loss", "intercept"), TAKEN)
def test_every_solver_reaches_the_optimum_of_the_written_out_problem(name, loss, intercept):
    lazy, written = problems(loss, intercept)
    solver = SOLVERS[name]()
    assert solver.accepts(lazy) is None
    slow = name in ("subgradient", "stochastic_subgradient", "pegasos", "perceptron")
    tol = 0.2 if slow else 1e-6
    model = solve(lazy, solver, tol=tol, max_steps=3000)
    best = solve(written, "quadratic_program" if loss != "logistic" else "newton", tol=1e-9)
    proof, room = model.certificate, 1e-8 * best.certificate.primal
    assert proof.relative_gap <= tol
    assert proof.dual <= best.certificate.primal + room
    assert proof.primal >= best.certificate.dual - room
    # The same numbers for the same multipliers, from rows of the other kind.
    again = certify(written, Solution(w=model.w, b=model.b, alpha=model.alpha))
    assert again.primal <= proof.primal * (1 + 1e-9)
    assert again.dual >= proof.dual - 1e-9 * abs(proof.dual)


@pytest.mark.parametrize("form", FORMS)
def test_certificates_agree(form):
    lazy, written = problems("hinge", "exact", form)
    random = np.random.default_rng(7)
    for _ in range(3):
        alpha = random.uniform(0.0, lazy.upper)
        w = random.normal(size=lazy.rows.columns)
        ours, theirs = (certify(problem, Solution(w=w, b=0.3, alpha=alpha)) for problem in (lazy, written))
        assert ours.primal == pytest.approx(theirs.primal, rel=1e-9)
        assert ours.dual == pytest.approx(theirs.dual, rel=1e-9)
        np.testing.assert_allclose(ours.margins, theirs.margins, rtol=1e-9, atol=1e-9)


def test_the_ascent_takes_the_same_steps():
    X = sparse.random_array((400, 30), density=0.2, format="csr", rng=np.random.default_rng(8))
    lazy, phi = (Monomials(2, lazy=lazy).fit_transform(X) for lazy in (True, False))
    y = labels_for(phi)
    models = [
        solve(Problem.of(rows, y, 2.0), "dual_coordinate_ascent", tol=1e-4, max_steps=500)
        for rows in (lazy, phi)
    ]
    assert models[0].steps == models[1].steps
    np.testing.assert_allclose(models[0].alpha, models[1].alpha, rtol=1e-6, atol=1e-9)


def test_newtons_method_on_its_three_sides():
    # Few columns: the small step. More: blocks, or sparse outer products. Many: one unknown per row.
    random = np.random.default_rng(9)
    for n, d, density in ((300, 5, 0.9), (300, 14, 0.9), (900, 25, 0.15), (60, 40, 0.5)):
        X = sparse.random_array((n, d), density=density, format="csr", rng=random)
        lazy, phi = (Monomials(2, lazy=lazy).fit_transform(X) for lazy in (True, False))
        y = labels_for(phi)
        for loss, name in (("hinge", "augmented_lagrangian"), ("squared_hinge", "newton")):
            ours, theirs = (
                solve(Problem.of(rows, y, 1.0, loss=loss), name, tol=1e-7).certificate
                for rows in (lazy, phi)
            )
            assert ours.relative_gap <= 1e-7
            assert ours.primal == pytest.approx(theirs.primal, rel=2e-7)


def test_path_and_hard_margin():
    lazy, written = problems("hinge", "exact", n=60)
    ours, theirs = (path(problem, [0.1, 1.0, 10.0], tol=1e-6) for problem in (lazy, written))
    assert ours.certified
    np.testing.assert_allclose(ours.primal, theirs.primal, rtol=2e-6)
    X = some_rows(n=25, d=8, seed=10)
    X[12] = 1.0  # no row is empty
    y = np.where(X[:, 0] * X[:, 1] > X[:, 2] ** 2, 1, -1)
    rows = Monomials(2, lazy=True).fit_transform(X)
    written = rows.expand()
    ours, theirs = (LinearSVC(C=math.inf).fit(phi, y) for phi in (rows, written))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    twice = LazyMonomials(np.vstack([X, X]), rows.expansion)
    with pytest.raises(InseparableError):
        LinearSVC(C=math.inf).fit(twice, np.concatenate([y, -y]))


# ---- estimators ----------------------------------------------------------------------------------


def test_a_pipeline_is_the_written_out_one():
    X, y = some_rows(200, 12, seed=11), None
    y = np.where(labels_for(Monomials(2).fit_transform(X)) > 0, "yes", "no")
    pipelines = [make_pipeline(Monomials(2, lazy=lazy), LinearSVC(tol=1e-8)) for lazy in (True, False)]
    ours, theirs = (clone(pipeline).fit(X, y) for pipeline in pipelines)
    np.testing.assert_allclose(ours[-1].coef_, theirs[-1].coef_, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)
    scores = [cross_val_score(pipeline, X, y, cv=3) for pipeline in pipelines]
    np.testing.assert_allclose(scores[0], scores[1], atol=0.02)
    assert list(ours[0].get_feature_names_out()) == list(theirs[0].get_feature_names_out())
    assert ours[-1].n_features_in_ == len(ours[0].get_feature_names_out())


def test_what_a_model_predicts_from():
    X = some_rows(80, 7, seed=12)
    expansion = Monomials(2, lazy=True, scaling="kernel")
    lazy = expansion.fit_transform(X)
    y = labels_for(lazy.expand())
    model = LinearSVC().fit(lazy, y)
    assert model.expansion_ == expansion.expansion_
    assert model.n_features_in_ == lazy.shape[1] == model.coef_.shape[1]
    expected = lazy.expand() @ model.coef_[0] + model.intercept_
    for given in (lazy, X, sparse.csr_array(X), X.tolist(), lazy.expand()):
        np.testing.assert_allclose(model.decision_function(given), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(lazy[[5, 3]]), expected[[5, 3]], rtol=1e-10)
    with pytest.raises(
        ValueError, match=r"X has 6 features, but LinearSVC is expecting 7 features, or their 36"
    ):
        model.predict(X[:, :6])
    with pytest.raises(ValueError, match="is expecting 36 features"):
        model.predict(LazyMonomials(X[:, :6], Expansion(6, 0, (1.0, 1.0, 1.0))))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, 7), np.nan))
    model.fit(X, y)
    assert not hasattr(model, "expansion_")
    assert model.n_features_in_ == 7


def test_several_classes_and_weights():
    X = some_rows(150, 6, seed=13)
    lazy = Monomials(2, lazy=True).fit_transform(X)
    random = np.random.default_rng(14)
    y = (lazy.expand() @ random.normal(size=(lazy.shape[1], 3))).argmax(axis=1)
    weights = random.integers(0, 3, len(y)).astype(float)
    ours, theirs = (
        LinearSVC(tol=1e-6, class_weight="balanced").fit(phi, y, sample_weight=weights)
        for phi in (lazy, lazy.expand())
    )
    for one, other in zip(ours.certificate_, theirs.certificate_, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=3e-6)
    assert ours.decision_function(X).shape == (150, 3)
    assert np.mean(ours.predict(X) == theirs.predict(lazy.expand())) > 0.98


def test_choosing_C():
    X = some_rows(120, 6, seed=15)
    lazy = Monomials(2, lazy=True).fit_transform(X)
    y = labels_for(lazy.expand())
    ours, theirs = (
        LinearSVCCV(Cs=[0.01, 1.0], cv=3, tol=1e-6, random_state=0).fit(phi, y)
        for phi in (lazy, lazy.expand())
    )
    assert ours.C_ == theirs.C_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.02
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(lazy.expand()))
    scored = LinearSVCCV(Cs=[1.0], cv=3, scoring=lambda model, X, y: model.score(X, y)).fit(lazy, y)
    assert scored.best_score_ > 0.5


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_rows_with_nothing_in_them(loss):
    y = np.array([1, 1, 1, -1])
    for X in (np.zeros((4, 3)), np.zeros((4, 1)), np.eye(4)[:, :1], sparse.csr_array((4, 5))):
        lazy = Monomials(2, lazy=True).fit_transform(X)
        written = lazy.expand()
        ours, theirs = (LinearSVC(loss=loss).fit(phi, y).certificate_ for phi in (lazy, written))
        assert ours.primal == pytest.approx(theirs.primal, rel=1e-6)
    one = Monomials(2, lazy=True).fit_transform([[2.0, 3.0]])
    assert Rows(one).scores(np.array([1.0, 10.0, 100.0, 1e3, 1e4])).tolist() == [32.0 + 400.0 + 6e3 + 9e4]


def test_the_automatic_choice():
    small, large = np.ones((100, 20)), np.ones((20_000, 20))

    def result(X, degree=2, **options):
        expansion = Monomials(degree, lazy="auto", **options)
        mapped = expansion.fit_transform(X)
        assert isinstance(expansion.transform(small), LazyMonomials) == expansion.lazy_  # as for X
        return mapped

    assert isinstance(result(sparse.csr_array(small)), LazyMonomials)
    assert isinstance(result(large), LazyMonomials)
    assert isinstance(result(small, max_bytes=10_000), LazyMonomials)
    np.testing.assert_array_equal(result(small), Monomials(2).fit_transform(small))
    assert result(sparse.csr_array(small), degree=3).shape == (100, 1770)


# ---- what cannot be ------------------------------------------------------------------------------


def test_weights_that_do_not_fit_are_refused_before_memory_is_taken():
    X = sparse.random_array((50, 100_000), density=1e-4, format="csr", rng=np.random.default_rng(16))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"5,000,150,000 columns .* their weights alone take 40.0 GB"):
        Monomials(2, lazy=True).fit(X)
    with pytest.raises(ValueError, match=r"5,000,150,000 columns"):
        Monomials(2, lazy="auto").fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e7


def test_column_numbers_beyond_32_bits():
    # 70,000 columns have 2,450,105,000 monomials; a w of that size would not fit, so the numbers alone.
    X = sparse.csr_array((np.array([2.0, 3.0]), np.array([69_998, 69_999]), np.array([0, 2])), (1, 70_000))
    rows = Rows(LazyMonomials(X, Expansion(70_000, 1, (1.0, 1.0, 1.0))))
    assert rows.columns == 2_450_105_000
    assert rows.stored == 5
    assert rows.squared_norms.tolist() == [4.0 + 9.0 + 16.0 + 36.0 + 81.0]


def test_refusals_name_the_cure():
    X, y = some_rows(20, 3), np.arange(20) % 2
    with pytest.raises(
        ValueError, match=r"'lazy' parameter of Monomials must be False with degree=3.*degree=2"
    ):
        Monomials(3, lazy=True).fit(X)
    with pytest.raises(
        ValueError, match="'lazy' parameter of Monomials must be one of 'auto', True, False"
    ):
        Monomials(2, lazy="always").fit(X)
    lazy = Monomials(2, lazy=True).fit_transform(X)
    for other in (SVC(), ScikitLinearSVC()):
        with pytest.raises(TypeError, match=r"not written out.*lazy=False.*kernel='poly'"):
            other.fit(lazy, y)
    with pytest.raises(ValueError, match="Stored rows are needed"):
        KernelRows(lazy, Linear())
    with pytest.raises(ValueError, match="degree 3"):
        LazyMonomials(X, Expansion(3, 1, (1.0,) * 4))
    with pytest.raises(ValueError, match="rows with 4 columns"):
        LazyMonomials(X, Expansion(4, 1, (1.0,) * 3))
    with pytest.raises(IndexError, match="Columns cannot be chosen"):
        lazy[:, 2]
    with pytest.raises(ValueError, match="beyond the range"):
        Monomials(2, lazy=True).fit_transform(X * 1e200)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LinearSVC().fit(lazy, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC().fit(lazy, np.where(y == 0, np.nan, 1.0))


def test_rows_are_chosen():
    X = some_rows(20, 5)
    lazy = Monomials(2, lazy=True).fit_transform(X)
    written = lazy.expand()
    mask = np.arange(20) % 3 == 0
    for key in (slice(3, 9), np.array([4, 4, 1]), mask, [2, 3]):
        np.testing.assert_array_equal(lazy[key].expand(), written[key])
    assert len(lazy[mask]) == 7
    assert lazy[5].shape == (1, written.shape[1])
    assert lazy.ndim == 2
    assert repr(lazy) == "<LazyMonomials: 20 rows of 20 monomials of 5 columns>"
    np.testing.assert_allclose(written, Monomials(2).fit_transform(X))
