# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps: scikit-learn transformers to put before a linear classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maxmargin.tools.lazy_names import lazy_names

if TYPE_CHECKING:
    from maxmargin.features.buckets import Buckets
    from maxmargin.features.distances import Distances
    from maxmargin.features.exact_kernel.bounds import (
        ExactKernelBound,
        ExactKernelBounds,
        exact_kernel_bound,
    )
    from maxmargin.features.exact_kernel.error_estimate import ErrorEstimate
    from maxmargin.features.interactions import Interactions
    from maxmargin.features.log import Log
    from maxmargin.features.monomials import Monomials
    from maxmargin.features.nystroem import Nystroem
    from maxmargin.features.paraboloid import Paraboloid
    from maxmargin.features.polar import Polar
    from maxmargin.features.polynomial_sketch import PolynomialSketch
    from maxmargin.features.pretrained import Pretrained
    from maxmargin.features.random_fourier import RandomFourier
    from maxmargin.features.squares import Squares

# Imported when they are first asked for: each needs parts of scikit-learn that take a while.
_HOME = {
    "Buckets": "buckets",
    "Distances": "distances",
    "ErrorEstimate": "exact_kernel.error_estimate",
    "ExactKernelBound": "exact_kernel.bounds",
    "ExactKernelBounds": "exact_kernel.bounds",
    "Interactions": "interactions",
    "Log": "log",
    "Monomials": "monomials",
    "Nystroem": "nystroem",
    "Paraboloid": "paraboloid",
    "Polar": "polar",
    "PolynomialSketch": "polynomial_sketch",
    "Pretrained": "pretrained",
    "RandomFourier": "random_fourier",
    "Squares": "squares",
    "exact_kernel_bound": "exact_kernel.bounds",
}

__all__ = [
    "Buckets",
    "Distances",
    "ErrorEstimate",
    "ExactKernelBound",
    "ExactKernelBounds",
    "Interactions",
    "Log",
    "Monomials",
    "Nystroem",
    "Paraboloid",
    "Polar",
    "PolynomialSketch",
    "Pretrained",
    "RandomFourier",
    "Squares",
    "exact_kernel_bound",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
