# SPDX-License-Identifier: BSD-3-Clause
"""The working set solver against its oracle, and what its parts promise."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import Problem, Rows, Solution, Status, certify, core, solve
from maxmargin.kernels import Gaussian, KernelRows, Laplacian, Polynomial, Precomputed
from maxmargin.problem.regression import regression_problem
from maxmargin.problem.shares import nu_classification_problem, nu_regression_problem
from maxmargin.solvers import WorkingSet, working_set
from oracles.working_set import newton_step, one_round
from problems import clouds

UNLIMITED = core.Budget(np.inf, 1)
INNER_SHARE = 0.1


def gaussian_matrix(X, gamma):
    return np.exp(-gamma * np.sum((X[:, None] - X[None]) ** 2, axis=2))


def given(K):
    """A kernel matrix of the core that has the values of K."""
    rows = KernelRows(K, Precomputed())
    return core.KernelMatrix(
        rows.data,
        rows.kernel.compiled,
        np.arange(len(K)),
        np.array([0, len(K)]),
        cache_bytes=0,
        single=False,
    )


def test_rounds_on_all_rows_are_the_oracle_s():
    X, y = clouds(n=41, d=3, seed=1)
    K, costs = gaussian_matrix(X, 0.7), np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    low, high = np.minimum(0.0, costs * y), np.maximum(0.0, costs * y)
    matrix = core.KernelMatrix(
        KernelRows(X, Gaussian(0.7)).data,
        Gaussian(0.7).compiled,
        np.arange(41),
        np.array([0, 41]),
        cache_bytes=0,
        single=False,
    )
    rounds, dual = core.WorkingSet(matrix, 64, 0), core.KernelDual(y, costs)
    theirs = np.zeros(41)
    for _ in range(4):
        assert rounds.run(dual, 1, UNLIMITED) == 1
        theirs = one_round(K, y, low, high, theirs, range(41), INNER_SHARE)
        np.testing.assert_allclose(dual.beta, theirs, atol=1e-10)
        np.testing.assert_allclose(dual.f, K @ dual.beta - y, atol=1e-10)


def halfway(K, y, costs):
    """A dual with all multipliers in the middle of their box, and a working set on it."""
    matrix, dual = given(K), core.KernelDual(y, np.full(len(y), costs))
    dual.beta[:] = 0.5 * costs * y
    dual.restore_gradient(matrix, UNLIMITED)
    np.testing.assert_allclose(dual.f, K @ dual.beta - y, rtol=1e-12, atol=1e-9)
    return matrix, dual


@pytest.mark.parametrize("size", [12, 300])
def test_newton_s_step_solves_the_bordered_system(size):
    generator = np.random.default_rng(3)
    A = generator.normal(size=(size, 2 * size))
    K, y = A @ A.T, np.where(generator.normal(size=size) > 0, 1.0, -1.0)
    matrix, dual = halfway(K, y, 1e3)
    before, f = dual.beta.copy(), dual.f.copy()
    # Rows of other lengths pull at beta by more than their box: a fifth of it has room for the step.
    dual.f[:] = f = 1e-3 * f
    assert core.WorkingSet(matrix, 8, 0).move_free(dual, size, 8, UNLIMITED) == 1
    changes = dual.beta - before
    np.testing.assert_allclose(changes, newton_step(K, f), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(dual.f, f + K @ changes, rtol=1e-9, atol=1e-6)


def test_newton_s_step_ends_at_walls_and_lowers_the_dual():
    generator = np.random.default_rng(4)
    A = generator.normal(size=(30, 40))
    K, y = A @ A.T / 40, np.where(generator.normal(size=30) > 0, 1.0, -1.0)
    matrix, dual = halfway(K, y, 0.1)
    before = dual.beta.copy()
    assert 1 < core.WorkingSet(matrix, 8, 0).move_free(dual, 30, 8, UNLIMITED) <= 8

    def value(beta):
        return 0.5 * beta @ K @ beta - y @ beta

    alpha = dual.beta * y
    assert np.all((alpha >= 0.0) & (alpha <= 0.1))
    assert np.any((alpha == 0.0) | (alpha == 0.1))
    assert np.any((alpha > 0.0) & (alpha < 0.1))
    assert abs(dual.beta.sum() - before.sum()) < 1e-12
    assert value(dual.beta) < value(before)
    np.testing.assert_allclose(dual.f, K @ dual.beta - y, atol=1e-12)


def test_newton_s_step_is_not_taken_on_more_than_is_asked_for_or_where_there_is_no_kernel():
    matrix, dual = halfway(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]), 1.0)
    before = dual.beta.copy()
    assert core.WorkingSet(matrix, 4, 0).move_free(dual, 3, 8, UNLIMITED) == 0
    matrix, dual = halfway(-np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]), 1.0)
    assert core.WorkingSet(matrix, 4, 0).move_free(dual, 4, 8, UNLIMITED) == 0
    np.testing.assert_array_equal(dual.beta, before)


def test_a_dual_of_other_rows_is_refused():
    matrix, dual = given(np.eye(4)), core.KernelDual(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="one number per row"):
        core.WorkingSet(matrix, 4, 0).run(dual, 1, UNLIMITED)
    with pytest.raises(ValueError, match="one number per row"):
        dual.restore_gradient(matrix, UNLIMITED)


def test_the_gap_with_the_best_intercept_is_the_certificate_s():
    X, y = clouds(n=120, d=3, seed=7)
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 3.0)
    solver = WorkingSet(size=16)
    state = solver.init(problem, None)
    whole, dual = state.whole, state.whole.dual
    for _ in range(4):
        whole.rounds.run(dual, 1, UNLIMITED)
        quick = whole.relative_gap
        dual.take_best_point()
        proof = certify(problem, solver.solution(problem, state, UNLIMITED))
        assert dual.primal - dual.dual == pytest.approx(proof.gap, rel=1e-6)
        assert dual.primal == pytest.approx(proof.primal, rel=1e-10)
        assert whole.relative_gap <= quick


def test_the_gap_with_the_best_length_is_the_certificate_s():
    """Where C is large, trifles that rows lack count C times, unless w is longer by as little."""
    X, y = clouds(n=120, d=3, seed=7)
    problem = Problem.of(KernelRows(X, Gaussian(2.0)), y, 1e4)
    solver = WorkingSet(size=16)
    state = solver.init(problem, None)
    whole, dual = state.whole, state.whole.dual
    whole.rounds.run(dual, 100, UNLIMITED)
    plain = dual.primal - dual.dual
    dual.take_best_point()
    proof = certify(problem, solver.solution(problem, state, UNLIMITED))
    assert 0.0 < dual.primal - dual.dual < 0.1 * plain
    assert dual.primal - dual.dual == pytest.approx(proof.gap, rel=0.05)


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("rank", [3, 400])
def test_few_examples_of_a_regression_are_all_in_one_set(rank, total):
    """No value is computed twice, and no step of Newton's method leads away, also of rows that depend."""
    random = np.random.default_rng(rank)
    X = random.normal(size=(300, rank))
    y = np.sin(X[:, 0]) + 0.1 * random.normal(size=300)
    rows = KernelRows(X, Polynomial(1, 1.0 / rank, 1.0))
    if total:
        problem = nu_regression_problem(rows, y, 10.0, 0.4)
    else:
        problem = regression_problem(rows, y, 10.0, epsilon=0.1)
    solver, K = WorkingSet(), rows.block(np.arange(300), np.arange(300))
    state, before = solver.init(problem, None), -np.inf
    for _ in range(40):
        state = solver.step(problem, state, UNLIMITED)
        dual = state.whole.dual
        np.testing.assert_allclose(dual.f, K @ dual.beta - dual.wanted, atol=1e-9)
        assert dual.dual >= before - 1e-9 * abs(before)
        before = dual.dual
    assert state.whole.has_all
    begun = np.count_nonzero(solver.init(problem, None).whole.dual.beta)
    assert state.whole.matrix.computed_rows == begun
    proof = certify(problem, solver.solution(problem, state, UNLIMITED))
    assert proof.relative_gap <= 1e-3


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
            exact = problem.rows.block(some, np.arange(6000)) @ state.whole.dual.beta - y[some]
            np.testing.assert_allclose(state.whole.dual.f[some], exact, atol=1e-3)
        if state.precise:
            break
    assert aside >= 1
    assert back >= 1
    assert state.precise


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.3), Polynomial(2, 0.5, 1.0)])
def test_the_end_game_reaches_the_last_digits(overlapping, kernel):
    X, y = overlapping
    problem = Problem.of(KernelRows(X[:2500], kernel), y[:2500], 1.0)
    assert solve(problem, "working_set", tol=2e-9).certificate.relative_gap <= 2e-9


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
        assert models[0].certificate.primal == pytest.approx(models[1].certificate.primal, rel=1e-9)


