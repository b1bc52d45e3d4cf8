# SPDX-License-Identifier: BSD-3-Clause
"""Where a primal method begins."""

from __future__ import annotations

import numpy as np

from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.types import Vector


def first_point(problem: Problem, start: Solution | None) -> tuple[Vector, float]:
    """A w of its own and b: those of the start, those that its alpha makes, or zero."""
    if start is not None and start.w is not None:
        return start.w.astype(np.float64), start.b
    if start is not None and start.alpha is not None:
        return problem.primal_from_dual(start.alpha)
    return np.zeros(problem.rows.columns), 0.0
