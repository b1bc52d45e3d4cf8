# SPDX-License-Identifier: BSD-3-Clause
"""Kernels as names and numbers, which a model file can hold."""

from __future__ import annotations

import math
from functools import reduce
from operator import add, mul
from typing import Any

from maxmargin.kernels.base import (
    KINDS,
    ChiSquared,
    Combination,
    Factor,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)

_MOST_TERMS = 1000
"""Terms of a sum that a file may hold."""
_MOST_FACTORS = 64
"""Factors of a product that a file may hold."""


def describe(kernel: Kernel) -> dict[str, Any]:
    """The kernel as names and numbers, from which ``from_description`` makes an equal one.

    ``{"kernel": "gaussian", "gamma": 0.5}``; sums, products and multiples as
    ``{"kernel": "sum", "terms": [{"coefficient": 2.0, "factors": [...]}, ...]}``.
    """
    if not isinstance(kernel, Combination):
        for name, (kind, parameters) in KINDS.items():
            if type(kernel) is kind:
                return {"kernel": name, **{key: _plain(kernel, key) for key in parameters}}
        raise ValueError(
            f"A kernel of type {type(kernel).__name__} cannot be written to a file. Use one of those that "
            "maxmargin.kernels computes, or compute the matrix and use kernel='precomputed'."
        )
    if len(kernel.terms) > _MOST_TERMS or any(len(factors) > _MOST_FACTORS for _, factors in kernel.terms):
        raise ValueError(
            f"A kernel with more than {_MOST_TERMS} terms, or more than {_MOST_FACTORS} factors in one of "
            "them, cannot be written to a file. Compute the matrix and use kernel='precomputed'."
        )
    terms = [
        {"coefficient": coefficient, "factors": [describe(_kernel_of(factor)) for factor in factors]}
        for coefficient, factors in kernel.terms
    ]
    return {"kernel": "sum", "terms": terms}


def from_description(description: Any) -> Kernel:
    """The kernel that was described; whatever else comes gives a ValueError that says what is wrong."""
    if not (isinstance(description, dict) and description.get("kernel") == "sum"):
        return _simple(description, "The description of the kernel")
    _check_keys(description, ("kernel", "terms"), "The description of the kernel")
    terms = _list(description["terms"], _MOST_TERMS, "The terms of the kernel")
    return reduce(add, [_term(term, f"Term {k} of the kernel") for k, term in enumerate(terms)])


def _plain(kernel: Kernel, name: str) -> int | float:
    value = getattr(kernel, name)
    return int(value) if name == "degree" else float(value)


def _kernel_of(factor: Factor) -> Kernel:
    """The kernel that has this one factor."""
    common, shape, gamma, shift, degree = factor
    if shape == "exponential":
        if common == "product":
            return Gaussian(gamma)
        return Laplacian(gamma) if common == "minimum" else ChiSquared(gamma)
    if shape == "tanh":
        return Sigmoid(gamma, shift)
    linear = (gamma, shift, degree) == (1.0, 0.0, 1)
    return Linear() if linear else Polynomial(degree, gamma, shift)


def _term(value: Any, where: str) -> Kernel:
    _check_keys(value, ("coefficient", "factors"), where)
    coefficient = _number(value["coefficient"], f"The coefficient of {_lower(where)}")
    if not coefficient > 0:
        raise _wrong(f"The coefficient of {_lower(where)}", "above 0", value["coefficient"])
    factors = _list(value["factors"], _MOST_FACTORS, f"The factors of {_lower(where)}")
    product = reduce(mul, [_simple(factor, f"A factor of {_lower(where)}", True) for factor in factors])
    return product if coefficient == 1.0 else coefficient * product


def _simple(value: Any, where: str, factor: bool = False) -> Kernel:
    name = value.get("kernel") if isinstance(value, dict) else None
    known = [kind for kind in KINDS if not (factor and kind == "precomputed")]
    if not (isinstance(name, str) and name in known):
        raise _wrong(where, f"an object whose 'kernel' is one of {', '.join(known)}", value)
    kind, parameters = KINDS[name]
    _check_keys(value, ("kernel", *parameters), where)
    checked = {
        key: (_whole_number if key == "degree" else _number)(value[key], f"{key!r} of {_lower(where)}")
        for key in parameters
    }
    return kind(**checked)


def _check_keys(value: Any, expected: tuple[str, ...], where: str) -> None:
    if not (isinstance(value, dict) and set(value) == set(expected)):
        raise _wrong(where, f"an object with exactly {', '.join(expected)}", value)


def _list(value: Any, most: int, where: str) -> list[Any]:
    if not (isinstance(value, list) and 1 <= len(value) <= most):
        raise _wrong(where, f"a list of 1 to {most} objects", value)
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _wrong(where, "a finite number", value)


def _whole_number(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(where, "a whole number", value)
    return value


def _lower(where: str) -> str:
    return where[0].lower() + where[1:]


def _wrong(where: str, expected: str, value: Any) -> ValueError:
    shown = ascii(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return ValueError(f"{where} must be {expected}. Got {shown} instead.")
