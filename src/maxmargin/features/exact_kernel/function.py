# SPDX-License-Identifier: BSD-3-Clause
"""Functions of a kernel's own space, ``f = sum_j c_j k(z_j, .)``: their values and their norms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from maxmargin.features.kernel_values import pair_values
from maxmargin.features.nystroem import Nystroem
from maxmargin.kernels import Function, Kernel
from maxmargin.kernels.expansions import Among, Expansions
from maxmargin.types import Vector

_ROUNDING = 4.0 * np.finfo(np.float64).eps
"""The relative error of a sum in double precision, with a factor for the errors of the kernel's values."""
_RIDGE = 1e-9
"""The share of its mean that is added to the diagonal of a matrix: rounding takes small eigenvalues."""


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """``sum_j c_j k(z_j, .)``, in double precision whatever the points' own."""

    kernel: Kernel
    points: Any
    """The points z_j, a dense or a CSR matrix."""
    coefficients: Vector

    def at(self, X: Any) -> Vector:
        """f(x) for every row of X: a kernel value for each of them and each point."""
        segment = np.array([0, len(self.coefficients)])
        points = self.points.astype(np.float64, copy=False)
        if isinstance(self.kernel, Function):
            points = Among(points, np.arange(len(self.coefficients)))
        return np.ravel(Expansions(self.kernel, points, self.coefficients[np.newaxis], segment)(X))

    @cached_property
    def squared_norm(self) -> float:
        """``|f|^2 = c' K c`` in the space of the kernel: a kernel value for each pair of points."""
        return float(self.coefficients @ self.at(self.points))


def in_span(features: Nystroem, w: Vector) -> KernelFunction:
    """``x -> <w, phi(x)>`` for Nystroem's phi: ``<w, M' k(x)> = sum_j (M w)_j k(z_j, x)``.

    M has the eigenvectors of K = K(Z, Z), divided by the roots of their eigenvalues and turned, without
    those that are left out. So ``M' K M = 1`` and ``|f|^2 = w' M' K M w = |w|^2``: the map is an isometry
    into the kernel's space, but for the rounding of M. Bounds need not believe in it: whatever M is, M w
    are coefficients of a function in that space, whose norm and values are computed anew.
    """
    M = features.projection_.astype(np.float64, copy=False)
    return KernelFunction(features.kernel_, features.sample_, M @ w)


def rounding_of_norm(function: KernelFunction) -> float:
    """What the sums of ``squared_norm`` may have lost: coefficients far larger than f cancel each other."""
    size = np.abs(function.coefficients)
    values = np.abs(pair_values(function.kernel, function.points, function.points))
    return _ROUNDING * float(size @ values @ size)


def squared_norm_bound(function: KernelFunction, landmarks: int, group: int) -> float:
    """An upper bound on ``|f|^2`` without the kernel between all pairs of points.

    f is a sum of parts f_B, one for each group of points, and h_B is about the part's projection into the
    span of a few of the points, the landmarks. With h the sum of the h_B,

        |f|^2 = |h|^2 + 2 <h, f - h> + |f - h|^2,        |f - h| <= sum_B |f_B - h_B|

    where the last is the triangle inequality and all the rest is computed. It holds for any h_B in the
    span, so no accuracy of the projection is presumed. Needs, per point, the kernel at the landmarks and at
    its own group. Groups are random: parts of mixed signs are smaller than parts that agree.
    """
    random = np.random.default_rng(0)
    order = random.permutation(len(function.coefficients))
    Z = function.points[np.sort(order[:landmarks])].astype(np.float64, copy=False)
    K = pair_values(function.kernel, Z, Z)
    factor = cho_factor(K + _RIDGE * np.trace(K) / len(K) * np.eye(len(K)))
    order = random.permutation(order)
    h, values, remainder = np.zeros(len(K)), np.zeros(len(K)), 0.0
    for begin in range(0, len(order), group):
        members = np.sort(order[begin : begin + group])
        part = KernelFunction(function.kernel, function.points[members], function.coefficients[members])
        at_landmarks = part.at(Z)
        c = cho_solve(factor, at_landmarks)
        distance = part.squared_norm - 2.0 * float(c @ at_landmarks) + float(c @ K @ c)
        remainder += max(distance, 0.0) ** 0.5
        h += c
        values += at_landmarks
    return float(h @ K @ h) + 2.0 * float(h @ (values - K @ h)) + remainder**2
