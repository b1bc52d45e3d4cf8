# SPDX-License-Identifier: BSD-3-Clause
"""Rankings in exact arithmetic, with every pair of rows of one query written out: for small data.

    minimise over w   1/2 |w|^2  +  C sum over pairs with y_i > y_j of  max(0, 1 - <w, x_i - x_j>)^p

Numbers s_i, one for each row, name a multiplier for every pair by the difference m of two of them: for
p = 2 ``2 C max(0, 1 - m)``, for p = 1 ``C`` below a ramp, 0 above it, and what rises between them on it.
Whatever these numbers are, the multipliers are feasible, so that they prove a lower bound. The file has its
scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from maxmargin.independent.arithmetic import Vector, combination, total
from maxmargin.independent.parts import OtherData, aligned, number_of, require_its_rows
from maxmargin.independent.readers import Data, Model

LOSSES = {"hinge": 1, "squared_hinge": 2}
"""The power of each loss."""


@dataclass(frozen=True)
class ExactRanking:
    """The rows of a ranking, with all its numbers."""

    rows: list[Vector]
    relevance: list[Fraction]
    query: list[str]
    C: Fraction
    loss: str

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The rows (i, j) of one query of which i is the more relevant one."""
        members: dict[str, list[int]] = {}
        for i, name in enumerate(self.query):
            members.setdefault(name, []).append(i)
        for group in members.values():
            for i in group:
                yield from ((i, j) for j in group if self.relevance[i] > self.relevance[j])

    def primal(self, w: Vector) -> Fraction:
        """The objective at w."""
        scores = [w.dot(row) for row in self.rows]
        power = LOSSES[self.loss]
        losses = (max(Fraction(0), 1 - scores[i] + scores[j]) ** power for i, j in self.pairs())
        return w.square / 2 + self.C * total(losses)

    def lower_bound(self, scores: list[Fraction], width: float) -> Fraction:
        """What the best multiple of the multipliers that these numbers name proves."""
        top, bottom = Fraction(1.0 + 0.5 * width), Fraction(1.0 - 0.5 * width)
        # A slope of float64 that is a little too small, so that the top of the ramp is not above 1.
        slope = Fraction((1.0 - 2.0**-50) / float(top - bottom)) if top > bottom else Fraction(0)
        assert slope * (top - bottom) <= 1
        all_alpha, losses = Fraction(0), Fraction(0)
        pulls = [Fraction(0)] * len(self.rows)
        for i, j in self.pairs():
            m = scores[i] - scores[j]
            if self.loss == "squared_hinge":
                lack = max(Fraction(0), 1 - m)
                alpha = 2 * self.C * lack
                losses += self.C * lack * lack
            elif m < bottom:
                alpha = self.C
            else:
                alpha = self.C * slope * max(Fraction(0), top - m)
            all_alpha += alpha
            pulls[i] += alpha
            pulls[j] -= alpha
        held = combination(pulls, self.rows).square / 2 + losses
        if held == 0:
            return all_alpha if self.loss == "hinge" else Fraction(0)
        t = all_alpha / held / 2
        t = t if self.loss == "squared_hinge" else min(t, Fraction(1))
        return t * all_alpha - t * t * held


def ranking_of(model: Model, data: Data) -> ExactRanking:
    """The problem of a ranking on these data; an ``OtherData`` says what is amiss."""
    described = model.description
    require_its_rows(described, data)
    query = data.queries or ["all"] * len(data.rows)
    if None in query:
        raise OtherData("the data have rows with a query and rows without")
    stated = described["problem"]
    relevance = [Fraction(number_of(label)) for label in data.labels]
    rows = aligned(data, described, model)
    return ExactRanking(rows, relevance, list(map(str, query)), Fraction(stated["C"]), stated["loss"])
