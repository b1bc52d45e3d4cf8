# SPDX-License-Identifier: BSD-3-Clause
"""Products with half of a kernel matrix, and conjugate gradients on the multipliers that are free."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, core, solve
from maxmargin.kernels import Gaussian, KernelRows, Polynomial
from maxmargin.solvers import WorkingSet, working_set

UNLIMITED = core.Budget(np.inf, 1)


def matrix_of(X, kernel, *, single=False, cache_bytes=1 << 26, parts=1):
    """A matrix of the core on X, its rows in so many blocks, and its values by NumPy."""
    rows = KernelRows(X, kernel)
    n = rows.count
    begins = np.linspace(0, n, min(parts, n) + 1).astype(np.intp)
    matrix = core.KernelMatrix(
        rows.data, kernel.compiled, np.arange(n), begins, cache_bytes=cache_bytes, single=single
    )
    inner = X @ X.T
    inner = np.asarray(inner.todense() if sparse.issparse(X) else inner, np.float64)
    norms = np.diag(inner)
    K = np.exp(-kernel.gamma * (norms[:, None] + norms - 2.0 * inner))
    block = np.searchsorted(begins, np.arange(n), side="right")
    return matrix, K * (block[:, None] == block)


def rows_of(kind, n):
    """Rows that the core holds in this way."""
    rng = np.random.default_rng(n)
    if kind == "bits":
        return (rng.random((n, 70)) < 0.3).astype(np.float64)
    if kind == "bytes":
        return rng.integers(0, 200, (n, 40)) / 100.0
    if kind == "sparse":
        return sparse.random_array((n, 900), density=0.02, rng=rng, format="csr")
    return rng.normal(size=(n, 5))


@pytest.mark.parametrize("kind", ["bits", "bytes", "sparse", "dense"])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200, 1303])
@pytest.mark.parametrize("parts", [1, 3])
def test_product_is_that_of_all_values(kind, n, parts):
    matrix, K = matrix_of(rows_of(kind, n), Gaussian(0.05), parts=parts)
    p, out = np.random.default_rng(0).normal(size=n), np.empty(n)
    for _ in range(2):  # the second time from memory, where values are kept
        assert matrix.multiply(p, out, UNLIMITED)
        np.testing.assert_allclose(out, K @ p, atol=1e-11 * np.abs(p).sum())
    assert matrix.encoding == kind or n < 63


@pytest.mark.parametrize("kind", ["bits", "sparse", "dense"])
def test_product_is_the_same_for_any_number_of_threads_and_without_memory(kind):
    X, n = rows_of(kind, 3000), 3000
    p, products = np.random.default_rng(1).normal(size=n), []
    for threads, cache_bytes in ((1, 1 << 28), (2, 1 << 28), (2, 0)):
        matrix, _ = matrix_of(X, Gaussian(0.05), single=True, cache_bytes=cache_bytes)
        out = np.empty(n)
        for _ in range(2):
            assert matrix.multiply(p, out, core.Budget(np.inf, threads))
            products.append(out.copy())
    assert all(np.array_equal(products[0], product) for product in products)


def test_half_of_the_matrix_takes_the_place_of_rows_and_gives_it_back():
    n = 1000
    X = rows_of("sparse", n)
    counts, rows = core.CacheCounts(), KernelRows(X, Gaussian(0.05))
    half = 8 * 64 * 64 * (16 * 17 // 2)
    matrix = core.KernelMatrix(
        rows.data,
        rows.kernel.compiled,
        np.arange(n),
        np.array([0, n]),
        cache_bytes=half + 8 * n,
        single=False,
        counts=counts,
    )
    f = np.zeros(n)
    matrix.add(np.arange(n), np.ones(n), f, UNLIMITED)
    assert 0 < counts.peak_bytes <= half + 8 * n
    dual = core.KernelDual(np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n))
    gradients = core.ConjugateGradients(matrix)
    gradients.run(dual, 2, UNLIMITED)
    assert matrix.cached_bytes == 0
    matrix.add(np.arange(5), np.ones(5), f, UNLIMITED)
    assert matrix.cached_bytes == 8 * n  # there is room for one row
    del gradients
    matrix.add(np.arange(5), np.ones(5), f, UNLIMITED)
    assert matrix.cached_bytes == 5 * 8 * n
    assert counts.peak_bytes <= half + 8 * n


def test_without_walls_they_find_the_solution_of_the_system():
    n = 150
    X = np.random.default_rng(3).normal(size=(n, 4))
    y = np.where(np.arange(n) % 3, 1.0, -1.0)
    matrix, K = matrix_of(X, Gaussian(20.0))
    dual = core.KernelDual(y, np.full(n, 1e6))
    dual.beta[:] = 1e-3 * y - 1e-3 * y.mean()
    dual.restore_gradient(matrix, UNLIMITED)
    total, gradients = dual.beta.sum(), core.ConjugateGradients(matrix)
    for _ in range(8):
        gradients.run(dual, 40, UNLIMITED)
    bordered = np.block([[K, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    best = np.linalg.solve(bordered, np.append(y, total))[:n]
    np.testing.assert_allclose(dual.beta, best, atol=1e-6)
    np.testing.assert_allclose(dual.f, K @ dual.beta - y, atol=1e-9)


@pytest.mark.parametrize("C", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
def test_the_dual_value_rises_inside_the_box_up_to_the_optimum(C, gamma):
    n, rng = 400, np.random.default_rng(4)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    matrix, K = matrix_of(X, Gaussian(gamma))
    dual, gradients = core.KernelDual(y, np.full(n, C)), core.ConjugateGradients(matrix)
    rounds = core.WorkingSet(matrix, 64, 0)
    rounds.run(dual, 3, UNLIMITED)

    def value():
        return y @ dual.beta - 0.5 * dual.beta @ K @ dual.beta

    for turn in range(60):
        before = value()
        gradients.run(dual, 1 + turn % 10, UNLIMITED)
        assert value() >= before - 1e-12 * abs(before)
        assert (y * dual.beta >= 0.0).all()
        assert (y * dual.beta <= C).all()
        assert abs(dual.beta.sum()) <= 1e-11 * n * C
        np.testing.assert_allclose(dual.f, K @ dual.beta - y, atol=1e-9 * n * C)
        rounds.run(dual, 1, UNLIMITED)
    best = solve(Problem.of(KernelRows(X, Gaussian(gamma)), y, C), tol=1e-6).certificate
    assert value() == pytest.approx(best.dual, rel=1e-4)


def test_a_turn_that_is_cut_short_changes_nothing():
    n = 600
    X = np.random.default_rng(5).normal(size=(n, 3))
    matrix, _ = matrix_of(X, Gaussian(1.0))
    dual = core.KernelDual(np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n))
    before = dual.f.copy()
    spent = core.Budget(np.inf, 1)
    spent.stop()
    assert core.ConjugateGradients(matrix).run(dual, 5, spent) == 0
    assert not dual.beta.any()
    np.testing.assert_array_equal(dual.f, before)


def test_they_refuse_a_kink_and_two_totals():
    n = 10
    matrix, _ = matrix_of(np.eye(n), Gaussian(1.0))
    gradients = core.ConjugateGradients(matrix)
    kinked = core.KernelDual(-np.ones(n), np.ones(n), np.zeros(n), np.full(n, 0.1))
    sides = core.KernelDual(np.ones(n), np.ones(n))
    sides.take_sides()
    for dual in (kinked, sides):
        with pytest.raises(ValueError, match="one total and no kink"):
            gradients.run(dual, 5, UNLIMITED)


@pytest.mark.parametrize("kernel", [Gaussian(4.0), Gaussian(0.2), Polynomial(3)])
def test_the_solver_takes_turns_and_proves_the_same(kernel, monkeypatch):
    n, rng = 2300, np.random.default_rng(6)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    problem = Problem.of(KernelRows(X, kernel), y, 10.0)
    alone = solve(problem, "working_set", tol=1e-4, max_steps=3000)
    turns = []
    follow = WorkingSet._follow_gradients
    monkeypatch.setattr(
        WorkingSet, "_follow_gradients", lambda self, *given: (turns.append(1), follow(self, *given))
    )
    monkeypatch.setattr(working_set, "MOST_FREE_ROWS", 100)
    monkeypatch.setattr(working_set, "_MOSTLY_FREE", 0.0)
    monkeypatch.setattr(working_set, "_OF_SUPPORT", 0.0)
    monkeypatch.setattr(working_set, "_FIRST_OF_CHEAP", 0.1)
    taken = [solve(problem, "working_set", tol=1e-4, max_steps=3000) for _ in range(2)]
    assert turns
    assert taken[0].certificate.relative_gap <= max(1e-4, alone.certificate.relative_gap)
    assert np.array_equal(taken[0].certificate.alpha, taken[1].certificate.alpha)
