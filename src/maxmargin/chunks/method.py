# SPDX-License-Identifier: BSD-3-Clause
"""What the methods share: a problem, its rows in memory, the best bounds so far, and why the run ends."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin.chunks.statement import Stated
from maxmargin.chunks.sums import DualSums, primal_bound, reach_of
from maxmargin.chunks.survey import Facts, Sample
from maxmargin.problem.rows import UNIT, Rows
from maxmargin.proof.solution import Solution
from maxmargin.solving.loop import solve
from maxmargin.types import Vector

Point = tuple[Vector, float]
"""w and b."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What all problems of a fit have in common."""

    facts: Facts
    sample: Sample
    codes: Any
    """The place of each sampled row's label among all labels."""
    tol: float
    seed: int
    threads: int
    band_rows: int
    """Rows near the margin that each problem may hold."""
    first_band_rows: int
    """Those that it holds in its first pass: as many as a sample of this size leaves unsure of."""
    in_a_round: int
    """Chunks that whoever makes the passes may have at work in a round of wide data."""
    zoned: bool = False
    """Whether passes sum up the curvature of the losses, since the sample is too small to tell it."""


_TO_THE_END = {
    "stated",
    "setting",
    "point",
    "w_of_alpha",
    "primal",
    "dual",
    "class_costs",
    "stuck",
    "start",
}
"""What a method has when it has ended."""


class Proven:
    """One problem, and what is proven of it so far."""

    name: ClassVar[str]
    reason: ClassVar[str]
    alpha_from: ClassVar[str]
    """The origin of the dual point, in words."""

    def __init__(self, stated: Stated, setting: Setting) -> None:
        self.stated, self.setting = stated, setting
        columns = setting.facts.columns
        self.point: Point = (np.zeros(columns), 0.0)
        """The best primal point so far."""
        self.w_of_alpha = np.zeros(columns)
        """``sum_i alpha_i y_i x_i`` of the best dual point."""
        self.primal, self.dual = math.inf, 0.0
        weights = setting.facts.weights
        ours = float(weights[stated.positive])
        rest = float(weights.sum()) - ours
        self.class_costs = stated.C * stated.factors[0] * ours, stated.C * stated.factors[1] * rest
        """The sum of the costs of rows with label 1, and with label -1."""
        self.start: Point | None = None
        """Where to begin; None: at the best point of the sample."""

    def release(self) -> None:
        """Give back the memory of what no model needs, since this is the end."""
        for name in set(vars(self)) - _TO_THE_END:
            delattr(self, name)

    @property
    def relative_gap(self) -> float:
        """What is proven so far."""
        if not math.isfinite(self.primal):
            return math.inf
        gap = max(self.primal - self.dual, 0.0)
        return gap / self.primal if self.primal > 0.0 else (math.inf if gap else 0.0)

    def take_primal(self, points: tuple[Point, ...], losses: Vector, chunks: int) -> list[float]:
        """Keep the best of some points, given the sums of their losses; the values of all of them."""
        values = []
        for (w, b), loss in zip(points, losses.tolist(), strict=True):
            value = primal_bound(self.stated, w, b, loss, chunks)
            value = value if math.isfinite(value) else math.inf
            if value < self.primal:
                self.primal, self.point = value, (w, b)
            values.append(value)
        return values

    def take_dual(self, sums: DualSums) -> float:
        """Keep the lower bound that multipliers of all rows are worth, if it is the best so far."""
        zero = sum(self.class_costs)  # P at 0, or more: no loss is above 1 there
        upper = min(self.primal, zero * (1.0 + 4.0 * self.setting.facts.rows * UNIT))
        reach = reach_of(self.stated, self.class_costs, upper, sums.longest)
        value, factors = sums.bound(self.stated, reach)
        if value > self.dual:
            self.dual = value
            self.w_of_alpha = factors[0] * sums.vectors[0] - factors[1] * sums.vectors[1]
        return value

    def labels_and_costs(self) -> tuple[Vector, Vector]:
        """The labels of the sample's rows in this problem, and their costs."""
        sample, ours = self.setting.sample, self.setting.codes == self.stated.positive
        costs = np.where(
            ours, self.stated.C * self.stated.factors[0], self.stated.C * self.stated.factors[1]
        )
        costs *= sample.weight * sample.stands_for
        return np.where(ours, 1.0, -1.0), costs


class Method(Proven, ABC):
    """One problem on its way through the passes: asks, and is told."""

    patience: ClassVar[int] = 12
    """Passes after which a gap that has not fallen by a tenth is all that the method can do."""
    keeps: ClassVar[bool] = False
    """Whether each chunk is given something of its own besides what is asked of all."""
    derived: ClassVar[tuple[str, ...]] = ()
    """Attributes that ``restored`` makes from the others."""

    def __init__(self, stated: Stated, setting: Setting) -> None:
        super().__init__(stated, setting)
        self.stuck = False
        """Whether the method has nothing left to try."""

    def state(self) -> dict[str, Any]:
        """What a run that goes on from here has to know: numbers, tuples and arrays."""
        others = ("stated", "setting", *self.derived)
        return {name: value for name, value in vars(self).items() if name not in others}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        vars(self).update(state)
        columns = self.setting.facts.columns
        if np.shape(self.point[0]) != (columns,) or np.shape(self.w_of_alpha) != (columns,):
            raise ValueError("This state is that of other columns. Delete it to begin anew.")
        self.restored()

    def restored(self) -> None:
        """Make what is ``derived``."""

    @abstractmethod
    def begin(self) -> None:
        """Prepare the first pass, from the sample."""

    @abstractmethod
    def ask(self) -> Any:
        """What the next pass has to find out."""

    @abstractmethod
    def tell(self, total: Any) -> None:
        """Take the sums of the pass."""

    @property
    def in_a_round(self) -> int:
        """Chunks that are given their own at the same time, when all earlier answers are known."""
        return self.setting.in_a_round

    def own(self, chunk: int) -> Any:
        """What the chunk of this number is given of its own; asked for in the order of the chunks."""
        return None

    def heard(self, share: Any) -> None:
        """Take note of the answer of one chunk, in the order of the chunks, before it is added up."""

    def sample_point(self) -> Point:
        """The best point of the sample's problem, each row of which stands for several; or ``start``."""
        if self.start is not None:
            return self.start
        rows, y, costs = self.sample_rows()
        if not (costs[y > 0].any() and costs[y < 0].any()):
            return np.zeros(self.setting.facts.columns), 0.0
        return self.solved(rows, y, costs, max(self.setting.tol, 1e-4))[0]

    def sample_rows(self) -> tuple[Rows, Vector, Vector]:
        """The sample's rows, their labels in this problem, and their costs."""
        return Rows(self.setting.sample.X, check_finite=False), *self.labels_and_costs()

    def solved(
        self, rows: Rows, y: Vector, costs: Vector, tol: float, start: Solution | None = None
    ) -> tuple[Point, Vector]:
        """The best point of a problem in memory, and its multipliers."""
        problem = self.stated.whole(rows, y, costs)
        model = solve(problem, tol=tol, start=start, threads=self.setting.threads)
        return (np.array(model.w), float(model.b)), model.alpha
