# SPDX-License-Identifier: BSD-3-Clause
"""BLAS has one thread where our threads have the cores, and its own number afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from maxmargin.solving.ways import solve_each
from maxmargin.tools import one_blas_thread as blas
from maxmargin.tools.one_blas_thread import one_blas_thread


def threads():
    return {library.get_num_threads() for library in blas._blas()}


@pytest.fixture
def three_threads():
    before = [library.get_num_threads() for library in blas._blas()]
    for library in blas._blas():
        library.set_num_threads(3)
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()
    yield
    for library, number in zip(blas._blas(), before, strict=True):
        library.set_num_threads(number)


@pytest.mark.usefixtures("three_threads")
def test_a_thread_that_lives_on_keeps_nobody_from_setting_it():
    def nested():
        with one_blas_thread(), one_blas_thread():
            return threads()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(nested).result() == {1}
        assert threads() == {3}
        assert nested() == {1}
        assert threads() == {3}


@pytest.mark.usefixtures("three_threads")
def test_problems_side_by_side_leave_blas_one_thread():
    assert solve_each(4, lambda k, budget: threads(), 60.0, 2) == [{1}] * 4
    assert threads() == {3}
