# SPDX-License-Identifier: BSD-3-Clause
"""A working set of columns, and Newton steps on it: lines 4 to 7 of ``coordinate_descent``."""

from __future__ import annotations

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.solvers.columns.models import Model, ScaledColumns
from maxmargin.solvers.columns.point import State, is_dense, pulls_of, threshold_of
from maxmargin.types import Indices, Vector

_ALL_PRODUCTS = 1000
"""Columns in a working set up to which their products are written down: 8 megabytes."""
_SMALL = 0.1
"""The share of all stored values that a small working set has: a few of its models cost less than a look at
all columns."""
_PAIRS_PER_VALUE = 40.0
"""Products of two values of a row, per value, up to which careful models have those of sparse columns."""
_CUT = 2
"""How many steps without a gain a model counts for whose step had to be cut."""
ROUNDING = 1e-14
"""The share of the objective that rounding may hide. It falls as the square of how far columns are from
optimal, and the gap as that itself: steps go on where only the second can be seen."""


class WorkingSet:
    """Its columns, the point on them, and steps from it."""

    def __init__(self, problem: Problem, state: State, which: Indices, sweeps: int, budget: Budget) -> None:
        self.problem, self.state, self.which, self.budget = problem, state, which, budget
        self.sweeps = sweeps
        self.whole = len(which) == len(state.w)
        self.columns, self.places = state.columns, which
        """Columns, and where those of the working set are among them."""
        self.w, self.b = state.w[which], state.b
        self.multipliers, self.pulls = state.multipliers, state.pulls[which]
        self.tangent: Vector | None = None
        """The multipliers of the last model, line 9, unless the step to its best point was cut."""
        self.stored = problem.rows.stored
        """How many values the model has."""

    @property
    def has_products(self) -> bool:
        """Whether the products of its columns are written down."""
        if self.columns is None or len(self.which) > _ALL_PRODUCTS:
            return self.columns is None
        return is_dense(self.state) or (self.state.careful and self._pairs_are_few())

    @property
    def is_small(self) -> bool:
        """Whether it gets several models: they cost less than looks, or than products of more columns."""
        return self.has_products or self.stored < _SMALL * self.problem.rows.stored

    def _pairs_are_few(self) -> bool:
        """Whether products of these sparse columns cost less than so many sweeps over them."""
        assert self.columns is not None
        stored = self._taken().stored
        return stored <= _PAIRS_PER_VALUE * self.problem.rows.count

    def _taken(self) -> core.Data:
        """The columns of the working set alone."""
        assert self.columns is not None
        if self.columns is self.state.columns and not self.whole:
            self.columns, self.places = self.columns.take(self.which), np.arange(len(self.which))
        return self.columns

    @property
    def violation(self) -> float:
        """How far its columns are from optimal."""
        return self.problem.distance_from_optimal(self.w, self.pulls)

    def look(self) -> None:
        """Multipliers and pulls of these columns at the point, for another model: line 5."""
        self._taken()
        self.w, self.b = self.state.w[self.which], self.state.b
        self.multipliers = self.problem.multipliers(self.state.margins)
        self.pulls = pulls_of(self.problem, self.columns, self.multipliers, self.budget)

    def newton_step(self) -> bool:
        """Whether there was a step: lines 5 to 7."""
        problem, state = self.problem, self.state
        self.tangent = None
        curvatures = np.empty_like(state.margins)
        problem.objective.curvatures(state.margins, bool(state.lifted), curvatures)  # 5
        z, c = self._descended(curvatures)  # 6
        step, shift = z - self.w, c - self.b
        if not np.isfinite(step).all() or not (step.any() or shift):
            return False
        change = problem.y * (self._scores(step) + shift)
        threshold = threshold_of(problem)
        held = float(np.abs(self.w).sum()) + threshold * abs(self.b)
        slope = float(np.abs(z).sum()) + threshold * abs(c) - held - core.dot(self.multipliers, change)
        curved = curvatures * change
        tangent = self.multipliers - curved
        self.tangent = tangent if np.isfinite(tangent).all() else None
        if not slope < 0.0:
            return False
        state.promise = -(slope + 0.5 * core.dot(curved, change)) / state.primal
        factor = 1.0
        while True:  # 7
            w, b = self.w + factor * step, self.b + factor * shift
            if factor == 1.0:
                w = z
            margins = state.margins + factor * change
            value = float(np.abs(w).sum()) + threshold * abs(b) + problem.loss_sum(margins)
            if value <= state.primal + 0.01 * factor * slope + ROUNDING * state.primal:
                break
            factor *= 0.5
            if factor < 1e-10:
                return False
        state.w[self.which], state.b, state.margins, state.primal = w, b, margins, value
        state.is_seen = False
        if factor < 1.0:
            state.lifted, self.tangent = True, None
            state.waited += _CUT
        return True

    def _scores(self, step: Vector) -> Vector:
        """What a step of the columns adds to the score of every row."""
        if self.columns is None:
            return self.problem.rows.scores(step, self.budget)
        scores, spread = np.empty(self.problem.rows.count), np.zeros(self.columns.count)
        spread[self.places] = step
        core.combine(self.columns, spread, scores, self.budget)
        return scores

    def _descended(self, curvatures: Vector) -> tuple[Vector, float]:
        """The best of the model: line 6."""
        state = self.state
        model = Model(
            problem=self.problem,
            w=self.w,
            b=self.b,
            multipliers=self.multipliers,
            pulls=self.pulls,
            curvatures=curvatures,
            violation=self.violation,
            sweeps=self.sweeps,
            budget=self.budget,
        )
        if self.columns is None or (self.whole and self.has_products):
            return model.solved_on_products(self.problem.rows.stored_data, self.whole)
        if self.has_products:
            rows = self.columns.take(self.places).transposed(self.budget)
            return model.solved_on_products(rows, self.whole)
        scaled = ScaledColumns(model, self.columns, self.places)
        self.stored = scaled.columns.stored
        return scaled.solved_with_care() if state.careful else scaled.solved(state.primal)
