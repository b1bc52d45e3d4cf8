# SPDX-License-Identifier: BSD-3-Clause
"""Values of kernels against plain NumPy and scikit-learn, in every way that the core holds rows."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from combinations import every_pair
from maxmargin import Rows, core
from maxmargin.kernels import (
    ChiSquared,
    Function,
    Gaussian,
    KernelRows,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)

KERNELS = {
    "linear": (Linear(), lambda X, Z: X @ Z.T),
    "polynomial": (Polynomial(3, 0.2, 1.5), lambda X, Z: (0.2 * X @ Z.T + 1.5) ** 3),
    "degree 0": (Polynomial(0, 0.2, 1.5), lambda X, Z: np.ones((len(X), len(Z)))),
    "gaussian": (Gaussian(0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, 0.3)),
    "laplacian": (Laplacian(0.2), lambda X, Z: pairwise.laplacian_kernel(X, Z, 0.2)),
    "chi-squared": (ChiSquared(0.4), lambda X, Z: pairwise.chi2_kernel(X, Z, 0.4)),
    "sigmoid": (Sigmoid(0.1, -0.3), lambda X, Z: np.tanh(0.1 * X @ Z.T - 0.3)),
    "constant": (Gaussian(0.0), lambda X, Z: np.ones((len(X), len(Z)))),
}
MIXED = {
    "sum": (Linear() + 2.0 * Gaussian(0.3), lambda X, Z: X @ Z.T + 2 * pairwise.rbf_kernel(X, Z, 0.3)),
    "product": (
        Polynomial(2, 1.0, 1.0) * Laplacian(0.2),
        lambda X, Z: (X @ Z.T + 1) ** 2 * pairwise.laplacian_kernel(X, Z, 0.2),
    ),
    "both": (
        (Linear() + Gaussian(0.1)) * (3 * ChiSquared(0.2)) * 0.5,
        lambda X, Z: 1.5 * (X @ Z.T + pairwise.rbf_kernel(X, Z, 0.1)) * pairwise.chi2_kernel(X, Z, 0.2),
    ),
}


def table(kind, rows, seed=0):
    """Data that the core holds as bits, bytes, dense or sparse; none of them negative."""
    rng = np.random.default_rng(seed)
    if kind == "bits":
        return (rng.random((rows, 40)) < 0.3).astype(float)
    if kind == "bytes":
        return rng.integers(0, 256, (rows, 40)) / 255.0
    if kind == "dense":
        return rng.random((rows, 7))
    return rng.random((rows, 3000)) * (rng.random((rows, 3000)) < 0.004)


LAYOUTS = {
    "dense": np.asarray,
    "dense float32": np.float32,
    "csr": sparse.csr_matrix,
    "csr float32": lambda X: sparse.csr_matrix(X, dtype=np.float32),
}


@every_pair(name=[*KERNELS, *MIXED], kind=["bits", "bytes", "dense", "sparse"], layout=LAYOUTS)
def test_values(name, kind, layout):
    """One tile of rows and a bit more, and queries that do not fill their group."""
    kernel, expected = (KERNELS | MIXED)[name]
    X, Z = LAYOUTS[layout](table(kind, 70)), LAYOUTS[layout](table(kind, 13, 1))
    exact = [np.asarray(part.todense() if sparse.issparse(part) else part, float) for part in (X, Z)]
    # In bytes, the values of float32 data are taken to the nearest multiple.
    tolerance = 1e-6 if kind == "bytes" and "32" in layout else 1e-12
    np.testing.assert_allclose(kernel(X, Z), expected(*exact), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(kernel(X), expected(exact[0], exact[0]), rtol=tolerance, atol=tolerance)


@every_pair(name=[*KERNELS, *MIXED], layout=LAYOUTS)
def test_no_rows_have_no_values(name, layout):
    kernel, _ = (KERNELS | MIXED)[name]
    X, none = LAYOUTS[layout](table("dense", 5)), LAYOUTS[layout](table("dense", 0))
    assert kernel(none).shape == (0, 0)
    assert kernel(X, none).shape == (5, 0)
    assert kernel(none, X).shape == (0, 5)


@pytest.mark.parametrize("columns", [32, 33, 47, 784])
def test_products_of_bytes_are_exact_where_most_are_zero(columns):
    """Like pictures: whole groups of columns are empty in some queries, in all of them, or in no row."""
    rng = np.random.default_rng(columns)
    X = rng.integers(1, 256, (75, columns)) * (rng.random((75, columns)) < 0.3)
    X[:20, : columns // 2] = 0
    X[:, columns // 4 : columns // 3] = 0
    X[7] = 0
    X[30:40] = 255
    assert core.kernel_encoding(Linear().compiled, Rows(X.astype(float)).stored_data) == "bytes"
    np.testing.assert_array_equal(Linear()(X.astype(float)), X @ X.T)
    np.testing.assert_array_equal(Linear()(X.astype(float), X[3:9].astype(float)), X @ X[3:9].T)


@pytest.mark.parametrize("name", ["baseline", "avx2", "avx512"])
def test_so_they_are_in_every_core(name):
    if name not in core.instruction_sets() or find_spec(f"maxmargin._core_{name}") is None:
        pytest.skip(f"this processor or this build has no {name}")
    variables = {**os.environ, "MAXMARGIN_INSTRUCTION_SET": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    asked = f"{__file__}::{test_products_of_bytes_are_exact_where_most_are_zero.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", asked]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    assert "4 passed" in ended.stdout, ended.stdout + ended.stderr


def test_data_are_held_as_said():
    found = {
        kind: core.kernel_encoding(Gaussian(1.0).compiled, Rows(table(kind, 70)).compiled)
        for kind in ("bits", "bytes", "dense", "sparse")
    }
    assert found == {kind: kind for kind in found}


def test_rows_of_different_layouts():
    """Z follows X, also where X is so full of zeros that it is held as sparse."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 400)) * (rng.random((400, 400)) < 0.05)
    Z = rng.standard_normal((5, 400))
    expected = pairwise.rbf_kernel(X, Z, 0.01)
    for first in (X, sparse.csr_matrix(X), X.astype(np.float32)):
        for second in (Z, sparse.csr_matrix(Z), Z.astype(np.float32)):
            np.testing.assert_allclose(Gaussian(0.01)(first, second), expected, rtol=1e-5)


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in KERNELS.values()] + [MIXED["both"][0]], ids=str)
def test_rows_through_a_kernel(kernel):
    """Scores, norms, diagonal and blocks of ``KernelRows`` are those of the matrix."""
    X = table("dense", 30)
    K = kernel(X)
    w = np.random.default_rng(1).standard_normal(30) * (np.arange(30) % 3 > 0)
    rows = KernelRows(X, kernel)
    np.testing.assert_allclose(rows.scores(w), K @ w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(rows.squared_norm(w), w @ K @ w, rtol=1e-10)
    np.testing.assert_allclose(rows.squared_norms, np.diag(K), rtol=1e-12)
    np.testing.assert_allclose(rows.block(np.array([3, 1]), np.arange(30)), K[[3, 1]], rtol=1e-12)
    some = np.array([20, 3, 5, 11])
    part = KernelRows(X, kernel, which=some)
    np.testing.assert_allclose(part.scores(w[:4]), K[np.ix_(some, some)] @ w[:4], rtol=1e-10, atol=1e-12)


def test_given_matrices():
    X = table("dense", 12)
    K = pairwise.rbf_kernel(X, gamma=0.5)
    w = np.arange(12.0)
    for rows in (
        KernelRows(K, Precomputed()),
        KernelRows(X, Function(lambda A, B: pairwise.rbf_kernel(A, B, 0.5))),
    ):
        np.testing.assert_allclose(rows.scores(w), K @ w, rtol=1e-12)
        np.testing.assert_allclose(rows.squared_norms, 1.0)
    with pytest.raises(ValueError, match=r"square matrix .* Got shape \(12, 7\)"):
        KernelRows(X, Precomputed())
    with pytest.raises(ValueError, match=r"shape \(12, 12\)"):
        KernelRows(X, Function(lambda A, B: np.ones(3)))


@pytest.mark.parametrize(
    "given", [Precomputed(), Function(pairwise.rbf_kernel)], ids=["matrix", "function"]
)
@pytest.mark.parametrize(
    "combine", [lambda k: k + Linear(), lambda k: Linear() + k, lambda k: k * Linear(), lambda k: 2.0 * k]
)
def test_given_values_are_not_combined(given, combine):
    """The core would look the other kernel's rows up in the matrix."""
    with pytest.raises(TypeError, match="Combine the matrices"):
        combine(given)


def test_the_words_of_a_combination():
    assert str(Linear() + 2.0 * Gaussian(0.5)) == "Linear() + 2 * Gaussian(gamma=0.5)"
    assert str((Linear() + Gaussian(0.5)) * Laplacian(1.0)) == (
        "(Linear() + Gaussian(gamma=0.5)) * Laplacian(gamma=1.0)"
    )


def test_the_gaussian_of_the_lecture():
    x, z, sigma = np.array([[1.0, 2.0]]), np.array([[0.5, -1.0]]), 1.7
    expected = math.exp(-((0.5**2 + 3.0**2) / (2 * sigma**2)))
    np.testing.assert_allclose(Gaussian.with_sigma(sigma)(x, z), [[expected]], rtol=1e-14)


def test_the_squared_product_of_the_lecture():
    """<x, z>^2 is the inner product of (x1^2, x2^2, x1 x2, x2 x1) (004, example 6.2)."""
    X = np.random.default_rng(0).standard_normal((6, 2))
    image = np.column_stack([X[:, 0] ** 2, X[:, 1] ** 2, X[:, 0] * X[:, 1], X[:, 1] * X[:, 0]])
    np.testing.assert_allclose(Polynomial(2, 1.0, 0.0)(X), image @ image.T, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda kernel: pickle.loads(pickle.dumps(kernel))])
