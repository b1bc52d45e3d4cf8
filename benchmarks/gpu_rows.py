# SPDX-License-Identifier: BSD-3-Clause
"""Dense rows that are drawn on a card, with the labels 0 and 1 of a plane with noise."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROWS_AT_ONCE = 500_000
"""Rows that are drawn at a time: what is drawn takes a copy."""
_NOISE = 0.5
"""Of the scores, in units of their spread."""


def rows_on_card(arrays: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Rows of normal values in single precision, and their labels, both on the card."""
    count, columns = shape
    random = arrays.random.default_rng(0)
    X = arrays.empty(shape, np.float32)
    for first in range(0, count, _ROWS_AT_ONCE):
        some = min(_ROWS_AT_ONCE, count - first)
        X[first : first + some] = random.standard_normal((some, columns), np.float32)
    scores = X @ random.standard_normal(columns, np.float32)
    scores += _NOISE * scores.std() * random.standard_normal(count, np.float32)
    return X, (scores > 0).astype(np.int64)
