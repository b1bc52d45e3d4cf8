# SPDX-License-Identifier: BSD-3-Clause
"""Ways to solve one problem with a kernel where pairs of rows fall short; each may know that it cannot.

Which has its turn when is said by the ladder of ``kernel_fit``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.kernel_values_rounded import is_rounding
from maxmargin.reductions.linear_kernel import (
    Columns,
    Factor,
    factor_of,
    factor_of_values,
    on_factor,
    solve_on_columns,
)
from maxmargin.solvers import InteriorPoint, sizes
from maxmargin.solvers.kernel.active_sets import ActiveSets
from maxmargin.solvers.kernel.kernel_augmented_lagrangian import KernelAugmentedLagrangian
from maxmargin.solvers.kernel.kernel_interior_point import KernelInteriorPoint
from maxmargin.solvers.kernel.kernel_problem import kernel_rows
from maxmargin.solving.loop import NO_LIMIT, Limits, solve, solve_after
from maxmargin.solving.ways import Way
from maxmargin.types import Indices, Vector

if TYPE_CHECKING:
    from maxmargin.reductions.kernel_fit import Attempt

_LEFT_OUT_AND_RUNS = ((3.0, 1), (1e-2, 1), (1e-6, 2))
"""The shares of the gap for what a factor may leave out, and the runs on its columns. Multipliers of random
signs at C would see all of that; those at the optimum saw a tenth, but what is left of a smooth kernel is
smooth, too, and they may see many times its mean."""


_ROUGH = 0.1
"""The relative gap of a rough answer: what its factor leaves out is worth more."""


@dataclass(frozen=True)
class KernelRungs:
    """The ways, with what the problems of a fit have in common.

    Each is given what is known of the problem, and answers with a model, or with None where it cannot.
    """

    tol: float
    cache_size: float
    """Megabytes for values of the kernel."""
    kernel_is_none: bool
    """Whether the function is not shown to be a kernel on the rows."""

    def on_active_sets(self, attempt: Attempt, known: Certificate | None) -> Model | None:
        """Newton's method on the free multipliers, with the whole matrix at hand."""
        work = sizes.WORK_ON_ACTIVE_SETS * float(attempt.count) ** 3
        if self.kernel_is_none or not attempt.has_all_values():
            return None
        sets = ActiveSets(most_work=work, most_rows=sizes.SHARE_OF_ACTIVE * attempt.count)
        way = Way(sets, "active_sets: pairs of rows gained too little.")
        return attempt.go_on(way, self.tol, NO_LIMIT, known)

    def on_points(self, attempt: Attempt, known: Certificate | None) -> Model | None:
        """The interior point on the whole matrix, from the beginning: walls are no place to start at."""
        if self.kernel_is_none or not attempt.has_all_values():
            return None
        way = Way(KernelInteriorPoint(), "interior_point on the kernel matrix: too many rows change sides.")
        return attempt.go_on(way, self.tol, NO_LIMIT, known, afresh=True)

    def on_columns(self, more: int, attempt: Attempt, known: Certificate | None) -> Model | None:
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

    def on_columns_of_many_rows(self, attempt: Attempt, known: Certificate | None) -> Model | None:
        """The columns of a factor that is made of few rows of the matrix, and exact where it matters.

        What it leaves out, K - LL', takes half of its square with the multipliers from their dual value.
        These are C at most, and their signs hardly follow what is left.
        """
        if self.kernel_is_none or known is None:
            return None
        problem, budget = attempt.problem, attempt.budget
        rows = kernel_rows(problem)
        if len(rows.blocks) > 1:
            return None
        costs = problem.costs
        if len(costs) > rows.count:
            costs = costs.reshape(-1, 2).max(axis=1)
        diagonal, every = rows.squared_norms, np.arange(rows.count)
        most = math.isqrt(int(sizes.WORK_ON_FACTOR / rows.count))
        most = min(most, int(self.cache_size * 1e6 / (3 * 8 * rows.count)))  # it is copied twice

        def factor_of_some(some: Indices, weights: Vector) -> Factor | None:
            return factor_of_values(
                lambda pivots: rows.block(some[pivots], some, budget),
                diagonal[some],
                most,
                budget,
                weights[some],
            )

        best: Model | None = None
        for share, runs in _LEFT_OUT_AND_RUNS:
            weights = costs**2 * diagonal / (share * self.tol * known.primal)
            # Some rows tell for little that all would have too many columns.
            count = min(rows.count, most + most // 8)
            some = np.linspace(0, rows.count - 1, count).astype(np.int64)
            if factor_of_some(some, weights * (rows.count / count)) is None:
                break
            factor = factor_of_some(every, weights)
            if factor is None:
                break
            found = solve_on_columns(
                problem, factor, self.tol, attempt.seed, budget, attempt.callback, runs
            )
            if best is None or found.certificate.relative_gap < best.certificate.relative_gap:
                best = found
            if best.certificate.relative_gap <= self.tol or budget.spent:
                break
            if is_rounding(problem, best.certificate, self.tol):
                return replace(best, status=Status.VALUES_ROUNDED)
        return best

    def on_free_rows(self, attempt: Attempt, known: Certificate | None) -> Model | None:
        """The augmented Lagrangian, whose systems have the rows that are free, or may be.

        It begins at the answer of a factor with few columns: pairs of rows that fall short leave a w whose
        scores are so large with a large C that twice as many steps would follow.
        """
        problem, budget = attempt.problem, attempt.budget
        if self.kernel_is_none or attempt.count > sizes.LAGRANGIAN_ROWS:
            return None
        if len(kernel_rows(problem).blocks) > 1:
            return None
        room = math.isqrt(int(self.cache_size * 1e6 / (8 * sizes.ROOM_OF_LAGRANGIAN)))
        if room < sizes.LEAST_ROWS_OF_LAGRANGIAN:
            return None
        solver = KernelAugmentedLagrangian(most_rows=min(room, sizes.ROWS_OF_LAGRANGIAN), aim=self.tol)
        reason = "augmented_lagrangian on the kernel: pairs of rows gained too little."
        start = self._answer_of_few_columns(attempt)
        if budget.spent:
            return None
        if start is None and known is not None:
            start = Solution(alpha=known.alpha)
        limits = Limits(self.tol, budget, NO_LIMIT, attempt.callback)
        found, state = solve_after(None, problem, Way(solver, reason), limits, start, known)
        if found.status is Status.RULE_FIRED and solver.sees_no_gap(state):
            return replace(found, status=Status.VALUES_ROUNDED)  # which are all that pairs would see, too
        return found

    def _answer_of_few_columns(self, attempt: Attempt) -> Solution | None:
        """A rough answer of a factor that leaves out whatever its columns do; None where there is none."""
        problem, budget = attempt.problem, attempt.budget
        rows = kernel_rows(problem)
        every = np.arange(rows.count)
        most = min(sizes.FEW_FACTOR_COLUMNS, math.isqrt(int(sizes.WORK_ON_START / rows.count)))
        most = min(most, int(self.cache_size * 1e6 / (3 * 8 * rows.count)))  # it is copied twice
        if most == 0:
            return None

        def values(pivots: Indices) -> Matrix:
            return rows.block(pivots, every, budget)

        factor = factor_of_values(values, rows.squared_norms, most, budget, as_far=True)
        if factor is None:
            return None
        way = Way(InteriorPoint(), "interior_point: a rough answer on few columns.")
        plain = on_factor(problem, factor)
        found = solve(plain, way, tol=_ROUGH, budget=budget, callback=attempt.callback, certify_every=1)
        return Solution(w=factor.coefficients_of(found.w), alpha=found.alpha)

    def _columns_of(self, attempt: Attempt, most: int) -> Columns | None:
        """The problem on the data themselves, where the kernel is their inner product; else a factor.

        None where the matrix is not that of a kernel, the factor is hardly smaller, or time is over.
        """
        plain = attempt.plain()
        if plain is not None:
            return plain
        if self.kernel_is_none:
            return None
        rows, budget = kernel_rows(attempt.problem), attempt.budget
        matrix = rows.all_values(budget)
        return None if budget.spent else factor_of(matrix, min(rows.count, most), budget)
