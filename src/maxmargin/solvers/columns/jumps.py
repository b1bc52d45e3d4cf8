# SPDX-License-Identifier: BSD-3-Clause
"""Jumps on a quadratic model with an l1 penalty: all columns that are not 0 move at once.

    minimise over d   <g, d> + 1/2 d' H d + sum_j t_j |z_j + d_j|

Sweeps over one column after the other would go on without end where columns nearly depend on each other. A
jump solves for the signs that z has. The step can be long, and on the way some columns change their signs;
the model knows that, and its least value on the line is where the jump ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem.rows import Matrix
from maxmargin.types import Vector

_CHEAP = 200
"""Columns that are not 0, up to which a jump costs about as much as 30 sweeps over written products."""
_RIDGE = 1e-12
"""What is added to the diagonal of a jump's system, as a share of it: columns may depend on each other."""


def jumps_on_products(
    products: Matrix, gradient: Vector, z: Vector, thresholds: Vector, budget: Budget
) -> bool:
    """A jump, or where it is cheap as many as go on to change signs. Whether there was a move.

    ``products`` are H. The gradient, g + H d, follows z.
    """
    count, moved = int(np.count_nonzero(z)), False
    for _ in range(count if count <= _CHEAP else 1):
        signs = np.sign(z)
        if budget.spent or not _jump(products, gradient, z, thresholds):
            break
        moved = True
        if np.array_equal(signs, np.sign(z)):
            break
    return moved


def _jump(products: Matrix, gradient: Vector, z: Vector, thresholds: Vector) -> bool:
    some = np.flatnonzero(z)
    if not len(some):
        return False
    slopes = gradient[some] + thresholds[some] * np.sign(z[some])
    step = _solved(products[np.ix_(some, some)], -slopes)

    def effect_of(change: Vector) -> tuple[Vector, float]:
        spread = np.zeros_like(z)
        spread[some] = change
        turned = np.asarray(products @ spread, np.float64)
        return turned, core.dot(change, turned[some])

    moved = best_move(z[some], step, thresholds[some], gradient[some], effect_of)
    if moved is None:
        return False
    z[some] = moved[0]
    gradient += moved[1]
    return True


def best_move(
    before: Vector,
    step: Vector,
    thresholds: Vector,
    gradient: Vector,
    effect_of: Callable[[Vector], tuple[Vector, float]],
    image: Vector | None = None,
) -> tuple[Vector, Vector] | None:
    """The point that a step leads to, and the effect of the move; None where the model does not fall.

    It is the best one on the line, or the one at which all that would cross 0 are there: many columns can
    leave at once. ``effect_of`` has, for a change, whatever follows from it linearly, and its ``d' H d``.
    What follows from the step may be known: its ``image``, whose square is that.
    """
    slope = core.dot(step, gradient + thresholds * np.sign(before))
    if not (np.isfinite(step).all() and slope < 0.0):
        return None
    effect, curvature = effect_of(step) if image is None else (image, core.dot(image, image))
    crosses = (before * step < 0.0) & (thresholds > 0.0)
    with np.errstate(over="ignore"):  # a step too short to cross is as good as none
        ends = np.divide(-before, step, out=np.full(len(step), np.inf), where=crosses)
    share, last = share_of_line(slope, curvature, ends, 2.0 * thresholds * np.abs(step))
    moved = before + share * step
    if last >= 0:
        moved[last] = 0.0
    effect = share * effect
    beyond = ends <= 1.0
    if beyond.any():
        nearer = np.where(beyond, 0.0, before + step)
        other, other_curvature = effect_of(nearer - before)

        def value(point: Vector, curvature: float) -> float:
            held = core.dot(thresholds, np.abs(point) - np.abs(before))
            return core.dot(gradient, point - before) + 0.5 * curvature + held

        if value(nearer, other_curvature) < value(moved, share * share * curvature):
            moved, effect = nearer, other
    return None if np.array_equal(moved, before) else (moved, effect)


def share_of_line(slope: float, curvature: float, ends: Vector, kinks: Vector) -> tuple[float, int]:
    """How much of a step is best, and the column that is 0 then, or -1.

    Along the step the model has this slope at first, which is below 0. It rises by ``curvature`` per step,
    and by ``kinks_j`` where column j becomes 0, at ``ends_j``; that is infinite for those that do not.
    """
    order = np.argsort(ends)[: np.count_nonzero(ends < np.inf)]
    rises = np.cumsum(kinks[order])
    after = slope + curvature * ends[order] + rises
    upward = np.flatnonzero(after >= 0.0)
    first = int(upward[0]) if len(upward) else len(order)
    if first < len(order) and after[first] - kinks[order[first]] <= 0.0:
        return float(ends[order[first]]), int(order[first])
    if not curvature > 0.0:  # which rounding may leave where columns depend on each other
        return (float(ends[order[-1]]), int(order[-1])) if len(order) else (1.0, -1)
    return -(slope + (float(rises[first - 1]) if first > 0 else 0.0)) / curvature, -1


def _solved(matrix: Matrix, right: Vector) -> Vector:
    """The solution of a symmetric system, which a little on its diagonal makes definite beyond rounding."""
    diagonal = np.diag_indices_from(matrix)
    matrix[diagonal] += _RIDGE * (matrix[diagonal] + matrix[diagonal].max())
    try:
        factor = cho_factor(matrix, check_finite=False)
    except LinAlgError:
        return np.full_like(right, np.nan)
    return np.asarray(cho_solve(factor, right, check_finite=False), np.float64)
