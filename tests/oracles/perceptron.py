# SPDX-License-Identifier: BSD-3-Clause
"""Rosenblatt's perceptron, pass after pass."""

from __future__ import annotations

import numpy as np


def perceptron(X, y, passes, *, bias_feature=0.0):
    """Yield ``(w, b, mistakes of each row)`` after every pass, up to the first without a mistake."""
    w, beta = np.zeros(X.shape[1]), 0.0
    counts = np.zeros(len(y))
    for order in passes:
        before = counts.sum()
        for i in order:  # 1
            if y[i] * (X[i] @ w + bias_feature * beta) <= 0:  # 2
                w = w + y[i] * X[i]  # 3
                beta += y[i] * bias_feature  # 4
                counts[i] += 1
        yield w, bias_feature * beta, counts.copy()
        if counts.sum() == before:
            return
