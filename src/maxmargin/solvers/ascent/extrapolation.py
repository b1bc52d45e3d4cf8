# SPDX-License-Identifier: BSD-3-Clause
"""The best combination of the last moves of dual coordinate ascent.

    maximise over t    L(alpha + sum_j t_j move_j),    L: the dual value that the sweeps climb

Sweeps are quick in all directions but those few in which L is nearly flat, and after a while their moves
consist of little else. L is quadratic. With f for minus its slope, K_il = y_i y_l <x_i, x_l> + D_i [i = l],
M for the moves, one per column, S = K M for what they made of f, and q = y'M for their part in b,

    1  R: the rows of M that rest on a wall of their box, and c_R = 0 their way from there
    2  solve G t = g on the other rows:    p = q - y_R'M_R,    T_R = S_R - K_RR M_R + k y_R p
                                           G = M'S - M_R'S_R - S_R'M_R + M_R'K_RR M_R + k p'p
                                           g = -(M'f - M_R'f_R) - T_R'c_R
    3  a row that would leave the box goes to its wall, by c_i, and joins R: again from 2, twice at most
    4  go from alpha to the best point on the way to where this has led

A move takes one pass over the rows that are visited, for f and so for S, and line 4 another. There is no
copy of w: moves are as long as there are rows visited, however many columns the data have. A row that comes
loose later joins the moves, with zeros in M.
L never falls: the box is convex, so that all of the way lies in it, and 4 is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.solvers.ascent.state import ALPHA, DIAGONAL, AnyData, State
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector

_NOTHING_TO_EXTRAPOLATE = 1e-12
"""The relative gap below which moves are rounding."""
_SWEEPS_OF_A_MOVE = 4
"""Sweeps in one move, at least."""
_READINGS = 10.0
"""How often about an extrapolation reads all moves and w: the sweeps of a move read as many numbers."""
_SMALL, _SLOW, _STUCK = 1e-2, 0.85, 0.95
"""A small relative gap, and the shares of the gap that a sweep may leave below and above it before sweeps
need help."""
_NUMBERS_PER_ROW, _NUMBERS_PER_VISITED_ROW = 3, 10
"""Numbers that are held while an extrapolation is made, beside the moves and w."""
_NUMBERS_OF_MOMENTUM = 3
"""Numbers for each row that momentum holds: a multiplier, and its place in two orders."""
_MOST_MOVES = 10
"""Moves that are kept."""
_MOST_ROUNDS = 3
"""Rounds of lines 2 and 3."""
_FEW = 20
"""Rows that R may have in any case. More are few if their square is at most the number of rows visited:
K_RR then costs a pass."""
_LEAST_LEFT = 1e-4
"""The share of the length of a move that must be left without R: below, it is mostly rounding."""
_SINGULAR = 1e-13
"""The least singular value of G, relative to its largest: moves can be nearly multiples of each other."""


@dataclass
class Quadratic:
    """L around a point."""

    alpha: Vector
    w: Vector
    bias: float
    y: Vector
    upper: Vector
    """The upper end of each multiplier's box."""
    diagonal: Vector
    """D."""
    bias_curvature: float
    """k."""
    data: AnyData
    targets: Vector
    """p."""

    def line(self, rows: Indices, change: Vector, of_w: Vector) -> tuple[float, float]:
        """Slope and curvature of L along a change of alpha on some rows, which makes this one of w."""
        own = self.diagonal[rows] * change
        q = core.dot(change, self.y[rows])
        slope = (
            core.dot(change, self.targets[rows]) - core.dot(own, self.alpha[rows]) - core.dot(of_w, self.w)
        )
        curvature = core.dot(of_w, of_w) + core.dot(own, change) + self.bias_curvature * q**2
        return slope - self.bias * q, curvature

    def products(self, rows: Indices, budget: Budget) -> Vector:
        """K of some rows."""
        K = np.empty((len(rows), len(rows)))
        core.inner_products(self.data, rows, rows, K, budget)
        K *= self.y[rows]
        K *= self.y[rows, np.newaxis]
        K[np.diag_indices(len(rows))] += self.diagonal[rows]
        return K


