# SPDX-License-Identifier: BSD-3-Clause
"""The end of a kernel problem: Newton's method on the multipliers that are free.

Once it is known which multipliers rest on a wall, the others solve a linear system: f = K beta - y is to be
the same number -b on all of them, and their sum is not to change,

    K_FF u + nu 1 = -f_F,      sum u = 0.

The step u is cut where the first multiplier meets its wall; that one leaves F, and the rest goes on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.types import Vector

_RIDGE = 1e-12
"""Of the mean of the diagonal: equal rows make K_FF singular."""
_MOST_CUTS = 8


def newton_changes(
    K: NDArray[np.float64], f: Vector, beta: Vector, low: Vector, high: Vector
) -> Vector | None:
    """Changes of the free multipliers beta, inside their walls; None where K_FF cannot be factored.

    ``f`` is the gradient on them before any of the changes.
    """
    target, f = beta.copy(), f.copy()
    inside = np.arange(len(beta))
    for _ in range(_MOST_CUTS):
        direction = _direction(K[np.ix_(inside, inside)], f[inside])
        if direction is None:
            return None
        room = np.where(direction > 0.0, high[inside] - target[inside], low[inside] - target[inside])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(direction == 0.0, np.inf, room / direction)
        step = min(1.0, float(steps.min(initial=1.0)))
        f += step * (K[:, inside] @ direction)
        target[inside] = np.clip(target[inside] + step * direction, low[inside], high[inside])
        if step == 1.0:
            break
        inside = inside[steps > step]
        if len(inside) < 2:
            break
    return target - beta


def _direction(K: NDArray[np.float64], f: Vector) -> Vector | None:
    """The u of the system above."""
    ridge = _RIDGE * max(float(np.diag(K).mean()), np.finfo(float).tiny)
    try:
        factor = cho_factor(K + ridge * np.eye(len(K)), lower=True, overwrite_a=True)
    except LinAlgError:
        return None
    of_one, of_f = cho_solve(factor, np.column_stack([np.ones(len(K)), f])).T
    total = float(of_one.sum())
    if not total > 0.0:
        return None
    nu = -float(of_f.sum()) / total
    u: Vector = -of_f - nu * of_one
    u -= u.mean()
    return u
