# SPDX-License-Identifier: BSD-3-Clause
"""Ranking: pairs of rows of one query, of which the more relevant one is to have the higher score.

    minimise over w   1/2 |w|^2  +  C sum over pairs (i, j) of  weight_i weight_j loss(<w, x_i - x_j>)

The pairs are all those of one query with ``y_i > y_j``. An intercept would cancel out. This is the one
problem of problem.py on the rows ``x_i - x_j`` with labels 1, targets 1 and no intercept; but there can be
as many as n^2 / 2 of these rows. So nothing here writes them out: every sum over pairs is one of scores
that are sorted, in O(n log n), whatever the number of different relevances (core/twofold/pairs.hpp).

The weight of a pair is the product of those of its rows. So a row of weight 2 is worth as much as the same
row twice: either takes part in twice as many pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import core
from maxmargin.problem.losses import LOSSES, Loss
from maxmargin.problem.problem import Intercept, Problem
from maxmargin.problem.rows import UNIT, Rows, RowSpace, refuse_extremes
from maxmargin.types import Indices, Vector

RANKING_LOSSES = ("squared_hinge", "hinge")
_ON_THE_SAFE_SIDE = 1.0 - 8.0 * UNIT
"""The factor on a slope that keeps multipliers within their boxes, whatever its rounding."""


class Ramp(NamedTuple):
    """The multiplier of a pair by its margin m, in units of its cost.

    It is 0 from ``top`` on, ``slope (top - m)`` down to ``bottom``, and 1 below.
    """

    top: float
    bottom: float
    slope: float

    @classmethod
    def of(cls, loss: str, width: float) -> Ramp:
        """The multipliers that margins suggest: those of the loss, of which the hinge needs a width.

        The slope of the hinge jumps at a margin of 1. Here it rises over so much of the margin around 1.
        """
        if loss == "squared_hinge":
            return cls(1.0, -math.inf, 2.0)
        top, bottom = 1.0 + 0.5 * width, 1.0 - 0.5 * width
        return cls(top, bottom, _ON_THE_SAFE_SIDE / (top - bottom) if top > bottom else 0.0)


class PairMultipliers(NamedTuple):
    """The multipliers of all pairs as their sums over the pairs of each row, in units of C."""

    signed: Vector
    """Those of the pairs in which a row is the more relevant one, minus the others."""
    off: Vector
    """How far each can be from the exact sum."""
    total: float
    """The sum of all multipliers, as it is computed."""
    total_off: float
    """How far it can be from the exact one."""


@dataclass(frozen=True, eq=False)
class RankingProblem(Problem):
    """Relevances and queries of rows; what is to be ranked, and nothing about how.

    Its ``y`` are the relevances, its ``costs`` the weights of the rows, and its margins their scores: what
    is said of pairs follows from these.
    """

    C: float = 1.0
    query: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    """The number of each row's query."""

    @cached_property
    def pairs(self) -> core.RankedPairs:
        """The sums over pairs, which hold the scores that were sorted last: not for two threads at once."""
        return core.RankedPairs(*ordered(self.y, self.query), self.costs)

    @cached_property
    def pair_weights(self) -> float:
        """The sum of the weights of all pairs: without weights, their number."""
        return self.pairs.count()[0]

    @cached_property
    def total_cost(self) -> float:
        """C times the weights of all pairs."""
        return self.C * self.pair_weights

    @property
    def objective(self) -> core.Objective:
        """There is none: the terms of this problem belong to pairs, and not to rows."""
        raise ValueError("The objective of a ranking is no sum over rows. Use maxmargin.certify.")

    @property
    def power(self) -> int:
        """The power of what a margin lacks for 1 that is the loss of a pair."""
        return 2 if self.loss.name == "squared_hinge" else 1

    @property
    def primal_of_zero(self) -> float:
        """The objective at w = 0, where every margin is 0."""
        return self.total_cost

    def with_costs_times(self, factor: float) -> Self:
        """The same problem at another C."""
        from maxmargin.tools.parameters import changed

        other = changed(self, C=self.C * float(factor))
        other.__dict__.pop("total_cost", None)
        return other

    def margins_of(self, scores: Vector, b: float, shift: float = 0.0) -> Vector:
        """The scores themselves: margins are differences of them."""
        return scores

    def scores_of(self, margins: Vector, b: float, shift: float = 0.0) -> Vector:
        """The scores."""
        return margins

    def loss_sum(self, margins: Vector) -> float:
        """The losses of all pairs, times C, for such scores."""
        self.pairs.sort(margins)
        return self.C * self.pairs.sum(1.0, self.power)[0]

    def sorted_loss(self, off: float) -> float:
        """An upper bound on the loss of all pairs, without C, where no score is off by more than ``off``.

        The scores are those that ``pairs`` has sorted last. Margins are off by two of these.
        """
        top = math.nextafter(1.0 + 2.0 * off, math.inf) if off > 0.0 else 1.0
        value, error = self.pairs.sum(top, self.power)
        return (value + error) * (1.0 + 4.0 * UNIT)

    def sorted_multipliers(self, ramp: Ramp) -> PairMultipliers:
        """The multipliers that the scores suggest, of those that ``pairs`` has sorted last."""
        signed, mass = np.empty(self.rows.count), np.empty(self.rows.count)
        total, total_off, share, slack = self.pairs.multipliers(*ramp, signed, mass)
        return PairMultipliers(signed, mass * share + slack * self.costs, total, total_off)

    def multipliers(self, margins: Vector) -> Vector:
        """For each row the sum of the multipliers of its pairs, with signs, for such scores."""
        self.pairs.sort(margins)
        return self.C * self.sorted_multipliers(Ramp.of(self.loss.name, 0.0)).signed


