# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation: two multipliers at a time (lecture 004).

    maximise  W(alpha) = sum_i alpha_i - 1/2 sum_ij y_i y_j alpha_i alpha_j K_ij
    over      0 <= alpha_i <= C_i,   sum_i alpha_i y_i = 0

004's lambda_i y_i is beta_i here: a number in [low_i, high_i], which is [0, C_i] or [-C_i, 0]. With
f_i = sum_j K_ij beta_j - y_i, minus the derivative of W by beta_i:

    1  i     = the row of the least f whose beta may grow
    2  j     = of the rows with f_j > f_i whose beta may fall, the one that promises most:
               the largest (f_j - f_i)^2 / eta_ij,  eta_ij = K_ii + K_jj - 2 K_ij     (or the largest f_j)
    3  xi    = beta_i + beta_j;   L = max(low_j, xi - high_i),   H = min(high_j, xi - low_i)
    4  raw   = beta_j - (f_j - f_i) / eta_ij            004's -delta_1 / (2 delta_2)
    5  beta_j = clip(raw, L, H),   beta_i = xi - beta_j
    6  f    += (change of beta_i) K_i + (change of beta_j) K_j
    until  f_j - f_i <= 2 epsilon for all pairs: the KKT conditions hold within epsilon
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.kernel.kernel_problem import (
    SINGLE_IS_EXHAUSTED,
    kernel_dual,
    kernel_matrix,
    kernel_rows,
    not_for_pairs,
    solution_of,
)
from maxmargin.solvers.sizes import DOUBLE_ROWS
from maxmargin.tools.parameters import Natural, NotNegative, Seed


@dataclass
class State:
    """The dual in the order of the rows' blocks, where the core works."""

    point: core.KernelDual
    """Its gradient is out of date for rows that are shrunk away."""
    pairs: core.SequentialMinimalOptimization
    single: bool
    """Whether the matrix is in single precision."""
    cache: core.CacheCounts
    dual: float = 0.0
    """W."""
    gap: float = math.inf
    """The duality gap, if rows that are shrunk away are where they belong."""
    violation: float = math.inf
    """The largest ``f_j - f_i`` of a pair that may move."""
    active: int = 0
    """Rows that are not shrunk away."""
    taken: int = 0
    """Steps on pairs so far."""
    finished: bool = False


@dataclass(frozen=True)
class SequentialMinimalOptimization(Solver[State]):
    """Pairs of multipliers, each moved to its best value; for the hinge, kernels and an exact intercept."""

    name: ClassVar[str] = "sequential_minimal_optimization"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True

    selection: Literal["second_order", "maximal_violating_pair"] = "second_order"
    """Line 2: by what the step gains, or by the largest f_j."""
    shrinking: bool = True
    """Leave out rows at a wall that no pair can move now, and look at them again after a tenfold gain."""
    epsilon: NotNegative = 0.0
    """004's tolerance of the KKT conditions, for instance 1e-3: end the run there. 0: the gap decides."""
    cache_size: NotNegative = 1000.0
    """Memory for rows of the kernel matrix, in megabytes."""
    pairs_per_step: Natural = 0
    """Pairs in a step. 0: a tenth of the rows, at least 100 and at most 1000."""
    seed: Seed = 0
    """Nothing here is random."""

    def accepts(self, problem: Problem) -> str | None:
        """The problem of 004."""
        return not_for_pairs(self.name, problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with alpha = 0, or with the start's alpha once its two classes weigh the same."""
        single = problem.rows.count > DOUBLE_ROWS
        cache, dual = core.CacheCounts(), kernel_dual(problem, start)
        state = State(dual, self._pairs(problem, dual, cache, single), single, cache)
        state.dual = _value(dual)
        return state

    def _pairs(
        self, problem: Problem, dual: core.KernelDual, cache: core.CacheCounts, single: bool
    ) -> core.SequentialMinimalOptimization:
        """Steps on pairs, with a matrix that has computed nothing yet but the gradient."""
        rows = kernel_rows(problem)
        matrix = kernel_matrix(rows, self.cache_size, cache, single=single)
        dual.restore_gradient(matrix, core.ALL_CORES)
        diagonal = rows.squared_norms[rows.blocks.order]
        second_order = self.selection == "second_order"
        return core.SequentialMinimalOptimization(matrix, diagonal, second_order, self.shrinking)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Some pairs, lines 1 to 6 for each."""
        most = self.pairs_per_step or min(1000, max(100, problem.rows.count // 10))
        pairs, state.active, state.violation, ascent, state.gap, state.finished = state.pairs.run(
            state.point, most, 2.0 * self.epsilon, budget
        )
        state.taken += pairs
        state.dual += ascent
        if state.single and (state.finished or self.report(state).gap < SINGLE_IS_EXHAUSTED):
            state.pairs = self._pairs(problem, state.point, state.cache, single=False)
            state.dual = _value(state.point)
            state.single = state.finished = False
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Alpha alone: the certificate needs no more."""
        return solution_of(problem, state.cache, beta=state.point.beta)

    def report(self, state: State) -> Report:
        """The gap is free: f gives the margins of all rows that are not shrunk away.

        It is finished when the KKT conditions hold within epsilon, or rounding leaves nothing to gain.
        """
        gap = state.gap / (state.dual + state.gap) if state.gap > 0 else 0.0
        return Report(gap, state.finished)


def _value(dual: core.KernelDual) -> float:
    """W, which is y'beta - 1/2 beta'(f + y)."""
    return 0.5 * core.dot(dual.beta, dual.wanted - dual.f)
