# SPDX-License-Identifier: BSD-3-Clause
"""Every solver that takes kernels, with every kernel, layout, weighting and intercept it offers.

The referee solves the primal over features whose inner products are the kernel matrix, written down here in
NumPy: it shares nothing with the package.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from combinations import every_pair
from maxmargin import Problem, Status, solve
from maxmargin.kernels import (
    ChiSquared,
    Function,
    Gaussian,
    KernelRows,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from maxmargin.solvers import SOLVERS, QuadraticProgram
from problems import INTERCEPTS, LAYOUTS
from quadratic_program import solve_by_quadratic_program

N = 48
C = 0.8
SCALING = 1.3
STORED = ("dense C float64", "dense C float32", "CSR float64 int32", "CSR float32 int64")
LOSSES = ("hinge", "squared_hinge")
FOR_KERNELS = [name for name, solver in SOLVERS.items() if solver.takes_kernels]


def products(X):
    return X @ X.T


def squared_distances(X):
    return np.sum((X[:, None] - X[None]) ** 2, axis=2)


def chi_squared(X):
    sums = X[:, None] + X[None]
    return np.sum((X[:, None] - X[None]) ** 2 / np.where(sums > 0, sums, 1.0), axis=2)


# Sigmoid is not among them: its matrix is not non-negative definite, so there is no problem to certify.
KERNELS = {
    "linear": (Linear(), products),
    "polynomial": (Polynomial(2, 0.5, 1.0), lambda X: (0.5 * products(X) + 1.0) ** 2),
    "gaussian": (Gaussian(0.4), lambda X: np.exp(-0.4 * squared_distances(X))),
    "laplacian": (
        Laplacian(0.3),
        lambda X: np.exp(-0.3 * np.sum(np.abs(X[:, None] - X[None]), axis=2)),
    ),
    "chi squared": (ChiSquared(0.7), lambda X: np.exp(-0.7 * chi_squared(X))),
    "sum": (
        Linear() + 2.0 * Gaussian(0.4),
        lambda X: products(X) + 2.0 * np.exp(-0.4 * squared_distances(X)),
    ),
    "product": (
        Polynomial(1, 1.0, 1.0) * Laplacian(0.1),
        lambda X: (products(X) + 1.0) * np.exp(-0.1 * np.sum(np.abs(X[:, None] - X[None]), axis=2)),
    ),
    "function": (
        Function(
            lambda X, Z: 1.0 / (1.0 + np.sum((as_array(X)[:, None] - as_array(Z)[None]) ** 2, axis=2))
        ),
        lambda X: 1.0 / (1.0 + squared_distances(X)),
    ),
    "precomputed": (Precomputed(), lambda X: np.exp(-0.4 * squared_distances(X))),
}


def as_array(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


@cache
def data(kind="real"):
    """Rows that a line cannot separate, not negative, and the same in every layout."""
    random = np.random.default_rng(2)
    if kind == "real":
        X = np.abs(random.normal(size=(N, 3)))
        X[random.random((N, 3)) < 0.2] = 0.0
    elif kind == "bits":
        X = (random.random((N, 40)) < 0.3).astype(np.float64)
    else:
        X = random.integers(0, 256, (N, 40)) / 256.0
    X = X.astype(np.float32).astype(np.float64)
    y = np.where(np.sum((X - X.mean(axis=0)) ** 2, axis=1) > np.median(np.sum(X**2, axis=1)) / 3, 1.0, -1.0)
    y[:4] *= -1.0
    return X, y


@cache
def weights(weighted):
    if not weighted:
        return np.ones(N)
    values = np.random.default_rng(3).integers(0, 4, N).astype(np.float64)
    assert (values == 0).any()
    return values


@cache
def optimum(kernel, weighted, loss, intercept, kind="real"):
    X, y = data(kind)
    values, vectors = np.linalg.eigh(KERNELS[kernel][1](X))
    assert values[0] > -1e-9 * values[-1]
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    costs = C * weights(weighted)
    return solve_by_quadratic_program(features, y, costs, loss, intercept, SCALING)[2]


def rows_of(kernel, layout, kind="real"):
    X, _ = data(kind)
    if kernel == "precomputed":
        # Single precision rounds the matrix, and so gives another problem; and a matrix has to be dense.
        return KernelRows(KERNELS[kernel][1](X), KERNELS[kernel][0])
    return KernelRows(LAYOUTS[layout](X), KERNELS[kernel][0])


def assert_all_reach(kernel, layout, weighted, kind="real"):
    rows = rows_of(kernel, layout, kind)
    _, y = data(kind)
    used = set()
    for intercept in INTERCEPTS:
        for loss in LOSSES:
            problem = Problem.of(
                rows,
                y,
                C,
                loss=loss,
                intercept=intercept,
                weights=weights(weighted),
                intercept_scaling=SCALING,
            )
            for name in FOR_KERNELS:
                if SOLVERS[name]().accepts(problem) is not None:
                    continue
                model = solve(problem, name, tol=1e-6, max_steps=20_000)
                best = optimum(kernel, weighted, loss, intercept, kind)
                assert model.status is Status.CERTIFIED, (name, loss, intercept, model.message)
                assert model.certificate.primal == pytest.approx(best, rel=2e-6), (name, loss, intercept)
                assert model.certificate.dual <= best * (1 + 1e-8)
                used.add(name)
    assert used == set(FOR_KERNELS)


@every_pair(kernel=KERNELS, layout=STORED, weighted=[False, True])
def test_every_kernel_solver_reaches_the_optimum(kernel, layout, weighted):
    assert_all_reach(kernel, layout, weighted)


@pytest.mark.parametrize("kind", ["bits", "bytes"])
@pytest.mark.parametrize("kernel", ["linear", "polynomial", "gaussian"])
def test_and_so_on_values_that_are_held_in_small(kernel, kind):
    assert_all_reach(kernel, "dense C float32", True, kind)


@pytest.mark.parametrize("name", FOR_KERNELS)
def test_one_at_a_time_and_pairs_each_say_what_they_cannot(name):
    X, y = data()
    for intercept in INTERCEPTS:
        problem = Problem.of(KernelRows(X, Gaussian(1.0)), y, intercept=intercept)
        refusal = SOLVERS[name]().accepts(problem)
        if refusal is not None:
            assert "intercept=" in refusal
            assert "kernel_dual_ascent" in refusal or "sequential_minimal_optimization" in refusal


def test_the_primal_form_has_no_kernel():
    X, y = data()
    problem = Problem.of(KernelRows(X, Gaussian(1.0)), y)
    with pytest.raises(ValueError, match="form='dual'"):
        solve(problem, QuadraticProgram(form="primal"))
    assert solve(problem, QuadraticProgram(form="dual"), tol=1e-8).status is Status.CERTIFIED
