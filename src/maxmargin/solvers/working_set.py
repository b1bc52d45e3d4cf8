# SPDX-License-Identifier: BSD-3-Clause
"""The kernel problem's dual, a few thousand multipliers at a time: the solver behind ``SVC``.

    minimise over beta   1/2 beta' K beta - y' beta,     sum_i beta_i = 0,   beta_i = alpha_i y_i

A round chooses violators of the KKT conditions, solves the problem on them (sequential minimal optimisation
on a small dense matrix, core/kernel/working_set.hpp), and then computes rows of the kernel matrix only for
the multipliers that changed. Shrinking: rows whose multiplier rests on a wall, with no reason to leave it,
are put aside for a while. Their part of the gradient is brought up to date afterwards, at the price of
one row of the matrix for each multiplier that has changed meanwhile. The last digits are won in double
precision, with Newton's method on the free multipliers (end_game.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.kernels.cache_use import notes_of
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.kernel.free_multipliers import newton_changes
from maxmargin.solvers.kernel.kernel_problem import balanced, kernel_matrix
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import NotNegative, Range, Seed
from maxmargin.types import Indices, Vector

_DOUBLE = 2_000
"""Up to this many rows the matrix is small: it is computed in double precision."""
_END_GAME = 1e-5
"""Relative gap from which single precision gets in the way."""
_MOST_FREE = 3_000
"""Newton's method factors a matrix of this size at most."""
_OF_CHEAP, _OF_DEAR = 1 / 8, 1 / 16
"""Of the rows, the share that a working set has, by what values of the kernel take."""
_SHRINK_FROM = 5_000
_SHRINK_TO = 0.7
"""Rows are put aside where there are so many, and at most this share of them stays."""
_COME_BACK = 0.3
"""And they come back when the others violate the conditions by this share of what they did."""


@dataclass
class Level:
    """The dual on all rows, or on those that were not put aside; in the order of the blocks."""

    matrix: core.KernelMatrix
    rounds: core.WorkingSet
    low: Vector
    high: Vector
    labels: Vector
    beta: Vector
    f: Vector
    """``K beta - y``: the gradient."""
    least: float = -1.0
    """f of the multipliers that may grow, and"""
    greatest: float = 1.0
    """of those that may fall: at an optimum it is not above ``least``."""
    primal: float = math.inf
    gap: float = math.inf

    @property
    def violation(self) -> float:
        """How much the worst pair gains per unit moved; at most 0 at an optimum."""
        return self.greatest - self.least

    @property
    def relative_gap(self) -> float:
        """As the gradient tells it, which may have lost digits."""
        return self.gap / abs(self.primal) if self.primal else 0.0

    def run(self, rounds: int, budget: Budget) -> int:
        """So many rounds, or fewer where there is nothing left to do; returns their number."""
        done, self.least, self.greatest, self.primal, dual = self.rounds.run(
            self.low, self.high, self.labels, self.beta, self.f, rounds, budget
        )
        self.gap = max(self.primal - dual, 0.0)
        return int(done)

    def take_best_intercept(self) -> None:
        """The gap with the best b for the gradient, as a certificate has it; O(n)."""
        costs = self.high - self.low
        ends = core.weighted_quantile(-self.f, costs, float(costs[self.labels > 0].sum()), 0.0)
        b = 0.5 * sum(ends)
        squared = core.dot(self.beta, self.f + self.labels)
        loss = core.dot(costs, np.maximum(0.0, -self.labels * (self.f + b)))
        primal = 0.5 * squared + loss
        if primal < self.primal:  # not where an end is infinite, with one class only
            dual = core.dot(self.labels, self.beta) - 0.5 * squared
            self.primal, self.gap = primal, max(primal - dual, 0.0)

    def may_move(self) -> Indices:
        """Rows that violate the conditions, or whose multiplier is free."""
        grow, fall = self.beta < self.high, self.beta > self.low
        return np.flatnonzero((grow & (fall | (self.f < self.greatest))) | (fall & (self.f > self.least)))


@dataclass
class State:
    """The dual on all rows and, while some are put aside, on the others."""

    whole: Level
    cache: core.CacheCounts
    part: Level | None = None
    rows: Indices | None = None
    """Those of the part."""
    before: float = math.inf
    """Violation when it was taken."""
    precise: bool = False
    """Whether the matrix is in double precision."""
    estimate: float = math.inf
    finished: bool = False


