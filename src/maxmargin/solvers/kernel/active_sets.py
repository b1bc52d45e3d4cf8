# SPDX-License-Identifier: BSD-3-Clause
"""Active sets with a proximal term, on the whole kernel matrix: for kernels that pairs of rows are slow on.

    minimise over beta   1/2 beta' K beta - y' beta + e' |beta|,     low <= beta <= high,   sum_i beta_i = 0

with beta_i = alpha_i y_i and e = 0; in regression it is the difference of an example's two multipliers, y_i
its value and e_i the half width of its tube. At the end most multipliers rest on a wall, or at the kink
that e_i > 0 makes at 0, and the others solve a linear system. Which ones these are is found by solving such
systems, many rows changing sides after each.

    1  f = K beta - y;   b = the best intercept
    2  J = the rows that do not rest, and those that f + b, with the slope of e |beta|, pushes away from
       where they rest: each on its side of the kink, which is a wall for it;   t = beta
    3  repeat
    4      solve for t_J and a shift c of b:   f + b +- e + (K + r D) (t - beta) + c = 0 on J,
           sum_i t_i = 0
    5      rows of J that t leads beyond a wall stay there, and rows at rest that the left side of 4
           pushes away are in J: until none is left, or ``systems`` times
    6  beta += s (t - beta), with the best s in [0, 1];   a smaller r where 5 has ended, a larger one where
       s is small

D is the diagonal of K, so neither the scales of the columns nor those of the rows matter. The proximal term
keeps the first steps from going to walls that lie far beyond the solution, makes up for what rounding takes
from a singular K, and changes nothing at the end.

It is no solver for every problem, and not in the registry: where classes overlap, rows may go on changing
sides. ``SVC`` and ``SVR`` try it where pairs of rows gain too little, and go on where it does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.kernel.kernel_problem import (
    Walls,
    alpha_of,
    beta_of,
    kernel_rows,
    not_for_pairs,
    starting_alpha,
    walls_of,
)
from maxmargin.solvers.second_order.cholesky import factored, solved_by
from maxmargin.solvers.sizes import FACTORED_ROWS
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Count, Positive, Range, Seed
from maxmargin.tools.side_by_side import side_by_side
from maxmargin.types import Indices, Vector

_SHARPEN, _SOFTEN = 0.1, 10.0
"""The factors on r after a step whose systems have ended, and after one that hardly moved."""
_HARDLY = 0.1
"""A step of this length has hardly moved."""
_ABOVE, _FORGETTING = 3.0, 0.5
"""How far r stays above the last one at which a step hardly moved, which each step that does halves."""
_LONG_PRODUCT = 2_000_000
"""Values of K in a product, from which a second thread is worth its start: a millisecond."""
_ROWS_OF_PRODUCT = 64
"""Rows of K that are copied for a product at once: 10,000 values each fit into the third-level cache."""
_LEAST_PROXIMAL, _MOST_PROXIMAL = 1e-13, 1e3
"""The range of r: below it the rounding of K is larger, beyond it steps are too short."""
_WORTH = 0.05
"""The share of the distance to the optimum, as far as it is known, that a step is to gain."""
_PATIENCE = 6
"""Steps in a row that gain less, after which it ends."""

Mask = NDArray[np.bool_]


@dataclass
class State:
    """The multipliers, and what follows from them: line 1."""

    matrix: Matrix
    diagonal: Vector
    walls: Walls
    """low, high, y and e."""
    beta: Vector
    proximal: float
    """r."""
    f: Vector
    too_sharp: float = 0.0
    """An r at which a step has hardly moved, less what has been forgotten of it."""
    b: float = 0.0
    dual: float = 0.0
    gap: float = math.inf
    """The distance between the primal and the dual value, as f tells."""
    relative_gap: float = math.inf
    idle: int = 0
    """Steps in a row that have gained little."""
    work: float = 0.0
    """The factors so far, each as the third power of its rows."""
    finished: bool = False


class Sides(NamedTuple):
    """Where each row may go as long as it crosses no kink, and the slope that e |beta| has there."""

    floor: Vector
    ceiling: Vector
    tilt: Vector

    @classmethod
    def of(cls, walls: Walls, above: Mask) -> Sides:
        """The sides of rows, some of them ``above`` the kink and the others below; all of a row without."""
        low, high, _, widths = walls
        kinked = widths > 0.0
        return cls(
            np.where(kinked & above, 0.0, low),
            np.where(kinked & ~above, 0.0, high),
            np.where(above, widths, -widths),
        )


@dataclass(frozen=True)
class ActiveSets(Solver[State]):
    """Active sets with a proximal term; needs memory for all values of the kernel."""

    name: ClassVar[str] = "active_sets"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True

    proximal: Positive = 1e-4
    """The first r, in units of the diagonal of K."""
    systems: Count = 16
    """Systems in one step, at most."""
    most_work: Positive = math.inf
    """The factors that it may take, each as the third power of its rows: the step in which they become more
    is the last."""
    most_rows: Annotated[float, Range("(0, inf]")] = math.inf
    """Rows of a system, at most: where one would have more, it ends."""
    seed: Seed = 0
    """Nothing here is random."""

    def accepts(self, problem: Problem) -> str | None:
        """Kernel problems with the hinge loss and an exact intercept, of rows that can be factored."""
        if (refusal := not_for_pairs(self.name, problem, twins=True)) is not None:
            return refusal
        count = kernel_rows(problem).count
        if count > FACTORED_ROWS:
            return (
                f"{self.name} keeps all values of the kernel and factors a part of them, for up to "
                f"{FACTORED_ROWS} rows. Got {count} instead. Use working_set."
            )
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with multipliers of 0, or with those of the start."""
        rows = kernel_rows(problem)
        matrix = rows.all_values()
        alpha = starting_alpha(problem, start)
        beta = np.zeros(rows.count) if alpha is None else beta_of(problem, alpha)
        diagonal = np.einsum("ii->i", matrix).copy()
        diagonal[diagonal <= 0.0] = diagonal.max(initial=0.0) or 1.0  # a row whose image is 0
        state = State(matrix, diagonal, walls_of(problem), beta, self.proximal, f=np.empty(0))
        _look(problem, state)
        return state

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Lines 2 to 6: one proximal problem."""
        target, ended = self._solve(state, budget)
        change, walls = target - state.beta, state.walls
        moving = np.flatnonzero(change)
        curvature = core.dot(change, _product(state.matrix, moving, change[moving], budget))
        # Along the way |beta| is never above the line from its beginning to its end.
        kinks = core.dot(walls.widths, np.abs(target) - np.abs(state.beta))
        slope = -core.dot(state.f, change) - kinks
        length = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        if length > 0.0 and slope > 0.0:
            moved = target if length == 1.0 else state.beta + length * change  # 6
            state.beta = np.clip(moved, walls.low, walls.high)
        before, open_before = state.dual, state.gap
        _look(problem, state)
        if ended and length > _HARDLY:
            state.proximal = max(_SHARPEN * state.proximal, _ABOVE * state.too_sharp, _LEAST_PROXIMAL)
            state.too_sharp *= _FORGETTING
        elif length <= _HARDLY:
            state.too_sharp = state.proximal
            state.proximal = min(_SOFTEN * state.proximal, _MOST_PROXIMAL)
        gained = state.dual - before > _WORTH * min(open_before, state.gap)
        state.idle = 0 if gained else state.idle + 1
        state.finished |= state.idle >= _PATIENCE or state.work > self.most_work
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The multipliers."""
        return Solution(alpha=alpha_of(problem, state.beta), alpha_from="active sets")

    def report(self, state: State) -> Report:
        """The gap as f tells it; finished: several steps have gained next to nothing."""
        return Report(state.relative_gap, state.finished)

    def _solve(self, state: State, budget: Budget) -> tuple[Vector, bool]:
        """Lines 2 to 5: the target, and whether no row would change sides any more."""
        walls = state.walls
        slopes = state.f + state.b
        pushed_up, pushed_down = _pushed(walls, state.beta, slopes)
        sides = Sides.of(walls, (state.beta > 0.0) | ((state.beta == 0.0) & pushed_up))
        J = (state.beta > sides.floor) & (state.beta < sides.ceiling)
        J |= pushed_up | pushed_down  # 2
        target, ended = state.beta.copy(), False
        product = np.zeros(len(target))  # K (target - beta)
        for _ in range(self.systems):  # 3
            rows = np.flatnonzero(J)
            state.finished |= len(rows) > self.most_rows
            if len(rows) < 2 or budget.spent or state.finished or state.work > self.most_work:
                break
            state.work += float(len(rows)) ** 3
            found = _system(state, slopes + sides.tilt, rows, target, product, budget)  # 4
            if found is None:  # rounding has eaten the diagonal
                state.proximal = min(_SOFTEN * state.proximal, _MOST_PROXIMAL)
                break
            target, left = found
            beyond = J & ((target < sides.floor) | (target > sides.ceiling))  # 5
            outside = np.flatnonzero(beyond)
            there = target[outside]
            target = np.clip(target, sides.floor, sides.ceiling)
            product += _product(state.matrix, outside, target[outside] - there, budget)
            pushed_up, pushed_down = _pushed(walls, target, left - sides.tilt)
            leaving = ~J & (pushed_up | pushed_down)
            if not (beyond | leaving).any():
                ended = True
                break
            J = (J & ~beyond) | leaving
            above = (target > 0.0) | ((target == 0.0) & np.where(leaving, pushed_up, sides.tilt > 0.0))
            sides = Sides.of(walls, above)
        _balance(target)
        return target, ended


