# SPDX-License-Identifier: BSD-3-Clause
"""Products of rows whose values are bytes, exact and several times as quick as in double precision.

Values that are multiples 0 to 255 of one number, to the rounding of their type, are held as these multiples
on the CPU as well: see core/kernel/kernel_rows.hpp. Tensor cores multiply signed bytes and add up in whole
numbers, so that of multiples m and n in d columns

    <m, n>  =  <m - 128, n - 128> + 128 sum(m - 128) + 128 sum(n - 128) + 128^2 d

has no rounding at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card

_MIDDLE = 128
"""What is taken from a multiple so that it is a signed byte."""
MOST_COLUMNS = 2**16
"""So many products of two signed bytes stay below 2^31."""
_MULTIPLE = 16
"""Tensor cores take bytes of so many rows and columns at a time."""


class ByteRows(NamedTuple):
    """Rows of multiples 0 to 255 of one number."""

    values: Any
    """The signed bytes, with zeros up to a multiple of 16 rows and columns."""
    rows: int
    """How many there are."""
    shifts: Any
    """Of each row ``128 sum(m - 128) + 128^2 d / 2``: what it adds to all its products."""
    squares: Any
    """Of each row ``<m, m>``."""
    unit: float
    """The number."""


def byte_rows(card: Card, rows: Any, unit: float | None = None) -> ByteRows | None:
    """Rows on the card as multiples of a number, which is looked for if not given; None: they are not."""
    columns = rows.shape[1]
    if not len(rows) or columns > MOST_COLUMNS:
        return None
    rounding = 2.0 * float(np.finfo(rows.dtype).eps) if rows.dtype.kind == "f" else 0.0
    there = rows.astype(np.float64)
    if unit is not None:
        return _multiples(card, there, unit, rounding)
    arrays = card.arrays
    ends = arrays.stack([there.max(), arrays.where(there > 0.0, there, np.inf).min(), there.min()])
    largest, smallest, least = (float(end) for end in card.get(ends))
    if not (least >= 0.0 and 0.0 < largest < np.inf):
        return None
    for each in (1.0, largest / 255.0, smallest):
        if largest <= 255.5 * each and (found := _multiples(card, there, each, rounding)) is not None:
            return found
    return None


def _multiples(card: Card, rows: Any, unit: float, rounding: float) -> ByteRows | None:
    """Multiples of this number, if the rows are."""
    arrays, (count, columns) = card.arrays, rows.shape
    multiples = arrays.rint(rows / unit)
    fits = (abs(rows - multiples * unit) <= rounding * rows) & (multiples >= 0.0) & (multiples <= 255.0)
    if not bool(fits.all()):
        return None
    values = arrays.zeros((_rounded_up(count), _rounded_up(columns)), np.int8)
    values[:count, :columns] = multiples - _MIDDLE
    shifts = _MIDDLE * (multiples.sum(axis=1) - 0.5 * _MIDDLE * columns)
    return ByteRows(values, count, shifts, (multiples * multiples).sum(axis=1), unit)


def _rounded_up(number: int) -> int:
    return -(-number // _MULTIPLE) * _MULTIPLE
