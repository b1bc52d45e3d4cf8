# SPDX-License-Identifier: BSD-3-Clause
"""The stochastic subgradient method on mini-batches (lectures 000, 001, 003).

    minimise  F(w, b) = lambda / 2 |w|^2 + (1 / n) sum_i loss(y_i (<w, x_i> + b)),   lambda = 1 / sum C_i

    1  for t = 1, 2, ...:
    2      draw a batch I of k rows
    3      v  = (1 / k) sum_{i in I} loss'(m_i) y_i x_i          m_i = y_i (<w, x_i> + b)
    4      w  = (1 - eta_t lambda) w - eta_t v
    5      b  = b - eta_t (1 / k) sum_{i in I} loss'(m_i) y_i

Rows of unequal weight enter with C_i over the mean C. F is the objective of problem.py over sum C_i.
A step costs O(nonzeros of its rows): w is kept as a scale times a vector, the average of all iterates as
a combination of two vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, visits_single_rows
from maxmargin.solvers.primal.dual_polish import DualPolish
from maxmargin.solvers.primal.first_point import first_point
from maxmargin.solvers.primal.step_sizes import StepFunction, StepSequence, is_automatic, step_sizes
from maxmargin.tools.parameters import Count, NotNegative, Positive, Seed
from maxmargin.types import Indices, Vector


@dataclass
class State:
    """The state between two steps."""

    v: Vector
    u: Vector
    iterate: core.Iterate
    """w = scale v, and the sum of all counted w = mass v - u."""
    order: Indices
    random: int
    examples: core.Examples
    polish: DualPolish
    recent: core.RecentSteps
    """The last steps, for 001's stopping rule."""
    t: int = 0
    epochs: int = 0


@dataclass(frozen=True)
class StochasticMethod(Solver[State]):
    """What all methods that step along the subgradients of batches have in common."""

    batch: Count = 1
    """Rows per step, k; n makes the full subgradient method."""
    t0: NotNegative = 0.0
    """What ``step_size="decreasing"`` adds to t."""
    intercept_step_size: Positive = 1.0
    """The factor on the steps of b. It needs another step size than w: its curvature has nothing to do
    with the length of the rows, and nothing but the losses holds an exact intercept in place."""
    polish: NotNegative = 0.1
    """Sweeps of dual ascent for each step, to tighten the certificate; 0: none."""
    stop_threshold: NotNegative = 0.0
    """001's rule: end when the last ``stop_count`` steps, eta_t |v|, sum to less; 0: never."""
    stop_count: Count = 100
    """How many steps ``stop_threshold`` looks back."""
    seed: Seed = 0
    """The seed of the draws, and of the sweeps that tighten the certificate."""

    def accepts(self, problem: Problem) -> str | None:
        """Any problem; the batch has to fit it."""
        if not 1 <= self.batch <= problem.rows.count:
            return (
                f"{self.name} has a batch of {self.batch} rows, but the problem has "
                f"{problem.rows.count}; choose batch between 1 and that."
            )
        return visits_single_rows(self.name, problem)

    def _begin(self, problem: Problem, start: Solution | None, averages: bool) -> State:
        """The state at w = 0, or at the start's w and b."""
        recent = core.RecentSteps(self.stop_count if self.stop_threshold > 0 else 0, self.stop_threshold)
        return init_state(problem, start, averages, self.polish, self.seed, recent)

    def report(self, state: State) -> Report:
        """It is finished by 001's rule, where that is asked for."""
        return Report(finished=state.recent.finished)


@dataclass(frozen=True)
class StochasticSubgradient(StochasticMethod):
    """Stochastic subgradient steps on batches, for every loss and intercept form."""

    name: ClassVar[str] = "stochastic_subgradient"
    order: Literal["epochs", "uniform", "without_repetition"] = "epochs"
    """Shuffled epochs; uniform draws, in which a batch may hold a row twice; or, as in 001, a subset of k
    different rows for every step. The subsets of two steps are independent: a row may be in both."""
    average: Literal["last", "all", "suffix"] | Count = "suffix"
    """Which iterate is the answer: the last, the mean of all, or of those since the last doubling. Or an
    integer T_0: the mean of w_T0, ..., w_T (000), and before step T_0 the last."""
    step_size: Literal["auto", "constant", "decreasing", "pegasos"] | StepFunction | StepSequence = "auto"
    """eta; eta / (t + t0); eta / (lambda t); or auto: 1 / (lambda (t + t0)) with a first step of one over
    the mean squared length of the rows. Or any function of t = 1, 2, ..., or any sequence, whose last value
    is repeated."""
    eta: Positive = 1.0
    """The eta that the rules of ``step_size`` speak of; no effect on "auto", a function or a sequence."""

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with w = 0, or with the start's w and b."""
        return self._begin(problem, start, self.average != "last")

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One epoch: n / k steps."""
        rule = StepRule(self.batch, self.order, self.average, np.inf, self.intercept_step_size)
        sizes = self.step_sizes(problem, rule.upcoming(problem, state))
        take_steps(problem, state, rule, sizes, budget)
        return state

    @np.errstate(over="ignore", invalid="ignore")
    def step_sizes(self, problem: Problem, t: Vector) -> Vector:
        """The sizes of the steps t."""
        if not is_automatic(self.step_size):
            return step_sizes(self, problem, t)
        length = float(problem.rows.squared_norms.mean()) + problem.bias_feature**2
        # The first step, 1 / length, moves a row's margin by about 1.
        return problem.total_cost / (t + problem.total_cost * (length or 1.0))

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The iterate that ``average`` names, with the dual point of the polish."""
        primal = current(problem, state, self.average)
        return state.polish.solution(problem, primal, state.epochs, budget)


