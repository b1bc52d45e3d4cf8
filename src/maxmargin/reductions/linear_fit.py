# SPDX-License-Identifier: BSD-3-Clause
"""How the linear problems of one fit are solved: each on the first way that proves it to ``tol``.

1  small problems, where nobody watches, chooses or goes on from somewhere: all of them in one call.
   A class of a few hundred rows takes some hundred microseconds; a run of ``solve`` would take as long
   again in calls alone. Problems and proofs are those of ``solve``
2  all others, and those that fell short, side by side: by ``solve``, or ``solve_hard_margin``
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeGuard

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix, RowSpace
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.inseparable import InseparableError, equal_rows
from maxmargin.proof.model import Model, Models, Record, Status, Trace
from maxmargin.proof.solution import Solution
from maxmargin.reductions.hard_margin import solve_hard_margin
from maxmargin.solvers import AnySolver, AugmentedLagrangian, Newton, sizes
from maxmargin.solvers.ascent.pulled_intercept import first_reach
from maxmargin.solvers.ascent.warm_up import visits_to_cross
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent, smaller_copy
from maxmargin.solvers.second_order.opening import sample_size
from maxmargin.solving.loop import MANY_STEPS, NO_LIMIT, ROUNDING, solve
from maxmargin.solving.ways import Running, Way, find_way, solve_each
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.parameters import changed

logger = logging.getLogger("maxmargin")

Begin = Callable[[int, Problem], tuple[Solution | None, Certificate | None]]
"""The start of problem k, and what is known of it."""
_FEW_VISITS = 100.0
"""The mean of C |x|^2 above which the first steps after sweeps are taken at smaller costs."""
_SMALLEST_PART = 1e-8
"""The smallest share of the costs in these steps."""

_NOTHING_LEFT = 1e-11
"""A relative gap that is all rounding: the bounds on it leave no smaller one on small problems."""


class LinearProblems(Protocol):
    """What a fit on rows as they are asks of its problems: ``ClassProblems``, or a ``Regression``."""

    @property
    def rows(self) -> RowSpace:
        """The rows that all problems share."""

    @property
    def several(self) -> bool:
        """Whether there is more than one problem."""

    @property
    def hard(self) -> bool:
        """Whether these are hard margins."""

    def __len__(self) -> int: ...

    def problem(self, k: int) -> Problem:
        """One of the problems."""

    def name(self, k: int) -> Any:
        """What a problem is about."""


def linear_tolerance(rows: RowSpace, tol: float) -> float:
    """The relative gap at which a linear problem ends: ``tol``, or 0 for a tiny one."""
    return 0.0 if rows.stored <= sizes.TINY_VALUES else tol


class LinearFit:
    """The linear problems of one fit, to be solved.

    ``begin`` says where they start, by default at zero; ``way`` is what ``find_way`` would find, if known.
    """

    def __init__(
        self, problems: LinearProblems, running: Running, begin: Begin | None = None, way: Way | None = None
    ) -> None:
        self.problems, self.running, self.begin = problems, running, begin
        self.tol = linear_tolerance(problems.rows, running.tol)
        self.first = problems.problem(0)
        self.way = way or find_way(running.solver, self.first, self.tol)

    def solve(self) -> tuple[Models, Matrix]:
        """A model of each problem, and ``coef_``; raises InseparableError where a hard margin has none."""
        problems, rows = self.problems, self.problems.rows
        self._solved = self._in_one_call()
        if problems.hard:
            self._refuse_equal_rows()
        if None in self._solved and problems.several:
            # Shared by all classes, so made before they start side by side.
            _ = self.running.seed, rows.squared_norms
            _ = rows.by_columns if self._visits_columns else smaller_copy(rows)
        self._coefficients = np.empty((len(problems) if problems.several else 0, rows.columns))
        threads = 1 if rows.stored <= sizes.ONE_THREAD_VALUES else self.running.threads()
        models = solve_each(len(problems), self._solve_one, self.running.seconds, threads)
        return Models(models), self._coefficients if problems.several else models[0].w[np.newaxis]

    @property
    def _visits_columns(self) -> bool:
        return self.way.solver.takes_l1

    def _problem(self, k: int) -> Problem:
        # Made when its turn comes: labels and costs of many classes at once would add up.
        return self.first if k == 0 else self.problems.problem(k)

    def _in_one_call(self) -> Sequence[Model | None]:
        """A model of each class that one compiled call solves, else None."""
        running, count = self.running, len(self.problems)
        plain = self.begin is None and not self.problems.hard and isinstance(running.solver, str)
        unseen = running.unseen and running.max_steps >= MANY_STEPS
        small = self.first.rows.stored <= sizes.FEW_VALUES
        solver = self.way.solver
        if not (plain and unseen and small and are_small(solver, self.first, count)):
            return [None] * count
        return solve_small_classes(
            [self._problem(k) for k in range(count)],
            solver,
            self.way.reason,
            tol=self.tol,
            max_steps=min(running.max_steps, sizes.STEPS_TO_ROUNDING),
            # To draw from a number would take as long as to solve a small class.
            seed=running.random_state if isinstance(running.random_state, int) else running.seed,
            budget=Budget(math.inf, 1),
        )

    def _solve_one(self, k: int, budget: Budget) -> Model:
        model = self._solved[k] or self._in_the_loop(k, budget)
        w = model.w
        if self.problems.several:
            # At once, so that no more than one class has its w twice: certificates share coef_'s.
            self._coefficients[k] = w
            w = self._coefficients[k]
        return changed(model, certificate=model.certificate.without_problem(w))

    def _in_the_loop(self, k: int, budget: Budget) -> Model:
        running, problem, seed = self.running, self._problem(k), self.running.seed + k
        start, known = (None, None) if self.begin is None else self.begin(k, problem)
        options: dict[str, Any] = {"tol": self.tol, "max_steps": running.max_steps, "start": start}
        options |= {"callback": running.told_of(self.problems.name(k)), "budget": budget}
        way = self.way.with_seed(seed)
        if not self.problems.hard:
            if self.tol == 0.0 and running.max_steps == NO_LIMIT:
                return self._to_rounding(problem, way, known, options)
            return solve(problem, way, known=known, **options)
        # "auto" is chosen for each of the soft margins on the way.
        solver = "auto" if running.automatic else way.solver
        try:
            return solve_hard_margin(problem, solver, seed=seed, **options)
        except InseparableError as error:
            raise self._inseparable(error.certificate, k) from None

    def _to_rounding(
        self, problem: Problem, way: Way, known: Certificate | None, options: dict[str, Any]
    ) -> Model:
        """A tiny problem, to rounding as far as some steps lead; to ``tol`` however many that takes."""
        tol = self.running.tol
        model = solve(problem, way, known=known, **options | {"max_steps": sizes.STEPS_TO_ROUNDING})
        if model.status is not Status.STEPS_SPENT:
            return model
        if model.certificate.relative_gap <= tol:
            return replace(model, status=Status.within_tol(model.certificate), tol=tol)
        proof = model.certificate
        start = Solution(w=proof.w, b=proof.b, alpha=proof.alpha)
        return solve(problem, way, known=proof, **options | {"tol": tol, "start": start})

    def _refuse_equal_rows(self) -> None:
        """Look at all classes before any of them takes its time."""
        for k in range(len(self.problems)):
            if (proof := equal_rows(self._problem(k))) is not None:
                raise self._inseparable(proof, k)

    def _inseparable(self, proof: Any, k: int) -> InseparableError:
        return InseparableError(proof.about(self.problems.name(k), self.problems.several))


def are_small(solver: AnySolver, problem: Problem, count: int) -> TypeGuard[Newton | AugmentedLagrangian]:
    """Whether ``count`` classes on the rows of a problem are a matter of one call for the solver."""
    rows = problem.rows
    return (
        type(solver) in (Newton, AugmentedLagrangian)
        and problem.loss.name in ("hinge", "squared_hinge")
        and rows.is_stored
        and 0 < rows.stored <= sizes.FEW_VALUES
        and rows.columns < sizes.UNBLOCKED_COLUMNS_OF_FEW
        and count * rows.count <= sizes.MOST_LABELS
        and (rows.count < sizes.SAMPLED_ROWS or sample_size(problem) == 0)
    )


def solve_small_classes(
    problems: Sequence[Problem],
    solver: Newton | AugmentedLagrangian,
    reason: str,
    *,
    tol: float,
    max_steps: int,
    seed: int,
    budget: core.Budget,
) -> list[Model | None]:
    """Minimise problems on the same rows that differ in labels and costs; None for one that falls short.

    Until each relative gap is at most ``tol``, or rounding leaves nothing to gain. Ctrl-C ends them all: a
    model is then what its problem had come to.
    """
    began = time.perf_counter()
    first = problems[0]
    data, d, regulariser = first.rows.stored_data, first.rows.columns, first.regulariser_diagonal()
    classes = [
        core.SmallClass(problem.y, problem.costs, regulariser, problem.targets) for problem in problems
    ]
    options = core.SmallOptions(most=max_steps, until=tol, seed=seed, **_options(solver, first))
    further = core.SmallOptions(most=max_steps, until=tol, seed=seed)  # from where a class stands
    with held_back(budget.stop):
        if not budget.stopped:
            core.solve_small_classes(data, first.loss.name, classes, options, budget)
        interrupted = budget.stopped
    models: list[Model | None] = []
    for problem, found in zip(problems, classes, strict=True):
        alpha = None if isinstance(solver, Newton) else found.multipliers
        before = time.perf_counter()
        certificate = certify(problem, Solution(w=found.v[:d], alpha=alpha), budget=budget)
        goes_on = (
            isinstance(solver, Newton) and found.steps < max_steps and not (found.finished or interrupted)
        )
        if goes_on and certificate.relative_gap > max(tol, _NOTHING_LEFT):
            # The gap that steps see is that of their own multipliers: it can be a little below the proof's.
            with held_back(budget.stop):
                core.solve_small_classes(data, first.loss.name, [found], further, budget)
                interrupted = budget.stopped
            certificate = certify(problem, Solution(w=found.v[:d]), known=certificate, budget=budget)
        now = time.perf_counter()
        gap, taken = certificate.relative_gap, found.steps
        logger.debug("%s: step %d, relative gap %.3e", solver.name, taken, gap)
        if gap <= max(tol, _NOTHING_LEFT):
            status = Status.within_tol(certificate)
        elif interrupted:
            status = Status.INTERRUPTED
            if certificate.primal > (1.0 + ROUNDING) * problem.primal_of_zero:
                # As in the loop: a run cut short can be worse than no model at all.
                certificate = certify(problem, Solution(w=np.zeros(d)), known=certificate, budget=budget)
                gap = certificate.relative_gap
        elif found.finished and gap <= ROUNDING:
            status = Status.RULE_FIRED
        else:
            models.append(None)
            continue
        record = Record(taken, now - began, certificate.primal, certificate.dual, gap)
        trace = Trace([record], certifying=now - before)
        models.append(Model(certificate, trace, status, tol, taken, reason, {}, "", interrupted))
    return models


def _options(solver: Newton | AugmentedLagrangian, problem: Problem) -> dict[str, Any]:
    """The options of the sweeps, of the first Newton steps, and of the augmented Lagrangian."""
    options: dict[str, Any] = {"sweeps": solver.sweeps_of(problem)}
    if isinstance(solver, AugmentedLagrangian):
        options["lagrangian"] = solver.options_for(problem)
    if options["sweeps"] == 0:
        return options
    ascent, visits = DualCoordinateAscent(), visits_to_cross(problem)
    return options | {
        "relaxation": ascent.relaxation_of(problem),
        "bias_reach": first_reach(problem, ascent.bias_reach),
        "first_part": max(_FEW_VISITS / visits, _SMALLEST_PART) if visits > _FEW_VISITS else 1.0,
    }
