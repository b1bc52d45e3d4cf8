# SPDX-License-Identifier: BSD-3-Clause
"""Maps whose results are dense and whose columns have no better names than numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.core import default_threads
from maxmargin.features.base import FeatureMap
from maxmargin.tools.one_blas_thread import one_blas_thread

_BLOCK_VALUES = 2**19
"""The values of a block of rows: a few such blocks stay in the cache while they are worked on."""


class NumberedMap(FeatureMap):
    """Names its columns after its class: distances0, distances1, ... Subclasses set ``_n_features_out``."""

    _n_features_out: int

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        prefix = type(self).__name__.lower()
        return [f"{prefix}{j}" for j in range(self._n_features_out)]


def in_double(X: Any) -> Any:
    """X in double precision.

    Values of a map in single precision depend on the rows beside: BLAS sums up blocks of another size in
    another order. In double precision that is far below what a proof says.
    """
    return X.astype(np.float64, copy=False)


def map_in_blocks(X: Any, columns: int, work: Callable[[Any, NDArray[Any]], None]) -> NDArray[Any]:
    """A matrix of X's type with so many columns, made block of rows by block on all cores.

    ``work(rows, out)`` fills the part ``out`` that belongs to a block of rows.
    """
    count = X.shape[0]
    out: NDArray[Any] = np.empty((count, columns), X.dtype)
    block = max(1, min(4096, _BLOCK_VALUES // max(1, columns)))
    starts = range(0, count, block)

    def fill(start: int) -> None:
        work(X[start : start + block], out[start : start + block])

    threads = min(default_threads(), len(starts))
    with one_blas_thread():  # the blocks have the cores
        if threads <= 1:
            for start in starts:
                fill(start)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(fill, starts))
    return out
