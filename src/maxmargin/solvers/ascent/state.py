# SPDX-License-Identifier: BSD-3-Clause
"""The state of dual coordinate ascent, and what keeps its numbers in step with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from maxmargin import core
from maxmargin.problem import Intercept, Problem
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.solvers.ascent.extrapolation import Moves
    from maxmargin.solvers.ascent.momentum import LastMove
    from maxmargin.solvers.ascent.pulled_intercept import PulledIntercept
    from maxmargin.solvers.ascent.shrinking import Visits

AnyData: TypeAlias = core.AnyData

# The columns of State.coordinates: the fields of core/linear/dual_coordinate_ascent.hpp's Coordinate.
ALPHA, INVERSE_CURVATURE, COST, DIAGONAL, LABEL, TARGET = range(6)

RAISE = 4.0
"""The factor on C from one stage of the warm-up to the next."""
_FLOAT32_IS_EXHAUSTED = 1e-6
"""The relative gap below which the rounding of a float32 copy of the rows counts."""


@dataclass
class State:
    """The state of the ascent."""

    data: AnyData
    """The rows that are swept: the problem's, or a smaller copy."""
    coordinates: Vector
    """One line per row: see the column names above."""
    w: Vector
    """sum_i alpha_i y_i x_i over the columns of ``data``."""
    intercept: PulledIntercept
    visits: Visits
    random: int
    """The state of the generator of orders."""
    dual: float = 0.0
    relative_gap: float = np.inf
    """The gap as the last sweep saw it: each row's share at the time of its visit."""
    decay: float = 1.0
    """The share of the relative gap that the last sweep left."""
    left: float = 0.0
    """The share of the gap itself, in units of the dual value: a relative gap near 1 says little."""
    finished: bool = False
    """Whether a sweep over all rows changed nothing beyond rounding."""
    private: Vector | float = 0.0
    """What the columns left out of ``data`` add to the diagonal."""
    copied: int = 0
    """The bytes of a smaller copy."""
    stage: int = 0
    """Stages of the warm-up that are left: C is divided by 4^stage; 0 when it is over."""
    stage_sweeps: int = 0
    """Sweeps so far in this stage."""
    moves: Moves | None = None
    """The moves of the last sweeps, once the gap falls slowly."""
    sweeps_of_move: int = 0
    """Sweeps so far in the move that has begun."""
    read_in_move: float = 0.0
    """How many stored values these sweeps have read."""
    last_move: LastMove | None = None
    """The move of the last sweep, while going on from its end is cheap."""

    @property
    def alpha(self) -> Vector:
        """The multipliers; changes of it are changes of the state."""
        return self.coordinates[:, ALPHA]

    @property
    def targets(self) -> Vector:
        """p_i of every row."""
        return self.coordinates[:, TARGET]

    def set_costs(self, problem: Problem) -> None:
        """Fill in what depends on C, at the stage of the warm-up."""
        costs = problem.costs * RAISE**-self.stage
        own = np.zeros(len(costs))
        if problem.loss.name == "squared_hinge":
            np.divide(0.5, costs, out=own, where=costs > 0)
        curvature = problem.rows.squared_norms + self.intercept.curvature + own
        self.coordinates[:, COST] = costs
        # An empty row without intercept has no curvature: its step is as good as infinite, clipped to C.
        self.coordinates[:, INVERSE_CURVATURE] = 1.0 / np.maximum(curvature, 1e-300)
        self.coordinates[:, DIAGONAL] = own + self.private

    def restore_w(self, problem: Problem, known: Vector | None = None) -> None:
        """Make w, b and the dual value anew from the multipliers; w may be known."""
        coefficients = self.alpha * problem.y
        if known is not None and self.data is problem.rows.compiled:
            self.w = known.copy()
        else:
            self.w = np.empty(self.data.columns)
            core.combine(self.data, coefficients, self.w, core.ALL_CORES)
        self.intercept.answer_to(float(coefficients.sum()))
        # The columns that were left out count through their diagonal.
        squares = core.dot(self.w, self.w) + float(np.sum(self.private * self.alpha**2))
        if problem.intercept is Intercept.REGULARISED:
            beta = problem.intercept_scaling * float(coefficients.sum())
            squares += beta * beta
        gains = problem.loss.dual_gain(self.alpha, problem.costs) + self.alpha * (self.targets - 1.0)
        self.dual = float(gains.sum()) - 0.5 * squares

    def leave_rounded_copy(self, problem: Problem) -> None:
        """Sweep the rows themselves once the rounding of their smaller copy counts."""
        rows = problem.rows
        if self.relative_gap >= _FLOAT32_IS_EXHAUSTED or self.data is rows.compiled:
            return
        if rows.dtype != np.float32:
            self.data, self.private, self.copied = rows.compiled, 0.0, 0
            self.set_costs(problem)
            self.restore_w(problem)
            self.moves = self.last_move = None

    def see_gap(self, gap: float) -> None:
        """What a sweep has seen of the gap, and how much of the one before that is."""
        before, now = self.relative_gap, gap / (self.dual + gap) if gap > 0 else 0.0
        self.decay, self.left = 1.0, float(before < 1.0)
        if 0.0 < now < before < np.inf:
            self.decay = now / before
            if before < 1.0:
                self.left = self.decay * (1.0 - before) / (1.0 - now)
        self.relative_gap = now
