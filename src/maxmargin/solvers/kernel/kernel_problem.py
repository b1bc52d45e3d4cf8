# SPDX-License-Identifier: BSD-3-Clause
"""What the solvers for kernel problems share."""

from __future__ import annotations

import numpy as np

from maxmargin import core
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.types import Vector

SINGLE_IS_EXHAUSTED = 1e-5
"""A relative gap as seen with a matrix in single precision: from here on it may be another one's."""


def needs_a_kernel(name: str) -> str:
    """The refusal of a problem without kernel."""
    return (
        f"{name} solves kernel problems. Use maxmargin.kernels.KernelRows(X, kernel) as rows, with "
        "Linear() as kernel for a linear problem, or solver='auto'."
    )


def kernel_matrix(
    rows: KernelRows, cache_size: float, counts: core.CacheCounts, *, single: bool
) -> core.KernelMatrix:
    """The matrix in the order of the blocks; ``cache_size`` is the memory for its rows, in megabytes.

    ``counts`` are those of all matrices of a run.
    """
    return core.KernelMatrix(
        rows.data,
        rows.kernel.compiled,
        rows.which[rows.blocks.order],
        rows.blocks.begins,
        int(cache_size * 1e6),
        single,
        counts,
        rows.spare,
    )


def starting_alpha(problem: Problem, start: Solution | None) -> Vector | None:
    """A start's multipliers, inside their box; None where it has none that differ from 0."""
    if start is None or start.alpha is None or not start.alpha.any():
        return None
    return np.clip(start.alpha, 0.0, problem.upper)


def balanced(alpha: Vector, y: Vector) -> Vector:
    """Alpha with the multipliers of the heavier class scaled down until ``sum_i alpha_i y_i = 0``."""
    positive, negative = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
    lighter = min(positive, negative)
    factors = np.where(y > 0, lighter / (positive or 1.0), lighter / (negative or 1.0))
    return alpha * factors
