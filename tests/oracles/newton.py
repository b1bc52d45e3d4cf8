# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method for the smooth losses, with the whole Hessian and NumPy's solver."""

from __future__ import annotations

import numpy as np

from oracles import DERIVATIVE

SECOND_DERIVATIVE = {
    "squared_hinge": lambda m: np.where(m < 1.0, 2.0, 0.0),
    "logistic": lambda m: 1.0 / ((1.0 + np.exp(m)) * (1.0 + np.exp(-m))),
}


def newton(X, y, C, w, b, steps, *, loss, intercept="none", intercept_scaling=1.0):
    """Yield ``(v, m, a)`` after every step from (w, b): the point, its margins, their multipliers."""
    Z, R = with_intercept(X, intercept, intercept_scaling)
    v = w if intercept == "none" else np.append(w, b)
    m = y * (Z @ v)

    def multiplier(m):
        return -C * DERIVATIVE[loss](m)

    def curvature(m):
        return C * SECOND_DERIVATIVE[loss](m)

    for _ in range(steps):  # 1
        a, h = multiplier(m), curvature(m)  # 2
        g = R * v - Z.T @ (a * y)  # 3
        p = solve_system(Z, R, h, g)  # 4
        s = best_step(R, v, m, p, y * (Z @ p), multiplier, curvature)  # 5
        v = v + s * p
        m = m + s * y * (Z @ p)
        yield v, m, multiplier(m)


def with_intercept(X, intercept, intercept_scaling):
    """``Z``, whose rows are z_i, and the diagonal of R."""
    if intercept == "none":
        return X, np.ones(X.shape[1])
    own = 0.0 if intercept == "exact" else intercept_scaling**-2
    return np.column_stack([X, np.ones(len(X))]), np.append(np.ones(X.shape[1]), own)


def solve_system(Z, R, h, g):
    """The p with (R + sum_i h_i z_i z_i') p = -g."""
    hessian = np.diag(R) + Z.T @ (h[:, np.newaxis] * Z)
    if hessian[-1, -1] == 0.0:
        hessian[-1, -1] = 1.0  # no row has curvature and nothing holds b: any scale will do
    return np.linalg.solve(hessian, -g)


def best_step(R, v, m, p, changes, multiplier, curvature):
    """The step at which the objective's slope along p is within 1 % of its slope at 0, or is 0.

    The accuracy and the order of looks are the core's, so that both stop at the same step.
    """

    def slope(s):
        return (R * p) @ (v + s * p) - multiplier(m + s * changes) @ changes

    def its_slope(s):
        return (R * p) @ p + curvature(m + s * changes) @ changes**2

    if not slope(0.0) < 0.0:
        return 0.0
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(60):
        here = slope(s)
        if abs(here) <= -0.01 * slope(0.0):
            break
        if here > 0.0:
            high = s
        else:
            low = s
        halfway = (low + high) / 2 if high < np.inf else 2 * s
        newton = s - here / its_slope(s) if its_slope(s) > 0.0 else high
        s = newton if low < newton < high else halfway
    return s
