# SPDX-License-Identifier: BSD-3-Clause
"""The problem of one ranking, stated here for estimators, files and ``certify``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin.problem.ranking import RankingProblem, ranking_problem
from maxmargin.problem.rows import RowSpace
from maxmargin.reductions.statement import Statement
from maxmargin.types import Indices, Vector


@dataclass
class Ranking(Statement):
    """One ranking: what is minimised, on which rows."""

    examples: RowSpace | None
    """The rows; None in an ``outline``."""
    relevance: Vector
    """y, one number for each row."""
    query: Indices | None
    """The number of each row's query; None: all are of one."""
    C: float
    loss: str = "squared_hinge"
    weights: Vector | None = None
    """The weight of each row: that of a pair is the product of two. None: all 1."""

    @property
    def rows(self) -> RowSpace:
        """The rows of the data, of which the pairs are made."""
        assert self.examples is not None
        return self.examples

    def problem(self, k: int = 0) -> RankingProblem:
        """The ranking as a problem."""
        return self._problem

    @cached_property
    def _problem(self) -> RankingProblem:
        return ranking_problem(
            self.rows, self.relevance, self.C, query=self.query, loss=self.loss, weights=self.weights
        )

    def statement(self) -> dict[str, Any]:
        """What was minimised, in plain values."""
        return {
            "loss": self.loss,
            "C": float(self.C),
            "intercept": "none",
            "intercept_scaling": 1.0,
            "sample_weights": self.has_weights,
        }

    def outline(self) -> Self:
        """The same ranking without the values of its rows."""
        return replace(self, examples=None)

    def refuse_nothing_to_rank(self) -> None:
        """Raises where no query has two rows of different relevance and a weight above 0."""
        if self.problem().pair_weights > 0.0:
            return
        several = self.query is not None and len(np.unique(self.query)) > 1
        raise ValueError(
            "A ranking needs two rows of one query with different relevances and weights above 0. Got none "
            f"of them in n_samples = {len(self.relevance)}. "
            + ("Look at query, which says who is compared." if several else "Look at y.")
        )
