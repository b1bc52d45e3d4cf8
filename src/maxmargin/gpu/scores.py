# SPDX-License-Identifier: BSD-3-Clause
"""Values of a kernel on a GPU in double precision: of a certificate's rows, and of rows to be predicted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from maxmargin.gpu.bytes import ByteRows, byte_rows
from maxmargin.gpu.cards import refuse_without_room
from maxmargin.gpu.programs import BY_PRODUCTS, EXPANSIONS, numbers_of, program_for, sums_of
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.rounding import DIRECT_COLUMNS
from maxmargin.problem.rows import lies_on_card
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card
    from maxmargin.reductions.kernel_scores import KernelScores

TILE = 64
"""Rows and columns of a tile of values: see cuda/values.cuh."""
_VALUES_AT_ONCE = 2**28
"""Values of the kernel that are held at a time: 2 GB."""
_COLUMNS_PER_PROBLEM = 4
"""Sums of all problems over all support vectors are one product of matrices, which is quick where it is
a small part of the product that the values come from: one problem to so many columns, at most."""
_MOST_ROWS = 65535
"""Rows of a grid of blocks of threads, at most: a limit of CUDA."""


class Support(NamedTuple):
    """Rows on the card in float64, and their squared norms."""

    rows: Any
    squares: Any


class _Model(NamedTuple):
    """What predictions on the card need of a model."""

    support: Support
    in_bytes: ByteRows | None
    """The support vectors as bytes, where they are such and values follow from products."""
    coefficients: Any
    weights: Any
    """A column for each problem, with zeros for support vectors of other classes; None: there are too many
    problems for that to be quicker than the sums over each class."""

    @classmethod
    def of(cls, card: Card, scores: KernelScores) -> _Model:
        there, kind = card.matrix(scores.support), scores.kind
        support, weights = support_of(card, there), None
        in_bytes = byte_rows(card, there) if by_products(scores.kernel, there.shape[1]) else None
        if len(kind) <= max(len(scores.coefficients), support.rows.shape[1] // _COLUMNS_PER_PROBLEM):
            owners = np.repeat(np.arange(len(scores.counts)), scores.counts)
            each = [kind.coefficients(scores.coefficients, k, owners) for k in range(len(kind))]
            weights = card.put(np.ascontiguousarray(np.array(each).T))
        return cls(support, in_bytes, card.put(scores.coefficients), weights)


_MODELS: WeakKeyDictionary[KernelScores, _Model] = WeakKeyDictionary()
"""Of models that have predicted there, on the card as long as the model lives."""


def by_products(kernel: Kernel, columns: int) -> bool:
    """Whether values follow from a product of matrices, which is quicker than differences for long rows.

    Differences keep more digits; the bounds of kernels/rounding.py count on them for short rows alone.
    """
    return columns > DIRECT_COLUMNS and sums_of(kernel) <= BY_PRODUCTS


def support_of(card: Card, rows: Any) -> Support:
    """Some rows, ready to be met by others."""
    there = card.arrays.asarray(card.matrix(rows), np.float64)
    return Support(there, (there * there).sum(axis=1))


def values_on_card(card: Card, kernel: Kernel, X: Any, support: Support) -> Iterator[tuple[slice, Any]]:
    """The kernel of all rows of X with all others, some rows at a time; X is on the card in float64."""
    arrays, numbers, others = card.arrays, card.put(numbers_of(kernel)), support.rows
    program = program_for(EXPANSIONS, kernel, "double")
    products = by_products(kernel, X.shape[1])
    some, count = min(max(1, _VALUES_AT_ONCE // max(len(others), 1)), _MOST_ROWS), np.int64(len(others))
    for first in range(0, len(X), some):
        rows = X[first : first + some]
        if products:
            values = arrays.matmul(rows, others.T)
            own, grid = (rows * rows).sum(axis=1), (-(-len(others) // 256), len(rows))
            card.call(program, "finish_values", grid, 256, values, own, support.squares, count, numbers)
        else:
            values = arrays.empty((len(rows), len(others)))
            both, grid = (
                arrays.concatenate([rows, others]),
                (-(-len(others) // TILE), -(-len(rows) // TILE)),
            )
            columns, height = np.int32(X.shape[1]), np.int64(len(rows))
            card.call(program, "fill_values", grid, 256, both, columns, numbers, height, count, values)
        yield slice(first, first + len(rows)), values


def values_of_bytes(
    card: Card, kernel: Kernel, rows: ByteRows, support: ByteRows
) -> Iterator[tuple[slice, Any]]:
    """The kernel of all rows with all others, some rows at a time; both are multiples of one number."""
    arrays, numbers, others = card.arrays, card.put(numbers_of(kernel)), np.int64(support.rows)
    program, width = program_for(EXPANSIONS, kernel, "double"), len(support.values)
    some, unit = min(max(1, _VALUES_AT_ONCE // width), _MOST_ROWS), np.float64(rows.unit**2)
    for first in range(0, rows.rows, some):
        inside = slice(first, min(first + some, rows.rows))
        height = inside.stop - first
        products, values = arrays.empty((height, width), np.int32), arrays.empty((height, support.rows))
        card.multiply_bytes(rows.values[inside], support.values, products)
        own = products, np.int64(width), rows.shifts[inside], support.shifts, rows.squares[inside]
        told, grid = (support.squares, unit, others, numbers, values), (-(-support.rows // 256), height)
        card.call(program, "values_of_bytes", grid, 256, *own, *told)
        yield inside, values


def sums_on_card(card: Card, kernel: Kernel, X: Any, support: Support, coefficients: Any) -> Any:
    """``sum_j coefficient_j k(x_i, z_j)`` of all rows of X; long rows keep no values in memory."""
    arrays, out = card.arrays, card.arrays.empty(len(X))
    if not by_products(kernel, X.shape[1]):
        for inside, values in values_on_card(card, kernel, X, support):
            arrays.matmul(values, coefficients, out=out[inside])
        return out
    program, numbers = program_for(EXPANSIONS, kernel, "double"), card.put(numbers_of(kernel))
    some, count = max(1, _VALUES_AT_ONCE // max(len(support.rows), 1)), np.int64(len(support.rows))
    for first in range(0, len(X), some):
        rows = X[first : first + some]
        products, own = arrays.matmul(rows, support.rows.T), (rows * rows).sum(axis=1)
        given = products, own, support.squares, count, numbers, coefficients
        card.call(program, "sum_values", (len(rows),), 256, *given, out[first : first + len(rows)])
    return out


def scores_on_card(card: Card, scores: KernelScores, X: Any, intercepts: Vector) -> Any:
    """What ``scores(X, intercepts)`` is, as an array on the card."""
    arrays = card.arrays
    if scores not in _MODELS:
        _MODELS[scores] = _Model.of(card, scores)
    model = _MODELS[scores]
    if not lies_on_card(X):
        refuse_without_room(card, 8 * X.shape[0] * X.shape[1], f"{X.shape[0]} rows to be predicted take")
    X = card.matrix(X)
    in_bytes = byte_rows(card, X, model.in_bytes.unit) if model.in_bytes is not None else None
    if in_bytes is not None and model.in_bytes is not None:
        every = values_of_bytes(card, scores.kernel, in_bytes, model.in_bytes)
    else:
        X = arrays.asarray(X, np.float64)
        every = values_on_card(card, scores.kernel, X, model.support)
    if len(intercepts) == 1 and in_bytes is None:
        sums = sums_on_card(card, scores.kernel, X, model.support, model.coefficients[0])
        return sums[:, np.newaxis] + float(intercepts[0])
    out = arrays.empty((len(X), len(intercepts)))
    for some, values in every:
        if model.weights is not None:
            arrays.matmul(values, model.weights, out=out[some])
            continue
        sums = [
            arrays.matmul(model.coefficients[:, begin:end], values[:, begin:end].T)
            for begin, end in itertools.pairwise(scores.segments.tolist())
        ]
        joined = scores.kind.joined([[lines[k] for k in range(len(lines))] for lines in sums])
        out[some] = arrays.stack(list(joined), axis=1)
    out += card.put(np.asarray(intercepts))
    return out