def ranking_problem(
    X: Any,
    y: ArrayLike,
    C: float = 1.0,
    *,
    query: ArrayLike | None = None,
    loss: str | Loss = "squared_hinge",
    weights: ArrayLike | None = None,
) -> RankingProblem:
    """Check the arguments and build the problem: ``y`` are relevances, ``query`` says who is compared.

    query : numbers or names, one for each row, in any order; None: all rows are of one query.
    """
    rows = X if isinstance(X, RowSpace) else Rows(X)
    relevance = _one_each(y, rows.count, "y", "relevance")
    if not np.isfinite(relevance).all():
        raise ValueError("The relevances y must be finite numbers. Got NaN or infinity instead.")
    if not (np.isfinite(C) and C > 0):
        raise ValueError(
            f"C must be a finite number above 0. Got {C!r} instead. C weighs the losses: a larger C fits "
            "the data harder."
        )
    name = loss if isinstance(loss, str) else loss.name
    if name not in RANKING_LOSSES:
        raise ValueError(f"loss must be one of {', '.join(RANKING_LOSSES)}. Got {name!r} instead.")
    if rows.has_kernel:
        raise ValueError("A ranking takes rows as they are. Use a feature map in place of the kernel.")
    factors = (
        np.ones(rows.count) if weights is None else _one_each(weights, rows.count, "weights", "number")
    )
    if not (np.isfinite(factors).all() and (factors >= 0.0).all()):
        raise ValueError("The weights of rows must be finite numbers of at least 0.")
    stated = rows, relevance, factors, LOSSES[name], Intercept.NONE
    problem = RankingProblem(*stated, C=float(C), query=codes_of(query, rows.count))
    refuse_extremes(problem.total_cost, 2.0 * rows.largest_length)
    return problem


def _one_each(values: ArrayLike, count: int, name: str, what: str) -> Vector:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (count,):
        raise ValueError(
            f"{name} must hold one {what} for each of the {count} rows of X. Got an array of shape "
            f"{array.shape} instead."
        )
    return array


def codes_of(query: ArrayLike | None, count: int) -> Indices:
    """The number of each row's query, counted from 0."""
    if query is None:
        return np.zeros(count, np.int64)
    names = np.asarray(query)
    if names.shape != (count,):
        raise ValueError(
            f"query must hold one number or name for each of the {count} rows of X. Got an array of shape "
            f"{names.shape} instead."
        )
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError("query must name the query of every row. Got NaN or infinity instead.")
    found: NDArray[Any] = np.unique(names, return_inverse=True)[1]
    return found.reshape(-1).astype(np.int64)


def ordered(relevance: Vector, query: Indices) -> tuple[Indices, Indices, Indices]:
    """(order, levels, queries): the rows by query and relevance, and where each of them begins.

    Level k of the rows has the places ``levels[k]`` to ``levels[k + 1]`` of the order, query q the levels
    ``queries[q]`` to ``queries[q + 1]``.
    """
    order = np.lexsort((relevance, query))
    if not len(order):
        raise ValueError("A ranking needs rows. Got none.")
    new_query = np.diff(query[order]) != 0
    new_level = new_query | (np.diff(relevance[order]) != 0)
    levels = np.concatenate([[0], np.flatnonzero(new_level) + 1, [len(order)]])
    begins = np.concatenate([[0], np.flatnonzero(new_query) + 1, [len(order)]])
    return order.astype(np.int64), levels.astype(np.int64), np.searchsorted(levels, begins).astype(np.int64)
