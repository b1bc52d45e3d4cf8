# SPDX-License-Identifier: BSD-3-Clause
"""Pegasos as lecture 001 states it; 002 is the same with batches of one and the mean as output."""

from __future__ import annotations

import numpy as np


def pegasos(
    X,
    y,
    C,
    batches,
    *,
    intercept="none",
    intercept_scaling=1.0,
    project=True,
    threshold=0.0,
    stop_count=1,
    step_sizes=None,
    intercept_step_size=1.0,
):
    """All iterates ``(w_1, b_1), (w_2, b_2), ...``; see ``stochastic_subgradient.average``."""
    lambda_ = 1.0 / C.sum()
    weight = C / C.mean()  # 1 for every row in the lecture
    w, b = np.zeros(X.shape[1]), 0.0  # 001 (5), (6)
    lengths = np.full(stop_count, np.inf)  # 001 (8), and see stochastic_subgradient.py
    iterates = [(w, b)]
    for t, batch in enumerate(batches, start=1):  # 1, 2, 001 (10)
        k = len(batch)
        margin_errors = batch[y[batch] * (X[batch] @ w + b) < 1]
        pull = weight[margin_errors] * y[margin_errors] / k
        v = pull @ X[margin_errors]  # 3, 001 (11)
        eta = 1 / (lambda_ * t) if step_sizes is None else step_sizes[t - 1]  # 001 (13)
        shrink = eta * lambda_ if step_sizes is not None else 1 / t
        w = (1 - shrink) * w + eta * v  # 4, 001 (14)
        own = intercept_step_size  # 000: b needs another step size
        if intercept == "exact":
            b = b + own * eta * pull.sum()  # 001 (15)
        elif intercept == "regularised":
            b = (1 - own * shrink) * b + own * eta * intercept_scaling**2 * pull.sum()
        if project:
            # A regularised intercept is one more coordinate of w, so it counts in the norm.
            beta = b / intercept_scaling if intercept == "regularised" else 0.0
            factor = max(1.0, np.sqrt(lambda_) * np.hypot(np.linalg.norm(w), beta))
            w = w / factor  # 5, 001 (16)
            if intercept == "regularised":
                b = b / factor
        iterates.append((w, b))
        lengths[(t - 1) % stop_count] = eta * np.linalg.norm(v)  # 001 (17)
        if lengths.sum() < threshold:  # 001 (19)
            break
    return iterates