def test_used_kernels_can_be_copied(how):
    kernel = Linear() + Gaussian(0.5)
    X = table("dense", 5)
    expected = kernel(X)
    again = how(kernel)
    assert again == kernel
    np.testing.assert_array_equal(again(X), expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(-1.0), r"'gamma' parameter of Gaussian must be .*\[0, inf\). Got -1.0 instead"),
        (lambda: Gaussian(math.nan), "'gamma' parameter of Gaussian .* Got nan"),
        (lambda: Gaussian("scale"), "'gamma' parameter of Gaussian .* Got 'scale'"),
        (lambda: Gaussian(True), "'gamma' parameter of Gaussian .* Got True"),
        (lambda: Laplacian(math.inf), "'gamma' parameter of Laplacian .* Got inf"),
        (lambda: ChiSquared(-0.5), "'gamma' parameter of ChiSquared .* Got -0.5"),
        (lambda: Sigmoid(-1.0), "'gamma' parameter of Sigmoid"),
        (lambda: Sigmoid(1.0, 10**400), "'coef0' parameter of Sigmoid"),
        (
            lambda: Polynomial(2.5),
            r"'degree' parameter of Polynomial must be an int in the range \[0, 64\]",
        ),
        (lambda: Polynomial(-1), "'degree' .* Got -1"),
        (lambda: Polynomial(65), "'degree' .* Got 65"),
        (lambda: Polynomial(True), "'degree' .* Got True"),
        (lambda: Polynomial(2, -1.0), "'gamma' parameter of Polynomial"),
        (lambda: Polynomial(2, 1.0, math.nan), "'coef0' parameter of Polynomial"),
        (lambda: Gaussian.with_sigma(0.0), "sigma must be .* Got 0.0 instead"),
        (lambda: 0.0 * Linear(), "multiplied by finite numbers above 0. Got 0.0"),
        (lambda: Linear() * -1.0, "multiplied by finite numbers above 0. Got -1.0"),
        (lambda: math.nan * Linear(), "multiplied by finite numbers above 0. Got nan"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chi_squared_refuses_negative_values(layout):
    good, bad = LAYOUTS[layout](np.ones((3, 4))), LAYOUTS[layout](np.array([[1.0, 0.0, -2.0, 0.0]]))
    for kernel in (ChiSquared(), ChiSquared() + Linear(), Linear() * ChiSquared()):
        for use in (lambda k: k(bad), lambda k: k(good, bad), lambda k: KernelRows(bad, k)):
            with pytest.raises(ValueError, match=r"not negative. Got -2 in X. .*MinMaxScaler"):
                use(kernel)
    assert (Linear()(bad, good) == -1.0).all()


def test_dense_rows_of_few_values_in_the_few_columns_that_differ():
    """Such rows are held dense although they count as sparse, and their distances are formed directly."""
    rng = np.random.default_rng(0)
    X = np.zeros((90, 100))
    for row in X:
        row[rng.choice(50, 8, replace=False)] = rng.normal(size=8)
    kernel = core.KernelSum([(1.0, [("product", "exponential", 0.3, 0.0, 0)])])
    matrix = core.KernelMatrix(
        core.Data.dense(X), kernel, np.arange(90), np.array([0, 90]), cache_bytes=0, single=False
    )
    row = np.zeros(90)
    matrix.add(np.array([3]), np.array([1.0]), row, core.ALL_CORES)
    np.testing.assert_allclose(row, np.exp(-0.3 * ((X - X[3]) ** 2).sum(1)), rtol=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.5) + 0.1 * Polynomial(2, 0.5, 1.0)])
