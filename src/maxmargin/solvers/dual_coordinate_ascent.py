# SPDX-License-Identifier: BSD-3-Clause
"""Dual coordinate ascent (lecture 000; Hsieh et al. 2008).

    maximise  sum_i alpha_i - 1/2 sum_ij alpha_i alpha_j y_i y_j <x_i, x_j> - 1/2 sum_i D alpha_i^2
    over      0 <= alpha_i <= U            hinge: U = C, D = 0      squared hinge: U = inf, D = 1/(2C)

    1  for i in a random order:
    2      g      = y_i (<w, x_i> + b) - 1 + D alpha_i          minus the partial derivative
    3      a      = clip(alpha_i - g / (|x_i|^2 + D), 0, U)     exact maximiser on the line
    4      w     += (a - alpha_i) y_i x_i;  alpha_i = a         keeps w = sum_i alpha_i y_i x_i

A step costs O(nonzeros of x_i). A regularised intercept is one more feature of constant value s, so b
changes with w in line 4 (the augmentation trick). An exact one asks for sum_i alpha_i y_i = 0, which the
method of multipliers reaches with steps on single coordinates; it makes the regularised one faster too: see
pulled_intercept.py. A unit step of alpha_i y_i adds k to b, and k to the curvature |x_i|^2 of line 3.

Shrinking. Rows that stay at a wall of their box are left out of most sweeps: see shrinking.py.

Warm-up. While C |x|^2 is large, a multiplier that belongs at C needs many visits to get there. So the first
sweeps solve the problem roughly with a C so small that one visit crosses the box, and raise C fourfold at a
time. On data that overlap, the multipliers grow with C: then alpha and w are multiplied along, by what an
exact line search allows. On data that are nearly separable they do not, and the warm-up ends.

Momentum. A sweep takes most multipliers a share of their way only, and the next one goes on in much the
same direction. So where rows are long, each sweep starts from the best point further along the way of the
last: see momentum.py.

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
from maxmargin.proof.solution import Solution
from maxmargin.solvers.ascent.extrapolation import AnyData, Moves, Quadratic, extrapolate
from maxmargin.solvers.ascent.momentum import LastMove
from maxmargin.solvers.ascent.pulled_intercept import PulledIntercept
from maxmargin.solvers.ascent.shrinking import Visits, weighted_rows
from maxmargin.solvers.base import Solver
from maxmargin.tools.parameters import Range, Seed
from maxmargin.types import Vector

# The columns of State.coordinates: the fields of core/linear/dual_coordinate_ascent.hpp's Coordinate.
ALPHA, INVERSE_CURVATURE, COST, DIAGONAL, LABEL = range(5)

_FLOAT32_IS_EXHAUSTED = 1e-6
_ROUNDING = 1e-14
_NOTHING_TO_EXTRAPOLATE = 1e-12
_RAISE = 4.0
_STAGE_SWEEPS = 6
_STAGE_GAP = 0.02
_LOOK_AHEAD = 0.3
_SWEEPS_OF_A_MOVE = 4
_READINGS = 10.0
"""Of moves and w, about, in one extrapolation: the sweeps of a move read at least as many numbers."""
_SMALL, _SLOW, _STUCK = 1e-2, 0.85, 0.95
"""Up to a share of the gap that a sweep leaves, sweeps need no help: below and above the small gap."""
_NUMBERS_PER_ROW, _NUMBERS_PER_VISITED_ROW = 3, 10
"""While an extrapolation is made, beside the moves and w."""
_MOST_MOVES = 10
_READ_PER_ROW, _READ_PER_COLUMN = 60, 30
"""Stored values that a sweep has to read for going on from its end to be cheap beside it."""
_LOSSES_COUNT = 0.1
"""Of the sum of all multipliers: those at their upper wall, whose rows have losses."""


@dataclass
class State:
    """Where the ascent stands."""

    data: AnyData
    """The rows that are swept: the problem's, or a smaller copy without private columns."""
    coordinates: Vector
    """One line per row: see the column names above."""
    w: Vector
    """sum_i alpha_i y_i x_i over the columns of ``data``."""
    intercept: PulledIntercept
    visits: Visits
    random: int
    dual: float = 0.0
    relative_gap: float = np.inf
    """As the last sweep saw it: each row's share at the time of its visit."""
    decay: float = 1.0
    """Of that, from the sweep before."""
    left: float = 0.0
    """Of the gap itself, in units of the dual value: that of a relative gap near 1 says little."""
    finished: bool = False
    """A sweep over all rows changed nothing beyond rounding."""
    private: Vector | float = 0.0
    """What the columns left out of ``data`` add to the diagonal."""
    stage: int = 0
    """Of the warm-up: C is divided by 4^stage; 0 when it is over."""
    stage_sweeps: int = 0
    moves: Moves | None = None
    """Of the last sweeps, once the gap falls slowly."""
    last_move: LastMove | None = None
    """Of the last sweep, while going on from its end is cheap."""
    sweeps_of_move: int = 0
    """In the move that has begun, and"""
    read_in_move: float = 0.0
    """how many stored values these have read."""


