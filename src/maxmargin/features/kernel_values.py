# SPDX-License-Identifier: BSD-3-Clause
"""Values of a kernel between a few fixed rows and blocks of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.core import Budget
from maxmargin.kernels import Function, Gaussian, Kernel
from maxmargin.problem.rows import Rows

_ONE_THREAD = Budget(float("inf"), 1)
"""One block has one thread, since the blocks are worked on side by side already."""
_LARGEST_TERM = 32.0
"""Terms of this size are off by 2e-6 in float32, and so is the exponential of their sum."""


Values = Callable[[Any], NDArray[Any]]
"""A function from a block of rows to ``k(x, z)`` for all its x and all fixed z."""


def values_at(kernel: Kernel, fixed: Any, like: Any) -> Values:
    """The kernel at fixed rows, for blocks of the form of ``like`` and to the precision of its values."""
    exactly = _values_in_float64(kernel, fixed, like)
    if isinstance(kernel, Gaussian) and like.dtype == np.float32:
        return _gaussian_in_float32(kernel.gamma, fixed, exactly)
    return exactly


def pair_values(kernel: Kernel, X: Any, Z: Any) -> NDArray[np.float64]:
    """All values between two small matrices, in float64."""
    return _values_in_float64(kernel, Z, X)(X)


def _values_in_float64(kernel: Kernel, fixed: Any, like: Any) -> Values:
    if isinstance(kernel, Function):
        return lambda block: kernel(block, fixed)
    seconds = _rows(_in_form_of(like, fixed))
    return lambda block: kernel(_rows(block), seconds, _ONE_THREAD)


def _gaussian_in_float32(gamma: float, fixed: Any, exactly: Values) -> Values:
    """``exp(2 gamma <x, z> - gamma |x|^2 - gamma |z|^2)`` by one product of matrices: about twice as fast.

    The three terms cancel each other, so it serves blocks where they are small; others go to ``exactly``.
    """
    Z = (fixed.toarray() if sparse.issparse(fixed) else fixed).astype(np.float32, copy=False)
    Z_norms = gamma * _squared_norms(Z)
    scaled = np.ascontiguousarray(np.float32(2.0 * gamma) * Z.T)
    Z_small = Z_norms.max() <= _LARGEST_TERM

    def values(block: Any) -> NDArray[Any]:
        norms = gamma * _squared_norms(block)
        if not Z_small or norms.max() > _LARGEST_TERM:
            return exactly(block)
        exponents: NDArray[Any] = np.asarray(block @ scaled)
        exponents -= norms[:, np.newaxis].astype(np.float32)
        exponents -= Z_norms.astype(np.float32)
        np.minimum(exponents, 0.0, out=exponents)
        np.exp(exponents, out=exponents)
        return exponents

    return values


def _squared_norms(X: Any) -> NDArray[np.float64]:
    if sparse.issparse(X):
        return np.ravel(X.astype(np.float64).power(2).sum(axis=1))
    norms: NDArray[np.float64] = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return norms


def _rows(X: Any) -> Rows:
    # Dense rows stay dense: the core compares rows of one kind.
    return Rows(X, check_finite=False, keep_zeros=True)


def _in_form_of(like: Any, fixed: Any) -> Any:
    """The same rows with values, and indices if they are sparse, of the types that ``like`` has."""
    if not sparse.issparse(like):
        return (fixed.toarray() if sparse.issparse(fixed) else fixed).astype(like.dtype, copy=False)
    matrix = sparse.csr_array(fixed, dtype=like.dtype, copy=True)
    matrix.indices = matrix.indices.astype(like.indices.dtype)
    matrix.indptr = matrix.indptr.astype(like.indptr.dtype)
    return matrix
