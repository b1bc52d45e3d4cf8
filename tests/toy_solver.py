# SPDX-License-Identifier: BSD-3-Clause
"""A solver from outside the package, as short as a contract allows: its file is all that it touches.

    maximise  sum_i alpha_i - 1/2 |sum_i alpha_i y_i (x_i, s)|^2 - 1/2 sum_i D_i alpha_i^2   over the box

by projected gradient steps with Nesterov's momentum, for the hinge and the squared hinge. It uses two of
the four things that rows can do, and gives no hint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin import Intercept, Solution
from maxmargin.solvers import Solver


@dataclass
class State:
    alpha: np.ndarray
    last: np.ndarray
    largest: float
    """A bound on the curvature of the dual value."""
    t: int = 0


@dataclass(frozen=True)
class ToyGradient(Solver[State]):
    name: ClassVar[str] = "toy_gradient"
    gradients: int = 30
    """Gradient steps in one step of the loop."""
    seed: int = 0

    def accepts(self, problem):
        if problem.loss.name not in ("hinge", "squared_hinge"):
            return f"toy_gradient solves the hinge and the squared hinge, not {problem.loss.name}."
        if problem.intercept is Intercept.EXACT:
            return "toy_gradient projects onto a box, and an exact intercept asks for more."
        return None

    def init(self, problem, start):
        alpha = np.zeros(problem.rows.count)
        if start is not None and start.alpha is not None:
            alpha = np.clip(start.alpha, 0.0, problem.upper)
        elif start is not None and start.w is not None:
            alpha = problem.multipliers(problem.margins(start.w, start.b))
            alpha *= problem.best_multiple(alpha, problem.rows.combine(alpha * problem.y))
        direction = np.random.default_rng(0).normal(size=len(alpha))
        for _ in range(30):
            direction = self.curved(problem, direction / np.linalg.norm(direction))
        return State(alpha, alpha, 1.2 * float(np.linalg.norm(direction)))

    @staticmethod
    def curved(problem, alpha):
        """The curvature of the dual value times alpha."""
        own = 0.0
        if problem.loss.name == "squared_hinge":
            own = np.divide(0.5, problem.costs, out=np.zeros_like(alpha), where=problem.costs > 0)
        s = problem.intercept_scaling if problem.intercept is Intercept.REGULARISED else 0.0
        signed = alpha * problem.y
        return (
            problem.y * (problem.rows.scores(problem.rows.combine(signed)) + s**2 * signed.sum())
            + own * alpha
        )

    def step(self, problem, state, budget):
        for _ in range(self.gradients):
            state.t += 1
            ahead = state.alpha + (state.t - 1.0) / (state.t + 2.0) * (state.alpha - state.last)
            uphill = 1.0 - self.curved(problem, ahead)
            state.last = state.alpha
            state.alpha = np.clip(ahead + uphill / state.largest, 0.0, problem.upper)
            if budget.spent:
                break
        return state

    def solution(self, problem, state, budget):
        return Solution(alpha=state.alpha.copy())
