# SPDX-License-Identifier: BSD-3-Clause
"""One problem with a kernel climbs a ladder of ways: it is solved on the first that proves it to ``tol``.

1  pairs of rows, as long as their steps are a small part of what a factor costs
2  the columns of a factor of the kernel matrix, where these are few, by the interior point
3  active sets, on the whole matrix, as long as their factors are a part of what the next way takes
4  the interior point on the whole matrix
5  a factor with more columns
6  pairs of rows again

Beyond ``sizes.FACTORED_ROWS`` rows the columns are those of a factor that leaves out as much as the proof
allows, active sets and the interior point have their turn up to some size, while all values have room, and
pairs of rows go on without end.

The kernel that is the inner product of the data begins with 2, on the columns of the data themselves.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model, Status
from maxmargin.reductions.kernel_rungs import Attempt, KernelRungs
from maxmargin.reductions.kernel_values_rounded import is_all_rounding, is_rounding
from maxmargin.solvers import sizes
from maxmargin.solvers.kernel.kernel_problem import kernel_rows
from maxmargin.solving.loop import NO_LIMIT
from maxmargin.solving.ways import Way
from maxmargin.telling.long_fit import LongFit
from maxmargin.tools.parameters import changed

logger = logging.getLogger("maxmargin")

_ENDS = (Status.STOPPED, Status.INTERRUPTED, Status.VALUES_ROUNDED)
"""Ends of a rung after which no other one has its turn."""


@dataclass(frozen=True)
class Rung:
    """A way to solve a problem with a kernel, where those before it fell short."""

    solve: Callable[[Attempt, Certificate | None], Model | None]
    """Given what is known of the problem; None: it cannot."""
    reason: str
    """Why it has its turn, for the log."""
    on_columns: bool = False
    """Whether it solves a linear problem in the place of this one."""
    on_the_matrix: bool = False
    """Whether it takes steps on all values of the kernel, and so feels their rounding in full."""


def configured(way: Way, **ours: Any) -> Way:
    """The way with those of these options that its solver has."""
    solver: Any = way.solver
    offered = {field.name for field in fields(solver)}
    return changed(way, solver=replace(solver, **{name: ours[name] for name in ours if name in offered}))


@dataclass(frozen=True)
class KernelLadder:
    """How the problems of one fit with a kernel are solved, each by itself."""

    way: Way
    """On pairs of rows, or what was asked for."""
    tol: float
    max_steps: int
    cache_size: float
    """Megabytes for values of the kernel."""
    at_will: bool
    """Whether nobody has chosen how, sets a limit on steps, or goes on from somewhere."""
    is_linear: bool
    """Whether the kernel is the inner product of the data."""
    kernel_is_none: bool
    """Whether the function is not shown to be a kernel on the rows."""
    on_card: bool = False

    def climb(self, attempt: Attempt, known: Certificate | None, *, hard: bool = False) -> Model:
        """The model of the first rung that proves the problem to ``tol``, or of the last one.

        ``hard``: pairs of rows have failed already. Where columns have an answer that rounding alone keeps
        from a proof, steps on the values are left out.
        """
        model, ran, rounded = None, "", False
        for rung in self._rungs(attempt, hard=hard):
            if rounded and rung.on_the_matrix:
                continue
            logger.debug("%s: %s", attempt.name, rung.reason)
            found = rung.solve(attempt, known)
            if found is None:
                continue
            model = found
            if known is None or model.certificate.relative_gap < known.relative_gap:
                known, ran = model.certificate, model.solver
            ended = model.status in _ENDS or attempt.budget.spent
            if ended or known.relative_gap <= self.tol:
                break
            if rung.on_columns:
                rounded = is_all_rounding(attempt.problem, model, known, self.tol)
        assert model is not None
        assert known is not None
        # Where nobody limits the steps, it is the ladder itself that has given up by their number.
        ends = {Status.RULE_FIRED} | ({Status.STEPS_SPENT} if self.at_will else set())
        if known.relative_gap <= self.tol:
            model = replace(model, status=Status.within_tol(known))
        elif model.status in ends and (rounded or is_rounding(attempt.problem, known, self.tol)):
            model = replace(model, status=Status.VALUES_ROUNDED)
        kernel_rows(attempt.problem).forget_values()
        return replace(model, certificate=known, solver=ran or model.solver)

    def _rungs(self, attempt: Attempt, *, hard: bool) -> Sequence[Rung]:
        """How to solve a problem, one way after the other."""
        count = attempt.count
        if self.on_card:
            return [self._pairs(self.max_steps, "The rows lie on a GPU.")]
        if not self.at_will:
            return [self._pairs(self.max_steps, "It was asked for.")]
        if attempt.problem.total is not None:
            return [self._pairs(NO_LIMIT, "Pairs of rows of one sign keep the total of the multipliers.")]
        if hard or (self.is_linear and count > sizes.TINY_ROWS):
            after = "Steps on pairs of rows hardly do better where columns have failed."
            return [self._columns, self._pairs(sizes.STEPS_AFTER_COLUMNS, after)]
        needed = 3 * 8 * count**2  # bytes: the matrix, its scaled copy and the factor
        if count > sizes.FACTORED_ROWS or needed > self.cache_size * 1e6:
            work = sizes.WORK_ON_PAIRS * float(sizes.FACTORED_ROWS) ** 2 * count
            easy = self._pairs(NO_LIMIT, "A factor of the kernel matrix would be too large.", work)
            last = Rung(self._on_pairs_for_long, "Nor has it a factor with few columns, or few free rows.")
            on_values = self._on_values_of_many_rows(count)
            return [easy, self._columns_of_many_rows, *on_values, last]
        work = max(sizes.WORK_ON_PAIRS * count**3, sizes.LEAST_WORK_ON_PAIRS)
        easy = self._pairs(NO_LIMIT, "Most problems take fewer steps than these.", work)
        last = self._pairs(NO_LIMIT, "Steps on pairs of rows hardly do better.", work)
        return [easy, self._columns, self._active_sets, self._points, self._more_columns, last]

    def _on_values_of_many_rows(self, count: int) -> Sequence[Rung]:
        """The ways on all values of more rows than a factor is made of lightly, where there is room."""
        size = 8 * count**2 / (self.cache_size * 1e6) if self.cache_size > 0.0 else math.inf
        sets = count <= sizes.ACTIVE_ROWS and sizes.ROOM_OF_ACTIVE_SETS * size <= 1.0
        points = count <= sizes.INTERIOR_ROWS and size <= 1.0
        return [self._active_sets] * sets + [self._points] * points

    @property
    def _ways(self) -> KernelRungs:
        return KernelRungs(self.way, self.tol, self.cache_size, self.kernel_is_none, self.on_card)

    def _pairs(self, max_steps: int, reason: str, most_work: float = math.inf) -> Rung:
        return Rung(partial(self._ways.on_pairs, max_steps, most_work), reason)

    def _on_pairs_for_long(self, attempt: Attempt, known: Certificate | None) -> Model:
        """Pairs of rows until the end, of which somebody is told in any case."""
        if attempt.callback is None:
            attempt = replace(attempt, callback=LongFit(attempt.name, self.tol))
        return self._ways.on_pairs(NO_LIMIT, math.inf, attempt, known)

    @property
    def _columns(self) -> Rung:
        reason = "Second-order steps on columns hardly depend on how the data are scaled."
        return Rung(partial(self._ways.on_columns, 0), reason, on_columns=True)

    @property
    def _columns_of_many_rows(self) -> Rung:
        reason = "A factor with few columns may leave out as little as the proof allows."
        return Rung(self._ways.on_columns_of_many_rows, reason)

    @property
    def _active_sets(self) -> Rung:
        reason = "Of a factor with many columns few rows are free, and systems of these are smaller."
        return Rung(self._ways.on_active_sets, reason, on_the_matrix=True)

    @property
    def _points(self) -> Rung:
        reason = "Too many rows change sides: the interior point does not ask for sides."
        return Rung(self._ways.on_points, reason, on_the_matrix=True)

    @property
    def _more_columns(self) -> Rung:
        reason = "Rounding counts for less on columns than on the matrix."
        return Rung(partial(self._ways.on_columns, sizes.MOST_FACTOR_COLUMNS), reason)
