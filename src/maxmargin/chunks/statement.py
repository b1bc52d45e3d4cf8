# SPDX-License-Identifier: BSD-3-Clause
"""The problems of a fit in plain values, and what they are on the rows of one chunk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.held_out import Folding
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.rows import CompiledRows, Matrix, Rows, bound_of_square
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
    ) -> Part:
        """The share that some rows have in the problem.

        ``folds`` has the fold of each row, where there are folds.
        """
        ours = codes == self.positive
        if weight is None and (folds is None or self.folding is None):
            return Part(self, rows, ours)
        costs = np.where(ours, *self.costs)
        if weight is not None:
            costs *= weight
        if folds is not None and self.folding is not None:
            costs[folds == self.held_out] = 0.0
        return Part(self, rows, ours, costs)

    @property
    def costs(self) -> tuple[float, float]:
        """C_i of a row of weight 1 with label 1, and with label -1."""
        return self.C * self.factors[0], self.C * self.factors[1]

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


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows' share in a problem: the losses, without regulariser and intercept."""

    stated: Stated
    rows: Rows
    ours: NDArray[np.bool_]
    """Whether a row has label 1."""
    own_costs: Vector | None = None
    """C_i of each row, where they differ within a class."""

    @cached_property
    def problem(self) -> Problem:
        """The same as a problem, whose b is exact: its ``objective`` has the values of the rows alone."""
        labels, costs = self.labels_and_costs(slice(None))
        return Problem(self.rows, labels, costs, LOSSES[self.stated.loss], Intercept.EXACT)

    def labels_and_costs(self, which: Any) -> tuple[Vector, Vector]:
        """Those of some of the rows."""
        ours = self.ours[which]
        costs = np.where(ours, *self.stated.costs) if self.own_costs is None else self.own_costs[which]
        return 2.0 * ours - 1.0, costs

    def at(self, points: Points) -> tuple[CompiledRows, core.TwoClasses, Matrix, Vector, Vector, float]:
        """What the core's passes ask for: rows, labels and costs, some (w, b), and bounds on rounding."""
        rows = self.rows
        classes = core.TwoClasses(
            rows.compiled, self.stated.loss, self.ours.view(np.uint8), *self.stated.costs, self.own_costs
        )
        errors = rows.score_rounding * points.lengths
        return rows.compiled, classes, points.vectors, points.intercepts, errors, rows.length_rounding


@dataclass(frozen=True, eq=False)
class Points:
    """Some (w, b), as the core takes them."""

    vectors: Matrix
    intercepts: Vector
    lengths: Vector
    """|w|, or a little more."""

    @classmethod
    def of(cls, points: Sequence[tuple[Vector, float]]) -> Points:
        """Points that are given one by one."""
        lengths = [math.sqrt(bound_of_square(w)) for w, _ in points]
        vectors = np.stack([w for w, _ in points])
        return cls(vectors, np.array([b for _, b in points], np.float64), np.array(lengths))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.intercepts)


class Share(Protocol):
    """What the rows of a chunk answer."""

    def plus(self, other: Self) -> Self:
        """The sum with that of the chunk after it; may change this one."""
        ...


class Ask(Protocol):
    """What one problem asks of all rows in one pass; it can be pickled."""

    def share(self, part: Part, chunk: Chunk) -> Any:
        """The answer of a chunk, whose share in a problem is given; a third argument is what is kept."""
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
