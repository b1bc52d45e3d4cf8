# SPDX-License-Identifier: BSD-3-Clause
"""How the problems of one fit with a kernel are solved: each on the first way that proves it to ``tol``.

1  small problems, where nobody watches, chooses or goes on from somewhere: all of them in one compiled call
2  all others, and those that fell short, side by side, on one ``Rung`` after the other
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.kernels.base import Kernel, Precomputed
from maxmargin.kernels.cache_use import COMPUTED, FOUND, PEAK, CacheUse, cache_notes
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import Certificate, certify, feasible
from maxmargin.proof.model import Model, Models, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import KernelProblems
from maxmargin.reductions.in_units_of_rho import in_units_of_rho
from maxmargin.reductions.linear_kernel import Columns, Factor, factor_of, solve_on_columns
from maxmargin.reductions.small_problems import Parts, SmallModels, Solved, solve_at_costs, solve_small
from maxmargin.solvers import WorkingSet, sizes
from maxmargin.solvers.gpu_working_sets import solve_together
from maxmargin.solvers.kernel.active_sets import ActiveSets
from maxmargin.solving.loop import NO_LIMIT, Callback, solve
from maxmargin.solving.ways import Running, Way, find_way, solve_each
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.parameters import bytes_of, changed
from maxmargin.types import Indices, Vector

logger = logging.getLogger("maxmargin")


@dataclass(frozen=True)
class Attempt:
    """One of the problems with a kernel, and what there is to solve it with."""

    k: int
    """The number of the problem."""
    problem: Problem
    budget: Budget
    callback: Callback | None


@dataclass(frozen=True)
class Rung:
    """A way to solve a problem with a kernel, where those before it fell short."""

    solve: Callable[[Attempt, Certificate | None], Model | None]
    """Given what is known of the problem; None: it cannot."""
    reason: str
    """Why it has its turn, for the log."""


class KernelFit:
    """The problems of one fit with a kernel, to be solved.

    ``cache_size`` are the megabytes for values of the kernel; ``starts`` are multipliers of each problem,
    from another fit, and ``warm`` says that they were asked for.
    """

    def __init__(
        self,
        problems: KernelProblems,
        running: Running,
        *,
        cache_size: float,
        shrinking: bool,
        warm: bool,
        starts: Sequence[Vector] | None,
    ) -> None:
        self.problems, self.running = problems, running
        problems.refuse_extremes()
        self._cache_size, self._shrinking, self._starts = cache_size, shrinking, starts
        # Steps of small problems are too short for threads to take turns.
        self._threads = 1 if len(problems.codes) <= sizes.ALL_KERNEL_VALUES else running.threads()
        self._side_by_side = min(self._threads, len(problems))
        self._at_will = running.automatic and running.max_steps == NO_LIMIT and not warm
        """Whether nobody has chosen how, sets a limit on steps, or goes on from somewhere."""
        self._on_card = problems.on_card is not None
        if self._on_card:
            self._threads = self._side_by_side = 1  # one problem has the whole card
        self._quick = self._at_will and running.unseen and not self._on_card and problems.nu is None
        # Where nobody limits the steps, it is the ladder itself that has given up by their number.
        self._ends = {Status.RULE_FIRED} | ({Status.STEPS_SPENT} if self._at_will else set())
        self._at_once: SmallModels | None = None
        self._solved: Solved | None = None
        self._shared_bytes = 0
        """The bytes of kernel values that all problems share, but for those of ``problems.matrix``."""
        self._memory = threading.local()

    @staticmethod
    def solve_together(
        fits: Sequence[KernelFit], budget: Budget | None = None, most_rows: int = sizes.QUICK_ROWS
    ) -> Iterator[Models]:
        """The models of each fit, one after the other; all of them are on the same rows at other costs.

        Problems of at most so many rows, whose values are at hand, share them, and begin at their starts;
        whoever calls it from another thread than the main one stops these by ``budget``, and has no
        models then.
        """
        first = fits[0]
        matrix = first.problems.matrix
        if matrix is not None and first._quick and first.problems.largest <= most_rows:
            parts = first.problems.in_a_row()
            zeros = np.zeros(len(parts.y))
            costs = [fit.problems.in_a_row().costs for fit in fits]
            starts = [zeros if fit._starts is None else np.concatenate(fit._starts) for fit in fits]
            solved = solve_at_costs(
                np.ascontiguousarray(matrix, np.float64),
                parts,
                np.array(costs),
                np.array(starts),
                first.running.tol,
                sizes.TINY_ROWS,
                budget or Budget(math.inf, first.running.threads()),
                rounds=first._rounds,
            )
            if budget is not None and budget.stopped:
                return
            for fit, of_fit in zip(fits, solved, strict=True):
                fit._solved = of_fit
        yield from (fit.solve() for fit in fits)

    def _is_short(self, rows: int) -> bool:
        """Whether one call solves a problem of so many rows, or has solved it already."""
        return rows <= sizes.QUICK_ROWS or self._solved is not None

    @property
    def _rounds(self) -> int:
        return sizes.MOST_ROUNDS if self.problems.plain_rows is None else sizes.FEW_ROUNDS

    def solve(self) -> Models:
        """A model of each problem."""
        if self._quick and self._is_short(self.problems.largest):
            self._at_once = self._all_in_one_call()
            if self._at_once is not None and Status.RULE_FIRED not in self._at_once.statuses:
                return self._at_once
        if self._on_card and self._at_will and self._starts is None and self.problems.several:
            self._starts = self._side_by_side_on_card()
        self._first: Problem | None = self.problems.problem(0)
        self._way = self._configured(find_way(self.running.solver, self._first, self.running.tol))
        _ = self.running.seed  # before problems start side by side
        count = len(self.problems)
        return Models(solve_each(count, self._solve_one, self.running.seconds, self._threads))

    def _configured(self, way: Way) -> Way:
        """A solver that was not configured by hand gets its share of the memory."""
        if not isinstance(self.running.solver, str):
            return way
        options: Any = way.solver
        ours = {"cache_size": self._cache_size / self._side_by_side, "shrinking": self._shrinking}
        offered = {field.name for field in fields(options)}
        return changed(way, solver=replace(options, **{n: ours[n] for n in ours if n in offered}))

    def _all_in_one_call(self) -> SmallModels | None:
        """All problems at once, with all values of the kernel at hand; None where these are too many."""
        problems, count = self.problems, len(self.problems.codes)
        if problems.matrix is not None:
            values = np.ascontiguousarray(problems.matrix, np.float64)
            return self._in_one_call(values, None, problems.in_a_row(), Budget(math.inf, 1))
        if 8e-6 * count**2 > sizes.SHARE_OF_CACHE * self._cache_size:
            return None
        # In the order of the classes, so that those of a pair lie close together.
        order, place = np.concatenate(problems.by_class), np.empty(count, np.intp)
        place[order] = np.arange(count)
        budget = Budget(math.inf, self._threads)
        values, data = np.empty((count, count)), problems.rows.stored_data
        with held_back(budget.stop):
            core.kernel_block(problems.kernel.compiled, data, order, data, order, values, budget)
        self._shared_bytes = values.nbytes
        parts = problems.in_a_row()
        return self._in_one_call(values, order, parts._replace(which=place[parts.which]), budget)

    def _side_by_side_on_card(self) -> list[Vector]:
        """Multipliers of all problems, each a part of the same rounds; some at a time."""
        problems, rows = self.problems, self.problems.all_rows_on_card()
        parts, alphas = problems.in_a_row(), list[Vector]()
        budget = Budget(self.running.seconds, 1)
        with held_back(budget.stop):
            for first in range(0, len(problems), sizes.CARD_PROBLEMS):
                begins = parts.begins[first : first + sizes.CARD_PROBLEMS + 1]
                some = slice(begins[0], begins[-1])
                given = parts.which[some], begins - begins[0], parts.y[some], parts.costs[some]
                alpha = solve_together(rows, *given, self.running.tol, budget)
                alphas += np.split(alpha, begins[1:-1] - begins[0])
        return alphas

    def _alone_in_one_call(self, k: int, budget: Budget) -> Model:
        """One problem, with all values of the kernel on its own rows."""
        problems = self.problems
        which, y, weights = problems.part(k)
        rows, size = problems.rows, len(y)
        which = np.arange(size) if which is None else which
        # Kept by its thread: to get so much memory anew can take longer than to solve the problem.
        values = getattr(self._memory, "values", None)
        if values is None or len(values) < size**2:
            values = self._memory.values = np.empty(size**2)
        matrix = values[: size**2].reshape(size, size)
        data = rows.stored_data
        if not budget.stopped:  # multipliers of 0 are proven without a value of the kernel
            core.kernel_block(problems.kernel.compiled, data, which, data, which, matrix, budget)
        parts = Parts(np.arange(size), y, problems.C * weights, np.array([0, size]))
        return replace(
            self._in_one_call(matrix, which, parts, budget)[0], notes=cache_notes(matrix.nbytes, size, 0)
        )

    def _in_one_call(
        self, matrix: Matrix, which: Indices | None, parts: Parts, budget: Budget
    ) -> SmallModels:
        """The problems on a matrix of some rows, or of all."""
        lengths, value_error = self.problems.rounding.simple
        return solve_small(
            matrix,
            parts,
            self.running.tol,
            sizes.TINY_ROWS,
            budget,
            lengths if which is None else lengths[which],
            value_error,
            kernel_is_none=self.problems.kernel_is_none,
            rounds=self._rounds,
            solved=self._solved if which is None else None,
        )

    def _solve_one(self, k: int, budget: Budget) -> Model:
        start = None if self._starts is None or budget.stopped else self._starts[k]
        small = self._quick and self._is_short(self.problems.count(k))
        if small:
            once = self._at_once
            model = self._alone_in_one_call(k, budget) if once is None else once[k]
            if model.status is not Status.RULE_FIRED:
                return model
            start = model.alpha
        problem, self._first = (self._first if k == 0 else None) or self.problems.problem(k), None
        attempt = Attempt(k, problem, budget, self.running.told_of(self.problems.name(k)))
        # The multipliers of a start become feasible, whatever costs they come from.
        known = None
        if start is not None and problem.total is not None and start.any():
            start = start * (problem.total / float(start.sum()))  # which was in units of its own rho
        if start is not None:
            known = certify(problem, Solution(alpha=start), budget=budget, tol=self.running.tol)
        return self._climb(attempt, known, self._rungs(k, hard=small))

    def _climb(self, attempt: Attempt, known: Certificate | None, rungs: Sequence[Rung]) -> Model:
        """The model of the first rung that proves the problem to ``tol``, or of the last one."""
        tol, model, ran = self.running.tol, None, ""
        for rung in rungs:
            name = self.problems.name(attempt.k)
            logger.debug("%s %s: %s", self.problems.kind.what, name, rung.reason)
            found = rung.solve(attempt, known)
            if found is None:
                continue
            model = found
            if known is None or model.certificate.relative_gap < known.relative_gap:
                known, ran = model.certificate, model.solver
            ended = model.status in (Status.STOPPED, Status.INTERRUPTED) or attempt.budget.spent
            if ended or known.relative_gap <= tol:
                break
        assert model is not None
        assert known is not None
        if known is not model.certificate and known.relative_gap <= tol:
            model = replace(model, status=Status.within_tol(known))
        elif model.status in self._ends and self._is_rounding(attempt.problem, known):
            model = replace(model, status=Status.VALUES_ROUNDED)
        if attempt.problem.total is not None:
            known, self.problems.scales[attempt.k] = in_units_of_rho(known)
        return replace(model, certificate=known.without_problem(known.w), solver=ran or model.solver)

    def _is_rounding(self, problem: Problem, proof: Certificate) -> bool:
        """Whether the rounding of the kernel's values can change the objective by more than ``tol``.

        At the multipliers that were proven; where nothing is better than 0, at those of C.
        """
        rows = problem.rows
        alpha = proof.alpha if proof.alpha.any() else feasible(problem, problem.costs)
        per_length, constant = rows.score_error(alpha * problem.y)
        lost = core.dot(problem.costs, per_length * rows.lengths + constant)
        return proof.relative_gap > self.running.tol and lost > self.running.tol * abs(proof.primal)

    def _rungs(self, k: int, *, hard: bool) -> Sequence[Rung]:
        """How to solve a problem, one way after the other; ``hard``: where pairs of rows have failed."""
        count = self.problems.count(k)
        if self._on_card:
            return [self._pairs(self.running.max_steps, "The rows lie on a GPU.")]
        if not self._at_will:
            return [self._pairs(self.running.max_steps, "It was asked for.")]
        if self.problems.nu is not None:
            return [self._pairs(NO_LIMIT, "Pairs of rows of one sign keep the total of the multipliers.")]
        if hard or (self.problems.plain_rows is not None and count > sizes.TINY_ROWS):
            after = "Steps on pairs of rows hardly do better where columns have failed."
            return [self._columns, self._pairs(sizes.STEPS_AFTER_COLUMNS, after)]
        needed = 3 * 8 * count**2  # bytes: the matrix, its scaled copy and the factor
        if count > sizes.FACTORED_ROWS or needed > self._cache_size * 1e6:
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
        way = self._way.with_seed(self.running.seed + attempt.k)
        if isinstance(way.solver, WorkingSet):
            way = changed(way, solver=replace(way.solver, most_work=most_work))
        tiny = attempt.problem.rows.count <= sizes.TINY_ROWS
        return solve(
            attempt.problem,
            way,
            tol=0.0 if not self._on_card and tiny else self.running.tol,
            max_steps=max_steps,
            start=None if known is None else Solution(alpha=known.alpha),
            known=known,
            callback=attempt.callback,
            budget=attempt.budget,
        )

    def _on_active_sets(self, attempt: Attempt, known: Certificate | None) -> Model | None:
        """Newton's method on the free multipliers, with the whole matrix at hand."""
        if self.problems.kernel_is_none:
            return None
        why = "active_sets: pairs of rows gained too little."
        return solve(
            attempt.problem,
            Way(ActiveSets(), why),
            tol=self.running.tol,
            max_steps=NO_LIMIT,
            start=None if known is None else Solution(alpha=known.alpha),
            known=known,
            callback=attempt.callback,
            budget=attempt.budget,
        )

    def _on_columns(self, more: int, attempt: Attempt, known: Certificate | None) -> Model | None:
        """A linear problem on the columns of the data, or of a factor of the kernel matrix.

        A factor may have few columns, or more, up to that number; None where it has not.
        """
        few = max(sizes.FEW_FACTOR_COLUMNS, attempt.problem.rows.count // sizes.ROWS_PER_FACTOR_COLUMN)
        seed = self.running.seed + attempt.k
        columns = self._columns_of(attempt.k, attempt.problem, more or few)
        if columns is None:
            return None
        if more and isinstance(columns, Factor) and columns.rows.shape[1] <= few:
            return None  # these have had their turn
        budget, told = attempt.budget, attempt.callback
        return solve_on_columns(attempt.problem, columns, self.running.tol, seed, budget, told)

    def _columns_of(self, k: int, problem: Problem, most: int) -> Columns | None:
        """The problem on the data themselves, where the kernel is their inner product; else a factor.

        None where the matrix is not that of a kernel, or the factor is hardly smaller.
        """
        plain = self.problems.plain_problem(k)
        if plain is not None:
            return plain
        if self.problems.kernel_is_none:
            return None
        rows, every = problem.rows, np.arange(problem.rows.count)
        assert isinstance(rows, KernelRows)
        return factor_of(rows.block(every, every), min(rows.count, most))

    def cache_use(self, models: Models, kernel: Kernel) -> CacheUse:
        """What has been made of ``cache_size``."""
        problems, solver = self.problems, self.running.solver
        shared_bytes = self._shared_bytes
        shared_rows = len(problems.codes) if shared_bytes else 0
        if problems.matrix is not None and not isinstance(kernel, Precomputed):
            shared_bytes, shared_rows = int(problems.matrix.nbytes), len(problems.codes)
        budget_bytes = bytes_of(self._cache_size)
        if not isinstance(solver, str):  # it brings its own, for each problem
            own = getattr(solver, "cache_size", 0.0)
            budget_bytes = shared_bytes + self._side_by_side * bytes_of(own)
        return cache_use(budget_bytes, shared_bytes, shared_rows, models.notes, self._side_by_side)


def cache_use(
    budget_bytes: int, shared_bytes: int, shared_rows: int, notes: Sequence[Mapping[str, float]], side: int
) -> CacheUse:
    """The use of a fit, from what its problems share and what each noted, ``side`` of them side by side."""
    peaks = sorted((int(note.get(PEAK, 0)) for note in notes), reverse=True)
    return CacheUse(
        budget_bytes,
        shared_bytes + sum(peaks[:side]),
        shared_rows + sum(int(note.get(COMPUTED, 0)) for note in notes),
        sum(int(note.get(FOUND, 0)) for note in notes),
    )
