# SPDX-License-Identifier: BSD-3-Clause
"""The perceptron (lecture 003; Rosenblatt 1958): any plane that separates the rows, not the best one.

    find  (w, b)  with  y_i (<w, x_i> + b) > 0  for all i

    1  for i in the order of the pass:
    2      if y_i (<w, x_i> + s beta) <= 0:                  a mistake, and b = s beta
    3          w    = w + y_i x_i
    4          beta = beta + y_i s

and pass after pass, until one has no mistake. s is the constant feature of the intercept (1 for an exact
one, 0 for none), so that b is one more coordinate of w.

Guarantee (Novikoff 1962). If some (w, beta) of length 1 has y_i (<w, x_i> + s beta) >= margin for all i,
then whatever the order is, there are at most

    (R / margin)^2   mistakes,      R = max_i |(x_i, s)|

If no plane separates the rows, the passes never end.

What it answers depends on the order, and the loop asks for more: it minimises the soft margin's objective.
So this solver takes problems with the hinge loss and proposes the best multiple of its w for them, whose
certificate then says how far from the plane of the largest margin it has ended. The perceptron loss,
max(0, -m), is not accepted: beside the regulariser w = 0 minimises it, and nothing would be separated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, visits_single_rows
from maxmargin.solvers.primal.dual_polish import DualPolish
from maxmargin.solvers.primal.first_point import first_point
from maxmargin.tools.parameters import NotNegative, Seed
from maxmargin.types import Indices, Vector

_TURNS = 3
"""How often the length of w and an exact intercept are made better by turns."""


@dataclass
class State:
    """The state between two passes."""

    w: Vector
    beta: float
    """The coefficient of the bias feature: b = s beta."""
    counts: Vector
    """How often each row was a mistake; from w = 0, w = sum_i counts_i y_i x_i."""
    from_zero: bool
    order: Indices
    random: int
    polish: DualPolish
    passes: int = 0
    finished: bool = False
    """Whether the last pass had no mistake."""

    @property
    def mistakes(self) -> int:
        """Mistakes so far."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Perceptron(Solver[State]):
    """Rosenblatt's perceptron: a separating plane, for the hinge; a step is one pass over the rows."""

    name: ClassVar[str] = "perceptron"
    order: Literal["shuffled", "given"] = "shuffled"
    """Shuffle the rows for every pass, or take them as they come."""
    polish: NotNegative = 10.0
    """Sweeps of dual ascent for each pass, to tighten the certificate; 0: none. There are few passes where
    rows can be separated, so these have to suffice for a bound that tells of the plane."""
    seed: Seed = 0
    """The seed of the shuffled order, and of the sweeps that tighten the certificate."""

    def accepts(self, problem: Problem) -> str | None:
        """The hinge, whose soft margin the answer is measured by."""
        if problem.loss.name != "hinge":
            return (
                f"perceptron finds a separating plane and is measured by the hinge, not by "
                f"{problem.loss.name}; use loss='hinge', or another solver for this loss."
            )
        return visits_single_rows(self.name, problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with w = 0, or with the start's w and b. Rows without weight are not visited."""
        w, b = first_point(problem, start)
        return State(
            w=w,
            beta=b / problem.bias_feature if problem.bias_feature else 0.0,
            counts=np.zeros(problem.rows.count),
            from_zero=start is None,
            order=np.flatnonzero(problem.costs > 0),
            random=self.seed,
            polish=DualPolish(self.polish, self.seed),
        )

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One pass."""
        if self.order == "shuffled":
            state.random = core.shuffle(state.order, state.random)
        visited, mistakes, state.beta = core.perceptron(
            problem.rows.compiled,
            problem.y,
            state.order,
            state.w,
            state.counts,
            bias_feature=problem.bias_feature,
            beta=state.beta,
            budget=budget,
        )
        state.passes += 1
        state.finished = mistakes == 0 and visited == len(state.order)
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The best multiple of w; the same multiple of the counts are multipliers to polish.

        ``notes["mistakes"]`` counts them; once the rows are separated, ``notes["mistake_bound"]`` is
        Novikoff's bound with the margin that was found, which holds for every order of the rows.
        """
        b = problem.bias_feature * state.beta
        scores = problem.rows.scores(state.w, budget)
        squared_norm = problem.rows.squared_norm(state.w)
        notes = {"mistakes": float(state.mistakes)}
        smallest = float((problem.y * (scores + b))[state.order].min(initial=np.inf))
        if smallest > 0 and state.from_zero:
            notes["mistake_bound"] = mistake_bound(
                problem, smallest / np.hypot(squared_norm**0.5, state.beta)
            )
        factor, b = _best_multiple(problem, squared_norm, scores, b)
        alpha = factor * state.counts if state.from_zero else None
        primal = Solution(w=factor * state.w, b=b, alpha=alpha, notes=notes)
        return state.polish.solution(problem, primal, state.passes, budget)

    def report(self, state: State) -> Report:
        """It is finished when it has separated the rows: nothing will change any more."""
        return Report(finished=state.finished)


def mistake_bound(problem: Problem, margin: float) -> float:
    """Novikoff's bound (R / margin)^2 on the number of mistakes, in every order of the rows.

    ``margin`` is that of any plane that separates the rows, with b as one more coordinate of w: the largest
    one, which gives the least bound, is the hard margin of the problem without an intercept or, where there
    is one, with ``intercept="regularised"``.
    """
    squares = problem.rows.squared_norms[problem.costs > 0] + problem.bias_feature**2
    return float(squares.max(initial=0.0)) / margin**2


def _best_multiple(problem: Problem, squared_norm: float, scores: Vector, b: float) -> tuple[float, float]:
    """The s >= 0 that makes the objective at s (w, b) smallest, and the b that goes with it.

    An exact intercept is not held by the regulariser, so it may be another one: s and b are made better by
    turns. Where the plane separates, the first b that is best lies in the middle between the classes, and
    the next s brings the nearest rows to margin 1.
    """
    s, exact = 1.0, problem.intercept is Intercept.EXACT
    for _ in range(_TURNS if exact else 1):
        margins = problem.y * (s * scores + b)
        held = s * s * squared_norm
        if problem.intercept is Intercept.REGULARISED:
            beta = b / problem.intercept_scaling
            held += beta * beta
        level = core.dot(problem.costs, margins)
        if held == 0.0 or level <= 0.0:
            return 0.0, 0.0  # the losses only grow on the way from 0
        # The derivative by a factor is  factor held - sum of C_i m_i over the rows with factor m_i < 1.
        weights = np.maximum(problem.costs * margins, 0.0)
        crossings = np.divide(1.0, margins, out=np.zeros_like(margins), where=weights > 0.0)
        factor = core.weighted_quantile(crossings, weights, level, held)[0]
        s *= factor
        b = problem.best_intercept(s * scores) if exact else factor * b
    return s, b
