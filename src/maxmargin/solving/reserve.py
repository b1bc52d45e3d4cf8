# SPDX-License-Identifier: BSD-3-Clause
"""Time that is kept for the last certificate."""

from __future__ import annotations

import math
from collections.abc import Callable

from maxmargin.core import Budget
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem.rows import Rows
from maxmargin.proof.solution import Solution

_CAUTION = 1.2
"""A factor on the estimated time of the last certificate."""
_SHARE_OF_STEP = 0.375
"""The share of the time before the last certificate that one step gets."""


class Reserve:
    """Keeps time for the last certificate of a run with a kernel and a limit on time.

    That certificate needs a value of the kernel for each support vector and each row, which can take longer
    than the steps did. A step that computes rows of the kernel matrix makes it longer by about as much
    again, so a step gets a share of what is left only.
    """

    def __init__(self, rows: Rows, budget: Budget) -> None:
        self.rows, self.budget = rows, budget
        self.limited = math.isfinite(budget.seconds_left)

    def seconds(self, propose: Callable[[], Solution]) -> float:
        """How long a certificate of what is proposed would take, about; 0 without a kernel."""
        if not isinstance(self.rows, KernelRows):
            return 0.0
        alpha = propose().alpha
        return 0.0 if alpha is None else self.rows.seconds_of_scores(alpha, self.budget)

    def for_step(self, propose: Callable[[], Solution]) -> Budget:
        """What the next step may use; a budget that is spent where the last certificate is due."""
        if not self.limited or not isinstance(self.rows, KernelRows):
            return self.budget
        left = self.budget.seconds_left - _CAUTION * self.seconds(propose)
        return self.budget.part(_SHARE_OF_STEP * left)
