# SPDX-License-Identifier: BSD-3-Clause
"""BLAS with one thread.

Its threads wait for each other by spinning: on a machine that has other things to do, two of them are many
times slower than one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import Any


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


_here = local()
"""How deep each thread is in such contexts."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS has one thread for as long as the context lasts.

    Where its threads belong to the process, threadpoolctl lets only the first thread that asks set their
    number, until that gives it up. So whoever starts threads that need BLAS enters a context before.
    """
    # The controller's own context first asks each library for all there is to know of it.
    before = [library.get_num_threads() for library in _blas()]
    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        for library in _blas():
            library.set_num_threads(1)
        yield
    finally:
        _here.depth -= 1
        for library, threads in zip(_blas(), before, strict=True):
            library.set_num_threads(threads)
            if _here.depth == 0 and hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread()
