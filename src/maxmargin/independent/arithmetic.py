# SPDX-License-Identifier: BSD-3-Clause
"""Exact numbers: fractions, vectors of fractions, and intervals around what is not a fraction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

_DIGITS = 80
"""Decimal digits of an exponential or a logarithm before it is widened."""
_PLACES = 72
"""Decimal places at which the ends of intervals are cut off, outwards."""
_FAR = 700
"""An exponential of less than minus this lies between 0 and a power of 2."""
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING)
_LAST_PLACE = Decimal(1).scaleb(-_PLACES)


class Interval(NamedTuple):
    """Two numbers that some number lies between, or is."""

    low: Fraction
    high: Fraction

    @classmethod
    def exactly(cls, number: float | Fraction) -> Interval:
        """The interval that is one number."""
        return cls(Fraction(number), Fraction(number))

    def plus(self, number: Fraction) -> Interval:
        """The interval, moved."""
        return Interval(self.low + number, self.high + number)

    def times(self, factor: Fraction) -> Interval:
        """The interval, stretched; a negative factor exchanges its ends."""
        ends = self.low * factor, self.high * factor
        return Interval(min(ends), max(ends))

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
    return Interval(total(each.low for each in intervals), total(each.high for each in intervals))


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
        return Interval.exactly(1)
    # decimal rounds exp and ln correctly, so the true value is less than one last digit away.
    low, high = _decimals(x)
    return _outwards(_DOWN.next_minus(_DOWN.exp(low)), _UP.next_plus(_UP.exp(high)))


def logarithm(x: Fraction) -> Interval:
    """An interval around the natural logarithm of a positive number."""
    low, high = _decimals(x)
    return _outwards(_DOWN.next_minus(_DOWN.ln(low)), _UP.next_plus(_UP.ln(high)))


def root_above(x: Fraction) -> Fraction:
    """A number that is not below the square root of x, and hardly above it."""
    scale = 10**_PLACES
    return Fraction(math.isqrt(x.numerator * x.denominator * scale * scale) + 1, x.denominator * scale)


def _decimals(x: Fraction) -> tuple[Decimal, Decimal]:
    """Two decimals that x lies between."""
    top, bottom = Decimal(x.numerator), Decimal(x.denominator)
    return _DOWN.divide(top, bottom), _UP.divide(top, bottom)


def _outwards(low: Decimal, high: Decimal) -> Interval:
    """The interval, widened to ends of few decimal places."""
    ends = low.quantize(_LAST_PLACE, context=_DOWN), high.quantize(_LAST_PLACE, context=_UP)
    # Without a context of its own, a decimal would be rounded to 28 digits here.
    below, above = (Fraction(int(_UP.scaleb(end, _PLACES)), 10**_PLACES) for end in ends)
    return Interval(below, above)
