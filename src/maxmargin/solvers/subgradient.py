# SPDX-License-Identifier: BSD-3-Clause
"""The subgradient method, full passes (lectures 000, 001, 003).

    minimise  F(w, b) = lambda / 2 |w|^2 + (1 / n) sum_i loss(y_i (<w, x_i> + b)),   lambda = 1 / sum C_i

    1  for t = 1, 2, ...:
    2      v  = a subgradient of F at (w, b)
    3      (w, b) = (w, b) - eta_t v
    4  return the iterate with the smallest F, or the mean of those from T_0 on

A subgradient need not be a direction of descent: a step may raise F and still come closer to the optimum.
So the best iterate is kept, and eta_t has to fall for it to converge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.primal.dual_polish import DualPolish
from maxmargin.solvers.primal.first_point import first_point
from maxmargin.solvers.primal.step_sizes import StepFunction, StepSequence, is_automatic, step_sizes
from maxmargin.tools.parameters import Count, NotNegative, Positive, Seed
from maxmargin.types import Vector


@dataclass
class Point:
    """An iterate; beta is the coefficient of the bias feature, so that b = feature * beta."""

    w: Vector
    beta: float
    w_sum: Vector | None = None
    """The sum of the iterates before this one that ``average`` counts; none: it counts none yet."""
    beta_sum: float = 0.0
    counted: int = 0


@dataclass
class State:
    """The state between two steps."""

    point: Point
    best: Point
    best_value: float
    polish: DualPolish
    t: int = 0
    eta: float = 0.0
    """The first step size of the rule "auto", found by trial and error; 0 before it is."""
    finished: bool = False


@dataclass
class Trial:
    """One candidate for eta, on its own way from the start."""

    eta: float
    point: Point
    t: int = 0
    lowest: float = np.inf


@dataclass(frozen=True)
class Subgradient(Solver[State]):
    """The full subgradient method, for every loss and intercept form."""

    name: ClassVar[str] = "subgradient"
    step_size: Literal["auto", "constant", "decreasing", "lambda"] | StepFunction | StepSequence = "auto"
    """eta; eta / (t + t0); eta / (lambda t); or auto: eta / (1 + eta lambda t), where the first step finds
    eta by the lecture's trial and error: several candidates start off, and each time the half that has
    lowered the objective less is dropped. Or any function of t = 1, 2, ..., or any sequence, whose last
    value is repeated."""
    eta: Positive = 1.0
    """The eta that the rules of ``step_size`` speak of; no effect on "auto", a function or a sequence."""
    t0: NotNegative = 0.0
    """What ``step_size="decreasing"`` adds to t."""
    average: Literal["best", "last", "all"] | Count = "best"
    """Which iterate is the answer: the one with the smallest objective, the last, or the mean of all. Or an
    integer T_0: the mean of w_T0, ..., w_T (000), and before step T_0 the last."""
    intercept_step_size: Positive = 1.0
    """The factor on the steps of b. It needs another step size than w: its curvature has nothing to do
    with the length of the rows, and nothing but the losses holds an exact intercept in place."""
    polish: NotNegative = 0.1
    """Sweeps of dual ascent for each step, to tighten the certificate; 0: none."""
    stop_threshold: NotNegative = 0.0
    """001's rule: end when the losses' part of a step, eta_t |v|, is shorter; 0: never."""
    seed: Seed = 0
    """The seed of the sweeps that tighten the certificate; nothing else is random."""

    def accepts(self, problem: Problem) -> str | None:
        """Any problem."""
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with w = 0, or with the start's w and b."""
        w, b = first_point(problem, start)
        point = Point(w, b / problem.bias_feature if problem.bias_feature else 0.0)
        return State(point, point, np.inf, DualPolish(self.polish, self.seed))

    @np.errstate(over="ignore", invalid="ignore")  # steps that are too long diverge
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One pass: value and subgradient at the iterate, then one step away from it."""
        if is_automatic(self.step_size) and state.eta == 0.0:
            self._choose_eta(problem, state, budget)
        value, losses, slope = _evaluate(problem, state.point, budget)
        _keep_best(state, state.point, value)
        state.t += 1
        eta = self._step_size(problem, state.t, state.eta)
        state.point = self._moved(problem, state.point, losses, slope, eta, state.t)
        length = eta / problem.total_cost * math.sqrt(core.dot(losses, losses))
        state.finished = length < self.stop_threshold
        return state

    def _step_size(self, problem: Problem, t: int, found: float) -> float:
        if is_automatic(self.step_size):
            return found / (1.0 + found * t / problem.total_cost)
        return float(step_sizes(self, problem, np.array([float(t)]))[0])

    def _choose_eta(self, problem: Problem, state: State, budget: Budget) -> None:
        """000: "try different values, see which one decreases the objective fastest"."""
        length = float(problem.rows.squared_norms.mean()) + problem.bias_feature**2
        trials = [Trial(float(c) / (length or 1.0), state.point) for c in 4.0 ** np.arange(-4, 9)]
        steps = 4
        while len(trials) > 1 and not budget.spent:
            for trial in trials:
                for _ in range(steps):
                    value, losses, slope = _evaluate(problem, trial.point, budget)
                    _keep_best(state, trial.point, value)
                    if trial.t > 0:
                        trial.lowest = min(trial.lowest, value)
                    trial.t += 1
                    eta = self._step_size(problem, trial.t, trial.eta)
                    trial.point = self._moved(problem, trial.point, losses, slope, eta, trial.t)
                    if budget.spent:
                        break
            trials.sort(key=lambda trial: trial.lowest)
            del trials[(len(trials) + 1) // 2 :]
            steps *= 2
        state.eta, state.point, state.t = trials[0].eta, trials[0].point, trials[0].t

    def _moved(
        self, problem: Problem, point: Point, losses: Vector, slope: float, eta: float, t: int
    ) -> Point:
        # eta is a step on F = P / sum C_i, and (w, losses) are parts of the subgradient of P.
        pace = eta / problem.total_cost
        pull = problem.bias_feature * slope
        if problem.intercept is Intercept.REGULARISED:
            pull += point.beta
        beta = point.beta - self.intercept_step_size * pace * pull
        moved = Point((1.0 - pace) * point.w - pace * losses, beta)
        if self.average == "all" or (not isinstance(self.average, str) and t >= self.average):
            moved.w_sum = point.w if point.w_sum is None else point.w_sum + point.w
            moved.beta_sum = point.beta_sum + point.beta
            moved.counted = point.counted + 1
        return moved

    @np.errstate(over="ignore", invalid="ignore")
    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The iterate that ``average`` names, with the dual point of the polish."""
        point = state.best if self.average == "best" else state.point
        w, beta = point.w, point.beta
        if self.average != "best" and point.w_sum is not None:
            w, beta = point.w_sum / point.counted, point.beta_sum / point.counted
        primal = Solution(w=w, b=problem.bias_feature * beta)
        return state.polish.solution(problem, primal, state.t, budget)

    def report(self, state: State) -> Report:
        """It is finished by 001's rule, where that is asked for."""
        return Report(finished=state.finished)


def _evaluate(problem: Problem, point: Point, budget: Budget) -> tuple[float, Vector, float]:
    """The objective, and the losses' part of its subgradient by w and by b: one pass, or two."""
    rows, b = problem.rows, problem.bias_feature * point.beta
    regulariser = problem.regulariser(point.w, b)
    if rows.offers_single_rows:
        losses = np.empty(rows.columns)
        value, slope = core.subgradient(
            rows.compiled, problem.loss.name, problem.y, problem.costs, point.w, b, losses, budget
        )
        return value + regulariser, losses, slope
    margins = problem.y * (rows.scores(point.w, budget) + b)
    pulls = -problem.multipliers(margins) * problem.y
    return problem.loss_sum(margins) + regulariser, rows.combine(pulls, budget), float(pulls.sum())


def _keep_best(state: State, point: Point, value: float) -> None:
    if value < state.best_value:
        state.best, state.best_value = point, value