def stated(member, n=900):
    """A problem of a member, of which most multipliers end at a wall."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    rows, noise = KernelRows(X, Gaussian(0.3)), rng.normal(size=n)
    labels = np.where(X[:, 0] + 0.7 * noise > 0.0, 1.0, -1.0)
    if member == "classes":
        return Problem.of(rows, labels, 20.0)
    if member == "regression":
        return regression_problem(rows, np.sin(2.0 * X[:, 0]) + 0.2 * noise, 20.0, epsilon=0.2)
    if member == "nu":
        return nu_classification_problem(rows, labels, 0.4)
    return nu_regression_problem(rows, np.sin(2.0 * X[:, 0]) + 0.2 * noise, 20.0, 0.3)


@pytest.mark.parametrize("member", ["classes", "regression", "nu", "nu-regression"])
@pytest.mark.parametrize("single", [False, True])
def test_sets_that_take_rows_apart_lead_to_the_optimum(member, single, monkeypatch):
    monkeypatch.setattr(working_set, "DOUBLE_ROWS", 0 if single else 2000)
    problem = stated(member)
    model = solve(problem, WorkingSet(size=600), tol=1e-6)
    assert model.status is Status.CERTIFIED
    best = solve(problem, WorkingSet(size=200), tol=1e-6)  # sets so small that they stay whole
    assert model.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-6)


def test_a_start_that_brings_its_margins_needs_no_row_of_the_matrix():
    X, y = clouds(n=300, d=3, seed=1)
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 1.0)
    proof = solve(problem, tol=1e-6).certificate
    alone = WorkingSet().init(problem, Solution(alpha=proof.alpha)).whole
    start = Solution(alpha=proof.alpha, b=proof.b, margins=proof.margins)
    told = WorkingSet().init(problem, start).whole
    assert alone.matrix.computed_rows > 0
    assert told.matrix.computed_rows == 0
    np.testing.assert_allclose(told.dual.f, alone.dual.f, atol=1e-10)
    assert solve(problem, tol=1e-4, start=start).status is Status.CERTIFIED


def test_work_that_will_not_do_is_not_finished():
    """Labels that are mostly noise, at a large C: the gap falls too slowly for the work that is left."""
    random = np.random.default_rng(0)
    X = random.normal(size=(2500, 3))
    y = np.where(X[:, 0] + 2.0 * random.normal(size=2500) > 0.0, 1.0, -1.0)
    problem = Problem.of(KernelRows(X, Gaussian(0.5)), y, 1e4)
    most = 1e8
    whole = solve(problem, WorkingSet(most_work=most), tol=1e-3, max_steps=10_000)
    sooner = solve(problem, WorkingSet(most_work=most, aim=1e-3), tol=1e-3, max_steps=10_000)
    assert whole.certificate.relative_gap > 0.1
    assert sooner.status is Status.RULE_FIRED
    assert sooner.steps < 0.7 * whole.steps
    easy = Problem.of(KernelRows(X, Gaussian(0.5)), np.sign(X[:, 0] + 0.1), 10.0)
    steps = [
        solve(easy, WorkingSet(most_work=most, aim=aim), tol=1e-3, max_steps=10_000).steps
        for aim in (0.0, 1e-3)
    ]
    assert steps[0] == steps[1]


def noisy(n, d, seed):
    """Labels of a plane that are half noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.where(X @ random.normal(size=d) + 2.0 * random.normal(size=n) > 0.0, 1.0, -1.0)


def test_single_precision_ends_where_its_rounding_is_what_is_left():
    """500 steps in single precision alone leave a gap of 8e-3, and the solver sees one of 1e-4."""
    X, y = noisy(2200, 4, seed=5)
    problem = Problem.of(KernelRows(X, Gaussian(0.05)), y, 1e5)
    model = solve(problem, WorkingSet(aim=1e-3), tol=1e-3, max_steps=500)
    assert model.status is Status.CERTIFIED


def test_single_precision_is_enough_where_its_rounding_is_below_the_aim():
    X, y = noisy(2200, 4, seed=5)
    problem = Problem.of(KernelRows(X, Gaussian(0.05)), y, 10.0)
    solver = WorkingSet(aim=1e-3)
    state = solver.init(problem, None)
    while not state.finished and state.estimate > 1e-3:
        state = solver.step(problem, state, UNLIMITED)
    assert not state.precise
    dual = state.whole.dual
    assert not working_set._single_is_exhausted(problem, dual, state.estimate, 1e-3)
    assert working_set._single_is_exhausted(problem, dual, 1e-5, 1e-3)
    assert not working_set._single_is_exhausted(problem, dual, np.inf, 0.0)
