# SPDX-License-Identifier: BSD-3-Clause
"""Sums over pairs of rows are those over all pairs written out, and their errors are within the bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from combinations import every_pair
from maxmargin import core, ranking_problem
from maxmargin.problem.ranking import Ramp, ordered
from oracles.ranking_newton import pairs_of
from ranked_rows import ranked_rows

RAMPS = [
    Ramp.of("squared_hinge", 0.0),
    Ramp.of("hinge", 1.5),
    Ramp.of("hinge", 1e-9),
    Ramp.of("hinge", 0.0),
]


def scores_of(kind, n, random):
    """Scores that are spread, tied at whole numbers (so that margins are exactly 1), or far from 0."""
    spread = 2.0 * random.normal(size=n)
    return {"spread": spread, "tied": np.round(spread), "far": spread + 1e9}[kind]


@every_pair(ramp=RAMPS, kind=["spread", "tied", "far"], levels=[2, 5, 40], weighted=[False, True])
def test_sums_are_those_over_all_pairs_in_fractions(ramp, kind, levels, weighted):
    _, y, query, weights = ranked_rows(levels=levels, queries=1 if levels == 40 else 3)
    weights = weights if weighted else np.ones(len(y))
    pairs = core.RankedPairs(*ordered(y, query), weights)
    scores = scores_of(kind, len(y), np.random.default_rng(1))
    pairs.sort(scores)
    signed, mass = np.empty(len(y)), np.empty(len(y))
    total, total_off, share, slack = pairs.multipliers(*ramp, signed, mass)
    s, v = [Fraction(x) for x in scores], [Fraction(x) for x in weights]
    top, slope = Fraction(ramp.top), Fraction(ramp.slope)
    exact, exact_mass = [Fraction(0)] * len(y), [Fraction(0)] * len(y)
    sums, all_alpha = [Fraction(0)] * 3, Fraction(0)
    for i, j in zip(*map(np.ndarray.tolist, pairs_of(y, query)), strict=True):
        m, weight = s[i] - s[j], v[i] * v[j]
        alpha = Fraction(0)
        if m < top:
            alpha = Fraction(1) if m < ramp.bottom else slope * (top - m)
        assert alpha >= 0
        assert alpha <= 1 or ramp.bottom == -np.inf
        exact[i] += weight * alpha
        exact[j] -= weight * alpha
        exact_mass[i] += weight * alpha
        exact_mass[j] += weight * alpha
        all_alpha += weight * alpha
        for power in range(3):
            sums[power] += weight * (1 - m) ** power if m < 1 else 0
    assert abs(Fraction(total) - all_alpha) <= Fraction(total_off)
    off = mass * share + slack * weights
    assert all(abs(Fraction(a) - b) <= Fraction(e) for a, b, e in zip(signed, exact, off, strict=True))
    assert all(abs(Fraction(a) - b) <= Fraction(e) for a, b, e in zip(mass, exact_mass, off, strict=True))
    for power in range(3):
        value, error = pairs.sum(1.0, power)
        assert abs(Fraction(value) - sums[power]) <= Fraction(error)
        assert error <= 1e-10 * value + 1e-10
    np.testing.assert_allclose(signed, [float(x) for x in exact], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("levels", [2, 5, 40])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_product_is_that_with_the_matrix_of_all_pairs(levels, columns):
    _, y, query, weights = ranked_rows(levels=levels)
    pairs, random = core.RankedPairs(*ordered(y, query), weights), np.random.default_rng(2)
    scores, values = random.normal(size=len(y)), random.normal(size=(len(y), columns))
    ramp = Ramp.of("hinge", 1.3)
    pairs.sort(scores)
    pairs.hold(*ramp)
    out = np.empty_like(values)
    pairs.product(values, out)
    i, j = pairs_of(y, query)
    m = scores[i] - scores[j]
    h = ramp.slope * weights[i] * weights[j] * ((m >= ramp.bottom) & (m < ramp.top))
    unit = np.eye(len(y))
    matrix = (unit[i] - unit[j]).T @ (h[:, None] * (unit[i] - unit[j]))
    np.testing.assert_allclose(out, matrix @ values, rtol=1e-12, atol=1e-12)


def test_rows_in_another_order_give_the_same_sums():
    X, y, query, weights = ranked_rows()
    order = np.random.default_rng(5).permutation(len(y))
    w = np.random.default_rng(6).normal(size=X.shape[1])
    one = ranking_problem(X, y, 0.3, query=query, weights=weights)
    other = ranking_problem(X[order], y[order], 0.3, query=query[order], weights=weights[order])
    assert one.primal(w) == pytest.approx(other.primal(w), rel=1e-13)
    scores = X @ w
    np.testing.assert_allclose(one.multipliers(scores)[order], other.multipliers(scores[order]), rtol=1e-12)
    assert one.pair_weights == pytest.approx(other.pair_weights, rel=1e-13)


def test_queries_are_names_of_any_kind():
    X, y, query, _ = ranked_rows()
    names = np.array(["first", "second", "third"])[query]
    ours, theirs = ranking_problem(X, y, query=names), ranking_problem(X, y, query=query + 7)
    assert ours.pair_weights == theirs.pair_weights == len(pairs_of(y, query)[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.zeros(3)}, "y must hold one relevance"),
        ({"y": np.full(40, np.nan)}, "must be finite numbers"),
        ({"query": np.zeros(3)}, "query must hold one number or name"),
        ({"query": np.full(40, np.nan)}, "query must name the query of every row"),
        ({"C": 0.0}, "C must be a finite number above 0"),
        ({"C": 1e99}, "sums up to"),
        ({"loss": "logistic"}, "loss must be one of squared_hinge, hinge"),
        ({"weights": -np.ones(40)}, "weights of rows must be finite numbers"),
    ],
)
def test_wrong_arguments_are_refused(change, words):
    X, y, query, _ = ranked_rows()
    given = {"y": y, "query": query} | change
    with pytest.raises(ValueError, match=words):
        ranking_problem(X, given.pop("y"), **given)


def test_the_core_refuses_what_does_not_fit():
    y, query = np.array([1.0, 0.0, 2.0]), np.zeros(3, np.int64)
    order, levels, queries = ordered(y, query)
    with pytest.raises(ValueError, match="out of range"):
        core.RankedPairs(order + 1, levels, queries, np.ones(3))
    with pytest.raises(ValueError, match="rising places"):
        core.RankedPairs(order, levels[[0, 1, 1, 3]], queries, np.ones(3))
    with pytest.raises(ValueError, match="to the end"):
        core.RankedPairs(order, levels[:-1], queries, np.ones(3))
    pairs = core.RankedPairs(order, levels, queries, np.ones(3))
    with pytest.raises(ValueError, match="sort comes first"):
        pairs.sum(1.0, 1)
    with pytest.raises(ValueError, match="finite scores"):
        pairs.sort(np.array([0.0, np.nan, 1.0]))
    pairs.sort(y)
    with pytest.raises(ValueError, match="hold comes first"):
        pairs.product(np.ones((3, 1)), np.ones((3, 1)))
