# SPDX-License-Identifier: BSD-3-Clause
"""Distances, RandomFourier, Nystroem and PolynomialSketch against kernels in plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from maxmargin.features import Distances, Nystroem, PolynomialSketch, RandomFourier
from maxmargin.features.exact_kernel.error_estimate import _estimate, draw_pairs
from maxmargin.kernels import Function, Gaussian, Linear, Precomputed


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(400, 4))


def gaussian(X, Z, gamma):
    return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))


def relative_error(phi, kernel):
    """Over all pairs of different rows."""
    different = ~np.eye(len(kernel), dtype=bool)
    error = (phi @ phi.T - kernel)[different]
    return math.sqrt(np.mean(error**2) / np.mean(kernel[different] ** 2))


def test_distances_to_given_points(X):
    found = Distances(prototypes=X[:3] + 1.0, gamma=0.2).fit_transform(X)
    np.testing.assert_allclose(found, gaussian(X, X[:3] + 1.0, 0.2), rtol=1e-10)
    with pytest.raises(ValueError, match=r"an array of shape \(2, 3\)"):
        Distances(prototypes=np.ones((2, 3))).fit(X)
    with pytest.raises(ValueError, match="'sample', 'kmeans'"):
        Distances(prototypes="nearest").fit(X)


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e4, 1e20])
def test_distances_in_float32_are_accurate(X, offset):
    rows = (X + offset).astype(np.float32)
    expected = gaussian(rows.astype(np.float64), rows[:9].astype(np.float64), 0.3)
    found = Distances(prototypes=rows[:9], gamma=0.3).fit_transform(rows)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-5)
    found = Distances(prototypes=rows[:9], gamma=0.3).fit_transform(sparse.csr_array(rows))
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_a_sample_is_of_the_rows(X):
    found = Distances("sample", count=20, seed=3).fit(X)
    assert (cdist(found.prototypes_, X).min(axis=1) == 0.0).all()
    assert len(np.unique(found.prototypes_, axis=0)) == 20
    assert not np.array_equal(found.prototypes_, Distances("sample", count=20, seed=4).fit(X).prototypes_)
    assert Distances("sample", count=1000).fit(X).prototypes_.shape == X.shape


def test_centres_are_those_of_clusters():
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = np.repeat(centres, 50, axis=0) + np.random.default_rng(0).normal(scale=0.1, size=(150, 2))
    for rows in (X, sparse.csr_array(X)):
        found = Distances("kmeans", count=3).fit(rows).prototypes_
        assert cdist(found, centres).min(axis=0).max() < 0.1


@pytest.mark.parametrize("gamma", [0.05, 0.5])
def test_random_fourier_features_tend_to_the_kernel(X, gamma):
    kernel = gaussian(X, X, gamma)
    errors = [relative_error(RandomFourier(m, gamma).fit_transform(X), kernel) for m in (200, 20_000)]
    assert 5.0 < errors[0] / errors[1] < 20.0  # 10 is what 1 / sqrt(count) says
    np.testing.assert_allclose((RandomFourier(10).fit_transform(X) ** 2).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"'count' parameter.*even"):
        RandomFourier(11).fit(X)


@pytest.mark.parametrize(("degree", "gamma", "coef0"), [(1, 1.0, 1.0), (2, 0.5, 1.0), (3, 0.5, 0.0)])
def test_the_sketch_is_unbiased_and_tends_to_the_kernel(degree, gamma, coef0):
    X = np.random.default_rng(0).normal(size=(60, 20)) / math.sqrt(20)
    kernel = (gamma * X @ X.T + coef0) ** degree

    def errors(columns):
        options = dict(degree=degree, gamma=gamma, coef0=coef0, columns=columns)
        images = [PolynomialSketch(**options, seed=seed).fit_transform(X) for seed in range(50)]
        return np.array([phi @ phi.T for phi in images]) - kernel

    few, many = errors(64), errors(1600)
    size = math.sqrt(np.mean(few**2))
    assert math.sqrt(np.mean(few.mean(axis=0) ** 2)) < 0.25 * size  # 0.14 is what 50 of them say
    assert 3.0 < size / math.sqrt(np.mean(many**2)) < 8.0  # 5 is what 1 / sqrt(columns) says


def test_the_sketch_is_the_convolution_of_count_sketches(X):
    found = PolynomialSketch(degree=2, gamma=0.5, coef0=2.0, columns=7, seed=1).fit(X)
    u = np.hstack([X, np.ones((len(X), 1))])
    first, second = np.zeros((2, len(X), 7))
    for j in range(5):
        first[:, found.places_[0, j]] += found.signs_[0, j] * u[:, j]
        second[:, found.places_[1, j]] += found.signs_[1, j] * u[:, j]
    expected = np.zeros((len(X), 7))
    for a in range(7):
        for b in range(7):
            expected[:, (a + b) % 7] += first[:, a] * second[:, b]
    np.testing.assert_allclose(found.transform(X), expected, atol=1e-12)


def test_nystroem_is_exact_with_the_sample(X):
    found = Nystroem(50, gamma=0.3).fit(X)
    phi, anchors = found.transform(X), found.transform(found.sample_)
    np.testing.assert_allclose(phi @ anchors.T, gaussian(X, found.sample_, 0.3), atol=1e-6)
    assert (1.0 - (phi**2).sum(axis=1) > -1e-6).all()
    cross = gaussian(X, found.sample_, 0.3)
    expected = cross @ np.linalg.pinv(gaussian(found.sample_, found.sample_, 0.3), rcond=1e-12) @ cross.T
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nystroem_leaves_out_what_rounding_hides(X, dtype):
    rows = X.astype(dtype)
    found = Nystroem(100, Linear()).fit(rows)
    assert found.transform(rows).shape == (400, 4)  # a linear kernel of four columns has rank four
    np.testing.assert_allclose(found.transform(rows) @ found.transform(rows).T, X @ X.T, atol=1e-4)
    flat = Nystroem(300, gamma=1e-3).fit(rows)
    assert flat.projection_.shape[1] < 300
    phi = flat.transform(rows)
    np.testing.assert_allclose(
        phi @ phi.T, gaussian(X, X, 1e-3), atol=1e-3 if dtype == np.float32 else 1e-6
    )


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("rbf", lambda X: gaussian(X, X, 0.1)),
        ("poly", lambda X: (0.1 * X @ X.T + 1.0) ** 2),
        ("laplacian", lambda X: np.exp(-0.1 * cdist(X, X, "cityblock"))),
        ("linear", lambda X: X @ X.T),
        (Gaussian(0.1) + Linear(), lambda X: gaussian(X, X, 0.1) + X @ X.T),
        (Function(lambda X, Z: X @ Z.T + 1.0), lambda X: X @ X.T + 1.0),
    ],
    ids=["rbf", "poly", "laplacian", "linear", "sum", "function"],
)
def test_nystroem_with_all_rows_is_the_kernel(X, kernel, expected):
    X = X[:60]
    found = Nystroem(60, kernel, gamma=0.1, degree=2).fit(X)
    phi = found.transform(X)
    np.testing.assert_allclose(phi @ phi.T, expected(X), atol=1e-6)
    assert math.isnan(found.error_estimate_.relative)  # no row is left to measure on


def test_wrong_kernels(X):
    with pytest.raises(ValueError, match=r"'kernel' parameter of Nystroem.*maxmargin.kernels"):
        Nystroem(5, "sigmoid").fit(X)
    with pytest.raises(ValueError, match="a function of two rows"):
        Nystroem(5, Precomputed()).fit(X)
    with pytest.raises(ValueError, match="positive for some of the rows"):
        Nystroem(5, Linear()).fit(np.zeros((9, 2)))


def test_rows_of_other_types_than_those_of_fit(X):
    found = Nystroem(20, gamma=0.3).fit(X.astype(np.float32))
    narrow = found.transform(X.astype(np.float32))
    np.testing.assert_allclose(found.transform(X), narrow, atol=1e-3)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(found.transform(wide), found.transform(X), atol=1e-6)
    mostly_zero = np.zeros((3000, 100))
    mostly_zero[:, 0] = np.arange(3000)
    phi = Nystroem(10, gamma=1e-3).fit_transform(mostly_zero)
    assert phi.shape[0] == 3000


@pytest.mark.parametrize(
    ("estimator", "kernel"),
    [
        (RandomFourier(100, 0.1), lambda X: gaussian(X, X, 0.1)),
        (Nystroem(30, gamma=0.1), lambda X: gaussian(X, X, 0.1)),
        (PolynomialSketch(2, 0.5, 1.0, columns=200), lambda X: (0.5 * X @ X.T + 1.0) ** 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_measured_error_is_the_error(X, estimator, kernel):
    X = np.vstack([X, np.random.default_rng(1).normal(size=(2600, 4))])
    estimate = estimator.fit(X).error_estimate_
    true = relative_error(estimator.transform(X), kernel(X))
    assert estimate.pairs == 1000
    assert 0.0 < estimate.standard_error < 0.2 * estimate.relative
    assert abs(estimate.relative - true) < 4.0 * estimate.standard_error
    scale = math.sqrt(np.mean(kernel(X)[~np.eye(len(X), dtype=bool)] ** 2))
    np.testing.assert_allclose(estimate.absolute, estimate.relative * scale, rtol=0.25)


def test_pairs_use_no_row_twice():
    pairs = draw_pairs(np.arange(10, 21), np.random.default_rng(0))
    assert pairs.shape == (5, 2)
    assert len(np.unique(pairs)) == 10
    assert pairs.min() >= 10


def test_the_standard_error_is_that_of_repeated_draws(X):
    estimates = [RandomFourier(100, 0.3, seed=0).fit(X).error_estimate_ for X in _samples(200, 400)]
    spread = np.std([estimate.relative for estimate in estimates])
    np.testing.assert_allclose(spread, np.mean([e.standard_error for e in estimates]), rtol=0.3)


def _samples(count, rows):
    random = np.random.default_rng(5)
    return [random.normal(size=(rows, 4)) for _ in range(count)]


def test_the_error_of_a_map_has_a_deviation_where_the_kernel_is_nearly_nothing():
    exact, errors = np.array([1e-150, 0.0, 1e-150]), np.array([1e-35, 2e-35, -1e-35])
    with np.errstate(all="raise", under="ignore"):
        found = _estimate(errors, exact)
        plain = _estimate(1e35 * errors, 1e150 * exact)
    assert found.relative == pytest.approx(1e115 * plain.relative)
    assert found.standard_error == pytest.approx(1e115 * plain.standard_error)