class StepRule(NamedTuple):
    """What all steps of a run have in common."""

    batch: int
    order: str
    average: str | int
    radius: float
    """The radius of the ball that w is projected to; infinite: it is not."""
    intercept_step_size: float

    def upcoming(self, problem: Problem, state: State) -> Vector:
        """The numbers t of the steps of the next epoch."""
        count = max(1, problem.rows.count // self.batch)
        return state.t + np.arange(1, count + 1, dtype=np.float64)


def init_state(
    problem: Problem,
    start: Solution | None,
    averages: bool,
    polish: float,
    seed: int,
    recent: core.RecentSteps,
) -> State:
    """The state of any stochastic method before its first step."""
    v, b = first_point(problem, start)
    u = np.zeros(problem.rows.columns if averages else 0)
    iterate = core.Iterate(v, u)
    iterate.beta = b / problem.bias_feature if problem.bias_feature else 0.0
    iterate.squared_norm = core.dot(v, v)
    return State(
        v=v,
        u=u,
        iterate=iterate,
        order=np.arange(problem.rows.count),
        random=seed,
        examples=core.Examples(
            problem.loss.name,
            problem.y,
            problem.costs * (problem.rows.count / problem.total_cost),  # C_i over the mean C
            problem.rows.squared_norms,
        ),
        polish=DualPolish(polish, seed),
        recent=recent,
    )


def take_steps(problem: Problem, state: State, rule: StepRule, sizes: Vector, budget: Budget) -> None:
    """One epoch: steps of these sizes on fresh random batches."""
    order = draw_rows(problem, state, rule, len(sizes))
    before = 0
    if rule.average == "suffix" and state.epochs & (state.epochs - 1) == 0:
        # An average since the last power of two of epochs forgets the crude beginning, and grows to the
        # last half of the run.
        _forget_average(state)
    elif not isinstance(rule.average, str) and state.t < rule.average:
        before = min(rule.average - 1 - state.t, len(sizes))
        if walk(problem, state, rule, order, sizes[:before], budget) == rule.average - 1:
            _forget_average(state)
    walk(problem, state, rule, order[before * rule.batch :], sizes[before:], budget)
    state.epochs += 1


def draw_rows(problem: Problem, state: State, rule: StepRule, steps: int) -> Indices:
    """The rows of so many batches, one batch after the other."""
    if rule.order == "epochs":
        state.random = core.shuffle(state.order, state.random)
        return state.order
    order = np.empty(steps * rule.batch, np.int64)
    if rule.order == "uniform":
        state.random = core.draw(order, problem.rows.count, state.random)
    else:
        state.random = core.draw_batches(order, rule.batch, state.order, state.random)
    return order


def walk(
    problem: Problem, state: State, rule: StepRule, order: Indices, sizes: Vector, budget: Budget
) -> int:
    """Steps of these sizes on these batches in one compiled call; how many have been taken in all."""
    if not (budget.spent or state.recent.finished):
        state.t += core.stochastic_subgradient(
            problem.rows.compiled,
            state.examples,
            order,
            sizes,
            state.iterate,
            state.recent,
            batch=rule.batch,
            lambda_=1.0 / problem.total_cost,
            radius=rule.radius,
            bias_feature=problem.bias_feature,
            bias_shrinks=problem.intercept is Intercept.REGULARISED,
            bias_pace=rule.intercept_step_size,
            budget=budget,
        )
    return state.t


def _forget_average(state: State) -> None:
    state.iterate.rescale()
    state.u[:] = 0.0
    state.iterate.counted = state.iterate.beta_sum = 0.0


@np.errstate(over="ignore", invalid="ignore")  # steps that are too long diverge
def current(problem: Problem, state: State, average: str | int) -> Solution:
    """The last iterate or the mean of those counted."""
    iterate = state.iterate
    begun = average != "last" if isinstance(average, str) else state.t >= average
    if begun and iterate.counted > 0:
        w = (iterate.mass * state.v - state.u) / iterate.counted
        beta = iterate.beta_sum / iterate.counted
    else:
        w, beta = iterate.scale * state.v, iterate.beta
    return Solution(w=w, b=problem.bias_feature * beta)
