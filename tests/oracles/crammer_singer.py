# SPDX-License-Identifier: BSD-3-Clause
"""Dual ascent by blocks for all classes at once, in plain NumPy: the pseudo-code of its page."""

from __future__ import annotations

import numpy as np


def projected(heights, volume):
    """The level theta with sum_k max(0, D_k - theta) = volume, by sorting."""
    descending = np.sort(heights)[::-1]
    levels = (np.cumsum(descending) - volume) / np.arange(1, len(heights) + 1)
    return levels[np.flatnonzero(descending > levels)[-1]]


def sweep(X, codes, costs, beta, w, order):
    """One sweep over the rows in ``order``; changes beta (one line per row) and w (one line per class).

    Returns the rows' shares of the gap, each at the time of its visit.
    """
    gap = 0.0
    for i in order:  # 1
        y, x, C = codes[i], X[i], costs[i]
        G = w @ x + (np.arange(len(w)) != y)  # 2
        gap += C * (G.max() - G[y]) + beta[i] @ G
        A = x @ x
        upper = np.where(np.arange(len(w)) == y, C, 0.0)
        D = G - A * beta[i] + A * upper
        target = np.minimum(upper, upper + (projected(D, A * C) - D) / A)  # 3
        w += np.outer(target - beta[i], x)  # 4
        beta[i] = target
    return gap
