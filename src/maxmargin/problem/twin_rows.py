# SPDX-License-Identifier: BSD-3-Clause
"""Two rows for each example, on the same data: rows 2k and 2k + 1 are those of example k.

In regression an example wants its score neither too small nor too large (problem/regression.py), which are
two rows of opposite signs. They are seen here as rows like any others, and nothing is copied: whatever
the rows are asked for, the examples are asked once.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.problem.rows import UNIT, CompiledRows, Matrix, RowSpace
from maxmargin.types import Indices, Tell, Vector


class TwinRows(RowSpace):
    """The rows of ``examples``, each of them twice in turn; w is what it is for the examples."""

    def __init__(self, examples: RowSpace) -> None:
        self.examples = examples
        self.dtype: np.dtype[Any] = examples.dtype
        self.has_kernel = examples.has_kernel
        self.kernel_is_none = examples.kernel_is_none

    @property
    def count(self) -> int:
        """Number of rows: two for each example."""
        return 2 * self.examples.count

    @property
    def columns(self) -> int:
        """Number of entries of w."""
        return self.examples.columns

    @property
    def stored(self) -> int:
        """Number of stored values, which twins share."""
        return self.examples.stored

    @property
    def row_length(self) -> float:
        """Stored values that a visit of a row reads, on average: those of its example."""
        return self.examples.row_length

    @property
    def longest(self) -> int:
        """The largest number of values that a row has."""
        return self.examples.longest

    def scores(self, w: Vector, budget: core.Budget = core.ALL_CORES, tell: Tell | None = None) -> Vector:
        """``<w, x_i>`` of every row: a pass over the examples."""
        if self.is_stored and w.any():
            out = np.empty(self.count)
            core.scores(self.stored_data, np.ascontiguousarray(w, np.float64), out, budget)
            return out
        return np.repeat(self.examples.scores(w, budget, tell), 2)

    def combine(self, coefficients: Vector, budget: core.Budget = core.ALL_CORES) -> Vector:
        """``sum_i coefficient_i x_i``: a pass over the examples, each with the sum of its coefficients."""
        return self.examples.combine(_of_examples(coefficients), budget)

    def gram(self, weights: Vector, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``sum_i weight_i x_i x_i'``."""
        return self.examples.gram(_of_examples(weights), budget)

    def bordered_gram(
        self, weights: Vector, budget: core.Budget = core.ALL_CORES
    ) -> tuple[Matrix, Vector, float]:
        """``gram`` and ``combine`` of the same weights, and their sum."""
        return self.examples.bordered_gram(_of_examples(weights), budget)

    @cached_property
    def squared_norms(self) -> Vector:
        """``|x_i|^2`` of every row."""
        return np.repeat(self.examples.squared_norms, 2)

    @cached_property
    def lengths(self) -> Vector:
        """``|x_i|`` of every row, or a little more."""
        return np.repeat(self.examples.lengths, 2)

    @property
    def largest_length(self) -> float:
        """The length of the longest row."""
        return self.examples.largest_length

    def squared_norm(self, w: Vector) -> float:
        """An upper bound on ``|w|^2``."""
        return self.examples.squared_norm(w)

    def plain_squared_norm(self, w: Vector) -> float:
        """``|w|^2`` as it is computed, without a bound on rounding."""
        return self.examples.plain_squared_norm(w)

    def score_error(self, w: Vector) -> tuple[float, float]:
        """How far scores can be off."""
        return self.examples.score_error(w)

    def combined_error(self, coefficients: Vector) -> float:
        """How far ``combine`` can be off; the sum of two coefficients that are not 0 is one more rounding.

        Through a kernel, w is held by these very sums, and their rounding is all that it is off by.
        """
        if not self.has_kernel:
            return super().combined_error(coefficients)
        pairs = coefficients.reshape(-1, 2)
        rounded = np.where(pairs.all(axis=1), np.abs(pairs).sum(axis=1), 0.0)
        return 2.0 * UNIT * core.dot(rounded, self.examples.lengths)

    def squared_norm_of(self, coefficients: Vector, combined: Vector, error: float | None = None) -> float:
        """An upper bound on the squared length of the exact sum; ``combined`` is the computed one."""
        if not self.has_kernel:
            return super().squared_norm_of(coefficients, combined, error)
        # Only w is given then, and each of its coefficients may be a sum that was rounded.
        off = 2.0 * UNIT * core.dot(np.abs(combined), self.examples.lengths) + (error or 0.0)
        length = math.sqrt(max(self.examples.squared_norm(combined), 0.0)) + off
        return length * length * (1.0 + 8.0 * UNIT)

    def unpacked(self) -> RowSpace | None:
        """The same rows, read as they are, where they are held as something that is only nearly equal."""
        examples = self.examples.unpacked()
        return None if examples is None else TwinRows(examples)

    def twofold_scores(self, w: Vector) -> core.TwofoldScores | None:
        """``<w, x_i>`` in twofold precision, or None where that is not to be had."""
        scores = self.examples.twofold_scores(w)
        return None if scores is None else scores.twinned()

    def twofold_squared_norm_of(self, coefficients: Vector) -> float:
        """``squared_norm_of`` in twofold precision."""
        if self.is_stored:
            return core.twofold_squared_length(self.stored_data, np.ascontiguousarray(coefficients))
        if coefficients.reshape(-1, 2).all(axis=1).any():
            return math.inf  # a sum of two coefficients has no room for what is rounded
        return self.examples.twofold_squared_norm_of(_of_examples(coefficients))

    def seconds_of_scores(self, w: Vector, budget: core.Budget) -> float:
        """How long ``scores`` will take where that can be longer than many steps; else 0."""
        return self.examples.seconds_of_scores(w, budget)

    def dense(self, which: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """Some rows as a matrix."""
        return self.examples.dense(which // 2, budget)

    def block(self, first: Indices, second: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``<x_i, x_j>`` for i in first and j in second."""
        return self.examples.block(first // 2, second // 2, budget)

    @property
    def offers_single_rows(self) -> bool:
        """Whether the core can visit one row after the other: where the examples' values are stored."""
        return self.examples.is_stored

    @property
    def compiled(self) -> CompiledRows:
        """The rows as the core reads them."""
        return self.stored_data if self.is_stored else super().compiled

    @cached_property
    def in_single_precision(self) -> core.Data | None:
        """The rows with the examples' values in float32."""
        data = self.examples.in_single_precision
        return None if data is None else data.twinned()

    @property
    def offers_samples(self) -> bool:
        """Whether there is ``take``."""
        return self.examples.offers_samples

    @property
    def is_stored(self) -> bool:
        """Whether the values lie in memory."""
        return self.examples.is_stored

    @cached_property
    def stored_data(self) -> core.Data:
        """The data, for what reads values in place."""
        return self.examples.stored_data.twinned()

    def take(self, order: Indices) -> RowSpace:
        """A copy of some rows, in the order given, which are no twins any more."""
        return self.examples.take(order // 2)


def _of_examples(coefficients: Vector) -> Vector:
    """The sum of the numbers of each example's two rows."""
    return np.asarray(coefficients[0::2] + coefficients[1::2], np.float64)
