# SPDX-License-Identifier: BSD-3-Clause
"""How the problems of one fit with a kernel are solved: each on the first way that proves it to ``tol``.

1  small problems, where nobody watches, chooses or goes on from somewhere: all of them in one compiled call
2  all others, and those that fell short, side by side, on the ladder of kernel_ladder.py
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
from maxmargin.reductions.kernel_ladder import Attempt, KernelLadder, configured
from maxmargin.reductions.small_problems import Parts, SmallModels, Solved, solve_at_costs, solve_small
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
        self._ladder = self._ladder_of(find_way(self.running.solver, self._first, self.running.tol))
        _ = self.running.seed  # before problems start side by side
        count = len(self.problems)
        return Models(solve_each(count, self._solve_one, self.running.seconds, self._threads))

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
        name = self.problems.name(k)
        attempt = Attempt(
            problem,
            budget,
            self.running.told_of(name),
            self.running.seed + k,
            plain=partial(self.problems.plain_problem, k),
            name=f"{self.problems.kind.what} {name}",
        )
        # The multipliers of a start become feasible, whatever costs they come from.
        known = None
        if start is not None and problem.total is not None and start.any():
            start = start * (problem.total / float(start.sum()))  # which was in units of its own rho
        if start is not None:
            known = certify(problem, Solution(alpha=start), budget=budget, tol=self.running.tol)
        model = self._ladder.climb(attempt, known, hard=small)
        proof = model.certificate
        if problem.total is not None:
            proof, self.problems.scales[k] = in_units_of_rho(proof)
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
