# SPDX-License-Identifier: BSD-3-Clause
"""The augmented Lagrangian of the hinge with Newton steps inside, from a given start."""

from __future__ import annotations

import numpy as np

from oracles import VALUE
from oracles.newton import best_step, solve_system, with_intercept

FADE = 0.3


def augmented_lagrangian(
    X,
    y,
    C,
    w,
    b,
    alpha,
    steps,
    *,
    intercept="none",
    intercept_scaling=1.0,
    stiffness=3.0,
    raise_by=3.0,
    small_part=0.2,
):
    """Yield ``(v, m, a, h, alpha, k)`` after every step from (w, b) and alpha."""
    Z, R = with_intercept(X, intercept, intercept_scaling)
    v = w if intercept == "none" else np.append(w, b)
    m = y * (Z @ v)
    k = stiffness

    def multiplier(m):
        return np.clip(alpha + k * C * (1 - m), 0.0, C)

    def curvature(m):
        return np.where((multiplier(m) > 0) & (multiplier(m) < C), k * C, 0.0)

    # As after line 4: J is that of alpha, and no row has left it yet.
    a = alpha
    J = (alpha > 0) & (alpha < C)
    left = np.zeros(len(y), bool)
    first = True
    for _ in range(steps):  # 1
        h = k * C * (J + FADE * left)
        if first:
            # The rows taken over are not clipped; those at a wall of their box stay there.
            a = alpha + np.where(J | left, k * C * (1 - m), 0.0)
        g = R * v - Z.T @ (a * y)  # 3
        p = solve_system(Z, R, h, g)  # 5
        s = best_step(R, v, m, p, y * (Z @ p), multiplier, curvature)  # 6
        v = v + s * p
        m = m + s * y * (Z @ p)
        a = multiplier(m)  # 2
        before, J = J, curvature(m) > 0
        left = before & ~J  # they count for a part, once
        h = k * C * (J + FADE * left)
        first = False
        primal, dual, error = values(R, Z, y, C, v, m, a, k, intercept)
        if error <= small_part * (primal - dual):  # 4
            alpha, k, first = a, raise_by * k, True
            h = raise_by * h
        yield v, m, a, h, alpha, k


def values(R, Z, y, C, v, m, a, k, intercept):
    """The objective at v, the Lagrangian at a, and what is left of the smooth problem at v."""
    primal = v @ (R * v) / 2 + C @ VALUE["hinge"](m)
    combined = Z.T @ (a * y)
    g = R * v - combined
    error = g @ (g / np.where(R > 0, R, 1.0)) / 2
    if intercept == "exact":
        # Nothing holds b, so the Lagrangian keeps its term -b sum_i a_i y_i.
        dual = a.sum() - combined[:-1] @ combined[:-1] / 2 - v[-1] * combined[-1]
        missing = abs(combined[-1])
        # Free rows, whose m is within 1 / k of 1, restore the balance where they suffice.
        return primal, dual, error + (missing / k if missing < 0.1 * a[a < C].sum() else missing)
    dual = a.sum() - combined @ (combined / R) / 2
    return primal, dual, error
