# SPDX-License-Identifier: BSD-3-Clause
"""Mercer's condition, on the rows at hand.

A symmetric function k is an inner product of images, ``k(x, z) = <phi(x), phi(z)>``, if and only if all
its matrices are positive semidefinite (004, theorem 6.5): ``v'Kv = |sum_i v_i phi(x_i)|^2 >= 0``. So one
vector v with v'Kv < 0 proves that k is not a kernel. That no such vector is found proves nothing beyond the
rows looked at, and nothing of these, where the smallest eigenvalue is within the rounding of the values.

A fit needs less than a kernel: its w is made of its own rows, so weak duality holds where their matrix is
positive semidefinite. A Cholesky factor of the matrix, less what rounding may have added to it, shows that.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.kernels.base import Function, Kernel, Precomputed
from maxmargin.kernels.rounding import rounding_of
from maxmargin.problem.rows import UNIT, Matrix, Rows
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector

_EPSILON = float(np.finfo(np.float64).eps)
"""One unit in the last place of a float64 number near 1."""
_GIVEN_ROUNDING = 100.0
"""How many units in the last place of the largest value a given one may be off."""
_FEW = 20
"""Rows that a function is tried on first: often enough to refute it, in a thousandth of the time."""
_MOST_SHOWN = 1000
"""Rows whose matrix is factored as a whole, to show that it is positive definite: 30 ms."""


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
    K, lengths, error = _values(kernel, X, rows, matrix)
    errors = error * np.outer(lengths, lengths)
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


def doubt_about(kernel: Kernel, X: Any, matrix: Matrix | None = None) -> str:
    """Why a fit on the rows of X proves nothing: a sentence, or nothing where it does.

    It is for functions that are not kernels by themselves (``kernel.is_known``).
    ``matrix`` has all values of the kernel, if known. Values that are given, or computed by a user's
    function, are taken to be those of a kernel as long as 500 rows do not refute it. Those that the core
    computes are exact up to known bounds, and have to be shown to be a kernel's.
    """
    given = isinstance(kernel, Precomputed | Function)
    if isinstance(kernel, Function):
        kernel, X = Precomputed(), kernel(X) if matrix is None else matrix
    count = X.shape[0]
    validity = validity_on(kernel, X, np.linspace(0, count - 1, min(count, _FEW)).astype(np.intp), matrix)
    with one_blas_thread() if count > _FEW else nullcontext():
        if validity and (_clearly_valid(X) if given else _is_positive(kernel, X, matrix)):
            return ""
        if validity and count > _FEW:
            validity = is_valid(kernel, X, sample=50) and is_valid(kernel, X)
    if not validity:
        return str(validity)
    if given:
        return ""
    rest = f" More than {_MOST_SHOWN} rows are not looked at as a whole." if count > _MOST_SHOWN else ""
    return (
        f"Not shown to be a kernel: on {len(validity.rows)} rows the smallest eigenvalue of its matrix is "
        f"{validity.smallest_eigenvalue:.3g}, and rounding can be worth {validity.tolerance:.1g}.{rest}"
    )


def _clearly_valid(matrix: Any) -> bool:
    """Whether up to 500 rows have a Cholesky factor: found long before the smallest eigenvalue is."""
    rows = np.linspace(0, matrix.shape[0] - 1, min(matrix.shape[0], 500)).astype(np.intp)
    given = matrix[rows][:, rows]
    K = np.asarray(given.toarray() if sparse.issparse(given) else given, np.float64)
    shift = 1e-10 * float(np.abs(K).max())
    return bool(np.abs(K - K.T).max() <= shift) and _has_factor(K, shift)


def _is_positive(kernel: Kernel, X: Any, matrix: Matrix | None) -> bool:
    """Whether the exact matrix of all rows of X is positive definite for certain.

    With lengths r_i of the images, A_ij = K_ij / (r_i r_j) is at most 1 + e, off by at most e, the relative
    error of a value. So A is off by a matrix of norm at most n e. And a Cholesky factor, in whatever order
    it is computed, is that of a matrix that differs from A by at most about (n + 1) u times the trace, so
    by n (n + 1) u (Rump 2006). Where A has a factor even if its diagonal is smaller by the sum of the two,
    the exact matrix is positive definite; three times the second covers divisions that are products with
    inverses, and the rounding of A.
    """
    n = X.shape[0]
    if n > _MOST_SHOWN:
        return False
    K, lengths, error = _values(kernel, X, np.arange(n), matrix)
    scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    A = K * scale[:, np.newaxis] * scale
    return _has_factor(A, -1.01 * n * (error + 3.0 * (n + 8) * UNIT) * (1.0 + error))


def _has_factor(K: Matrix, shift: float) -> bool:
    """Whether the Cholesky factor exists, after ``shift`` was added to the diagonal."""
    try:
        np.linalg.cholesky(K + shift * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def _values(kernel: Kernel, X: Any, rows: Indices, matrix: Matrix | None) -> tuple[Matrix, Vector, float]:
    """The kernel matrix of some rows, and r and e: a value is off by at most e r_i r_j."""
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
        return K, np.ones(len(rows)), _GIVEN_ROUNDING * unit * float(np.abs(K).max())
    computed_from = Rows(X[rows] if matrix is None else X, check_finite=False)
    lengths, error = rounding_of(kernel, computed_from.stored_data).simple
    return K, lengths if matrix is None else lengths[rows], error


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