def _pushed(walls: Walls, beta: Vector, slopes: Vector) -> tuple[Mask, Mask]:
    """Which rows would gain by a larger beta, and which by a smaller one, where their walls let them."""
    low, high, _, widths = walls
    up = (beta < high) & (slopes + np.where(beta < 0.0, -widths, widths) < 0.0)
    down = (beta > low) & (slopes + np.where(beta > 0.0, widths, -widths) > 0.0)
    return up, down


def _system(
    state: State, slopes: Vector, rows: Indices, target: Vector, product: Vector, budget: Budget
) -> tuple[Vector, Vector] | None:
    """Line 4: the new target, and its left side on all rows; None where K_JJ is not positive definite.

    ``product`` is K times what the target moves beta by, before and after.
    """
    own = state.proximal * state.diagonal
    change = target - state.beta
    before = change[rows]
    with one_blas_thread():
        right = np.empty((len(rows), 2), order="F")
        matrix = state.matrix[np.ix_(rows, rows)]
        right[:, 0] = matrix @ before - slopes[rows] - product[rows]
        right[:, 1] = 1.0
        on_diagonal = np.einsum("ii->i", matrix)
        on_diagonal += own[rows]
        factor = factored(matrix, budget)
        if factor is None:
            return None
        solved = solved_by(factor, right)
    if not np.isfinite(solved).all():
        return None  # a diagonal next to 0, as kernel values of huge numbers can have by rounding
    change[rows] = 0.0
    missing = -float(state.beta.sum() + change.sum())
    shift = (float(solved[:, 0].sum()) - missing) / float(solved[:, 1].sum())
    change[rows] = solved[:, 0] - shift * solved[:, 1]
    if not np.isfinite(change).all():
        return None
    product += _product(state.matrix, rows, change[rows] - before, budget)
    return state.beta + change, slopes + product + own * change + shift


