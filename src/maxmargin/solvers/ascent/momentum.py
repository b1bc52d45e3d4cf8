# SPDX-License-Identifier: BSD-3-Clause
"""How dual coordinate ascent goes on from the end of a sweep along the way that it went.

    maximise over t    L(alpha + t move),    L: the dual value that the sweeps climb

Where a row's own part D of the curvature is small beside |x_i|^2, a sweep takes every multiplier the same
small share of its way, and the next sweep goes on in much the same direction. The move is that from the end
of the last sweep but one to the end of the last: it has in it what was gone on by between the two, so that
directions that keep their sign add up. It knows its change v of w, so that this takes O(n + d) and no pass
over the data, but for the rows of lines 1 and 3:

    1  take rows that rest on a wall of their box out of the move, and their x_i out of v
    2  t = slope / curvature of L along the move, at most 1: else what rounding does to v would grow
    3  go by t and clip to the box
    4  go from alpha to the best point on the way to where this has led

L never falls: the box is convex, so that all of the way lies in it, and 4 is exact.
"""

from __future__ import annotations

from maxmargin import core
from maxmargin.problem import Problem
from maxmargin.solvers.ascent.state import AnyData, State
from maxmargin.types import Indices, Vector

_READ_PER_ROW, _READ_PER_COLUMN = 60, 30
"""Stored values that a sweep must read for a row, and for a column, for going on to be cheap beside it."""
_SLOW = 0.5
"""The share of the gap that a sweep must leave for going on to save sweeps, where it is not as cheap."""
_READ_WHERE_SLOW = 4
"""Stored values that a sweep must read for a row and a column then."""


def go_on(problem: Problem, state: State) -> None:
    """Go further along the way of the last sweep, where that pays; and the next one begins here."""
    rows, visited = problem.rows, len(state.visits.order)
    # Sweeps over all twins read the values of two rows once.
    cheap = (rows.stored / rows.count - _READ_PER_ROW) * visited >= _READ_PER_COLUMN * len(state.w)
    pays = (rows.row_length - _READ_WHERE_SLOW) * visited >= _READ_WHERE_SLOW * len(state.w)
    if not (cheap or pays):
        state.last_move = None
    elif state.last_move is None:
        if cheap or state.left > _SLOW:
            state.last_move = LastMove(state.alpha, state.w, state.visits.order)
    else:
        state.intercept.b, gain = state.last_move.go_on(
            state.data,
            problem.loss.name == "squared_hinge",
            state.coordinates,
            state.visits.order,
            state.w,
            state.intercept.b,
            state.intercept.curvature,
        )
        state.dual += gain


class LastMove:
    """The move from the end of the last sweep but one to that of the last; at first, of the last alone."""

    def __init__(self, alpha: Vector, w: Vector, order: Indices) -> None:
        self._alpha, self._w, self._order = alpha.copy(), w.copy(), order.copy()

    def go_on(
        self,
        data: AnyData,
        squared: bool,
        coordinates: Vector,
        order: Indices,
        w: Vector,
        bias: float,
        bias_curvature: float,
    ) -> tuple[float, float]:
        """Change alpha and w, and return the new bias and by how much L grew.

        ``order``: the rows that the next sweep visits. No others move until this is called again: a row
        that a sweep left out rests on a wall.
        """
        moved, self._order = self._order, order.copy()
        return core.go_on(
            data,
            squared,
            coordinates,
            moved,
            w,
            bias=bias,
            bias_curvature=bias_curvature,
            alpha_before=self._alpha,
            w_before=self._w,
        )
