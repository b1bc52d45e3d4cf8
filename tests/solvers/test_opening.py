# SPDX-License-Identifier: BSD-3-Clause
"""Where the second-order solvers begin: samples of the rows, and copies of some rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Problem, core, solve
from maxmargin.problem.rows import Rows
from maxmargin.solvers import AugmentedLagrangian, Newton
from maxmargin.solvers.second_order.near_margin import NearMargin
from maxmargin.solvers.second_order.opening import Opening, sample_size

SOLVERS = {"hinge": AugmentedLagrangian(), "squared_hinge": Newton(), "logistic": Newton()}
UNLIMITED = core.Budget(np.inf, 1)


def many_rows(n=20_000, d=5, *, seed=0, **options):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.where(X @ random.normal(size=d) + random.normal(size=n) > 0.3, 1.0, -1.0)
    return Problem.of(X, y, **options)


@pytest.mark.parametrize("intercept", ["none", "regularised", "exact"])
@pytest.mark.parametrize("loss", SOLVERS)
def test_a_sample_is_only_a_start(loss, intercept):
    weights = np.random.default_rng(1).integers(0, 3, 20_000)
    problem = many_rows(loss=loss, intercept=intercept, weights=weights, C=0.3)
    solver = SOLVERS[loss]
    assert isinstance(solver.init(problem, None), Opening)
    sampled = solve(problem, solver, tol=1e-10)
    plain = solve(problem, replace(solver, sampling=False), tol=1e-10)
    assert sampled.certificate.relative_gap <= 1e-10 >= plain.certificate.relative_gap
    assert sampled.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-10)


@pytest.mark.parametrize("loss", SOLVERS)
def test_a_sample_is_near_the_answer(loss):
    problem = many_rows(loss=loss, C=1.0)
    opening = SOLVERS[loss].init(problem, None)
    assert opening.problem.rows.count == sample_size(problem)
    assert opening.problem.total_cost == pytest.approx(problem.total_cost)
    while not opening.step(UNLIMITED):
        pass
    start = opening.solution(UNLIMITED)
    best = solve(problem, tol=1e-6).certificate.primal
    value = problem.primal(start.w, problem.best_intercept(problem.rows.scores(start.w)))
    assert best * (1 - 1e-6) <= value <= 1.03 * best
    assert opening.estimate == np.inf  # nothing is known of the rows outside


def test_the_seed_decides_the_sample():
    problem = many_rows()
    ys = [AugmentedLagrangian(seed=seed).init(problem, None).problem.y for seed in (1, 1, 2)]
    assert np.array_equal(ys[0], ys[1])
    assert not np.array_equal(ys[0], ys[2])


def test_few_rows_and_wide_rows_are_not_sampled():
    assert sample_size(many_rows(n=10_000)) == 0
    assert sample_size(many_rows(n=20_000, d=60)) == 0
    assert sample_size(many_rows(n=20_000)) == 1200


def test_a_sample_without_weight_is_no_start():
    y = many_rows().y
    weights = np.zeros(20_000)
    weights[[np.argmax(y), np.argmin(y)]] = 1.0
    problem = many_rows(weights=weights)
    assert Opening.by_sample(problem, AugmentedLagrangian()) is None
    assert solve(problem, AugmentedLagrangian(), tol=1e-6).certificate.relative_gap <= 1e-6


def test_a_budget_that_ends_in_the_opening_still_gives_a_model():
    problem = many_rows()
    for solver in (AugmentedLagrangian(), AugmentedLagrangian(sampling=False)):
        model = solve(problem, solver, tol=1e-9, max_steps=2)
        assert model.status.value != "certified"
        assert 0.0 < model.certificate.dual <= model.certificate.primal < problem.total_cost


@pytest.mark.parametrize("loss", SOLVERS)
def test_the_steps_on_a_sample_are_one_step(loss):
    problem, solver = many_rows(loss=loss), SOLVERS[loss]
    after = solver.step(problem, solver.init(problem, None), UNLIMITED)
    assert not isinstance(after, Opening) or isinstance(after, NearMargin)
    spent = core.Budget(np.inf, 1)
    spent.stop()
    cut_short = solver.step(problem, solver.init(problem, None), spent)
    assert isinstance(cut_short, Opening)
    assert cut_short.steps_left > 40


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "int32", "int64"])
def test_rows_that_are_taken(kind, dtype):
    random = np.random.default_rng(3)
    X = (random.normal(size=(30, 7)) * (random.random((30, 7)) < 0.5)).astype(dtype)
    given = X if kind == "dense" else sparse.csr_matrix(X)
    if kind != "dense":
        given.indices, given.indptr = given.indices.astype(kind), given.indptr.astype(kind)
    order = np.array([4, 4, 29, 0])
    taken = Rows(given).take(order)
    del given
    assert (taken.count, taken.columns, taken.dtype) == (4, 7, dtype)
    np.testing.assert_allclose(taken.scores(np.arange(7.0)), X[order].astype(float) @ np.arange(7.0))
    np.testing.assert_allclose(taken.squared_norms, (X[order].astype(float) ** 2).sum(axis=1))
    assert Rows(X).take(np.empty(0, np.int64)).count == 0
    for wrong in (-1, 30):
        with pytest.raises(ValueError, match="out of range"):
            Rows(X).take(np.array([wrong]))
