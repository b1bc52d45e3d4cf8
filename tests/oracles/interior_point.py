# SPDX-License-Identifier: BSD-3-Clause
"""Mehrotra's predictor-corrector with Gondzio's corrections, every step by the whole of Newton's equations.

    minimise    1/2 v'Rv + sum_i C_i xi_i   (squared hinge: C_i xi_i^2)
    subject to  Zv + xi - s = 1,  s >= 0  (hinge: xi >= 0),      Z has the rows y_i (x_i, 1)

Nothing is eliminated: the unknowns of a step are dv, dalpha, ds and dxi, and their equations are solved as
one dense system that is not even symmetric.
"""

from __future__ import annotations

import numpy as np


def interior_point(
    X,
    y,
    C,
    steps,
    *,
    loss="hinge",
    intercept="none",
    intercept_scaling=1.0,
    corrections=2,
):
    """Yield ``(v, alpha, s, xi, mu)`` before the first step and after every one.

    Rows of cost 0 are left out of alpha, s and xi.
    """
    used = C > 0
    X, y, C = X[used], y[used], C[used]
    squared = loss == "squared_hinge"
    Z, R = y[:, None] * X, np.ones(X.shape[1])
    if intercept != "none":
        Z = np.column_stack([Z, y])
        R = np.append(R, 0.0 if intercept == "exact" else intercept_scaling**-2)
    v = np.zeros(len(R))
    alpha, s, xi = _central_point(C, squared)
    products = _products(alpha, s, xi, C, squared)
    yield v, alpha, s, xi, products.mean()
    for _ in range(steps):
        mu = products.mean()  # 1
        matrix = _matrix(Z, R, alpha, s, xi, C, squared)  # 2

        def newton(changes, v=v, alpha=alpha, s=s, xi=xi, matrix=matrix):
            gradient = R * v - Z.T @ alpha
            residual = 1.0 - Z @ v - xi + s
            n, d = Z.shape
            last = alpha / (2.0 * C) - xi if squared else changes[n:]
            right = np.concatenate([-gradient, residual, changes[:n], last])
            step = np.linalg.solve(matrix, right)
            return np.split(step, [d, d + n, d + 2 * n])

        def longest(step, alpha=alpha, s=s, xi=xi):
            _, dalpha, ds, dxi = step
            values, changes = np.concatenate([alpha, s]), np.concatenate([dalpha, ds])
            if not squared:
                values = np.concatenate([values, C - alpha, xi])
                changes = np.concatenate([changes, -dalpha, dxi])
            return min((-values / changes)[changes < 0], default=np.inf)

        def products_after(step, length, alpha=alpha, s=s, xi=xi):
            _, dalpha, ds, dxi = step
            return _products(alpha + length * dalpha, s + length * ds, xi + length * dxi, C, squared)

        predictor = newton(-products)  # 3
        foreseen = products_after(predictor, min(1.0, longest(predictor))).mean()
        sigma = (foreseen / mu) ** 3  # 4
        second_order = predictor[1] * predictor[2]
        if not squared:
            second_order = np.concatenate([second_order, -predictor[1] * predictor[3]])
        changes = sigma * mu - products - second_order
        step = newton(changes)  # 5
        for _ in range(corrections):  # 6
            if longest(step) >= 1.0:
                break
            there = products_after(step, min(1.0, longest(step) + 0.3))
            wanted = np.clip(there, 0.1 * sigma * mu, 10.0 * sigma * mu) - there
            changes = changes + np.maximum(wanted, -10.0 * sigma * mu)
            corrected = newton(changes)
            if longest(corrected) < 1.02 * longest(step):
                break
            step = corrected
        length = min(1.0, 0.995 * longest(step))  # 7
        v, alpha, s, xi = (
            here + length * there for here, there in zip((v, alpha, s, xi), step, strict=True)
        )
        products = _products(alpha, s, xi, C, squared)
        yield v, alpha, s, xi, products.mean()


def _central_point(C, squared):
    """At v = 0: xi - s = 1, and all products are the mean of C; for each row the root of a polynomial."""
    mu = C.mean()
    alpha = np.empty(len(C))
    for i, c in enumerate(C):
        if squared:  # alpha s = mu with s = alpha / (2 C) - 1
            roots = np.roots([0.5 / c, -1.0, -mu])
            alpha[i] = roots.max()
        else:  # mu / (C - alpha) - mu / alpha = 1
            roots = np.roots([1.0, 2.0 * mu - c, -mu * c])
            alpha[i] = roots[(roots > 0) & (roots < c)].item()
    return alpha, mu / alpha, alpha / (2.0 * C) if squared else mu / (C - alpha)


def _products(alpha, s, xi, C, squared):
    return alpha * s if squared else np.concatenate([alpha * s, (C - alpha) * xi])


def _matrix(Z, R, alpha, s, xi, C, squared):
    """Of g, of the constraints, of the first products, and of the second ones or of xi = alpha / (2 C)."""
    n, d = Z.shape
    one, no, none = np.eye(n), np.zeros((n, n)), np.zeros((n, d))
    last = [none, np.diag(-0.5 / C), no, one] if squared else [none, np.diag(-xi), no, np.diag(C - alpha)]
    return np.block(
        [
            [np.diag(R), -Z.T, none.T, none.T],
            [Z, no, -one, one],
            [none, np.diag(s), np.diag(alpha), no],
            last,
        ]
    )
