# SPDX-License-Identifier: BSD-3-Clause
"""How a ``LinearSVC`` solves the problems of one fit: one for two classes, else one per class.

1  all classes of a small problem in one compiled call, where nobody watches, chooses or goes on
2  all others, and those that fell short, by ``solve``; hard margins by ``solve_hard_margin``
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.inseparable import InseparableError, equal_rows
from maxmargin.proof.model import Model
from maxmargin.proof.solution import Solution
from maxmargin.reductions.hard_margin import solve_hard_margin
from maxmargin.reductions.one_vs_rest import solve_each
from maxmargin.reductions.small_classes import are_small, solve_small_classes
from maxmargin.solvers import AnySolver
from maxmargin.solving.choice import find_solver
from maxmargin.solving.loop import MANY_STEPS, solve
from maxmargin.tools.changed import changed
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.estimators.linear_svc import LinearSVC

Begin = Callable[[int, Problem], tuple[Solution | None, Certificate | None]]
"""Where the problem of class k starts, and what is known of it."""

# Below this many stored values a sweep takes microseconds: such problems are solved to rounding error,
# so that equal problems (a row twice, a row of weight two) give equal models.
_TINY = 2_000

# Up to this many stored values threads would cost more than the problems.
_SMALL = 50_000


def tolerance(estimator: LinearSVC, rows: Rows) -> float:
    """The relative gap at which a problem ends: ``tol``, or 0 for a tiny one."""
    return 0.0 if rows.stored <= _TINY else float(estimator.tol)


class LinearFit:
    """The problems of one fit, and the parameters of the estimator that say how they are solved."""

    def __init__(
        self,
        estimator: LinearSVC,
        rows: Rows,
        targets: NDArray[Any],
        weights: Vector,
        labels: NDArray[Any],
        chosen: tuple[AnySolver, str] | None,
        begin: Begin | None,
    ) -> None:
        self._estimator, self._rows = estimator, rows
        self._targets, self._weights, self._labels = targets, weights, labels
        self._begin = begin
        self._positives = range(1, 2) if len(labels) == 2 else range(len(labels))
        self._several = len(self._positives) > 1
        self._factors = estimator._class_factors(labels, targets, weights)
        self._starts = self._last_solutions()
        self._first = self._stated(0)
        self._tol = tolerance(estimator, rows)
        self._hard = math.isinf(estimator.C)
        self._draw_seed = _draws_seed(estimator.random_state)
        self._solver, self.reason = chosen or find_solver(estimator.solver, self._first, self._tol)
        self._coefficients = np.empty((len(self._positives) if self._several else 0, rows.columns))

    def solve(self) -> tuple[list[Model], NDArray[np.float64]]:
        """A model of each problem, and ``coef_``; raises InseparableError where a hard margin has none."""
        rows = self._rows
        self._solved = self._in_one_call()
        if self._hard:
            self._refuse_equal_rows()
        if None in self._solved:
            self._seed = self._draw_seed()
            if self._several:
                # Shared by all classes, so made before they start side by side.
                _ = rows.squared_norms, rows.without_private_columns
        max_time = self._estimator.max_time
        seconds = math.inf if max_time is None else float(max_time)
        threads = self._estimator._threads()
        if rows.stored <= _SMALL:
            threads = 1
        models = solve_each(len(self._positives), self._solve_one, seconds, threads)
        return models, self._coefficients if self._several else models[0].w[np.newaxis]

    def _problem(self, k: int) -> Problem:
        # Made when its turn comes: labels and costs of many classes at once would add up.
        if k == 0:
            return self._first
        if self._estimator.class_weight is None:
            return self._first.with_labels(np.where(self._members(k), 1.0, -1.0))
        return self._stated(k)

    def _stated(self, k: int) -> Problem:
        return self._estimator._problem(
            self._rows,
            self._members(k),
            self._weights,
            self._factors,
            self._positives[k],
            len(self._labels),
        )

    def _members(self, k: int) -> NDArray[np.bool_]:
        members: NDArray[np.bool_] = self._targets == self._label(k)
        return members

    def _label(self, k: int) -> Any:
        return self._labels[self._positives[k]]

    def _in_one_call(self) -> list[Model | None]:
        """A model of each class that one compiled call solves, else None."""
        estimator, count = self._estimator, len(self._positives)
        from_zero = self._starts is None and self._begin is None
        unseen = from_zero and not self._hard and _is_unseen(estimator)
        if not (unseen and are_small(self._solver, self._first, count)):
            return [None] * count
        seed = estimator.random_state
        return solve_small_classes(
            [self._problem(k) for k in range(count)],
            self._solver,
            self.reason,
            tol=self._tol,
            max_steps=estimator.max_iter,
            seed=seed if isinstance(seed, int) else self._draw_seed(),
            budget=Budget(math.inf, 1),
        )

    def _solve_one(self, k: int, budget: Budget) -> Model:
        model = self._solved[k] or self._run_one(k, budget)
        w = model.w
        if self._several:
            # At once, so that no more than one class has its w twice: certificates share coef_'s.
            self._coefficients[k] = w
            w = self._coefficients[k]
        return changed(model, certificate=model.certificate.without_problem(w))

    def _run_one(self, k: int, budget: Budget) -> Model:
        estimator, problem, known = self._estimator, self._problem(k), None
        start = self._starts[k] if self._starts else None
        if self._begin is not None:
            start, known = self._begin(k, problem)
        seed = self._seed + k
        solver: str | AnySolver = self._solver.with_seed(seed)
        if self._hard and isinstance(estimator.solver, str) and estimator.solver == "auto":
            solver = "auto"  # chosen for each of the soft margins on the way
        run = partial(solve_hard_margin, seed=seed) if self._hard else partial(solve, known=known)
        try:
            return run(
                problem,
                solver,
                tol=self._tol,
                max_steps=estimator.max_iter,
                start=start,
                callback=estimator._callback(self._label(k), self._several),
                budget=budget,
            )
        except InseparableError as error:
            raise InseparableError(error.certificate.about(self._label(k), self._several)) from None

    def _refuse_equal_rows(self) -> None:
        """Of all classes, before any of them takes its time."""
        for k in range(len(self._positives)):
            if (proof := equal_rows(self._problem(k))) is not None:
                raise InseparableError(proof.about(self._label(k), self._several))

    def _last_solutions(self) -> list[Solution] | None:
        """Where the last fit ended, if there was one on such data and it is to be the start."""
        last, rows = self._estimator, self._rows
        if not (last.warm_start and hasattr(last, "coef_")):
            return None
        if last.coef_.shape[1] != rows.columns or not np.array_equal(last.classes_, self._labels):
            return None
        certificates: Any = getattr(last, "certificate_", None)
        if certificates is None:  # loaded from a file without proof
            return [Solution(w=w, b=float(b)) for w, b in zip(last.coef_, last.intercept_, strict=True)]
        each = [certificates] if isinstance(certificates, Certificate) else certificates
        return [Solution(w=c.w, b=c.b, alpha=c.alpha if len(c.alpha) == rows.count else None) for c in each]


def _is_unseen(estimator: LinearSVC) -> bool:
    """Whether nobody watches the steps of a fit, limits them or has a say in how they are taken."""
    alone = not estimator.verbose and estimator.callback is None and estimator.max_time is None
    return alone and isinstance(estimator.solver, str) and estimator.max_iter >= MANY_STEPS


def _draws_seed(random_state: Any) -> Callable[[], int]:
    """What the solver's seed is drawn with, where one is needed: from a number it takes a while."""

    @cache
    def draw() -> int:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))

    if not (isinstance(random_state, int) and 0 <= random_state < 2**32):
        draw()  # as every fit does that shares a generator
    return draw
