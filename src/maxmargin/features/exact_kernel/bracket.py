# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on the best value of a kernel problem, from multipliers and functions of any origin.

    P(f, b) = 1/2 |f|^2 + sum_i C_i loss(y_i (f(x_i) + b))   >=   P*   >=   D(alpha)

for every f of the kernel's space, every b and every feasible alpha. The dual's quadratic term is |g|^2 of
``g = sum_i alpha_i y_i k(x_i, .)``, so an upper bound on |g|^2 still gives a lower bound on P*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from maxmargin import core
from maxmargin.features.exact_kernel.function import KernelFunction, in_span, squared_norm_bound
from maxmargin.features.nystroem import Nystroem
from maxmargin.kernels import Kernel
from maxmargin.problem import Intercept, Problem
from maxmargin.types import Vector

_ROWS_PER_LANDMARK = 10
"""A stand-in learns to follow its model on this many rows for each landmark."""
_SMALLEST_GROUP = 16
"""Support vectors between which the kernel is computed, at least, where not all pairs can be."""
_MOST_LANDMARKS = 4000
"""Rows whose kernel matrix is factorised, at most: that of 4,000 takes 128 MB."""
_LARGEST_MULTIPLE = 2.0
"""Multiples of a function are looked for up to this one; a model of about the right length is near 1."""


@dataclass(frozen=True)
class Bound:
    """A number, and what it rests on, in words."""

    value: float
    rests_on: str


@dataclass(frozen=True, eq=False)
class ExactProblem:
    """The problem of a kernel: ``problem`` has its labels, costs, loss and intercept, X the rows."""

    problem: Problem
    kernel: Kernel
    X: Any
    max_values: int
    """Kernel values that may be computed for one bound."""

    def value(self, scores: Vector, squared_norm: float, b: float) -> float:
        """P(f, b) for an f with these values at the rows and this norm."""
        problem = self.problem
        value = 0.5 * squared_norm + problem.loss_sum(problem.y * (scores + b))
        if problem.intercept is Intercept.REGULARISED:
            beta = b / problem.intercept_scaling
            value += 0.5 * beta * beta
        return value

    def best_multiple(self, scores: Vector, squared_norm: float) -> tuple[float, float]:
        """The r that makes P(r f, best b) smallest, and that value; r = 0 is a candidate."""

        def value(r: float) -> float:
            return self.value(r * scores, r**2 * squared_norm, self.problem.best_intercept(r * scores))

        return _least(value, _LARGEST_MULTIPLE)

    def dual_value(self, alpha: Vector, squared_norm: float) -> float:
        """D(alpha), or less where |g|^2 is only bounded."""
        problem = self.problem
        value = float(problem.loss.dual_gain(alpha, problem.costs).sum()) - 0.5 * squared_norm
        if problem.intercept is Intercept.REGULARISED:
            beta = problem.intercept_scaling * core.dot(alpha, problem.y)
            value -= 0.5 * beta * beta
        return value

    def best_share(self, alpha: Vector, squared_norm: float) -> tuple[float, float]:
        """The t in [0, 1] that makes D(t alpha) largest, and that value: t alpha is feasible with alpha."""
        t, least = _least(lambda t: -self.dual_value(t * alpha, t**2 * squared_norm), 1.0)
        return t, -least


@dataclass(frozen=True, eq=False)
class DualExpansion:
    """``g = sum_i alpha_i y_i k(x_i, .)`` over the support vectors of a feasible alpha."""

    exact: ExactProblem
    alpha: Vector

    @cached_property
    def support(self) -> Any:
        """The rows with alpha > 0."""
        return np.flatnonzero(self.alpha)

    @cached_property
    def function(self) -> KernelFunction:
        """The function g itself."""
        weights = (self.alpha * self.exact.problem.y)[self.support]
        return KernelFunction(self.exact.kernel, self.exact.X[self.support], weights)

    @cached_property
    def scores(self) -> Vector | None:
        """The values of g at all rows; None where that would take too many kernel values."""
        rows = self.exact.problem.rows.count
        if len(self.support) * rows > self.exact.max_values:
            return None
        return self.function.at(self.exact.X)

    def squared_norm(self) -> Bound:
        """``|g|^2``, or an upper bound on it by a projection where pairs are too many."""
        count = len(self.support)
        if self.scores is not None:
            value = float(self.function.coefficients @ self.scores[self.support])
            return Bound(value, f"the kernel between all {count} support vectors")
        if count**2 <= self.exact.max_values:
            return Bound(self.function.squared_norm, f"the kernel between all {count} support vectors")
        each = max(2 * _SMALLEST_GROUP, self.exact.max_values // count)
        landmarks = min(_MOST_LANDMARKS, each // 2)
        group = each - landmarks
        words = f"between {count} support vectors and {landmarks} of them, and within groups of {group}"
        return Bound(
            squared_norm_bound(self.function, landmarks, group),
            f"the kernel {words}, with the triangle inequality for the rest",
        )

    def lower_bound(self) -> Bound:
        """The largest D(t alpha), a lower bound on the best value."""
        norm = self.squared_norm()
        t, value = self.exact.best_share(self.alpha, norm.value)
        return Bound(value, f"{_times(t)}the model's multipliers, and {norm.rests_on}")

    def upper_bound(self) -> Bound | None:
        """The best P(r g, b); None where g at all rows would take too many kernel values."""
        if self.scores is None:
            return None
        norm = float(self.function.coefficients @ self.scores[self.support])
        r, value = self.exact.best_multiple(self.scores, norm)
        return Bound(value, f"{_times(r)}the expansion of the model's multipliers in the exact kernel")


def stand_in(exact: ExactProblem, features: Nystroem, rows: Any, scores: Vector) -> KernelFunction:
    """The function in the span of Nystroem's sample that follows given scores at some rows.

    Least squares with a ridge that weighs the norm as the problem does. Any function would do for a bound.
    """
    phi = features.transform(exact.X[rows].astype(np.float64, copy=False))
    ridge = len(rows) / max(exact.problem.total_cost, np.finfo(np.float64).tiny)
    w = np.linalg.solve(phi.T @ phi + ridge * np.eye(phi.shape[1]), phi.T @ scores)
    return in_span(features, w)


def upper_bound_by(exact: ExactProblem, function: KernelFunction, squared_norm: float) -> Bound:
    """The best P(r f, b) of a stand-in f."""
    r, value = exact.best_multiple(function.at(exact.X), squared_norm)
    rows = len(function.coefficients)
    return Bound(value, f"{_times(r)}a function in the span of {rows} rows that follows the model")


def draw_rows(count: int, landmarks: int) -> Any:
    """Rows to learn a stand-in from."""
    order = np.random.default_rng(0).permutation(count)
    return np.sort(order[: _ROWS_PER_LANDMARK * landmarks])


def _least(value: Callable[[float], float], most: float) -> tuple[float, float]:
    """The place from 0 to ``most`` where a function is about least, and its value; 1 and 0 are tried."""
    found = minimize_scalar(value, bounds=(0.0, most), method="bounded")
    least, place = min((value(t), t) for t in (float(found.x), 1.0, 0.0))
    return place, least


def _times(factor: float) -> str:
    return "" if factor == 1.0 else f"{factor:.3g} times "
