# SPDX-License-Identifier: BSD-3-Clause
"""Dual coordinate ascent with the Gram matrix, so with any kernel (lecture 000).

    maximise  sum_i alpha_i - 1/2 sum_ij alpha_i alpha_j y_i y_j K_ij - 1/2 sum_i D_i alpha_i^2
    over      0 <= alpha_i <= U_i          hinge: U = C_i, D = 0      squared hinge: U = inf, D = 1/(2 C_i)

    1  for i in a random order:
    2      g      = y_i (score_i + b) - 1 + D_i alpha_i         minus the partial derivative
    3      a      = clip(alpha_i - g / (K_ii + D_i), 0, U_i)    exact maximiser on the line
    4      score += (a - alpha_i) y_i K_i;  alpha_i = a         keeps score_k = sum_j alpha_j y_j K_kj

Without intercept b = 0. A b that the problem fixes takes ``b sum_i alpha_i y_i`` from what is maximised. A
regularised one is 000's augmentation trick, one more feature of constant value s: K_ij + s^2 in the place
of K_ij, and b = s^2 sum_j alpha_j y_j changes in line 4. A visit that moves nothing costs O(1); one that
does needs a row of the kernel matrix and O(n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.solution import Solution
from maxmargin.solvers.ascent.state import ALPHA, COST, DIAGONAL, INVERSE_CURVATURE, LABEL, TARGET
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.kernel.kernel_problem import (
    SINGLE_IS_EXHAUSTED,
    kernel_matrix,
    kernel_rows,
    needs_a_kernel,
    solution_of,
    starting_alpha,
    takes_no_twins,
)
from maxmargin.solvers.sizes import DOUBLE_ROWS
from maxmargin.tools.parameters import NotNegative, Seed
from maxmargin.types import Indices, Vector

_ROUNDING = 4e-15
"""The relative gap below which the sums of a sweep are rounding."""


@dataclass
class State:
    """The dual in the order of the rows' blocks, where the core works."""

    matrix: core.KernelMatrix
    single: bool
    """Whether it is in single precision."""
    coordinates: Vector
    """One line per row: see the column names of dual_coordinate_ascent.py."""
    scores: Vector
    """``K_i . (alpha y)`` for every row i."""
    order: Indices
    """The order of the visits, with all rows of cost above 0."""
    random: int
    cache: core.CacheCounts
    bias: float = 0.0
    dual: float = 0.0
    gap: float = math.inf
    finished: bool = False


@dataclass(frozen=True)
class KernelDualAscent(Solver[State]):
    """One multiplier at a time; for the hinge and the squared hinge, kernels, and no exact intercept."""

    name: ClassVar[str] = "kernel_dual_ascent"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True
    takes_fixed_intercept: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True

    cache_size: NotNegative = 1000.0
    """Memory for rows of the kernel matrix, in megabytes."""
    seed: Seed = 0
    """The seed of the order."""

    def accepts(self, problem: Problem) -> str | None:
        """The problem of 000 without bias term, with a fixed one, or with the augmentation trick."""
        if problem.loss.name not in ("hinge", "squared_hinge"):
            return f"{self.name} solves the hinge and the squared hinge, not {problem.loss.name}."
        if isinstance(problem.rows, TwinRows):
            return takes_no_twins(self.name)
        if not isinstance(problem.rows, KernelRows):
            return needs_a_kernel(self.name)
        if problem.intercept is Intercept.EXACT:
            return (
                f"{self.name} moves one multiplier at a time and cannot keep sum_i alpha_i y_i = 0, which "
                "intercept='exact' asks for. Use working_set or sequential_minimal_optimization, or "
                "intercept='regularised'."
            )
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with alpha = 0, or with the start's alpha."""
        rows = kernel_rows(problem)
        order = rows.blocks.order
        y, costs = problem.y[order], problem.costs[order]
        single = rows.count > DOUBLE_ROWS
        cache = core.CacheCounts()
        matrix = kernel_matrix(rows, self.cache_size, cache, single=single)
        coordinates = np.zeros((rows.count, 6))
        own = np.zeros(rows.count)
        if problem.loss.name == "squared_hinge":
            np.divide(0.5, costs, out=own, where=costs > 0)
        curvature = rows.squared_norms[order] + _bias_curvature(problem) + own
        coordinates[:, COST] = costs
        coordinates[:, LABEL] = y
        coordinates[:, TARGET] = 1.0 if problem.targets is None else problem.targets[order]
        coordinates[:, DIAGONAL] = own
        # A row whose image is 0 has no curvature: its step is as good as infinite, and clipped to C.
        coordinates[:, INVERSE_CURVATURE] = 1.0 / np.maximum(curvature, 1e-300)
        scores, visits = np.zeros(rows.count), np.flatnonzero(costs > 0)
        b = problem.fixed_intercept
        state = State(matrix, single, coordinates, scores, visits, self.seed, cache, bias=b)
        alpha = starting_alpha(problem, start)
        if alpha is not None:
            coordinates[:, ALPHA] = np.where(costs > 0, alpha[order], 0.0)
            _restore_scores(problem, state)
        return state

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One epoch: every row once."""
        state.random = core.shuffle(state.order, state.random)
        unrest, state.bias, ascent, state.gap, whole = core.kernel_dual_ascent(
            state.matrix,
            problem.loss.name == "squared_hinge",
            state.coordinates,
            state.order,
            state.scores,
            bias=state.bias,
            bias_curvature=_bias_curvature(problem),
            budget=budget,
        )
        state.dual += ascent
        # The largest term of a score, which bounds how well scores are known.
        largest = float((state.coordinates[:, ALPHA] / state.coordinates[:, INVERSE_CURVATURE]).max())
        state.finished = whole and unrest <= _ROUNDING * max(largest, 1.0)
        if state.single and (state.finished or self.report(state).gap < SINGLE_IS_EXHAUSTED):
            state.matrix = kernel_matrix(kernel_rows(problem), self.cache_size, state.cache, single=False)
            state.single = state.finished = False
            _restore_scores(problem, state)
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Alpha alone: the certificate rebuilds the scores from it."""
        alpha = state.coordinates[:, ALPHA] * state.coordinates[:, LABEL]
        return solution_of(problem, state.cache, beta=alpha, b=state.bias)

    def report(self, state: State) -> Report:
        """The gap is free, because all scores are known; finished: nothing is left to gain in float64."""
        gap = state.gap / (state.dual + state.gap) if state.gap > 0 else 0.0
        return Report(gap, state.finished)


def _restore_scores(problem: Problem, state: State) -> None:
    alpha, y, own, p = (state.coordinates[:, column] for column in (ALPHA, LABEL, DIAGONAL, TARGET))
    state.scores = np.zeros(len(alpha))
    support = np.flatnonzero(alpha)
    state.matrix.add(support, (alpha * y)[support], state.scores, core.ALL_CORES)
    sought, fixed = _bias_curvature(problem) * float(np.sum(alpha * y)), problem.fixed_intercept
    state.bias = sought + fixed
    # The objective above, with y_i (score_i + b) for the sums over j; a fixed b is no half of a square.
    halves = 0.5 * (y * (state.scores + sought) + own * alpha)
    state.dual = float(np.sum(alpha * (p - y * fixed - halves)))


def _bias_curvature(problem: Problem) -> float:
    """s^2, what the constant feature adds to every value of the kernel."""
    return problem.intercept_scaling**2 if problem.intercept is Intercept.REGULARISED else 0.0
