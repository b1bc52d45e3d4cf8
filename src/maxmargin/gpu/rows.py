# SPDX-License-Identifier: BSD-3-Clause
"""Rows on a GPU, as they are: the four things that rows can do, each a pass over the card's memory.

Sums are in double precision, whatever the type of the values, so the bounds on rounding are those of every
other kind of rows. Solvers that need whole passes alone take them (newton, augmented_lagrangian, ...).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.gpu.cards import refuse_without_room
from maxmargin.gpu.kernel_rows import CardData
from maxmargin.gpu.programs import Program, passes_over
from maxmargin.problem.rows import CompiledRows, Matrix, RowSpace
from maxmargin.types import Indices, Tell, Vector

_ROWS_PER_BLOCK = 8
"""Rows that a block of 256 threads takes products of: one for each warp."""
_ROWS_AT_ONCE = 4096
"""Rows that a block adds up, as in cuda/rows.cu."""
_LANES = 32
"""Columns that a block adds up."""
_VALUES_AT_ONCE = 2**25
"""Values that are copied to double precision for one product of matrices: 256 MB, and more of them would be
no quicker."""

_ONLY_PASSES = "only offer whole passes. Use device='cpu', or copy them to the CPU."


class CardRows(RowSpace):
    """The rows of a matrix on a card."""

    def __init__(self, data: CardData) -> None:
        self.data, self.card = data, data.card
        self._program: Program = passes_over(data.stored)
        self.dtype = np.dtype(np.float64 if data.stored == "double" else np.float32)

    @property
    def count(self) -> int:
        """Number of rows, n."""
        return int(self.data.X.shape[0])

    @property
    def columns(self) -> int:
        """Number of entries of w, d."""
        return self.data.columns

    @property
    def stored(self) -> int:
        """Number of stored values."""
        return self.count * self.columns

    def _row_products(self, w: Any, *, squares: bool) -> Vector:
        out = self.card.arrays.empty(self.count)
        shape = np.int64(self.count), np.int32(self.columns)
        blocks = (-(-self.count // _ROWS_PER_BLOCK),)
        given = self.data.X, *shape, w, np.int32(squares), out
        self.card.call(self._program, "row_products", blocks, 256, *given)
        return self.card.receive(out)

    def scores(self, w: Vector, budget: core.Budget = core.ALL_CORES, tell: Tell | None = None) -> Vector:
        """``<w, x_i>`` of every row; no pass for w = 0."""
        if not w.any():
            return np.zeros(self.count)
        return self._row_products(self.card.put(w), squares=False)

    def scores_at(self, points: Matrix) -> Matrix:
        """``<w, x_i>`` of every row, for each w of a matrix: one pass, by products of matrices."""
        if len(points) == 1:
            return self.scores(points[0])[np.newaxis]
        arrays, weights = self.card.arrays, self.card.put(points).T
        out = arrays.empty((self.count, len(points)))
        for some in self._parts(self.count):
            out[some] = arrays.matmul(self.data.X[some].astype(np.float64), weights)
        return np.asarray(self.card.get(out.T))

    def _parts(self, count: int) -> Iterator[slice]:
        """So many rows in parts, as many at a time as are copied to double precision."""
        some = max(1, _VALUES_AT_ONCE // max(self.columns, 1))
        return (slice(first, first + some) for first in range(0, count, some))

    @cached_property
    def squared_norms(self) -> Vector:
        """``|x_i|^2`` of every row."""
        return self._row_products(self.card.arrays.zeros(1), squares=True)

    def combine(self, coefficients: Vector, budget: core.Budget = core.ALL_CORES) -> Vector:
        """``sum_i coefficient_i x_i``."""
        return np.asarray(self.card.get(self._combined(self.card.send(coefficients, budget))))

    def _combined(self, coefficients: Any) -> Any:
        groups = -(-self.count // _ROWS_AT_ONCE)
        partial = self.card.arrays.empty((groups, self.columns))
        shape = np.int64(self.count), np.int32(self.columns)
        blocks = (-(-self.columns // _LANES), groups)
        given = self.data.X, *shape, coefficients, partial
        self.card.call(self._program, "column_sums", blocks, 1024, *given)
        return partial.sum(axis=0)

    def gram(self, weights: Vector, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``sum_i weight_i x_i x_i'``: products of matrices, of those rows that count."""
        return np.asarray(self.card.get(self._products(self.card.send(weights, budget))))

    def bordered_gram(
        self, weights: Vector, budget: core.Budget = core.ALL_CORES
    ) -> tuple[Matrix, Vector, float]:
        """``gram`` and ``combine`` of the same weights, copied to the card once, and their sum."""
        there, get = self.card.send(weights, budget), self.card.get
        combined = np.asarray(get(self._combined(there)))
        return np.asarray(get(self._products(there))), combined, float(get(there.sum()))

    def _products(self, there: Any) -> Any:
        arrays = self.card.arrays
        out, which = arrays.zeros((self.columns, self.columns)), arrays.flatnonzero(there)
        for some in self._parts(len(which)):
            place = which[some]
            rows = self.data.X[place].astype(np.float64)
            out += arrays.matmul((rows * there[place][:, np.newaxis]).T, rows)
        return out

    offers_samples = True

    def take(self, order: Indices) -> CardRows:
        """A copy of some rows, in the order given."""
        needed = len(order) * self.columns * self.dtype.itemsize
        refuse_without_room(self.card, needed, f"A copy of {len(order)} rows takes")
        return CardRows(self.card.data(self.data.X[self.card.put(order)]))

    @property
    def compiled(self) -> CompiledRows:
        """The core reads no rows there."""
        raise ValueError(f"Single rows are needed here, and rows on a GPU {_ONLY_PASSES}")

    @property
    def stored_data(self) -> core.Data:
        """The same."""
        raise ValueError(f"Values in memory are needed here, and rows on a GPU {_ONLY_PASSES}")

    def _dense(self, which: Indices) -> Any:
        return self.data.X[self.card.put(which)].astype(np.float64)

    def dense(self, which: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """Some rows as a matrix."""
        return np.asarray(self.card.get(self._dense(which)))

    def block(self, first: Indices, second: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``<x_i, x_j>`` for i in first and j in second."""
        products = self.card.arrays.matmul(self._dense(first), self._dense(second).T)
        return np.asarray(self.card.get(products))
