# SPDX-License-Identifier: BSD-3-Clause
"""The solver of rankings follows its oracle, which writes all pairs out, and keeps a solver's promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from combinations import every_pair
from maxmargin import Problem, Solution, Status, core, ranking_problem, solve
from maxmargin.solvers import Newton, ranking_newton
from maxmargin.solvers.ranking_newton import RankingNewton
from oracles.ranking_newton import pairs_of
from oracles.ranking_newton import ranking_newton as oracle
from ranked_rows import ranked_rows

LOSSES = ["squared_hinge", "hinge"]
_UNLIMITED = core.Budget(math.inf, 1)


@every_pair(loss=LOSSES, levels=[2, 40], steps=[1, 3, 6], layout=["dense", "sparse"])
def test_steps_are_those_of_the_oracle(loss, levels, steps, layout):
    X, y, query, weights = ranked_rows(levels=levels, queries=3 if levels == 2 else 1)
    rows = sparse.csr_matrix(X) if layout == "sparse" else X
    problem = ranking_problem(rows, y, 0.3, query=query, loss=loss, weights=weights)
    solver = RankingNewton()
    state = solver.init(problem, None)
    for _ in range(steps):
        state = solver.step(problem, state, _UNLIMITED)
    w, width = oracle(X, y, query, weights, 0.3, loss, steps)
    assert state.width == (width if loss == "hinge" else solver.width)
    np.testing.assert_allclose(state.w, w, rtol=1e-8, atol=1e-9)


@every_pair(loss=LOSSES, C=[1e-4, 1.0, 1e4], n=[30, 120], layout=["dense", "sparse"])
def test_the_solution_is_that_of_the_pairs_as_rows(loss, C, n, layout):
    X, y, query, weights = ranked_rows(n=n, levels=5)
    rows = sparse.csr_matrix(X) if layout == "sparse" else X.astype(np.float32)
    X = np.asarray(rows.toarray() if layout == "sparse" else rows, np.float64)
    i, j = pairs_of(y, query)
    ours = solve(ranking_problem(rows, y, C, query=query, loss=loss, weights=weights), tol=1e-7)
    pairs = Problem.of(
        X[i] - X[j], np.ones(len(i)), C, loss=loss, intercept="none", weights=weights[i] * weights[j]
    )
    theirs = solve(pairs, tol=1e-8)
    assert ours.status is Status.CERTIFIED
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=2e-7)
    assert ours.certificate.dual <= theirs.certificate.primal * (1 + 1e-12)
    distance = math.sqrt(2 * ours.certificate.gap) + math.sqrt(2 * theirs.certificate.gap)
    assert np.linalg.norm(ours.w - theirs.w) <= distance


@pytest.mark.parametrize("loss", LOSSES)
def test_conjugate_gradients_find_the_same(loss, monkeypatch):
    X, y, query, _ = ranked_rows(n=80, d=12)
    problem = ranking_problem(X, y, 0.1, query=query, loss=loss)
    written_out = solve(problem, tol=1e-7)
    monkeypatch.setattr(ranking_newton, "MATRIX_COLUMNS_OF_PAIRS", 0)
    by_products = solve(problem, tol=1e-7)
    assert RankingNewton().init(problem, None).dense is None
    assert by_products.certificate.primal == pytest.approx(written_out.certificate.primal, rel=2e-7)


def test_badly_scaled_columns_are_no_matter():
    X, y, query, _ = ranked_rows(n=100, d=6, levels=5)
    X = X * 10.0 ** np.arange(-3, 3)
    for loss in LOSSES:
        model = solve(ranking_problem(X, y, 1.0, query=query, loss=loss), tol=1e-6)
        assert model.status is Status.CERTIFIED
        assert model.steps < 60


def test_a_slope_that_is_rounding_alone_ends_the_run():
    """At values around 1e18 a direction that falls is seen to rise."""
    whole = [[0.0, 0.0, 0.0], [1.0, 2.0, 2.0], [0.0, 0.0, 0.0], [13.5, -4.5, -9.5]]
    X = (2.6682626575716844e18 + 5.497558e11 * np.array(whole)).astype(np.float32)
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    problem = ranking_problem(X, y, 1.0, query=np.zeros(4, np.int64), loss="squared_hinge")
    model = solve(problem, tol=8e-8, max_steps=10_000)
    assert model.status in (Status.RULE_FIRED, Status.CERTIFIED)
    assert model.certificate.dual <= model.certificate.primal
    state = RankingNewton().init(problem, None)
    uphill = state.gradient.copy()
    assert ranking_newton._zero_of_slope(problem, state, uphill, problem.rows.scores(uphill)) == 0.0


def test_pairs_that_cancel_leave_nothing_to_do():
    """Each row is once above the other and once below: w = 0 is best; rounding makes systems indefinite."""
    rows = np.array([[29164107322214.49, 29174537267184.812, 29164106246520.652],
                     [29164108613176.004, 29182650283340.492, 29164106246524.49]])  # fmt: skip
    X, y = rows[[0, 1, 1, 0]], np.array([-1.0, 1.0, -1.0, 1.0])
    problem = ranking_problem(X, y, 1.0, query=np.zeros(4, np.int64), loss="squared_hinge")
    model = solve(problem, tol=7e-4, max_steps=10_000)
    assert not model.w.any()
    assert 0.0 <= model.certificate.dual <= 4.0 <= model.certificate.primal < 4.0 + 1e-12


def test_solver_and_problem_have_to_fit():
    X, y, query, _ = ranked_rows()
    with pytest.raises(ValueError, match="solver='auto' for a ranking"):
        solve(ranking_problem(X, y, query=query), "newton")
    with pytest.raises(ValueError, match="solver='auto' for a ranking"):
        solve(ranking_problem(X, y, query=query), Newton())
    with pytest.raises(ValueError, match="solves rankings"):
        solve(Problem.of(X, np.where(y > 1, 1.0, -1.0)), RankingNewton())


def test_a_start_is_gone_on_from_and_never_worse():
    X, y, query, _ = ranked_rows(n=100, levels=5)
    for loss in LOSSES:
        problem = ranking_problem(X, y, 0.1, query=query, loss=loss)
        first = solve(problem, tol=1e-3)
        start = Solution(w=first.w, width=first.certificate.width)
        again = solve(problem, tol=1e-3, start=start)
        assert again.steps == 0
        assert again.certificate.relative_gap <= first.certificate.relative_gap
        further = solve(problem, tol=1e-7, start=start)
        assert further.status is Status.CERTIFIED
        assert further.steps < solve(problem, tol=1e-7).steps


def test_budgets_end_a_run_with_a_proof():
    X, y, query, _ = ranked_rows(n=200, levels=40, queries=1)
    problem = ranking_problem(X, y, 1.0, query=query, loss="hinge")
    none = solve(problem, max_time=0.0)
    assert none.status is Status.TIME_SPENT
    assert none.certificate.primal <= problem.primal_of_zero * (1 + 1e-9)
    two = solve(problem, max_steps=2, tol=1e-9)
    assert (two.status, two.steps) == (Status.STEPS_SPENT, 2)
    seen = []
    third = lambda progress: seen.append(progress) or len(seen) == 3  # noqa: E731
    stopped = solve(problem, tol=1e-9, callback=third, certify_every=1)
    assert stopped.status is Status.STOPPED
    assert stopped.certificate.relative_gap == seen[-1].relative_gap
