# SPDX-License-Identifier: BSD-3-Clause
"""The kernel problem's dual, a few thousand multipliers at a time: the solver behind ``SVC``.

    minimise over beta   1/2 beta' K beta - y' beta,     sum_i beta_i = 0,   beta_i = alpha_i y_i

In regression it has one beta for both rows of an example, and ``e |beta|`` more (kernel_dual.hpp). Where
the multipliers have a total, those of each sign keep half of it, or all of it where there is one sign only.

A round chooses violators of the KKT conditions, solves the problem on them (sequential minimal optimisation
on a small dense matrix, core/kernel/small_dual.hpp), and then computes rows of the kernel matrix only for
the multipliers that changed. Shrinking: rows whose multiplier rests on a wall, with no reason to leave it,
are put aside for a while. Their part of the gradient is brought up to date afterwards, at the price of
one row of the matrix for each multiplier that has changed meanwhile. The last digits are won in double
precision, with Newton's method on the free multipliers (core/kernel/free_multipliers.hpp).

Where most multipliers stay between their walls, as with a narrow kernel or a large C, rounds have to come
back to every row dozens of times, and there are far too many for a factor. Conjugate gradients take turns
with the rounds then (core/kernel/conjugate_gradients.hpp), as long as they gain.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.kernel.kernel_problem import (
    SINGLE_IS_EXHAUSTED,
    kernel_dual,
    kernel_matrix,
    kernel_rows,
    known_gradient,
    not_for_pairs,
    solution_of,
)
from maxmargin.solvers.sizes import DOUBLE_ROWS, MOST_FREE_ROWS, QUICK_ROWS, SHRINK_FROM
from maxmargin.tools.parameters import NotNegative, Range, Seed
from maxmargin.types import Indices, Vector

_MOST_SYSTEMS = 8
"""Factors in one step of Newton's method: it is cut where a multiplier meets its wall, and goes on."""
_ROWS_OF_SYSTEM, _WHERE_SLOW = 30.0, 10.0
"""The third power of the rows of a system, for each row of a step on a pair that takes as long: a third of
it are multiply-adds, which wait for no memory. And how many times as long as the steps systems may take
where these have gained little: hard problems are solved by systems, easy ones by a few thousand steps."""
_OF_CHEAP, _OF_EXPENSIVE = 1 / 8, 1 / 16
"""The share of the rows that a working set has, where values of the kernel are cheap or expensive; and the
smaller one where they are made of bits, as fast as they could be read: larger sets then save nothing."""
_MOST_FOR_BLOCKS = 4
"""The largest factor on it where the kernel cannot couple blocks of rows."""
_SHRINK_TO = 0.7
"""Rows are put aside where at most this share of them stays."""
_NO_LENGTH = 1e-13
"""The share of the largest squared length of w that multipliers could have, below which it is 0."""
_ROWS_AT_A_TIME = 256
"""Rows of the matrix that are computed between two looks at the clock, before the first round."""
_COME_BACK = 0.3
"""They come back when the others violate the conditions by this share of what they did."""
_MOSTLY_FREE = 0.5
"""The share of the rows with a free multiplier from which conjugate gradients are tried."""
_OF_SUPPORT = 0.95
"""And the share of the support vectors: where many of these are at a wall, faces change with every turn."""
_GRADIENTS = 5
"""Their steps in a turn. Each is a product with the matrix: as much as half a row of it for every row."""
_FIRST_TURN, _FIRST_OF_CHEAP = 1.5, 4.0
"""Changes of a multiplier by rounds, for each row, before the first turn: all rows have been looked at, and
pairs that pull each other to a wall are there. Where values are cheap, a matrix in new memory costs as much
as some rounds, so that more of these are tried first."""
_GAINED = 0.5
"""The share of the gap that a turn leaves where it has gained: else rounds are given more time. And that of
the violation that rounds leave where they have gained."""
_BETWEEN, _AFTER_GAIN = 0.5, 0.1
"""Changes of a multiplier by rounds, for each row, until the next turn: twice as many after each turn that
gained little, and few after one that did. Rounds are quick at what is left on single rows."""
_SINGLE, _OF_RANDOM_SIGNS = 2.0**-24, 0.2
"""The rounding of a value in single precision, as a share of it; and the share of its bound that the gap of
the exact problem had at the end, and somewhat more: values are smaller than the lengths allow, their errors
are of random size, and half of the rows gain by them."""
_FIRST_LOOK, _TOO_SLOW = 0.25, 2.0
"""The share of ``most_work`` from which it is looked whether the pace will do. It will not where the gap,
at the pace of the second half of the work so far, would take so many times the work that is left: paces
change, and a fit that is on its way is not to be given up."""


