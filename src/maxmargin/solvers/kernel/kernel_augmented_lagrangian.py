# SPDX-License-Identifier: BSD-3-Clause
"""Augmented Lagrangian with semismooth Newton inside, for kernels of more rows than are factored lightly.

    minimise over beta   1/2 beta' K beta - y' beta + e' |beta|,     low <= beta <= high,   sum_i beta_i = 0

with beta_i = alpha_i y_i and e = 0; in regression it is the difference of an example's two multipliers, y_i
its value and e_i the half width of its tube. As in solvers/augmented_lagrangian.py, the kinks of each loss
are rounded off around a place that the multipliers so far, c, say. With w = sum_j v_j phi(x_j):

    1  repeat
    2      t_i = the beta in its walls that minimises   r d_i (beta - c_i)^2 / 2 + e_i |beta|
                                                         - (y_i - (K v)_i - b) beta
           J   = the rows where that lies neither on a wall nor at the kink
    3      if (v - t)' K (v - t) / 2 is a small part of the gap:   c = t;   a smaller r;   t again, and
           the J that was is taken over, with t as if its rows had no walls
    4      solve for p, which is 0 outside J and the last J, and a shift q of b:
               (K + r D) p + q = K (v - t) on these,    sum_i p_i = -sum_i t_i
    5      (v, b) += s (t + p - v, q), with the best s in [0, 1]

D is the diagonal of K, and d_i its values. t are the multipliers of a smooth convex function of (w, b), and
lines 4 and 5 are Newton's method on it with exact steps. It falls with each of them, whichever rows change
sides: there is nothing to go round in, as there is for active sets where classes overlap. Rows that have
just left J often come back, and are in the system once more.

A step costs a factor of the rows of J, or a border of one that is near to it. These are the rows whose
score lies within r C of the margin, and at the end those with a free multiplier. Values of the kernel are
computed when they are needed, since a factor takes many times as long: there is no memory for all of them.

It is no solver for every problem, and not in the registry: ``SVC`` and ``SVR`` try it where pairs of rows
gain too little.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, end_if_stopped
from maxmargin.solvers.kernel.kernel_problem import (
    Walls,
    alpha_of,
    beta_of,
    kernel_rows,
    not_for_pairs,
    starting_alpha,
    walls_of,
)
from maxmargin.solvers.second_order.bordered import Bordered, Equations
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Count, NotNegative, Positive, Seed
from maxmargin.types import Indices, Vector

_SHARPEN, _SOFTEN = 0.3, 10.0
"""The factor on r from one smooth problem to the next, or where J has too many rows; and where it has none:
with a third of r few rows of J stay, and their factor is small."""
_ENOUGH = 0.1
"""The part of the gap that may be left of a smooth problem."""
_HALVINGS = 30
"""Halvings of the interval that has the best step: steps of a hundredth are common at first."""
_TRIES = 30
"""Values of r that are tried for a J that is neither empty nor too large: over ten orders of magnitude."""
_NARROWED = 4
"""How often J may become too large: as often as not, so many rows are free at the end."""
_NO_STEP = 1e-7
"""A step so short is none: rounding tells where it leads."""
_BEYOND = 0.03
"""The share of the aim, below which a gap that is not yet proven is a matter of rounding."""
_PATIENCE = 150
"""Steps on a smooth problem: forty at first, a dozen later."""

Mask = NDArray[np.bool_]


@dataclass
class Smooth:
    """What follows from v, b, c and r: line 2, once the scores are known."""

    f: Vector
    """K v."""
    target: Vector
    """t."""
    free: Mask
    """J."""
    pull: Vector
    """K (v - t)."""


@dataclass
class State:
    """The point, and the place of the kinks."""

    walls: Walls
    diagonal: Vector
    center: Vector
    """c."""
    v: Vector
    r: float
    b: float = 0.0
    smooth: Smooth | None = None
    """None before the first step."""
    before: Mask | None = None
    """The last J; None in the first step on a smooth problem."""
    system: Bordered | None = None
    narrowed: int = 0
    """How often J has become too large, or empty."""
    steps: int = 0
    """Steps on this smooth problem."""
    primal: float = math.inf
    by_v: bool = False
    """Whether v has a better primal value than t: with a large C the least differences count."""
    relative_gap: float = math.inf
    finished: bool = False


@dataclass(frozen=True)
class _OfKernel(Equations):
    """The equations of line 4, whose values are computed when they are asked for."""

    rows: KernelRows
    budget: Budget

    def values(self, first: Indices, second: Indices) -> Matrix:
        """K between some rows and others."""
        end_if_stopped(self.budget)
        return self.rows.block(first, second, self.budget)


@dataclass(frozen=True)
class KernelAugmentedLagrangian(Solver[State]):
    """Augmented Lagrangian on the rows that have a free multiplier, or may have."""

    name: ClassVar[str] = "kernel_augmented_lagrangian"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True

    width: Positive = 1.0
    """How far from the margin the kinks are rounded off at first, in units of the spread of the targets."""
    most_rows: Count = 8_000
    """Rows of a system, at most: r is smaller where there would be more."""
    aim: NotNegative = 0.0
    """The relative gap that it is for: far below it, it ends."""
    seed: Seed = 0
    """Nothing here is random."""

    def accepts(self, problem: Problem) -> str | None:
        """Kernel problems with the hinge loss and an exact intercept."""
        if (refusal := not_for_pairs(self.name, problem, twins=True)) is not None:
            return refusal
        if problem.total is not None:
            return f"{self.name} knows no total of the multipliers. Use working_set."
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin at the start's w, or at that of its multipliers, which are the first place of the kinks."""
        rows, walls = kernel_rows(problem), walls_of(problem)
        alpha = starting_alpha(problem, start)
        center = np.zeros(rows.count) if alpha is None else beta_of(problem, alpha)
        v = center if start is None or start.w is None else start.w
        diagonal = rows.squared_norms.copy()
        diagonal[diagonal <= 0.0] = diagonal.max(initial=0.0) or 1.0  # a row whose image is 0
        # A score that changes by this width takes a multiplier from one wall to the other.
        mean = float(np.mean((walls.high - walls.low) * diagonal)) or 1.0
        return State(walls, diagonal, center, v, self.width * problem.spread / mean)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Lines 3 to 5: one step of Newton's method."""
        with suppress(TimeoutError):  # the state is as it was, or a new smooth problem at the same point
            self._step(problem, state, budget)
        return state

    def _step(self, problem: Problem, state: State, budget: Budget) -> None:
        rows = kernel_rows(problem)
        if state.smooth is None:
            f = _product(rows, state.v, budget)
            state.b = problem.best_intercept(_of_rows(problem, f))
            self._with_few_rows(rows, state, f, budget)
            _judge(problem, state)
        elif not self._has_few_rows(state.smooth.free) and state.steps < _PATIENCE:
            state.narrowed += 1
            state.finished = state.narrowed > _NARROWED
            if not state.finished:
                self._with_few_rows(rows, state, state.smooth.f, budget)
        elif self._is_enough(state) or state.steps >= _PATIENCE:
            state.finished = state.steps >= _PATIENCE or self.sees_no_gap(state)
            if not state.finished:
                self._sharpen(rows, state, budget)
        if state.finished or state.smooth is None:
            return
        smooth = state.smooth
        moved, shift = self._newton(rows, state, smooth, budget)
        product = _product(rows, moved, budget) - smooth.pull
        change = smooth.target + moved - state.v
        length = _best_step(state, smooth, change, product, shift)
        # What stays of v - t falls with the step; rows that change sides have more, and rounding has.
        v = smooth.target + moved if length == 1.0 else state.v + length * change
        b, f = state.b + length * shift, smooth.f + length * product
        target, free = _line_2(state, f, b)
        more = v - target - (1.0 - length) * (state.v - smooth.target)
        pull = (1.0 - length) * smooth.pull + _product(rows, more, budget)
        if not np.isfinite(pull).all():
            state.finished = True
            return
        state.v, state.b, state.before = v, b, smooth.free
        state.smooth = Smooth(f, target, free, pull)
        state.steps += 1
        state.finished = length <= _NO_STEP
        _judge(problem, state)

    def sees_no_gap(self, state: State) -> bool:
        """Whether a proof that falls short of the aim can only do so by rounding."""
        return state.relative_gap <= _BEYOND * self.aim

    def _is_enough(self, state: State) -> bool:
        """Line 3: whether little is left of a smooth problem."""
        assert state.smooth is not None
        left = 0.5 * core.dot(state.v - state.smooth.target, state.smooth.pull)
        return state.steps > 0 and left <= _ENOUGH * state.relative_gap * state.primal

    def _has_few_rows(self, free: Mask) -> bool:
        return bool(0 < np.count_nonzero(free) <= self.most_rows)

    def _with_few_rows(self, rows: KernelRows, state: State, f: Vector, budget: Budget) -> None:
        """Line 2 at scores f, with an r for which J has rows, and not too many."""
        r, before = state.r, state.r
        for _ in range(_TRIES):
            state.r = r
            target, free = _line_2(state, f, state.b)
            state.r = before
            if self._has_few_rows(free):
                break
            r *= _SHARPEN if free.any() else _SOFTEN
        else:
            state.finished = True
            return
        smooth = Smooth(f, target, free, _product(rows, state.v - target, budget))
        state.r, state.smooth, state.before = r, smooth, None

    def _sharpen(self, rows: KernelRows, state: State, budget: Budget) -> None:
        """Line 3: the next smooth problem."""
        assert state.smooth is not None
        last, center, r = state.smooth.free, state.center, state.r
        try:
            state.center, state.r = state.smooth.target, _SHARPEN * state.r
            f = _product(rows, state.v, budget)  # anew, since every step has added its rounding
            target, _ = _line_2(state, f, state.b)
            target = np.where(last, _without_walls(state, f, state.b, state.center), target)
            pull = _product(rows, state.v - target, budget)
        except BaseException:
            state.center, state.r = center, r
            raise
        state.smooth = Smooth(f, target, last, pull)
        state.before, state.system, state.steps = None, None, 0

    def _newton(
        self, rows: KernelRows, state: State, smooth: Smooth, budget: Budget
    ) -> tuple[Vector, float]:
        """Line 4."""
        some = smooth.free if state.before is None else smooth.free | state.before
        some = some if self._has_few_rows(some) else smooth.free
        stiff, missing = state.r * state.diagonal, -float(smooth.target.sum())
        equations = _OfKernel(np.empty((0, 0)), stiff, smooth.pull, missing, 0.0, rows, budget)
        with one_blas_thread():
            system = state.system
            if system is None or system.r != state.r or not system.reaches(some):
                del system
                state.system = None  # first, so that its memory is free for the next
                state.system = system = Bordered(equations, some, state.r, budget, in_time=True)
            return system.solve(equations, some, np.zeros(rows.count), budget)

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The multipliers t, or before the first step those of the start."""
        beta = state.center if state.smooth is None else state.smooth.target
        alpha = alpha_of(problem, np.clip(beta, state.walls.low, state.walls.high))
        w = state.v if state.by_v else None
        return Solution(w=w, alpha=alpha, any_length=True, alpha_from="an augmented Lagrangian")

    def report(self, state: State) -> Report:
        """The gap as the scores tell it; finished: rounding is all that is left, or nothing moves."""
        return Report(state.relative_gap, state.finished)


def _product(rows: KernelRows, values: Vector, budget: Budget) -> Vector:
    """K times a vector, whole; TimeoutError or KeyboardInterrupt where it is not."""
    product = rows.scores(values, budget)
    end_if_stopped(budget)
    if budget.spent:
        raise TimeoutError
    return product


def _of_rows(problem: Problem, f: Vector) -> Vector:
    return np.repeat(f, len(problem.y) // len(f))


def _without_walls(state: State, f: Vector, b: float, side: Vector) -> Vector:
    """What t is where there are no walls, and no kink between it and what is on this side of it."""
    slopes = state.walls.wanted - f - b - np.sign(side) * state.walls.widths
    return np.asarray(state.center + slopes / (state.r * state.diagonal))


def _line_2(state: State, f: Vector, b: float) -> tuple[Vector, Mask]:
    """Both t and J."""
    low, high, wanted, widths = state.walls
    stiff = state.r * state.diagonal
    target = state.center + (wanted - f - b) / stiff
    target = np.sign(target) * np.maximum(np.abs(target) - widths / stiff, 0.0)
    free = (target > low) & (target < high) & ((target != 0.0) | (widths == 0.0))
    return np.clip(target, low, high), free


def _best_step(state: State, smooth: Smooth, change: Vector, product: Vector, shift: float) -> float:
    """Line 5: the s at which the smooth function is least along a change of v and b."""
    first, second, along = core.dot(state.v, product), core.dot(change, product), product + shift

    def rises(s: float) -> bool:
        target, _ = _line_2(state, smooth.f + s * product, state.b + s * shift)
        return first + s * second > core.dot(target, along)

    if not rises(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rises(middle) else (middle, high)
    return low


def _primal(problem: Problem, v: Vector, f: Vector) -> float:
    """The primal value of w, as its scores tell it."""
    of_rows = _of_rows(problem, f)
    margins = problem.margins_of(of_rows, problem.best_intercept(of_rows))
    return 0.5 * core.dot(v, f) + problem.loss_sum(margins)


def _judge(problem: Problem, state: State) -> None:
    """The gap between the better primal value of v and t, and the dual one of t."""
    if state.smooth is None:
        return
    _, _, wanted, widths = state.walls
    smooth, target = state.smooth, state.smooth.target
    scores = smooth.f - smooth.pull
    of_target, of_v = _primal(problem, target, scores), _primal(problem, state.v, smooth.f)
    state.primal, state.by_v = min(of_target, of_v), of_v < of_target
    dual = core.dot(wanted, target) - core.dot(widths, np.abs(target)) - 0.5 * core.dot(target, scores)
    dual -= abs(state.b * float(target.sum()))
    state.relative_gap = core.relative_gap(state.primal, max(dual, 0.0))
