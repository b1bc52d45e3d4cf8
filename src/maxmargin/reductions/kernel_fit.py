# SPDX-License-Identifier: BSD-3-Clause
"""How the problems of one fit with a kernel are solved, all together.

Small ones, where nobody watches, chooses or goes on from somewhere, are all solved in one compiled call.
The others, and those that fell short, go side by side, and so does a regression. Each climbs a ladder of
ways (``kernel_rungs`` has those that few problems need), and is solved on the first that proves it to
``tol``:

1  pairs of rows, as long as their steps are a small part of what a factor costs
2  the columns of a factor of the kernel matrix, where these are few, by the interior point
3  active sets, on the whole matrix, as long as their factors are a part of what the next way takes
4  the interior point on the whole matrix
5  a factor with more columns
6  pairs of rows again

Beyond ``sizes.FACTORED_ROWS`` rows the columns are those of a factor that leaves out as much as the proof
allows, an augmented Lagrangian whose systems have the free rows alone is next, and pairs of rows go on
without end.

The kernel that is the inner product of the data begins with 2, on the columns of the data themselves.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.kernels.base import Kernel, Precomputed
from maxmargin.kernels.cache_use import COMPUTED, FOUND, PEAK, CacheUse, cache_notes
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Model, Models, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import KernelProblems
from maxmargin.reductions.in_units_of_rho import in_units_of_rho
from maxmargin.reductions.kernel_rungs import KernelRungs
from maxmargin.reductions.kernel_values_rounded import is_all_rounding, is_rounding
from maxmargin.reductions.small_problems import (
    AlongCosts,
    Parts,
    SmallModels,
    Solved,
    solve_at_costs,
    solve_small,
)
from maxmargin.solvers import WorkingSet, sizes
from maxmargin.solvers.gpu_working_sets import solve_together
from maxmargin.solvers.kernel.kernel_problem import kernel_rows
from maxmargin.solving.loop import NO_LIMIT, Callback, solve
from maxmargin.solving.ways import Running, Way, find_way, solve_each
from maxmargin.telling.long_fit import LongFit
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.parameters import bytes_of, changed
from maxmargin.types import Indices, Vector

logger = logging.getLogger("maxmargin")

_ENDS = (Status.STOPPED, Status.INTERRUPTED, Status.VALUES_ROUNDED)
"""Ends of a rung after which no other one has its turn."""


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
    start: Solution | None = None
    """Where to begin as long as nothing is proven."""

    @property
    def count(self) -> int:
        """Rows of the kernel matrix."""
        return kernel_rows(self.problem).count

    def has_all_values(self) -> bool:
        """Whether all values of the kernel are at hand, or have been computed before time is over.

        Solvers that begin with them ask nobody how long that may take.
        """
        kernel_rows(self.problem).all_values(self.budget)
        return not self.budget.spent

    def go_on(
        self, way: Way, tol: float, max_steps: int, known: Certificate | None, *, afresh: bool = False
    ) -> Model:
        """The model that a way leads to, from what is known, or afresh and never worse than that."""
        return solve(
            self.problem,
            way,
            tol=tol,
            max_steps=max_steps,
            start=None if afresh else self.start if known is None else Solution(alpha=known.alpha),
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
            last = Rung(self._on_pairs_for_long, "Nor has it few columns, or few enough free rows.")
            return [easy, self._columns_of_many_rows, self._free_rows, last]
        work = max(sizes.WORK_ON_PAIRS * count**3, sizes.LEAST_WORK_ON_PAIRS)
        easy = self._pairs(NO_LIMIT, "Most problems take fewer steps than these.", work)
        last = self._pairs(NO_LIMIT, "Steps on pairs of rows hardly do better.", work)
        return [easy, self._columns, self._active_sets, self._points, self._more_columns, last]

    @property
    def _ways(self) -> KernelRungs:
        return KernelRungs(self.tol, self.cache_size, self.kernel_is_none)

    def _pairs(self, max_steps: int, reason: str, most_work: float = math.inf) -> Rung:
        return Rung(partial(self._on_pairs, max_steps, most_work), reason)

    def _on_pairs(
        self, max_steps: int, most_work: float, attempt: Attempt, known: Certificate | None
    ) -> Model:
        """Take at most so many steps of the solver, which moves multipliers of pairs of rows."""
        way = self.way.with_seed(attempt.seed)
        if isinstance(way.solver, WorkingSet):
            way = changed(way, solver=replace(way.solver, most_work=most_work, aim=self.tol))
        tiny = not self.on_card and attempt.count <= sizes.TINY_ROWS
        return attempt.go_on(way, 0.0 if tiny else self.tol, max_steps, known)

    def _on_pairs_for_long(self, attempt: Attempt, known: Certificate | None) -> Model:
        """Pairs of rows until the end, of which the log is told now and then."""
        if attempt.callback is None:
            attempt = replace(attempt, callback=LongFit(attempt.name, self.tol))
        return self._on_pairs(NO_LIMIT, math.inf, attempt, known)

    @property
    def _columns(self) -> Rung:
        reason = "Second-order steps on columns hardly depend on how the data are scaled."
        return Rung(partial(self._ways.on_columns, 0), reason, on_columns=True)

    @property
    def _columns_of_many_rows(self) -> Rung:
        reason = "A factor with few columns may leave out as little as the proof allows."
        return Rung(self._ways.on_columns_of_many_rows, reason)

    @property
    def _free_rows(self) -> Rung:
        reason = "Newton's method on losses that are rounded off has systems of the free rows alone."
        return Rung(self._ways.on_free_rows, reason, on_the_matrix=True)

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
