# SPDX-License-Identifier: BSD-3-Clause
"""The values that a search tries: a list of them, or how many there are to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.tools.parameters import wrong
from maxmargin.types import Vector


def how_many(estimator: Any, name: str, cure: str) -> int | None:
    """The number of values to try, where a parameter says no more than that; None where it lists them."""
    given = getattr(estimator, name)
    if not isinstance(given, int | np.integer) or isinstance(given, bool):
        return None
    if given < 1:
        raise wrong(estimator, name, given, "an int in the range [1, inf)", cure)
    return int(given)


def listed(estimator: Any, name: str, values: Any, cure: str, *, zero: bool = False) -> Vector:
    """The values that a parameter lists, each above 0, or 0 as well where that is allowed."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    allowed = np.isfinite(array) & ((array >= 0) if zero else (array > 0))
    if array.ndim != 1 or not len(array) or not allowed.all():
        words = f"an int or a list of floats in the range {'[' if zero else '('}0, inf)"
        raise wrong(estimator, name, getattr(estimator, name), words, cure)
    return array


def tried_values(estimator: Any, name: str, made: Callable[[int], Vector], *, zero: bool = False) -> Vector:
    """The values that a parameter lists, or as many as it says, which are then ``made``."""
    least = "none below 0" if zero else "each above 0"
    cure = f"Give some values of {name.removesuffix('s')}, {least}, or how many of them to try."
    count = how_many(estimator, name, cure)
    if count is not None:
        return made(count)
    return listed(estimator, name, getattr(estimator, name), cure, zero=zero)
