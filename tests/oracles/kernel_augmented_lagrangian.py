# SPDX-License-Identifier: BSD-3-Clause
"""Newton's steps on a smooth problem of a kernel's augmented Lagrangian in plain NumPy, without borders.

minimise over v, b   1/2 v' K v + sum_i h_i((K v)_i + b)
h_i(f) = max over t of (y_i - f) t - e_i |t| - r K_ii (t - c_i)^2 / 2,    low_i <= t <= high_i
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq


def multipliers(y, e, low, high, d, c, r, f, b):
    """The t that are the largest in h, one row after the other; and which of them are free."""
    t, free = np.zeros(len(y)), np.zeros(len(y), bool)
    for i in range(len(y)):
        best = -np.inf
        for side in (-1, 1):
            floor, ceiling = (
                max(low[i], 0.0) if side > 0 else low[i],
                high[i] if side > 0 else min(high[i], 0.0),
            )
            if floor > ceiling:
                continue
            peak = c[i] + (y[i] - f[i] - b - side * e[i]) / (r * d[i])
            at = min(max(peak, floor), ceiling)
            worth = (y[i] - f[i] - b) * at - e[i] * abs(at) - r * d[i] * (at - c[i]) ** 2 / 2
            if worth > best:
                best, t[i] = worth, at
                free[i] = floor < peak < ceiling
    return t, free


def value(K, y, e, low, high, c, r, v, b):
    """The smooth function."""
    f, d = K @ v, np.diag(K)
    t, _ = multipliers(y, e, low, high, d, c, r, f, b)
    return 0.5 * v @ f + np.sum((y - f - b) * t - e * np.abs(t) - r * d * (t - c) ** 2 / 2)


def steps(K, y, e, low, high, c, r, v, b, before):
    """The v and b after each step; the rows of the J ``before`` are in the next system, too."""
    d = np.diag(K)
    while True:
        t, free = multipliers(y, e, low, high, d, c, r, K @ v, b)
        J = np.flatnonzero(free | before)
        before = free
        bordered = np.ones((len(J) + 1, len(J) + 1))
        bordered[:-1, :-1] = K[np.ix_(J, J)] + np.diag(r * d[J])
        bordered[-1, -1] = 0.0
        solved = np.linalg.solve(bordered, np.append((K @ (v - t))[J], -t.sum()))
        p = np.zeros(len(y))
        p[J] = solved[:-1]
        change, shift = t + p - v, solved[-1]

        def slope(s, v=v, b=b, change=change, shift=shift):
            at, _ = multipliers(y, e, low, high, d, c, r, K @ (v + s * change), b + s * shift)
            return (v + s * change - at) @ K @ change - at.sum() * shift

        length = 1.0 if slope(1.0) <= 0.0 else brentq(slope, 0.0, 1.0, xtol=1e-15)
        v, b = v + length * change, b + length * shift
        yield v, b
