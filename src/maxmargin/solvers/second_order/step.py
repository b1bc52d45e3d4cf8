# SPDX-License-Identifier: BSD-3-Clause
"""A point of Newton's method on  1/2 v'Rv + sum_i piece_i(m_i),  v = (w, b), and the step from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers.second_order.system import FEW_VALUES, TOO_LARGE, Hessian, Matrix, NewtonSystem
from maxmargin.types import Vector

SmallIterate = tuple[Vector, Vector, Vector, Vector, Vector, Vector, Vector, Matrix, Vector, Vector]

_MOST_AT_ONCE = 32


def steps_at_once(problem: Problem, until: float | None) -> tuple[int, float]:
    """How many steps a call of the core may take, and the relative gap that ends them before."""
    if until is None or problem.rows.stored > FEW_VALUES:
        return 1, 0.0
    return _MOST_AT_ONCE, until


class Pieces(NamedTuple):
    """The smooth functions of the margins: a smooth loss, or the hinge rounded off around ``centre``."""

    loss: str
    costs: Vector
    centre: Vector
    stiffness: float


@dataclass
class Iterate:
    """v, with what follows from its margins; ``refresh`` brings the second part up to date."""

    problem: Problem
    system: NewtonSystem
    v: Vector
    margins: Vector
    multipliers: Vector
    """-piece_i'(m_i)."""
    combined: Vector
    """sum_i multiplier_i y_i z_i."""
    curvatures: Vector
    """piece_i''(m_i), and a part of it where a row has just lost it."""
    primal: float = np.inf
    """The objective at v."""
    dual: float = -np.inf
    """The dual objective at the multipliers; where b is exact, the least of the Lagrangian with this b."""
    imbalance: float = 0.0
    """sum_i multiplier_i y_i where it should be 0. A step of b by 1 makes ``dual`` smaller by this much:
    while b is far from its place, ``dual`` may lie above the optimum."""

    @classmethod
    def at(
        cls,
        problem: Problem,
        w: Vector | None,
        budget: Budget,
        known: tuple[float, Vector] | None = None,
        system: NewtonSystem | None = None,
    ) -> Iterate:
        """At w, with its intercept and margins if ``known``, else the best intercept; at zero for None."""
        system = system or NewtonSystem(problem)
        v = np.zeros(len(system.regulariser))
        zeros = np.zeros(problem.rows.count)
        if w is not None and known is not None:
            v[: system.columns] = w
            if system.has_intercept:
                v[-1] = known[0]
            return cls(problem, system, v, known[1].copy(), zeros, np.zeros_like(v), zeros.copy())
        scores = np.zeros(problem.rows.count)
        if w is not None:
            v[: system.columns] = w
            scores = problem.rows.scores(v[: system.columns], budget)
        if system.has_intercept:
            v[-1] = problem.best_intercept(scores)
            scores += v[-1]
        margins = problem.y * scores
        return cls(problem, system, v, margins, zeros, np.zeros_like(v), zeros.copy())

    @property
    def w(self) -> Vector:
        """Without the intercept."""
        return self.v[: self.system.columns]

    @property
    def b(self) -> float:
        """The intercept."""
        return float(self.v[-1]) if self.system.has_intercept else 0.0

    @property
    def gradient(self) -> Vector:
        """Of the objective that the pieces make."""
        return self.system.regulariser * self.v - self.combined

    def refresh(self, pieces: Pieces, budget: Budget) -> None:
        """Take over the margins: rows whose multiplier stays cost nothing but the look at them."""
        problem = self.problem
        changes = np.empty_like(self.margins)
        loss, total, balance = core.refresh(
            *pieces, self.margins, problem.y, self.multipliers, changes, self.curvatures, budget
        )
        self.combined += self.system.combine(changes, budget)
        self._set_values(pieces, loss, total, balance)

    def _set_values(self, pieces: Pieces, loss: float, total: float, balance: float) -> None:
        problem = self.problem
        self.primal = problem.regulariser(self.w, self.b) + loss
        if pieces.loss != "hinge":
            # Multipliers of a smooth loss meet Fenchel's inequality with equality.
            gradient = self.gradient
            self.dual = self.primal - 0.5 * core.dot(gradient, gradient / self.system.pull)
            return
        b = problem.intercept_scaling**2 * balance
        self.dual = total - problem.regulariser(self.combined[: self.system.columns], b)
        if problem.intercept is Intercept.EXACT:
            self.dual -= balance * self.b  # Lagrange's term
            self.imbalance = balance

    def advance(
        self, pieces: Pieces, budget: Budget, most: int = 1, until: float = 0.0
    ) -> tuple[int, float]:
        """``move`` along the gradient and ``refresh``; where the system is small in one compiled call.

        There it goes on until the gap of the pieces, ``|g|^2 / 2``, is at most ``until`` of the objective,
        or ``most`` steps have been taken. Returns how many were, and how much of the last one.
        """
        hessian = self.system.small_hessian
        if hessian is None:
            length = self.move(pieces, self.gradient, budget)
            self.refresh(pieces, budget)
            return 1, length
        taken, length, loss, total, balance = core.small_newton_steps(
            self.problem.rows.data, *pieces, *self.arrays(hessian), most, until, budget
        )
        if math.isnan(length):
            raise FloatingPointError(TOO_LARGE)
        self._set_values(pieces, loss, total, balance)
        return taken, length

    def arrays(self, hessian: Hessian) -> SmallIterate:
        """What compiled steps read, and change in place."""
        return (
            self.problem.y,
            self.system.regulariser,
            self.v,
            self.margins,
            self.multipliers,
            self.combined,
            self.curvatures,
            hessian.lower,
            hessian.curvatures,
            hessian.peaks,
        )

    def move(self, pieces: Pieces, gradient: Vector, budget: Budget) -> float:
        """One Newton step for the gradient, as far as the pieces' sum falls; how much of it was taken."""
        step = self.system.factor(self.curvatures, budget).solve(gradient)
        changes = self.system.margin_changes(step, budget)
        pull = self.system.regulariser * step
        slope, curvature = core.dot(pull, self.v), core.dot(pull, step)
        length = core.line_search(*pieces, self.margins, changes, slope, curvature, budget)
        step *= length
        changes *= length
        self.v += step
        self.margins += changes
        return length
