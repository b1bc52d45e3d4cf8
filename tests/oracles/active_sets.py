# SPDX-License-Identifier: BSD-3-Clause
"""One proximal problem of the active sets in plain NumPy, from bordered systems.

minimise over t   1/2 t' K t - y' t + e' |t| + r/2 sum_i K_ii (t_i - beta_i)^2
subject to        low <= t <= high,   sum t = 0
"""

from __future__ import annotations

import numpy as np


def proximal_step(K, y, e, low, high, beta, r, b, systems):
    """The target of the systems, clipped to its walls; and whether no row would change sides."""
    n = len(y)
    slopes = K @ beta - y + b

    def side_of(i, t, slope):
        """The side on which row i would gain by leaving t: 1, -1, or 0 where it stays."""
        if t < high[i] and slope + (-e[i] if t < 0 else e[i]) < 0:
            return -1 if t < 0 else 1
        if t > low[i] and slope + (e[i] if t > 0 else -e[i]) > 0:
            return 1 if t > 0 else -1
        return 0

    def ends(i, side):
        """Where row i may go on its side of the kink."""
        if e[i] == 0:
            return low[i], high[i]
        return (0.0, high[i]) if side > 0 else (low[i], 0.0)

    free = {}
    for i in range(n):
        side = side_of(i, beta[i], slopes[i])
        own = side if beta[i] == 0 else int(np.sign(beta[i]))
        if side or (own and ends(i, own)[0] < beta[i] < ends(i, own)[1]):
            free[i] = own
    target = beta.copy()
    M = K + r * np.diag(np.diag(K))
    for _ in range(systems):
        J = sorted(free)
        if len(J) < 2:
            break
        rest = np.array([0.0 if i in free else target[i] - beta[i] for i in range(n)])
        bordered = np.ones((len(J) + 1, len(J) + 1))
        bordered[:-1, :-1] = M[np.ix_(J, J)]
        bordered[-1, -1] = 0.0
        tilts = np.array([free[i] * e[i] for i in J])
        right = np.append(-(slopes + K @ rest)[J] - tilts, -(beta.sum() + rest.sum()))
        solved = np.linalg.solve(bordered, right)
        change = rest
        change[J] = solved[:-1]
        pushed = slopes + M @ change + solved[-1]
        target = beta + change
        beyond = {i for i in free if not ends(i, free[i])[0] <= target[i] <= ends(i, free[i])[1]}
        for i in free:
            target[i] = np.clip(target[i], *ends(i, free[i]))
        leaving = {i: side_of(i, target[i], pushed[i]) for i in set(range(n)) - set(free)}
        leaving = {i: side for i, side in leaving.items() if side}
        if not beyond and not leaving:
            return target, True
        free = {i: side for i, side in free.items() if i not in beyond} | leaving
    return target, False
