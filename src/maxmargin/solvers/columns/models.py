# SPDX-License-Identifier: BSD-3-Clause
"""The model that a Newton step minimises, in two forms: line 6 of ``coordinate_descent``.

Few columns have the products of all pairs written down, and a visit costs one number for each column. Else
the columns themselves are copied, with values times the roots of the curvatures, and a visit costs a
number for each value. Sweeps are in core/linear/coordinate_descent.hpp, jumps in jumps.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers.columns.jumps import best_move, jumps_on_products
from maxmargin.solvers.columns.point import products_with, threshold_of
from maxmargin.types import Indices, Vector

SOLVED = 0.1
"""What a model leaves of how far columns were from optimal, where products are written down."""
_SHARE = 0.1
"""A model over the columns themselves is solved until a sweep gains no more than this share of what all
have gained: then the next model gains more for its price."""
_NEAR = 1e-3
"""A model that gains no more than this share of the objective is near the optimum: most signs are right."""
_HIDDEN = 1e-10
"""One that gains no more than this is solved until columns are nearer to optimal: gains are rounding."""
_JUMPS = 20
"""Rounds of sweeps at most, with a jump between two of them."""
_GRADIENTS, _GRADIENTS_WITH_CARE = 8, 30
"""Conjugate gradients for a jump over the columns themselves, at most."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """The objective with a parabola for the loss of each row, on some columns, around a point."""

    problem: Problem
    w: Vector
    b: float
    """The point; w of these columns alone."""
    multipliers: Vector
    """a_i at the point."""
    pulls: Vector
    """v_j of these columns."""
    curvatures: Vector
    """h_i, of each row."""
    violation: float
    """How far the columns are from optimal."""
    sweeps: int
    """The most sweeps before a jump."""
    budget: Budget

    def solved_on_products(self, rows: core.Data, whole: bool) -> tuple[Vector, float]:
        """Its best z and b, by the products of all pairs of columns, written down from these rows.

        ``whole``: whether the columns are all there are.
        """
        problem, size = self.problem, len(self.w)
        # Sweeps are cheap beside the products: steps square what is off, and first of all where every step
        # writes the products of the same columns down again.
        off = self.violation
        enough = min(SOLVED * SOLVED if whole else SOLVED, off) * off
        has_intercept = problem.intercept is not Intercept.NONE
        lower = np.zeros((size + has_intercept, size + has_intercept))
        core.add_outer_products(rows, self.curvatures, lower, self.budget)
        products = lower + np.tril(lower, -1).T
        gradient, z, thresholds = -self.pulls, self.w.copy(), np.ones(size)
        slope = -core.dot(self.multipliers, problem.y)
        mixed, curvature = products[-1, :-1].copy(), float(products[-1, -1])
        if problem.intercept is Intercept.REGULARISED:
            gradient, z = np.append(gradient, slope), np.append(z, self.b)
            thresholds = np.append(thresholds, threshold_of(problem))
        elif has_intercept:
            products = products[:-1, :-1]
            if curvature > 0.0:
                products = products - np.outer(mixed, mixed / curvature)
                gradient = gradient - mixed * (slope / curvature)
                diagonal = np.diag_indices_from(products)
                products[diagonal] = np.maximum(products[diagonal], 1e-12 * lower[:-1, :-1][diagonal])
        products = np.ascontiguousarray(products)
        z[_flat(np.diagonal(products), gradient, thresholds)] = 0.0
        order = np.arange(len(z))
        for _ in range(_JUMPS):
            _, off = core.descend_on_products(
                products,
                gradient,
                z,
                thresholds,
                order,
                sweeps=self.sweeps,
                enough=enough,
                budget=self.budget,
            )
            done = off <= enough or self.budget.spent
            if done or not jumps_on_products(products, gradient, z, thresholds, self.budget):
                break
        if problem.intercept is Intercept.REGULARISED:
            return z[:-1], float(z[-1])
        if has_intercept and curvature > 0.0:
            return z, self.b - (slope + core.dot(mixed, z - self.w)) / curvature
        return z, self.b


class ScaledColumns:
    """The model by its columns, each with its values times the roots of the curvatures."""

    def __init__(self, model: Model, columns: core.Data, places: Indices) -> None:
        problem, size = model.problem, len(model.w)
        self.budget, self.w, self.b = model.budget, model.w, model.b
        self.violation, self.sweeps = model.violation, model.sweeps
        self.roots = np.sqrt(model.curvatures)
        self.gradient, self.z = -model.pulls, model.w.copy()
        self.squares, self.residuals = np.empty(size), np.zeros(problem.rows.count)
        mixed = np.empty(size)
        self.columns = columns.take_scaled(places, self.roots, self.squares, mixed, self.budget)
        self.z[_flat(self.squares, self.gradient, 1.0)] = 0.0
        self.mixed, self.curvature, self.slope = np.zeros(size), 0.0, 0.0
        self.threshold = threshold_of(problem)
        self.shift, self.order = 0.0, np.arange(size)
        """What b has moved by; and the columns in the order in which they are visited."""
        self.off = 0.0
        """How far the last sweep has seen them from optimal."""
        if problem.intercept is not Intercept.NONE:
            self.mixed = mixed
            self.curvature = float(model.curvatures.sum())
            self.slope = -core.dot(model.multipliers, problem.y)

    def solved(self, primal: float) -> tuple[Vector, float]:
        """Nearly its best z and b: as good as they are worth where the objective has this value."""
        gained = self.sweep(self.sweeps)
        for _ in range(_JUMPS):
            # A jump is for the signs that z has: before most of them are right it gains little.
            if gained > _NEAR * primal or self.budget.spent:
                break
            gain = self.jump() + self.sweep(2)
            gained += gain
            # What is off shows in the gap when the objective, which falls as its square, is all rounding.
            hidden = gained <= _HIDDEN * primal and self.off > SOLVED * self.violation
            if not gain > _SHARE * gained and not hidden:
                break
        return self.z, self.b + self.shift

    def solved_with_care(self) -> tuple[Vector, float]:
        """Its best z and b: sweeps until they are near enough, and jumps as soon as signs have settled."""
        few, enough = max(1, self.sweeps // 3), SOLVED * self.violation
        self.sweep(self.sweeps - few, 0.0, enough)
        for _ in range(_JUMPS):
            if self.off <= enough:
                break
            signs = np.sign(self.z)
            self.sweep(few, 0.0, enough)
            if self.off <= enough or self.budget.spent:
                break
            if not np.array_equal(signs, np.sign(self.z)):
                break
            if not self.jump(_GRADIENTS_WITH_CARE, 0.5 * enough) > 0.0:
                break
        return self.z, self.b + self.shift

    def slope_of_b(self) -> float:
        """How the model rises with b, without its penalty."""
        return self.slope + core.dot(self.mixed, self.z - self.w) + self.shift * self.curvature

    def sweep(self, most: int, share: float = _SHARE, enough: float = 0.0) -> float:
        """So many sweeps or fewer; what they gained."""
        self._settle()
        gain, self.off, moved = core.descend_on_columns(
            self.columns,
            self.gradient + self.shift * self.mixed,
            self.squares,
            self.mixed,
            self.z,
            self.residuals,
            self.order,
            b=self.b + self.shift,
            slope=self.slope_of_b(),
            curvature=self.curvature,
            threshold=self.threshold,
            sweeps=most,
            share=share,
            enough=enough,
            budget=self.budget,
        )
        self.shift += moved
        return float(gain)

    def jump(self, gradients: int = _GRADIENTS, enough: float = 0.0) -> float:
        """Jump with all that are not 0, and b, in the direction that conjugate gradients find.

        These are products with all columns, which threads share, and there are fewer of them than there
        would be sweeps. What it gained.
        """
        some = np.flatnonzero((self.z != 0.0) & (self.squares > 0.0))
        b = self.b + self.shift
        moves_b = self.curvature > 0.0 and (self.threshold == 0.0 or b != 0.0)
        before, thresholds = self.z[some], np.ones(len(some))
        gradient = (self.gradient + self.shift * self.mixed + self._back(self.residuals))[some]
        diagonal = self.squares[some]
        if moves_b:
            before, thresholds = np.append(before, b), np.append(thresholds, self.threshold)
            gradient, diagonal = np.append(gradient, self.slope_of_b()), np.append(diagonal, self.curvature)
        if not len(before):
            return 0.0

        def effect_of(change: Vector) -> tuple[Vector, float]:
            spread, image = np.zeros_like(self.z), np.empty_like(self.roots)
            spread[some] = change[: len(some)]
            core.combine(self.columns, spread, image, self.budget)
            if moves_b:
                image += change[-1] * self.roots
            return image, core.dot(image, image)

        left = -(gradient + thresholds * np.sign(before))
        step, image = np.empty_like(before), np.empty_like(self.roots)
        enough = enough or SOLVED * float(np.abs(left).max())
        core.conjugate_gradients_on_columns(
            self.columns, some, diagonal, self.roots, left, step, image, gradients, enough, self.budget
        )
        moved = best_move(before, step, thresholds, gradient, effect_of, image)
        if moved is None:
            return 0.0
        point, effect = moved
        change = point - before
        held = core.dot(thresholds, np.abs(point) - np.abs(before))
        gain = -core.dot(gradient, change) - 0.5 * core.dot(effect, effect) - held
        self.z[some] = point[: len(some)]
        self.residuals += effect
        if moves_b:
            self.shift += float(point[-1]) - b
            self.residuals -= (float(point[-1]) - b) * self.roots
        return gain

    def _settle(self) -> None:
        """The best b for z, which it stays while columns move."""
        if not self.curvature > 0.0:
            return
        b = self.b + self.shift
        goal = self.curvature * b - self.slope_of_b()
        held = np.clip(goal, -self.threshold, self.threshold)
        self.shift += (goal - held) / self.curvature - b

    def _back(self, image: Vector) -> Vector:
        return products_with(self.columns, image, self.budget)


def _flat(curvatures: Vector, gradient: Vector, thresholds: Vector | float) -> NDArray[np.bool_]:
    """Columns whose rows have no curvature, and which pull less than they cost: the model has them at 0."""
    return np.asarray((curvatures == 0.0) & (np.abs(gradient) < thresholds), np.bool_)
