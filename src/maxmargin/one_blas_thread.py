# SPDX-License-Identifier: BSD-3-Clause
"""BLAS with one thread.

Its threads wait for each other by spinning: on a machine that has other things to do, two of them are many
times slower than one alone.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """For as long as the context lasts."""
    limited: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limited