@dataclass
class Level:
    """The dual on all rows, or on those that were not put aside; in the order of the blocks."""

    matrix: core.KernelMatrix
    rounds: core.WorkingSet
    dual: core.KernelDual
    has_all: bool = False
    """Whether a working set has all rows, so that a round goes as far as several of few rows do."""
    work: float = 0.0
    """The work of the rounds before the last step of Newton's method."""
    before: float = math.inf
    """The violation before the last round."""
    resort: float = math.inf
    """The violation at which that method was the last resort."""

    def move_free(self, budget: Budget) -> None:
        """A step of Newton's method, which with all rows in the set takes about as long as the rounds."""
        systems = _MOST_SYSTEMS
        if self.has_all:
            slow = self.dual.violation > _GAINED * self.before
            rows = _ROWS_OF_SYSTEM * (_WHERE_SLOW if slow else 1.0) * (self.rounds.work - self.work)
            systems = min(systems, int(rows / max(1, self.dual.free) ** 3))
            self.before = self.dual.violation
        if systems > 0:
            self.work = self.rounds.work
            self.rounds.move_free(self.dual, MOST_FREE_ROWS, systems, budget)

    def has_resort(self, budget: Budget) -> bool:
        """Whether Newton's method goes on where rounds on all rows do not, as long as they gain by it."""
        if not self.has_all or not 0.0 < self.dual.violation <= _GAINED * self.resort:
            return False
        self.resort, self.work = self.dual.violation, self.rounds.work
        return self.rounds.move_free(self.dual, MOST_FREE_ROWS, _MOST_SYSTEMS, budget) > 0

    @property
    def relative_gap(self) -> float:
        """The relative gap as the gradient tells it, which may have lost digits."""
        return core.relative_gap(self.dual.primal, self.dual.dual)


@dataclass
class State:
    """The dual on all rows and, while some are put aside, on the others."""

    whole: Level
    cache: core.CacheCounts
    part: Level | None = None
    rows: Indices | None = None
    """The rows of the part."""
    before: float = math.inf
    """The violation of all rows when the part was taken."""
    precise: bool = False
    """Whether the matrix is in double precision."""
    estimate: float = math.inf
    finished: bool = False
    waiting: Indices | None = None
    """Rows whose multipliers are yet to come into the gradient, before the first round."""
    gradients: core.ConjugateGradients | None = None
    """On all rows, from their first turn on."""
    next_turn: float = _FIRST_TURN
    """The changes by rounds, for each row, at which conjugate gradients have their turn."""
    between: float = _BETWEEN
    """Those until the turn after one that gains little."""
    work_aside: float = 0.0
    """The work of parts that have been brought back."""
    pace: list[tuple[float, float]] = field(default_factory=list)
    """The work at each look at the gap, and the logarithm of the gap as a multiple of the dual value."""

    @property
    def work(self) -> float:
        """All of the work so far."""
        return self.work_aside + sum(each.rounds.work for each in (self.whole, self.part) if each)

    def is_too_slow(self, aim: float, most_work: float) -> bool:
        """Whether the gap will not be as small as the aim when the work is done, by its pace.

        The gap falls slowly as a share of the primal value as long as that is far above the dual one, but
        the logarithm of their ratio falls about as fast then as later.
        """
        if not 0.0 < self.estimate < 1.0:
            return False
        work, level = self.work, math.log(self.estimate / (1.0 - self.estimate))
        self.pace.append((work, level))
        if work < _FIRST_LOOK * most_work:
            return False
        half = bisect_right(self.pace, (0.5 * work, math.inf))
        if half == 0:
            return False
        before, above = self.pace[half - 1]
        lacking = (level - math.log(aim)) * (work - before)
        left = max(most_work - work, _FIRST_LOOK * most_work)
        return lacking > _TOO_SLOW * left * (above - level)


