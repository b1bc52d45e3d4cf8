# SPDX-License-Identifier: BSD-3-Clause
"""``is_valid`` proves its refusals, and never refuses a kernel for its rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise

from maxmargin.kernels import (
    ChiSquared,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    is_valid,
)

VALID = [
    Linear(),
    Polynomial(3, 0.7, 1.0),
    Polynomial(8, 1.0, 0.0),
    Gaussian(0.01),
    Gaussian(5.0),
    Laplacian(0.5),
    ChiSquared(1.0),
    Linear() + 2.0 * Gaussian(0.5),
    Polynomial(2, 1.0, 1.0) * Laplacian(0.3) + ChiSquared(2.0),
]


def check_proof(found, K, X):
    """The vector is a unit vector over the rows named, and shows what it is said to show."""
    part = K[np.ix_(found.rows, found.rows)]
    np.testing.assert_allclose(np.linalg.norm(found.vector), 1.0, rtol=1e-12)
    value = float(found.vector @ part.astype(np.longdouble) @ found.vector)
    assert abs(value - found.value) <= found.tolerance
    np.testing.assert_allclose(found.smallest_eigenvalue, np.linalg.eigvalsh(part)[0], rtol=1e-6, atol=1e-9)
    if not found.valid:
        assert value < 0


@pytest.mark.parametrize("kernel", VALID, ids=str)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 20),
    columns=st.integers(1, 6),
    scale=st.sampled_from([1e-6, 1.0, 1e4]),
    copies=st.booleans(),
    single=st.booleans(),
)
@settings(max_examples=15)
def test_kernels_are_never_refused(kernel, seed, count, columns, scale, copies, single):
    """Few columns and rows twice over: most eigenvalues are 0, so rounding makes half of them negative."""
    rng = np.random.default_rng(seed)
    X = scale * rng.random((count, columns))
    X = np.vstack([X, X, X * (1 + 1e-9)]) if copies else X
    X = X.astype(np.float32) if single else X
    for data in (X, sparse.csr_matrix(X)):
        found = is_valid(kernel, data)
        assert found, str(found)
    K = kernel(X)
    assert is_valid(Precomputed(), 0.5 * (K + K.T))


@pytest.mark.parametrize(
    "kernel",
    [Sigmoid(1.0, -1.0), Sigmoid(2.0, 0.5), Polynomial(2, 1.0, -1.0), Linear() * Sigmoid(1.0, -1.0)],
    ids=str,
)
def test_what_is_no_kernel_is_refused(kernel):
    X = np.random.default_rng(0).standard_normal((60, 3))
    found = is_valid(kernel, X)
    assert not found
    assert found.asymmetric is None
    assert found.value < -found.tolerance
    assert found.tolerance < 1e-10
    check_proof(found, kernel(X), X)
    assert str(found).startswith("No kernel: a vector v over 60 rows has v'Kv = -")


def test_large_rows_do_not_hide_small_ones():
    """The proof lies among rows whose values are 1e-16 of the largest: less than its rounding."""
    rng = np.random.default_rng(1)
    X = np.vstack([rng.standard_normal((5, 2)), 1e8 * rng.standard_normal((5, 2))])
    kernel = Polynomial(2, 1.0, -1.0)
    found = is_valid(kernel, X)
    assert not found
    assert found.value < -found.tolerance


def test_functions():
    X = np.random.default_rng(2).standard_normal((30, 3))
    assert is_valid(lambda A, B: pairwise.rbf_kernel(A, B, 0.1), X)
    assert is_valid(Function(pairwise.cosine_similarity), X)
    distances = is_valid(pairwise.euclidean_distances, X)
    assert not distances
    check_proof(distances, pairwise.euclidean_distances(X), X)


def test_asymmetric_values_are_named():
    X = np.random.default_rng(3).standard_normal((20, 2))
    K = X @ X.T
    assert is_valid(Precomputed(), K)
    K[4, 17] += 1e-9
    found = is_valid(Precomputed(), K)
    assert not found
    assert sorted(found.asymmetric) == [4, 17]
    assert "not symmetric" in str(found)
    assert sorted(is_valid(lambda A, B: A[:, :1] - B[:, 0], X).asymmetric) == sorted(
        (int(X[:, 0].argmin()), int(X[:, 0].argmax()))
    )


def test_single_precision_is_given_its_rounding():
    X = np.random.default_rng(4).random((50, 2))
    K = (X @ X.T).astype(np.float32)
    assert np.linalg.eigvalsh(K.astype(float))[0] < 0
    assert is_valid(Precomputed(), K)
    assert not is_valid(Precomputed(), K - 0.1 * np.eye(50, dtype=np.float32))


def test_a_sample_of_the_rows():
    X = np.random.default_rng(5).standard_normal((200, 3))
    found = is_valid(Sigmoid(1.0, -1.0), X, sample=50, seed=7)
    assert len(found.rows) == 50
    assert (np.diff(found.rows) > 0).all()
    check_proof(found, Sigmoid(1.0, -1.0)(X), X)
    again = is_valid(Sigmoid(1.0, -1.0), X, sample=50, seed=7)
    np.testing.assert_array_equal(found.rows, again.rows)
    other = is_valid(Sigmoid(1.0, -1.0), X, sample=50, seed=8)
    assert not np.array_equal(found.rows, other.rows)
    given = is_valid(Precomputed(), Sigmoid(1.0, -1.0)(X), sample=50, seed=7)
    np.testing.assert_allclose(given.smallest_eigenvalue, found.smallest_eigenvalue, rtol=1e-9)
    assert str(is_valid(Gaussian(1.0), X)).startswith("Nothing speaks against the kernel: on 200 rows")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: is_valid(Linear(), X, sample=0), "sample must be an int in the range"),
        (lambda X: is_valid(Linear(), X[0]), r"X must be a matrix .* Got shape \(3,\)"),
        (lambda X: is_valid(Linear(), X[:0]), r"at least one row"),
        (lambda X: is_valid(Precomputed(), X), r"square matrix .* Got shape \(20, 3\)"),
        (lambda X: is_valid(Polynomial(64), 1e8 * X), "must be finite. .*Scale the features"),
        (lambda X: is_valid(ChiSquared(), X - 1), "not negative"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).random((20, 3)))
