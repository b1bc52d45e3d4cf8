# SPDX-License-Identifier: BSD-3-Clause
"""Classes against the rest on few stored values: all of them solved in one call of the core.

A class of a few hundred rows takes some hundred microseconds; a run of ``solve`` would take as long again
in calls alone. Problems and proofs are those of ``solve``, and a class that falls short is left to it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from maxmargin import core
from maxmargin.problem import Problem
from maxmargin.proof.certificate import certify
from maxmargin.proof.model import Model, Record, Status, Trace
from maxmargin.proof.solution import Solution
from maxmargin.solvers import AnySolver, AugmentedLagrangian, Newton
from maxmargin.solvers.ascent.pulled_intercept import first_reach
from maxmargin.solvers.ascent.warm_up import visits_to_cross
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent
from maxmargin.solvers.second_order.opening import sample_size
from maxmargin.solvers.sizes import FEW_VALUES, MOST_LABELS, SAMPLED_ROWS, UNBLOCKED_COLUMNS_OF_FEW
from maxmargin.solving.loop import ROUNDING
from maxmargin.tools.interrupts import held_back

logger = logging.getLogger("maxmargin")

_FEW_VISITS = 100.0
"""The mean of C |x|^2 above which the first steps after sweeps are taken at smaller costs."""
_SMALLEST_PART = 1e-8
"""The smallest share of the costs in these steps."""

_NOTHING_LEFT = 1e-11
"""A relative gap that is all rounding: the bounds on it leave no smaller one on small problems."""


def are_small(solver: AnySolver, problem: Problem, count: int) -> TypeGuard[Newton | AugmentedLagrangian]:
    """Whether ``count`` classes on the rows of a problem are a matter of one call for the solver."""
    rows = problem.rows
    return (
        type(solver) in (Newton, AugmentedLagrangian)
        and problem.loss.name in ("hinge", "squared_hinge")
        and rows.is_stored
        and 0 < rows.stored <= FEW_VALUES
        and rows.columns < UNBLOCKED_COLUMNS_OF_FEW
        and count * rows.count <= MOST_LABELS
        and (rows.count < SAMPLED_ROWS or sample_size(problem) == 0)
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
    with held_back(budget.stop):
        if not budget.stopped:
            core.solve_small_classes(data, first.loss.name, classes, options, budget)
        interrupted = budget.stopped
    models: list[Model | None] = []
    for problem, found in zip(problems, classes, strict=True):
        alpha = None if isinstance(solver, Newton) else found.multipliers
        before = time.perf_counter()
        certificate = certify(problem, Solution(w=found.v[:d], alpha=alpha), budget=budget)
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
