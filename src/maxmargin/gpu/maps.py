# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps of rows that lie on a GPU: random Fourier features, and Nyström's.

A map learns on the CPU, from a sample that is small there as well; all rows are mapped where they lie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.gpu.cards import (
    as_kind_of,
    refuse_other_columns,
    refuse_without_room,
    the_card,
)
from maxmargin.gpu.scores import support_of, values_on_card
from maxmargin.kernels.base import Kernel
from maxmargin.problem.rows import Matrix, TellingOfRoom

if TYPE_CHECKING:
    from maxmargin.features.base import FeatureMap
    from maxmargin.gpu.cards import Card

_VALUES_AT_ONCE = 2**27
"""Values that are copied to double precision at a time: 1 GB."""


def mapped(feature_map: FeatureMap, X: Any) -> Any:
    """phi(x) of all rows of X, which lies on a card: there, and in its kind."""
    card = the_card()
    refuse_other_columns(feature_map, X)
    with TellingOfRoom():
        there = card.put(X)
        if there.dtype != np.float32:
            there = card.put(there, np.float64)
        if not bool(card.arrays.isfinite(there).all()):
            raise ValueError("Input X contains NaN or infinity.")
        return as_kind_of(feature_map._map_on_card(card, there), X)


def mapped_and_back(feature_map: FeatureMap, card: Card, X: Any) -> Matrix:
    """The same of rows that lie in memory, and back there; whoever reads them looks for NaN."""
    with TellingOfRoom():
        refuse_without_room(card, X.dtype.itemsize * X.shape[0] * X.shape[1], "The rows of a chunk take")
        made = feature_map._map_on_card(card, card.contiguous(card.matrix(X), X.dtype))
        back: Matrix = card.receive(made.reshape(-1)).reshape(made.shape)
        return back


def waves(card: Card, X: Any, directions: Matrix) -> Any:
    """The cosines and sines of random Fourier features."""
    arrays = card.arrays
    _refuse_result(card, len(X), 2 * directions.shape[1], X.dtype)
    phases = arrays.matmul(X, card.put(directions, X.dtype))
    out = arrays.concatenate([arrays.cos(phases), arrays.sin(phases)], axis=1)
    out *= math.sqrt(1.0 / directions.shape[1])
    return out


def projected_values(card: Card, kernel: Kernel, sample: Any, projection: Matrix, X: Any) -> Any:
    """The kernel of every row with a sample, in double precision, times a matrix."""
    arrays, support, M = card.arrays, support_of(card, sample), card.put(projection, np.float64)
    _refuse_result(card, len(X), M.shape[1], X.dtype)
    out = arrays.empty((len(X), M.shape[1]), X.dtype)
    some = max(1, _VALUES_AT_ONCE // max(X.shape[1], 1))
    for first in range(0, len(X), some):
        rows = card.contiguous(X[first : first + some], np.float64)
        for inside, values in values_on_card(card, kernel, rows, support):
            out[first + inside.start : first + inside.stop] = arrays.matmul(values, M)
    return out


def _refuse_result(card: Card, rows: int, columns: int, dtype: Any) -> None:
    what = f"{columns} mapped columns of {rows} rows take"
    refuse_without_room(card, rows * columns * dtype.itemsize, what)
