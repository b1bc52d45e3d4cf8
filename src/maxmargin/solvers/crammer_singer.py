# SPDX-License-Identifier: BSD-3-Clause
"""Dual ascent by blocks, one example at a time, for all classes at once (Keerthi et al. 2008).

    maximise  sum_i sum_(k != y_i) -beta_ik  -  1/2 sum_k |w_k|^2,        w_k = sum_i beta_ik x_i
    over      beta_ik <= 0 for k != y_i,   beta_iy <= C_i,   sum_k beta_ik = 0

    1  for i in a random order:
    2      G_k    = <w_k, x_i> + [k != y_i]                      minus the partial derivatives
    3      beta_i = the exact maximiser over the block: with D_k = G_k - |x_i|^2 beta_ik, and |x_i|^2 C_i
                    more for k = y_i, it is beta_ik = (theta - D_k) / |x_i|^2 where D_k > theta, and C_i
                    more for y_i; the level theta is such that sum_k max(0, D_k - theta) = |x_i|^2 C_i
    4      w_k   += (change of beta_ik) x_i

The multipliers of the problem's rows (problem/class_rows.py) are alpha_ik = -beta_ik. A visit costs
O(nonzeros of x_i) for each class, by wide instructions, since the weights of a column lie side by side.
Michelot's method finds the level, from that of the classes that were above it the last time: a look or two
at all heights D_k, and no sorting. For an example of which two classes are left it is a closed form.

Shrinking. An example whose multipliers are all with one class, which is ahead by more than a share of the
last sweep's largest violation, is left out of most sweeps: see ascent/shrinking.py. So is a class of an
example that has no multipliers and is far below the level, until all examples are looked at again.

Each sweep starts further along the way of the last one, where rows have so many values beside the columns
that this is cheap: see ascent/class_momentum.py.

The primal point that is proposed is the mean of w over the last sweeps. Each w is off by what the sweep did
not know yet of its last examples; P feels that far more than D, and a mean has less of it.

It is not in the registry: whoever reads that (names of solvers, tests, benchmarks) runs each of them on
problems of two classes, and this one takes none of these. "auto" chooses it, or it is given as an object.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.class_rows import ClassRows
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.ascent.class_momentum import LastClassMove
from maxmargin.solvers.ascent.shrinking import Visits
from maxmargin.solvers.base import Report, Solver
from maxmargin.tools.parameters import Range, Seed
from maxmargin.types import Vector

_ROUNDING = 1e-14
"""The largest violation of a sweep, in units of the margin, that counts as none; and the share of C that a
multiplier may lack for being at C."""

_SHARE_OF_HELD = 0.1
"""A class of an example is left out sooner than an example: by this share of what holds that."""

_LOOK_AHEAD = 1.3
"""The factor on every step where no momentum looks ahead."""

_READ_PER_COLUMN = 40
"""Stored values that a sweep must read for a column, for going on to be cheap beside it: it walks the
weights of all classes some six times."""

_LARGE = 0.1
"""The relative gap above which sweeps find walls rather than a way: most moves would end at once, and means
would be of what is far away."""

_NEWEST = 0.2
"""The least share of the last sweep in the mean, which then goes back some nine sweeps."""

_FAST = 0.64
"""The share of the gap left by two sweeps below which they outrun a mean, which begins anew."""

_OF_LAST, _OF_MEAN = 0.85, 0.45
"""The gap at the last w, and at the mean where sweeps are slow, in units of the gap that a sweep sees."""

_LINE = 8
"""Numbers in a line of the processor's cache."""

_LAG = 5.0
"""Sweeps by which the mean lags behind, as its gap tells. Both as text and letters have them."""


