# SPDX-License-Identifier: BSD-3-Clause
"""The ladder of one problem with a kernel: ways to solve it, the next where those before it fell short.

1  pairs of rows, as long as their steps are a small part of what a factor costs
2  the columns of a factor of the kernel matrix, where these are few, by the interior point
3  active sets, on the whole matrix
4  a factor with more columns
5  pairs of rows again

The kernel that is the inner product of the data begins with 2, on the columns of the data themselves.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate, feasible
from maxmargin.proof.model import Model, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.linear_kernel import Columns, Factor, factor_of, solve_on_columns
from maxmargin.solvers import WorkingSet, sizes
from maxmargin.solvers.kernel.active_sets import ActiveSets
from maxmargin.solvers.kernel.kernel_problem import kernel_rows
from maxmargin.solving.loop import NO_LIMIT, Callback, solve
from maxmargin.solving.ways import Way
from maxmargin.tools.parameters import changed

logger = logging.getLogger("maxmargin")


@dataclass(frozen=True)
class Attempt:
    """A problem with a kernel, and what there is to solve it with."""

    problem: Problem
    budget: Budget
    callback: Callback | None
    seed: int
    plain: Callable[[], Problem | None]
    """The problem on the data themselves, where the kernel is their inner product; else None."""
    name: str = "The problem"
    """For the log."""

    @property
    def count(self) -> int:
        """Rows of the kernel matrix."""
        return kernel_rows(self.problem).count

    def go_on(self, way: Way, tol: float, max_steps: int, known: Certificate | None) -> Model:
        """The model that a way leads to, from what is known."""
        return solve(
            self.problem,
            way,
            tol=tol,
            max_steps=max_steps,
            start=None if known is None else Solution(alpha=known.alpha),
            known=known,
            callback=self.callback,
            budget=self.budget,
        )


@dataclass(frozen=True)
class Rung:
    """A way to solve a problem with a kernel, where those before it fell short."""

    solve: Callable[[Attempt, Certificate | None], Model | None]
    """Given what is known of the problem; None: it cannot."""
    reason: str
    """Why it has its turn, for the log."""


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

        ``hard``: pairs of rows have failed already.
        """
        model, ran = None, ""
        for rung in self._rungs(attempt, hard=hard):
            logger.debug("%s: %s", attempt.name, rung.reason)
            found = rung.solve(attempt, known)
            if found is None:
                continue
            model = found
            if known is None or model.certificate.relative_gap < known.relative_gap:
                known, ran = model.certificate, model.solver
            ended = model.status in (Status.STOPPED, Status.INTERRUPTED) or attempt.budget.spent
            if ended or known.relative_gap <= self.tol:
                break
        assert model is not None
        assert known is not None
        # Where nobody limits the steps, it is the ladder itself that has given up by their number.
        ends = {Status.RULE_FIRED} | ({Status.STEPS_SPENT} if self.at_will else set())
        if known.relative_gap <= self.tol:
            model = replace(model, status=Status.within_tol(known))
        elif model.status in ends and self._is_rounding(attempt.problem, known):
            model = replace(model, status=Status.VALUES_ROUNDED)
        return replace(model, certificate=known, solver=ran or model.solver)

    def _is_rounding(self, problem: Problem, proof: Certificate) -> bool:
        """Whether the rounding of the kernel's values can change the objective by more than ``tol``.

        At the multipliers that were proven; where nothing is better than 0, at those of C.
        """
        rows = problem.rows
        alpha = proof.alpha if proof.alpha.any() else feasible(problem, problem.costs)
        per_length, constant = rows.score_error(rows.combine(alpha * problem.y))
        lost = core.dot(problem.costs, per_length * rows.lengths + constant)
        return lost > self.tol * abs(proof.primal)

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
            return [self._pairs(NO_LIMIT, "A factor of the kernel matrix would be too large.")]
        work = max(sizes.WORK_ON_PAIRS * count**3, sizes.LEAST_WORK_ON_PAIRS)
        easy = self._pairs(NO_LIMIT, "Most problems take fewer steps than these.", work)
        last = self._pairs(NO_LIMIT, "Steps on pairs of rows hardly do better.", work)
        return [easy, self._columns, self._active_sets, self._more_columns, last]

    def _pairs(self, max_steps: int, reason: str, most_work: float = math.inf) -> Rung:
        return Rung(partial(self._on_pairs, max_steps, most_work), reason)

    @property
    def _columns(self) -> Rung:
        reason = "Second-order steps on columns hardly depend on how the data are scaled."
        return Rung(partial(self._on_columns, 0), reason)

    @property
    def _active_sets(self) -> Rung:
        reason = "Of a factor with many columns few rows are free, and systems of these are smaller."
        return Rung(self._on_active_sets, reason)

    @property
    def _more_columns(self) -> Rung:
        reason = "Too many rows change sides: the interior point does not ask for sides."
        return Rung(partial(self._on_columns, sizes.MOST_FACTOR_COLUMNS), reason)

    def _on_pairs(
        self, max_steps: int, most_work: float, attempt: Attempt, known: Certificate | None
    ) -> Model:
        """Take at most so many steps of the solver, which moves multipliers of pairs of rows."""
        way = self.way.with_seed(attempt.seed)
        if isinstance(way.solver, WorkingSet):
            way = changed(way, solver=replace(way.solver, most_work=most_work))
        tiny = not self.on_card and attempt.count <= sizes.TINY_ROWS
        return attempt.go_on(way, 0.0 if tiny else self.tol, max_steps, known)

    def _on_active_sets(self, attempt: Attempt, known: Certificate | None) -> Model | None:
        """Newton's method on the free multipliers, with the whole matrix at hand."""
        if self.kernel_is_none:
            return None
        way = Way(ActiveSets(), "active_sets: pairs of rows gained too little.")
        return attempt.go_on(way, self.tol, NO_LIMIT, known)

    def _on_columns(self, more: int, attempt: Attempt, known: Certificate | None) -> Model | None:
        """A linear problem on the columns of the data, or of a factor of the kernel matrix.

        A factor may have few columns, or more, up to that number; None where it has not.
        """
        few = max(sizes.FEW_FACTOR_COLUMNS, attempt.count // sizes.ROWS_PER_FACTOR_COLUMN)
        columns = self._columns_of(attempt, more or few)
        if columns is None:
            return None
        if more and isinstance(columns, Factor) and columns.rows.shape[1] <= few:
            return None  # these have had their turn
        budget, told = attempt.budget, attempt.callback
        return solve_on_columns(attempt.problem, columns, self.tol, attempt.seed, budget, told)

    def _columns_of(self, attempt: Attempt, most: int) -> Columns | None:
        """The problem on the data themselves, where the kernel is their inner product; else a factor.

        None where the matrix is not that of a kernel, or the factor is hardly smaller.
        """
        plain = attempt.plain()
        if plain is not None:
            return plain
        if self.kernel_is_none:
            return None
        rows = kernel_rows(attempt.problem)
        every = np.arange(rows.count)
        return factor_of(rows.block(every, every), min(rows.count, most))
