# SPDX-License-Identifier: BSD-3-Clause
"""The hinge without one of its rows: multipliers that follow prove true bounds, and close ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Problem, core, solve
from maxmargin.proof.left_out import MOST_COLUMNS
from maxmargin.proof.left_out_hinge import HingeWithoutRows

BUDGET = core.Budget(np.inf, 1)


def drawn(seed, n=120, d=3, equal=True):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 0.5
    if equal:
        X = np.round(X)  # many rows are equal then
    return X, np.where(X[:, 0] - 0.5 + 0.7 * random.normal(size=n) > 0, 1.0, -1.0)


def without(problem, i):
    costs = problem.costs.copy()
    costs[i] = 0.0
    return replace(problem, costs=costs)


@every_pair(
    intercept=["exact", "regularised", "none"],
    C=[0.02, 1.0, 30.0],
    equal=[True, False],
    tol=[1e-3, 1e-9],
    scale=[1e-5, 1.0, 1e5],
    form=[np.asarray, sparse.csr_matrix],
)
def test_margins_without_a_row_are_inside_the_bounds(intercept, C, equal, tol, scale, form):
    X, y = drawn(4, equal=equal)
    X, C = scale * X, C / scale**2
    weights = np.where(np.arange(len(y)) % 7 == 0, 0.5, 1.0)
    weights[5] = 0.0
    kinds = {"intercept": intercept, "intercept_scaling": 2.0}
    problem = Problem.of(form(X), y, C=C, loss="hinge", weights=weights, **kinds)
    proof = solve(problem, tol=tol, max_steps=10_000).certificate
    which = np.arange(0, len(y), 2)
    first = HingeWithoutRows(problem, proof)
    second = HingeWithoutRows(problem, proof, first)
    assert first.is_able
    assert second.is_able
    later = [second]
    best = [solve(without(problem, i), tol=1e-11, max_steps=10_000).certificate.margins[i] for i in which]
    for targets in (np.zeros(len(which)), np.asarray(best) - 0.05):
        for low, high in (
            first.bounds(which, targets, BUDGET),
            second.bounds(which, targets, BUDGET),
            second.closer_bounds(which, targets, BUDGET),
        ):
            slack = 1e-6 if intercept != "exact" else 1e-4  # b of a refit is not unique
            assert (low <= np.asarray(best) + slack).all()
            assert (high >= np.asarray(best) - slack).all()
    for _ in range(3):  # with rows that cross the margin, then in double precision, then sharper
        later.append(HingeWithoutRows(problem, proof, later[-1]))
        low, high = later[-1].closer_bounds(which, np.zeros(len(which)), BUDGET)
        assert (low <= np.asarray(best) + slack).all()
        assert (high >= np.asarray(best) - slack).all()
    assert later[-1].in_full
    if tol < 1e-3 and scale == 1.0 and not equal:
        low, high = second.closer_bounds(which, np.zeros(len(which)), BUDGET)
        assert ((low > 0) | (high < 0)).mean() > 0.9


def test_most_rows_are_decided_at_once():
    X, y = drawn(5, n=2000, d=6, equal=False)
    problem = Problem.of(X, y, C=1.0, loss="hinge")
    proof = solve(problem, tol=1e-8).certificate
    which = np.flatnonzero((proof.margins > 0) & (proof.margins < 1))
    low, _ = HingeWithoutRows(problem, proof).bounds(which, np.zeros(len(which)), BUDGET)
    assert len(which) > 200
    assert (low > 0).mean() > 0.97


def test_rows_with_a_rare_value_are_decided_by_those_that_cross_the_margin():
    """Without one of its few rows a rare column's weight changes, and the margins of the others do."""
    random = np.random.default_rng(7)
    X = random.normal(size=(4000, 4))
    rare = 3.0 * (random.random(size=(4000, 30)) < 0.003)
    y = np.where(X[:, 0] + rare @ random.normal(size=30) + random.normal(size=4000) > 0, 1.0, -1.0)
    problem = Problem.of(np.column_stack([X, rare]), y, C=1.0, loss="hinge")
    proof = solve(problem, tol=1e-8).certificate
    which = np.flatnonzero((rare.sum(axis=1) > 0) & (proof.margins > 0) & (proof.margins < 1.0 + 1e-6))
    assert len(which) > 50
    paths, still = HingeWithoutRows(problem, proof), []
    for _ in range(4):
        paths = HingeWithoutRows(problem, proof, paths)
        low, high = paths.closer_bounds(which, np.zeros(len(which)), BUDGET)
        which = which[(low <= 0) & (high >= 0)]
        still.append(len(which))
    assert still[0] > 15
    assert still[-1] < 0.4 * still[0]


