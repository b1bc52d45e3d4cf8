# SPDX-License-Identifier: BSD-3-Clause
"""One round of the working set method in plain NumPy, on a set that is given.

minimise over beta   1/2 beta' K beta - y' beta,     low <= beta <= high,   sum beta = 0
"""

from __future__ import annotations

import numpy as np


def one_round(K, y, low, high, beta, chosen, share):
    """Pairs of ``chosen`` are moved until they violate by ``share`` of what they did at first.

    A pair takes the direction p of the last step along, where that meets no wall; the first steps, a
    quarter of the rows, leave none.
    """
    beta = beta.copy()
    f = K @ beta - y
    first, steps = None, 0
    p = np.zeros(len(y))
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
        steps += 1
        better = [j for j in fall if f[j] > f[i]]
        product, length = K @ p, p @ K @ p
        pairs = {j: pair_of(i, j, len(y)) for j in better}
        eta = {j: max(pair @ K @ pair, 1e-12) for j, pair in pairs.items()}
        turns = {j: -(pair @ product) / length if length > 0.0 else 0.0 for j, pair in pairs.items()}
        curvatures = {j: max(eta[j] - turns[j] ** 2 * length, 0.01 * eta[j]) for j in better}
        j = max(better, key=lambda row: (f[row] - f[i]) ** 2 / curvatures[row])
        slope, along = f[j] - f[i], pairs[j] + turns[j] * p
        target = beta + slope / curvatures[j] * along
        moved = along != 0.0
        if length > 0.0 and curvatures[j] > 0.01 * eta[j] and inside(target, low, high)[moved].all():
            beta, p = target, along
        else:
            beta = beta + min(slope / eta[j], high[i] - beta[i], beta[j] - low[j]) * pairs[j]
            leaves = steps > len(chosen) // 4 and inside(beta, low, high)[[i, j]].all()
            p = pairs[j] if leaves else np.zeros(len(y))
        f = K @ beta - y


def pair_of(i, j, size):
    """The direction in which the multiplier of i grows, and that of j falls."""
    pair = np.zeros(size)
    pair[i], pair[j] = 1.0, -1.0
    return pair


def inside(beta, low, high):
    """Which multipliers are away from their walls; what is as near as rounding is at them."""
    room = 1e-12 * (high - low)
    return (beta > low + room) & (beta < high - room)


def newton_step(K, f):
    """u with ``K u + nu 1 = -f`` and ``sum u = 0``, from the bordered system."""
    size = len(f)
    bordered = np.ones((size + 1, size + 1))
    bordered[:size, :size] = K
    bordered[size, size] = 0.0
    return np.linalg.solve(bordered, np.append(-f, 0.0))[:size]
