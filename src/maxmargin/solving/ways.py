# SPDX-License-Identifier: BSD-3-Clause
"""The ladder of ways: which solver runs, why, and what goes on where it gains nothing any more.

A cost model makes the automatic choice, counted in visits of a stored value by a sweep of dual coordinate
ascent. The constants that turn other work into such visits were measured once: see docs/how_to_choose.md.
What a second-order method costs can be told beforehand, what the ascent costs cannot: where its first
sweeps are cheap beside the other way, it is tried, and judged by what they gain (solving/hand_over.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from maxmargin.gpu.kernel_rows import CardKernelRows
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers import (
    SOLVERS,
    ActiveSet,
    AnySolver,
    AugmentedLagrangian,
    InteriorPoint,
    KernelDualAscent,
    Newton,
    Subgradient,
    WorkingSet,
)
from maxmargin.solvers.ascent.warm_up import warm_up_stages
from maxmargin.solvers.gpu_working_sets import GpuWorkingSets
from maxmargin.solvers.interior_point import affordable
from maxmargin.solvers.second_order.opening import sample_size
from maxmargin.solvers.second_order.system import is_compiled, nearly_full
from maxmargin.solvers.sizes import FEW_VALUES, LARGEST_SIDE, UNBLOCKED_COLUMNS, UNBLOCKED_COLUMNS_OF_FEW
from maxmargin.solving import hand_over
from maxmargin.solving.rotated import Rotated
from maxmargin.tools.changed import changed

TRIAL = 8.0
"""Sweeps that tell how the ascent goes: it is tried where they cost less than the other way, and twice as
many where C is so large that it needs a warm-up."""
MANY_ROWS = 10.0
"""Rows to a column: data are then seldom separable, and ``newton`` needs few steps from any start."""

ROWS_IN_ACTIVE_SET = 2
"""Rows to a column up to which active sets are the last way: of more, most depend on the others."""


class _Steps(NamedTuple):
    """Second-order steps: (base + per_digit digits of tol) (1 + scarcity sqrt(columns / rows)).

    The fewer rows there are to a column, the longer it takes to find the rows that are free.
    """

    base: float
    per_digit: float
    scarcity: float


_STEPS = {"hinge": _Steps(4.0, 2.0, 8.0)}
_STEPS_OF_SMOOTH = _Steps(2.0, 0.5, 2.0)
_STEPS_AFTER_SAMPLE = 0.5
"""The share of these steps that is left where the solution of a sample of the rows is the start."""
_DIGITS = 1.0, 12.0
"""Digits of tol, at least and at most."""
_FREE_OF_HINGE = 0.1, 0.7
"""Rows on the margin, as a share of all rows, and at least of the smaller side: of many short rows few end
up there, of few long ones nearly as many as there are columns."""
_FREE_OF_SMOOTH = 0.6
"""Rows with a loss, as a share of all rows."""
_CHANGES_OF_HINGE = 0.02
"""Rows that come to the margin or leave it in a step, as a share of all rows."""
_COMPILED, _COMPILED_OF_HINGE = 0.8, 0.5
"""The share that is left of all this on rows that are nearly full, whose steps the core takes whole."""


@dataclass(frozen=True)
class Way:
    """A solver, and the sentence that says why it was taken."""

    solver: AnySolver
    reason: str
    then: Callable[[Problem, Any], Way | None] | None = None
    """Asked with the problem and the solver's state where that gains nothing any more, or has ended by a
    rule of its own: the way that goes on from zero, or None. Its reason may speak of the {steps} taken so
    far and the {gap} that they left."""

    def with_seed(self, seed: int) -> Way:
        """The way with another seed of its solver."""
        return changed(self, solver=self.solver.with_seed(seed))


def find_way(solver: str | AnySolver | Way, problem: Problem, tol: float = 1e-4) -> Way:
    """The way that a name, ``"auto"`` or a configured solver stands for; one that is found stays.

    Raises ValueError where the name is unknown or the solver does not take the problem.
    """
    if isinstance(solver, Way):
        return solver
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
    second = solver.second if isinstance(solver, hand_over.HandOver) else solver
    then = _rotated if getattr(second, "resort", False) and problem.targets is None else None
    return Way(solver, reason or f"{solver.name}: asked for.", then)


def choose_solver(problem: Problem, tol: float = 1e-4) -> tuple[AnySolver, str]:
    """The solver that ``"auto"`` takes for a problem, with the reason."""
    loss = problem.loss.name
    if problem.rows.has_kernel:
        if problem.intercept is not Intercept.EXACT:
            return KernelDualAscent(), (
                "kernel_dual_ascent: without an exact intercept one multiplier can move alone."
            )
        if isinstance(problem.rows, CardKernelRows):
            card = problem.rows.on_card.card.name
            return GpuWorkingSets(), f"gpu_working_sets: the rows lie on a GPU ({card})."
        return WorkingSet(), (
            "working_set: of the kernel matrix it computes rows only for multipliers that change."
        )
    if loss == "perceptron":
        return Subgradient(), (
            "subgradient: the perceptron loss is for study, w = 0 minimises it, and this solver starts "
            "there."
        )
    if loss == "logistic":
        return Newton(resort=True), (
            "newton: the logistic loss is smooth, and a few steps are enough whatever C is."
        )
    second: AnySolver = AugmentedLagrangian(resort=True) if loss == "hinge" else Newton(resort=True)
    if not problem.rows.offers_single_rows:
        return second, f"{second.name}: these rows only offer whole passes, and it needs no more."
    size = f"{problem.rows.count} rows of {problem.rows.columns} columns"
    if takes_steps_at_once(problem):
        return second, (
            f"{second.name}: for {size} its steps follow one another inside the core, and their number "
            "hardly depends on C."
        )
    cost, by_rows = second_order_cost(problem, tol)
    sweep = hand_over.sweep_cost(problem, problem.rows.count)
    if cost <= TRIAL * sweep * (2.0 if warm_up_stages(problem) > 0 else 1.0):
        return second, (
            f"{second.name}: for {size} its steps are cheap, and their number hardly depends on C; it is "
            f"expected to cost as much as {cost / sweep:.0f} sweeps of dual_coordinate_ascent, which would "
            "need more."
        )
    return hand_over.HandOver(second, cost, tol, by_rows), (
        f"dual_coordinate_ascent: for {size} sweeps are cheap; {second.name} takes over if they get too "
        "many."
    )


def takes_steps_at_once(problem: Problem) -> bool:
    """Whether second-order steps follow one another in the core; each sweep of the ascent is a call."""
    return problem.rows.stored <= FEW_VALUES and problem.rows.columns < UNBLOCKED_COLUMNS_OF_FEW


def second_order_cost(problem: Problem, tol: float) -> tuple[float, float]:
    """Visits that ``augmented_lagrangian`` (hinge) or ``newton`` (the smooth losses) is expected to cost.

    The second number is what the Hessian of the squared hinge takes of it, where many rows decide on each
    column: it counts all rows, and only those with a loss will be in it.
    """
    rows, loss = problem.rows, problem.loss.name
    n, d, stored = rows.count, rows.columns, max(rows.stored, rows.count)
    width = stored / max(n, 1)
    digits = min(max(-math.log10(max(tol, 1e-300)), _DIGITS[0]), _DIGITS[1])
    base, per_digit, scarcity = _STEPS.get(loss, _STEPS_OF_SMOOTH)
    steps = (base + per_digit * digits) * (1.0 + scarcity * math.sqrt(min(1.0, d / max(n, 1))))
    if loss == "hinge":
        free = max(_FREE_OF_HINGE[0] * n, _FREE_OF_HINGE[1] * min(n, d))
        changes = _CHANGES_OF_HINGE * n * steps
    else:
        free, changes = _FREE_OF_SMOOTH * n, n * (1.0 if loss == "squared_hinge" else steps)
    if sample_size(problem) > 0:
        steps *= _STEPS_AFTER_SAMPLE
    side = min(free, float(d))
    if side > LARGEST_SIDE:
        return math.inf, 0.0  # no factor: conjugate gradients may need any number of passes
    full = nearly_full(rows)
    outer_product = 0.5 * (hand_over.FLOP * d * d if full else width * width)
    matrix = free * free * width if free < d else changes * outer_product
    factor = hand_over.FLOP * side**3 / 6.0
    call = 0.0 if takes_steps_at_once(problem) else hand_over.CALL
    by_rows = matrix if loss == "squared_hinge" and n >= MANY_ROWS * d else 0.0
    part = 1.0
    if d > UNBLOCKED_COLUMNS and full and is_compiled(problem):
        part = _COMPILED_OF_HINGE if loss == "hinge" else _COMPILED
    return part * (steps * (2.0 * hand_over.PASS * stored + factor + call) + matrix), part * by_rows


def _refusal(solver: AnySolver, problem: Problem) -> str | None:
    """Why the solver does not take the problem, or None."""
    if problem.rows.has_kernel and not solver.takes_kernels:
        offered = ", ".join(name for name, kind in SOLVERS.items() if kind.takes_kernels)
        return (
            f"{solver.name} works on the rows themselves and takes no kernel. Use one of {offered}, or a "
            "feature map before a linear problem."
        )
    if problem.fixed_intercept != 0.0 and not solver.takes_fixed_intercept:
        return (
            f"{solver.name} takes no intercept that is fixed at {problem.fixed_intercept:g}. Use "
            "kernel_dual_ascent with KernelRows(X, Linear()) or another kernel as rows, or "
            "fixed_intercept=0."
        )
    if problem.targets is not None and not solver.takes_targets:
        offered = ", ".join(name for name, kind in SOLVERS.items() if kind.takes_targets)
        return f"{solver.name} solves classification, where every target is 1. Use one of {offered}."
    return solver.accepts(problem)


def _rotated(problem: Problem, state: Any) -> Way | None:
    """The way on where rounding ends the second-order methods, if its steps are affordable.

    An ascent that goes on needs it not: its gap may rise for some sweeps.
    """
    if isinstance(state, hand_over.State) and not state.handed_over and not state.inner.finished:
        return None
    inner: AnySolver = InteriorPoint()
    if problem.loss.name == "logistic" or problem.targets is not None:
        inner = AugmentedLagrangian() if problem.loss.name == "hinge" else Newton()
    rotated = Rotated(inner)
    if rotated.accepts(problem) is None:
        return Way(rotated, _resort_to(inner, ", on the rows' singular vectors"), _active_set)
    solver = affordable(problem)
    if solver is None or _refusal(solver, problem) is not None:
        return _active_set(problem, state)
    return Way(solver, _resort_to(solver), _active_set)


def _active_set(problem: Problem, state: Any) -> Way | None:
    """The last way, for few rows: it knows which of them are inside their walls."""
    solver, rows = ActiveSet(), problem.rows
    few = rows.count <= min(LARGEST_SIDE, ROWS_IN_ACTIVE_SET * rows.columns)
    return Way(solver, _resort_to(solver)) if few and _refusal(solver, problem) is None else None


def _resort_to(solver: AnySolver, where: str = "") -> str:
    steps = "the {steps} steps of other methods before it gained no more at a relative gap of {gap:.1e}."
    return f"{solver.name}{where}: {steps}"