@dataclass(frozen=True)
class WorkingSet(Solver[State]):
    """Working sets of several multipliers."""

    name: ClassVar[str] = "working_set"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True

    size: Literal[0] | Annotated[int, Range("[2, inf)")] = 0
    """Multipliers of a working set. 0: chosen by the number of rows and of columns."""
    cache_size: NotNegative = 1000.0
    """Memory for rows of the kernel matrix, in megabytes."""
    shrinking: bool = True
    """Leave out rows at a wall that no working set can move now, and look at them again later."""
    seed: Seed = 0
    """The seed of the choice of rows."""

    def accepts(self, problem: Problem) -> str | None:
        """Kernel problems with the hinge loss and an exact intercept."""
        if not isinstance(problem.rows, KernelRows):
            return (
                "working_set solves kernel problems. Use maxmargin.kernels.KernelRows(X, kernel) as rows."
            )
        if problem.loss.name != "hinge":
            return f"working_set minimises the hinge loss. Got {problem.loss.name!r}: use loss='hinge'."
        if problem.intercept is not Intercept.EXACT:
            return (
                "working_set keeps sum_i alpha_i y_i = 0, so it needs intercept='exact'. Without intercept "
                "use kernel_dual_ascent."
            )
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Multipliers of 0, or those of the start with rows of the matrix for all that are not."""
        order = _kernel_rows(problem).blocks.order
        y, costs = problem.y[order], problem.costs[order]
        beta = np.zeros(len(y))
        if start is not None and start.alpha is not None:
            beta = balanced(np.clip(start.alpha[order], 0.0, costs), y) * y
        precise = len(y) <= _DOUBLE
        cache = core.CacheCounts()
        return State(self._level(problem, beta, precise, cache, core.ALL_CORES), cache, precise=precise)

    def _level(
        self, problem: Problem, beta: Vector, precise: bool, cache: core.CacheCounts, budget: Budget
    ) -> Level:
        """All rows, with a matrix that has computed nothing yet but the gradient of beta."""
        rows = _kernel_rows(problem)
        order = rows.blocks.order
        y, costs = problem.y[order], problem.costs[order]
        matrix = kernel_matrix(rows, self.cache_size, cache, single=not precise)
        f = -y
        changed = np.flatnonzero(beta)
        matrix.add(changed, beta[changed], f, budget)
        rounds = core.WorkingSet(matrix, self._size(matrix), self.seed)
        walls = np.minimum(0.0, costs * y), np.maximum(0.0, costs * y)
        return Level(matrix, rounds, *walls, y, beta, f)

    def _size(self, matrix: core.KernelMatrix) -> int:
        # Larger sets need fewer rounds, but more values among themselves in each.
        share = _OF_DEAR if matrix.dear else _OF_CHEAP
        return self.size or int(min(2048, max(64, 2 ** math.ceil(math.log2(share * matrix.count + 1)))))

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One round, or some where they are short; in the end a step of Newton's method before it."""
        level = state.part or state.whole
        short = len(level.f) <= _DOUBLE
        if state.precise and not short:
            self._newton(problem, level, budget)
        rounds = 8 if short else 1
        idle = level.run(rounds, budget) < rounds and not budget.spent
        if state.part is not None:
            if idle or level.violation <= _COME_BACK * state.before:
                del level  # its rows' memory is needed
                _bring_back(state, budget)
            return state
        state.estimate = level.relative_gap
        if not state.precise and (idle or state.estimate <= _END_GAME):
            beta = level.beta
            del level.matrix, level.rounds  # their memory is needed
            state.whole = self._level(problem, beta, True, state.cache, budget)
            state.precise = True
        elif self.shrinking and not idle and not state.precise:
            self._put_aside(state)
        else:
            state.finished = idle
        return state

    def _newton(self, problem: Problem, level: Level, budget: Budget) -> None:
        free = np.flatnonzero((level.beta > level.low) & (level.beta < level.high))
        if not 2 <= len(free) <= _MOST_FREE:
            return
        rows = _kernel_rows(problem)
        places = rows.blocks.order[free]
        with one_blas_thread():
            changes = newton_changes(
                rows.block(places, places),
                level.f[free],
                level.beta[free],
                level.low[free],
                level.high[free],
            )
        if changes is None:
            return
        moved = np.flatnonzero(changes)
        level.beta[free] += changes
        level.matrix.add(free[moved], changes[moved], level.f, budget)

    def _put_aside(self, state: State) -> None:
        whole = state.whole
        # Where all rows of the matrix are kept, a row for every change costs little already.
        if len(whole.f) < _SHRINK_FROM or whole.matrix.keeps_all:
            return
        rows = whole.may_move()
        if len(rows) > _SHRINK_TO * len(whole.f):
            return
        matrix = whole.matrix.subset(rows)
        rounds = core.WorkingSet(matrix, min(self._size(whole.matrix), len(rows)), self.seed)
        state.part = Level(
            matrix,
            rounds,
            whole.low[rows],
            whole.high[rows],
            whole.labels[rows],
            whole.beta[rows],
            whole.f[rows],
        )
        state.rows, state.before = rows, whole.violation
        # Rows are away for long, and no proof is tried meanwhile: it is worth knowing how near one is.
        whole.take_best_intercept()
        state.estimate = whole.relative_gap

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The multipliers; those put aside are where they were."""
        assert isinstance(problem.rows, KernelRows)
        beta = state.whole.beta
        if state.part is not None:
            beta = beta.copy()
            beta[state.rows] = state.part.beta
        alpha = np.empty(len(beta))
        alpha[problem.rows.blocks.order] = beta * state.whole.labels
        return Solution(alpha=alpha, alpha_from="the working sets", notes=notes_of(state.cache))

    def report(self, state: State) -> Report:
        """The gap with the gradient as it is known; while rows are put aside, the last one.

        It is finished when no pair of multipliers violates the conditions any more.
        """
        return Report(state.estimate, state.finished)


def _kernel_rows(problem: Problem) -> KernelRows:
    assert isinstance(problem.rows, KernelRows)
    return problem.rows


def _bring_back(state: State, budget: Budget) -> None:
    """All rows again, with the gradient that they have now."""
    whole, part = state.whole, state.part
    assert part is not None
    assert state.rows is not None
    changes = part.beta - whole.beta[state.rows]
    moved = np.flatnonzero(changes)
    whole.beta[state.rows] = part.beta
    state.part = None  # first, so that its rows' memory is free for those of the whole
    del part
    whole.matrix.add(state.rows[moved], changes[moved], whole.f, budget)
    whole.run(0, budget)
    whole.take_best_intercept()
    state.estimate = whole.relative_gap
