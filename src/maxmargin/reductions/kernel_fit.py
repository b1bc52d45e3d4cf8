# SPDX-License-Identifier: BSD-3-Clause
"""How the problems of one fit with a kernel are solved, all together.

Small ones, where nobody watches, chooses or goes on from somewhere, are all solved in one compiled call.
The others, and those that fell short, go side by side, each by the ladder of ``kernel_ladder``, which a
regression has as well.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.kernels.base import Kernel, Precomputed
from maxmargin.kernels.cache_use import COMPUTED, FOUND, PEAK, CacheUse, cache_notes
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import certify
from maxmargin.proof.model import Model, Models, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import KernelProblems
from maxmargin.reductions.in_units_of_rho import in_units_of_rho
from maxmargin.reductions.kernel_ladder import KernelLadder, configured
from maxmargin.reductions.kernel_rungs import Attempt
from maxmargin.reductions.small_problems import (
    AlongCosts,
    Parts,
    SmallModels,
    Solved,
    solve_at_costs,
    solve_small,
)
from maxmargin.solvers import sizes
from maxmargin.solvers.gpu_working_sets import solve_together
from maxmargin.solving.loop import NO_LIMIT
from maxmargin.solving.ways import Running, Way, find_way, solve_each
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.parameters import bytes_of
from maxmargin.types import Indices, Vector


class KernelFit:
    """The problems of one fit with a kernel, to be solved.

    ``cache_size`` are the megabytes for values of the kernel; ``starts`` are multipliers of each problem,
    from another fit, with the margins of their w where these are known, and ``warm`` says that they were
    asked for.
    """

    def __init__(
        self,
        problems: KernelProblems,
        running: Running,
        *,
        cache_size: float,
        shrinking: bool,
        warm: bool,
        starts: Sequence[Solution] | None,
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
        self._at_once: SmallModels | None = None
        self._solved: Solved | None = None
        self._shared_bytes = 0
        """The bytes of kernel values that all problems share, but for those of ``problems.matrix``."""
        self._memory = threading.local()

    @staticmethod
    def solve_together(
        fits: Sequence[KernelFit],
        budget: Budget | None = None,
        most_rows: int = sizes.QUICK_ROWS,
    ) -> Iterator[Models]:
        """The models of each fit, one after the other; all of them are on the same rows at other costs.

        Problems of at most so many rows, whose values are at hand, share them, and begin at their starts;
        whoever calls it from another thread than the main one stops these by ``budget``, and has no
        models then.
        """
        first = fits[0]
        matrix = first.problems.matrix
        if matrix is not None and first._quick and first.problems.largest <= most_rows:
            parts = first._in_a_row
            costs = [fit._in_a_row.costs for fit in fits]
            starts = [fit._starts_in_a_row(parts) for fit in fits]
            scores = [known for _, known in starts if known is not None]
            solved = solve_at_costs(
                np.ascontiguousarray(matrix, np.float64),
                parts,
                np.array(costs),
                np.array([alpha for alpha, _ in starts]),
                np.array(scores) if len(scores) == len(starts) else None,
                first.running.tol,
                sizes.TINY_ROWS,
                budget or Budget(math.inf, first.running.threads()),
                rounds=first._rounds,
            )
            if budget is not None and budget.stopped:
                return
            for fit, of_fit in zip(fits, solved, strict=True):
                fit._solved = of_fit
        elif budget is None and len(fits) > 1 and first._goes_side_by_side:
            yield from KernelFit._side_by_side_fits(fits)
            return
        yield from (fit.solve() for fit in fits)

    @property
    def _goes_side_by_side(self) -> bool:
        """Whether several such fits go side by side: their steps are too short for several threads."""
        rows = self.problems.largest
        if self._on_card or rows > sizes.ONE_THREAD_ROWS or (self._quick and self._is_short(rows)):
            return False
        return self.problems.rows.stored <= sizes.FEW_VALUES

    @staticmethod
    def _side_by_side_fits(fits: Sequence[KernelFit]) -> Iterator[Models]:
        """The models of each fit, one after the other; all problems of all fits go side by side."""
        running, count = fits[0].running, len(fits[0].problems)
        threads = running.threads()
        for fit in fits:
            fit._side_by_side = min(threads, count * len(fits))
            fit._prepare()

        def solve_one(number: int, budget: Budget) -> Model:
            fit, k = divmod(number, count)
            return fits[fit]._solve_one(k, budget)

        models = solve_each(count * len(fits), solve_one, running.seconds * len(fits), threads)
        yield from (Models(models[k : k + count]) for k in range(0, len(models), count))

    def along_costs(self, weights: Matrix, Cs: Vector, budget: Budget) -> AlongCosts | None:
        """The problems with several lines of weights at one C after the other, upwards, in one call.

        A line has a weight for each row of each problem, one after the other. None where these are too many
        or their values not at hand, where somebody watches, or where time is limited; and with a linear
        kernel, of which the call would soon fall short: what is not easy is solved on the columns.
        """
        problems = self.problems
        matrix = problems.matrix
        if matrix is None or not self._quick or problems.plain_rows is not None:
            return None
        if problems.largest > sizes.QUICK_SHARED_ROWS:
            return None
        answers = 2 * 8e-6 * weights.size * len(Cs)  # megabytes: multipliers and margins at every C
        if answers > sizes.SHARE_OF_CACHE * self._cache_size:
            return None
        return AlongCosts(
            np.ascontiguousarray(matrix, np.float64),
            self._in_a_row,
            weights,
            Cs,
            self.running.tol,
            sizes.TINY_ROWS,
            budget,
            *problems.rounding.simple,
            kernel_is_none=problems.kernel_is_none,
        )

    @cached_property
    def _in_a_row(self) -> Parts:
        """All problems with their costs, one after the other."""
        return self.problems.in_a_row()

    def _starts_in_a_row(self, parts: Parts) -> tuple[Vector, Vector | None]:
        """The multipliers to begin at, one problem after the other, and the scores of their w if known."""
        if self._starts is None:
            return np.zeros(len(parts.y)), np.zeros(len(parts.y))
        alpha = np.concatenate([start.alpha for start in self._starts if start.alpha is not None])
        scores = [
            parts.y[slice(*ends)] * start.margins - start.b
            for start, ends in zip(self._starts, pairwise(parts.begins), strict=True)
            if start.margins is not None
        ]
        return alpha, np.concatenate(scores) if len(scores) == len(self._starts) else None

    def _is_short(self, rows: int) -> bool:
        """Whether one call solves a problem of so many rows, or has solved it already."""
        if rows <= sizes.QUICK_ROWS or self._solved is not None:
            return True
        needed = 2 * 8e-6 * rows**2 * self._side_by_side  # megabytes: the matrix, and the solver's copy
        fits = rows <= sizes.QUICK_SPARSE_ROWS and needed <= sizes.SHARE_OF_CACHE * self._cache_size
        return fits and self._is_sparse

    @cached_property
    def _is_sparse(self) -> bool:
        """Whether values of the kernel are sums over the few columns that two rows share."""
        kernel, data = self.problems.source
        return core.kernel_encoding(kernel.compiled, data) == "sparse"

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
            self._starts = [Solution(alpha=alpha) for alpha in self._side_by_side_on_card()]
        self._prepare()
        count = len(self.problems)
        return Models(solve_each(count, self._solve_one, self.running.seconds, self._threads))

    def _prepare(self) -> None:
        """What problems that start side by side share."""
        self._first: Problem | None = self.problems.problem(0)
        self._ladder = self._ladder_of(find_way(self.running.solver, self._first, self.running.tol))
        _ = self.running.seed

    def _ladder_of(self, way: Way) -> KernelLadder:
        """The ladder; a solver that was not configured by hand gets its share of the memory."""
        if isinstance(self.running.solver, str):
            share = self._cache_size / self._side_by_side
            way = configured(way, cache_size=share, shrinking=self._shrinking)
        return KernelLadder(
            way,
            self.running.tol,
            self.running.max_steps,
            self._cache_size,
            self._at_will,
            is_linear=self.problems.plain_rows is not None,
            kernel_is_none=self.problems.kernel_is_none,
            on_card=self._on_card,
        )

    def _all_in_one_call(self) -> SmallModels | None:
        """All problems at once, with all values of the kernel at hand; None where these are too many."""
        problems, count = self.problems, len(self.problems.codes)
        if problems.matrix is not None:
            values = np.ascontiguousarray(problems.matrix, np.float64)
            return self._in_one_call(values, None, self._in_a_row, Budget(math.inf, 1))
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
        parts = self._in_a_row
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
            start = Solution(alpha=model.alpha)
        problem, self._first = (self._first if k == 0 else None) or self.problems.problem(k), None
        name = self.problems.name(k)
        # The multipliers of a start become feasible, whatever costs they come from.
        known = None
        if start is not None and start.margins is None:
            assert start.alpha is not None
            alpha = start.alpha
            if problem.total is not None and alpha.any():
                alpha = alpha * (problem.total / float(alpha.sum()))  # which was in units of its own rho
            known = certify(problem, Solution(alpha=alpha), budget=budget, tol=self.running.tol)
        attempt = Attempt(
            problem,
            budget,
            self.running.told_of(name),
            self.running.seed + k,
            plain=partial(self.problems.plain_problem, k),
            name=f"{self.problems.kind.what} {name}",
            start=start,
        )
        model = self._ladder.climb(attempt, known, hard=small)
        proof = model.certificate
        if problem.total is not None:
            proof, self.problems.scales[k] = in_units_of_rho(proof)
            if model.status.certified and proof.relative_gap > self.running.tol:
                model = replace(model, status=Status.RULE_FIRED)  # by rounding, which took more there
        return replace(model, certificate=proof.without_problem(proof.w))

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
