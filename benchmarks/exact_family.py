# SPDX-License-Identifier: BSD-3-Clause
"""Exact values of the problems with a nu, and of rankings, in the form of ``independent.values.Proof``.

    P(w, b, e) = 1/2 |w|^2 + T e + sum_i C_i max(0, p_i - e - y_i (<w, x_i> + b))

With multipliers in their boxes, whose sums over the rows of each sign are s_+ and s_-, and f = e + b,
g = e - b, the lines of weak duality leave

    P(w, b, e)  >=  sum_i a_i p_i - 1/2 |w(a)|^2 + f (T / 2 - s_+) + g (T / 2 - s_-)

without a bound on f and g unless both sums are T / 2. The checker of files moves multipliers until they
are. There is a second way: some optimum has an f* that is a kink p_i - <w*, x_i> of a row with y_i = 1, and
a g* of one with -1, and |w*| <= sum_i a*_i |x_i| <= T R; so both are at most B = max_i |p_i| + T R^2 in
size. Without an intercept, one class, there is e alone, and T in the place of T / 2. The better one counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from maxmargin.independent.arithmetic import Interval, Vector, root_above, total
from maxmargin.independent.places import Place, _level
from maxmargin.independent.ranking import ExactRanking
from maxmargin.independent.values import Proof, _dual, boxed, w_of_alpha


@dataclass(frozen=True)
class ShiftedProof(Proof):
    """What a point and multipliers prove of a problem with a total."""

    @cached_property
    def lower_bound(self) -> Fraction:
        """The better one of both bounds."""
        problem = self.problem
        assert problem.targets is not None
        assert problem.total is not None
        alpha = boxed(replace(problem, total=None), self.alpha)
        longest = max(problem.rows.squared_length(i).high for i in problem.counted)
        most = max(abs(problem.targets[i]) for i in problem.counted) + problem.total * longest
        share = problem.total / len(self._sides)
        missing = total(abs(share - total(alpha[i] for i in rows)) for rows in self._sides)
        return max(self.lemma_bound, _dual(problem, alpha, w_of_alpha(problem, alpha)) - most * missing)

    @property
    def _sides(self) -> list[list[int]]:
        """The rows that share a level, e + b or e - b, or e alone."""
        problem = self.problem
        if problem.intercept == "none":
            return [problem.counted]
        return [[i for i in problem.counted if problem.y[i] == sign] for sign in (1, -1)]

    def open_rows(self, place: Place, settled: tuple[list[bool], list[bool]]) -> Iterator[str]:
        """Rows whose multipliers are said to be 0, or C, at the optimum, and need not be."""
        problem, radius = self.problem, Fraction(place.radius)
        assert problem.targets is not None
        for rows in self._sides:
            low, high = (_level(self, radius, rows, side) for side in (-1, 1))
            for i in rows:
                reach = radius * root_above(problem.rows.squared_length(i).high)
                ends = sorted(problem.targets[i] - problem.y[i] * end for end in self.scores[i])
                idle = low is not None and ends[1] + reach < low
                at_cost = high is not None and ends[0] - reach > high
                if (settled[0][i] and not idle) or (settled[1][i] and not at_cost):
                    yield f"row {i}"


@dataclass(frozen=True)
class RankedPairs:
    """A ranking in the place of a problem."""

    ranking: ExactRanking
    width: float

    @property
    def costs(self) -> list[Fraction]:
        """C, for every row."""
        return [self.ranking.C] * len(self.ranking.rows)


@dataclass(frozen=True)
class RankedProof:
    """What w proves of a ranking, and numbers whose differences name multipliers."""

    problem: RankedPairs
    w: Vector
    b: Fraction
    alpha: Sequence[Fraction]

    @cached_property
    def primal(self) -> Interval:
        """The objective."""
        return Interval.exactly(self.problem.ranking.primal(self.w))

    @cached_property
    def lower_bound(self) -> Fraction:
        """A number that it is nowhere below."""
        return self.problem.ranking.lower_bound(list(self.alpha), self.problem.width)

    @property
    def lemma_bound(self) -> Fraction:
        """The same."""
        return self.lower_bound

    def wrong_place(self, place: Place) -> Iterator[str]:
        """Half the squared distance from the best point is at most the gap."""
        if math.isfinite(place.radius) and Fraction(place.radius) ** 2 < 2 * (
            self.primal.high - self.lower_bound
        ):
            yield "the best w is not shown to be as near as the model says"
