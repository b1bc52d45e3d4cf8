# SPDX-License-Identifier: BSD-3-Clause
"""The problems with a nu as instances of the one problem.

Where a classifier or a regressor has C or epsilon to say how many rows may be on the wrong side, these have
nu, the share of them. In all three the targets have a shift e that is sought, and the multipliers add up to
T = nu sum_i C_i. Some share of at most nu of the costs is then of rows on the wrong side, and one of at
least nu of rows that are support vectors.

    one class     1/2 |w|^2 - T rho     + sum_i C_i max(0, rho - <w, x_i>)
    two classes   1/2 |w|^2 - T rho     + sum_i C_i max(0, rho - y_i (<w, x_i> + b))
    regression    1/2 |w|^2 + T epsilon + sum_k C_k max(0, |y_k - <w, x_k> - b| - epsilon)

One class has signs of 1, no intercept, and targets of 0; two classes have an exact intercept besides. Both
have rho = -e. Regression has the two rows of problem/regression.py, with the walls of epsilon = 0, and
epsilon = e.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.problem.problem import Intercept, Problem
from maxmargin.problem.regression import signs, walls
from maxmargin.problem.rows import Rows, RowSpace
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.types import Vector


def one_class_problem(X: Any, nu: float = 0.5, *, weights: ArrayLike | None = None) -> Problem:
    """The problem of one class: C_i is the weight of row i."""
    rows = X if isinstance(X, RowSpace) else Rows(X)
    costs = _costs(weights, rows.count)
    return Problem.of(
        rows,
        np.ones(rows.count),
        weights=costs,
        intercept=Intercept.NONE,
        targets=np.zeros(rows.count),
        total=_total(nu, costs),
    )


def nu_classification_problem(
    X: Any, y: ArrayLike, nu: float = 0.5, *, weights: ArrayLike | None = None
) -> Problem:
    """The problem of two classes, whose labels are -1 and 1: C_i is the weight of row i."""
    rows = X if isinstance(X, RowSpace) else Rows(X)
    costs, labels = _costs(weights, rows.count), np.asarray(y, np.float64)
    most = largest_nu(costs, labels)
    if nu > most * (1.0 + 1e-12):
        raise ValueError(
            f"specified nu is infeasible: it must be at most {most:.6g} for these classes, twice the share "
            f"of the smaller one. Got nu={nu!r} instead."
        )
    return Problem.of(rows, labels, weights=costs, targets=np.zeros(rows.count), total=_total(nu, costs))


def nu_regression_problem(
    X: Any, y: ArrayLike, C: float = 1.0, nu: float = 0.5, *, weights: ArrayLike | None = None
) -> Problem:
    """The problem of a regression: rows 2k and 2k + 1 are the two of example k, and share its data."""
    examples = X if isinstance(X, RowSpace) else Rows(X)
    values, costs = np.asarray(y, np.float64), _costs(weights, examples.count)
    if values.shape != (examples.count,):
        raise ValueError(
            f"y must hold one number for each of the {examples.count} rows of X. "
            f"Got an array of shape {values.shape} instead."
        )
    return Problem.of(
        TwinRows(examples),
        signs(examples.count),
        C,
        weights=np.repeat(costs, 2),
        targets=walls(values, 0.0),
        total=C * _total(nu, costs),
    )


def largest_nu(costs: Vector, y: Vector) -> float:
    """The largest nu of two classes: twice the share of the one that costs less."""
    positive, negative = float(costs[y > 0.0].sum()), float(costs[y < 0.0].sum())
    return 2.0 * min(positive, negative) / (positive + negative)


def _costs(weights: ArrayLike | None, count: int) -> Vector:
    return np.ones(count) if weights is None else np.asarray(weights, np.float64)


def _total(nu: float, costs: Vector) -> float:
    if not 0.0 < nu <= 1.0:
        raise ValueError(
            f"nu must be above 0 and at most 1: it is a share of the rows. Got {nu!r} instead."
        )
    return float(nu) * float(costs.sum())
