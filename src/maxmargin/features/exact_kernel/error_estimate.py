# SPDX-License-Identifier: BSD-3-Clause
"""How well the inner products of a map agree with the kernel that it stands for, on pairs of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.features.kernel_values import pair_values
from maxmargin.kernels import Kernel
from maxmargin.types import Indices, Vector

PAIRS = 1000
"""How many pairs are drawn, where there are as many: the estimate is then good to a few per cent."""
_AT_ONCE = 100
"""A kernel answers with the values of all pairs, of which the diagonal is read: small blocks waste less."""


@dataclass(frozen=True)
class ErrorEstimate:
    """The error of ``<phi(x), phi(z)>`` against ``k(x, z)`` over pairs of different rows.

    NaN where there were too few rows to measure.
    """

    relative: float
    """Root mean square error divided by the root mean square of the kernel."""
    standard_error: float
    """The standard error of ``relative``, which is an estimate from this many pairs."""
    absolute: float
    """The root mean square of the errors."""
    pairs: int


def draw_pairs(rows: Indices, random: np.random.Generator) -> Indices:
    """Two columns of row numbers, no row twice: the pairs are then independent."""
    count = min(PAIRS, len(rows) // 2)
    return random.permutation(rows)[: 2 * count].reshape(count, 2)


def measure_error(X: Any, pairs: Indices, mapped: Callable[[Any], Any], kernel: Kernel) -> ErrorEstimate:
    """Compares the inner products of the map with the kernel on the pairs."""
    if not len(pairs):
        return ErrorEstimate(math.nan, math.nan, math.nan, 0)
    errors, values = [], []
    for begin in range(0, len(pairs), _AT_ONCE):
        first, second = (X[rows] for rows in pairs[begin : begin + _AT_ONCE].T)
        exact = np.diagonal(pair_values(kernel, first, second))
        products = np.einsum("ij,ij->i", mapped(first), mapped(second), dtype=np.float64)
        errors.append(products - exact)
        values.append(exact)
    return _estimate(np.concatenate(errors), np.concatenate(values))


def _estimate(errors: Vector, exact: Vector) -> ErrorEstimate:
    scale = float(np.sqrt(np.mean(exact**2)))
    absolute = float(np.sqrt(np.mean(errors**2)))
    if scale == 0.0:
        return ErrorEstimate(math.nan, math.nan, absolute, len(errors))
    relative = absolute / scale
    # The delta method for the root of a ratio of two means, each in its own unit: the ratio itself may have
    # no square where the kernel is nearly 0.
    deviations = (errors / absolute) ** 2 - (exact / scale) ** 2 if absolute > 0.0 else 0.0 * exact
    standard_error = 0.5 * relative * float(np.sqrt(np.mean(deviations**2) / len(errors)))
    return ErrorEstimate(relative, standard_error if len(errors) > 1 else math.nan, absolute, len(errors))
