# SPDX-License-Identifier: BSD-3-Clause
"""Data that can be separated or not, their largest margins by other programs, and checks of a proof.

Nothing that a proof says is taken over: it is computed again in plain NumPy, or added up as fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import clarabel
import numpy as np
import pytest
from scipy import sparse

from maxmargin import (
    HardMarginCertificate,
    InseparabilityProof,
    RowClass,
    Status,
)

SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
XOR = np.array([1.0, -1.0, -1.0, 1.0])


def conic_program(P, q, A, b, cones):
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-9
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(P), q, sparse.csc_matrix(A), b, cones, options
    ).solve()
    assert answer.status == clarabel.SolverStatus.Solved
    return np.array(answer.x)


def with_constant(X, intercept, s):
    """The rows as those of a problem without intercept, where b is regularised."""
    return np.column_stack([X, np.full(len(X), s)]) if intercept == "regularised" else X


def least_norm(X, y, intercept, s=1.0):
    """The least |w| with every functional margin at least 1 (002, 003): a quadratic program."""
    Z = with_constant(X, intercept, s)
    exact = int(intercept == "exact")
    d = Z.shape[1]
    P = np.diag(np.append(np.ones(d), np.zeros(exact)))
    A = -y[:, None] * np.column_stack([Z, np.ones((len(y), exact))])
    v = conic_program(P, np.zeros(d + exact), A, -np.ones(len(y)), [clarabel.NonnegativeConeT(len(y))])
    return np.linalg.norm(v[:d])


def largest_margin(X, y, intercept, s=1.0):
    """The largest gamma with y_i (<u, x_i> + c) >= gamma and |u| <= 1 (002): a conic program."""
    Z = with_constant(X, intercept, s)
    exact = int(intercept == "exact")
    n, d = Z.shape
    size = d + exact + 1  # (u, c, gamma)
    rows = np.column_stack([-y[:, None] * np.column_stack([Z, np.ones((n, exact))]), np.ones(n)])
    ball = np.zeros((d + 1, size))
    ball[1:, :d] = -np.eye(d)
    b = np.concatenate([np.zeros(n), [1.0], np.zeros(d)])
    cones = [clarabel.NonnegativeConeT(n), clarabel.SecondOrderConeT(d + 1)]
    q = np.append(np.zeros(size - 1), -1.0)
    return conic_program(np.zeros((size, size)), q, np.vstack([rows, ball]), b, cones)[-1]


def separable(n=60, d=5, *, margin=0.3, seed=0):
    """Points at least so far from a hyperplane; through 0, so that all three intercepts have it."""
    random = np.random.default_rng(seed)
    u = random.normal(size=d)
    u /= np.linalg.norm(u)
    X = random.normal(size=(n, d))
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X += np.outer(y * (margin + random.exponential(size=n)) - X @ u, u)
    return X.astype(np.float32).astype(np.float64), y


def assert_right(model, X, y, intercept, s=1.0, tol=1e-4):
    """All that the certificate says, computed again in plain NumPy."""
    proof = model.certificate
    assert isinstance(proof, HardMarginCertificate)
    assert model.status is Status.CERTIFIED
    assert proof.relative_gap <= tol
    w, b = proof.w, proof.b
    margins = y * (X @ w + b)
    own = b / s if intercept == "regularised" else 0.0
    norm = math.hypot(np.linalg.norm(w), own)
    rounding = 1e-12 * norm * np.linalg.norm(X, axis=1).max() + 1e-12
    assert margins.min() == pytest.approx(1.0, abs=rounding)
    np.testing.assert_allclose(proof.margins, margins, atol=rounding * abs(margins).max())
    assert proof.primal == pytest.approx(norm**2 / 2)
    assert proof.margin == pytest.approx(1.0 / norm)
    alpha = proof.alpha
    assert (alpha >= 0).all()
    balance = alpha @ y
    if intercept == "exact":
        assert abs(balance) <= 1e-12 * alpha.sum()
    pull = math.hypot(np.linalg.norm((alpha * y) @ X), s * balance if intercept == "regularised" else 0.0)
    assert proof.dual == pytest.approx(alpha.sum() ** 2 / (2 * pull**2), rel=1e-7)
    assert proof.margin_bound == pytest.approx(pull / alpha.sum(), rel=1e-7)
    assert proof.margin <= proof.margin_bound * (1 + 1e-9)
    assert set(proof.row_classes) <= {RowClass.NOT_SUPPORT_VECTOR, RowClass.ON_MARGIN}
    np.testing.assert_array_equal(proof.support, np.flatnonzero(alpha))


def assert_proof(proof, X, y, positive=1.0):
    """The weights make one point of both classes: added up exactly, as fractions."""
    assert isinstance(proof, InseparabilityProof)
    is_positive = np.asarray(y) == positive
    ours, theirs = proof.weights_positive, proof.weights_negative
    assert (ours >= 0).all()
    assert (theirs >= 0).all()
    assert not ours[~is_positive].any()
    assert not theirs[is_positive].any()
    sums = ours.sum(), theirs.sum()
    if proof.intercept == "none":
        assert sum(sums) == pytest.approx(1.0, abs=1e-12)
    else:
        assert sums == pytest.approx((1.0, 1.0), abs=1e-12)
    rows = proof.rows
    assert set(rows) == set(np.flatnonzero(proof.weights))
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    scale = np.abs(dense).max()
    for column in dense.T:
        exactly = sum(Fraction(float(ours[i] - theirs[i])) * Fraction(float(column[i])) for i in rows)
        assert abs(exactly) <= 1e-12 * scale
    assert proof.check(X, y) <= 1e-12 * scale * math.sqrt(dense.shape[1])
    assert proof.check(X, y) == pytest.approx(proof.distance, abs=1e-14 * scale)
