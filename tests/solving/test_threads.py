# SPDX-License-Identifier: BSD-3-Clause
"""Work shared among threads: every share is done once, whoever calls, in whatever process."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from maxmargin import core
from maxmargin.problem.rows import Rows

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(-8, 9, (40_000, 30)).astype(np.float64)
W = RANDOM.integers(-8, 9, 30).astype(np.float64)
COEFFICIENTS = RANDOM.integers(-8, 9, 40_000).astype(np.float64)
SCORES, COMBINED = X @ W, COEFFICIENTS @ X


def passes(threads):
    """Sums of whole numbers: exact, in whatever order."""
    rows, budget = Rows(X), core.Budget(np.inf, threads)
    return rows.scores(W, budget), rows.combine(COEFFICIENTS, budget)


def is_right(answer):
    scores, combined = answer
    return np.array_equal(scores, SCORES) and np.array_equal(combined, COMBINED)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_any_number_of_threads(threads):
    for _ in range(20):
        assert is_right(passes(threads))


def test_many_callers_at_a_time():
    with ThreadPoolExecutor(8) as callers:
        assert all(map(is_right, callers.map(passes, [1, 2, 3, 4] * 25)))


def _in_a_child(queue):
    queue.put(is_right(passes(3)))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    assert is_right(passes(3))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert is_right(passes(3))
