# SPDX-License-Identifier: BSD-3-Clause
"""Blocks leave out only what they say, and a certificate with blocks still holds for the whole problem."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from combinations import every_pair
from maxmargin import Problem, Rows, core, solve
from maxmargin.kernels import ChiSquared, Gaussian, KernelRows, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.kernels.uncoupled import split, whole

LOCAL = {
    "gaussian": Gaussian(6.0),
    "laplacian": Laplacian(12.0),
    "multiple": 3.0 * Gaussian(6.0),
    "sum": Gaussian(6.0) + 0.5 * Laplacian(12.0),
    "product": Gaussian(4.0) * Laplacian(6.0),
    "bounded factor": Gaussian(6.0) * Sigmoid(0.1, 0.2),
}


def clusters(seed, count=160, kind="one-hot"):
    """Clusters whose distance shows in two columns, in one, or in one that is cut many times."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, count)
    noise = rng.uniform(0.0, 0.5, (count, 2))
    if kind == "one-hot":
        return np.hstack([np.eye(4)[group] * 1.2, noise])
    if kind == "one column":
        return np.hstack([2.5 * group[:, None] + 0.3 * noise[:, :1], noise])
    return np.hstack([rng.permutation(count)[:, None] * 2.5, noise])


def values(kernel, X):
    """The kernel matrix in plain NumPy."""
    difference = X[:, None, :] - X[None, :, :]
    square, distance, product = (difference**2).sum(2), np.abs(difference).sum(2), X @ X.T
    total = np.zeros_like(product)
    for coefficient, factors in kernel.terms:
        term = np.full_like(product, coefficient)
        for common, shape, gamma, shift, _ in factors:
            if shape == "tanh":
                term *= np.tanh(gamma * product + shift)
            else:
                term *= np.exp(-gamma * (square if common == "product" else distance))
        total += term
    return total


def largest_across(blocks, K):
    number = np.empty(len(K), int)
    for k, members in enumerate(blocks.members()):
        number[members] = k
    return np.abs(K[number[:, None] != number]).max(initial=0.0)


def check_form(blocks, count):
    np.testing.assert_array_equal(np.sort(blocks.order), np.arange(count))
    sizes = np.diff(blocks.begins)
    assert blocks.begins[0] == 0
    assert blocks.begins[-1] == count
    assert (np.diff(sizes) <= 0).all()
    assert (sizes > 0).all()


@every_pair(
    layout=[np.asarray, sparse.csr_matrix, np.float32],
    kind=["one-hot", "one column", "many cuts"],
    name=LOCAL,
)
def test_what_is_left_out_is_bounded(name, kind, layout):
    kernel = LOCAL[name]
    X = layout(clusters(0, kind=kind))
    error, total_cost = 1e-3, 3.0
    blocks = split(Rows(X), kernel, total_cost, error)
    assert len(blocks) > 1
    check_form(blocks, X.shape[0])
    exact = np.asarray(X.todense() if sparse.issparse(X) else X, np.float64)
    assert largest_across(blocks, values(kernel, exact)) <= blocks.left_out
    assert 0 < 2 * blocks.left_out * total_cost**2 <= error


@given(
    seed=st.integers(0, 10_000),
    kernel=st.sampled_from(list(LOCAL.values())),
    count=st.integers(64, 200),
    scale=st.floats(0.1, 10.0),
    digits=st.integers(0, 2),
    error=st.floats(1e-12, 1.0),
    some=st.booleans(),
)
@settings(max_examples=150)
def test_the_bound_holds_for_any_data(seed, kernel, count, scale, digits, error, some):
    rng = np.random.default_rng(seed)
    X = np.round(scale * rng.standard_normal((count, 3)), digits) * (rng.random((count, 3)) < 0.7)
    which = rng.permutation(count)[: rng.integers(32, count)] if some else None
    used = X if which is None else X[which]
    blocks = split(Rows(sparse.csr_matrix(X)), kernel, 2.0, error, which)
    check_form(blocks, len(used))
    assert largest_across(blocks, values(kernel, used)) <= blocks.left_out
    assert 8.0 * blocks.left_out <= error


def test_two_columns_that_change_together_separate():
    """exp(-12.8) is too large for this budget, exp(-25.6) is not: neither column would do alone."""
    X, kernel = clusters(1), Gaussian(6.0)
    blocks = split(Rows(X), kernel, 1.0, 1e-6)
    assert len(blocks) == 4
    np.testing.assert_allclose(blocks.left_out, np.exp(-6.0 * 2 * 1.2**2), rtol=1e-9)
    for members in blocks.members():
        assert len(np.unique(X[members, :4].argmax(axis=1))) == 1


