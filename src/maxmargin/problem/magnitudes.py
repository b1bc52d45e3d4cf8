# SPDX-License-Identifier: BSD-3-Clause
"""How large the numbers of a problem may be: float64 needs room for their squares and products.

No w that multipliers make is longer than ``sum_i C_i`` times the longest row. The objective squares it, and
so do proofs. Beyond these limits an answer would be infinite, or not a number; so they are refused.
"""

from __future__ import annotations

import math

LARGEST = 1e100
"""The largest sum of costs, length of a row and value of the constant feature."""
_LARGEST_PRODUCT = 1e150
"""The largest length of a w: its square is just a number of float64."""
_SCALE = "Scale the features, for instance by sklearn.preprocessing.StandardScaler or MaxAbsScaler."
_KERNEL = "Scale the features, or use a smaller gamma, coef0 or degree."
_HARD = "A C without end leads to the hard margin, LinearSVC(C=numpy.inf)."


def refuse_extremes(total_cost: float, largest_length: float, *, kernel: bool = False) -> None:
    """Raises ValueError where costs, rows or both are beyond what float64 can square."""
    too_large = f"Float64 has no room for the squares of such numbers: the limit is {LARGEST:g}."
    if not total_cost <= LARGEST:
        raise ValueError(
            f"C times the weights of all rows sums up to {total_cost:.3g}. {too_large} Use a smaller C, or "
            f"smaller weights. {_HARD}"
        )
    if not largest_length <= LARGEST:
        what = "The image of a row under the kernel" if kernel else "A row of X"
        cure = _KERNEL if kernel else _SCALE
        raise ValueError(f"{what} has the length {largest_length:.3g}. {too_large} {cure}")
    if total_cost * largest_length > _LARGEST_PRODUCT:
        raise ValueError(
            f"C times the weights of all rows sums up to {total_cost:.3g}, and the longest row has the "
            f"length {largest_length:.3g}: their product, the length that w may have, is above "
            f"{_LARGEST_PRODUCT:g}, and its square beyond float64. Use a smaller C, or smaller weights. "
            f"{_KERNEL if kernel else _SCALE}"
        )


def refuse_tiny(largest_length: float) -> None:
    """Raises ValueError where rows are so short that a w with margins of 1 could not be squared."""
    if 0.0 < largest_length < 1.0 / LARGEST:
        raise ValueError(
            f"The longest row has the length {largest_length:.3g}. Margins of 1 need a w that is longer "
            f"than {LARGEST:g}, and float64 has no room for the squares of such numbers. {_SCALE}"
        )


def is_within_limits(number: float) -> bool:
    """Whether neither the square of a number above 0 nor its inverse leaves the range of float64."""
    return math.isfinite(number) and 1.0 / LARGEST <= number <= LARGEST
