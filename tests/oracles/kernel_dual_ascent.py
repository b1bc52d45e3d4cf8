# SPDX-License-Identifier: BSD-3-Clause
"""Stochastic dual coordinate ascent with all ``K_ij`` known: lecture 000's step of O(n)."""

from __future__ import annotations

import numpy as np


def ascend(K, y, C, sweeps, *, loss="hinge", intercept_scaling=0.0, fixed_intercept=0.0):
    """Yield ``(alpha, K (alpha y))`` after every sweep, an explicit sequence of rows.

    An intercept_scaling s above 0 is the augmentation trick: one more feature of constant value s. A
    fixed_intercept is a b that is not sought.
    """
    augmented = K + intercept_scaling**2
    squared = loss == "squared_hinge"
    alpha = np.zeros(len(y))
    for sweep in sweeps:
        for i in sweep:  # 1
            own = 0.5 / C[i] if squared else 0.0
            g = y[i] * (augmented[i] @ (alpha * y) + fixed_intercept) - 1 + own * alpha[i]  # 2
            curvature = augmented[i, i] + own
            step = g / curvature if curvature > 0 else np.inf * g
            alpha[i] = min(max(alpha[i] - step, 0.0), np.inf if squared else C[i])  # 3, 4
        yield alpha.copy(), K @ (alpha * y)
