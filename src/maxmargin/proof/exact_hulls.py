# SPDX-License-Identifier: BSD-3-Clause
"""Whether weights near given ones make exactly the same point of both classes.

Computed weights never do, for rounding. But those of some rows, as many as there are equations, follow from
the others by a linear system, and that has an exact solution. Where it is positive, the hulls meet:

1  few equations, or few rows: the system is solved in fractions
2  more of both: some matrix R is nearly the inverse of the system's M. Where the norm of I - R M is at most
   1/2, rounding included, M is regular, and the exact solution is within 2 |R (e - M z)| of any z.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem.rows import UNIT
from maxmargin.solvers import sizes
from maxmargin.types import Vector

Matrix = NDArray[np.float64]


def has_positive_solution(system: Matrix, right: Vector, near: Vector) -> bool:
    """Whether some z >= 0 near the given one solves ``system z = right`` in exact arithmetic.

    False where that is not proven.
    """
    used = np.flatnonzero(near > 0.0)
    if system.shape[0] * len(used) > sizes.EXACT_HULL_VALUES:
        return False
    system, near = system[:, used], near[used]
    if not len(used):
        return False
    if min(system.shape) <= sizes.FRACTION_EQUATIONS:
        return _in_fractions(system, right, near)
    return system.shape[0] <= system.shape[1] and _by_an_inverse(system, right, near)


def _in_fractions(system: Matrix, right: Vector, near: Vector) -> bool:
    """Gauss-Jordan elimination; columns of small weight are the first to stay as they are."""
    order = np.argsort(-near, kind="stable")
    rows = [
        [Fraction(value) for value in [*equation[order].tolist(), float(end)]]
        for equation, end in zip(system, right, strict=True)
    ]
    count, done = len(order), 0
    pivots: list[int] = []
    for column in range(count):
        at = next((k for k in range(done, len(rows)) if rows[k][column]), None)
        if at is None:
            continue
        rows[done], rows[at] = rows[at], rows[done]
        scale = rows[done][column]
        rows[done] = [value / scale for value in rows[done]]
        for k, row in enumerate(rows):
            if k != done and (factor := row[column]):
                rows[k] = [a - factor * b for a, b in zip(row, rows[done], strict=True)]
        pivots.append(column)
        done += 1
    if any(row[-1] for row in rows[done:]):
        return False  # the equations contradict each other
    free = [column for column in range(count) if column not in set(pivots)]
    kept = {column: Fraction(float(near[order[column]])) for column in free}
    return all(
        row[-1] - sum((row[column] * kept[column] for column in free), Fraction(0)) >= 0
        for row in rows[:done]
    )


def _by_an_inverse(system: Matrix, right: Vector, near: Vector) -> bool:
    """The weights of as many rows as there are equations change a little, and the others stay."""
    from scipy.linalg import qr

    size = len(right)
    scale = 2.0 ** -np.round(np.log2(np.maximum(np.abs(system).max(axis=1), np.finfo(np.float64).tiny)))
    system, right = system * scale[:, np.newaxis], right * scale  # exact: powers of two
    chosen = qr(system * near, mode="r", pivoting=True)[1][:size]
    square = system[:, chosen]
    try:
        inverse = np.linalg.inv(square)
    except np.linalg.LinAlgError:
        return False
    unit = (size + 4.0) * UNIT
    sizes = np.abs(inverse)
    off = np.abs(np.eye(size) - inverse @ square) + 2.0 * unit * (sizes @ np.abs(square))
    if not float(off.sum(axis=1).max()) * (1.0 + unit) <= 0.5:
        return False
    sums = (len(near) + 4.0) * UNIT * (np.abs(system) @ near + np.abs(right))
    left = np.abs(right - system @ near) + 2.0 * sums
    reach = 2.0 * float((sizes @ left).max()) * (1.0 + 2.0 * unit)
    return bool(float(near[chosen].min()) > reach)
