# SPDX-License-Identifier: BSD-3-Clause
"""Time that is kept for the last certificate."""

from __future__ import annotations

import math

from maxmargin.core import Budget
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.solvers import AnySolver

_CAUTION, _SHARE_OF_STEP = 1.2, 0.375
"""On the estimated time of the last certificate; and of the time that is left before it, for one step."""


class Reserve:
    """Keeps time for the last certificate of a run with a kernel and a limit on time.

    That certificate needs a value of the kernel for each support vector and each row, which can take longer
    than the steps did. A step that computes rows of the kernel matrix makes it longer by about as much
    again, so a step gets a share of what is left only.
    """

    def __init__(self, problem: Problem, solver: AnySolver, budget: Budget) -> None:
        self.problem, self.solver, self.budget = problem, solver, budget
        self.limited = math.isfinite(budget.seconds_left)

    def seconds(self, state: object) -> float:
        """How long the last certificate would take now, about; 0 without a kernel."""
        rows = self.problem.rows
        if not isinstance(rows, KernelRows):
            return 0.0
        alpha = self.solver.solution(self.problem, state, self.budget).alpha
        return 0.0 if alpha is None else rows.seconds_of_scores(alpha, self.budget)

    def for_step(self, state: object) -> Budget:
        """What the next step may use; a budget that is spent where the last certificate is due."""
        if not self.limited or not isinstance(self.problem.rows, KernelRows):
            return self.budget
        left = self.budget.seconds_left - _CAUTION * self.seconds(state)
        return self.budget.part(_SHARE_OF_STEP * left)