@pytest.mark.parametrize("count", [1, 32, 70])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_hinges_of_many_points_are_those_of_each(count, form, threads):
    X, y = drawn(3, n=3000, d=5)
    random = np.random.default_rng(1)
    costs, left_out = (
        np.where(random.random(3000) < 0.1, 0.0, random.random(3000)),
        random.integers(0, 3000, count),
    )
    problem = Problem.of(form(X), y, loss="hinge", intercept="exact")
    points = random.normal(size=(6, count))
    margins, width = problem.margins(points[:5, 0].copy(), points[5, 0]), 0.25
    sums, crossings = np.empty(count), np.zeros(3000)
    known = (y, costs, margins, width, points, left_out, sums, crossings)
    core.hinges_of_points(problem.rows.compiled, *known, core.Budget(np.inf, threads))
    there = y[:, np.newaxis] * (X @ points[:5] + points[5])
    losses = costs[:, np.newaxis] * np.maximum(1.0 - there, 0.0)
    assert np.allclose(sums, losses.sum(axis=0) - losses[left_out, np.arange(count)])
    side = np.where(margins < 1.0, 1.0, -1.0)[:, np.newaxis]
    beyond = np.maximum(side * there - side + width, 0.0).sum(axis=1)
    assert np.allclose(crossings, np.where(costs > 0.0, beyond, 0.0))


def test_equal_rows_have_equal_bounds():
    X, y = drawn(9, n=400, equal=False)
    X, y = np.vstack([X, X[:100]]), np.append(y, y[:100])
    problem = Problem.of(X, y, C=1.0, loss="hinge", weights=np.append(np.ones(450), np.full(50, 0.5)))
    paths = HingeWithoutRows(problem, solve(problem, tol=1e-8).certificate)
    which = np.arange(500)
    first, group = paths._equal(which)
    assert len(first) == 450
    assert np.array_equal(group[:50], group[400:450])
    low, high = paths.bounds(which, np.zeros(500), BUDGET)
    assert np.array_equal(low[:50], low[400:450])
    assert np.array_equal(high[:50], high[400:450])


def test_two_threads_find_what_one_does():
    X, y = drawn(6, n=1500, d=10, equal=False)
    problem = Problem.of(X, y, C=1.0, loss="hinge")
    proof = solve(problem, tol=1e-8).certificate
    which, paths = np.arange(len(y)), HingeWithoutRows(problem, proof)
    one, two = (paths.bounds(which, np.zeros(len(y)), core.Budget(np.inf, t)) for t in (1, 2))
    assert np.array_equal(one.low, two.low)
    assert np.array_equal(one.high, two.high)


def test_nothing_is_said_without_time():
    X, y = drawn(8)
    problem = Problem.of(X, y, C=1.0, loss="hinge")
    paths = HingeWithoutRows(problem, solve(problem).certificate)
    spent, which = core.Budget(0.0, 1), np.arange(len(y))
    for low, high in (
        paths.bounds(which, np.zeros(len(y)), spent),
        paths.closer_bounds(which, np.zeros(len(y)), spent),
    ):
        assert np.isneginf(low).all()
        assert np.isposinf(high).all()


@pytest.mark.parametrize(
    "problem",
    [
        Problem.of(np.eye(4, MOST_COLUMNS + 1), [1, -1, 1, -1], loss="hinge"),
        Problem.of(np.eye(4), [1, -1, 1, -1], loss="squared_hinge"),
    ],
    ids=["columns", "loss"],
)
def test_what_is_not_for_it_is_left_alone(problem):
    paths = HingeWithoutRows(problem, solve(problem).certificate)
    assert not paths.is_able
    low, high = paths.bounds(np.arange(4), np.zeros(4), BUDGET)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()
    assert np.isneginf(paths.closer_bounds(np.arange(4), np.zeros(4), BUDGET).low).all()
