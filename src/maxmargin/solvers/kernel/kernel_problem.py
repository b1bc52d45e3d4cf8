# SPDX-License-Identifier: BSD-3-Clause
"""What the solvers for kernel problems share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin import core
from maxmargin.kernels.cache_use import notes_of
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.solution import Solution
from maxmargin.tools.parameters import bytes_of
from maxmargin.types import Indices, Vector

SINGLE_IS_EXHAUSTED = 1e-5
"""A relative gap as seen with a matrix in single precision: from here on it may be another one's."""

_ROUNDING = 1e-13
"""The share of the largest multiplier that rounding may take from one that is made feasible once more."""


def needs_a_kernel(name: str) -> str:
    """The refusal of a problem without kernel."""
    return (
        f"{name} solves kernel problems. Use maxmargin.kernels.KernelRows(X, kernel) as rows, with "
        "Linear() as kernel for a linear problem, or solver='auto'."
    )


def takes_no_twins(name: str) -> str:
    """The refusal of rows that share their values in twos, as those of a regression do."""
    return (
        f"{name} does not know that the two rows of an example share their values. Use working_set, with "
        "intercept='exact'."
    )


def not_for_pairs(name: str, problem: Problem, *, twins: bool = False) -> str | None:
    """Why a solver that moves pairs of multipliers cannot take the problem; None where it can.

    ``twins``: whether it takes rows that share their values in twos.
    """
    if problem.loss.name != "hinge":
        return (
            f"{name} minimises the hinge loss, not {problem.loss.name}; for the squared hinge use "
            "kernel_dual_ascent."
        )
    if not problem.rows.has_kernel:
        return needs_a_kernel(name)
    if isinstance(problem.rows, TwinRows) and not twins:
        return takes_no_twins(name)
    if problem.total is not None and problem.intercept is Intercept.NONE:
        if (problem.y < 0.0).any() or problem.fixed_intercept != 0.0:
            return f"{name} takes a total without intercept where all signs are 1, and b is 0."
        return None
    if problem.intercept is not Intercept.EXACT:
        return (
            f"{name} keeps sum_i alpha_i y_i = 0, which intercept='exact' asks for. Got "
            f"{problem.intercept.value!r}: use kernel_dual_ascent."
        )
    return None


def kernel_rows(problem: Problem) -> KernelRows:
    """The rows of a problem that a solver has accepted; of twins, those of the examples."""
    rows = problem.rows.examples if isinstance(problem.rows, TwinRows) else problem.rows
    assert isinstance(rows, KernelRows)
    return rows


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


class Walls(NamedTuple):
    """The dual in terms of beta, one number for each example: alpha_i y_i, of twins the difference.

    ``1/2 beta' K beta - wanted' beta + widths' |beta|`` is minimised where low <= beta <= high.
    """

    low: Vector
    high: Vector
    wanted: Vector
    widths: Vector
    """The widths of the tube, which make a kink at 0; 0 where there is none."""


def walls_of(problem: Problem) -> Walls:
    """The walls of each example's beta, and what its score is to be."""
    y, costs = problem.y, problem.costs
    wanted = y if problem.targets is None else y * problem.targets
    if not isinstance(problem.rows, TwinRows):
        return Walls(np.minimum(y * costs, 0.0), np.maximum(y * costs, 0.0), wanted, np.zeros(len(y)))
    at_least, at_most = wanted.reshape(-1, 2).T
    high, low = (y * costs).reshape(-1, 2).T
    return Walls(low, high, 0.5 * (at_most + at_least), 0.5 * (at_most - at_least))


def beta_of(problem: Problem, alpha: Vector) -> Vector:
    """One number for each example, of the multipliers of its rows."""
    signed = alpha * problem.y
    return signed.reshape(-1, 2).sum(axis=1) if isinstance(problem.rows, TwinRows) else signed


def alpha_of(problem: Problem, beta: Vector) -> Vector:
    """The multipliers of all rows; of twins, one of both is 0."""
    if not isinstance(problem.rows, TwinRows):
        return np.abs(beta)
    return np.maximum(np.column_stack([beta, -beta]), 0.0).ravel()


