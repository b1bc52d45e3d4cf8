# SPDX-License-Identifier: BSD-3-Clause
"""The problems with a nu, written down as quadratic programs of all their variables; by Clarabel.

    minimise    1/2 |w|^2 + T e + sum_i C_i xi_i
    subject to  y_i (<w, x_i> + b) >= p_i - e - xi_i,   xi_i >= 0

over (w, b, e, xi), or without b for one class. And pairs of rows as LIBSVM moves them: both of one sign.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from quadratic_program import _interior_point


def best(X, y, costs, targets, total, *, with_b):
    """``(w, b, e, objective)`` at the optimum."""
    n, d = X.shape
    more = 1 + int(with_b)
    P = sparse.diags_array(np.concatenate([np.ones(d), np.zeros(more + n)]))
    q = np.concatenate([np.zeros(d + more - 1), [total], costs])
    columns = [y[:, None] * X] + ([y[:, None]] if with_b else []) + [np.ones((n, 1))]
    margins = sparse.csc_array(np.hstack(columns))
    A = sparse.vstack(
        [
            sparse.hstack([-margins, -sparse.eye_array(n)]),
            sparse.hstack([sparse.csc_array((n, d + more)), -sparse.eye_array(n)]),
        ]
    )
    limits = np.append(-targets, np.zeros(n))
    x = _interior_point(sparse.csc_matrix(P), q, sparse.csc_matrix(A), limits)
    w, b, e = x[:d], float(x[d]) if with_b else 0.0, float(x[d + more - 1])
    return w, b, e, objective(X, y, costs, targets, total, w, b, e)


def objective(X, y, costs, targets, total, w, b, e):
    """The primal value."""
    return 0.5 * w @ w + total * e + costs @ np.maximum(0.0, targets - e - y * (X @ w + b))


def pairs_of_one_sign(K, y, costs, targets, alpha, rounds):
    """``alpha`` after so many pairs, each of the sign that violates most: the sum of each sign stays."""
    alpha = alpha.copy()
    for _ in range(rounds):
        f = y * (K @ (alpha * y)) - targets  # of alpha itself
        best = None
        for sign in (1.0, -1.0):
            grow, fall = (np.flatnonzero((y == sign) & free) for free in (alpha < costs, alpha > 0.0))
            if len(grow) and len(fall):
                i, violation = grow[f[grow].argmin()], f[fall].max() - f[grow].min()
                if best is None or violation > best[0]:
                    best = violation, i, fall
        if best is None or best[0] <= 1e-12:
            return alpha
        _, i, fall = best
        fall = fall[f[fall] > f[i]]
        eta = np.maximum(K[i, i] + K[fall, fall] - 2.0 * K[i, fall], 1e-12)
        j = fall[((f[fall] - f[i]) ** 2 / eta).argmax()]
        step = (f[j] - f[i]) / max(K[i, i] + K[j, j] - 2.0 * K[i, j], 1e-12)
        step = min(step, costs[i] - alpha[i], alpha[j])
        alpha[i] += step
        alpha[j] -= step
    return alpha
