# SPDX-License-Identifier: BSD-3-Clause
"""Cholesky's factor of a dense matrix, some columns at a time, so that Ctrl-C need not wait for all.

for the columns P of a panel, with B those before it and R the rows below:
1  A_PP, A_RP -= L_PB L_PB', L_RB L_PB'
2  L_PP L_PP'  = A_PP
3  L_RP        = A_RP (L_PP')^-1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import blas, lapack

from maxmargin.core import ALL_CORES, Budget
from maxmargin.problem.rows import Matrix
from maxmargin.solvers.base import end_if_stopped
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.side_by_side import side_by_side
from maxmargin.types import Vector

_RIDGES = 12
"""Tries to factor a matrix: from nothing, a ridge grows to the size of the diagonal and beyond, which makes
anything definite that is so but for rounding."""
_AT_ONCE = 1_000
"""Columns that are factored in one call: it takes about ten milliseconds."""
_PANEL = 128
"""Columns of a panel beyond: with 6,000 rows it takes some hundredths of a second, and smaller ones make
the products slower."""
_PART = 512
"""Rows of a panel that a thread takes at once: a product of some milliseconds."""
_COLUMNS = 64
"""Right-hand sides that a thread takes at once: some milliseconds for 2,000 rows, a twentieth of a
second for 8,000."""
TOO_LARGE = "The data are too large to be squared. Scale the features to similar ranges."


def solved_by(factor: Matrix, right: Matrix) -> Matrix:
    """The solution for one right-hand side or several, by a factor from here."""
    with one_blas_thread():
        solved, _ = lapack.dpotrs(factor, right, lower=0)
    return np.asarray(solved)


def half_solved(
    factor: Matrix, right: Matrix, budget: Budget = ALL_CORES, *, in_time: bool = False
) -> Matrix:
    """L^-1 times one right-hand side or several, by a factor L' from here: half of a solution.

    What the budget ends is said by ``factored``.
    """
    half = np.array(right, np.float64, order="F")
    if half.ndim == 1:
        with one_blas_thread():
            return np.asarray(blas.dtrsv(factor, half, lower=0, trans=1, overwrite_x=1))

    def solve(some: slice) -> None:
        _end_in_time(budget, in_time)
        half[:, some] = blas.dtrsm(1.0, factor, half[:, some], lower=0, trans_a=1)

    parts = [slice(column, column + _COLUMNS) for column in range(0, half.shape[1], _COLUMNS)]
    side_by_side([partial(solve, part) for part in parts], budget.threads)
    return half


def solved_from_half(factor: Matrix, half: Vector) -> Vector:
    """The other half of the way."""
    with one_blas_thread():
        return np.asarray(blas.dtrsv(factor, half, lower=0, trans=0))


def _end_in_time(budget: Budget, in_time: bool) -> None:
    end_if_stopped(budget)
    if in_time and budget.spent:
        raise TimeoutError


def factored(matrix: Matrix, budget: Budget, *, in_time: bool = False) -> Matrix | None:
    """The factor L' of a matrix whose lower triangle is read, which it takes the place of.

    What lies above the diagonal stays as it is, in memory and in the factor's other triangle. None where
    the matrix is not positive definite; KeyboardInterrupt once the budget is stopped, and TimeoutError once
    it is spent, if it is to be ``in_time``.
    """
    with one_blas_thread():
        if len(matrix) <= _AT_ONCE:
            whole, failed = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
            return None if failed else np.asarray(whole)
        for first in range(0, len(matrix), _PANEL):
            _end_in_time(budget, in_time)
            panel = matrix[first:, first : first + _PANEL]
            size = panel.shape[1]
            before = matrix[first:, :first]
            corner, failed = lapack.dpotrf(panel[:size] - before[:size] @ before[:size].T, lower=1)  # 1, 2
            if failed:
                return None
            np.copyto(panel[:size], corner, where=np.tri(size, dtype=bool))

            def finish(
                some: slice, panel: Matrix = panel, before: Matrix = before, corner: Matrix = corner
            ) -> None:
                left = panel[some]
                if before.shape[1]:
                    left -= before[some] @ before[: len(corner)].T  # 1
                panel[some] = blas.dtrsm(1.0, corner, left, side=1, lower=1, trans_a=1)  # 3

            parts = [slice(row, row + _PART) for row in range(size, len(panel), _PART)]
            side_by_side([partial(finish, part) for part in parts], budget.threads)
    return matrix.T


def cholesky(
    lower: Matrix | Callable[[], Matrix],
    diagonal: Vector,
    budget: Budget = ALL_CORES,
    *,
    in_time: bool = False,
) -> Matrix:
    """The factor of this lower triangle plus the diagonal, positive definite but for rounding.

    The triangle may be a function that makes it, where that is no more work than to copy it. What the
    budget ends is said by ``factored``.
    """
    make = lower.copy if isinstance(lower, np.ndarray) else lower
    ridge = 0.0
    for _ in range(_RIDGES):
        matrix = make()
        on_diagonal = np.einsum("ii->i", matrix)
        largest = float(on_diagonal.max())
        if not (math.isfinite(largest) and math.isfinite(ridge)):
            break
        on_diagonal += diagonal + ridge
        # Where no row has curvature and the intercept is exact, any scale will do for it.
        on_diagonal[on_diagonal <= 0.0] = 1.0
        factor = factored(matrix, budget, in_time=in_time)
        if factor is not None:
            return factor
        # Rounding has eaten the diagonal. Any positive definite matrix gives a direction of descent.
        ridge = max(100.0 * ridge, 1e-15 * (largest if largest > 0.0 else 1.0))
    raise FloatingPointError(TOO_LARGE)
