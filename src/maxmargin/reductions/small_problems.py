# SPDX-License-Identifier: BSD-3-Clause
"""Small kernel problems whose matrix is at hand: all of a fit in one call of the core.

A pair of classes with a hundred rows takes some ten microseconds to solve and to prove; a run of ``solve``
and its certificate in Python would take twenty times as long. The answers are those of ``solve``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem.losses import HINGE
from maxmargin.proof.certificate import ROUNDING, Certificate, contradictory
from maxmargin.proof.model import Model, Models, Record, Status, Trace
from maxmargin.solvers.sizes import MOST_ROUNDS
from maxmargin.types import Vector

STORY = "working_set: for few rows all of them are in the set, and all values of the kernel are at hand."


class Part(NamedTuple):
    """One of the problems: which rows of the matrix, their labels and costs."""

    which: NDArray[np.intp]
    y: Vector
    costs: Vector


class Parts(NamedTuple):
    """Problems in a row: number p has the rows ``begins[p]`` to ``begins[p + 1]`` of each array."""

    which: NDArray[np.intp]
    y: Vector
    costs: Vector
    begins: NDArray[np.intp]


def one_after_the_other(parts: Sequence[Part]) -> Parts:
    """Problems, put in a row."""
    begins = np.cumsum([0, *(len(part.which) for part in parts)])
    if len(parts) == 1:
        return Parts(*parts[0], begins)
    which, y, costs = map(np.concatenate, zip(*parts, strict=True))
    return Parts(which, y, costs, begins)


class SmallProofs(Sequence[Certificate]):
    """The certificates of problems in a row, each made when it is first asked for.

    Of ten classes there are 45, and to make them all takes as long as to solve the problems.
    """

    def __init__(
        self, parts: Parts, alpha: Vector, margins: Vector, values: Vector, kernel_is_none: bool
    ) -> None:
        self._ends: list[int] = parts.begins.tolist()
        self.alpha, self.beta, self.margins = alpha, alpha * parts.y, margins
        self.classes = np.empty(len(alpha), np.int8)
        core.row_classes(margins, alpha, parts.costs, False, self.classes)
        violations = HINGE.kkt_violation(margins, alpha, parts.costs)
        self.violations = np.maximum.reduceat(violations, parts.begins[:-1])
        self.b, self.primal, self.dual, self.low, self.high = values.T
        above = self.dual - self.primal
        self.proven = ~(contradictory(self.primal, self.dual) | kernel_is_none)
        both_best = (above > 0.0) & (above <= ROUNDING * np.abs(self.primal))
        self.dual = np.where(both_best, self.primal, self.dual)
        self._made: dict[int, Certificate] = {}

    def __len__(self) -> int:
        return len(self.b)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}  # they would be copies of what the arrays hold

    def rows(self, k: int) -> slice:
        """Those of a problem, in the arrays of all."""
        return slice(self._ends[k], self._ends[k + 1])

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate]: ...
    def __getitem__(self, index: int | slice) -> Certificate | Sequence[Certificate]:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        k = range(len(self))[index]
        if k not in self._made:
            self._made[k] = self._make(k)
        return self._made[k]

    def _make(self, k: int) -> Certificate:
        rows = self.rows(k)
        w, b, primal, dual = self.beta[rows], float(self.b[k]), float(self.primal[k]), float(self.dual[k])
        proof = Certificate(
            None, w, b, primal, self.alpha[rows], dual, "the working set", self.margins[rows], w
        )
        interval = float(self.low[k]), float(self.high[k])
        return proof.with_known(
            float(self.violations[k]), self.classes[rows], interval, bool(self.proven[k])
        )


class SmallModels(Models):
    """The models of problems that were solved in one call."""

    def __init__(
        self, proofs: SmallProofs, steps: Sequence[int], seconds: float, tol: float, short: Status
    ) -> None:
        self._proofs, self._steps, self._seconds, self._tol = proofs, steps, seconds, tol
        self._short = short
        """Of those that are not within tol."""
        gap, size = proofs.primal - proofs.dual, np.abs(proofs.primal)
        self._gaps = np.where(gap > 0.0, np.inf, 0.0)
        np.divide(gap, size, out=self._gaps, where=(gap > 0.0) & (size > 0.0))

    def __len__(self) -> int:
        return len(self._proofs)

    def __getitem__(self, k: int) -> Model:
        status, trace = self.statuses[k], self.traces[k]
        return Model(self._proofs[k], trace, status, self._tol, self._steps[k], STORY, {}, STORY)

    @property
    def w(self) -> Sequence[Vector]:
        """Of each."""
        return [self._proofs.beta[self._proofs.rows(k)] for k in range(len(self))]

    @property
    def b(self) -> Vector:
        """Of each."""
        return np.array(self._proofs.b)

    @property
    def steps(self) -> Sequence[int]:
        """Of each."""
        return self._steps

    @property
    def relative_gaps(self) -> Vector:
        """Of each."""
        return self._gaps

    @property
    def proven(self) -> bool:
        """Whether all of them are."""
        return bool(self._proofs.proven.all())

    @cached_property
    def statuses(self) -> Sequence[Status]:
        """Of each."""
        short, good, unproven = self._short, Status.CERTIFIED, Status.NOT_PROVEN
        pairs = zip(self._proofs.proven.tolist(), (self._gaps <= self._tol).tolist(), strict=True)
        return [(good if proven else unproven) if within else short for proven, within in pairs]

    @cached_property
    def traces(self) -> list[Trace]:
        """Of each."""
        proofs, seconds = self._proofs, [self._seconds] * len(self)
        columns = self._steps, seconds, proofs.primal.tolist(), proofs.dual.tolist(), self._gaps.tolist()
        return [Trace([record]) for record in map(Record, *columns)]

    @property
    def notes(self) -> Sequence[dict[str, float]]:
        """Of those that have any: none."""
        return []

    @property
    def certificates(self) -> Sequence[Certificate]:
        """Of each."""
        return self._proofs


def solve_small(
    matrix: NDArray[np.float64],
    parts: Parts,
    tol: float,
    tiny: int,
    budget: core.Budget,
    *,
    kernel_is_none: bool = False,
    rounds: int = MOST_ROUNDS,
) -> SmallModels:
    """Minimise the hinge problem with exact intercept on each part of a kernel matrix.

    Until the relative gap is at most ``tol``, or, for at most ``tiny`` rows, until only rounding is left. A
    model may fall short: its status says so. So it does where the kernel is known to be none.
    """
    start = time.perf_counter()
    which, y, costs, begins = parts
    count = len(begins) - 1
    alpha, margins, values = np.zeros(len(y)), np.empty(len(y)), np.empty((count, 5))
    status = Status.RULE_FIRED
    try:
        steps = core.solve_small(
            matrix, which, begins, y, costs, alpha, margins, values, tol, tiny, rounds, budget
        )
    except KeyboardInterrupt:
        budget.stop()
        steps, status = [0] * count, Status.INTERRUPTED
    seconds = time.perf_counter() - start
    proofs = SmallProofs(parts, alpha, margins, values, kernel_is_none)
    return SmallModels(proofs, steps, seconds, tol, status)
