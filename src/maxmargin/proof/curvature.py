# SPDX-License-Identifier: BSD-3-Clause
"""The curvature of an objective as a metric: lengths of vectors by a Hessian or its inverse, rounded up."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from maxmargin import core
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import UNIT, Matrix
from maxmargin.types import Indices, Vector

_WORST_ROUNDING = 1e-3
"""The share of the smallest curvature that rounding may take; above it nothing is said."""
_ROUNDINGS = 16.0
"""Roundings on the way to a bound besides those of its longest sum."""


def hessian_of(problem: Problem, curvatures: Vector) -> Matrix:
    """``R + sum_j k_j z_j z_j'``."""
    matrix, d = np.diag(problem.regulariser_diagonal()), problem.rows.columns
    if curvatures.any():
        matrix[:d, :d] += problem.rows.gram(curvatures)
        if len(matrix) > d:
            matrix[:d, d] = matrix[d, :d] = problem.rows.combine(curvatures)
            matrix[d, d] += curvatures.sum()
    return matrix


class Metric:
    """H of all rows, held by its Cholesky factor and the inverse of that."""

    def __init__(self, problem: Problem, curvatures: Vector) -> None:
        self.rows, self.with_intercept = problem.rows, problem.intercept is not Intercept.NONE
        self.matrix = matrix = hessian_of(problem, curvatures)
        self.least = float(eigvalsh(matrix, subset_by_index=[0, 0])[0])
        terms = np.count_nonzero(curvatures) + len(matrix) ** 2 + _ROUNDINGS
        lost = 8.0 * terms * UNIT * float(np.trace(matrix))
        self.is_sound = bool(self.least > 0.0 and lost <= _WORST_ROUNDING * self.least)
        if self.is_sound:
            # The inverse of a triangular matrix is off by a few n UNIT |L^-1| |L| |L^-1|, entry by entry,
            # and the square of |L| |L^-1| is at most the trace over the least eigenvalue.
            self.looser = 1.0 + 4.0 * lost / self.least
            self.least /= self.looser
            self.factor = cholesky(matrix, lower=True)
            inverse = solve_triangular(self.factor, np.eye(len(matrix)), lower=True)
            self.inverse_factor = np.ascontiguousarray(inverse.T)

    def squared_lengths(self, which: Indices) -> Vector:
        """``z_i'H^-1 z_i`` of some rows, or a little more."""
        out = np.empty(len(which))
        core.squared_lengths_through(self.rows.compiled, which, self.inverse_factor, out, core.ALL_CORES)
        return out * self.looser

    def lengths(self, vectors: Matrix) -> Vector:
        """``sqrt(v'H^-1 v)`` of the columns, or a little more."""
        return lengths_of(self.inverse_factor.T @ vectors) * self.looser


def lengths_of(columns: Matrix) -> Vector:
    """The lengths of the columns."""
    lengths: Vector = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    return lengths
