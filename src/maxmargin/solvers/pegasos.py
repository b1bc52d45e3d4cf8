# SPDX-License-Identifier: BSD-3-Clause
"""Pegasos (lectures 001, 002, 003; Shalev-Shwartz, Singer, Srebro 2007).

    minimise  F(w) = lambda / 2 |w|^2 + (1 / n) sum_i hinge(y_i <w, x_i>),     lambda = 1 / sum C_i

    1  for t = 1, 2, ..., T:
    2      draw a batch I of k rows
    3      v  = (1 / k) sum_{i in I, m_i < 1} y_i x_i
    4      w  = (1 - 1/t) w + 1 / (lambda t) v                  eta_t = 1 / (lambda t)
    5      w  = w / max(1, sqrt(lambda) |w|)                    optional: |w*| <= 1 / sqrt(lambda)
    6  return the mean of w_1, ..., w_T

Guarantee (002), for the mean over uniform draws, X = max |x_i|:

    E F(mean) <= F* + 2 X^2 ln(T + 1) / (lambda T)

It needs F strongly convex in all its variables and w_1 = 0: an exact intercept or another start gets no
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.primal.step_sizes import StepFunction, StepSequence, step_sizes
from maxmargin.solvers.stochastic_subgradient import State, StepRule, StochasticMethod, current, take_steps
from maxmargin.tools.parameters import Count, Positive


@dataclass(frozen=True)
class Pegasos(StochasticMethod):
    """Stochastic subgradient with the step size 1 / (lambda t), for the hinge."""

    name: ClassVar[str] = "pegasos"
    order: Literal["uniform", "epochs", "without_repetition"] = "uniform"
    """Uniform draws as in 002, in which a batch may hold a row twice; shuffled epochs as in 003; or, as in
    001, a subset of k different rows for every step, independent of the subsets of other steps."""
    project: bool = True
    """Line 5, onto the ball of radius 1 / sqrt(lambda) that holds the optimum."""
    average: Literal["last", "all", "suffix"] | Count = "all"
    """Which iterate is the answer: the last (001, 003), the mean of all (002), or of those since the
    last doubling. Or an integer T_0: the mean of w_T0, ..., w_T (000), and before step T_0 the last."""
    step_size: Literal["pegasos", "constant", "decreasing"] | StepFunction | StepSequence = "pegasos"
    """eta / (lambda t), which is Pegasos for eta = 1; eta; eta / (t + t0). Or any function of t = 1, 2,
    ..., or any sequence, whose last value is repeated. The guarantee is that of eta_t = 1 / (lambda t)."""
    eta: Positive = 1.0
    """The eta that the rules of ``step_size`` speak of; no effect on a function or a sequence."""

    def accepts(self, problem: Problem) -> str | None:
        """The radius of line 5 and the guarantee are the hinge's."""
        if problem.loss.name != "hinge":
            return (
                f"pegasos solves the hinge, not {problem.loss.name}; stochastic_subgradient with "
                "step_size='pegasos' takes its steps for every loss."
            )
        return super().accepts(problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with w = 0, or with the start's w and b."""
        state = self._begin(problem, start, self.average != "last")
        # The step at t = 1 forgets where it started; a start worth keeping counts as one epoch of steps.
        state.t = 0 if start is None else problem.rows.count // self.batch
        return state

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One epoch: n / k steps."""
        radius = float(np.sqrt(problem.total_cost)) if self.project else np.inf
        rule = StepRule(self.batch, self.order, self.average, radius, self.intercept_step_size)
        sizes = step_sizes(self, problem, rule.upcoming(problem, state))
        take_steps(problem, state, rule, sizes, budget)
        # Rounding in the running |v|^2 must not outlive an epoch.
        state.iterate.squared_norm = core.dot(state.v, state.v)
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The iterate that ``average`` names; 002's bound where it applies, in notes["bound"]."""
        primal = current(problem, state, self.average)
        if self._has_bound(problem) and state.iterate.counted == state.t > 0:
            primal = replace(primal, notes={"bound": bound(problem, state.t)})
        return state.polish.solution(problem, primal, state.epochs, budget)

    def _has_bound(self, problem: Problem) -> bool:
        """Whether the steps are those of the lecture, all of them count, and F is strongly convex."""
        named = isinstance(self.step_size, str) and self.step_size == "pegasos" and self.eta == 1.0
        same_for_b = problem.intercept is Intercept.NONE or self.intercept_step_size == 1.0
        of_all = self.average in ("all", 1) and self.order != "epochs"
        return named and same_for_b and of_all and problem.intercept is not Intercept.EXACT


def bound(problem: Problem, T: int) -> float:
    """002's bound on the expected suboptimality of the mean of T iterates, in units of problem.primal.

    ``2 X^2 ln(T + 1) / (lambda T)`` bounds F; the objective of problem.py is F times sum C_i.
    """
    bias = problem.bias_feature**2
    weights = problem.costs * (problem.rows.count / problem.total_cost)
    X_squared = float(np.max(weights**2 * (problem.rows.squared_norms + bias)))
    lambda_ = 1.0 / problem.total_cost
    return problem.total_cost * 2.0 * X_squared * float(np.log(T + 1)) / (lambda_ * T)