class Moves:
    """The last moves of alpha on the rows that are visited, with what each made of f."""

    def __init__(self, most: int, at: Quadratic, rows: Indices, budget: Budget) -> None:
        self.rows = rows
        self._of_alpha = np.empty((most, len(rows) + _FEW))  # with room for rows that join
        self._of_f = np.empty((most, len(rows) + _FEW))
        self._products = np.empty((most, most))
        self._seen = 0
        self._alpha, self._scores = at.alpha, self._scores_at(rows, at.w, at, budget)

    @property
    def numbers(self) -> int:
        """How many there are in all moves, once there are as many as are kept."""
        return self._of_alpha.size + self._of_f.size

    @property
    def of_alpha(self) -> Vector:
        """M', one move per line."""
        return self._of_alpha[: self._seen, : len(self.rows)]

    @property
    def of_f(self) -> Vector:
        """S', without the intercept's part."""
        return self._of_f[: self._seen, : len(self.rows)]

    @property
    def products(self) -> Vector:
        """M'S, without the intercept's part."""
        kept = len(self.of_alpha)
        return self._products[:kept, :kept]

    def _scores_at(self, rows: Indices, w: Vector, at: Quadratic, budget: Budget) -> Vector:
        scores = np.empty(len(rows))
        core.scores_of(at.data, rows, w, scores, budget)
        return scores

    def end_at(self, at: Quadratic, budget: Budget) -> bool:
        """A move ends here, takes the place of the oldest, and the next begins.

        The way that was gone after the last one is a part of it. False where the moves are of no more use:
        too many other rows have moved, or too many of these have come to rest.
        """
        rows, change = self.rows, at.alpha - self._alpha
        place, count = self._seen % len(self._of_alpha), len(rows)
        move = np.take(change, rows, out=self._of_alpha[place, :count])
        change[rows] = 0.0
        others = np.flatnonzero(change)
        # To join takes a pass, so that it pays for as many rows as there are moves that would be lost.
        if len(others) > min(len(self.of_alpha), self._of_alpha.shape[1] - count):
            return False
        self._seen += 1
        if not self._are_few(self._resting(at)):
            return False
        scores = self._scores_at(rows, at.w, at, budget)
        of_scores = scores - self._scores
        if len(others) > 0:
            of_others = np.zeros_like(at.w)
            core.add_rows(at.data, others, change[others] * at.y[others], of_others)
            of_scores -= self._scores_at(rows, of_others, at, budget)
        of_f = np.multiply(at.y[rows], of_scores, out=self._of_f[place, :count])
        of_f += at.diagonal[rows] * move
        kept = len(self.of_alpha)
        with one_blas_thread():
            self._products[place, :kept] = self._products[:kept, place] = self.of_alpha @ of_f
        self._alpha, self._scores = at.alpha, scores
        for row in others:
            self._join(int(row), at, budget)
        return True

    def _join(self, row: int, at: Quadratic, budget: Budget) -> None:
        """A row that the moves so far leave where it is becomes one of theirs."""
        new, rows, count = np.array([row]), self.rows, len(self.rows)
        products = np.empty((1, count))
        core.inner_products(at.data, new, rows, products, budget)
        self._of_f[: len(self.of_f), count] = at.y[row] * (self.of_alpha @ (products[0] * at.y[rows]))
        self._of_alpha[:, count] = 0.0
        self._scores = np.append(self._scores, self._scores_at(new, at.w, at, budget))
        self.rows = np.append(rows, row)

    def _resting(self, at: Quadratic) -> Indices:
        """R, as places among the rows."""
        alpha = at.alpha[self.rows]
        return np.flatnonzero(((alpha <= 0.0) | (alpha >= at.upper[self.rows])) & self.of_alpha.any(axis=0))

    def _are_few(self, resting: Indices) -> bool:
        return len(resting) <= max(_FEW, math.isqrt(len(self.rows)))

    def best(self, at: Quadratic, budget: Budget) -> Vector | None:
        """Lines 1 to 3: the change of alpha on the rows that is the best; None where they lead nowhere."""
        M, S, rows = self.of_alpha, self.of_f, self.rows
        alpha, y, upper = at.alpha[rows], at.y[rows], at.upper[rows]
        f = y * (self._scores + at.bias) + at.diagonal[rows] * alpha - at.targets[rows]
        q, slopes = M @ y, M @ f
        target = alpha
        resting = self._resting(at)
        for _ in range(_MOST_ROUNDS):
            K, M_R, S_R, y_R = at.products(rows[resting], budget), M[:, resting], S[:, resting], y[resting]
            p = q - M_R @ y_R
            T_R = S_R - M_R @ K + at.bias_curvature * np.multiply.outer(p, y_R)
            G = self.products - M_R @ S_R.T - S_R @ M_R.T + M_R @ K @ M_R.T
            G += at.bias_curvature * np.multiply.outer(p, p)
            t = self._solve(G, M_R @ f[resting] - slopes - T_R @ (target - alpha)[resting])
            if t is None:
                return None
            walls, target = target[resting], alpha + t @ M
            target[resting] = walls
            inside = np.clip(target, 0.0, upper)
            outside, target = np.flatnonzero(inside != target), inside
            resting = np.concatenate([resting, outside])
            if not (len(outside) and self._are_few(resting)):
                break
        return target - alpha

    def _solve(self, G: Vector, g: Vector) -> Vector | None:
        """The t of line 2."""
        squares = np.diag(G)
        large = squares > _LEAST_LEFT**2 * np.diag(self.products)
        scale = np.zeros(len(g))
        scale[large] = 1.0 / np.sqrt(squares[large])
        G, g = scale[:, np.newaxis] * G * scale, scale * g
        if not (np.isfinite(G).all() and np.isfinite(g).all()):
            return None
        return np.asarray(scale * np.linalg.lstsq(G, g, rcond=_SINGULAR)[0])