@dataclass(frozen=True)
class DualCoordinateAscent(Solver[State]):
    """Dual coordinate ascent with w kept up to date; for the hinge and the squared hinge."""

    name: ClassVar[str] = "dual_coordinate_ascent"
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
    """Start each sweep further along the way of the last one, where rows are so long that this is cheap."""
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
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """From alpha = 0, from the start's alpha, or from the alpha that its margins suggest."""
        rows = problem.rows
        data: AnyData = rows.data
        private: Vector | float = 0.0
        if rows.without_private_columns is not None:
            data, private = rows.without_private_columns
        alpha = np.zeros(rows.count)
        if start is not None:
            alpha = _starting_alpha(problem, start)
        state = State(
            data=data,
            coordinates=np.zeros((rows.count, 5)),
            w=np.zeros(data.columns),
            intercept=PulledIntercept.of(problem, self.bias_reach, 0.0 if start is None else start.b),
            visits=Visits.of(problem),
            random=self.seed,
            private=private,
            stage=warm_up_stages(problem) if self.warm_up and start is None else 0,
        )
        state.coordinates[:, ALPHA] = alpha
        state.coordinates[:, LABEL] = problem.y
        _set_costs(problem, state)
        if start is not None:
            _restore_w(problem, state, start.w_of_alpha)
            if start.margins is not None and self.shrinking:
                state.visits.leave_out_held(alpha, start.margins)
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
        if state.relative_gap < _FLOAT32_IS_EXHAUSTED and _is_rounded(problem, state):
            state.data, state.private = problem.rows.data, 0.0
            _set_costs(problem, state)
            _restore_w(problem, state)
            state.moves = state.last_move = None
        settled = state.visits.sweeps_since > 0 or not self.shrinking or self.order == "uniform"
        worth_it = state.stage == 0 and state.relative_gap > _NOTHING_TO_EXTRAPOLATE
        if self.extrapolation and settled and worth_it:
            _extrapolate(problem, state, budget)
        if self.momentum and self.order == "epochs":
            _go_on(problem, state)
        if self.order == "uniform":
            rows = weighted_rows(problem)
            draws = np.empty(len(rows), np.int64)
            state.random = core.draw(draws, len(rows), state.random)
            order, above, below = rows[draws], np.inf, -np.inf
        else:
            visits = state.visits
            state.random = core.shuffle(visits.order, state.random)
            order, above, below = visits.order, visits.above, visits.below
        active, state.intercept.b, largest, smallest, ascent, gap = core.dual_coordinate_ascent(
            state.data,
            problem.loss.name == "squared_hinge",
            state.coordinates,
            order,
            state.w,
            state.intercept.b,
            state.intercept.curvature,
            self.relaxation_of(problem, state.last_move is not None),
            above,
            below,
            budget,
        )
        gap += state.intercept.gap(problem.loss.name == "hinge")
        drift = state.intercept.move(at_rest=largest == smallest == 0.0)
        state.dual += ascent
        if state.stage == 0 and state.intercept.reach_further():
            _set_costs(problem, state)
        relative_gap = gap / (state.dual + gap) if gap > 0 else 0.0
        state.decay, state.left = 1.0, float(state.relative_gap < 1.0)
        if 0.0 < relative_gap < state.relative_gap < np.inf:
            state.decay = relative_gap / state.relative_gap
            if state.relative_gap < 1.0:
                state.left = state.decay * (1.0 - state.relative_gap) / (1.0 - relative_gap)
        state.relative_gap = relative_gap
        if state.stage > 0:
            state.stage_sweeps += 1
            if relative_gap < _STAGE_GAP or state.stage_sweeps == _STAGE_SWEEPS:
                _raise_costs(problem, state)
        elif self.order == "epochs":
            unrest = max(largest, -smallest, abs(drift))
            at_rest = unrest <= _ROUNDING * (1.0 + abs(state.intercept.b))
            state.finished = at_rest and state.visits.are_all
            state.visits.after_sweep(active, largest, smallest, drift, relative_gap)
            if not self.shrinking:
                state.visits.all_again(relative_gap)
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Alpha alone: the certificate rebuilds w from it."""
        return Solution(b=state.intercept.b, alpha=state.coordinates[:, ALPHA].copy())

    def estimate(self, state: State) -> float:
        """Free: the sweep adds up each row's share of the gap as it goes.

        By the end of the sweep the gap is smaller than it was on the way, the more so the faster it
        falls; the formula fits the gaps certified after sweeps on data of many kinds.
        """
        if state.stage > 0:
            return np.inf
        return 0.85 * state.relative_gap * math.pow(state.decay, 0.6)

    def estimate_is_near(self, state: State) -> bool:
        """Where losses are a part of the optimum: else a better length of w leaves far less of the gap."""
        alpha, costs = state.coordinates[:, ALPHA], state.coordinates[:, COST]
        return float(alpha.sum(where=alpha >= costs)) > _LOSSES_COUNT * float(alpha.sum())

    def finished(self, state: State) -> bool:
        """When there is nothing left to gain in float64."""
        return state.finished


def visits_to_cross(problem: Problem) -> float:
    """The mean of ``C_i |x_i|^2``: about so many visits take a multiplier from one wall to the other."""
    return core.dot(problem.costs, problem.rows.squared_norms) / max(problem.rows.count, 1)


def warm_up_stages(problem: Problem) -> int:
    """How many times C has to be divided by 4 until one visit crosses the box."""
    visits = visits_to_cross(problem)
    if not _RAISE <= visits < math.inf:
        return 0
    return 1 + math.floor(math.log(visits, _RAISE))


def _set_costs(problem: Problem, state: State) -> None:
    """Fill in what depends on C, at the stage of the warm-up."""
    costs = problem.costs * _RAISE**-state.stage
    own = np.zeros(len(costs))
    if problem.loss.name == "squared_hinge":
        np.divide(0.5, costs, out=own, where=costs > 0)
    curvature = problem.rows.squared_norms + state.intercept.curvature + own
    state.coordinates[:, COST] = costs
    # An empty row without intercept has no curvature: its step is as good as infinite, and clipped to C.
    state.coordinates[:, INVERSE_CURVATURE] = 1.0 / np.maximum(curvature, 1e-300)
    state.coordinates[:, DIAGONAL] = own + state.private


def _raise_costs(problem: Problem, state: State) -> None:
    """The next stage of the warm-up, or its end, from where this one has led."""
    state.stage -= 1
    _set_costs(problem, state)
    alpha = state.coordinates[:, ALPHA]
    linear = float(alpha.sum())
    # D(t alpha) = t linear - t^2 quadratic with the next C, largest at t = growth.
    quadratic = 0.5 * (
        core.dot(state.w, state.w) + float(np.sum(state.coordinates[:, DIAGONAL] * alpha**2))
    )
    if problem.intercept is Intercept.REGULARISED:
        quadratic += 0.5 * (problem.intercept_scaling * float(np.sum(alpha * problem.y))) ** 2
    growth = min(_RAISE, 0.5 * linear / quadratic) if quadratic > 0 else 1.0
    if growth < 2.0 and state.stage > 0:
        state.stage = 0
        _set_costs(problem, state)
    growth = max(growth, 1.0)
    alpha *= growth
    state.w *= growth
    state.intercept.times(growth)
    state.dual = growth * linear - growth**2 * quadratic
    state.relative_gap, state.stage_sweeps = np.inf, 0
    state.last_move = None


def _go_on(problem: Problem, state: State) -> None:
    """Further along the way of the last sweep, where that is cheap; and the next one begins here."""
    visited, row_length = len(state.visits.order), problem.rows.stored / problem.rows.count
    cheap = (row_length - _READ_PER_ROW) * visited >= _READ_PER_COLUMN * len(state.w)
    if not cheap:
        state.last_move = None
    elif state.last_move is None:
        state.last_move = LastMove(state.coordinates[:, ALPHA], state.w, state.visits.order)
    else:
        squared = problem.loss.name == "squared_hinge"
        state.intercept.b, gain = state.last_move.go_on(
            state.data,
            squared,
            state.coordinates,
            state.visits.order,
            state.w,
            state.intercept.b,
            state.intercept.curvature,
        )
        state.dual += gain


def _extrapolate(problem: Problem, state: State, budget: Budget) -> None:
    """Begin a move, or end one and go to the best combination of the last ones."""
    state.sweeps_of_move += 1
    state.read_in_move += problem.rows.stored * len(state.visits.order) / problem.rows.count
    if state.moves is None:
        # A sweep over all rows sees more of the gap than the one before did.
        slow = _SLOW if state.relative_gap < _SMALL else _STUCK
        due = state.visits.sweeps_since != 1 and state.left > slow
    else:
        needed = _READINGS * (state.moves.numbers + len(state.w))
        due = state.sweeps_of_move >= _SWEEPS_OF_A_MOVE and state.read_in_move >= needed
    if not due:
        return
    state.sweeps_of_move, state.read_in_move = 0, 0.0
    at = Quadratic(
        state.coordinates[:, ALPHA].copy(),
        state.w,
        state.intercept.b,
        problem.y,
        problem.upper,
        state.coordinates[:, DIAGONAL],
        state.intercept.curvature,
        state.data,
    )
    if state.moves is None or not state.moves.end_at(at, budget):
        state.moves = None  # before there are new ones: there may be room for these only
        most = most_moves(problem, state)
        if most > 0:
            state.moves = Moves(most, at, np.sort(state.visits.order), budget)
        return
    found = extrapolate(state.moves, at, budget)
    if found is not None:
        change, of_w, gain = found
        rows = state.moves.rows
        state.coordinates[rows, ALPHA] = np.clip(at.alpha[rows] + change, 0.0, problem.upper[rows])
        state.w += of_w
        state.intercept.b += state.intercept.curvature * core.dot(change, problem.y[rows])
        state.dual += gain
        state.last_move = None


def most_moves(problem: Problem, state: State) -> int:
    """So many that a fit still needs no more memory than one copy of the rows in float32 would take.

    A smaller copy may be held already, and to extrapolate takes a change of w and a few numbers per row.
    """
    room = 8 * problem.rows.stored  # bytes: a value and its index
    if state.data is not problem.rows.data:
        room -= (8 if state.data.columns > np.iinfo(np.uint16).max else 6) * state.data.stored
    visited = max(len(state.visits.order), 1)
    room -= 8 * (len(state.w) + _NUMBERS_PER_ROW * problem.rows.count + _NUMBERS_PER_VISITED_ROW * visited)
    return max(0, min(_MOST_MOVES, room // (2 * 8 * visited)))


def _restore_w(problem: Problem, state: State, known: Vector | None = None) -> None:
    alpha = state.coordinates[:, ALPHA]
    coefficients = alpha * problem.y
    if known is not None and state.data is problem.rows.data:
        state.w = known.copy()
    else:
        state.w = np.empty(state.data.columns)
        core.combine(state.data, coefficients, state.w, core.ALL_CORES)
    state.intercept.answer_to(float(coefficients.sum()))
    # The columns that were left out count through their diagonal.
    squares = core.dot(state.w, state.w) + float(np.sum(state.private * alpha**2))
    if problem.intercept is Intercept.REGULARISED:
        squares += (problem.intercept_scaling * float(coefficients.sum())) ** 2
    state.dual = float(problem.loss.dual_gain(alpha, problem.costs).sum()) - 0.5 * squares


def _is_rounded(problem: Problem, state: State) -> bool:
    return state.data is not problem.rows.data and problem.rows.dtype != np.float32


def _starting_alpha(problem: Problem, start: Solution) -> Vector:
    if start.alpha is not None:
        return np.clip(start.alpha, 0.0, problem.upper)
    if start.w is None:
        return np.zeros(problem.rows.count)
    alpha = problem.loss.multiplier(problem.margins(start.w, start.b), problem.costs)
    return alpha * problem.best_multiple(alpha, problem.rows.combine(alpha * problem.y))
