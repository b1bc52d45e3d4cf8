# SPDX-License-Identifier: BSD-3-Clause
"""The proof of a ranking: both values are bounds of the exact ones, and the gap bounds the truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from combinations import every_pair
from maxmargin import Solution, certify, ranking_problem, solve
from maxmargin.problem.ranking import Ramp
from oracles.ranking_newton import pairs_of
from quadratic_program import solve_by_quadratic_program
from ranked_rows import ranked_rows

LOSSES = ["squared_hinge", "hinge"]


def exact_primal(X, y, query, weights, C, loss, w):
    """P(w) in fractions."""
    scores = [
        sum(map(Fraction.__mul__, map(Fraction, row), map(Fraction, w)), Fraction(0)) for row in X.tolist()
    ]
    lost = Fraction(0)
    for i, j in zip(*map(np.ndarray.tolist, pairs_of(y, query)), strict=True):
        lack = max(Fraction(0), 1 - scores[i] + scores[j])
        power = 2 if loss == "squared_hinge" else 1
        lost += Fraction(weights[i]) * Fraction(weights[j]) * lack**power
    return sum(Fraction(x) ** 2 for x in w.tolist()) / 2 + Fraction(C) * lost


def exact_dual(X, y, query, weights, C, loss, scores, width):
    """The largest D of a multiple of the multipliers that these scores suggest, in fractions."""
    ramp = Ramp.of(loss, width)
    u, total, lost = [Fraction(0)] * X.shape[1], Fraction(0), Fraction(0)
    rows = [[Fraction(x) for x in row] for row in X.tolist()]
    for i, j in zip(*map(np.ndarray.tolist, pairs_of(y, query)), strict=True):
        m, cost = (
            Fraction(scores[i]) - Fraction(scores[j]),
            Fraction(C) * Fraction(weights[i]) * Fraction(weights[j]),
        )
        if not m < ramp.top:
            continue
        alpha = cost * (1 if m < ramp.bottom else Fraction(ramp.slope) * (Fraction(ramp.top) - m))
        total += alpha
        lost += cost * (1 - m) ** 2 if loss == "squared_hinge" else 0
        u = [a + alpha * (x - z) for a, x, z in zip(u, rows[i], rows[j], strict=True)]
    held = sum(a * a for a in u) / 2 + lost
    t = total / held / 2
    t = t if loss == "squared_hinge" else min(t, Fraction(1))
    return t * total - t * t * held


@every_pair(
    loss=LOSSES, C=[1e-3, 0.5, 1e6], point=["zero", "rough", "best"], scale=[1.0, 1e7], width=[0.0, 0.7]
)
def test_values_are_bounds_of_the_exact_ones(loss, C, point, scale, width):
    X, y, query, weights = ranked_rows(n=18, d=3)
    X = X * scale
    X[:, 0] += 1e3 * scale  # which cancels out of every pair, and leaves its rounding
    problem = ranking_problem(X, y, C, query=query, loss=loss, weights=weights)
    w = {
        "zero": np.zeros(3),
        "rough": np.array([0.3, -0.2, 0.1]) / scale,
        "best": solve(problem, tol=1e-8).w,
    }[point]
    proof = certify(problem, Solution(w=w, width=width))
    data = X, y, query, weights, C, loss
    primal = exact_primal(*data, w)
    assert Fraction(proof.primal) >= primal
    # Where hardly a loss is left of so many, C times the rounding of a score of 1e3 can be seen.
    seen = 1e-9 * float(primal) + 1e-11 * problem.primal_of_zero
    assert proof.primal <= float(primal) + seen
    dual = exact_dual(*data, proof.margins.tolist(), width if loss == "hinge" else 0.0)
    assert Fraction(proof.dual) <= dual
    assert proof.dual >= float(dual) - seen
    assert proof.proven


@every_pair(loss=LOSSES, C=[1e-2, 1.0, 100.0], levels=[2, 5, 40], queries=[1, 3])
def test_the_gap_bounds_the_truth(loss, C, levels, queries):
    X, y, query, weights = ranked_rows(levels=levels, queries=queries)
    i, j = pairs_of(y, query)
    costs = C * weights[i] * weights[j]
    best = solve_by_quadratic_program(X[i] - X[j], np.ones(len(i)), costs, loss, "none", 1.0)[2]
    model = solve(ranking_problem(X, y, C, query=query, loss=loss, weights=weights), tol=1e-6)
    proof = model.certificate
    assert model.status.certified
    assert proof.dual <= best * (1 + 1e-7)
    assert proof.primal >= best * (1 - 1e-7)
    assert proof.relative_gap <= 1e-6
    np.testing.assert_allclose(X.T @ proof.alpha, proof.w_of_alpha, atol=1e-9 * np.abs(proof.alpha).sum())
    assert proof.kkt_violation < 1.0
    assert "support vectors" in str(proof)


def test_of_two_proofs_the_better_one_is_kept():
    X, y, query, _ = ranked_rows()
    problem = ranking_problem(X, y, 0.1, query=query)
    good = certify(problem, Solution(w=solve(problem).w))
    assert certify(problem, Solution(w=np.zeros(X.shape[1])), known=good) is good
    assert certify(problem, Solution(w=good.w), known=certify(problem, Solution())).dual == good.dual


def test_a_point_beyond_all_numbers_proves_nothing_new():
    X, y, query, _ = ranked_rows()
    problem = ranking_problem(X, y, 0.1, query=query)
    proof = certify(problem, Solution(w=np.full(X.shape[1], 1e308)))
    assert not proof.w.any()
    assert proof.primal == pytest.approx(problem.primal_of_zero)
    assert proof.dual == 0.0
