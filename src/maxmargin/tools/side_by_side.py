# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a large product on several threads, each of them with one thread of BLAS.

Threads of Python sleep while they wait, so that other work on the machine only makes them late. The parts
do not depend on the number of threads, and neither do the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from maxmargin.tools.one_blas_thread import one_blas_thread


def side_by_side(parts: Iterable[Callable[[], object]], threads: int) -> None:
    """Run the parts, which write to different places, on so many threads at most."""
    with one_blas_thread():
        if threads <= 1:
            for part in parts:
                part()
            return
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(part) for part in parts]:
                done.result()
