# SPDX-License-Identifier: BSD-3-Clause
"""One row for each example and each class that it is not of: several classes as one problem.

Crammer and Singer (2001) seek a w_k for each class, so that every example has a higher score in its own
class than in any other, by 1:

    minimise   1/2 sum_k |w_k|^2  +  sum_i C_i max(0, 1 - min_k <w_y - w_k, x_i>),     y = y_i, k != y

Written one after the other, the w_k are one w. Row (i, k) has x_i in the place of class y and -x_i in that
of class k, so that <w, row> is <w_y - w_k, x_i>; the rows of an example are a group, which shares one loss.
That is the one problem, with labels of 1. No row is ever written out: whatever the rows are asked for, each
example is visited once, and meets the weights of all classes, which lie side by side for each column.

An intercept is regularised: the weight of one more feature, of constant value, in the last place of w_k.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.problem.problem import Problem
from maxmargin.problem.rows import Matrix, RowSpace
from maxmargin.types import Indices, Tell, Vector

_ROOT_2 = 1.4142135623730954
"""A little more than the root of 2: a row is that much longer than its example."""


class ClassRows(RowSpace):
    """The rows of ``examples``, one for each class that an example is not of.

    ``codes`` are the classes of the examples, from 0 to ``classes`` - 1, and ``constant`` is the value of a
    feature that all of them have besides; 0: there is none.
    """

    def __init__(self, examples: RowSpace, codes: Indices, classes: int, constant: float = 0.0) -> None:
        self.examples, self.classes, self.constant = examples, classes, constant
        self.codes = np.ascontiguousarray(codes, np.int64)
        self.dtype: np.dtype[Any] = examples.dtype
        self.data = examples.stored_data

    @property
    def count(self) -> int:
        """Number of rows: one for each example and each other class."""
        return self.examples.count * (self.classes - 1)

    @property
    def columns(self) -> int:
        """Number of entries of w: one for each class, side by side, for each column."""
        return self.class_columns * self.classes

    @property
    def class_columns(self) -> int:
        """The number of entries of each w_k."""
        return self.examples.columns + (self.constant != 0.0)

    @property
    def stored(self) -> int:
        """The cost of one pass: every stored value meets all classes."""
        return self.examples.stored * self.classes

    @property
    def longest(self) -> int:
        """The largest number of products in a score: one more for the difference of two of them."""
        return self.examples.longest + 2

    def scores(self, w: Vector, budget: core.Budget = core.ALL_CORES, tell: Tell | None = None) -> Vector:
        """``<w_y - w_k, x_i>``: one pass, none for w = 0."""
        if not w.any():
            return np.zeros(self.count)
        out, w = np.empty(self.count), np.ascontiguousarray(w, np.float64)
        core.class_scores(self.data, self.codes, self.classes, self.constant, w, out, budget)
        return out

    def combine(self, coefficients: Vector, budget: core.Budget = core.ALL_CORES) -> Vector:
        """``sum_i coefficient_i x_i`` over the rows: one pass."""
        out, alpha = np.empty(self.columns), np.ascontiguousarray(coefficients, np.float64)
        core.class_combine(self.data, self.codes, self.classes, self.constant, alpha, out, budget)
        return out

    def gram(self, weights: Vector, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """Refused: it would have as many columns as all w_k together."""
        raise ValueError(
            "Rows of several classes have no matrix of products. Use the solver crammer_singer."
        )

    @cached_property
    def squared_norms_of_examples(self) -> Vector:
        """``|x_i|^2`` of every example, with its constant feature."""
        return self.examples.squared_norms + self.constant**2

    @cached_property
    def squared_norms(self) -> Vector:
        """``|x_i|^2`` of every row: twice that of its example."""
        return np.repeat(2.0 * self.squared_norms_of_examples, self.classes - 1)

    @cached_property
    def lengths(self) -> Vector:
        """``|x_i|`` of every row, or a little more."""
        return np.repeat(_ROOT_2 * np.hypot(self.examples.lengths, self.constant), self.classes - 1)

    @cached_property
    def largest_length(self) -> float:
        """The length of the longest row."""
        return float(self.lengths.max(initial=0.0))

    def weights_of(self, w: Vector) -> Matrix:
        """The w_k, one line for each class; that of the constant feature is the last of each."""
        return w.reshape(self.class_columns, self.classes).T

    def others(self) -> Indices:
        """For each example, the other classes in the order of its rows."""
        every = np.arange(self.classes - 1)
        return every + (every >= self.codes[:, np.newaxis])


def class_problem(
    examples: RowSpace,
    codes: Indices,
    classes: int,
    C: float = 1.0,
    *,
    weights: Vector | None = None,
    constant: float = 0.0,
) -> Problem:
    """Crammer and Singer's problem as the one problem; ``weights`` are the factors on C of examples.

    ``constant`` is the value of the feature whose weights are the regularised intercepts, divided by it; 0:
    there are none.
    """
    rows = ClassRows(examples, codes, classes, constant)
    if weights is not None:
        weights = np.repeat(weights, classes - 1)
    options: dict[str, Any] = {"loss": "hinge", "intercept": "none", "weights": weights}
    return Problem.of(rows, np.ones(rows.count), C, group=classes - 1, **options)
