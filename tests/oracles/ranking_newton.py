# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method on a ranking with every pair of rows written out, in plain NumPy."""

from __future__ import annotations

import numpy as np


def pairs_of(y, query):
    """The rows (i, j) of all pairs of one query with y_i > y_j."""
    y, query = np.asarray(y), np.asarray(query)
    return np.nonzero((query[:, None] == query[None, :]) & (y[:, None] > y[None, :]))


def multipliers(margins, costs, loss, width):
    """What the margins of pairs suggest: those of the loss, with the jump of the hinge made a ramp."""
    if loss == "squared_hinge":
        return 2.0 * costs * np.maximum(0.0, 1.0 - margins)
    return costs * np.clip((1.0 + 0.5 * width - margins) / width, 0.0, 1.0)


def curvatures(margins, costs, loss, width):
    """The slope of the multipliers, without its sign."""
    if loss == "squared_hinge":
        return 2.0 * costs * (margins < 1.0)
    return costs / width * (np.abs(1.0 - margins) < 0.5 * width)


def values(w, rows, costs, loss, width):
    """(P, D, g): both values at a point and its multipliers at their best multiple, and the gradient."""
    margins = rows @ w
    alpha = multipliers(margins, costs, loss, width)
    u = alpha @ rows
    lack = np.maximum(0.0, 1.0 - margins)
    sum_of_losses = costs @ (lack**2 if loss == "squared_hinge" else lack)
    held = 0.5 * u @ u + (sum_of_losses if loss == "squared_hinge" else 0.0)
    t = 0.5 * alpha.sum() / held
    t = t if loss == "squared_hinge" else min(t, 1.0)
    return 0.5 * w @ w + sum_of_losses, t * alpha.sum() - t * t * held, w - u


def ranking_newton(X, y, query, weights, C, loss, steps, width=4.0, shrink_by=4.0):
    """The w after so many steps; the numbers are those of the lines of solvers/ranking_newton.py."""
    i, j = pairs_of(y, query)  # 1
    rows, costs = X[i] - X[j], C * weights[i] * weights[j]
    w = np.zeros(X.shape[1])
    for _ in range(steps):
        primal, dual, g = values(w, rows, costs, loss, width)  # 2, 3
        while loss == "hinge" and 0.5 * g @ g <= 0.2 * (primal - dual):  # 4
            width /= shrink_by
            primal, dual, g = values(w, rows, costs, loss, width)
        h = curvatures(rows @ w, costs, loss, width)
        p = np.linalg.solve(np.eye(len(w)) + rows.T @ (h[:, None] * rows), -g)  # 5
        slope = _slope(w, p, rows, costs, loss, width)
        w = w + _zero(slope, g @ p) * p  # 6
    return w, width


def _slope(w, p, rows, costs, loss, width):
    def slope(t):
        alpha = multipliers(rows @ (w + t * p), costs, loss, width)
        return p @ (w + t * p) - alpha @ (rows @ p)

    return slope


def _zero(slope, first):
    """The same points on the line as the solver looks at."""
    near, near_slope, far, far_slope, t = 0.0, first, np.inf, np.inf, 1.0
    for _ in range(12):
        here = slope(t)
        if abs(here) <= 0.1 * abs(first):
            return t
        if here < 0.0:
            far_slope = far_slope * 0.5 if near > 0.0 and far_slope < np.inf else far_slope
            near, near_slope = t, here
        else:
            far, far_slope = t, here
        if far == np.inf:
            t *= 4.0
        else:
            share = near_slope / (near_slope - far_slope)
            t = near + min(max(share, 0.1), 0.9) * (far - near)
    return near or t
