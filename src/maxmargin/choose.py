# SPDX-License-Identifier: BSD-3-Clause
"""The automatic choice: a solver, and the sentence that says why.

A cost model decides, counted in visits of a stored value by a sweep of dual coordinate ascent. The two
constants that turn other work into such visits were measured once: see docs/how_to_choose.md.
"""

from __future__ import annotations

import math

from maxmargin.kernels.rows import KernelRows
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers import (
    SOLVERS,
    AnySolver,
    AugmentedLagrangian,
    KernelDualAscent,
    Newton,
    Subgradient,
    WorkingSet,
)
from maxmargin.solvers.dual_coordinate_ascent import warm_up_stages
from maxmargin.solvers.hand_over import HandOver
from maxmargin.solvers.newton_system import LARGEST_SIDE
from maxmargin.solvers.opening import sample_size

PASS = 0.7
"""A value in a pass, in visits of a sweep: rows come in order, and nothing is written."""
FLOP = 0.06
"""A multiply-add of a dense factorisation, in visits of a sweep."""


def ascent_cost(problem: Problem) -> float:
    """What dual coordinate ascent is expected to take: twice as many sweeps for four times the C.

    And more of them where many rows share few columns, so that every step undoes a part of the others.
    """
    sweeps = 15.0 if problem.rows.count < problem.rows.columns else 40.0
    return max(problem.rows.stored, problem.rows.count) * sweeps * 2.0 ** warm_up_stages(problem)


def second_order_cost(problem: Problem, tol: float) -> float:
    """What ``augmented_lagrangian`` (hinge) or ``newton`` (the smooth losses) is expected to take."""
    rows = problem.rows
    n, d, stored = rows.count, rows.columns, max(rows.stored, rows.count)
    width = stored / max(n, 1)
    digits = -math.log10(min(max(tol, 1e-12), 0.1))
    outer_product = FLOP * d * d if stored > 0.25 * n * d else 0.5 * width * width
    sampled = sample_size(problem) > 0
    if problem.loss.name == "hinge":
        steps = (3.0 if sampled else 8.0) + (3.0 if sampled else 5.0) * digits
        # Of many short rows few end up on the margin, of few long ones most: nearly as many as columns.
        free, changes = max(0.1 * n, 0.7 * min(n, d)), 0.02 * n * steps
    else:
        steps = (3.0 if sampled else 5.0) + 0.5 * digits
        free, changes = 0.6 * n, n * (1.5 if problem.loss.name == "squared_hinge" else steps)
    if min(free, float(d)) > LARGEST_SIDE:
        return math.inf  # no factor: conjugate gradients may need any number of passes
    matrix = free * free * width if free < d else changes * outer_product
    factor = FLOP * min(free, float(d)) ** 3 / 3.0
    return steps * (2.0 * PASS * stored + factor) + matrix


def choose_solver(problem: Problem, tol: float = 1e-4) -> tuple[AnySolver, str]:
    """The solver that ``"auto"`` takes for a problem, with the reason."""
    loss = problem.loss.name
    if isinstance(problem.rows, KernelRows):
        if problem.intercept is not Intercept.EXACT:
            return KernelDualAscent(), (
                "kernel_dual_ascent: without an exact intercept one multiplier can move alone."
            )
        return WorkingSet(), (
            "working_set: of the kernel matrix it computes rows only for multipliers that change."
        )
    if loss == "perceptron":
        return Subgradient(), (
            "subgradient: the perceptron loss is for study, w = 0 minimises it, and this solver starts "
            "there."
        )
    if loss == "logistic":
        return Newton(), "newton: the logistic loss is smooth, and a few steps are enough whatever C is."
    second: AnySolver = AugmentedLagrangian(resort=True) if loss == "hinge" else Newton(resort=True)
    cost, sweeps = second_order_cost(problem, tol), ascent_cost(problem)
    size = f"{problem.rows.count} rows of {problem.rows.columns} columns"
    if cost <= sweeps:
        return second, (
            f"{second.name}: for {size} its steps are cheap, and their number hardly depends on C; it is "
            f"expected to cost as much as {cost / max(problem.rows.stored, 1):.0f} sweeps of "
            "dual_coordinate_ascent, which would need more."
        )
    return HandOver(second, cost, tol), (
        f"dual_coordinate_ascent: for {size} few sweeps are expected; {second.name} takes over if they get "
        "too many."
    )


def find_solver(solver: str | AnySolver, problem: Problem, tol: float = 1e-4) -> tuple[AnySolver, str]:
    """The solver that a name, ``"auto"`` or a configured object stands for, with the reason.

    Raises ValueError where the name is unknown or the solver does not take the problem.
    """
    reason = ""
    if solver == "auto":
        solver, reason = choose_solver(problem, tol)
    elif isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(
                f"solver must be 'auto', one of {', '.join(map(repr, SOLVERS))}, or a configured solver. "
                f"Got {solver!r} instead."
            )
        solver = SOLVERS[solver]()
    refusal = _refusal(solver, problem)
    if refusal is not None:
        raise ValueError(refusal)
    return solver, reason or f"{solver.name}: asked for."


def _refusal(solver: AnySolver, problem: Problem) -> str | None:
    """Why the solver does not take the problem, or None."""
    if isinstance(problem.rows, KernelRows) and not solver.takes_kernels:
        return _no_kernels(solver)
    if problem.fixed_intercept != 0.0 and not solver.takes_fixed_intercept:
        return (
            f"{solver.name} takes no intercept that is fixed at {problem.fixed_intercept:g}. Use "
            "kernel_dual_ascent with KernelRows(X, Linear()) or another kernel as rows, or "
            "fixed_intercept=0."
        )
    return solver.accepts(problem)


def _no_kernels(solver: AnySolver) -> str:
    offered = ", ".join(name for name, kind in SOLVERS.items() if kind.takes_kernels)
    return (
        f"{solver.name} works on the rows themselves and takes no kernel. Use one of {offered}, or a "
        "feature map before a linear problem."
    )
