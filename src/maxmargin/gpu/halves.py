# SPDX-License-Identifier: BSD-3-Clause
"""Products of rows on tensor cores, nearly as exact as in single precision and several times as quick.

A number is the sum of two of half precision but for 22 binary digits, x = high + low. Three of the four
products are worth their time:

    <x, z>  =  <low_x, high_z> + <high_x, low_z> + <high_x, high_z>

Tensor cores add up in single precision and cut digits off where others round, so that long sums come out
too small. So the small products come first, and sums of many columns are made in pieces, which are rounded
when they are added. The solver works with such products; nothing is proven with them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card

_PIECE = 1024
"""Columns that tensor cores add up at a time: every piece reads and writes all products once more."""
_MULTIPLE = 8
"""Tensor cores are quick with rows of a multiple of so many numbers of half precision."""


class Halves(NamedTuple):
    """Rows whose values are a power of two times ``high + low``."""

    card: Card
    both: Any
    """high and low of each row, one behind the other."""
    columns: int
    """Numbers in each of them: those of the rows, and zeros up to a multiple of eight."""
    scale: float
    """The square of the power of two."""

    def take(self, which: Any) -> Halves:
        """Some of the rows."""
        return self._replace(both=self.both[which])

    def swapped(self, which: Any) -> Any:
        """Low and then high of some rows: what ``products`` meets them with."""
        some, width = self.both[which], self.columns
        return self.card.arrays.concatenate([some[:, width:], some[:, :width]], axis=1)

    def products(self, which: Any, others: Any, out: Any) -> None:
        """The inner products of some rows with others that are ``swapped``, in single precision."""
        rows, width, multiply = self.both[which], self.columns, self.card.multiply_halves
        multiply(rows, others, out, self.scale, add=False)
        for begin in range(0, width, _PIECE):
            end = min(begin + _PIECE, width)
            multiply(rows[:, begin:end], others[:, width + begin : width + end], out, self.scale, add=True)


def halves_of(card: Card, values: Any) -> Halves:
    """Rows in single precision as halves, scaled so that none of them is beyond half precision."""
    arrays, (count, columns) = card.arrays, values.shape
    largest = float(abs(values).max()) if values.size else 0.0
    power = 2.0 ** -math.ceil(math.log2(largest)) if 0.0 < largest < math.inf else 1.0
    width = -(-columns // _MULTIPLE) * _MULTIPLE
    both = arrays.zeros((count, 2 * width), np.float16)
    scaled = values * np.float32(power)
    both[:, :columns] = scaled
    both[:, width : width + columns] = scaled - both[:, :columns]
    return Halves(card, both, width, 1.0 / power**2)
