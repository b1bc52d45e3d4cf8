# SPDX-License-Identifier: BSD-3-Clause
"""One round of the working set method in plain NumPy, on a set that is given.

minimise over beta   1/2 beta' K beta - y' beta,     low <= beta <= high,   sum beta = 0
"""

from __future__ import annotations

import numpy as np


def one_round(K, y, low, high, beta, chosen, share):
    """Pairs of ``chosen`` are moved until they violate by ``share`` of what they did at first."""
    beta = beta.copy()
    f = K @ beta - y
    first = None
    while True:
        grow = [i for i in chosen if beta[i] < high[i]]
        fall = [j for j in chosen if beta[j] > low[j]]
        if not grow or not fall:
            return beta
        i = min(grow, key=lambda row: f[row])
        violation = max(f[j] for j in fall) - f[i]
        first = violation if first is None else first
        if violation <= max(share * first, 0.0):
            return beta
        better = [j for j in fall if f[j] > f[i]]
        eta = {j: max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12) for j in better}
        j = max(better, key=lambda row: (f[row] - f[i]) ** 2 / eta[row])
        step = min((f[j] - f[i]) / eta[j], high[i] - beta[i], beta[j] - low[j])
        beta[i] += step
        beta[j] -= step
        f = K @ beta - y


def newton_step(K, f):
    """u with ``K u + nu 1 = -f`` and ``sum u = 0``, from the bordered system."""
    size = len(f)
    bordered = np.ones((size + 1, size + 1))
    bordered[:size, :size] = K
    bordered[size, size] = 0.0
    return np.linalg.solve(bordered, np.append(-f, 0.0))[:size]
