# SPDX-License-Identifier: BSD-3-Clause
"""Kernels, their algebra, and the rows of a problem seen through one."""

from __future__ import annotations

from maxmargin.kernels.base import (
    ChiSquared,
    Function,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.validity import Validity, is_valid

__all__ = [
    "ChiSquared",
    "Function",
    "Gaussian",
    "Kernel",
    "KernelRows",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "Validity",
    "is_valid",
]
