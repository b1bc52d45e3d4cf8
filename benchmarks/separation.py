# SPDX-License-Identifier: BSD-3-Clause
"""Whether a hyperplane separates two classes, decided by a linear program in exact arithmetic.

    find  lambda >= 0  with  sum_i lambda_i y_i x_i = 0,   sum_i lambda_i y_i = 0,   sum_i lambda_i = 1

Such weights exist if and only if no (w, b) has y_i (<w, x_i> + b) > 0 for all rows (Farkas). The first
phase of the simplex method finds them or, in its prices, such a (w, b). Bland's rule lets it end, and all
numbers are fractions; what it found is checked once more all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

ZERO, ONE = Fraction(0), Fraction(1)


def separates(rows: Sequence[Sequence[float]], y: Sequence[int], *, intercept: bool) -> bool:
    """Whether some hyperplane, through 0 where there is no intercept, separates the rows."""
    points = [[Fraction(value) for value in row] + [ONE] * intercept for row in rows]
    signed = [[label * value for value in point] for point, label in zip(points, y, strict=True)]
    weights, plane = _first_phase(signed)
    if weights is not None:
        columns = zip(*signed, strict=True)
        assert not any(sum(a * value for a, value in zip(weights, c, strict=True)) for c in columns)
        assert sum(weights) == 1
        assert min(weights) >= 0
        return False
    assert plane is not None
    assert all(sum(a * value for a, value in zip(plane, row, strict=True)) > 0 for row in signed)
    return True


def _first_phase(
    signed: list[list[Fraction]],
) -> tuple[list[Fraction] | None, list[Fraction] | None]:
    """The weights under which the rows add up to 0, or the plane that has all of them on one side."""
    n, m = len(signed), len(signed[0]) + 1
    # One line for each equation: the rows' columns, those of m slack variables, and the right-hand side.
    lines = [[row[c] for row in signed] for c in range(m - 1)] + [[ONE] * n]
    for k, line in enumerate(lines):
        line += [ONE if j == k else ZERO for j in range(m)] + [ONE if k == m - 1 else ZERO]
    basis = [n + k for k in range(m)]
    # The sum of the slack variables is minimised; below its value stand the reduced costs of all columns.
    prices = [-sum(line[j] for line in lines) for j in range(n)] + [ZERO] * m
    prices.append(-sum(line[-1] for line in lines))
    while True:
        entering = next((j for j in range(n + m) if prices[j] < 0), None)
        if entering is None:
            break
        ratios = [
            (line[-1] / line[entering], basis[k], k) for k, line in enumerate(lines) if line[entering] > 0
        ]
        leaving = min(ratios)[2]
        pivot = lines[leaving][entering]
        lines[leaving] = [value / pivot for value in lines[leaving]]
        for k, line in enumerate(lines):
            if k != leaving and line[entering]:
                factor = line[entering]
                lines[k] = [a - factor * b for a, b in zip(line, lines[leaving], strict=True)]
        factor = prices[entering]
        prices = [a - factor * b for a, b in zip(prices, lines[leaving], strict=True)]
        basis[leaving] = entering
    if prices[-1] == 0:
        weights = [ZERO] * n
        for k, j in enumerate(basis):
            if j < n:
                weights[j] = lines[k][-1]
        return weights, None
    # At the end  -u'A >= 0  for the multipliers u of the equations, and the last of them is positive.
    return None, [prices[n + k] - ONE for k in range(m - 1)]
