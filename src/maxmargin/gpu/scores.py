# SPDX-License-Identifier: BSD-3-Clause
"""The scores of rows on a GPU: values of the kernel with all support vectors, some rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.gpu.cards import Card
from maxmargin.gpu.kernel_rows import TILE, on_card
from maxmargin.gpu.programs import BY_PRODUCTS, EXPANSIONS, numbers_of, program_for, sums_of
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.types import Vector

_VALUES_AT_ONCE = 2**28
"""Values of the kernel that are held at a time: 2 GB."""
_MANY_COLUMNS = 64
"""Columns from which a product of matrices is quicker than differences, which keep more digits."""
_MOST_ROWS = 65535
"""Rows of a grid of blocks of threads, at most: a limit of CUDA."""


def scores_on_card(card: Card, scores: KernelScores, X: Any, intercepts: Vector) -> Any:
    """What ``scores(X, intercepts)`` is, as an array on the card."""
    arrays, kernel = card.arrays, scores.kernel
    X, support = (arrays.asarray(on_card(card, each), np.float64) for each in (X, scores.support))
    coefficients, numbers = card.put(scores.coefficients), card.put(numbers_of(kernel))
    program = program_for(EXPANSIONS, kernel, "double")
    by_products = sums_of(kernel) <= BY_PRODUCTS and X.shape[1] >= _MANY_COLUMNS
    squares = (support * support).sum(axis=1)
    out = arrays.empty((len(X), len(intercepts)))
    some = min(max(1, _VALUES_AT_ONCE // max(len(support), 1)), _MOST_ROWS)
    for first in range(0, len(X), some):
        rows = X[first : first + some]
        if by_products:
            values = arrays.matmul(rows, support.T)
            grid = (-(-len(support) // 256), len(rows))
            own = (rows * rows).sum(axis=1)
            card.call(
                program, "finish_values", grid, 256, values, own, squares, np.int64(len(support)), numbers
            )
        else:
            values = arrays.empty((len(rows), len(support)))
            both = arrays.concatenate([rows, support])
            grid = (-(-len(support) // TILE), -(-len(rows) // TILE))
            sizes = np.int64(len(rows)), np.int64(len(support))
            card.call(
                program, "fill_values", grid, 256, both, np.int32(X.shape[1]), numbers, *sizes, values
            )
        begins = scores.segments
        sums = [
            arrays.matmul(coefficients[:, begin:end], values[:, begin:end].T)
            for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True)
        ]
        joined = scores.kind.joined([[lines[k] for k in range(len(lines))] for lines in sums])
        out[first : first + some] = arrays.stack(list(joined), axis=1)
    return out + card.put(np.asarray(intercepts))
