# SPDX-License-Identifier: BSD-3-Clause
"""Mercer's condition, on the rows at hand.

A symmetric function k is an inner product of images, ``k(x, z) = <phi(x), phi(z)>``, if and only if all
its matrices are positive semidefinite (004, theorem 6.5): ``v'Kv = |sum_i v_i phi(x_i)|^2 >= 0``. So one
vector v with v'Kv < 0 proves that k is not a kernel. That no such vector is found proves nothing beyond the
rows looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.kernels.base import Factor, Function, Kernel, Precomputed
from maxmargin.problem.rows import Matrix
from maxmargin.types import Indices, Vector

_EPSILON = float(np.finfo(np.float64).eps)
"""One unit in the last place of a float64 number near 1."""
_GIVEN_ROUNDING = 100.0
"""How many units in the last place of the largest value a given one may be off."""


@dataclass(frozen=True, eq=False)
class Validity:
    """What the rows say about a kernel; true if they do not contradict it."""

    valid: bool
    smallest_eigenvalue: float
    """The smallest one of the kernel matrix of the rows looked at, or of its symmetric part."""
    vector: Vector
    """A unit vector v over those rows: with v'Kv < 0 beyond rounding if ``valid`` is false and the
    matrix is symmetric, else for the smallest eigenvalue."""
    value: float
    """The number v'Kv."""
    tolerance: float
    """What rounding, of the kernel's values and of the sum, can make of a v'Kv that is 0."""
    rows: Indices
    """The rows looked at."""
    asymmetric: tuple[int, int] | None = None
    """Two rows with ``k(x, z) != k(z, x)``, if there are such."""

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        if self.asymmetric is not None:
            first, second = self.asymmetric
            return (
                f"No kernel: it is not symmetric. Rows {first} and {second} have another value than "
                f"rows {second} and {first}."
            )
        if not self.valid:
            return (
                f"No kernel: a vector v over {len(self.rows)} rows has v'Kv = {self.value:.3g}. Inner "
                f"products never give less than 0, and rounding accounts for {self.tolerance:.1g} at most. "
                f"The smallest eigenvalue of the matrix is {self.smallest_eigenvalue:.3g}."
            )
        rounding = (
            f", which rounding explains ({self.tolerance:.1g})" if self.smallest_eigenvalue < 0 else ""
        )
        return (
            f"Nothing speaks against the kernel: on {len(self.rows)} rows the smallest eigenvalue of its "
            f"matrix is {self.smallest_eigenvalue:.3g}{rounding}. Other rows may tell more."
        )


def is_valid(
    kernel: Kernel | Callable[[Any, Any], Any], X: Any, sample: int = 500, seed: int = 0
) -> Validity:
    """Whether the matrix of the kernel is positive semidefinite on up to ``sample`` rows of X.

    A false answer is a proof, with a vector that shows it: a kernel is never refused for the rounding of
    its values. Values that are given, or computed by a function, are taken to be right to 100 units in the
    last place (of single precision if X is) of the largest of them.
    """
    if not (isinstance(sample, Integral) and sample >= 1):
        raise ValueError(
            f"sample must be an int in the range [1, inf). Got {sample!r} instead. It is the number of "
            "rows to look at; time grows with its third power."
        )
    kernel = kernel if isinstance(kernel, Kernel) else Function(kernel)
    X = X if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2 or not X.shape[0]:
        raise ValueError(f"X must be a matrix with at least one row. Got shape {X.shape} instead.")
    rows = np.arange(X.shape[0])
    if len(rows) > sample:
        rows = np.sort(np.random.default_rng(seed).choice(len(rows), int(sample), replace=False))
    return validity_on(kernel, X, rows, None)


@np.errstate(over="ignore", invalid="ignore")
def validity_on(kernel: Kernel, X: Any, rows: Indices, matrix: Matrix | None) -> Validity:
    """The answer of ``is_valid`` on these rows of X; ``matrix`` has all values of the kernel, if known."""
    K, errors = _values(kernel, X, rows, matrix)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (K + K.T))
    smallest = float(eigenvalues[0])
    off = np.abs(K - K.T) - errors - errors.T
    worst = np.unravel_index(int(off.argmax()), off.shape)
    if off[worst] > 0:
        pair = (int(rows[worst[0]]), int(rows[worst[1]]))
        value, tolerance = _square(K, errors, vectors[:, 0])
        return Validity(False, smallest, vectors[:, 0], value, tolerance, rows, pair)
    for find in (lambda: vectors[:, 0], lambda: _scaled_vector(K)):
        vector = find()
        value, tolerance = _square(K, errors, vector)
        if value < -tolerance:
            return Validity(False, smallest, vector, value, tolerance, rows)
    value, tolerance = _square(K, errors, vectors[:, 0])
    return Validity(True, smallest, vectors[:, 0], value, tolerance, rows)


