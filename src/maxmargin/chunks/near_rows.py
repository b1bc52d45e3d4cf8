# SPDX-License-Identifier: BSD-3-Clause
"""Rows of all chunks whose multipliers are settled together, in memory, after the chunks' own ascent.

Moves that chunks make by themselves and that are then added get in each other's way where rows of different
chunks share a direction, and mostly those of free multipliers do: rows on the margin. So every chunk gives
some of these away, the free ones first, drawn anew in every pass where there are too many. With the sum of
all other multipliers' rows as one vector, u, theirs is an ordinary problem with targets,

    maximise  sum_i gain(alpha_i) - 1/2 |u + sum_i alpha_i y_i x_i|^2,      targets 1 - y_i (<u, x_i> + b_u)

and what it adds to D is the best that these rows can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.statement import Stated
from maxmargin.chunks.sums import DualSums
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.rows import Rows
from maxmargin.proof.solution import Solution
from maxmargin.solving.loop import solve
from maxmargin.types import Indices, Vector

_TOL = 1e-2
"""The relative gap of their problem, in units of the wanted one: with a tenth at C = 32, P of the points in
between is so rough that the fit takes twice the passes."""
_CENTRES = 5
"""How often the centre of an exact intercept is moved to where it is pulled from, at most."""
_STILL = 1e-3
"""The move of the centre that is the last one."""


@dataclass(frozen=True, eq=False)
class NearRows:
    """The rows that a chunk gives away."""

    X: Any
    y: Vector
    costs: Vector
    places: Indices
    """Where they are in the chunk."""

    @classmethod
    def of(
        cls, problem: Problem, chunk: Chunk, margins: Vector, alpha: Vector, most: int, seed: int
    ) -> NearRows:
        """At most so many rows, whose multipliers are most likely to change; never those without a cost."""
        order = np.abs(margins - 1.0)
        free = (alpha > 0.0) & ((alpha < problem.costs) | (problem.loss.name != "hinge"))
        draws = np.random.default_rng([seed, chunk.first, 3]).random(len(order))
        order = np.where(free, draws - 1.0, order)
        order[problem.costs <= 0.0] = np.inf
        most = min(most, int(np.count_nonzero(problem.costs > 0.0)))
        places = np.arange(len(order)) if most == len(order) else np.argpartition(order, most)[:most]
        places.sort()
        return cls(chunk.X[places], problem.y[places], problem.costs[places], places)


@dataclass(frozen=True, eq=False)
class Pulled:
    """An intercept of ``reach (pull centre + sum_i alpha_i y_i)``."""

    reach: float
    pull: float
    centre: float

    def at(self, excess: float) -> float:
        """The intercept, where the signed multipliers add up to so much."""
        return self.reach * (self.pull * self.centre + excess)


@dataclass(frozen=True, eq=False)
class Settled:
    """What came of it."""

    alphas: list[Vector]
    """The multipliers of each chunk."""
    centre: float
    sums: DualSums
    """Those of all rows."""
    unsettled: tuple[Vector, float]
    """``sum_i alpha_i y_i x_i`` and ``sum_i alpha_i y_i`` of the chunks' own multipliers."""


def settled(
    near: list[NearRows],
    alphas: list[Vector],
    rest: DualSums,
    stated: Stated,
    intercept: Pulled,
    tol: float,
    threads: int,
) -> Settled:
    """Settle the multipliers of some rows; ``rest`` has the sums of all others."""
    from maxmargin.chunks.band import stacked

    X = stacked([one.X for one in near])
    y, costs = np.concatenate([one.y for one in near]), np.concatenate([one.costs for one in near])
    alpha = np.concatenate([own[one.places] for own, one in zip(alphas, near, strict=True)])
    rows = Rows(X, check_finite=False, keep_zeros=True)
    u, excess, centre = rest.combined, rest.excess, intercept.centre
    unsettled = u + rows.combine(alpha * y), excess + float(alpha @ y)
    scores = rows.scores(u)
    without = stated.intercept is Intercept.NONE
    for _ in range(1 if without else _CENTRES):
        b = Pulled(intercept.reach, intercept.pull, centre).at(excess)
        problem = Problem.of(
            rows,
            y,
            1.0,
            loss=stated.loss,
            intercept=Intercept.NONE if without else Intercept.REGULARISED,
            weights=costs,
            intercept_scaling=1.0 if without else math.sqrt(intercept.reach),
            targets=1.0 - y * (scores + b),
        )
        start = Solution(alpha=alpha, b=0.0)
        alpha = np.maximum(solve(problem, tol=_TOL * tol, start=start, threads=threads).alpha, 0.0)
        if stated.loss == "hinge":
            alpha = np.minimum(alpha, costs)
        moved = Pulled(intercept.reach, intercept.pull, centre).at(excess + float(alpha @ y)) - centre
        centre += moved
        if abs(moved) < _STILL:
            break
    after, first = [own.copy() for own in alphas], 0
    for own, one in zip(after, near, strict=True):
        own[one.places] = alpha[first : first + len(one.y)]
        first += len(one.y)
    plain = Problem(rows, y, costs, LOSSES[stated.loss], Intercept.EXACT)
    return Settled(after, centre, rest.plus(DualSums.of(plain, alpha)), unsettled)
