# SPDX-License-Identifier: BSD-3-Clause
"""Exact numbers: fractions, vectors of fractions, and intervals around what is not a fraction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

_DIGITS = 80
"""Decimal digits of an exponential or a logarithm before it is widened."""
_BITS = 240
"""Binary places at which the ends of intervals are cut off, outwards: 72 decimal ones."""
_FAR = 700
"""An exponential of less than minus this lies between 0 and a power of 2."""
_NEAR = Context(prec=_DIGITS)
_SCALE = Decimal(2**_BITS)


class Interval(NamedTuple):
    """Two numbers that some number lies between, or is."""

    low: Fraction
    high: Fraction

    @classmethod
    def exactly(cls, number: Fraction) -> Interval:
        """The interval that is one number."""
        return cls(number, number)

    @property
    def is_number(self) -> bool:
        """Whether it is known to be one number; then its ends are the same object."""
        return self.low is self.high

    def plus(self, number: Fraction) -> Interval:
        """The interval, moved."""
        if self.is_number:
            return Interval.exactly(self.low + number)
        return Interval(self.low + number, self.high + number)

    def times(self, factor: Fraction | int) -> Interval:
        """The interval, stretched; a negative factor exchanges its ends."""
        if self.is_number:
            return Interval.exactly(self.low * factor)
        ends = self.low * factor, self.high * factor
        return Interval(*ends) if factor >= 0 else Interval(*reversed(ends))

    def product(self, other: Interval) -> Interval:
        """All products of a number of each."""
        ends = [first * second for first in self for second in other]
        return Interval(min(ends), max(ends))


def total(numbers: Iterable[Fraction]) -> Fraction:
    """The exact sum: all numbers are brought to one denominator, and whole numbers are added."""
    numbers = list(numbers)
    denominator = math.lcm(*(number.denominator for number in numbers))
    return Fraction(sum(n.numerator * (denominator // n.denominator) for n in numbers), denominator)


def sum_of(intervals: Iterable[Interval]) -> Interval:
    """The interval of the sum."""
    intervals = list(intervals)
    low = total(each.low for each in intervals)
    if all(each.is_number for each in intervals):
        return Interval.exactly(low)
    return Interval(low, total(each.high for each in intervals))


class Vector:
    """A vector of fractions, zero wherever nothing is stored: whole numbers over one denominator."""

    def __init__(self, entries: Mapping[int, float | Fraction]) -> None:
        ratios = {place: number.as_integer_ratio() for place, number in entries.items() if number != 0}
        self.denominator = math.lcm(*(bottom for _, bottom in ratios.values()))
        self.numerators = {
            place: top * (self.denominator // bottom) for place, (top, bottom) in ratios.items()
        }

    @classmethod
    def of(cls, numbers: Iterable[float | Fraction]) -> Vector:
        """The vector of numbers that are listed one after the other."""
        return cls(dict(enumerate(numbers)))

    def __getitem__(self, place: int) -> Fraction:
        return Fraction(self.numerators.get(place, 0), self.denominator)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector):
            return NotImplemented
        places = self.numerators.keys() | other.numerators.keys()
        return all(self[place] == other[place] for place in places)

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def square(self) -> Fraction:
        """The inner product with itself."""
        return self.dot(self)

    @property
    def magnitudes(self) -> list[Fraction]:
        """The magnitudes of what is stored."""
        return [Fraction(abs(number), self.denominator) for number in self.numerators.values()]

    def dot(self, other: Vector) -> Fraction:
        """The inner product, exactly."""
        few, many = sorted((self.numerators, other.numerators), key=len)
        top = sum(number * many.get(place, 0) for place, number in few.items())
        return Fraction(top, self.denominator * other.denominator)


def combination(coefficients: Iterable[Fraction], vectors: Iterable[Vector]) -> Vector:
    """``sum_i coefficient_i vector_i``, exactly."""
    pairs = [(c, vector) for c, vector in zip(coefficients, vectors, strict=True) if c != 0]
    bottoms = [coefficient.denominator * vector.denominator for coefficient, vector in pairs]
    result = Vector({})
    result.denominator = math.lcm(*bottoms)
    sums = result.numerators
    for (coefficient, vector), bottom in zip(pairs, bottoms, strict=True):
        factor = coefficient.numerator * (result.denominator // bottom)
        for place, number in vector.numerators.items():
            sums[place] = sums.get(place, 0) + factor * number
    return result


def exponential(x: Fraction) -> Interval:
    """An interval around ``exp(x)`` for x of at most 0."""
    if x > 0:
        raise ValueError(f"The argument of an exponential must be at most 0. Got {float(x):g} instead.")
    if x < -_FAR:
        return Interval(Fraction(0), Fraction(1, 2**_FAR))
    if x == 0:
        return Interval.exactly(Fraction(1))
    # The argument is at most 700 and off by a share of 1e-80, the exponential by another: 1e-76 in all.
    low, high = _around(_NEAR.exp(_decimal(x)))
    return Interval(max(low, Fraction(0)), high)


def logarithm(x: Fraction) -> Interval:
    """An interval around the natural logarithm of a positive number."""
    # An argument that is off by a share of 1e-80 moves the logarithm by as much. That is less than 10,000,
    # for fractions of up to 14,000 binary digits, so its own rounding is less than 1e-76.
    return _around(_NEAR.ln(_decimal(x)))


def root_above(x: Fraction) -> Fraction:
    """A number that is not below the square root of x, and hardly above it."""
    if x == 0:
        return x
    top = math.isqrt((x.numerator * x.denominator) << (2 * _BITS)) + 1
    return Fraction(top, x.denominator << _BITS)


def _decimal(x: Fraction) -> Decimal:
    """The decimal number of so many digits that is next to x."""
    return _NEAR.divide(Decimal(x.numerator), Decimal(x.denominator))


def _around(value: Decimal) -> Interval:
    """An interval around every number that is at most 1e-76 from this one: 2^-240 is larger than that."""
    below = math.floor(_NEAR.multiply(value, _SCALE))
    return Interval(Fraction(below - 1, 2**_BITS), Fraction(below + 2, 2**_BITS))
