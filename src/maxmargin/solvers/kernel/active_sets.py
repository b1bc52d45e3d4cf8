# SPDX-License-Identifier: BSD-3-Clause
"""Active sets with a proximal term, on the whole kernel matrix: for kernels that pairs of rows are slow on.

    minimise over beta   1/2 beta' K beta - y' beta,     low <= beta <= high,   sum_i beta_i = 0

with beta_i = alpha_i y_i. At the end most multipliers rest on a wall, and those inside solve a linear
system. Which ones these are is found by solving such systems, many rows changing sides after each.

    1  f = K beta - y;   b = the best intercept
    2  J = the rows inside their walls, and those at a wall that f + b pushes away from it;   t = beta
    3  repeat
    4      solve for t_J and a shift c of b:   f + b + (K + r D) (t - beta) + c = 0 on J,   sum_i t_i = 0
    5      rows of J that t leads beyond a wall stay there, and rows at a wall that the left side of 4
           pushes away from it are in J: until none is left, or ``systems`` times
    6  beta += s (t - beta), with the best s in [0, 1];   a smaller r where 5 has ended, a larger one where
       s is small

D is the diagonal of K, so neither the scales of the columns nor those of the rows matter. The proximal term
keeps the first steps from going to walls that lie far beyond the solution, makes up for what rounding takes
from a singular K, and changes nothing at the end.

It is no solver for every problem, and not in the registry: where classes overlap, rows may go on changing
sides. ``SVC`` tries it where pairs of rows gain too little, and goes on where it does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.kernel.kernel_problem import kernel_rows, not_for_pairs, starting_alpha
from maxmargin.solvers.sizes import FACTORED_ROWS
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Count, Positive, Seed
from maxmargin.types import Indices, Vector

_SHARPEN, _SOFTEN = 0.1, 10.0
"""The factors on r after a step whose systems have ended, and after one that hardly moved."""
_HARDLY = 0.1
"""A step of this length has hardly moved."""
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
    low: Vector
    high: Vector
    beta: Vector
    proximal: float
    """r."""
    f: Vector
    b: float = 0.0
    dual: float = 0.0
    gap: float = math.inf
    """The distance between the primal and the dual value, as f tells."""
    relative_gap: float = math.inf
    idle: int = 0
    """Steps in a row that have gained little."""
    finished: bool = False


@dataclass(frozen=True)
class ActiveSets(Solver[State]):
    """Active sets with a proximal term; needs memory for all values of the kernel."""

    name: ClassVar[str] = "active_sets"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True

    proximal: Positive = 1e-4
    """The first r, in units of the diagonal of K."""
    systems: Count = 16
    """Systems in one step, at most."""
    seed: Seed = 0
    """Nothing here is random."""

    def accepts(self, problem: Problem) -> str | None:
        """Kernel problems with the hinge loss and an exact intercept, of rows that can be factored."""
        if problem.rows.count > FACTORED_ROWS:
            return (
                f"{self.name} keeps all values of the kernel and factors a part of them, for up to "
                f"{FACTORED_ROWS} rows. Got {problem.rows.count} instead. Use working_set."
            )
        return not_for_pairs(self.name, problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with multipliers of 0, or with those of the start."""
        rows, every = kernel_rows(problem), np.arange(problem.rows.count)
        matrix = rows.block(every, every)
        bound = problem.y * problem.costs
        alpha = starting_alpha(problem, start)
        beta = np.zeros(rows.count) if alpha is None else alpha * problem.y
        diagonal = np.einsum("ii->i", matrix).copy()
        diagonal[diagonal <= 0.0] = diagonal.max(initial=0.0) or 1.0  # a row whose image is 0
        low, high = np.minimum(bound, 0.0), np.maximum(bound, 0.0)
        state = State(matrix, diagonal, low, high, beta, self.proximal, f=np.empty(0))
        _look(problem, state)
        return state

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Lines 2 to 6: one proximal problem."""
        target, ended = self._solve(state, budget)
        change = target - state.beta
        with one_blas_thread():
            slope, curvature = -core.dot(state.f, change), core.dot(change, state.matrix @ change)
        length = min(1.0, slope / curvature) if curvature > 0.0 else 1.0
        if length > 0.0 and slope > 0.0:
            moved = target if length == 1.0 else state.beta + length * change  # 6
            state.beta = np.clip(moved, state.low, state.high)
        before, open_before = state.dual, state.gap
        _look(problem, state)
        if ended and length > _HARDLY:
            state.proximal = max(_SHARPEN * state.proximal, _LEAST_PROXIMAL)
        elif length <= _HARDLY:
            state.proximal = min(_SOFTEN * state.proximal, _MOST_PROXIMAL)
        gained = state.dual - before > _WORTH * min(open_before, state.gap)
        state.idle = 0 if gained else state.idle + 1
        state.finished = state.idle >= _PATIENCE
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The multipliers."""
        return Solution(alpha=state.beta * problem.y, alpha_from="active sets")

    def report(self, state: State) -> Report:
        """The gap as f tells it; finished: several steps have gained next to nothing."""
        return Report(state.relative_gap, state.finished)

    def _solve(self, state: State, budget: Budget) -> tuple[Vector, bool]:
        """Lines 2 to 5: the target, and whether no row would change sides any more."""
        beta, low, high = state.beta, state.low, state.high
        slopes = state.f + state.b
        J = (beta > low) & (beta < high)
        J |= ((slopes < 0.0) & (beta < high)) | ((slopes > 0.0) & (beta > low))  # 2
        target, ended = beta.copy(), False
        for _ in range(self.systems):  # 3
            rows = np.flatnonzero(J)
            if len(rows) < 2 or budget.spent:
                break
            found = _system(state, slopes, rows, target)  # 4
            if found is None:  # rounding has eaten the diagonal
                state.proximal = min(_SOFTEN * state.proximal, _MOST_PROXIMAL)
                break
            target, pushed = found
            beyond = J & ((target < low) | (target > high))  # 5
            rests = ~J & (((target <= low) & (pushed < 0.0)) | ((target >= high) & (pushed > 0.0)))
            target = np.clip(target, low, high)
            if not (beyond | rests).any():
                ended = True
                break
            J = (J & ~beyond) | (rests & (low < high))
        _balance(target)
        return target, ended


