# SPDX-License-Identifier: BSD-3-Clause
"""BLAS with one thread.

Its threads wait for each other by spinning: on a machine that has other things to do, two of them are many
times slower than one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS has one thread for as long as the context lasts."""
    # The controller's own context first asks each library for all there is to know of it.
    before = [library.get_num_threads() for library in _blas()]
    try:
        for library in _blas():
            library.set_num_threads(1)
        yield
    finally:
        for library, threads in zip(_blas(), before, strict=True):
            library.set_num_threads(threads)
