# SPDX-License-Identifier: BSD-3-Clause
"""gmpy2's fractions in the place of the standard library's, where it is installed: the same values, sooner.

The independent checker is written for the standard library alone. Its fractions are those of whole numbers
in either case, and never rounded. Exponentials and logarithms are rounded downwards for the lower end of
an interval and upwards for the upper one, which MPFR does correctly, and are cut off where the checker's
are. ``tests/project/test_sceptic.py`` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from benchmarks import exact_family, sceptic, sceptic_cases, sceptic_family, sceptic_runs, separation
from maxmargin.independent import arithmetic, places, ranking, rows, values

_MODULES = (arithmetic, rows, values, places, ranking, separation, sceptic)
_MODULES += (sceptic_cases, sceptic_runs, sceptic_family, exact_family)
_BITS = 240
"""Binary places at which the ends of intervals are cut off, outwards, as in ``arithmetic``."""
_FAR = 700
"""An exponential of less than minus this lies between 0 and a power of 2, as in ``arithmetic``."""


def replacements() -> dict[Any, Any]:
    """What takes the place of what; empty without gmpy2."""
    try:
        import gmpy2
    except ImportError:
        return {}
    mpq, scale = gmpy2.mpq, gmpy2.mpz(2) ** _BITS
    down = gmpy2.context(precision=_BITS + 80, round=gmpy2.RoundDown)
    up = gmpy2.context(precision=_BITS + 80, round=gmpy2.RoundUp)

    def around(function: str, x: Any) -> arithmetic.Interval:
        """An interval around a function that does not fall."""
        x = mpq(x)
        low, high = mpq(getattr(down, function)(x)), mpq(getattr(up, function)(x))
        return arithmetic.Interval(
            mpq(low.numerator * scale // low.denominator, scale),
            mpq(-(-high.numerator * scale // high.denominator), scale),
        )

    def exponential(x: Any) -> arithmetic.Interval:
        if x > 0:
            raise ValueError(f"The argument of an exponential must be at most 0. Got {float(x):g} instead.")
        if x < -_FAR:
            return arithmetic.Interval(mpq(0), mpq(1, gmpy2.mpz(2) ** _FAR))
        return arithmetic.Interval.exactly(mpq(1)) if x == 0 else around("exp", x)

    def logarithm(x: Any) -> arithmetic.Interval:
        return around("log", x)

    def root_above(x: Any) -> Any:
        if x == 0:
            return x
        x = mpq(x)
        top = gmpy2.isqrt((x.numerator * x.denominator) << (2 * _BITS)) + 1
        return mpq(top, x.denominator << _BITS)

    def total(numbers: Iterable[Any]) -> Any:
        return sum(numbers, mpq(0))

    return {
        Fraction: mpq,
        arithmetic.exponential: exponential,
        arithmetic.logarithm: logarithm,
        arithmetic.root_above: root_above,
        arithmetic.total: total,
    }


def take() -> Callable[[], None]:
    """Have everything that judges here compute with them from now on; what is returned undoes it."""
    others, before = replacements(), []
    for module in _MODULES:
        for name, value in list(vars(module).items()):
            if isinstance(value, type | type(take)) and value in others:
                before.append((module, name, value))
                setattr(module, name, others[value])

    def undo() -> None:
        for module, name, value in before:
            setattr(module, name, value)

    return undo