@dataclass
class State:
    """The state of the ascent."""

    rows: ClassRows
    costs: Vector
    """C_i of every example."""
    multipliers: Matrix
    """beta_ik: one line for each example."""
    w: Matrix
    """The weights of all classes side by side, one line for each column, with lanes that no class has."""
    places: NDArray[np.int32]
    """The classes of each example that are still looked at, where these are few: its own, then others."""
    sizes: NDArray[np.int32]
    """How many of these are still looked at."""
    moved: NDArray[np.int8]
    """1 for examples whose multipliers have changed since this was last 0."""
    visits: Visits
    random: int
    """The state of the generator of orders."""
    dual: float = 0.0
    relative_gap: float = np.inf
    """The gap as the last sweep saw it: each example's share at the time of its visit."""
    decay: float = 1.0
    """The share of the relative gap that the last sweep left."""
    pace: float = 1.0
    """The same of the last two sweeps together."""
    mean: Matrix | None = None
    """The mean over the last sweeps of w or, where that has more numbers, of the multipliers, which are as
    good: w is a sum over them."""
    averaged: int = 0
    """How many sweeps before the last one the mean goes back."""
    finished: bool = False
    """Whether a sweep over all examples changed nothing beyond rounding."""
    last_move: LastClassMove | None = None
    """The move of the last sweep, while going on from its end is cheap."""

    def alpha(self, multipliers: Matrix) -> Vector:
        """The multipliers of the problem's rows; those that lack a rounding for C have all of it."""
        is_other = np.arange(self.rows.classes) != self.rows.codes[:, np.newaxis]
        alpha = -multipliers[is_other].reshape(len(multipliers), -1)
        costs = self.costs[:, np.newaxis]
        np.copyto(alpha, costs, where=alpha >= costs * (1.0 - _ROUNDING))
        return np.asarray(np.maximum(alpha, 0.0).ravel())


@dataclass(frozen=True)
class CrammerSinger(Solver[State]):
    """Dual ascent by blocks with the w of every class kept up to date."""

    name: ClassVar[str] = "crammer_singer"
    shrinking: bool = True
    """Leave out examples that stay with one class, and look at them again now and then."""
    momentum: bool = True
    """Start each sweep further along the way of the last one, where that is cheap."""
    relaxation: Annotated[float, Range("(0, 2)")] | None = None
    """Factor on every step of line 3: 1 is exact, more looks ahead. None: 1 where momentum looks ahead,
    else 1.3."""
    seed: Seed = 0
    """The seed of the order."""

    def accepts(self, problem: Problem) -> str | None:
        """Rows of several classes, and no others."""
        if isinstance(problem.rows, ClassRows):
            return None
        return (
            "crammer_singer solves problems of several classes at once. Use class_problem of "
            "maxmargin.problem.class_rows, or another solver."
        )

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with multipliers of 0, with the start's, or with those that its margins suggest."""
        rows = problem.rows
        assert isinstance(rows, ClassRows)
        costs = np.ascontiguousarray(problem.costs[:: rows.classes - 1])
        multipliers = np.zeros((len(costs), rows.classes))
        w = _in_whole_lines(rows.class_columns, core.class_stride(rows.classes))
        places = np.zeros((len(costs), rows.classes), np.int32)
        places[:, 0], places[:, 1] = rows.codes, rows.codes == 0
        sizes = np.full(len(costs), rows.classes, np.int32)
        moved = np.zeros(len(costs), np.int8)
        visits = Visits.of_costs(costs)
        state = State(rows, costs, multipliers, w, places, sizes, moved, visits, self.seed)
        if start is not None:
            alpha, combined = _starting_point(problem, start)
            each = alpha.reshape(-1, rows.classes - 1)
            np.put_along_axis(multipliers, rows.others(), -each, axis=1)
            np.put_along_axis(
                multipliers, rows.codes[:, np.newaxis], each.sum(axis=1, keepdims=True), axis=1
            )
            w[:, : rows.classes] = combined.reshape(-1, rows.classes)
            state.dual = float(alpha.sum()) - 0.5 * core.dot(combined, combined)
        return state

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One sweep over the examples that are still visited."""
        rows, visits = state.rows, state.visits
        if self.momentum:
            _go_on(state)
        relaxation = self.relaxation
        if relaxation is None:
            relaxation = _LOOK_AHEAD if state.last_move is None else 1.0
        state.random = core.shuffle(visits.order, state.random)
        if visits.sweeps_since == 0:
            state.sizes[:] = rows.classes
        held = visits.above if self.shrinking else np.inf
        active, violation, ascent, gap = core.crammer_singer(
            rows.data,
            rows.codes,
            rows.squared_norms_of_examples,
            state.costs,
            state.multipliers,
            state.places,
            state.sizes,
            state.moved,
            visits.order,
            state.w,
            constant=rows.constant,
            relaxation=relaxation,
            held=held,
            held_class=_SHARE_OF_HELD * held,
            budget=budget,
        )
        state.dual += ascent
        before, now = state.relative_gap, gap / (state.dual + gap) if gap > 0.0 else 0.0
        decay = now / before if 0.0 < now < before < np.inf else 1.0
        state.pace, state.decay = state.decay * decay, decay
        state.relative_gap = now
        # Where nothing moves, a multiplier may still lack a rounding for C, which counts as a violation.
        _average(state)
        state.finished = (violation <= _ROUNDING or ascent == 0.0) and visits.are_all
        visits.after_sweep(active, violation, -violation, 0.0, now)
        if violation <= _ROUNDING:
            visits.all_again(now)
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Alpha, and the mean of w where there is one; else the certificate rebuilds w from alpha."""
        alpha = state.alpha(state.multipliers)
        if state.mean is None or state.averaged == 0 or state.finished:
            return Solution(alpha=alpha)
        if state.mean.shape == state.w.shape:
            w = state.mean[:, : state.rows.classes].ravel()
        else:
            w = state.rows.combine(state.alpha(state.mean), budget)
        return Solution(w=w, alpha=alpha, any_length=True)

    def report(self, state: State) -> Report:
        """The gap is free, as in dual coordinate ascent: each example's share of it is seen on the way."""
        share = _OF_LAST * math.pow(state.decay, 0.6)
        if state.averaged > 1:
            share = min(share, _OF_MEAN * math.pow(state.pace, -0.5 * _LAG))
        gap = share * state.relative_gap
        return Report(gap, state.finished, near=lambda: True)


