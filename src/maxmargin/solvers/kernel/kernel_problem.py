# SPDX-License-Identifier: BSD-3-Clause
"""What the solvers for kernel problems share."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.kernels.cache_use import bytes_of, notes_of
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Intercept, Problem
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


def not_for_pairs(name: str, problem: Problem) -> str | None:
    """Why a solver that moves pairs of multipliers cannot take the problem; None where it can."""
    if problem.loss.name != "hinge":
        return (
            f"{name} minimises the hinge loss, not {problem.loss.name}; for the squared hinge use "
            "kernel_dual_ascent."
        )
    if not isinstance(problem.rows, KernelRows):
        return needs_a_kernel(name)
    if problem.intercept is not Intercept.EXACT:
        return (
            f"{name} keeps sum_i alpha_i y_i = 0, which intercept='exact' asks for. Got "
            f"{problem.intercept.value!r}: use kernel_dual_ascent."
        )
    return None


def kernel_rows(problem: Problem) -> KernelRows:
    """The rows of a problem that a solver has accepted."""
    assert isinstance(problem.rows, KernelRows)
    return problem.rows


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
        cache_bytes=bytes_of(cache_size),
        single=single,
        counts=counts,
        spare=rows.spare,
    )


def kernel_dual(problem: Problem, start: Solution | None) -> core.KernelDual:
    """The dual in the order of the blocks, at the start's multipliers; its gradient is that of beta = 0."""
    order = kernel_rows(problem).blocks.order
    y = problem.y[order]
    dual = core.KernelDual(y, problem.costs[order])
    alpha = starting_alpha(problem, start)
    if alpha is not None:
        dual.beta[:] = alpha[order] * y
    return dual


def starting_alpha(problem: Problem, start: Solution | None) -> Vector | None:
    """A start's multipliers, made feasible; None where it has none that differ from 0."""
    if start is None or start.alpha is None or not start.alpha.any():
        return None
    alpha = np.array(start.alpha, np.float64)
    problem.objective.make_feasible(alpha)
    return alpha


def solution_of(problem: Problem, cache: core.CacheCounts, *, alpha: Vector, **known: Any) -> Solution:
    """The answer of a dual method whose multipliers are in the order of the blocks."""
    in_order_of_rows = np.empty(len(alpha))
    in_order_of_rows[kernel_rows(problem).blocks.order] = alpha
    return Solution(alpha=in_order_of_rows, notes=notes_of(cache), **known)
