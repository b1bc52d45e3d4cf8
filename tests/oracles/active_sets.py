# SPDX-License-Identifier: BSD-3-Clause
"""One proximal problem of the active sets in plain NumPy, from bordered systems.

minimise over t   1/2 t' K t - y' t + r/2 sum_i K_ii (t_i - beta_i)^2,   low <= t <= high,   sum t = 0
"""

from __future__ import annotations

import numpy as np


def proximal_step(K, y, low, high, beta, r, b, systems):
    """The target of the systems, clipped to its walls; and whether no row would change sides."""
    slopes = K @ beta - y + b
    free = {
        i
        for i in range(len(y))
        if low[i] < beta[i] < high[i]
        or (slopes[i] < 0 and beta[i] < high[i])
        or (slopes[i] > 0 and beta[i] > low[i])
    }
    target = beta.copy()
    M = K + r * np.diag(np.diag(K))
    for _ in range(systems):
        J = sorted(free)
        if len(J) < 2:
            break
        rest = np.array([0.0 if i in free else target[i] - beta[i] for i in range(len(y))])
        bordered = np.ones((len(J) + 1, len(J) + 1))
        bordered[:-1, :-1] = M[np.ix_(J, J)]
        bordered[-1, -1] = 0.0
        right = np.append(-(slopes + K @ rest)[J], -(beta.sum() + rest.sum()))
        solved = np.linalg.solve(bordered, right)
        change = rest
        change[J] = solved[:-1]
        pushed = slopes + M @ change + solved[-1]
        target = beta + change
        beyond = {i for i in free if not low[i] <= target[i] <= high[i]}
        rests = {
            i
            for i in set(range(len(y))) - free
            if (target[i] <= low[i] and pushed[i] < 0) or (target[i] >= high[i] and pushed[i] > 0)
        }
        target = np.clip(target, low, high)
        if not beyond | rests:
            return target, True
        free = (free - beyond) | {i for i in rests if low[i] < high[i]}
    return target, False
