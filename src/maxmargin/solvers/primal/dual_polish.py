# SPDX-License-Identifier: BSD-3-Clause
"""A few sweeps of dual coordinate ascent that give a primal method a better dual point.

A primal method has no multipliers. Those that its margins suggest make a loose bound for the hinge,
where rows near margin 1 could have any alpha in [0, C]; a few sweeps of ascent tighten it. The model
stays the primal method's own: only the lower bound is borrowed, and the certificate says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.ascent.state import State
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent


@dataclass
class DualPolish:
    """Goes on from its own last alpha each time, so that the bound never gets worse."""

    share: float
    """Sweeps of ascent for each step of the primal method; 0: none."""
    seed: int
    state: State | None = None
    sweeps: int = 0

    def solution(self, problem: Problem, primal: Solution, steps: int, budget: Budget) -> Solution:
        """The primal point after so many steps, with an alpha where the loss asks for one."""
        assert primal.w is not None
        if not (np.isfinite(primal.w).all() and np.isfinite(primal.b)):
            primal = replace(primal, w=np.zeros_like(primal.w), b=0.0)  # what has diverged is worth nothing
        ascent = DualCoordinateAscent(seed=self.seed)
        if self.share == 0 or problem.loss.smooth or ascent.accepts(problem) is not None:
            return primal  # a smooth loss: its margins determine the multipliers
        if self.state is None:
            self.state = ascent.init(problem, primal)
        due = max(self.sweeps + 1.0, self.share * steps)
        while self.sweeps < due and not self.state.finished:
            self.state = ascent.step(problem, self.state, budget)
            self.sweeps += 1
            if budget.spent:
                break
        return Solution(
            w=primal.w,
            b=primal.b,
            alpha=self.state.alpha.copy(),
            alpha_from="a dual polish (sweeps of dual coordinate ascent)",
            notes=primal.notes,
        )
