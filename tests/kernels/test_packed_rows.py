# SPDX-License-Identifier: BSD-3-Clause
"""Rows held as bytes that are not quite their values: what that is worth in a proof."""

from fractions import Fraction

import numpy as np
import pytest

from maxmargin import Problem, Solution, certify, core
from maxmargin.kernels import Gaussian, KernelRows, Polynomial


@pytest.fixture(scope="module")
def pixels():
    random = np.random.default_rng(0)
    X = (random.integers(0, 256, (16, 40)).astype(np.float32)) / np.float32(255)
    return X, np.where(np.arange(16) % 2 == 0, 1.0, -1.0)


def rows_of(X, kernel):
    rows = KernelRows(X, kernel)
    assert core.kernel_encoding(kernel.compiled, rows.data) == "bytes"
    assert min(core.packing_error(kernel.compiled, rows.data)) > 0.0
    return rows


def test_both_values_are_bounds_for_the_rows_as_they_are(pixels):
    X, y = pixels
    kernel = Polynomial(2, 0.5, 1.0)
    problem = Problem.of(rows_of(X, kernel), y, 2.0)
    alpha = np.full(16, 0.25)
    proof = certify(problem, Solution(alpha=alpha))
    rows = [[Fraction(float(value)) for value in row] for row in X]
    beta = [Fraction(float(a)) * int(label) for a, label in zip(proof.alpha, y, strict=True)]
    assert sum(beta) == 0
    K = [[(Fraction(0.5) * sum(map(lambda a, b: a * b, x, z)) + 1) ** 2 for z in rows] for x in rows]
    squared = sum(beta[i] * beta[j] * K[i][j] for i in range(16) for j in range(16))
    dual = sum(map(abs, beta)) - squared / 2
    assert Fraction(proof.dual) <= max(dual, Fraction(0))
    w = [Fraction(float(value)) for value in proof.w]
    scores = [sum(w[j] * K[i][j] for j in range(16)) for i in range(16)]
    losses = sum(max(Fraction(0), 1 - int(y[i]) * (scores[i] + Fraction(proof.b))) for i in range(16))
    primal = sum(w[i] * scores[i] for i in range(16)) / 2 + 2 * losses
    assert primal <= Fraction(proof.primal) <= primal * (1 + Fraction(1, 10**3))


def test_a_gaussian_is_off_by_no_more_than_it_says(pixels):
    X, _ = pixels
    kernel = Gaussian(0.1)
    packed = rows_of(X, kernel)
    exact = packed.unpacked()
    assert exact is not None
    assert exact.unpacked() is None
    random = np.random.default_rng(1)
    for _ in range(20):
        w = random.normal(size=16)
        difference = np.abs(packed.scores(w) - exact.scores(w))
        per_length, constant = packed.score_error(w)
        assert (difference <= per_length * packed.lengths + constant).all()
        assert difference.max() > 1e-3 * constant  # not by orders of magnitude less, either
        assert packed.squared_norm(w) >= w @ exact.scores(w)


def test_a_proof_that_packing_keeps_from_tol_is_made_from_the_rows_as_they_are(pixels):
    X, y = pixels
    kernel = Polynomial(3, 1.0, 1.0)
    rows = rows_of(X, kernel)
    problem = Problem.of(rows, y, 1e-6)
    loose = certify(problem, Solution(alpha=np.full(16, 1e-6)), tol=1.0)
    close = certify(problem, Solution(alpha=np.full(16, 1e-6)), tol=0.0)
    assert close.gap < loose.gap
    assert close.problem is problem
