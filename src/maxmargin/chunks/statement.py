# SPDX-License-Identifier: BSD-3-Clause
"""The problems of a fit in plain values, and what they are on the rows of one chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.held_out import Folding
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.rows import Rows
from maxmargin.types import Indices, Vector

ONE_THREAD = core.Budget(float("inf"), 1)
"""Tasks take one thread each, so that their sums do not depend on how many there are."""


@dataclass(frozen=True)
class Stated:
    """One problem: a class against the others, the costs, the loss and the intercept."""

    positive: int
    """The place of the class with label 1 among all classes."""
    factors: tuple[float, float]
    """The factors on C of rows with label 1, and with label -1."""
    C: float
    loss: str
    intercept: Intercept
    intercept_scaling: float = 1.0
    folding: Folding | None = None
    """The folds, where one is held out."""
    held_out: int = 0
    """The fold whose rows have no weight."""

    def on(
        self, rows: Rows, codes: NDArray[Any], weight: Vector | None, folds: Indices | None = None
    ) -> Problem:
        """The share that some rows have in the problem: the losses, without regulariser and intercept.

        b is exact in all of them, so that the values of ``objective`` are those of the rows alone.
        ``folds`` has the fold of each row, where there are folds.
        """
        ours = codes == self.positive
        one, other = self.C * self.factors[0], self.C * self.factors[1]
        costs = np.full(len(ours), one) if one == other else np.where(ours, one, other)
        if weight is not None:
            costs *= weight
        if folds is not None and self.folding is not None:
            costs[folds == self.held_out] = 0.0
        return Problem(rows, 2.0 * ours - 1.0, costs, LOSSES[self.loss], Intercept.EXACT)

    def whole(self, rows: Rows, y: Vector, costs: Vector) -> Problem:
        """A problem of this form on other rows, which stand for all."""
        problem = Problem.of(
            rows,
            y,
            1.0,
            loss=self.loss,
            intercept=self.intercept,
            weights=costs,
            intercept_scaling=self.intercept_scaling,
        )
        return problem

    def regulariser(self, w: Vector, b: float) -> float:
        """An upper bound on ``1/2 |w|^2``, and on what a regularised b adds."""
        value = 0.5 * core.dot(w, w) * (1.0 + core.sum_rounding(len(w)))
        if self.intercept is Intercept.REGULARISED:
            beta = b / self.intercept_scaling
            value += 0.5 * beta * beta
        return value * (1.0 + 8.0 * 2.0**-53)


def margins_at(problem: Problem, points: Sequence[tuple[Vector, float]]) -> list[Vector]:
    """The margins of the rows of a chunk at some (w, b), in one visit of the rows."""
    assert isinstance(problem.rows, Rows)
    scores = problem.rows.scores_at(np.stack([w for w, _ in points]))
    return [problem.margins_of(own, b) for own, (_, b) in zip(scores, points, strict=True)]


class Share(Protocol):
    """What the rows of a chunk answer."""

    def plus(self, other: Self) -> Self:
        """The sum with that of the chunk after it; may change this one."""
        ...


class Ask(Protocol):
    """What one problem asks of all rows in one pass; it can be pickled."""

    def share(self, problem: Problem, chunk: Chunk) -> Any:
        """The answer of a chunk, whose share in the problem is given; a third argument is what is kept."""
        ...


def answers(
    chunk: Chunk, labels: NDArray[Any], asked: list[tuple[Stated, Any]], kept: Sequence[Any] | None = None
) -> list[Any]:
    """The task of a pass: what all problems ask of one chunk, and what each of them keeps for it."""
    rows = Rows(chunk.X, check_finite=False, keep_zeros=True, budget=ONE_THREAD)
    codes = chunk.y == labels[1] if len(labels) == 2 else np.searchsorted(labels, chunk.y)
    folding = asked[0][0].folding  # all problems of a pass have the same folds
    folds = None if folding is None else folding.of(chunk.numbers)
    shares = []
    for k, (stated, ask) in enumerate(asked):
        own = () if kept is None else (kept[k],)
        shares.append(ask.share(stated.on(rows, codes, chunk.weight, folds), chunk, *own))
    return shares
