# SPDX-License-Identifier: BSD-3-Clause
"""Stochastic subgradient steps on batches: lecture 001's "subsample approximation", 000's averages."""

from __future__ import annotations

import numpy as np

from oracles import DERIVATIVE


def stochastic_subgradient(
    X,
    y,
    C,
    batches,
    step_sizes,
    *,
    loss="hinge",
    intercept="none",
    intercept_scaling=1.0,
    threshold=0.0,
    stop_count=1,
    start=None,
    intercept_step_size=1.0,
):
    """All iterates ``(w_1, b_1), (w_2, b_2), ...``, the first one the start."""
    lambda_ = 1.0 / C.sum()
    weight = C / C.mean()
    w, b = (np.zeros(X.shape[1]), 0.0) if start is None else start
    # 001 (9) starts the lengths at 0, and would stop at once if the first step were short; only
    # stop_count steps taken make a sum worth comparing.
    lengths = np.full(stop_count, np.inf)
    iterates = [(w, b)]
    for t, (batch, eta) in enumerate(zip(batches, step_sizes, strict=True)):  # 1, 2
        m = y[batch] * (X[batch] @ w + b)
        slope = weight[batch] * DERIVATIVE[loss](m) * y[batch] / len(batch)
        v = X[batch].T @ slope  # 3, 001 (12)
        w = (1 - eta * lambda_) * w - eta * v  # 4, 001 (14)
        own = intercept_step_size * eta  # 000: b needs another step size
        if intercept == "exact":
            b = b - own * slope.sum()  # 5, 001 (15)
        elif intercept == "regularised":
            b = (1 - own * lambda_) * b - own * intercept_scaling**2 * slope.sum()
        iterates.append((w, b))
        lengths[t % stop_count] = eta * np.linalg.norm(v)  # 001 (16)
        if lengths.sum() < threshold:  # 001 (18)
            break
    return iterates


def average(iterates, which, steps_per_epoch):
    """000's output: the last iterate, the mean of w_1 .. w_T or of w_T0 .. w_T, or since the last doubling.

    The doubling is of epochs: after E of them the mean starts with epoch 0, 1, 2, 4, 8, ..., the last
    one that is below E. As in the lecture, the newest iterate w_{T+1} is not part of a mean.
    """
    if which == "last":
        return iterates[-1]
    taken = iterates[:-1]
    first = 0
    if isinstance(which, int):
        if len(taken) < which:
            return iterates[-1]
        first = which - 1
    if which == "suffix":
        epochs = len(taken) // steps_per_epoch
        first = max(e for e in (0, 1, 2, 4, 8, 16) if e < epochs) * steps_per_epoch
    w, b = zip(*taken[first:], strict=True)
    return np.mean(w, axis=0), np.mean(b)