@dataclass(frozen=True)
class WorkingSet(Solver[State]):
    """Working sets of several multipliers."""

    name: ClassVar[str] = "working_set"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = True
    takes_totals: ClassVar[bool] = True

    size: Literal[0] | Annotated[int, Range("[2, inf)")] = 0
    """Multipliers of a working set. 0: chosen by the number of rows and of columns."""
    cache_size: NotNegative = 1000.0
    """Memory for rows of the kernel matrix, in megabytes."""
    shrinking: bool = True
    """Leave out rows at a wall that no working set can move now, and look at them again later."""
    most_work: Annotated[float, Range("(0, inf]")] = math.inf
    """Steps on pairs of rows, each times the rows of its set, after which it ends: for a problem that has
    another way to be solved."""
    aim: NotNegative = 0.0
    """The relative gap that this work is for: it ends sooner where it is far too slow for that."""
    seed: Seed = 0
    """The seed of the choice of rows."""

    def accepts(self, problem: Problem) -> str | None:
        """Kernel problems with the hinge loss and an exact intercept."""
        return not_for_pairs(self.name, problem, twins=True)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Multipliers of 0, or those of the start with rows of the matrix for all that are not."""
        precise = kernel_rows(problem).count <= DOUBLE_ROWS
        cache, dual = core.CacheCounts(), kernel_dual(problem, start)
        if problem.total is None:
            gradient = known_gradient(problem, start, dual)
            level = self._level(problem, dual, precise, cache, core.ALL_CORES, gradient)
            first = _FIRST_TURN if level.matrix.expensive else _FIRST_OF_CHEAP
            return State(level, cache, precise=precise, next_turn=first)
        # Many multipliers are not 0 from the first: their rows take time, which the steps answer for.
        waiting, beta = np.flatnonzero(dual.beta), dual.beta.copy()
        dual.beta[:] = 0.0
        level = self._level(problem, dual, precise, cache, core.ALL_CORES)
        dual.beta[:] = beta
        return State(level, cache, precise=precise, waiting=waiting)

    def _level(
        self,
        problem: Problem,
        dual: core.KernelDual,
        precise: bool,
        cache: core.CacheCounts,
        budget: Budget,
        gradient: Vector | None = None,
    ) -> Level:
        """All rows, with a matrix that has computed nothing yet but the gradient, if that is not known."""
        matrix = kernel_matrix(kernel_rows(problem), self.cache_size, cache, single=not precise)
        if gradient is None:
            dual.restore_gradient(matrix, budget)
        else:
            dual.f[:] = gradient
        size = self._size(matrix)
        if problem.targets is not None and not self.size and matrix.count <= QUICK_ROWS:
            size = max(2, matrix.count)  # of few rows all are in the set, and nothing is drawn
        all_rows = problem.targets is not None and size >= matrix.count
        return Level(matrix, core.WorkingSet(matrix, size, self.seed), dual, all_rows)

    def _size(self, matrix: core.KernelMatrix) -> int:
        # Larger sets need fewer rounds, but more values among themselves in each. Where values are cheap,
        # the nearest power of two is large enough.
        cheap = not (matrix.expensive or matrix.encoding == "bits")
        power = math.log2((_OF_CHEAP if cheap else _OF_EXPENSIVE) * matrix.count + 1)
        size = min(2048, max(64, 2 ** (round(power) if cheap else math.ceil(power))))
        # Where only rows of one block have values, so many more rows have as many of them.
        return self.size or int(size * min(1.0 / math.sqrt(matrix.coupled_share), _MOST_FOR_BLOCKS))

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One round, or some where they are short; in the end a step of Newton's method before it."""
        if state.waiting is not None and not _have_gradient(state, budget):
            return state
        level = state.part or state.whole
        if self._is_turn_of_gradients(problem, state):
            self._follow_gradients(state, budget)
            return state
        short = level.matrix.count <= DOUBLE_ROWS
        by_systems = state.precise and (not short or problem.targets is not None)
        if by_systems:
            level.move_free(budget)
        rounds = 8 if short and not level.has_all else 1
        idle = level.rounds.run(level.dual, rounds, budget) < rounds and not budget.spent
        if budget.stopped:
            return state
        given_up = sum(each.rounds.work for each in (state.whole, state.part) if each) > self.most_work
        if (idle or given_up) and by_systems and level.has_resort(budget):
            idle = given_up = False
        if state.part is not None:
            if idle or given_up or level.dual.violation <= _COME_BACK * state.before:
                del level  # its rows' memory is needed
                _bring_back(state, budget)
            state.finished = given_up
            return state
        if state.gradients is not None:
            level.dual.take_best_point()
        state.estimate = level.relative_gap
        if given_up or (self._has_aim(state) and state.is_too_slow(self.aim, self.most_work)):
            state.finished = True
            return state
        if not state.precise and (
            idle or _single_is_exhausted(problem, level.dual, state.estimate, self.aim)
        ):
            dual = level.dual
            state.gradients = None
            del level.matrix, level.rounds  # their memory is needed
            state.whole = self._level(problem, dual, True, state.cache, budget)
            state.precise = True
        elif self.shrinking and not idle and not state.precise:
            self._put_aside(state)
        else:
            state.finished = idle
        state.finished |= _is_zero(problem, state.whole.dual)
        return state

    def _has_aim(self, state: State) -> bool:
        """Whether rounds alone are to bring the gap down, for a while: later systems do it in leaps."""
        return not state.precise and self.aim > 0.0 and self.most_work < math.inf

    def _is_turn_of_gradients(self, problem: Problem, state: State) -> bool:
        """Whether rounds have had their time, and most multipliers are free."""
        level, count = state.whole, state.whole.matrix.count
        if (
            state.part is not None
            or count <= MOST_FREE_ROWS
            or level.rounds.moved < state.next_turn * count
        ):
            return False
        if problem.targets is not None or problem.total is not None:
            return False  # a kink, or two sums
        support = np.count_nonzero(level.dual.beta)
        if level.dual.free >= max(_MOSTLY_FREE * count, _OF_SUPPORT * support):
            return True
        state.next_turn += state.between
        return False

    def _follow_gradients(self, state: State, budget: Budget) -> None:
        """Some steps of conjugate gradients, and when their next turn is."""
        level, before = state.whole, state.estimate
        if state.gradients is None:
            state.gradients = core.ConjugateGradients(level.matrix)
        state.gradients.run(level.dual, _GRADIENTS, budget)
        if budget.stopped:
            return
        level.rounds.run(level.dual, 0, budget)
        level.dual.take_best_point()
        state.estimate = level.relative_gap
        gained = state.estimate <= _GAINED * before
        state.next_turn = level.rounds.moved / level.matrix.count + (
            _AFTER_GAIN if gained else state.between
        )
        state.between = _BETWEEN if gained else 2.0 * state.between

    def _put_aside(self, state: State) -> None:
        whole = state.whole
        count = whole.matrix.count
        # Where most rows of the matrix are kept, a row for a change often costs little already; and to put
        # rows aside would cut those down that are kept, which are needed whole when the others come back.
        if count < SHRINK_FROM or whole.matrix.keeps_most:
            return
        rows = whole.dual.may_move()
        if len(rows) > _SHRINK_TO * count:
            return
        matrix = whole.matrix.subset(rows)
        rounds = core.WorkingSet(matrix, self._size(whole.matrix), self.seed)
        state.part = Level(matrix, rounds, whole.dual.subset(rows))
        state.rows, state.before = rows, whole.dual.violation
        # Rows are away for long, and no proof is tried meanwhile: it is worth knowing how near one is.
        whole.dual.take_best_point()
        state.estimate = whole.relative_gap

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The multipliers; those put aside are where they were."""
        dual = state.whole.dual
        if state.part is not None:
            assert state.rows is not None
            dual = dual.with_part(state.rows, state.part.dual)
        return solution_of(problem, state.cache, beta=dual.beta, dual=dual, alpha_from="the working sets")

    def report(self, state: State) -> Report:
        """The gap with the gradient as it is known; while rows are put aside, the last one.

        It is finished when no pair of multipliers violates the conditions any more, and when ``most_work``
        is done.
        """
        return Report(state.estimate, state.finished)


def _single_is_exhausted(problem: Problem, dual: core.KernelDual, estimate: float, aim: float) -> bool:
    """Whether the gap is as small as the rounding of the matrix in single precision lets it be.

    Each value is off by its own rounding, so that a score is off by ``off`` times the length of its row, as
    of random signs. Rows with a free multiplier are on the margin, and have a loss by it, at their costs.
    With a large C, or many multipliers, that is far above the gap that the solver sees in the end. Where it
    is not above the ``aim``, single precision is enough.
    """
    if estimate <= SINGLE_IS_EXHAUSTED:
        return True
    if not 0.0 < estimate < 1.0 or problem.total is not None:
        return False
    rows = kernel_rows(problem)
    # Of a row, or of its two twins: of so few, the largest one by one takes NumPy fifty times as long.
    both = problem.costs.reshape(rows.count, -1)
    costs = np.maximum(both[:, 0], both[:, -1])
    sizes, lengths, costs = np.abs(dual.beta), rows.lengths[rows.blocks.order], costs[rows.blocks.order]
    free = (sizes > 0.0) & (sizes < costs)
    off = _SINGLE * math.sqrt(core.dot(sizes * lengths, sizes * lengths))
    lost = off * core.dot(costs[free], lengths[free])
    return max(estimate, aim) * dual.primal <= _OF_RANDOM_SIGNS * lost


def _have_gradient(state: State, budget: Budget) -> bool:
    """Bring the multipliers of the start into the gradient, some rows at a time; False if time is over."""
    level = state.whole
    while state.waiting is not None and len(state.waiting):
        if budget.spent:
            return False
        some, state.waiting = state.waiting[:_ROWS_AT_A_TIME], state.waiting[_ROWS_AT_A_TIME:]
        level.matrix.add(some, level.dual.beta[some], level.dual.f, budget)
    state.waiting = None
    return True


def _is_zero(problem: Problem, dual: core.KernelDual) -> bool:
    """Whether w = 0 is best for all that can be told: a total of multipliers, and nothing that they gain.

    The best value is then 0, and no gap is a share of it.
    """
    if problem.total is None or np.any(problem.targets):
        return False
    longest = problem.total * problem.rows.largest_length
    return -dual.dual <= _NO_LENGTH * longest * longest


def _bring_back(state: State, budget: Budget) -> None:
    """All rows again, with the gradient that they have now."""
    whole, part = state.whole, state.part
    assert part is not None
    assert state.rows is not None
    moved = part.dual
    state.work_aside += part.rounds.work
    state.part = None  # first, so that its rows' memory is free for those of the whole
    del part
    whole.dual.take_over(whole.matrix, state.rows, moved, budget)
    whole.rounds.run(whole.dual, 0, budget)
    whole.dual.take_best_point()
    state.estimate = whole.relative_gap