def _in_whole_lines(columns: int, lanes: int) -> Matrix:
    """Zeros whose blocks of lanes begin where a line of the processor's cache does, and never cross one."""
    memory = np.zeros(columns * lanes + _LINE)
    first = -(memory.ctypes.data // memory.itemsize) % _LINE
    return memory[first : first + columns * lanes].reshape(columns, lanes)


def _go_on(state: State) -> None:
    """Go further along the way of the last sweep, where that is cheap; and the next one begins here."""
    rows = state.rows
    read = rows.examples.stored * (len(state.visits.order) / rows.examples.count)
    if read < _READ_PER_COLUMN * rows.class_columns or state.relative_gap > _LARGE:
        state.last_move = None
    elif state.last_move is None:
        state.last_move = LastClassMove(state.multipliers, state.w, state.moved)
    else:
        state.dual += state.last_move.go_on(rows, state.costs, state.multipliers, state.w)


def _average(state: State) -> None:
    """The mean of the last sweeps takes in where the last one has led, or begins there."""
    now = state.w if state.w.size < state.multipliers.size else state.multipliers
    if state.relative_gap > _LARGE:
        state.mean, state.averaged = None, 0
    elif state.mean is None:
        state.mean, state.averaged = now.copy(), 0
    elif state.pace < _FAST:
        np.copyto(state.mean, now)
        state.averaged = 0
    else:
        state.averaged += 1
        share = max(_NEWEST, 1.0 / (1 + state.averaged))
        state.mean *= 1.0 - share
        state.mean += share * now


def _starting_point(problem: Problem, start: Solution) -> tuple[Vector, Vector]:
    """The multipliers of a start, and the w that they lead to."""
    rows = problem.rows
    if start.alpha is not None:
        alpha = np.array(start.alpha, np.float64)
        problem.objective.make_feasible(alpha)
        known = start.w_of_alpha
        return alpha, rows.combine(alpha) if known is None else known
    if start.w is None:
        return np.zeros(rows.count), np.zeros(rows.columns)
    alpha = problem.multipliers(problem.margins(start.w, start.b))
    combined = rows.combine(alpha)
    factor = problem.best_multiple(alpha, combined)
    return factor * alpha, factor * combined