def _system(state: State, slopes: Vector, rows: Indices, target: Vector) -> tuple[Vector, Vector] | None:
    """Line 4: the new target, and its left side on all rows; None where K_JJ is not positive definite."""
    own = state.proximal * state.diagonal
    change = target - state.beta
    change[rows] = 0.0
    with one_blas_thread():
        right = np.empty((len(rows), 2), order="F")
        right[:, 0] = -(slopes + state.matrix @ change)[rows]
        right[:, 1] = 1.0
        matrix = state.matrix[np.ix_(rows, rows)]
        on_diagonal = np.einsum("ii->i", matrix)
        on_diagonal += own[rows]
        factor, failed = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
        if failed:
            return None
        solved = lapack.dpotrs(factor, right, lower=0)[0]
        if not np.isfinite(solved).all():
            return None  # a diagonal next to 0, as kernel values of huge numbers can have by rounding
        missing = -float(state.beta.sum() + change.sum())
        shift = (float(solved[:, 0].sum()) - missing) / float(solved[:, 1].sum())
        change[rows] = solved[:, 0] - shift * solved[:, 1]
        if not np.isfinite(change).all():
            return None
        pushed = slopes + state.matrix @ change + own * change + shift
    return state.beta + change, pushed


def _balance(beta: Vector) -> None:
    """Make the sum 0: the side that has more gives up its share."""
    grown, fallen = float(beta.sum(where=beta > 0.0)), -float(beta.sum(where=beta < 0.0))
    if grown > fallen:
        beta[beta > 0.0] *= fallen / grown
    elif fallen > grown:
        beta[beta < 0.0] *= grown / fallen


def _look(problem: Problem, state: State) -> None:
    """Line 1, and both values."""
    with one_blas_thread():
        scores = state.matrix @ state.beta
    state.f = scores - problem.y
    state.b = problem.best_intercept(scores)
    half = 0.5 * core.dot(state.beta, scores)
    primal = half + problem.loss_sum(problem.y * (scores + state.b))
    state.dual = core.dot(problem.y, state.beta) - half
    state.gap, state.relative_gap = primal - state.dual, core.relative_gap(primal, state.dual)