def extrapolate(moves: Moves, at: Quadratic, budget: Budget) -> tuple[Vector, Vector, float] | None:
    """The changes of alpha on the rows of the moves, and of w, and by how much L grows.

    None where the moves lead nowhere.
    """
    rows = moves.rows
    with one_blas_thread(), np.errstate(all="ignore"):  # numbers out of range lead nowhere
        change = moves.best(at, budget)
        if change is None:
            return None
        of_w = np.zeros_like(at.w)
        core.add_rows(at.data, rows, change * at.y[rows], of_w)
        slope, curvature = at.line(rows, change, of_w)
    if not (slope > 0.0 and curvature > 0.0):
        return None
    step = min(1.0, slope / curvature)  # 4
    change *= step
    of_w *= step
    return change, of_w, step * (slope - 0.5 * step * curvature)


def go_to_best_combination(problem: Problem, state: State, budget: Budget) -> None:
    """Begin a move, or end one and go to the best combination of the last ones, where that is due."""
    if state.stage > 0 or state.relative_gap <= _NOTHING_TO_EXTRAPOLATE or not _is_due(problem, state):
        return
    state.sweeps_of_move, state.read_in_move = 0, 0.0
    at = Quadratic(
        state.alpha.copy(),
        state.w,
        state.intercept.b,
        problem.y,
        problem.upper,
        state.coordinates[:, DIAGONAL],
        state.intercept.curvature,
        state.data,
        state.targets,
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


def _is_due(problem: Problem, state: State) -> bool:
    """Whether the gap falls slowly, or the move that has begun is long enough; counts one more sweep."""
    state.sweeps_of_move += 1
    state.read_in_move += problem.rows.row_length * len(state.visits.order)
    if state.moves is None:
        # A sweep over all rows sees more of the gap than the one before did.
        slow = _SLOW if state.relative_gap < _SMALL else _STUCK
        return state.visits.sweeps_since != 1 and state.left > slow
    needed = _READINGS * (state.moves.numbers + len(state.w))
    return state.sweeps_of_move >= _SWEEPS_OF_A_MOVE and state.read_in_move >= needed


def most_moves(problem: Problem, state: State) -> int:
    """The moves with which a fit still needs no more memory than one copy of the rows in float32.

    A smaller copy may be held already, and to extrapolate takes a change of w and a few numbers per row.
    """
    room = 8 * problem.rows.stored - state.copied  # bytes: a value and its index
    visited = max(len(state.visits.order), 1)
    if state.last_move is not None:
        room -= 8 * (len(state.w) + _NUMBERS_OF_MOMENTUM * problem.rows.count)
    room -= 8 * (len(state.w) + _NUMBERS_PER_ROW * problem.rows.count + _NUMBERS_PER_VISITED_ROW * visited)
    return max(0, min(_MOST_MOVES, room // (2 * 8 * visited)))
