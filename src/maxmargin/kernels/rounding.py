# SPDX-License-Identifier: BSD-3-Clause
"""How far the values of a kernel that the core computes can be from the exact ones.

Every kernel offered is a sum of products of factors, and each factor is a power, an exponential or a tanh
of what two rows have in common (core/kernel/kernels.hpp). What they have in common is at most the root of
what each has in common with itself. So for every kernel there are lengths r_i with

    |k(x_i, x_j)| <= r_i r_j      and      |computed value - k(x_i, x_j)| <= value_error r_i r_j

in which a kernel is no harder than the inner product, whose lengths are |x_i|.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from maxmargin import core
from maxmargin.kernels.base import Factor, Kernel
from maxmargin.problem.rows import UNIT
from maxmargin.types import Vector

_EXPONENTIAL = 16.0
"""Roundings that the core's exponential, and a tanh made from it, may be off by: four times what it is."""
_STEEPEST = 0.86
"""The largest slope of exp(-gamma t^2), in units of the root of gamma: sqrt(2 / e), rounded up."""
_STEEPEST_AT = math.exp(-0.5)
"""The value of a Gaussian where k sqrt(-log k) is largest."""
DIRECT_COLUMNS = 64
"""Columns up to which distances are summed up directly and lose no digits: see core/kernel/encoded.hpp."""


WHOLE_NUMBERS = 2.0**51
"""The squared length of a row of whole numbers, up to which sums of products are exact in any order: four
of them are within the whole numbers that float64 holds."""
_AFTER_EXACT_SUMS = 4.0
"""Roundings between a sum that is exact and its shape, such as gamma times the sum, with one to spare."""


class RowFacts(Protocol):
    """What bounds have to know of rows, wherever these lie."""

    @property
    def count(self) -> int:
        """The number of rows."""

    @property
    def columns(self) -> int:
        """The number of columns."""

    @property
    def longest(self) -> int:
        """The largest number of values of a row that are not 0, or of those that are stored."""

    def is_dense_for(self, kernel: Kernel) -> bool:
        """Whether values of the kernel are sums over all columns, in double precision."""

    def powers(self, common: str, gamma: float, shift: float, degree: int) -> Vector:
        """``(gamma s_i + shift)^degree`` of what each row has in common with itself."""


class FactsInMemory:
    """Of rows as the core reads them."""

    def __init__(self, data: core.Data) -> None:
        self._data = data
        self.count, self.columns, self.longest = data.count, data.columns, data.longest

    def is_dense_for(self, kernel: Kernel) -> bool:
        """Whether they are neither sparse nor held in fewer bits."""
        return core.kernel_encoding(kernel.compiled, self._data) == "dense"

    def powers(self, common: str, gamma: float, shift: float, degree: int) -> Vector:
        """``(gamma s_i + shift)^degree`` of what each row has in common with itself."""
        out = np.empty(self.count)
        power = core.KernelSum([(1.0, [(common, "power", gamma, shift, degree)])])
        core.kernel_diagonal(power, self._data, out, core.ALL_CORES)
        return out


class Rounding(NamedTuple):
    """Bounds on the values of a kernel, and on their errors."""

    lengths: Vector
    """One for each row."""
    value_error: float
    """How far a value can be off, in units of the lengths of both rows."""
    moved: float = 0.0
    """How far a Gaussian sees two rows moved together, in units of 1 / sqrt(gamma), where packed rows are
    not quite those of the data; not a part of ``value_error``."""

    @property
    def simple(self) -> tuple[Vector, float]:
        """The lengths and one error for all that a value is off by."""
        return self.lengths, self.value_error + _STEEPEST * self.moved

    def off_by_moving(self, coefficients: float, largest: float) -> float:
        """What ``moved`` is worth in a sum of values, at most.

        ``coefficients`` are the sum of magnitudes c_j, ``largest`` is the largest sum of c_j k(x_i, x_j).
        A value k falls by 2 k sqrt(-log k) times what the rows are moved by. That is a concave function of
        k, so its sum is at most that of as many equal values.
        """
        mean = min(largest / coefficients * (1.0 + 1e-6), _STEEPEST_AT) if coefficients > 0.0 else 0.0
        slope = 2.0 * mean * math.sqrt(-math.log(mean)) if mean > 0.0 else 0.0
        return 1.01 * coefficients * self.moved * (slope + self.moved)


