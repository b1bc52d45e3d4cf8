# SPDX-License-Identifier: BSD-3-Clause
"""Regression as an instance of the one problem.

    minimise over (w, b)   1/2 |w|^2  +  sum_k C_k max(0, |y_k - <w, x_k> - b| - epsilon),     or its square

A score is wrong by what it lies outside of the tube from ``y_k - epsilon`` to ``y_k + epsilon``: below its
lower wall, or above its upper one, never both. So the loss of an example is the sum of the hinges of two
rows on its data: one of sign 1 with the target ``y_k - epsilon``, and one of sign -1 with the target
``-(y_k + epsilon)``. Solvers see these walls rounded to float64; proofs add what rounding took from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.problem.problem import Intercept, Problem
from maxmargin.problem.rows import rows_of
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.types import Vector

TUBE_LOSSES = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}
"""The loss of a problem's rows for each loss of regression."""

_BLOCK = 8192
"""Examples whose walls are looked at together: their numbers stay in the second-level cache."""


def regression_problem(
    X: Any,
    y: ArrayLike,
    C: float = 1.0,
    *,
    epsilon: float = 0.1,
    loss: str = "epsilon_insensitive",
    intercept: str | Intercept = Intercept.EXACT,
    weights: ArrayLike | None = None,
    intercept_scaling: float = 1.0,
) -> Problem:
    """The problem of a regression: rows 2k and 2k + 1 are the two of example k, and share its data."""
    examples = rows_of(X)
    values = np.asarray(y, dtype=np.float64)
    if values.shape != (examples.count,):
        raise ValueError(
            f"y must hold one number for each of the {examples.count} rows of X. "
            f"Got an array of shape {values.shape} instead."
        )
    if not (np.isfinite(epsilon) and epsilon >= 0.0):
        raise ValueError(
            f"epsilon must be a finite number of at least 0. Got {epsilon!r} instead. It is how far a "
            "prediction may be off at no cost."
        )
    if loss not in TUBE_LOSSES:
        raise ValueError(f"loss must be one of {', '.join(TUBE_LOSSES)}. Got {loss!r} instead.")
    return Problem.of(
        TwinRows(examples),
        signs(examples.count),
        C,
        loss=TUBE_LOSSES[loss],
        intercept=intercept,
        weights=None if weights is None else np.repeat(np.asarray(weights, np.float64), 2),
        intercept_scaling=intercept_scaling,
        targets=walls(values, epsilon),
        targets_rest=rest_of_walls(values, epsilon),
    )


def signs(examples: int) -> Vector:
    """The signs of the two rows of so many examples."""
    return np.tile([1.0, -1.0], examples)


def walls(y: Vector, epsilon: float) -> Vector:
    """The targets of the two rows of every example."""
    targets = np.empty((len(y), 2))
    np.subtract(y, epsilon, out=targets[:, 0])
    np.negative(y + epsilon, out=targets[:, 1])
    return targets.ravel()


def rest_of_walls(y: Vector, epsilon: float) -> Vector | None:
    """What rounding took from each target, a float64 itself (Knuth); None where it took nothing."""
    rest = np.empty((len(y), 2))
    for first in range(0, len(y), _BLOCK):
        some, out = y[first : first + _BLOCK], rest[first : first + _BLOCK]
        np.negative(_rest_of_sum(some, epsilon), out=out[:, 1])
        out[:, 0] = _rest_of_sum(some, -epsilon)
    return rest.ravel() if rest.any() else None


def _rest_of_sum(y: Vector, step: float) -> Vector:
    total = y + step
    back = total - y
    return np.asarray((y - (total - back)) + (step - back), np.float64)
