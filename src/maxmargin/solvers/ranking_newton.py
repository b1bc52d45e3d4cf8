# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method on all pairs of rows of a ranking, of which none is written out.

    minimise over w   F(w) = 1/2 |w|^2 + C sum over pairs of weight_i weight_j loss(s_i - s_j),    s = X w

    1  repeat
    2      sort the scores s;   alpha_ij = the multiplier that the margin s_i - s_j suggests
    3      c_i = sum_j alpha_ij - sum_j alpha_ji;      g = w - X'c
    4      hinge: if |g|^2 / 2 is a small part of the gap:   width = width / 4, and line 2 again
    5      solve (I + X' L X) p = -g,     L = sum over the pairs on the ramp of h_ij (e_i - e_j)(e_i - e_j)'
    6      t = the zero of the slope of F along p;      w += t p;   s += t X p

h_ij is the slope of the ramp, times C and both weights. The squared hinge has the multipliers
``2 C max(0, 1 - m)``, times weights. The slope of the hinge jumps at a margin of 1; it is replaced by a
ramp over a ``width`` around 1, which shrinks. The part of the gap that the ramp is to blame for falls with
the square of the width where there are many pairs, and their multipliers are feasible for the hinge itself,
so that a few widths are enough for a proof.

Lines 2 and 3 are sums over sorted scores, in O(n log n) (core/twofold/pairs.hpp). The matrix of line 5 is
written out where there are few columns: L times the columns of X is as many such sums. Else the system is
solved by conjugate gradients, whose steps are a product with X, with L and with X'. The slope in line 6 is
``<p, w> + t |p|^2 - <c(t), X p>``, another sort; it rises with t, so that its zero is soon bracketed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.ranking import Ramp, RankingProblem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, end_if_stopped
from maxmargin.solvers.sizes import MATRIX_COLUMNS_OF_PAIRS, MATRIX_VALUES_OF_PAIRS
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Positive, Range, Seed
from maxmargin.types import Vector

_COLUMNS_AT_ONCE = 32
"""Columns of X that are multiplied by L in one call: their sums fill 256 bytes for each row."""
_GOOD_SLOPE = 0.1
"""The share of the slope at the start of a line that is as good as zero."""
_MOST_LOOKS = 12
"""Points on a line that are looked at, at most."""
_LONGEST = 1e6
"""The longest step along a line, in units of Newton's."""
_SMALL_PART = 0.2
"""How small |g|^2 / 2 must be beside the gap for the ramp to shrink."""
_FORCING = 0.1
"""The share of the residual that conjugate gradients may leave, at most; it falls with the gradient."""
_MOST_PRODUCTS = 200
"""Steps of conjugate gradients for one direction, at most."""
_NARROWEST = 1e-13
"""The smallest width, in units of the largest score and 1: beyond, margins show nothing but rounding."""
_PATIENCE = 20
"""Steps without a gap that is smaller by a tenth, after which rounding leaves nothing to gain."""
_NOTHING = 1e-15
"""A relative gap, or a share of |w|, that is all rounding."""


@dataclass
class State:
    """The point between two steps, and what its margins say."""

    w: Vector
    scores: Vector
    width: float
    pulls: Vector
    """C c_i."""
    gradient: Vector
    """g."""
    primal: float = math.nan
    dual: float = math.nan
    best: Solution | None = None
    """The point of the smallest gap so far, with its width."""
    best_gap: float = math.inf
    in_vain: int = 0
    """Steps since the gap was last smaller by a tenth."""
    finished: bool = False
    dense: Matrix | None = None
    """X as a matrix, where line 5 writes its system out."""

    @property
    def gap(self) -> float:
        """``primal - dual``, without a bound on rounding."""
        return self.primal - self.dual


@dataclass(frozen=True)
class RankingNewton(Solver[State]):
    """Newton's method on the pairs of a ranking; for the squared hinge and the hinge."""

    name: ClassVar[str] = "ranking_newton"
    width: Positive = 4.0
    """The first width of the ramp of the hinge, in units of the margin: at w = 0 all pairs are on it."""
    shrink_by: Annotated[float, Range("(1, inf)")] = 4.0
    """The factor by which the width falls in line 4."""
    seed: Seed = 0
    """Without effect: nothing is drawn."""

    def accepts(self, problem: Problem) -> str | None:
        """Rankings."""
        if isinstance(problem, RankingProblem):
            return None
        return "ranking_newton solves rankings. Use maxmargin.ranking_problem, or another solver."

    def init(self, problem: Problem, start: Solution | None) -> State:
        """The state at zero, or at the w and the width of a start."""
        problem = _ranking(problem)
        rows, w, width = problem.rows, np.zeros(problem.rows.columns), self.width
        if start is not None and start.w is not None:
            w = np.array(start.w, np.float64)
            width = start.width or width
        nothing = np.zeros(rows.count)
        state = State(w, rows.scores(w), width, nothing, w)
        if rows.columns <= MATRIX_COLUMNS_OF_PAIRS and rows.columns * rows.count <= MATRIX_VALUES_OF_PAIRS:
            state.dense = rows.dense(np.arange(rows.count))
        _look_around(problem, state, core.ALL_CORES)
        return state

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Lines 2 to 6."""
        problem, before = _ranking(problem), state.best_gap
        while self._may_shrink(problem, state):  # line 4
            state.width /= self.shrink_by
            _look_around(problem, state, budget)
        end_if_stopped(budget)
        direction = self._direction(problem, state, budget)  # line 5
        end_if_stopped(budget)
        slope = core.dot(state.gradient, direction)
        if not slope < -_NOTHING * max(abs(state.primal), 1e-300):
            state.finished = not self._can_shrink(problem, state)
            state.width /= 1.0 if state.finished else self.shrink_by
            _look_around(problem, state, budget)
            return state
        changes = problem.rows.scores(direction, budget)
        t = _zero_of_slope(problem, state, direction, changes)  # line 6
        state.w = state.w + t * direction
        state.scores = problem.rows.scores(state.w, budget)
        _look_around(problem, state, budget)
        state.in_vain = 0 if state.best_gap < 0.9 * before else state.in_vain + 1
        state.finished = state.in_vain >= _PATIENCE
        return state

    def _may_shrink(self, problem: RankingProblem, state: State) -> bool:
        """Whether the width is to blame for most of the gap."""
        rest = 0.5 * core.dot(state.gradient, state.gradient)
        return self._can_shrink(problem, state) and rest <= _SMALL_PART * state.gap

    def _can_shrink(self, problem: RankingProblem, state: State) -> bool:
        if problem.loss.name == "squared_hinge":
            return False
        largest = max(1.0, float(np.abs(state.scores).max(initial=0.0)))
        return state.width > _NARROWEST * largest and state.gap > _NOTHING * state.primal

    def _direction(self, problem: RankingProblem, state: State, budget: Budget) -> Vector:
        """The solution of line 5."""
        pairs = problem.pairs
        pairs.hold(*Ramp.of(problem.loss.name, state.width))
        if state.dense is None:
            return _by_conjugate_gradients(problem, state, budget)
        X, system = state.dense, np.eye(problem.rows.columns)
        for first in range(0, X.shape[1], _COLUMNS_AT_ONCE):
            some = np.ascontiguousarray(X[:, first : first + _COLUMNS_AT_ONCE])
            products = np.empty_like(some)
            pairs.product(some, products)
            with one_blas_thread():
                system[:, first : first + _COLUMNS_AT_ONCE] += problem.C * (X.T @ products)
            end_if_stopped(budget)
        with one_blas_thread():
            try:
                factor = cho_factor(0.5 * (system + system.T), check_finite=False)
                return np.asarray(-cho_solve(factor, state.gradient, check_finite=False))
            except np.linalg.LinAlgError:  # rounding has made it indefinite
                return _by_conjugate_gradients(problem, state, budget)

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The point of the smallest gap so far."""
        return state.best or Solution(w=state.w.copy(), width=state.width)

    def report(self, state: State) -> Report:
        """The gap of the best point, without a bound on rounding."""
        relative = state.best_gap / state.primal if state.primal > 0.0 else 0.0
        return Report(max(relative, 0.0), state.finished)


def _ranking(problem: Problem) -> RankingProblem:
    assert isinstance(problem, RankingProblem)
    return problem


def _look_around(problem: RankingProblem, state: State, budget: Budget) -> None:
    """Lines 2 and 3: what the scores suggest, the gradient, and both values."""
    C, squared = problem.C, problem.loss.name == "squared_hinge"
    problem.pairs.sort(state.scores)
    found = problem.sorted_multipliers(Ramp.of(problem.loss.name, state.width))
    loss = C * problem.pairs.sum(1.0, problem.power)[0]
    state.pulls = C * found.signed
    combined = problem.rows.combine(state.pulls, budget)
    state.gradient = state.w - combined
    held = 0.5 * core.dot(combined, combined) + (loss if squared else 0.0)
    state.primal = 0.5 * core.dot(state.w, state.w) + loss
    total = C * found.total
    t = 0.5 * total / held if held > 0.0 else 1.0
    t = t if squared else min(t, 1.0)
    state.dual = t * total - t * t * held
    if state.gap < state.best_gap or state.best is None:
        state.best, state.best_gap = Solution(w=state.w.copy(), width=state.width), state.gap


def _zero_of_slope(problem: RankingProblem, state: State, direction: Vector, changes: Vector) -> float:
    """The t in line 6, by false position between two points of which one is too near and one too far."""
    straight, bent = core.dot(direction, state.w), core.dot(direction, direction)
    ramp = Ramp.of(problem.loss.name, state.width)

    def slope_at(t: float) -> float:
        problem.pairs.sort(state.scores + t * changes)
        signed = problem.sorted_multipliers(ramp).signed
        return straight + t * bent - problem.C * core.dot(signed, changes)

    first = straight - core.dot(state.pulls, changes)
    if not first < 0.0:  # it falls at first, but for rounding
        return 0.0
    near, near_slope = 0.0, first
    far, far_slope = math.inf, math.inf
    t = 1.0
    for _ in range(_MOST_LOOKS):
        slope = slope_at(t)
        if abs(slope) <= _GOOD_SLOPE * abs(first):
            return t
        if slope < 0.0:
            if far_slope < math.inf:
                far_slope *= 0.5 if near > 0.0 else 1.0  # so that neither end stays for ever
            near, near_slope = t, slope
        else:
            far, far_slope = t, slope
        if far == math.inf:
            t = min(4.0 * t, _LONGEST)
            continue
        share = near_slope / (near_slope - far_slope)
        t = near + min(max(share, 0.1), 0.9) * (far - near)
    return near or t


def _by_conjugate_gradients(problem: RankingProblem, state: State, budget: Budget) -> Vector:
    """The solution of line 5 up to a share of the residual that falls with the gradient."""
    rows, pairs, C = problem.rows, problem.pairs, problem.C
    g = state.gradient
    size = math.sqrt(core.dot(g, g))
    if size == 0.0:
        return np.zeros_like(g)
    enough = size * min(_FORCING, math.sqrt(size / max(math.sqrt(core.dot(state.w, state.w)), size)))
    p, residual = np.zeros_like(g), -g
    along, squared = residual.copy(), size * size
    for _ in range(_MOST_PRODUCTS):
        if math.sqrt(squared) <= enough or budget.spent:
            break
        changes = rows.scores(along, budget)[:, np.newaxis]
        products = np.empty_like(changes)
        pairs.product(changes, products)
        image = along + C * rows.combine(products[:, 0], budget)
        factor = squared / core.dot(along, image)
        p = p + factor * along
        residual = residual - factor * image
        before, squared = squared, core.dot(residual, residual)
        along = residual + (squared / before) * along
    return p if p.any() else -g
