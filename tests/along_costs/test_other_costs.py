# SPDX-License-Identifier: BSD-3-Clause
"""What certificates prove at other costs: proofs all the same, made without a pass over the data."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from combinations import every_pair
from maxmargin import Problem, Solution, certify, path, solve
from maxmargin.along_costs.other_costs import (
    _balance,
    _best_multiples,
    _solve,
    carried_over,
    combined,
    start_of,
)
from maxmargin.core import Budget
from maxmargin.problem.rows import Rows
from maxmargin.solvers import AugmentedLagrangian, DualCoordinateAscent, Newton
from problems import INTERCEPTS, clouds, is_proof_of

LOSSES = ("hinge", "squared_hinge", "logistic")
ONE_THREAD = Budget(np.inf, 1)


def problem_of(loss="hinge", intercept="exact", n=300):
    X, y = clouds(n=n, d=8, seed=3)
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float)
    return Problem.of(X, y, loss=loss, intercept=intercept, weights=weights)


def certificates(problem, *Cs, tol=1e-6):
    return tuple(solve(problem.with_costs_times(C), tol=tol).certificate for C in Cs)


@every_pair(loss=LOSSES, intercept=INTERCEPTS, Cs=[(0.3, 2.0), (2.0, 0.3)], C=[0.02, 0.5, 1.0, 3.0, 50.0])
def test_two_certificates_prove_more_than_either(loss, intercept, Cs, C):
    problem = problem_of(loss, intercept)
    here = problem.with_costs_times(C)
    pair = certificates(problem, *Cs)
    factors = tuple(C / other for other in Cs)
    known = combined(pair, here, factors, ONE_THREAD)
    start = start_of(known)
    assert is_proof_of(known, here)
    assert np.all(start.alpha >= 0)
    assert np.all(start.alpha <= here.upper)
    np.testing.assert_allclose(start.margins, here.margins(start.w, start.b), rtol=1e-9, atol=1e-9)
    alone = [carried_over(proof, here, factor) for proof, factor in zip(pair, factors, strict=True)]
    assert known.primal <= min(proof.primal for proof in alone) * (1 + 1e-12)
    if loss != "logistic":
        assert known.dual >= max(proof.dual for proof in alone) * (1 - 1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_equal_points_with_rounded_margins_are_one(loss, intercept):
    # The line through them has no direction but that of the rounding, and may be followed very far.
    problem = problem_of(loss, intercept)
    (first,) = certificates(problem, 1.0)
    noise = 1e-16 * np.random.default_rng(0).standard_normal(len(first.margins))
    second = replace(first, margins=first.margins + noise)
    here = problem.with_costs_times(2.0)
    known = combined((first, second), here, (2.0, 2.0), ONE_THREAD)
    start = start_of(known)
    assert is_proof_of(known, here)
    np.testing.assert_allclose(start.margins, here.margins(start.w, start.b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_between_two_values_of_C_little_is_missing(loss):
    problem = problem_of(loss)
    pair = certificates(problem, 1.0, 1.5, tol=1e-8)
    here = problem.with_costs_times(1.2)
    known = combined(pair, here, (1.2, 0.8), ONE_THREAD)
    alone = carried_over(pair[1], here, 0.8)
    assert known.relative_gap < 0.3 * alone.relative_gap


def test_rows_at_the_wall_are_not_free_by_rounding():
    problem = problem_of("hinge")
    pair = certificates(problem, 0.3, 2.0)
    walled = [(proof.alpha == proof.problem.upper) & (proof.alpha > 0) for proof in pair]
    shares = []
    for C in np.geomspace(0.31, 1.9, 40):
        here = problem.with_costs_times(C)
        known = combined(pair, here, (C / 0.3, C / 2.0), ONE_THREAD)
        both = walled[0] & walled[1]
        shares.append(known.alpha[both] / here.upper[both])
        alone = carried_over(pair[1], here, C / 2.0)
        shares.append(alone.alpha[walled[1]] / here.upper[walled[1]])
    shares = np.concatenate(shares)
    assert np.mean(shares == 1.0) > 0.5
    assert np.all((shares == 1.0) | (shares < 1.0 - 1e-9))


@pytest.mark.parametrize("loss", LOSSES)
def test_no_pass_is_made(loss, monkeypatch):
    problem = problem_of(loss)
    pair = certificates(problem, 0.5, 2.0)

    def refuse(*arguments):
        raise AssertionError("a pass over the data")

    monkeypatch.setattr(Rows, "scores", refuse)
    monkeypatch.setattr(Rows, "combine", refuse)
    combined(pair, problem, (2.0, 0.5), ONE_THREAD)
    carried_over(pair[0], problem, 2.0)


def bending(intercept):
    random = np.random.default_rng(5)
    X = 0.03 * random.normal(size=(2000, 20))
    y = np.where(X @ random.normal(size=20) + 0.2 * random.normal(size=2000) > 0.0, 1.0, -1.0)
    return Problem.of(X, y, loss="squared_hinge", intercept=intercept)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_multipliers_of_the_squared_hinge_follow_the_bend_and_are_cut_at_zero(intercept):
    problem = bending(intercept)
    first, second = certificates(problem, 1.0, 2.0, tol=1e-9)
    here = problem.with_costs_times(4.0)
    known = combined((first, second), here, (4.0, 2.0), ONE_THREAD)
    assert is_proof_of(known, here)
    share, *_ = np.linalg.lstsq(np.array([first.alpha, second.alpha]).T, known.alpha)
    assert share.min() < 0.0
    assert np.count_nonzero(known.alpha[second.alpha > 0] == 0.0) > 0  # some rows were cut
    assert known.dual == pytest.approx(here.dual(known.alpha), rel=1e-10)
    if intercept == "exact":
        assert abs(known.alpha @ here.y) <= 1e-12 * known.alpha.sum()
    optimum = solve(here, tol=1e-10).certificate.dual
    alone = max(carried_over(proof, here, 1.0).dual for proof in (first, second))
    assert 0.0 < optimum - known.dual < 0.3 * (optimum - alone)


def test_what_a_cut_adds_to_a_class_is_taken_from_it():
    random = np.random.default_rng(0)
    y = np.where(np.arange(1000) % 3 == 0, 1.0, -1.0)
    # The first is small beside alpha, and a few rows give it; the second needs all; the third is too much.
    for added, givers in ((1e-3, 64), (0.1, 304), (1e3, 0)):
        alpha = random.uniform(0.01, 0.05, 1000)
        change = np.where((np.arange(1000) < 90) & (y > 0), added, 0.0)
        alpha[change > 0] = -change[change > 0]
        before = change.copy()
        assert _balance(alpha, change, y) == (givers > 0)
        assert np.count_nonzero(change != before) == givers
        if givers:
            assert abs(change @ y) <= 1e-12 * before.sum()
            assert np.all(alpha + change >= 0.0)


def test_a_start_whose_sum_is_known_is_the_same_start():
    problem = problem_of()
    here = problem.with_costs_times(0.4)
    start = start_of(combined(certificates(problem, 0.1, 1.0), here, (4.0, 0.4), ONE_THREAD))
    for solver in (DualCoordinateAscent(), AugmentedLagrangian()):
        spared, plain = solver.init(here, start), solver.init(here, replace(start, w_of_alpha=None))
        if isinstance(solver, DualCoordinateAscent):
            np.testing.assert_allclose(spared.w, plain.w, rtol=1e-9, atol=1e-12)
            assert spared.dual == pytest.approx(plain.dual, rel=1e-12)
        else:
            np.testing.assert_allclose(spared.method.combined, plain.method.combined, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_certificate_of_a_start_is_that_of_certify(loss, intercept):
    problem = problem_of(loss, intercept)
    known = combined(certificates(problem, 0.5, 2.0), problem, (2.0, 0.5), ONE_THREAD)
    again = certify(problem, start_of(known))
    assert again.primal == pytest.approx(known.primal, rel=1e-12)
    assert again.dual == pytest.approx(known.dual, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_multiples_are_the_best(seed):
    random = np.random.default_rng(seed)
    root = random.normal(size=(2, 2))
    quadratic, linear = root @ root.T + 0.01 * np.eye(2), random.uniform(0, 2, 2)
    bounds = random.uniform(0.2, 3.0, 2) if seed % 2 else np.full(2, np.inf)

    def loss(t):
        return 0.5 * t @ quadratic @ t - linear @ t

    t = _best_multiples(linear, quadratic, bounds, _solve(quadratic, linear))
    assert t.min() >= 0
    assert (t / bounds).sum() <= 1 + 1e-12
    room = {"type": "ineq", "fun": lambda t: 1.0 - (t / bounds).sum()}
    found = [
        minimize(loss, np.array(begin) * np.minimum(bounds, 9.0), bounds=[(0, None)] * 2, constraints=room)
        for begin in ((0.1, 0.1), (0.5, 0.1), (0.1, 0.5))
    ]
    assert loss(t) <= min(result.fun for result in found if result.success) + 1e-6


def test_parallel_multipliers_are_one():
    linear, quadratic = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_array_equal(_solve(quadratic, linear), [0.0, 0.5])
    np.testing.assert_array_equal(_solve(np.zeros((2, 2)), np.zeros(2)), [0.0, 0.0])


@pytest.mark.parametrize("d", [8, 60, 400], ids=["compiled step", "on columns", "on rows"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_system_that_is_handed_on_changes_no_step(loss, d):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, d))
    y = np.where(X[:, 0] + random.normal(size=300) > 0, 1.0, -1.0)
    problem = Problem.of(X, y, loss=loss)
    solver = AugmentedLagrangian() if loss == "hinge" else Newton()
    state = solver.init(problem, None)
    for _ in range(9):
        state = solver.step(problem, state, ONE_THREAD)
    there = problem.with_costs_times(3.0)
    start = start_of(
        carried_over(certify(problem, solver.solution(problem, state, ONE_THREAD)), there, 3.0)
    )
    fresh, resumed = solver.init(there, start), solver.resume(there, start, state)
    for _ in range(3):
        fresh, resumed = (solver.step(there, s, ONE_THREAD) for s in (fresh, resumed))
        scale = np.abs(fresh.method.v).max()
        np.testing.assert_allclose(resumed.method.v, fresh.method.v, rtol=0, atol=1e-8 * scale)


def test_an_ascent_leaves_out_at_first_what_the_margins_of_its_start_hold():
    problem = problem_of("hinge", n=400)
    proof = solve(problem, tol=1e-4).certificate
    state = DualCoordinateAscent().init(problem, start_of(proof))
    out = np.setdiff1d(np.flatnonzero(problem.costs > 0), state.visits.order)
    assert len(out) > 50
    low, high = proof.alpha[out] == 0, proof.alpha[out] == problem.costs[out]
    assert np.all(low | high)
    assert np.all(proof.margins[out][low] > 1.0)
    assert np.all(proof.margins[out][~low] < 1.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_what_an_ascent_leaves_out_for_no_good_reason_is_found(loss):
    problem = problem_of(loss).with_costs_times(0.01)
    wrong = Solution(w=np.zeros(8), alpha=np.zeros(300), margins=np.full(300, 5.0))
    solver = DualCoordinateAscent()
    assert len(solver.init(problem, wrong).visits.order) == 0
    assert solve(problem, solver, start=wrong, tol=1e-5).status.certified
    some = Solution(w=np.zeros(8), alpha=np.zeros(300), margins=np.where(np.arange(300) < 150, 5.0, 0.0))
    assert solve(problem, solver, start=some, tol=1e-5).status.certified


def test_places_that_follow_from_their_neighbours_cost_no_pass(monkeypatch):
    problem = problem_of("squared_hinge", n=2000)
    Cs = np.geomspace(1.0, 100.0, 30)
    visited = {"scores": [], "combine": []}

    def scores(rows, *arguments, plain=Rows.scores):
        visited["scores"].append(rows.count)
        return plain(rows, *arguments)

    def combine(rows, coefficients, *arguments, plain=Rows.combine):
        visited["combine"].append(np.count_nonzero(coefficients))
        return plain(rows, coefficients, *arguments)

    monkeypatch.setattr(Rows, "scores", scores)
    monkeypatch.setattr(Rows, "combine", combine)
    found = path(problem, Cs, tol=1e-4)
    assert found.certified
    taken = np.count_nonzero(found.steps)
    assert taken <= 10
    assert len(visited["scores"]) <= taken + 1
    # What is cut off between two solved values is a few rows each time.
    assert sum(visited["combine"]) <= (taken + 2) * problem.rows.count
    for C, model in itertools.islice(zip(Cs, found, strict=True), 0, 30, 3):
        assert is_proof_of(model.certificate, problem.with_costs_times(C))
