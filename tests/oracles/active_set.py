# SPDX-License-Identifier: BSD-3-Clause
"""Active sets on the dual: every system whole, with all rows of the set and all conditions as equations."""

from __future__ import annotations

import numpy as np

from oracles import VALUE


def active_set(
    X,
    y,
    C,
    alpha,
    steps,
    *,
    loss="hinge",
    intercept="none",
    intercept_scaling=1.0,
    proximal=1e-4,
    systems=12,
    nearly_all=0.01,
):
    """Yield ``(beta, w, b, r)`` after every step from alpha; r counts in mean |x|^2."""
    n, scale = len(y), (X**2).sum(axis=1).mean()
    ever = np.zeros(n, bool)
    upper = np.where(C > 0, np.inf, 0.0) if loss == "squared_hinge" else C
    own = np.where(C > 0, 0.5 / np.where(C > 0, C, 1.0), 0.0) if loss == "squared_hinge" else np.zeros(n)
    low, high = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    beta, r = alpha * y, proximal

    def gap_of(beta):
        w = X.T @ beta
        b = best_b(X @ w, y, C, loss, intercept, intercept_scaling, beta)
        pull = w @ w + (b / intercept_scaling) ** 2 * (intercept == "regularised")
        primal = pull / 2 + C @ VALUE[loss](y * (X @ w + b))
        return (primal - (y @ beta - pull / 2 - own @ beta**2 / 2)) / primal

    for _ in range(steps):
        w = X.T @ beta  # 1
        b = best_b(X @ w, y, C, loss, intercept, intercept_scaling, beta)
        f = X @ w + b - y + own * beta
        inside = (beta > low) & (beta < high)
        away = ((f < 0) & (beta < high)) | ((f > 0) & (beta > low))
        ever |= inside | away  # 2
        if intercept == "exact" and not inside.any() and len(set(np.sign(f[away]))) == 1:
            ever |= (beta > low) if f[away][0] < 0 else (beta < high)
        W = np.flatnonzero(ever)
        J, t = (inside | away)[W], beta[W]  # 3
        K, before = X[W] @ X[W].T, n
        M = K + np.diag(own[W] + r * scale)
        for _ in range(systems):  # 4
            d, c = equations(M, f[W], J, t - beta[W], -beta.sum(), intercept, intercept_scaling)  # 5
            pushed, new = f[W] + M @ d + c, beta[W] + d
            tiny = 1e-12 / scale
            beyond = J & ((new < low[W] - tiny) | (new > high[W] + tiny))  # 6
            back = ~J & (((pushed < -1e-12) & (t < high[W])) | ((pushed > 1e-12) & (t > low[W])))
            from_upper = back & (t != 0)
            t = np.where(J, np.clip(new, low[W], high[W]), t)
            changes = beyond.sum() + back.sum()
            few = changes <= nearly_all * J.sum()
            if changes == 0 or (few and changes >= before):
                break
            J = J | from_upper if changes > before and from_upper.any() else (J & ~beyond) | back
            before = changes
        if intercept == "exact":
            t = balanced(t, low[W], high[W], beta[W].sum() - beta.sum())
        d, gap = t - beta[W], gap_of(beta)
        curvature = d @ K @ d + d @ (own[W] * d)
        if intercept == "regularised":
            curvature += intercept_scaling**2 * d.sum() ** 2
        s = np.clip(-f[W] @ d / curvature, 0.0, 1.0) if curvature > 0 else 1.0  # 7
        beta = beta.copy()
        beta[W] = np.clip(beta[W] + s * d, low[W], high[W])
        before, gap = gap, gap_of(beta)
        if few and s > 0.5 and gap > 0.1 * before:
            r = max(0.01 * r, 1e-11)
        elif not few or s == 0:
            r *= 10.0
        yield beta, X.T @ beta, b, r


def equations(M, f, J, d, missing, intercept, intercept_scaling):
    """The change of all multipliers and of b: those outside J are given, one equation for each of them."""
    n = len(f)
    A, right = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    A[:n][J] = np.column_stack([M, np.ones(n)])[J]
    right[:n][J] = -f[J]
    A[:n][~J] = np.eye(n, n + 1)[~J]
    right[:n][~J] = d[~J]
    if intercept == "none":
        A[n, n] = 1.0
    elif intercept == "exact":
        A[n, :n], right[n] = 1.0, missing
    else:
        A[n, :n], A[n, n] = 1.0, -(intercept_scaling**-2)
    if not J.any():
        return d, 0.0
    solved = np.linalg.lstsq(A, right, rcond=None)[0]
    return solved[:n], solved[n]


def balanced(t, low, high, total):
    """With the sum that it should have: some shrink, those inside their walls first."""
    t = t.copy()
    for gives in ((t > low) & (t < high), np.ones(len(t), bool)):
        missing = total - t.sum()
        gives = gives & (t * missing < 0)
        if gives.any():
            t[gives] *= 1 - min(1.0, abs(missing) / abs(t[gives].sum()))
    return t


def best_b(scores, y, C, loss, intercept, intercept_scaling, beta):
    """The best intercept for w, or the one that belongs to the multipliers."""
    if intercept == "none":
        return 0.0
    if intercept == "regularised":
        return intercept_scaling**2 * beta.sum()
    kinks = np.sort((y - scores)[C > 0])
    if loss == "hinge":
        values = np.array([C @ VALUE[loss](y * (scores + b)) for b in kinks])
        best = kinks[values <= values.min() + 1e-12 * abs(values.min())]
        return (best[0] + best[-1]) / 2
    low, high = kinks[0], kinks[-1]
    for _ in range(200):
        middle = (low + high) / 2
        slope = -2 * C @ (y * np.maximum(0, 1 - y * (scores + middle)))
        low, high = (middle, high) if slope < 0 else (low, middle)
    return (low + high) / 2