def test_more_cells_than_are_compared():
    """2,000 rows of their own: the smallest cut bounds all pairs, and small blocks are put together."""
    X = 5.0 * np.random.default_rng(0).permutation(2_000)[:, None].astype(float)
    blocks = split(Rows(X), Gaussian(2.0), 1.0, 1e-6)
    check_form(blocks, 2_000)
    assert 20 < len(blocks) <= 2_000 / 32 + 1
    assert np.exp(-50.0) <= blocks.left_out <= np.exp(-50.0) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("kernel", "total_cost", "error"),
    [
        (Linear(), 1.0, 1.0),
        (Polynomial(2, 1.0, 1.0), 1.0, 1.0),
        (ChiSquared(50.0), 1.0, 1.0),
        (Gaussian(6.0) + Linear(), 1.0, 1.0),
        (Gaussian(6.0) * Linear(), 1.0, 1.0),
        (Gaussian(1e-3), 1.0, 1e-3),
        (Gaussian(6.0), 1.0, 0.0),
        (Gaussian(6.0), 1e200, 1.0),
        (Gaussian(6.0), 0.0, 1.0),
    ],
    ids=str,
)
def test_no_split_without_a_proof(kernel, total_cost, error):
    blocks = split(Rows(clusters(2)), kernel, total_cost, error)
    assert len(blocks) == 1
    assert blocks.left_out == 0.0
    check_form(blocks, 160)


def test_no_split_that_does_not_pay():
    X = clusters(3, 400, "one column")
    X[:360, 0] = 0.0
    X[360:, 0] = 100.0
    assert len(split(Rows(X), Gaussian(6.0), 1.0, 1e-3)) == 1  # 0.9^2 + 0.1^2 of all pairs are left


def test_values_beyond_all_squares():
    X = np.full((100, 2), 1e300)
    X[50:] = -1e300
    blocks = split(Rows(X), Gaussian(1e300), 1.0, 1e-3)
    assert len(blocks) == 2
    assert 0 < blocks.left_out < 1e-300


def test_columns_are_read_as_they_are():
    dense = np.round(np.random.default_rng(0).standard_normal((50, 6)), 1)
    dense[:, 2] = 0.0
    dense[:, 3] = np.abs(dense[:, 3]) + 1.0
    dense[::2, 4] = 0.0
    which = np.array([3, 40, 7, 7])
    for X in (
        dense,
        dense.astype(np.float32),
        sparse.csr_matrix(dense),
        sparse.csr_matrix(dense, dtype="f"),
    ):
        data = Rows(X).compiled
        exact = np.asarray(X.todense() if sparse.issparse(X) else X, np.float64)
        low, high = np.empty(6), np.empty(6)
        core.column_ranges(data, which, low, high, core.ALL_CORES)
        np.testing.assert_array_equal(low, exact[which].min(axis=0))
        np.testing.assert_array_equal(high, exact[which].max(axis=0))
        out = np.zeros((3, 4))
        core.read_columns(data, which, np.array([5, 0, 4]), out)
        np.testing.assert_array_equal(out, exact[which][:, [5, 0, 4]].T)
    with pytest.raises(ValueError, match="column is out of range"):
        core.read_columns(data, which, np.array([6]), np.zeros((1, 4)))
    with pytest.raises(ValueError, match="row is out of range"):
        core.column_ranges(data, np.array([50]), low, high, core.ALL_CORES)


def optimum(K, y, C):
    """The dual of the whole problem, by Clarabel."""
    n = len(y)
    P = sparse.csc_matrix(np.triu(K * np.outer(y, y) + 1e-12 * np.eye(n)))
    A = sparse.csc_matrix(np.vstack([y[None], np.eye(n), -np.eye(n)]))
    limits = np.concatenate([[0.0], np.full(n, C), np.zeros(n)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_rel = options.tol_gap_abs = options.tol_feas = 1e-10
    return -clarabel.DefaultSolver(P, -np.ones(n), A, limits, cones, options).solve().obj_val


@pytest.mark.parametrize("kernel", [Gaussian(4.0), Laplacian(5.0)], ids=str)
@pytest.mark.parametrize(("C", "error"), [(0.05, 1e-3), (0.5, 0.5)])
def test_a_certificate_with_blocks_holds_for_the_whole_problem(kernel, C, error):
    """Also where so much is left out that the best point of the blocks is not the best of the whole."""
    X = clusters(4, 120)
    rng = np.random.default_rng(4)
    y = np.where(rng.random(120) < 0.5, 1.0, -1.0)
    blocks = split(Rows(X), kernel, 120 * C, 120 * C * error)
    assert len(blocks) == 4
    model = solve(Problem.of(KernelRows(X, kernel, blocks=blocks), y, C), "working_set", tol=1e-9)
    best = optimum(values(kernel, X), y, C)
    assert model.certificate.dual <= best * (1 + 1e-9)
    assert model.certificate.primal >= best * (1 - 1e-9)
    assert model.certificate.gap <= 120 * C * error + 1e-6 * best


def test_whole_is_one_block():
    (members,) = whole(5).members()
    np.testing.assert_array_equal(members, np.arange(5))
