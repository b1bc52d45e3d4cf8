# SPDX-License-Identifier: BSD-3-Clause
"""The working set solver against its oracle, and what its parts promise."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import Problem, Rows, Solution, certify, core, solve
from maxmargin.kernels import Gaussian, KernelRows, Laplacian, Polynomial
from maxmargin.solvers import WorkingSet
from maxmargin.solvers.kernel.free_multipliers import newton_changes
from oracles.working_set import newton_step, one_round
from problems import clouds

UNLIMITED = core.Budget(np.inf, 1)
INNER_SHARE = 0.1


def gaussian_matrix(X, gamma):
    return np.exp(-gamma * np.sum((X[:, None] - X[None]) ** 2, axis=2))


def test_rounds_on_all_rows_are_the_oracle_s():
    X, y = clouds(n=41, d=3, seed=1)
    K, costs = gaussian_matrix(X, 0.7), np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    low, high = np.minimum(0.0, costs * y), np.maximum(0.0, costs * y)
    matrix = core.KernelMatrix(
        KernelRows(X, Gaussian(0.7)).data,
        Gaussian(0.7).compiled,
        np.arange(41),
        np.array([0, 41]),
        0,
        False,
    )
    rounds = core.WorkingSet(matrix, 64, 0)
    beta, f = np.zeros(41), -y
    theirs = np.zeros(41)
    for _ in range(4):
        rounds.run(low, high, y, beta, f, 1, UNLIMITED)
        theirs = one_round(K, y, low, high, theirs, range(41), INNER_SHARE)
        np.testing.assert_allclose(beta, theirs, atol=1e-10)
        np.testing.assert_allclose(f, K @ beta - y, atol=1e-10)


def test_newton_s_step_solves_the_bordered_system():
    generator = np.random.default_rng(3)
    A = generator.normal(size=(12, 20))
    K, f = A @ A.T, generator.normal(size=12)
    far = np.full(12, 1e6)
    changes = newton_changes(K, f, np.zeros(12), -far, far)
    np.testing.assert_allclose(changes, newton_step(K, f), rtol=1e-7, atol=1e-9)


def test_newton_s_step_ends_at_walls_and_lowers_the_dual():
    generator = np.random.default_rng(4)
    A = generator.normal(size=(30, 40))
    K, y = A @ A.T / 40, np.where(generator.normal(size=30) > 0, 1.0, -1.0)
    beta = np.zeros(30)
    wall = np.full(30, 0.05)
    changes = newton_changes(K, K @ beta - y, beta, -wall, wall)

    def value(beta):
        return 0.5 * beta @ K @ beta - y @ beta

    assert np.all(np.abs(changes) <= wall)
    assert np.any(np.abs(changes) == wall)
    assert abs(changes.sum()) < 1e-12
    assert value(changes) < value(beta)


def test_the_gap_with_the_best_intercept_is_the_certificate_s():
    X, y = clouds(n=120, d=3, seed=7)
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 3.0)
    solver = WorkingSet(size=16)
    state = solver.init(problem, None)
    for _ in range(4):
        state.whole.run(1, UNLIMITED)
        quick = state.whole.gap
        state.whole.take_best_intercept()
        proof = certify(problem, solver.solution(problem, state, UNLIMITED))
        assert state.whole.gap == pytest.approx(proof.gap, rel=1e-9)
        assert state.whole.primal == pytest.approx(proof.primal, rel=1e-12)
        assert state.whole.gap <= quick


@pytest.fixture(scope="module")
def overlapping():
    """Enough rows for single precision, rows put aside and rows brought back."""
    generator = np.random.default_rng(5)
    X = generator.normal(size=(6000, 4)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * generator.normal(size=6000) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("cache_size", [0.0, 2.0, 1000.0])
def test_same_optimum_however_little_memory(overlapping, cache_size):
    X, y = overlapping
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 5.0)
    model = solve(problem, WorkingSet(cache_size=cache_size, size=256), tol=1e-5)
    reference = solve(problem, "sequential_minimal_optimization", tol=1e-5, max_steps=10_000)
    assert model.certificate.relative_gap <= 1e-5
    assert (
        abs(model.certificate.primal - reference.certificate.primal) <= 2e-5 * reference.certificate.primal
    )


def test_rows_put_aside_come_back(overlapping):
    X, y = overlapping
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 5.0)
    solver = WorkingSet(cache_size=0.0, size=256)
    state = solver.init(problem, None)
    aside = back = 0
    for _ in range(400):
        before = state.part is not None
        solver.step(problem, state, UNLIMITED)
        after = state.part is not None
        aside += after and not before
        if before and not after:
            back += 1
            # The gradient of all rows is what the multipliers make it, though most were not looked at.
            some = np.arange(0, 6000, 97)
            exact = problem.rows.block(some, np.arange(6000)) @ state.whole.beta - y[some]
            np.testing.assert_allclose(state.whole.f[some], exact, atol=1e-3)
        if state.precise:
            break
    assert aside >= 1
    assert back >= 1
    assert state.precise


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.3), Polynomial(2, 0.5, 1.0)])
def test_the_end_game_reaches_the_last_digits(overlapping, kernel):
    X, y = overlapping
    problem = Problem.of(KernelRows(X[:2500], kernel), y[:2500], 1.0)
    assert solve(problem, "working_set", tol=1e-10).certificate.relative_gap <= 1e-10


def test_a_start_that_is_not_in_balance():
    X, y = clouds(n=60, d=3, seed=6)
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 1.0)
    start = Solution(alpha=np.where(y > 0, 1.0, 0.0))
    assert solve(problem, "working_set", tol=1e-8, start=start).certificate.relative_gap <= 1e-8


def test_a_pair_of_many_classes_is_solved_as_if_it_were_alone():
    """Bytes are read once for all classes; another pair has used them, and the memory, before."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 3, 3_500)
    centres = rng.integers(0, 200, (3, 48)) * (rng.random((3, 48)) < 0.5)
    pixels = centres[labels] + rng.integers(-90, 90, (3_500, 48))
    X = np.clip(pixels, 0, 255).astype(float)
    shared, kernel, spare = Rows(X), Gaussian(2e-5), core.SpareMemory()
    assert core.kernel_encoding(kernel.compiled, shared.stored_data) == "bytes"
    for pair in ((0, 1), (1, 2)):
        which = np.concatenate([np.flatnonzero(labels == label) for label in pair])
        y = np.where(labels[which] == pair[0], 1.0, -1.0)
        among = KernelRows(shared, kernel, which=which)
        among.spare = spare
        models = [
            solve(Problem.of(rows, y, 2.0), WorkingSet(size=256, cache_size=4.0), tol=1e-3)
            for rows in (among, KernelRows(X[which], kernel))
        ]
        assert 100 < np.count_nonzero(models[0].alpha) < len(y)
        np.testing.assert_array_equal(models[0].alpha, models[1].alpha)
        assert models[0].certificate.primal == models[1].certificate.primal