def _values(kernel: Kernel, X: Any, rows: Indices, matrix: Matrix | None) -> tuple[Vector, Vector]:
    """The kernel matrix of some rows, and a bound on the error of each of its values."""
    if isinstance(kernel, Precomputed):
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                "A precomputed kernel needs a square matrix with a row and a column for every example. Got "
                f"shape {X.shape} instead."
            )
        given = X[rows][:, rows]
        K = np.asarray(given.toarray() if sparse.issparse(given) else given, np.float64)
    else:
        K = kernel(X[rows]) if matrix is None else matrix[np.ix_(rows, rows)]
    if not np.isfinite(K).all():
        raise ValueError(
            "The values of the kernel must be finite. Got some that are not. Scale the features, or take a "
            "smaller gamma or degree."
        )
    if isinstance(kernel, Precomputed | Function):
        single = X.dtype in (np.float16, np.float32)
        unit = float(np.finfo(X.dtype).eps) if single else _EPSILON
        return K, np.full(K.shape, _GIVEN_ROUNDING * unit * float(np.abs(K).max()))
    return K, _errors(kernel, X[rows])


def _scaled_vector(K: Vector) -> Vector:
    """The eigenvector of D K D, back on the scale of K, where D makes the diagonal 1.

    Rows of large values drown what a small corner of K says; this one lets all corners speak alike.
    """
    diagonal = np.diag(K)
    scale = np.where(diagonal > 0, diagonal, np.maximum(np.abs(K).max(axis=1), np.finfo(np.float64).tiny))
    scale = 1.0 / np.sqrt(scale)
    _, vectors = np.linalg.eigh(0.5 * (K + K.T) * scale[:, np.newaxis] * scale)
    vector = vectors[:, 0] * (scale / scale.max())
    return np.asarray(vector / np.linalg.norm(vector))


def _square(K: Vector, errors: Vector, vector: Vector) -> tuple[float, float]:
    """``v'Kv``, and how far it can be from what exact values of the kernel would give."""
    sizes = np.abs(vector)
    summing = 2.0 * (len(K) + 2) * _EPSILON * float(sizes @ np.abs(K) @ sizes)
    return float(vector @ K @ vector), 2.0 * float(sizes @ errors @ sizes) + summing


def _errors(kernel: Kernel, X: Any) -> Vector:
    """A bound on the rounding of each value that the core computes.

    For a product, (s + e)(t + f) - s t = e (t + f) + s f for factors of sizes s and t with errors e and f.
    """
    sizes = abs(X.astype(np.float64))
    squares = sizes.multiply(sizes) if sparse.issparse(sizes) else sizes * sizes
    sums, lengths = np.asarray(sizes.sum(axis=1)).ravel(), np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    unit = 2.0 * (X.shape[1] + 16) * _EPSILON
    plain = X.astype(np.float64)
    products = plain @ plain.T
    products = np.asarray(products.toarray() if sparse.issparse(products) else products)
    total = np.zeros((len(sums), len(sums)))
    for coefficient, factors in kernel.terms:
        size, error = np.full(total.shape, coefficient), np.full(total.shape, unit * coefficient)
        for factor in factors:
            factor_size, factor_error = _factor_errors(factor, lengths, sums, products, unit)
            error = error * (factor_size + factor_error) + size * factor_error
            size = size * factor_size
        total += error
    return total


def _factor_errors(
    factor: Factor, lengths: Vector, sums: Vector, products: Vector, unit: float
) -> tuple[Vector, Vector]:
    """Bounds on the values of one compiled kernel, and on their errors: see core/kernel/kernels.hpp."""
    common, shape, gamma, shift, degree = factor
    if shape == "exponential":
        own = lengths**2 if common == "product" else sums
        error = unit * (1.0 + gamma * (own[:, np.newaxis] + own))
        return np.ones(error.shape), np.minimum(error, 1.0)
    inner = gamma * np.outer(lengths, lengths) + abs(shift)
    if shape == "tanh":
        # Where its argument is large, a tanh hardly changes, whatever the argument loses.
        argument, off = gamma * products + shift, unit * (1.0 + inner)
        return np.ones(inner.shape), np.tanh(argument + off) - np.tanh(argument - off) + unit
    size = inner**degree
    return size, 2.0 * unit * max(degree, 1) * size