@pytest.mark.parametrize("share", [0.02, 0.7, 1.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_scores_of_sparse_rows_are_those_of_all_values(kernel, share, threads):
    """Values among the rows that have a coefficient are computed once, and added to two scores."""
    random = np.random.default_rng(5)
    X = sparse.random(1301, 4000, 0.005, "csr", random_state=random)
    w = random.normal(size=1301) * (random.random(1301) < share)
    scores = KernelRows(X, kernel).scores(w, core.Budget(np.inf, threads))
    np.testing.assert_allclose(scores, kernel(X) @ w, rtol=0, atol=1e-12 * np.abs(w).sum())


@pytest.mark.parametrize("columns", [300, 10_000])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), MIXED["product"][0]], ids=["gaussian", "product"])
def test_values_of_sparse_rows_in_several_blocks(columns, kernel):
    """Blocks of rows begin and end anywhere; some columns are dense, others have hardly an entry."""
    random = np.random.default_rng(7)
    common = sparse.csr_matrix(random.random((4500, 6)) * (random.random((4500, 6)) < 0.5))
    rare = sparse.random(4500, columns, 4.0 / columns, "csr", random_state=random)
    X = sparse.hstack([common, rare], "csr")
    first, second = np.arange(0, 4500, 7), np.arange(100, 4400)
    values = KernelRows(X, kernel).block(first, second)
    some = random.choice(len(second), 60, replace=False)
    exact = kernel(X[first].toarray(), X[second[some]].toarray())
    np.testing.assert_allclose(values[:, some], exact, rtol=1e-12)
    w = np.zeros(4500)
    w[random.permutation(4500)[:1000]] = random.normal(size=1000)
    rows = KernelRows(X, kernel)
    np.testing.assert_allclose(
        rows.scores(w)[second[some]], rows.block(second[some], np.arange(4500)) @ w, atol=1e-10
    )


@pytest.mark.parametrize("ones", [3, 15, 16, 25, 31, 32, 45])
@pytest.mark.parametrize("single", [False, True])
def test_a_table_of_values_has_room_for_any_count(ones, single):
    """Rows of zeros and ones whose distances need one, two or four registers of a table, or memory."""
    rng, n = np.random.default_rng(ones), 90
    X = np.zeros((n, 150))
    for row in X:
        row[rng.permutation(150)[:ones]] = 1.0
    rows = KernelRows(X, Gaussian(0.1))
    matrix = core.KernelMatrix(
        rows.data, rows.kernel.compiled, np.arange(n), np.array([0, n]), cache_bytes=0, single=single
    )
    assert matrix.encoding == "bits"
    out = np.zeros(n)
    matrix.add(np.array([4]), np.ones(1), out, core.Budget(np.inf, 1))
    wanted = np.exp(-0.1 * ((X - X[4]) ** 2).sum(axis=1))
    np.testing.assert_allclose(out, wanted, rtol=1e-6 if single else 1e-12)
