# SPDX-License-Identifier: BSD-3-Clause
"""The memory for rows of the kernel matrix: kept within its budget, and reported."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, Problem, core, solve
from maxmargin.estimators.summary import fitted_summary
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.kernels.cache_use import CacheUse, cache_notes
from maxmargin.reductions.kernel_fit import cache_use
from maxmargin.solvers import KernelDualAscent, SequentialMinimalOptimization, WorkingSet
from problems import clouds

UNLIMITED = core.Budget(np.inf, 1)


def matrix_of(X, cache_bytes, counts, single=False, begins=(0, 40), spare=None):
    rows = KernelRows(X, Gaussian(0.5))
    begins = np.array([*begins, len(X)])  # two blocks
    return core.KernelMatrix(
        rows.data,
        rows.kernel.compiled,
        rows.which,
        begins,
        cache_bytes=cache_bytes,
        single=single,
        counts=counts,
        spare=spare,
    )


def gaussian_matrix(X):
    return np.exp(-0.5 * np.square(X[:, None] - X[None]).sum(axis=2))


def test_counts_and_bytes_of_rows_that_come_and_go():
    X, _ = clouds(n=100, d=3, seed=1)
    counts = core.CacheCounts()
    matrix = matrix_of(X, 10_000, counts)
    f, ones = np.zeros(100), np.ones(5)
    first = np.arange(5)  # 40 values of 8 bytes each
    matrix.add(first, ones, f, UNLIMITED)
    assert (counts.rows_computed, counts.rows_found, counts.peak_bytes) == (5, 0, 5 * 320)
    matrix.add(first, ones, f, UNLIMITED)
    assert (counts.rows_computed, counts.rows_found, counts.peak_bytes) == (5, 5, 5 * 320)
    matrix.add(np.arange(50, 80), np.ones(30), f, UNLIMITED)  # 60 values each: not all have room
    assert counts.rows_computed == 35
    assert 9_000 < counts.peak_bytes <= 10_000
    assert matrix.cached_bytes <= 10_000
    del matrix
    again = matrix_of(X, 10_000, counts)
    again.add(first, ones, f, UNLIMITED)
    assert counts.rows_computed == 40  # of both matrices
    assert counts.peak_bytes <= 10_000  # the first one's rows are gone


@pytest.mark.parametrize("cache_bytes", [0, 3_000, 1_000_000])
def test_rows_move_to_a_part_without_being_held_twice(cache_bytes):
    X, _ = clouds(n=100, d=3, seed=2)
    counts = core.CacheCounts()
    matrix = matrix_of(X, cache_bytes, counts)
    matrix.add(np.arange(100), np.ones(100), np.zeros(100), UNLIMITED)
    before = counts.peak_bytes
    assert before <= cache_bytes
    which = np.flatnonzero(np.arange(100) % 3 > 0)
    part = matrix.subset(which)
    assert counts.peak_bytes == before
    assert matrix.cached_bytes == 0
    computed, changes = counts.rows_computed, np.linspace(-1.0, 1.0, len(which))
    f = np.zeros(len(which))
    part.add(np.arange(len(which)), changes, f, UNLIMITED)
    if cache_bytes == 1_000_000:
        assert counts.rows_computed == computed  # all were found
    K = gaussian_matrix(X)
    K[:40, 40:] = K[40:, :40] = 0.0
    np.testing.assert_allclose(f, K[np.ix_(which, which)] @ changes, atol=1e-12)


def test_rows_of_one_block_are_cut_down_where_they_are():
    # 8 MB of rows: more than one piece of memory.
    n = 1_000
    X = np.random.default_rng(3).normal(size=(n, 2))
    K = gaussian_matrix(X)
    counts = core.CacheCounts()
    matrix = matrix_of(X, 8 * n * n, counts, begins=[0])
    kept = np.random.default_rng(4).permutation(n)[: n - 100]
    for some in np.split(kept, 5):  # rows lie in memory in another order than in the matrix
        matrix.add(np.sort(some), np.ones(len(some)), np.zeros(n), UNLIMITED)
    peak = counts.peak_bytes
    rows = np.arange(n)
    for missing in (80, 0):  # a part, and a part of it: the rows that were not kept are then
        which = np.flatnonzero(np.arange(len(rows)) % 5 > 0)
        matrix, rows = matrix.subset(which), rows[which]
        computed, changes, f = counts.rows_computed, np.linspace(-1.0, 1.0, len(rows)), np.zeros(len(rows))
        matrix.add(np.arange(len(rows)), changes, f, UNLIMITED)
        assert abs(counts.rows_computed - computed - missing) <= missing / 4
        np.testing.assert_allclose(f, K[np.ix_(rows, rows)] @ changes, atol=1e-11)
    assert counts.peak_bytes == peak


def test_memory_passes_from_one_matrix_to_the_next():
    spare = core.SpareMemory()
    for n, seed in ((300, 1), (200, 2), (300, 3)):
        X, _ = clouds(n=n, d=3, seed=seed)
        K, f = gaussian_matrix(X), np.zeros(n)
        matrix = matrix_of(X, 100_000, core.CacheCounts(), begins=[0], spare=spare)
        for some in np.split(np.arange(n), 10):
            matrix.add(some, np.ones(len(some)), f, UNLIMITED)
            matrix.add(some, np.ones(len(some)), f, UNLIMITED)  # as it was kept
        assert 90_000 < matrix.cached_bytes <= 100_000
        np.testing.assert_allclose(f, 2.0 * K.sum(axis=1), atol=1e-11)


@pytest.fixture(scope="module")
def overlapping():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(6000, 4)).astype(np.float32)
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * generator.normal(size=6000) > 0, 1.0, -1.0)


@pytest.mark.parametrize("kind", [WorkingSet, SequentialMinimalOptimization, KernelDualAscent])
def test_solvers_stay_within_their_budget_and_tell(overlapping, kind):
    X, y = overlapping
    intercept = "none" if kind is KernelDualAscent else "exact"
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 5.0, intercept=intercept)
    options = {"size": 256} if kind is WorkingSet else {}  # small sets: rows are put aside and come back
    notes = solve(problem, kind(cache_size=2.0, **options), tol=1e-2, max_steps=100).notes
    assert 1e6 < notes["cache_peak_bytes"] <= 2e6
    assert notes["cache_rows_computed"] > 100
    assert notes["cache_rows_found"] > 0


@pytest.mark.parametrize("n", [60, 1500, 2500])
def test_a_fit_reports_its_cache(n):
    # Solved at once; with all values at hand; with rows as they are needed.
    generator = np.random.default_rng(n)
    X = generator.normal(size=(n, 3))
    y = X[:, 0] * X[:, 1] + 0.3 * generator.normal(size=n) > 0
    model = SVC(C=5.0, cache_size=100.0).fit(X, y)
    use = model.cache_use_
    assert use.budget_bytes == 100_000_000
    least = 8 * n * n if n <= 2000 else 1
    assert least <= use.peak_bytes <= use.budget_bytes
    assert use.rows_computed >= (n if n <= 2000 else 1)
    assert use.hit_share == use.rows_found / (use.rows_computed + use.rows_found)
    assert str(use) in fitted_summary(model)
    assert SVC(C=5.0, kernel="precomputed").fit(np.eye(60), y[:60]).cache_use_.peak_bytes == 0


def test_a_configured_solver_brings_its_own_budget():
    X, y = clouds(n=2100, d=2, seed=3)
    model = SVC(solver=WorkingSet(cache_size=3.0), n_jobs=1).fit(X, y)
    assert model.cache_use_.budget_bytes == 3_000_000
    assert 0 < model.cache_use_.peak_bytes <= 3_000_000


@pytest.mark.parametrize(("columns", "single", "found"), [(3, True, 1), (3, False, 3), (30, True, 3)])
def test_quick_rows_are_kept_when_they_are_asked_for_again_and_again(columns, single, found):
    """Values of few columns in single precision are computed three times before memory is worth it."""
    X, _ = clouds(n=100, d=columns, seed=1)
    counts = core.CacheCounts()
    matrix = matrix_of(X, 10_000, counts, single)
    f, which = np.zeros(100), np.array([3, 50])
    for _ in range(4):
        matrix.add(which, np.ones(2), f, UNLIMITED)
    assert (counts.rows_computed, counts.rows_found) == (2 * (4 - found), 2 * found)
    exact = 4 * gaussian_matrix(X)[which]
    exact[0, 40:] = exact[1, :40] = 0.0
    np.testing.assert_allclose(f, exact.sum(axis=0), rtol=1e-5, atol=1e-6)


def test_problems_side_by_side_add_up():
    notes = [cache_notes(10, 3, 1), {}, cache_notes(30, 4, 0), cache_notes(20, 5, 2)]
    assert cache_use(1000, 7, 2, notes, 1) == CacheUse(1000, 37, 14, 3)
    assert cache_use(1000, 7, 2, notes, 2) == CacheUse(1000, 57, 14, 3)
    assert CacheUse(1000, 0, 0, 0).hit_share == 0.0


FIT = """
import json, resource, sys
import numpy as np
from maxmargin import SVC
generator = np.random.default_rng(0)
X = generator.normal(size=(6_000, 20)).astype(np.float32)
y = X[:, 0] * X[:, 1] + 0.5 * generator.normal(size=len(X)) > 0
model = SVC(C=8.0, gamma=0.1, cache_size=float(sys.argv[1]), n_jobs=1, random_state=0).fit(X, y)
peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([peak, model.cache_use_.peak_bytes]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the peak of a process")
def test_the_process_grows_by_the_cache_and_not_twice():
    peaks = []
    for size in (0.001, 40.0):
        run = subprocess.run(
            [sys.executable, "-c", FIT, str(size)], capture_output=True, text=True, check=True
        )
        peaks.append(json.loads(run.stdout))
    (without, none), (with_cache, held) = peaks
    assert none <= 1_000
    assert 20e6 < held <= 40e6
    assert with_cache - without <= 1.4 * held


@pytest.mark.parametrize(("cache_size", "rows"), [(1000.0, 3600), (150.0, 15 * 1200), (20.0, None)])
def test_values_of_pairs_of_classes_of_sparse_rows_are_computed_once(cache_size, rows):
    """Once in all, or for each pair, or as rows of working sets, as there is memory for them."""
    X = sparse.random(3600, 5000, 0.004, "csr", random_state=np.random.default_rng(0))
    y = np.arange(3600) % 6
    model = SVC(cache_size=cache_size).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert (model.cache_use_.rows_computed == rows) is (rows is not None)
    assert (model.cache_use_.rows_found == 0) is (rows is not None)
    assert model.cache_use_.peak_bytes <= 1e6 * cache_size
