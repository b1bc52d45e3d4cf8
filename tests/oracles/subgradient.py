# SPDX-License-Identifier: BSD-3-Clause
"""The full subgradient method: lecture 000's loop with lecture 001's subgradient and stopping rule.

Rows of unequal cost enter F with C_i / sum C in the place of 1 / n.
"""

from __future__ import annotations

import numpy as np

from oracles import DERIVATIVE, VALUE


def subgradient(
    X,
    y,
    C,
    step_sizes,
    *,
    loss="hinge",
    intercept="none",
    intercept_scaling=1.0,
    threshold=0.0,
    intercept_step_size=1.0,
):
    """Yield ``(w, b, best_w, best_b)`` after every step; ends early when 001's rule fires."""
    lambda_ = 1.0 / C.sum()
    share = C / C.sum()
    w, b = np.zeros(X.shape[1]), 0.0
    best_value, best = np.inf, (w, b)
    for eta in step_sizes:  # 1
        m = y * (X @ w + b)
        value = lambda_ / 2 * (w @ w) + share @ VALUE[loss](m)
        if intercept == "regularised":
            value += lambda_ / 2 * (b / intercept_scaling) ** 2
        if value < best_value:  # 4: the smallest F seen, not the last
            best_value, best = value, (w, b)
        delta_w = X.T @ (share * DERIVATIVE[loss](m) * y)  # 2, 001 (9)
        delta_b = np.sum(share * DERIVATIVE[loss](m) * y)  # 2, 001 (10)
        w = (1 - eta * lambda_) * w - eta * delta_w  # 3, 001 (11)
        own = intercept_step_size * eta  # 000: b needs another step size
        if intercept == "exact":
            b = b - own * delta_b  # 3, 001 (12)
        elif intercept == "regularised":
            # b = s w_0 for a feature of constant value s, so both parts of its step carry an s.
            b = (1 - own * lambda_) * b - own * intercept_scaling**2 * delta_b
        yield w, b, *best
        if eta * np.linalg.norm(delta_w) < threshold:  # 001 (14)
            return
