# SPDX-License-Identifier: BSD-3-Clause
"""Monomials: against scikit-learn's expansion, the polynomial kernel, and exact counts."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

from combinations import every_pair
from maxmargin import core
from maxmargin.features import Interactions, Monomials
from maxmargin.problem.rows import Rows


@pytest.fixture(scope="module")
def X():
    random = np.random.default_rng(0)
    dense = random.normal(size=(30, 7))
    dense[random.uniform(size=dense.shape) < 0.5] = 0.0
    dense[4] = 0.0
    return dense


@every_pair(include_bias=[False, True], interaction_only=[False, True], degree=[1, 2, 3, 4, 5])
def test_plain_monomials_are_scikit_learns(X, degree, interaction_only, include_bias):
    options = dict(degree=degree, interaction_only=interaction_only, include_bias=include_bias)
    theirs = PolynomialFeatures(**options).fit(X)
    ours = Monomials(**options).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-13)
    expanded = ours.transform(sparse.csr_array(X))
    assert isinstance(expanded, sparse.csr_array)
    np.testing.assert_allclose(expanded.toarray(), theirs.transform(X), rtol=1e-13)
    expanded.check_format(full_check=True)
    names = [name.replace(" ", "*") for name in theirs.get_feature_names_out()]
    assert list(ours.get_feature_names_out()) == names


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 1.0), (0.3, 2.5), (2.0, 0.0)])
def test_kernel_scaling_gives_the_polynomial_kernel(X, degree, gamma, coef0):
    expansion = Monomials(degree, scaling="kernel", gamma=gamma, coef0=coef0)
    kernel = (gamma * X @ X.T + coef0) ** degree
    for rows in (X, sparse.csr_array(X)):
        phi = expansion.fit_transform(rows)
        np.testing.assert_allclose(
            np.asarray((phi @ phi.T).todense() if sparse.issparse(phi) else phi @ phi.T),
            kernel,
            rtol=1e-11,
            atol=1e-11,
        )
    columns = math.comb(6 + degree, degree) if coef0 == 0.0 else math.comb(7 + degree, degree)
    assert phi.shape[1] == columns


def test_without_its_constant_the_kernel_lacks_a_constant(X):
    phi = Monomials(2, scaling="kernel", coef0=3.0, include_bias=False).fit_transform(X)
    np.testing.assert_allclose(phi @ phi.T, (X @ X.T + 3.0) ** 2 - 9.0, rtol=1e-11, atol=1e-11)


def test_sparse_results_store_no_zeros_of_their_own(X):
    rows = sparse.csr_array(X)
    stored = np.diff(rows.indptr)
    expanded = Monomials(3).fit_transform(rows)
    assert expanded.nnz == sum(math.comb(int(m) + 3, 3) - 1 for m in stored)
    assert expanded.has_canonical_format


def test_unsorted_and_repeated_indices_are_put_in_order(X):
    tidy = sparse.csr_array(X)
    shuffled = tidy.copy()
    for begin, end in zip(tidy.indptr, tidy.indptr[1:], strict=False):
        shuffled.indices[begin:end] = tidy.indices[begin:end][::-1]
        shuffled.data[begin:end] = tidy.data[begin:end][::-1]
    shuffled.has_sorted_indices = False
    np.testing.assert_allclose(
        Monomials(2).fit_transform(shuffled).toarray(), Monomials(2).fit_transform(X), rtol=1e-13
    )
    twice = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    np.testing.assert_array_equal(Monomials(2).fit_transform(twice).toarray(), [[3.0, 0.0, 9.0, 0.0, 0.0]])


def test_types_of_indices(X):
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    expanded = Monomials(2).fit_transform(wide)
    assert expanded.indices.dtype == expanded.indptr.dtype == np.int32
    np.testing.assert_allclose(expanded.toarray(), Monomials(2).fit_transform(X), rtol=1e-13)
    # 100,000 columns have 5,000,150,000 monomials of degree 1 and 2: too many for 32 bits.
    place = np.array([99_998, 99_999])
    long = sparse.csr_array((np.array([2.0, 3.0]), place, np.array([0, 2])), shape=(1, 100_000))
    expanded = Monomials(2, max_bytes=10**11).fit_transform(long)
    assert expanded.shape == (1, 5_000_150_000)
    assert expanded.indices.dtype == np.int64
    assert expanded.indices.tolist() == [99_998, 99_999, 5_000_149_997, 5_000_149_998, 5_000_149_999]
    assert expanded.data.tolist() == [2.0, 3.0, 4.0, 6.0, 9.0]


def test_several_threads_write_the_same():
    random = np.random.default_rng(1)
    X = sparse.random_array((20_000, 40), density=0.3, format="csr", rng=random)
    rows = Rows(X).compiled
    monomials = core.Monomials(40, 1, [1.0, 1.0, 1.0], False, False)
    stored = np.diff(X.indptr).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(stored + stored * (stored + 1) // 2)))

    def expanded(offsets, threads):
        indices, values = np.full(offsets[-1], -1), np.full(offsets[-1], np.nan)
        monomials.expand_sparse(rows, offsets, indices, values, core.Budget(math.inf, threads))
        return indices, values

    one, four = expanded(offsets, 1), expanded(offsets, 4)
    np.testing.assert_array_equal(one[0], four[0])
    np.testing.assert_array_equal(one[1], four[1])
    theirs = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    theirs.sort_indices()
    np.testing.assert_array_equal(four[0], theirs.indices)
    np.testing.assert_allclose(four[1], theirs.data, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_results_are_whole_and_stay_without_a_copy(dtype):
    X = sparse.random_array(
        (6_000, 60), density=0.3, format="csr", rng=np.random.default_rng(2), dtype=dtype
    )
    expanded = Monomials(2).fit_transform(X)
    assert expanded.indices.nbytes > 2**22
    expanded.check_format(full_check=True)
    theirs = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    theirs.sort_indices()
    np.testing.assert_array_equal(expanded.indptr, theirs.indptr)
    np.testing.assert_array_equal(expanded.indices, theirs.indices)
    np.testing.assert_allclose(expanded.data, theirs.data, rtol=4 * np.finfo(dtype).eps)
    # SciPy copies what it takes for a small part of something larger.
    values, indices = expanded.data, expanded.indices
    expanded.prune()
    assert np.shares_memory(expanded.data, values)
    assert np.shares_memory(expanded.indices, indices)


def test_the_core_trusts_no_one():
    X = sparse.csr_array([[1.0, 2.0], [0.0, 3.0]])
    rows = Rows(X).compiled
    monomials = core.Monomials(2, 1, [1.0, 1.0, 1.0], False, False)
    offsets = np.array([0, 5, 7])
    indices, values = np.empty(7, np.int64), np.empty(7)
    monomials.expand_sparse(rows, offsets, indices, values, core.ALL_CORES)
    assert indices.tolist() == [0, 1, 2, 3, 4, 1, 4]
    assert values.tolist() == [1.0, 2.0, 1.0, 2.0, 4.0, 3.0, 9.0]
    for wrong in ([0, 4, 7], [0, 5], [1, 5, 7], []):
        with pytest.raises(ValueError, match="offsets must be those of the expansion"):
            monomials.expand_sparse(rows, np.array(wrong, np.int64), indices, values, core.ALL_CORES)
    for places in ((indices[:-1], values), (indices, values[:-1]), (indices.astype(np.int32), values)):
        with pytest.raises(ValueError, match="a place of the right type"):
            monomials.expand_sparse(rows, offsets, *places, core.ALL_CORES)
    with pytest.raises(ValueError, match="int32 or int64"):
        monomials.expand_sparse(rows, offsets.astype(float), indices, values, core.ALL_CORES)
    with pytest.raises(ValueError, match="dense rows are needed"):
        monomials.expand_dense(rows, values, core.ALL_CORES)
    dense = core.Data.dense(np.ones((2, 2)))
    with pytest.raises(ValueError, match="sparse rows are needed"):
        monomials.expand_sparse(dense, offsets, indices, values, core.ALL_CORES)
    with pytest.raises(ValueError, match="a place of the right type"):
        monomials.expand_dense(dense, np.empty(9), core.ALL_CORES)
    with pytest.raises(ValueError, match="as many columns"):
        core.Monomials(3, 1, [1.0, 1.0], False, False).expand_dense(dense, values, core.ALL_CORES)
    with pytest.raises(ValueError, match="too many to be counted"):
        core.Monomials(10_000, 1, [1.0] * 20, False, False)
    with pytest.raises(ValueError, match="degrees from 0 to 255"):
        core.Monomials(2, 0, [1.0] * 257, False, False)


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
@pytest.mark.parametrize("columns", [1, 2, 9, 20])
def test_rows_at_the_end_and_empty_rows(rows, columns):
    # The compiled loop writes ahead into rows that follow, and must stop where none do.
    X = np.arange(1.0, 1.0 + rows * columns).reshape(rows, columns) / (rows * columns)
    X[rows // 2 :: 2] = 0.0
    theirs = PolynomialFeatures(3, include_bias=False).fit_transform(X)
    np.testing.assert_allclose(Monomials(3).fit_transform(X), theirs, rtol=1e-13)
    np.testing.assert_allclose(
        Monomials(3).fit_transform(sparse.csr_array(X)).toarray(), theirs, rtol=1e-13
    )


def test_sizes_are_predicted_and_refused_before_memory_is_taken():
    X = np.ones((1000, 40))
    tracemalloc.start()
    with pytest.raises(
        ValueError, match=r"377,348,993 columns out of 40.*PolynomialSketch.*kernel=\"poly\""
    ):
        Monomials(8).fit(X)
    with pytest.raises(ValueError, match=r"314,457,495 columns.*2,518 GB"):
        Monomials(8, scaling="kernel", coef0=0.0).fit(X)  # of degree 8 alone, as 003 counts them
    with pytest.raises(ValueError, match="columns"):
        Monomials(255).fit(sparse.csr_array(np.ones((2, 5000))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * X.nbytes


def test_the_limit_counts_the_rows_that_are_mapped():
    X = np.ones((100, 10))
    expansion = Monomials(2, max_bytes=100 * 65 * 8 + 65 * 8).fit(X)
    assert expansion.transform(X).shape == (100, 65)
    with pytest.raises(ValueError, match=r"65 columns out of 10.*max_bytes"):
        expansion.transform(np.ones((101, 10)))
    with pytest.raises(ValueError, match="Interactions would make 45 columns"):
        Interactions(max_bytes=1000).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": 0}, "'degree' parameter of Monomials must be an int in the range"),
        ({"degree": 256}, r"must be an int in the range \[1, 255\]"),
        ({"scaling": "none"}, "'scaling' parameter of Monomials must be one of 'plain', 'kernel'"),
        ({"scaling": "kernel", "interaction_only": True}, "use scaling='plain'"),
        ({"coef0": -1.0}, "the function is not a kernel"),
        ({"gamma": 0.0}, "'gamma' parameter"),
        ({"scaling": "kernel", "gamma": 1e200}, "within the range of floats"),
        ({"scaling": "kernel", "gamma": 1e154}, "within the range of floats"),
        ({"include_bias": 2}, "'include_bias' parameter"),
        ({"max_bytes": 0}, "'max_bytes' parameter"),
    ],
)
def test_wrong_parameters(X, options, message):
    with pytest.raises(ValueError, match=message):
        Monomials(**options).fit(X)
