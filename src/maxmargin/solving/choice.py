# SPDX-License-Identifier: BSD-3-Clause
"""The automatic choice: a solver, and the sentence that says why.

A cost model decides, counted in visits of a stored value by a sweep of dual coordinate ascent. The three
constants that turn other work into such visits were measured once: see docs/how_to_choose.md. What a
second-order method costs can be told beforehand, what the ascent costs cannot: where its first sweeps are
cheap beside the other way, it is tried, and judged by what they gain (solving/hand_over.py).
"""

from __future__ import annotations

import math

from maxmargin.kernels.kernel_rows import KernelRows
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
from maxmargin.solvers.ascent.warm_up import warm_up_stages
from maxmargin.solvers.second_order.opening import sample_size
from maxmargin.solvers.second_order.system import (
    FEW_VALUES,
    LARGEST_SIDE,
    SMALLEST_BLOCKED,
    SMALLEST_BLOCKED_OF_FEW,
    is_compiled,
    nearly_full,
)
from maxmargin.solving.hand_over import CALL, HandOver, sweep_cost

PASS = 0.7
"""A value in a pass, in visits of a sweep: rows come in order, and nothing is written."""
FLOP = 0.06
"""A multiply-add of a dense factorisation, in visits of a sweep."""
MANY_ROWS = 10.0
"""To a column: data are then seldom separable, and ``newton`` needs few steps from any start."""
_COMPILED, _COMPILED_OF_HINGE = 0.8, 0.5
"""Of what steps on rows that are nearly full would take in NumPy and BLAS: the core takes them whole."""
TRIAL = 8.0
"""The ascent is tried where so many sweeps, which tell how it goes, cost less than the other way; twice as
many where C is so large that it needs a warm-up."""


def takes_steps_at_once(problem: Problem) -> bool:
    """Whether second-order steps follow one another in the core; each sweep of the ascent is a call."""
    return problem.rows.stored <= FEW_VALUES and problem.rows.columns < SMALLEST_BLOCKED_OF_FEW


def second_order_cost(problem: Problem, tol: float) -> tuple[float, float]:
    """What ``augmented_lagrangian`` (hinge) or ``newton`` (the smooth losses) is expected to take.

    The fewer rows there are to a column, the longer it takes to find the rows that are free. The second
    number is what the Hessian of the squared hinge takes of it, where many rows decide on each column: it
    counts all rows, and only those with a loss will be in it.
    """
    rows = problem.rows
    n, d, stored = rows.count, rows.columns, max(rows.stored, rows.count)
    width = stored / max(n, 1)
    digits = -math.log10(min(max(tol, 1e-12), 0.1))
    full = nearly_full(rows)
    outer_product = 0.5 * (FLOP * d * d if full else width * width)
    scarcity = math.sqrt(min(1.0, d / max(n, 1)))
    if problem.loss.name == "hinge":
        steps = (4.0 + 2.0 * digits) * (1.0 + 8.0 * scarcity)
        # Of many short rows few end up on the margin, of few long ones most: nearly as many as columns.
        free, changes = max(0.1 * n, 0.7 * min(n, d)), 0.02 * n * steps
    else:
        steps = (2.0 + 0.5 * digits) * (1.0 + 2.0 * scarcity)
        free, changes = 0.6 * n, n * (1.0 if problem.loss.name == "squared_hinge" else steps)
    if sample_size(problem) > 0:
        steps *= 0.5
    if min(free, float(d)) > LARGEST_SIDE:
        return math.inf, 0.0  # no factor: conjugate gradients may need any number of passes
    matrix = free * free * width if free < d else changes * outer_product
    factor = FLOP * min(free, float(d)) ** 3 / 6.0
    call = 0.0 if takes_steps_at_once(problem) else CALL
    by_rows = matrix if problem.loss.name == "squared_hinge" and n >= MANY_ROWS * d else 0.0
    part = 1.0
    if d > SMALLEST_BLOCKED and full and is_compiled(problem):
        part = _COMPILED_OF_HINGE if problem.loss.name == "hinge" else _COMPILED
    return part * (steps * (2.0 * PASS * stored + factor + call) + matrix), part * by_rows


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
    cost, by_rows = second_order_cost(problem, tol)
    sweep = sweep_cost(problem, problem.rows.count)
    size = f"{problem.rows.count} rows of {problem.rows.columns} columns"
    trial = TRIAL * sweep * (2.0 if warm_up_stages(problem) > 0 else 1.0)
    if takes_steps_at_once(problem):
        return second, (
            f"{second.name}: for {size} its steps follow one another inside the core, and their number "
            "hardly depends on C."
        )
    if cost <= trial:
        return second, (
            f"{second.name}: for {size} its steps are cheap, and their number hardly depends on C; it is "
            f"expected to cost as much as {cost / sweep:.0f} sweeps of dual_coordinate_ascent, which would "
            "need more."
        )
    return HandOver(second, cost, tol, by_rows), (
        f"dual_coordinate_ascent: for {size} sweeps are cheap; {second.name} takes over if they get too "
        "many."
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
