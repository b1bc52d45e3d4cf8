# SPDX-License-Identifier: BSD-3-Clause
"""Exact values of the problems with a nu, and of rankings, in the form of ``independent.values.Proof``.

    P(w, b, e) = 1/2 |w|^2 + T e + sum_i C_i max(0, p_i - e - y_i (<w, x_i> + b))

With multipliers in their boxes, whose sums over the rows of each sign are s_+ and s_-, and f = e + b,
g = e - b, the lines of weak duality leave

    P(w, b, e)  >=  sum_i a_i p_i - 1/2 |w(a)|^2 + f (T / 2 - s_+) + g (T / 2 - s_-)

without a bound on f and g unless both sums are T / 2. There are two ways to that. First, the multipliers of
a sign are made smaller in proportion, or their distances from their costs are: then they add up to T / 2,
exactly. Second, some optimum has an f* that is a kink p_i - <w*, x_i> of a row with y_i = 1, and a g* of
one with -1, and |w*| <= sum_i a*_i |x_i| <= T R; so both are at most B = max_i |p_i| + T R^2 in size.
Without an intercept, one class, there is e alone, and T in the place of T / 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from maxmargin.independent.arithmetic import Interval, Vector, root_above, total
from maxmargin.independent.places import Place, _is_within
from maxmargin.independent.ranking import ExactRanking
from maxmargin.independent.values import ExactProblem, Proof, _dual, boxed, w_of_alpha

_NEVER = float("inf")


@dataclass(frozen=True)
class ShiftedProblem(ExactProblem):
    """A problem whose targets have a shift e, and the e of the point that is looked at."""

    total: Fraction = Fraction(0)
    shift: Fraction = Fraction(0)

    @property
    def sides(self) -> list[tuple[list[int], Fraction]]:
        """The rows that share a level, and what their multipliers add up to."""
        if self.intercept == "none":
            return [(self.counted, self.total)]
        return [([i for i in self.counted if self.y[i] == sign], self.total / 2) for sign in (1, -1)]


@dataclass(frozen=True)
class ShiftedProof(Proof):
    """What a point and multipliers prove of a ``ShiftedProblem``."""

    problem: ShiftedProblem

    @cached_property
    def primal(self) -> Interval:
        """An interval around P(w, b, e)."""
        assert self.problem.targets is not None
        lowered = [p - self.problem.shift for p in self.problem.targets]
        plain = Proof(replace(self.problem, targets=lowered), self.w, self.b, self.alpha)
        return plain.primal.plus(self.problem.total * self.problem.shift)

    @cached_property
    def boxed(self) -> list[Fraction]:
        """The multipliers, brought into their boxes."""
        return boxed(self.problem, self.alpha)

    @cached_property
    def lemma_bound(self) -> Fraction:
        """What these very multipliers prove, by B."""
        problem = self.problem
        assert problem.targets is not None
        longest = max(problem.rows.squared_length(i).high for i in problem.counted)
        most = max(abs(problem.targets[i]) for i in problem.counted) + problem.total * longest
        missing = total(abs(T - total(self.boxed[i] for i in rows)) for rows, T in problem.sides)
        return _dual(problem, self.boxed, self.w_of_alpha) - most * missing

    @cached_property
    def lower_bound(self) -> Fraction:
        """The better one of both bounds; without multipliers there is none here, not even 0."""
        alpha = list(self.boxed)
        for rows, T in self.problem.sides:
            whole = total(alpha[i] for i in rows)
            if whole > T:
                for i in rows:
                    alpha[i] *= T / whole
            elif whole < T:
                room = total(self.problem.costs[i] - alpha[i] for i in rows)
                if room < T - whole:
                    return self.lemma_bound
                for i in rows:
                    alpha[i] += (self.problem.costs[i] - alpha[i]) * (T - whole) / room
        return max(self.lemma_bound, _dual(self.problem, alpha, w_of_alpha(self.problem, alpha)))

    def levels(self, radius: Fraction) -> list[tuple[Fraction | float, Fraction | float]]:
        """Between which numbers e + b and e - b, or e alone, are at every optimum."""
        return [self._level(rows, T, radius) for rows, T in self.problem.sides]

    def _level(
        self, rows: Sequence[int], T: Fraction, radius: Fraction
    ) -> tuple[Fraction | float, Fraction | float]:
        """Where ``T u + sum_i C_i max(0, k_i - u)`` can be smallest, each kink within its reach."""
        kinks = {i: self.kink(i, radius) for i in rows}
        low: Fraction | float = -_NEVER
        high: Fraction | float = -_NEVER
        above = Fraction(0)
        for i in sorted(rows, key=lambda i: -kinks[i].low):
            above += self.problem.costs[i]
            if above > T:
                low = kinks[i].low
                break
        above = Fraction(0)
        for i in sorted(rows, key=lambda i: -kinks[i].high):
            above += self.problem.costs[i]
            if above >= T:
                high = kinks[i].high
                break
        return low, high

    def kink(self, i: int, radius: Fraction) -> Interval:
        """``p_i - y_i <w*, x_i>``, with w* within a radius."""
        assert self.problem.targets is not None
        reach = radius * root_above(self.problem.rows.squared_length(i).high)
        score = self.scores[i]
        wide = Interval(score.low - reach, score.high + reach).times(-self.problem.y[i])
        return wide.plus(self.problem.targets[i])

    def wrong_place(self, place: Place) -> Iterator[str]:
        """What a model says of the best point and this does not show."""
        if place.radius == _NEVER:
            return
        radius = Fraction(place.radius)
        if not _is_within(self, radius):
            yield "the best w is not shown to be as near as the model says"
        levels = self.levels(radius)
        low, high = levels[0]
        if len(levels) == 2:
            low, high = (low - levels[1][1]) / 2, (high - levels[1][0]) / 2
        if not (place.low <= low and high <= place.high):
            yield f"the best intercept is from {float(low)!r} to {float(high)!r}, as far as is shown"

    def open_rows(self, place: Place, settled: tuple[list[bool], list[bool]]) -> Iterator[str]:
        """Rows whose multipliers are said to be 0, or C, at the optimum, and need not be."""
        radius = Fraction(place.radius)
        for (rows, _), (low, high) in zip(self.problem.sides, self.levels(radius), strict=True):
            for i in rows:
                kink = self.kink(i, radius)
                if (settled[0][i] and not kink.high < low) or (settled[1][i] and not kink.low > high):
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
        if place.radius < _NEVER and Fraction(place.radius) ** 2 < 2 * (
            self.primal.high - self.lower_bound
        ):
            yield "the best w is not shown to be as near as the model says"
