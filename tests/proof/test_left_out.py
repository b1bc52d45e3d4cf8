# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on the margin that a row has without it, and rows whose multipliers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from combinations import every_pair
from maxmargin import SVC, LinearSVC, Problem, core, solve
from maxmargin.estimators.sureness import settled_of
from maxmargin.proof.left_out import MOST_COLUMNS, SmoothWithoutRows, no_better_without
from maxmargin.proof.model import each_of


def drawn(seed, n=80, d=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 0.5
    return X, np.where(X[:, 0] - 0.5 + 0.7 * random.normal(size=n) > 0, 1.0, -1.0)


@every_pair(
    loss=["squared_hinge", "logistic"],
    intercept=["exact", "regularised", "none"],
    tol=[1e-3, 1e-10],
    C=[0.02, 1.0],
)
def test_margins_without_a_row_are_inside_the_bounds(loss, intercept, tol, C):
    X, y = drawn(len(loss))
    weights = np.where(np.arange(len(y)) % 7 == 0, 0.5, 1.0)
    problem = Problem.of(X, y, C=C, loss=loss, intercept=intercept, weights=weights, intercept_scaling=2.0)
    proof = solve(problem, tol=tol, max_steps=10_000).certificate
    which = np.arange(0, len(y), 2)
    without_rows = SmoothWithoutRows(problem, proof, 0.2)
    low, high = without_rows.bounds(which)
    nowhere = np.full(len(which), np.nan)  # so that all steps are taken
    closer = without_rows.closer_bounds(which, nowhere, core.ALL_CORES)
    if tol < 1e-3 and not (loss == "squared_hinge" and C == 1.0):
        assert np.isfinite(low).mean() > 0.5
    if tol < 1e-3:
        finite = np.isfinite(closer.low)
        assert finite.sum() >= np.isfinite(low).sum()
        assert (closer.high - closer.low)[finite].max(initial=0.0) < 0.01
    for i, least, most, closest, farthest in zip(which, low, high, *closer, strict=True):
        costs = problem.costs.copy()
        costs[i] = 0.0
        best = solve(replace(problem, costs=costs), tol=1e-12, max_steps=10_000).certificate
        off = 1e-5  # what a gap of 1e-12 leaves of the margins of the refit
        assert least - off <= best.margins[i] <= most + off
        assert closest - off <= best.margins[i] <= farthest + off


@every_pair(
    loss=["squared_hinge", "logistic", "hinge"],
    intercept=["exact", "regularised", "none"],
    tol=[1e-2, 1e-6],
    C=[0.02, 1.0],
)
def test_a_margin_is_no_better_without_its_row(loss, intercept, tol, C):
    X, y = drawn(len(loss) + 1, n=40)
    weights = np.where(np.arange(len(y)) % 7 == 0, 0.5, 1.0)
    weights[3] = 0.0
    problem = Problem.of(X, y, C=C, loss=loss, intercept=intercept, weights=weights)
    proof = solve(problem, tol=tol, max_steps=10_000).certificate
    high = no_better_without(problem, proof)
    assert np.isposinf(high[3])
    for i in range(len(y)):
        costs = problem.costs.copy()
        costs[i] = 0.0
        best = solve(replace(problem, costs=costs), tol=1e-12, max_steps=10_000).certificate
        assert best.margins[i] <= high[i] + 1e-6
    if tol == 1e-6:
        seen = (weights > 0) & (proof.margins < 0.9)
        assert (high[seen] < proof.margins[seen] + 0.05).all()


def test_bounds_are_as_close_as_the_proof_says():
    """Without rounding and with the optimum at hand, they are ``a_i z_i'H^-1 z_i`` apart."""
    X, y = drawn(3, n=2000)
    problem = Problem.of(X, y, C=1.0, loss="squared_hinge")
    proof = solve(problem, tol=1e-13).certificate
    low, high = SmoothWithoutRows(problem, proof, 0.1).bounds(np.arange(len(y)))
    assert np.median(high - low) < 1e-3
    assert (high <= proof.margins + 1e-5).all()


def test_rows_that_cross_the_margin_far_away_are_found(monkeypatch):
    """Rare columns: without one of their few rows, others cross the margin on the way to the optimum."""
    random = np.random.default_rng(0)
    X = (random.random((200, 20)) < 0.5 / np.arange(1, 21) ** 0.7).astype(float)
    y = np.where(X @ random.normal(size=20) + 0.5 * random.normal(size=200) > 0, 1.0, -1.0)
    problem = Problem.of(X, y, C=1.0, loss="squared_hinge")
    without = SmoothWithoutRows(problem, solve(problem, tol=1e-10).certificate, 0.5)
    which = np.flatnonzero(without.bent.multipliers > 0.3)[:50]
    low, high = without.closer_bounds(which, np.full(len(which), np.nan), core.ALL_CORES)
    near = without._looked_at(which, without.point[:, np.newaxis] + 1e-3)
    assert len(near.among) < len(y)
    told = np.flatnonzero(np.isfinite(low))
    assert len(told) > 0.85 * len(which)
    assert np.median((high - low)[told]) < 1e-9
    monkeypatch.setattr("maxmargin.proof.left_out._FEW", 0)
    fewer = without.closer_bounds(which, np.full(len(which), np.nan), core.ALL_CORES)
    assert np.isfinite(fewer.low).sum() < len(told)
    for k in told[::4]:
        costs = problem.costs.copy()
        costs[which[k]] = 0.0
        best = solve(replace(problem, costs=costs), tol=1e-13).certificate
        assert low[k] - 1e-5 <= best.margins[which[k]] <= high[k] + 1e-5


def test_too_many_columns_are_left_alone():
    problem = Problem.of(np.eye(4, MOST_COLUMNS + 1), [1, -1, 1, -1], loss="squared_hinge")
    low, high = SmoothWithoutRows(problem, solve(problem).certificate, 0.1).bounds(np.arange(4))
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(loss="hinge"),
        LinearSVC(),
        LinearSVC(loss="logistic"),
        LinearSVC(loss="hinge", regularize_intercept=True, class_weight="balanced"),
        SVC(),
    ],
    ids=["hinge", "squared hinge", "logistic", "regularised", "gaussian"],
)
def test_settled_rows_are_so_at_the_optimum(model):
    X, y = drawn(5, n=200)
    y[X[:, 1] > 1.2] = 2.0
    weights = np.ones(len(y))
    weights[:5] = 0.0
    found = 0
    best = each_of(model.set_params(tol=1e-12, random_state=0).fit(X, y, weights).certificate_)
    for tol in (1e-2, 1e-4, 1e-7):
        settled = settled_of(model.set_params(tol=tol, max_iter=10_000).fit(X, y, weights))
        for k, proof in enumerate(best):
            outline = model._outline
            costs = outline.C * outline.part(k).weights
            assert (proof.alpha[settled[k].idle] <= 1e-6 * costs.max()).all()
            at_cost = settled[k].at_cost
            assert (proof.alpha[at_cost] >= (1.0 - 1e-6) * costs[at_cost]).all()
            assert not (settled[k].idle & at_cost).any()
            found += int(at_cost.sum()) + int((settled[k].idle & (costs > 0)).sum())
    assert (found == 0) == (getattr(model, "loss", "hinge") == "logistic")
