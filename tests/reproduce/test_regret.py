# SPDX-License-Identifier: BSD-3-Clause
"""The regret of Pegasos stays below its bound for every realisation, and the bound cannot be smaller."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from combinations import every_pair
from maxmargin import Problem, core, solve
from maxmargin.reproduce.regret import regret, regrets
from oracles import DERIVATIVE, VALUE
from oracles.pegasos import pegasos
from oracles.stochastic_subgradient import stochastic_subgradient
from problems import clouds

LOSSES = ("hinge", "squared_hinge", "logistic")


def problem_of(loss="hinge", lambda_=0.1, intercept="none", weights=None, distance=1.0):
    X, y = clouds(n=30, d=3, distance=distance)
    X = X / np.linalg.norm(X, axis=1).max()
    return Problem.of(X, y, 1 / (30 * lambda_), loss=loss, intercept=intercept, weights=weights)


@every_pair(loss=LOSSES, lambda_=[1.0, 0.1, 0.01], intercept=["none", "regularised"], batch=[1, 3])
def test_the_bound_holds_for_every_realisation(loss, lambda_, intercept, batch):
    problem = problem_of(loss, lambda_, intercept)
    for seed in range(6):
        for found in regrets(
            problem, [1, 2, 10, 150], seed=seed, batch=batch, project=loss == "squared_hinge"
        ):
            slack = 1e-6 * found.paid
            assert found.regret <= found.sharp_bound + slack
            assert found.sharp_bound <= found.bound * (1 + 1e-12)
            assert found.allowed_G >= found.G * (1 - 1e-12)


def test_one_step_meets_the_bound_and_exceeds_the_lecture_s():
    # From w = 0 with |x| = 1 and lambda >= 1: f(0) = 1, min f = 1 - 1 / (2 lambda), and |g| = 1.
    problem = Problem.of([[0.6, 0.8]], [1.0], 0.5, intercept="none")
    found = regret(problem, 1)
    assert found.lambda_ == 2.0
    assert found.regret == pytest.approx(0.25)
    assert found.bound == pytest.approx(0.25)
    assert found.regret > found.G**2 / (2 * found.lambda_) * math.log(1 + 1)


def test_a_smaller_bound_would_fail():
    # So the tests above can tell: half of what is allowed is not.
    shares = [
        found.regret / found.bound
        for seed in range(10)
        for found in regrets(problem_of(), [1, 3], seed=seed)
    ]
    assert max(shares) > 0.5
    assert max(shares) <= 1.0 + 1e-6


@every_pair(loss=LOSSES, intercept=["none", "regularised"], batch=[1, 2])
def test_what_is_paid_is_what_the_pseudo_code_pays(loss, intercept, batch):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    problem, T = problem_of(loss, 0.5, intercept, weights), 40
    X, y, lambda_ = np.asarray(problem_rows()), problem.y, 1 / problem.total_cost
    order = np.empty(T * batch, np.int64)
    core.draw(order, 30, 5)
    batches = order.reshape(T, batch)
    if loss == "hinge":
        iterates = pegasos(X, y, problem.costs, batches, intercept=intercept, project=False)
    else:
        sizes = problem.total_cost / np.arange(1.0, T + 1)
        iterates = stochastic_subgradient(
            X, y, problem.costs, batches, sizes, loss=loss, intercept=intercept
        )
    share = problem.costs / problem.costs.mean() / batch
    paid, lengths = 0.0, []
    for (w, b), rows in zip(iterates[:-1], batches, strict=True):
        m = y[rows] * (X[rows] @ w + b)
        paid += lambda_ / 2 * (w @ w + b * b) + share[rows] @ VALUE[loss](m)
        pulls = share[rows] * DERIVATIVE[loss](m) * y[rows]
        g = np.append(
            lambda_ * w + pulls @ X[rows], lambda_ * b + pulls.sum() if intercept != "none" else 0.0
        )
        lengths.append(np.linalg.norm(g))
    found = regret(problem, T, seed=5, batch=batch)
    assert found.paid == pytest.approx(paid, rel=1e-9)
    np.testing.assert_allclose(found.G, max(lengths), rtol=1e-9)
    assert found.sharp_bound == pytest.approx(
        np.sum(np.square(lengths) / np.arange(1, T + 1)) / (2 * lambda_)
    )
    # The minimum, by the problem written out: one row for every draw.
    every = replace(problem, costs=np.bincount(order, minlength=30) * share / (T * lambda_))
    best = T * lambda_ * solve(every, tol=1e-9, max_steps=10_000).certificate.primal
    assert found.best == pytest.approx(best, rel=1e-6)
    assert found.best <= best


def problem_rows():
    X, _ = clouds(n=30, d=3)
    return X / np.linalg.norm(X, axis=1).max()


def test_the_longest_subgradient_is_measured_and_not_the_worst_case():
    found = regret(problem_of("hinge", 0.1), 200)
    assert found.allowed_G == pytest.approx(2.0)
    assert 0.5 < found.G < 0.95 * found.allowed_G
    assert problem_of().rows.squared_norms.max() == pytest.approx(1.0)


def test_the_squared_hinge_needs_the_ball():
    problem = problem_of("squared_hinge", 0.02)
    inside, outside = (regret(problem, 60, project=project) for project in (True, False))
    assert inside.G <= inside.allowed_G < math.inf
    assert outside.allowed_G == math.inf
    assert outside.G > 10 * inside.G
    assert outside.regret <= outside.bound, "the bound holds with the G that was met, however large"


def test_an_exact_intercept_has_no_bound():
    with pytest.raises(ValueError, match="strongly convex in all variables"):
        regret(problem_of(intercept="exact"), 5)
