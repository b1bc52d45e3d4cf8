# SPDX-License-Identifier: BSD-3-Clause
"""Dual coordinate ascent (lecture 000; Hsieh et al. 2008).

    maximise  sum_i p_i alpha_i - 1/2 sum_ij alpha_i alpha_j y_i y_j <x_i, x_j> - 1/2 sum_i D alpha_i^2
    over      0 <= alpha_i <= U            hinge: U = C, D = 0      squared hinge: U = inf, D = 1/(2C)

    1  for i in a random order:
    2      g      = y_i (<w, x_i> + b) - p_i + D alpha_i        minus the partial derivative
    3      a      = clip(alpha_i - g / (|x_i|^2 + D), 0, U)     exact maximiser on the line
    4      w     += (a - alpha_i) y_i x_i;  alpha_i = a         keeps w = sum_i alpha_i y_i x_i

A step costs O(nonzeros of x_i). A regularised intercept is one more feature of constant value s, so b
changes with w in line 4 (the augmentation trick). An exact one asks for sum_i alpha_i y_i = 0, which the
method of multipliers reaches with steps on single coordinates; it makes the regularised one faster too: see
pulled_intercept.py. A unit step of alpha_i y_i adds k to b, and k to the curvature |x_i|^2 of line 3.

Regression has two rows for each example, which share its data. Where the data are larger than a cache, a
sweep over all rows reads them once: it takes the two in turn, first the one whose multiplier is not 0, and
knows what that does to the score.

Shrinking. Rows that stay at a wall of their box are left out of most sweeps: see shrinking.py.

Warm-up. Where C |x|^2 is large, the first sweeps solve the problem roughly with a smaller C, and raise it
fourfold at a time: see warm_up.py.

Momentum. A sweep takes most multipliers a share of their way only, and the next one goes on in much the
same direction. So where rows are long, or the gap falls slowly, each sweep starts from the best point
further along the way of the last: see momentum.py.

Extrapolation. Once the gap is small and falls slowly, sweeps only creep along the few directions in which
the dual value is nearly flat. Every fourth sweep then starts from the best combination of the last moves:
see extrapolation.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import RowSpace
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.solution import Solution
from maxmargin.solvers.ascent import momentum, warm_up
from maxmargin.solvers.ascent.extrapolation import go_to_best_combination
from maxmargin.solvers.ascent.pulled_intercept import PulledIntercept
from maxmargin.solvers.ascent.shrinking import Visits, weighted_rows
from maxmargin.solvers.ascent.state import COST, LABEL, TARGET, AnyData, State
from maxmargin.solvers.base import Report, Solver, visits_single_rows
from maxmargin.solvers.sizes import CACHED_VALUES
from maxmargin.tools.parameters import Range, Seed
from maxmargin.types import Vector

_ROUNDING = 1e-14
"""What a sweep may change of 1 + |b| and count as nothing."""
_LOOK_AHEAD = 0.3
"""What is added to a relaxation of 1 where nothing else looks ahead."""
_LOSSES_COUNT = 0.1
"""The share of the sum of all multipliers above which those at their upper wall, whose rows have losses,
make the estimate of the gap a good one."""


@dataclass(frozen=True)
class DualCoordinateAscent(Solver[State]):
    """Dual coordinate ascent with w kept up to date; for the hinge and the squared hinge."""

    name: ClassVar[str] = "dual_coordinate_ascent"
    takes_targets: ClassVar[bool] = True
    order: Literal["epochs", "uniform"] = "epochs"
    """Visit the rows in shuffled epochs, or n uniform draws per sweep."""
    shrinking: bool = True
    """Leave out rows that stay at a wall of their box, and look at them again now and then."""
    relaxation: Annotated[float, Range("(0, 2)")] | None = None
    """Factor on every step of line 3, in (0, 2): 1 is the lecture's, more looks ahead (successive
    over-relaxation, Mangasarian and Musicant 1999). None: 1 where momentum looks ahead; else 1.3 for the
    hinge, and for the squared hinge less, the more of the curvature is D, which ties a row to no other."""
    warm_up: bool = True
    """Start with a smaller C where C |x|^2 is large; not when a start is given."""
    extrapolation: bool = True
    """Start every fourth sweep from the best combination of the last moves, once the gap falls slowly."""
    momentum: bool = True
    """Start each sweep further along the way of the last one, where that is cheap beside what it saves."""
    bias_reach: Annotated[float, Range("[0, inf]")] = 0.03
    """r^2 as a share of the mean |x_i|^2, and at least 1 / sum_i C_i; inf with a regularised intercept is
    the lecture's way."""
    seed: Seed = 0
    """The seed of the order."""

    def accepts(self, problem: Problem) -> str | None:
        """The dual of the other losses is not a quadratic program."""
        if problem.intercept is Intercept.EXACT and not np.isfinite(self.bias_reach):
            return "an exact intercept needs a finite bias_reach; leave it at its default."
        if problem.loss.name not in ("hinge", "squared_hinge"):
            return (
                f"dual_coordinate_ascent solves the hinge and the squared hinge, not {problem.loss.name}"
                "; use newton for the logistic loss, subgradient for the perceptron."
            )
        return visits_single_rows(self.name, problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with alpha = 0, with the start's alpha, or with the alpha that its margins suggest."""
        rows = problem.rows
        data, private, copied = smaller_copy(rows) or (rows.compiled, 0.0, 0)
        alpha = np.zeros(rows.count)
        if start is not None:
            alpha = _starting_alpha(problem, start)
        state = State(
            data=data,
            coordinates=np.zeros((rows.count, 6)),
            w=np.zeros(data.columns),
            intercept=PulledIntercept.of(problem, self.bias_reach, 0.0 if start is None else start.b),
            visits=Visits.of(problem),
            random=self.seed,
            private=private,
            copied=copied,
            stage=warm_up.warm_up_stages(problem) if self.warm_up and start is None else 0,
        )
        state.alpha[:] = alpha
        state.coordinates[:, LABEL] = problem.y
        state.coordinates[:, TARGET] = 1.0 if problem.targets is None else problem.targets
        state.set_costs(problem)
        if start is not None:
            state.restore_w(problem, start.w_of_alpha)
            if start.margins is not None and self.shrinking:
                hinge = problem.loss.name == "hinge"
                state.visits.leave_out_held(alpha, start.margins, hinge=hinge)
        return state

    def relaxation_of(self, problem: Problem, momentum: bool = False) -> float:
        """The factor on the steps for a problem, and whether momentum looks ahead already."""
        if self.relaxation is not None:
            return self.relaxation
        if momentum:
            return 1.0
        if problem.loss.name == "hinge":
            return 1.0 + _LOOK_AHEAD
        tied = problem.rows.mean_squared_norm * 2.0 * problem.total_cost / problem.rows.count
        return 1.0 + _LOOK_AHEAD * tied / (1.0 + tied)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One sweep over the rows still visited, then the method of multipliers' move of b."""
        state.leave_rounded_copy(problem)
        if self.extrapolation and self._is_settled(state):
            go_to_best_combination(problem, state, budget)
        if self.momentum and self.order == "epochs":
            momentum.go_on(problem, state)
        active, largest, smallest, gap = self._sweep(problem, state, budget)
        gap += state.intercept.gap(problem.loss.name == "hinge")
        drift = state.intercept.move(at_rest=largest == smallest == 0.0)
        if state.stage == 0 and state.intercept.reach_further():
            state.set_costs(problem)
        state.see_gap(gap)
        if state.stage > 0:
            warm_up.after_sweep(problem, state)
        elif self.order == "epochs":
            unrest = max(largest, -smallest, abs(drift))
            at_rest = unrest <= _ROUNDING * (1.0 + abs(state.intercept.b))
            state.finished = at_rest and state.visits.are_all
            state.visits.after_sweep(active, largest, smallest, drift, state.relative_gap)
            if not self.shrinking:
                state.visits.all_again(state.relative_gap)
        return state

    def _is_settled(self, state: State) -> bool:
        """Whether the next sweep visits the rows of the last one, or a part of them."""
        return state.visits.sweeps_since > 0 or not self.shrinking or self.order == "uniform"

    def _sweep(self, problem: Problem, state: State, budget: Budget) -> tuple[int, float, float, float]:
        """Lines 1 to 4; how many rows remain, the largest and smallest derivative, and the rows' gaps."""
        if self.order == "uniform":
            rows = weighted_rows(problem)
            draws = np.empty(len(rows), np.int64)
            state.random = core.draw(draws, len(rows), state.random)
            order, above, below, pairs = rows[draws], np.inf, -np.inf, False
        else:
            visits = state.visits
            far = problem.rows.stored > CACHED_VALUES
            pairs = far and isinstance(problem.rows, TwinRows) and visits.are_all
            if pairs:
                first = 2 * np.flatnonzero(problem.costs[::2] > 0.0)
                state.random = core.shuffle(first, state.random)
                visits.order = np.add.outer(first, np.arange(2)).ravel()
            else:
                state.random = core.shuffle(visits.order, state.random)
            order, above, below = visits.order, visits.above, visits.below
        active, state.intercept.b, largest, smallest, ascent, gap = core.dual_coordinate_ascent(
            state.data,
            problem.loss.name == "squared_hinge",
            state.coordinates,
            order,
            state.w,
            bias=state.intercept.b,
            bias_curvature=state.intercept.curvature,
            relaxation=self.relaxation_of(problem, state.last_move is not None),
            above=above,
            below=below,
            pairs=pairs,
            budget=budget,
        )
        state.dual += ascent
        return active, largest, smallest, gap

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Alpha alone: the certificate rebuilds w from it."""
        return Solution(b=state.intercept.b, alpha=state.alpha.copy())

    def report(self, state: State) -> Report:
        """The gap is free: the sweep adds up each row's share of it as it goes.

        By the end of the sweep the gap is smaller than it was on the way, the more so the faster it
        falls; the formula fits the gaps certified after sweeps on data of many kinds. It is finished when
        nothing is left to gain in float64.
        """
        gap = np.inf if state.stage > 0 else 0.85 * state.relative_gap * math.pow(state.decay, 0.6)
        return Report(gap, state.finished, near=lambda: _losses_count(state))


def smaller_copy(rows: RowSpace) -> tuple[AnyData, Vector | float, int] | None:
    """A copy to sweep, what columns that are not in it add to the diagonal, and its bytes; or None.

    Sweeps that read large rows again and again wait for the memory: the fewer bytes, the better.
    """
    if rows.without_private_columns is not None:
        data, private = rows.without_private_columns
        each = 8 if data.columns > np.iinfo(np.uint16).max else 6  # a value and its column
        return data, private, each * data.stored
    if rows.stored > CACHED_VALUES and (single := rows.in_single_precision) is not None:
        return single, 0.0, 4 * rows.stored
    return None


def _losses_count(state: State) -> bool:
    """Whether losses are a part of the optimum: else a better length of w leaves far less of the gap."""
    alpha, costs = state.alpha, state.coordinates[:, COST]
    return float(alpha.sum(where=alpha >= costs)) > _LOSSES_COUNT * float(alpha.sum())


def _starting_alpha(problem: Problem, start: Solution) -> Vector:
    if start.alpha is not None:
        return np.clip(start.alpha, 0.0, problem.upper)
    if start.w is None:
        return np.zeros(problem.rows.count)
    alpha = problem.loss.multiplier(problem.margins(start.w, start.b), problem.costs)
    return alpha * problem.best_multiple(alpha, problem.rows.combine(alpha * problem.y))