def has_exact_sums(kernel: Kernel, data: core.Data, *, packed: bool = True) -> bool:
    """Whether sums of products and of magnitudes over the columns are whole numbers, and not rounded."""
    if packed and core.kernel_encoding(kernel.compiled, data) == "bytes":
        return False  # which are multiples of a number that may be rounded itself
    return core.largest_of_whole_numbers(data) <= WHOLE_NUMBERS


def rounding_of(
    kernel: Kernel, data: core.Data, *, packed: bool = True, exact_sums: bool | None = None
) -> Rounding:
    """The bounds for all rows in memory; the values of a precomputed kernel are taken as they are given.

    ``packed`` rows may be held as multiples of one number, to the rounding of their type. ``exact_sums``
    says what ``has_exact_sums`` would, where the rows meet others that have to have them, too.
    """
    if exact_sums is None:
        exact_sums = has_exact_sums(kernel, data, packed=packed)
    packing = core.packing_error(kernel.compiled, data) if packed else (0.0, 0.0)
    return bounds_for(kernel, FactsInMemory(data), exact_sums, packing)


def bounds_for(
    kernel: Kernel, rows: RowFacts, exact_sums: bool, packing_error: tuple[float, float] = (0.0, 0.0)
) -> Rounding:
    """The bounds for all rows; ``packing_error`` is what the core says of rows that it holds packed.

    Zeros add nothing to a sum and round nothing, so a sum has as many terms as a row has values.
    """
    squares, worst = np.zeros(rows.count), 0.0
    terms = float(rows.longest) + 8.0
    off, packing = packing_error
    first = kernel.terms[0][1]
    gaussian = len(kernel.terms) == len(first) == 1 and first[0][:2] == ("product", "exponential")
    moved = 2.0 * off * math.sqrt(first[0][2]) if gaussian else 0.0
    packing = 0.0 if gaussian else packing
    # Of the sums in an exponent, the core takes squares of differences alone directly.
    sums = {factor[:2] for _, factors in kernel.terms for factor in factors}
    direct = sums == {("product", "exponential")} and rows.columns <= DIRECT_COLUMNS
    direct = direct and rows.is_dense_for(kernel)
    if direct:
        terms = min(2.0 * terms, float(rows.columns) + 8.0)
    for coefficient, factors in kernel.terms:
        size, error = np.full(rows.count, coefficient), (len(factors) + len(kernel.terms) + 2.0) * UNIT
        for factor in factors:
            exact = exact_sums and factor[0] in ("product", "minimum")
            own, own_error = _of_factor(factor, rows, terms, packing, direct, exact)
            size *= own
            error += own_error + error * own_error
        squares += size
        worst = max(worst, error)
    return Rounding(np.sqrt(squares) * (1.0 + 4.0 * terms * UNIT), 1.01 * worst, moved)


def _of_factor(
    factor: Factor, rows: RowFacts, terms: float, packing: float, direct: bool, exact: bool
) -> tuple[Vector, float]:
    """The squares of lengths for one factor, and its error relative to them; ``exact`` are its sums."""
    common, shape, gamma, shift, degree = factor
    if exact:
        terms, direct = _AFTER_EXACT_SUMS, True  # no digits are lost in a difference of exact sums
    own = rows.powers(common, gamma, abs(shift), degree)
    np.maximum(own, 0.0, out=own)
    if common == "given":
        return own, 0.0
    most = float(own.max(initial=0.0))
    if shape == "power":
        return own, degree * ((terms + 2.0) * UNIT + 2.1 * packing)
    ones = np.ones(rows.count)
    if shape == "tanh":
        return ones, min((terms * UNIT + 2.1 * packing) * most, 2.0) + _EXPONENTIAL * UNIT
    # The exponent is a sum of numbers that are not negative, or else a difference of such sums.
    exponent = terms * UNIT * (1.0 if direct else 4.0 * most)
    moved = 2.0 * packing * math.sqrt(most)  # both rows, in units of 1 / sqrt(gamma)
    return ones, min(math.expm1(min(exponent, 1.0)) + _STEEPEST * moved, 1.0) + _EXPONENTIAL * UNIT
