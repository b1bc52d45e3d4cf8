# SPDX-License-Identifier: BSD-3-Clause
"""Which fold holds a row out: a fixed function of the row's number and a seed.

No chunk and no worker has to know of another one, and a row is in the same fold however the rows are cut
into chunks. The folds are not stratified: each has about its share of all rows, and of every class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.types import Indices

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of SplitMix64 (Steele, Lea and Flood 2014)."""
_WORD = (1 << 64) - 1
"""The bits of its numbers."""


@dataclass(frozen=True)
class Folding:
    """So many folds, by a seed."""

    count: int
    seed: int

    def of(self, numbers: Indices) -> Indices:
        """The fold of each row, given its number among all rows."""
        key = int(_mixed(np.array([self.seed & _WORD], np.uint64))[0])
        mixed = _mixed(numbers.astype(np.uint64) + np.uint64(key))
        return (mixed % np.uint64(self.count)).astype(np.int64)


def _mixed(values: np.typing.NDArray[np.uint64]) -> np.typing.NDArray[np.uint64]:
    """SplitMix64 of each value; all products are those of 64 bits."""
    mixed = values + np.uint64(_STEP)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND)
    return mixed ^ (mixed >> np.uint64(31))
