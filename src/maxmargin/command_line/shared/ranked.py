# SPDX-License-Identifier: BSD-3-Clause
"""How well scores rank rows, measured over all pieces of a file and said in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.estimators.ranking_measures import RankingMeasures


class Ranked(NamedTuple):
    """Scores of rows, their relevances, NaN where one is missing, and their queries, if there are any."""

    relevance: NDArray[Any]
    scores: NDArray[Any]
    query: NDArray[Any] | None


def measures_of(ranked: list[Ranked]) -> RankingMeasures | None:
    """How well the scores of all pieces rank rows; None where there is nothing to compare them with."""
    import numpy as np

    from maxmargin.estimators.ranking_measures import ranking_measures

    if not ranked:
        return None
    relevance, scores = (np.concatenate(each) for each in zip(*((r[0], r[1]) for r in ranked), strict=True))
    query = None
    if any(piece.query is not None for piece in ranked):
        each = (np.full(len(r.scores), -1) if r.query is None else r.query for r in ranked)
        query = np.concatenate(list(each))
    known = ~np.isnan(relevance)
    try:
        return ranking_measures(relevance[known], scores[known], None if query is None else query[known])
    except ValueError:  # no query has two relevances
        return None


def ranked_in_words(found: RankingMeasures) -> str:
    """How well scores rank rows."""
    queries = "1 query" if found.queries == 1 else f"{found.queries} queries"
    return (
        f"nDCG {found.ndcg:.4f}, nDCG@10 {found.ndcg_at_k:.4f}, the mean of {queries}; "
        f"{100 * found.ordered:.2f} % of {found.pairs} pairs in order, Kendall's tau "
        f"{found.kendall_tau:.4f}."
    )
