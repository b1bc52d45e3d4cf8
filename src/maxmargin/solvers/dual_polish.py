# SPDX-License-Identifier: BSD-3-Clause
"""A few sweeps of dual coordinate ascent that give a primal method a better dual point.

A primal method has no multipliers. Those that its margins suggest make a loose bound for the hinge,
where rows near margin 1 could have any alpha in [0, C]; a few sweeps of ascent tighten it. The model
stays the primal method's own: only the lower bound is borrowed, and the certificate says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.solution import Solution
from maxmargin.solvers.dual_coordinate_ascent import ALPHA, DualCoordinateAscent, State


@dataclass
class DualPolish:
    """Goes on from its own last alpha each time, so that the bound never gets worse."""

    sweeps: int
    seed: int
    state: State | None = None

    def solution(
        self, problem: Problem, primal: Solution, budget: Budget
    ) -> Solution:
        """The primal point with an alpha, where the loss allows one."""
        ascent = DualCoordinateAscent(seed=self.seed)
        if self.sweeps == 0 or problem.loss.smooth or ascent.accepts(problem) is not None:
            return primal  # a smooth loss: its margins determine the multipliers
        if self.state is None:
            self.state = ascent.init(problem, primal)
        for _ in range(self.sweeps):
            self.state = ascent.step(problem, self.state, budget)
        return Solution(
            w=primal.w,
            b=primal.b,
            alpha=self.state.coordinates[:, ALPHA].copy(),
            alpha_from="a dual polish (sweeps of dual coordinate ascent)",
            notes=primal.notes,
        )