def _product(matrix: Matrix, rows: Indices, values: Vector, budget: Budget) -> Vector:
    """K times a vector that is not 0 on these rows: on all cores, in parts that do not depend on them."""
    firsts = range(0, len(rows), _ROWS_OF_PRODUCT)
    halves = [firsts[: len(firsts) // 2], firsts[len(firsts) // 2 :]]
    sums = np.zeros((2, len(matrix)))

    def add(total: Vector, firsts: range) -> None:
        for first in firsts:
            some = slice(first, first + _ROWS_OF_PRODUCT)
            total += values[some] @ matrix[rows[some]]

    threads = budget.threads if len(rows) * len(matrix) > _LONG_PRODUCT else 1
    side_by_side([partial(add, *part) for part in zip(sums, halves, strict=True)], threads)
    return np.asarray(sums[0] + sums[1])


def _balance(beta: Vector) -> None:
    """Make the sum 0: the side that has more gives up its share."""
    grown, fallen = float(beta.sum(where=beta > 0.0)), -float(beta.sum(where=beta < 0.0))
    if grown > fallen:
        beta[beta > 0.0] *= fallen / grown
    elif fallen > grown:
        beta[beta < 0.0] *= grown / fallen


def _look(problem: Problem, state: State) -> None:
    """Line 1, and both values."""
    beta, (_, _, wanted, widths) = state.beta, state.walls
    with one_blas_thread():
        scores = state.matrix @ beta
    state.f = scores - wanted
    of_rows = np.repeat(scores, len(problem.y) // len(scores))
    state.b = problem.best_intercept(of_rows)
    half = 0.5 * core.dot(beta, scores)
    primal = half + problem.loss_sum(problem.margins_of(of_rows, state.b))
    state.dual = core.dot(wanted, beta) - core.dot(widths, np.abs(beta)) - half
    state.gap, state.relative_gap = primal - state.dual, core.relative_gap(primal, state.dual)
