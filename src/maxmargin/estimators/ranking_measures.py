# SPDX-License-Identifier: BSD-3-Clause
"""How well scores rank rows: nDCG, and the share of pairs in order. All in O(n log n)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin import core
from maxmargin.problem.ranking import codes_of, ordered
from maxmargin.types import Indices, Vector


class RankingMeasures(NamedTuple):
    """How well scores rank rows that have relevances."""

    ndcg: float
    """Normalised discounted cumulative gain, the mean over queries; 1 is the best."""
    ndcg_at_k: float
    """The same of the first k rows of each query."""
    ordered: float
    """The share of the pairs of one query with different relevances that the scores have in the right
    order; a tie of scores counts half."""
    kendall_tau: float
    """Kendall's tau over these pairs: the share in the right order minus the share in the wrong one."""
    queries: int
    """Queries that have anything to rank."""
    pairs: int
    """Pairs of rows of one query with different relevances."""


def ranking_measures(
    relevance: ArrayLike, scores: ArrayLike, query: ArrayLike | None = None, k: int = 10
) -> RankingMeasures:
    """All measures at once; raises ValueError where no query has two relevances."""
    y, s = np.asarray(relevance, np.float64), np.ascontiguousarray(scores, np.float64)
    if y.ndim != 1 or y.shape != s.shape or not (np.isfinite(y).all() and np.isfinite(s).all()):
        raise ValueError(
            "There must be one finite relevance and one finite score for each row. Got arrays of shapes "
            f"{y.shape} and {s.shape}."
        )
    if k < 1:
        raise ValueError(f"k must be at least 1. Got {k!r} instead. It counts the first rows of a query.")
    codes = codes_of(query, len(y))
    pairs = core.RankedPairs(*ordered(y, codes), np.ones(len(y)))
    count = pairs.count()[0]
    if count == 0.0:
        raise ValueError("No query has two rows of different relevance, so that there is nothing to rank.")
    pairs.sort(s)
    wrong = pairs.sum(0.0, 0)[0]  # margins below 0
    ties = pairs.sum(np.nextafter(0.0, 1.0), 0)[0] - wrong
    share = (count - wrong - 0.5 * ties) / count
    gains = y - np.minimum(_least_of_query(y, codes), 0.0)
    every, first = _ndcg(gains, s, codes, len(y)), _ndcg(gains, s, codes, k)
    means = float(every.mean()), float(first.mean())
    return RankingMeasures(*means, share, 2.0 * share - 1.0, len(every), int(count))


def _least_of_query(y: Vector, codes: Indices) -> Vector:
    least = np.full(int(codes.max()) + 1, np.inf)
    np.minimum.at(least, codes, y)
    return least[codes]


def _ndcg(gains: Vector, scores: Vector, codes: Indices, k: int) -> Vector:
    """The nDCG of the first k rows of each query that has different gains.

    The gain of a row is its relevance, and its discount ``1 / log2(place + 1)``. Rows of equal scores share
    their discounts, as in scikit-learn's ``ndcg_score``. Where relevances are negative, the least of a
    query counts as 0.
    """
    best = np.lexsort((-gains, codes))
    place = np.arange(len(codes)) - np.searchsorted(codes[best], codes[best])  # within the query, from 0
    discounts = np.where(place < k, 1.0 / np.log2(place + 2.0), 0.0)
    size = int(codes.max()) + 1
    ideal = np.bincount(codes[best], discounts * gains[best], size)
    found = np.lexsort((-scores, codes))
    new = np.concatenate([[True], (np.diff(codes[found]) != 0) | (np.diff(scores[found]) != 0)])
    begins = np.flatnonzero(new)
    shared = np.add.reduceat(discounts, begins) / np.diff(np.append(begins, len(codes)))
    reached = np.bincount(codes[found][begins], shared * np.add.reduceat(gains[found], begins), size)
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(least, codes, gains)
    np.maximum.at(most, codes, gains)
    told = most > least
    return np.asarray(reached[told] / ideal[told])
