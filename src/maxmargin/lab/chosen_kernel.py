# SPDX-License-Identifier: BSD-3-Clause
"""A kernel, or a sum or product of two, as the controls of a page choose it."""

from __future__ import annotations

import numpy as np

from maxmargin.kernels import Kernel
from maxmargin.kernels.base import KINDS, kernel_from_name
from maxmargin.lab.asked import Asked
from maxmargin.lab.scripts import CORNER, number
from maxmargin.types import Vector

NAMES = [name for name in KINDS if name != "precomputed"]
_HIGHEST_DEGREE = 8
"""The highest degree of a polynomial: values of points of the page stay below 10^12."""


def read_kernel(asked: Asked) -> tuple[Kernel, str, bool]:
    """The kernel, the Python that makes it, and whether it needs points moved by ``CORNER``."""
    first, first_code = _one(asked, "")
    how = asked.choice("combine", ("alone", "sum", "product"))
    second, second_code = _one(asked, "2")
    harmonic = "ChiSquared" in first_code or (how != "alone" and "ChiSquared" in second_code)
    if how == "sum":
        return first + second, f"{first_code} + {second_code}", harmonic
    if how == "product":
        return first * second, f"{first_code} * {second_code}", harmonic
    return first, first_code, harmonic


def read_one_kernel(asked: Asked) -> tuple[Kernel, str, bool]:
    """The same where there is no second kernel."""
    kernel, code = _one(asked, "")
    return kernel, code, "ChiSquared" in code


def seen(X: Vector, harmonic: bool) -> Vector:
    """The points as the kernel sees them."""
    return X + np.array(CORNER) if harmonic else X


def _one(asked: Asked, which: str) -> tuple[Kernel, str]:
    name = asked.choice(f"kernel{which}", NAMES)
    degree = asked.whole(f"degree{which}", 1, _HIGHEST_DEGREE)
    gamma = asked.number(f"gamma{which}", 1e-3, 1e3)
    coef0 = asked.number(f"coef0{which}", -10.0, 10.0)
    kernel = kernel_from_name(name, degree, gamma, coef0)
    parameters = KINDS[name][1]
    given = {"degree": str(degree), "gamma": number(gamma), "coef0": number(coef0)}
    options = ", ".join(f"{parameter}={given[parameter]}" for parameter in parameters)
    return kernel, f"{type(kernel).__name__}({options})"
