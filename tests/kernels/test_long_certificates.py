# SPDX-License-Identifier: BSD-3-Clause
"""Certificates that take long: time is kept for them, and they can be heard of and left."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, Solution, Status, certify, core, solve
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.solvers import WorkingSet
from problems import clouds


@pytest.fixture(scope="module")
def wide():
    """Few values in very many columns."""
    random = np.random.default_rng(0)
    columns = random.choice(2**22, 30, replace=False)
    dense = random.normal(size=(200, 30)) * (random.random((200, 30)) < 0.5)
    rows, places = np.nonzero(dense)
    X = sparse.csr_matrix((dense[rows, places], (rows, columns[places])), shape=(200, 2**22))
    squares = np.square(dense[:, None] - dense[None]).sum(axis=2)
    return X, np.exp(-0.1 * squares)


@pytest.fixture(scope="module")
def many():
    """More rows than are summed up between two looks at who waits."""
    return np.random.default_rng(0).normal(size=(4500, 2))


def test_sums_over_wide_rows_are_right(wide):
    X, K = wide
    w = np.linspace(-1.0, 1.0, 200)
    np.testing.assert_allclose(KernelRows(X, Gaussian(0.1)).scores(w), K @ w, atol=1e-11)


def test_sums_are_told_of_and_right(many):
    w, calls = np.linspace(-1.0, 1.0, 4500), []
    found = KernelRows(many, Gaussian(0.1)).scores(w, tell=lambda: calls.append(1))
    some = np.exp(-0.1 * np.square(many[:50, None] - many[None]).sum(axis=2)) @ w
    np.testing.assert_allclose(found[:50], some, atol=1e-9)
    assert len(calls) == 2  # between 3 times 2048 rows
    np.testing.assert_array_equal(KernelRows(many, Gaussian(0.1)).scores(w), found)


def test_whoever_is_told_may_end_it(many):
    def refuse():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KernelRows(many, Gaussian(0.1)).scores(np.ones(4500), tell=refuse)


def test_rows_of_the_matrix_are_added_some_at_a_time(wide):
    X, K = wide
    rows = KernelRows(X, Gaussian(0.1))
    for cache_bytes in (0, 10_000, 10**9):
        begins = np.array([0, 200])
        matrix = core.KernelMatrix(
            rows.data, rows.kernel.compiled, rows.which, begins, cache_bytes=cache_bytes, single=False
        )
        for _ in range(2):
            f, changes = np.zeros(200), np.linspace(0.0, 1.0, 150)
            matrix.add(np.arange(150), changes, f, core.ALL_CORES)
            np.testing.assert_allclose(f, K[:, :150] @ changes, atol=1e-11)


def _alternating(X):
    """A problem in which all rows are support vectors of the start."""
    count = len(X)
    y = np.where(np.arange(count) % 2, 1.0, -1.0)
    return Problem.of(KernelRows(X, Gaussian(0.1)), y, C=100.0), Solution(alpha=np.ones(count))


def test_the_callback_hears_of_a_long_certificate(many, monkeypatch):
    monkeypatch.setattr("maxmargin.solving.loop._SECONDS_BETWEEN_CALLS", 0.0)
    problem, start = _alternating(many)
    steps = []
    tell = {"callback": lambda progress: steps.append(progress.step)}
    solve(problem, WorkingSet(size=64), tol=1e-9, max_steps=1, start=start, **tell)
    assert steps.count(0) == 3  # twice during the sums over all rows, and after them


def test_a_wish_to_stop_during_a_certificate_counts(many, monkeypatch):
    monkeypatch.setattr("maxmargin.solving.loop._SECONDS_BETWEEN_CALLS", 0.0)
    problem, start = _alternating(many)
    calls = []

    def once(progress):
        calls.append(progress)
        return len(calls) == 1

    model = solve(problem, tol=1e-9, start=start, callback=once)
    assert model.status is Status.STOPPED
    assert model.steps == 0
    assert model.certificate.dual == certify(problem, start).dual


def test_time_is_kept_for_the_last_certificate(monkeypatch):
    X, y = clouds(n=2500, d=3, seed=1)
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 10.0)
    asked = []

    def slow(self, w, budget):
        asked.append(np.count_nonzero(w))
        return 0.1 * np.count_nonzero(w)  # a hundred support vectors leave no time

    monkeypatch.setattr(KernelRows, "seconds_of_scores", slow)
    begun = time.perf_counter()
    model = solve(problem, WorkingSet(size=128), tol=1e-9, max_time=10.0)
    assert model.status is Status.TIME_SPENT
    assert asked[0] == 0
    assert asked[-1] >= 80
    assert model.certificate.relative_gap < 1.0
    assert time.perf_counter() - begun < 5.0


def test_the_estimate_is_about_right():
    random = np.random.default_rng(2)
    rows = KernelRows(random.normal(size=(8000, 60)), Gaussian(0.01))
    w = (np.arange(8000) % 4 == 0).astype(float)
    rows.seconds_of_scores(w, core.ALL_CORES)
    estimate = min(_again(rows, w) for _ in range(3))
    begun = time.perf_counter()
    rows.scores(w)
    taken = time.perf_counter() - begun
    assert 0.1 * taken < estimate < 20.0 * taken  # other processes may run beside this one
    assert rows.seconds_of_scores(np.zeros(8000), core.ALL_CORES) == 0.0


def _again(rows, w):
    rows._seconds_per_value = None
    return rows.seconds_of_scores(w, core.ALL_CORES)


def test_a_round_cut_short_leaves_its_gradient_right():
    random = np.random.default_rng(3)
    X = random.normal(size=(2200, 1000)).astype(np.float32)
    y = np.where(np.arange(2200) < 1100, 1.0, -1.0)  # sorted by class
    rows = KernelRows(X, Gaussian(1e-4))
    begins = np.array([0, 2200])
    matrix = core.KernelMatrix(
        rows.data, rows.kernel.compiled, rows.which, begins, cache_bytes=0, single=True
    )
    dual = core.KernelDual(y, np.ones(2200))
    core.WorkingSet(matrix, 2048, 0).run(dual, 1, core.Budget(1e-9, 1))
    cut = np.count_nonzero(dual.beta)
    assert 0 < np.count_nonzero(dual.beta > 0) < cut  # of both classes
    support = np.flatnonzero(dual.beta)
    exact = rows.block(np.arange(2200), support) @ dual.beta[support] - y
    np.testing.assert_allclose(dual.f, exact, atol=1e-3)
    whole = core.KernelDual(y, np.ones(2200))
    core.WorkingSet(matrix, 2048, 0).run(whole, 1, core.Budget(np.inf, 1))
    assert cut < np.count_nonzero(whole.beta)
    assert abs(whole.beta.sum()) < 1e-9


def test_a_part_of_a_budget():
    budget = core.Budget(100.0, 2)
    some, more = budget.part(1.0), budget.part(1e6)
    assert 0.0 < some.seconds_left <= 1.0
    assert more.seconds_left <= 100.0
    assert budget.part(-1.0).spent
    assert not budget.spent
    some.stop()
    assert budget.stopped
    assert more.spent