def kernel_dual(problem: Problem, start: Solution | None) -> core.KernelDual:
    """The dual in the order of the blocks, at the start's multipliers; its gradient is that of beta = 0."""
    order = kernel_rows(problem).blocks.order
    alpha = starting_alpha(problem, start)
    dual = core.KernelDual(*(array[order] for array in walls_of(problem)))
    if problem.total is not None:
        dual.total = problem.total
        alpha = _with_total(problem) if alpha is None else alpha
    if alpha is not None:
        dual.beta[:] = beta_of(problem, alpha)[order]
    if problem.total is not None and problem.intercept is Intercept.EXACT:
        dual.take_sides()
        if isinstance(problem.rows, TwinRows):  # of which both may have a multiplier
            assert alpha is not None
            dual.above[:], dual.below[:] = (alpha[::2])[order], (-alpha[1::2])[order]
    return dual


def _with_total(problem: Problem) -> Vector:
    """Multipliers to begin with where these have a total: as few as have room for it, drawn at random.

    Those of twins are equal, so that their beta is 0.
    """
    assert problem.total is not None
    alpha, drawn = np.zeros(len(problem.y)), np.random.default_rng(0).permutation(len(problem.y))
    if isinstance(problem.rows, TwinRows):
        costs = problem.costs[::2]
        filled = _filled(costs, np.random.default_rng(0).permutation(len(costs)), 0.5 * problem.total)
        return np.repeat(filled, 2)
    if problem.intercept is Intercept.NONE:
        return _filled(problem.costs, drawn, problem.total)
    for sign in (1.0, -1.0):
        own = drawn[problem.y[drawn] == sign]
        alpha += _filled(problem.costs, own, 0.5 * problem.total)
    return alpha


def _filled(costs: Vector, order: Indices, total: float) -> Vector:
    """Multipliers that add up to the total: the first ones of the order are at their upper walls."""
    alpha = np.zeros(len(costs))
    before = np.cumsum(costs[order]) - costs[order]
    alpha[order] = np.clip(total - before, 0.0, costs[order])
    return alpha


def multipliers_of(problem: Problem, beta: Vector, dual: core.KernelDual | None = None) -> Vector:
    """The multipliers alpha in the order of the rows, of those of a dual in the order of the blocks.

    ``dual`` tells what both twins have, where multipliers of each sign have their own total.
    """
    order = kernel_rows(problem).blocks.order
    of_examples = np.empty(len(beta))
    if dual is not None and problem.total is not None and isinstance(problem.rows, TwinRows):
        alpha = np.empty((len(beta), 2))
        alpha[order] = np.column_stack([dual.above, -dual.below])
        return alpha.ravel()
    of_examples[order] = beta
    return alpha_of(problem, of_examples)


def starting_alpha(problem: Problem, start: Solution | None) -> Vector | None:
    """A start's multipliers, made feasible; None where it has none that differ from 0."""
    if start is None or start.alpha is None or not start.alpha.any():
        return None
    alpha = np.array(start.alpha, np.float64)
    problem.objective.make_feasible(alpha)
    return alpha


def known_gradient(problem: Problem, start: Solution | None, dual: core.KernelDual) -> Vector | None:
    """The gradient at a start that brings its margins, in the order of the blocks.

    None where it has none, or where its multipliers had to change to be feasible by more than rounding, or
    where blocks leave out values that the margins may have.
    """
    if start is None or start.alpha is None or start.margins is None or problem.targets is not None:
        return None
    rows = kernel_rows(problem)
    order = rows.blocks.order
    off = np.abs(dual.beta - beta_of(problem, start.alpha)[order]).max(initial=0.0)
    if len(rows.blocks) > 1 or off > _ROUNDING * np.abs(dual.beta).max(initial=0.0):
        return None
    gradient: Vector = (problem.y * start.margins - start.b)[order] - dual.wanted
    return gradient


def solution_of(
    problem: Problem,
    cache: core.CacheCounts,
    *,
    beta: Vector,
    dual: core.KernelDual | None = None,
    **known: Any,
) -> Solution:
    """The answer of a dual method whose multipliers, with their signs, are in the order of the blocks."""
    return Solution(alpha=multipliers_of(problem, beta, dual), notes=notes_of(cache), **known)
