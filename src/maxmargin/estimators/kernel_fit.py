# SPDX-License-Identifier: BSD-3-Clause
"""How an ``SVC`` solves the problems of one fit: each in the first way that proves it to ``tol``.

1  small problems in one compiled call, where nobody watches, chooses or goes on from somewhere
2  all others, and those that fell short: the ways of ``_ways``, one after the other
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_random_state

from maxmargin.core import Budget
from maxmargin.kernels.base import Function, Kernel, Precomputed
from maxmargin.kernels.cache_use import CacheUse, cache_use
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Model, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.reductions.linear_kernel import solve_on_columns
from maxmargin.reductions.models import Models
from maxmargin.reductions.one_vs_rest import solve_each
from maxmargin.reductions.small_problems import STORY
from maxmargin.solvers import AnySolver, Solver
from maxmargin.solving.choice import find_solver
from maxmargin.solving.loop import NO_LIMIT, Callback, solve
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.estimators.svc import SVC

# Up to this many rows, all values of the kernel are computed once: problems and certificates share them.
_SMALL = 2_000

# Problems of up to this many rows are solved without working sets, in one call.
_QUICK = 1_000

# Up to this many rows of a problem it is solved to rounding error, so that equal problems (a row twice, a
# row of weight two) give equal models.
_TINY = 50

# Solved on columns.
_COLUMNS = -1

# Steps on pairs of rows where columns have failed: they hardly do better.
_AFTER_COLUMNS = 200

# Up to this many rows a kernel matrix may be factored, where as many steps on pairs as there are tens of
# rows were too few: other problems take fewer.
_FACTORED = 4_000


def matrix_of(estimator: SVC, X: Any, kernel: Kernel) -> NDArray[Any] | None:
    """All values of the kernel, where they are given, or few, or where only a function knows them."""
    if isinstance(kernel, Precomputed):
        matrix: NDArray[Any] = X
        return matrix
    if isinstance(kernel, Function):
        values = kernel(X)
        assert_all_finite(values, input_name="kernel(X, X)")
        return values
    if X.shape[0] > _SMALL or 8e-6 * X.shape[0] ** 2 > 0.5 * estimator.cache_size:
        return None
    return kernel(Rows(X, check_finite=False), budget=Budget(math.inf, estimator._threads()))


class KernelFit:
    """The problems of one fit, and the parameters of the estimator that say how they are solved."""

    def __init__(self, estimator: SVC, task: ClassProblems) -> None:
        self._estimator, self._task = estimator, task
        self._tol = float(estimator.tol)
        # Steps of small problems are too short for threads to take turns.
        self._threads = 1 if len(task.codes) <= _SMALL else estimator._threads()
        self._side_by_side = min(self._threads, len(task))
        self._quick = _may_be_quick(estimator)
        self._at_once: Models | None = None

    def solve(self) -> tuple[Models, str]:
        """A model of each problem, and the sentence that says what ran and why."""
        estimator, task = self._estimator, self._task
        if self._quick and task.matrix is not None and task.largest <= _QUICK:
            self._at_once = task.solve_at_once(self._tol, _TINY)
            if Status.RULE_FIRED not in self._at_once.statuses:
                return self._at_once, STORY
        self._seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
        self._solver, reason = self._configured()
        self._starts = self._last_multipliers()
        seconds = math.inf if estimator.max_time is None else float(estimator.max_time)
        return Models(solve_each(len(task), self._solve_one, seconds, self._threads)), reason

    def _solve_one(self, k: int, budget: Budget) -> Model:
        model = None
        start = None if self._starts is None else self._starts[k]
        small = self._quick and self._task.count(k) <= _QUICK
        if small:
            model = self._in_one_call(k, budget)
            if model.status is not Status.RULE_FIRED:
                return model
            start = model.alpha
        problem = self._task.problem(k)
        told = self._estimator._callback(self._task.name(k), len(self._task) > 1, self._task.what)
        # The multipliers of a start become feasible, whatever costs they come from.
        known = None if start is None else certify(problem, Solution(alpha=start), budget=budget)
        for way in self._ways(k, hard=small):
            if way != _COLUMNS:
                model = self._on_pairs(k, problem, known, way, budget, told)
            elif (columns := self._task.columns(k)) is not None:
                model = solve_on_columns(problem, columns, self._tol, self._seed + k, budget, told)
            assert model is not None
            if known is None or model.certificate.relative_gap < known.relative_gap:
                known = model.certificate
            ended = model.status in (Status.STOPPED, Status.INTERRUPTED) or budget.spent
            if ended or known.relative_gap <= self._tol:
                break
        assert model is not None
        assert known is not None
        if known is not model.certificate and known.relative_gap <= self._tol:
            model = replace(model, status=Status.within_tol(known))
        return replace(model, certificate=known.without_problem(known.w))

    def _in_one_call(self, k: int, budget: Budget) -> Model:
        if self._at_once is not None:
            return self._at_once[k]
        return self._task.solve_alone(k, self._tol, _TINY, budget)

    def _on_pairs(
        self,
        k: int,
        problem: Problem,
        known: Certificate | None,
        max_steps: int,
        budget: Budget,
        callback: Callback | None,
    ) -> Model:
        return solve(
            problem,
            self._solver.with_seed(self._seed + k),
            tol=0.0 if problem.rows.count <= _TINY else self._tol,
            max_steps=max_steps,
            start=None if known is None else Solution(alpha=known.alpha),
            known=known,
            callback=callback,
            budget=budget,
        )

    def _ways(self, k: int, *, hard: bool) -> list[int]:
        """How to solve a problem, one way after the other until one does.

        On pairs of rows with at most so many steps, or on ``_COLUMNS``. ``hard``: where pairs have failed.
        """
        estimator, count = self._estimator, self._task.count(k)
        if estimator.max_iter != -1:
            return [int(estimator.max_iter)]
        if not _is_automatic(estimator) or estimator.warm_start:
            return [NO_LIMIT]
        if hard or (self._task.plain_rows is not None and count > _TINY):
            return [_COLUMNS, _AFTER_COLUMNS]
        needed = 3 * 8 * count**2
        if count > _FACTORED or needed > estimator.cache_size * 1e6:
            return [NO_LIMIT]
        return [max(count // 10, 100), _COLUMNS, NO_LIMIT]

    def _configured(self) -> tuple[AnySolver, str]:
        """The solver of all problems; one that was not configured by hand gets its share of memory."""
        estimator = self._estimator
        solver, reason = find_solver(estimator.solver, self._task.problem(0), self._tol)
        options: Any = solver
        if isinstance(estimator.solver, str):
            share = float(estimator.cache_size) / self._side_by_side
            ours = {"cache_size": share, "shrinking": bool(estimator.shrinking)}
            offered = {field.name for field in fields(options)}
            solver = replace(options, **{name: ours[name] for name in ours if name in offered})
        return solver, reason

    def _last_multipliers(self) -> list[Vector] | None:
        """Those of the last fit, if there was one on such data and it is to be the start."""
        estimator, task = self._estimator, self._task
        proof: Any = getattr(estimator, "certificate_", None)
        if not estimator.warm_start or proof is None or not np.array_equal(estimator.classes_, task.labels):
            return None
        each = [proof] if isinstance(proof, Certificate) else list(proof)
        if [len(certificate.alpha) for certificate in each] != [task.count(k) for k in range(len(task))]:
            return None
        return [certificate.alpha for certificate in each]

    def cache_use(self, models: Models, kernel: Kernel) -> CacheUse:
        """What has been made of ``cache_size``."""
        estimator, task = self._estimator, self._task
        shared_bytes = shared_rows = 0
        if task.matrix is not None and not isinstance(kernel, Precomputed):
            shared_bytes, shared_rows = int(task.matrix.nbytes), len(task.codes)
        budget_bytes = int(estimator.cache_size * 1e6)
        if not isinstance(estimator.solver, str):  # it brings its own, for each problem
            own = getattr(estimator.solver, "cache_size", 0.0)
            budget_bytes = shared_bytes + self._side_by_side * int(own * 1e6)
        return cache_use(budget_bytes, shared_bytes, shared_rows, models.notes, self._side_by_side)


def _is_automatic(estimator: SVC) -> bool:
    return not isinstance(estimator.solver, Solver) and estimator.solver == "auto"


def _may_be_quick(estimator: SVC) -> bool:
    """Whether nobody wants to watch, to choose how, or to go on from somewhere."""
    watched = estimator.verbose or estimator.callback is not None or estimator.max_time is not None
    chosen = not _is_automatic(estimator) or estimator.max_iter != -1
    return not (watched or chosen or estimator.warm_start)
