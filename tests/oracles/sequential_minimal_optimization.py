# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation as lecture 004 writes it down, with K for the inner products.

The letters are 004's: lambda for the multipliers, c for the costs, xi for ``lambda_1 y_1 + lambda_2 y_2``,
delta for the coefficients of the parabola, which are read off from values of W and not from a derivative.
"""

from __future__ import annotations

import numpy as np


def optimise_until_convergence(K, y, c, epsilon, selection="second_order"):
    """``repeat: select a pair, optimise W with respect to it; until KKT within epsilon``."""
    lambda_ = np.zeros(len(y))
    while kkt_violation(lambda_, K, y, c) > epsilon:
        first = first_row(lambda_, K, y, c)
        second = int(np.argmax(promises(lambda_, K, y, c, first, selection)))
        lambda_ = optimise_pair(lambda_, K, y, c, first, second)
    return lambda_


def W(lambda_, K, y):
    """The dual objective."""
    return lambda_.sum() - 0.5 * (lambda_ * y) @ K @ (lambda_ * y)


def optimise_pair(lambda_, K, y, c, first, second):
    """Optimise W with respect to two multipliers while the others are fixed."""
    one, two = lambda_[first], lambda_[second]
    xi = one * y[first] + two * y[second]

    def point(value):
        moved = lambda_.copy()
        moved[second] = value
        moved[first] = (xi - value * y[second]) * y[first]  # (**)
        return moved

    if y[first] == y[second]:  # (*): lambda_1 = one + two - lambda_2
        L, H = max(0.0, one + two - c[first]), min(c[second], one + two)
    else:  # lambda_1 = one - two + lambda_2
        L, H = max(0.0, two - one), min(c[second], c[first] + two - one)
    at_0, at_1, at_2 = (W(point(value), K, y) for value in (0.0, 1.0, 2.0))
    delta_2 = 0.5 * (at_2 - 2 * at_1 + at_0)
    delta_1 = at_1 - at_0 - delta_2
    # Where there is no parabola, the best point is L or H.
    raw = -delta_1 / (2 * delta_2) if delta_2 < -1e-12 else np.copysign(np.inf, delta_1)
    clipped = H if raw >= H else L if raw < L else raw
    moved = point(clipped)
    for wall in (0.0, c[first]):
        if abs(moved[first] - wall) < 1e-12 * c[first]:
            moved[first] = wall  # where (**) leads but for rounding
    return moved


def first_row(lambda_, K, y, c):
    """The row of the least f whose lambda_i y_i may grow."""
    grow, _ = _movable(lambda_, y, c)
    return int(np.argmin(np.where(grow, K @ (lambda_ * y) - y, np.inf)))


def promises(lambda_, K, y, c, first, selection):
    """What every row promises as the second one of the pair; -inf where nothing can be won."""
    f = K @ (lambda_ * y) - y
    _, fall = _movable(lambda_, y, c)
    slope = np.where(fall, f - f[first], -np.inf)
    if selection == "second_order":
        eta = K[first, first] + np.diag(K) - 2 * K[first]
        slope = np.where(slope > 0, slope**2 / np.maximum(eta, 1e-12), -np.inf)
    return slope


def kkt_violation(lambda_, K, y, c):
    """The smallest epsilon for which some b fulfils 004's three conditions.

    ``y_i (a'x_i + b) >= 1 - epsilon`` where ``lambda_i < c`` and ``<= 1 + epsilon`` where ``lambda_i > 0``
    bound b by ``-f_i - epsilon`` from below or ``-f_i + epsilon`` from above.
    """
    f = K @ (lambda_ * y) - y
    grow, fall = _movable(lambda_, y, c)
    if not grow.any() or not fall.any():
        return 0.0
    return max(0.0, 0.5 * (f[fall].max() - f[grow].min()))


def _movable(lambda_, y, c):
    """Whether lambda_i y_i may grow, and whether it may fall."""
    below, above = lambda_ < c, lambda_ > 0
    return np.where(y > 0, below, above), np.where(y > 0, above, below)
