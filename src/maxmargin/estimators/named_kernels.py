# SPDX-License-Identifier: BSD-3-Clause
"""The kernel that parameters of an estimator stand for: names, gamma="scale" or "auto", callables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.kernels.base import KERNEL_NAMES, Function, Kernel, Precomputed, kernel_from_name
from maxmargin.kernels.validity import doubt_about
from maxmargin.tools.parameters import check_choice, wrong
from maxmargin.types import Vector

_WITHOUT_GAMMA = ("linear", "precomputed")


def is_precomputed(kernel: Any) -> bool:
    """Whether the values of the kernel are given in the place of the data."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def is_function(kernel: Any) -> bool:
    """Whether the kernel is a user's function, which alone knows what its arguments are."""
    return isinstance(kernel, Function) or (callable(kernel) and not isinstance(kernel, Kernel))


def check_kernel(estimator: Any) -> None:
    """``kernel``, before any data are seen."""
    kernel = estimator.kernel
    if isinstance(kernel, str):
        check_choice(
            estimator, "kernel", KERNEL_NAMES, "A callable or a maxmargin.kernels object is taken too."
        )
    elif not callable(kernel):
        names = ", ".join(map(repr, KERNEL_NAMES))
        raise wrong(
            estimator, "kernel", kernel, f"one of {names}, a callable, or a maxmargin.kernels object"
        )


def find_kernel(estimator: Any, X: Any, weights: Vector | None) -> Kernel:
    """The kernel that the parameters stand for on X, with gamma as a number."""
    kernel = estimator.kernel
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        return Function(kernel)
    gamma = 1.0 if kernel in _WITHOUT_GAMMA else find_gamma(estimator.gamma, X, weights)
    return kernel_from_name(kernel, int(estimator.degree), gamma, float(estimator.coef0))


def find_gamma(gamma: str | float, X: Any, weights: Vector | None) -> float:
    """The value of gamma: "scale" and "auto" as scikit-learn defines them.

    A weight counts as a repetition of its row, also in the variance of X.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / float(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        if not sparse.issparse(X) and (weights is None or (weights == weights[0]).all()):
            variance = float(X.var(dtype=np.float64))
        else:
            variance = _weighted_variance(X, weights)
        value = 1.0 / (float(X.shape[1]) * variance) if variance > 0 else 1.0
    if math.isfinite(variance) and math.isfinite(value):
        return value
    raise ValueError(
        f"gamma='scale' needs a variance of X that can be inverted in float64. Got {variance:g} instead. "
        "Scale the features, for instance with StandardScaler."
    )


def _weighted_variance(X: Any, weights: Vector | None) -> float:
    """The variance of all values of X, each counted as often as its row weighs, in double precision."""
    if sparse.issparse(X):
        means = np.asarray(X.mean(axis=1, dtype=np.float64)).ravel()
        squares = np.asarray(X.multiply(X).mean(axis=1, dtype=np.float64)).ravel()
        spreads = squares - means**2
    else:
        means = X.mean(axis=1, dtype=np.float64)
        spreads = X.var(axis=1, dtype=np.float64)
    mean = np.average(means, weights=weights)
    return float(np.average(spreads + (means - mean) ** 2, weights=weights))


def why_unproven(kernel: Kernel, X: Any, matrix: NDArray[Any] | None) -> str:
    """What is to be warned of where the function is not shown to be a kernel on these rows; else empty."""
    doubt = "" if kernel.is_known else doubt_about(kernel, X, matrix)
    if not doubt:
        return ""
    return (
        f"{doubt} Training goes on and ends, but without a kernel the problem is not convex: its "
        "certificate is no proof, and the model may be far from the best. The Gaussian kernel, or a "
        "polynomial one with coef0 >= 0, has no such trouble."
    )
