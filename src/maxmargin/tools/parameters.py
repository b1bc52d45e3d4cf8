# SPDX-License-Identifier: BSD-3-Clause
"""Checks of an estimator's parameters: scikit-learn's form of error, and then the cure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def wrong(owner: object, name: str, value: Any, expected: str, cure: str = "") -> ValueError:
    """The error of scikit-learn's form for a parameter, followed by what to do."""
    message = f"The {name!r} parameter of {type(owner).__name__} must be {expected}. Got {value!r} instead."
    return ValueError(f"{message} {cure}".rstrip())


def check_number(
    owner: object,
    name: str,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    cure: str = "",
) -> float:
    """A finite real number in the range."""
    value: Any = getattr(owner, name)
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer beyond all floats
            number = math.inf
        if math.isfinite(number) and number > above and number >= at_least:
            return number
    bound = f"({above}, inf)" if above > -math.inf else f"[{at_least}, inf)"
    raise wrong(owner, name, value, f"a float in the range {bound}", cure)


def check_count(owner: object, name: str, at_least: int, cure: str = "") -> int:
    """A whole number of at least so many."""
    value = getattr(owner, name)
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least:
        return int(value)
    raise wrong(owner, name, value, f"an int in the range [{at_least}, inf)", cure)


def check_choice(owner: object, name: str, choices: Iterable[Any], cure: str = "") -> Any:
    """One of a few values."""
    value = getattr(owner, name)
    choices = list(choices)
    if any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        return value
    listed = ", ".join(map(repr, choices))
    raise wrong(owner, name, value, f"one of {listed}", cure)
