# SPDX-License-Identifier: BSD-3-Clause
"""The ladder of ways: which solver runs, why, and what goes on where it gains nothing any more.

A cost model makes the automatic choice, counted in visits of a stored value by a sweep of dual coordinate
ascent. The constants that turn other work into such visits were measured once: see docs/how_to_choose.md.
What a second-order method costs can be told beforehand, what the ascent costs cannot: where its first
sweeps are cheap beside the other way, it is tried, and judged by what they gain (solving/hand_over.py).

``Running`` is what a fit says about the ways of all its problems, and ``solve_each`` takes them all.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from maxmargin.core import Budget
from maxmargin.gpu.kernel_rows import CardKernelRows
from maxmargin.problem import Intercept, Penalty, Problem
from maxmargin.problem.class_rows import ClassRows
from maxmargin.problem.ranking import RankingProblem
from maxmargin.proof.model import Model
from maxmargin.solvers import (
    SOLVERS,
    ActiveSet,
    AnySolver,
    AugmentedLagrangian,
    CoordinateDescent,
    InteriorPoint,
    KernelDualAscent,
    Newton,
    Subgradient,
    WorkingSet,
)
from maxmargin.solvers.ascent.warm_up import visits_to_cross, warm_up_stages
from maxmargin.solvers.class_interior_point import ClassInteriorPoint
from maxmargin.solvers.crammer_singer import CrammerSinger
from maxmargin.solvers.gpu_working_sets import GpuWorkingSets
from maxmargin.solvers.interior_point import affordable
from maxmargin.solvers.ranking_newton import RankingNewton
from maxmargin.solvers.sizes import (
    CLASS_SYSTEM,
    FEW_VALUES,
    LARGEST_SIDE,
    LONG_SWEEPS,
    UNBLOCKED_COLUMNS_OF_FEW,
)
from maxmargin.solving import hand_over
from maxmargin.solving.costs import costs_of_ways, sweep_cost
from maxmargin.solving.rotated import Rotated
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import changed

if TYPE_CHECKING:
    from maxmargin.solving.loop import Callback

TRIAL = 8.0
"""Sweeps that tell how the ascent goes: it is tried where they cost less than the other way, and twice as
many where C is so large that it needs a warm-up."""
ROWS_IN_ACTIVE_SET = 2
"""Rows to a column up to which active sets are the last way: of more, most depend on the others."""


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
    refused = refusal(solver, problem)
    if refused is not None:
        raise ValueError(refused)
    second = solver.second if isinstance(solver, hand_over.HandOver) else solver
    then = _rotated if getattr(second, "resort", False) else None
    if isinstance(solver, ClassInteriorPoint) and reason:
        then = _sweeps_over_classes
    return Way(solver, reason or f"{solver.name}: asked for.", then)


def choose_solver(problem: Problem, tol: float = 1e-4) -> tuple[AnySolver, str]:
    """The solver that ``"auto"`` takes for a problem, with the reason."""
    loss = problem.loss.name
    if problem.penalty is Penalty.L1:
        return CoordinateDescent(), (
            "coordinate_descent: with the l1 penalty most columns have no weight, and it visits the others."
        )
    if isinstance(problem.rows, ClassRows):
        return _for_all_classes(problem)
    if isinstance(problem, RankingProblem):
        return RankingNewton(), (
            "ranking_newton: it needs sums over sorted scores alone, and never writes a pair of rows out."
        )
    if problem.rows.has_kernel:
        if problem.intercept is not Intercept.EXACT and problem.total is None:
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
    if _takes_steps_at_once(problem):
        return second, (
            f"{second.name}: for {size} its steps follow one another inside the core, and their number "
            "hardly depends on C."
        )
    costs, sweep = costs_of_ways(problem, tol), sweep_cost(problem, problem.rows.count)
    chosen = hand_over.HandOver(second, tol)
    at_first, cost = second, costs.second
    if costs.active_set < cost:
        at_first, cost = ActiveSet(), costs.active_set
    if cost <= TRIAL * sweep * (2.0 if warm_up_stages(problem) > 0 else 1.0):
        return changed(chosen, at_first=at_first), (
            f"{at_first.name}: for {size} its steps are cheap, and their number hardly depends on C; it is "
            f"expected to cost as much as {cost / sweep:.0f} sweeps of dual_coordinate_ascent, which would "
            "need more."
        )
    return chosen, (
        f"dual_coordinate_ascent: for {size} sweeps are cheap; {second.name} or another takes over if they "
        "get too many."
    )


def _takes_steps_at_once(problem: Problem) -> bool:
    """Whether second-order steps follow one another in the core; each sweep of the ascent is a call."""
    return problem.rows.stored <= FEW_VALUES and problem.rows.columns < UNBLOCKED_COLUMNS_OF_FEW


def _for_all_classes(problem: Problem) -> tuple[AnySolver, str]:
    """The solver for all classes in one problem."""
    long = visits_to_cross(problem) / 2.0  # a row is twice as long, squared, as its example
    if long >= LONG_SWEEPS and problem.rows.columns <= CLASS_SYSTEM:
        return ClassInteriorPoint(), (
            f"class_interior_point: C times the squared length of a row is {long:.0f}, so that sweeps "
            f"would be many, and {problem.rows.columns} weights are few."
        )
    return CrammerSinger(), "crammer_singer: all classes are in one problem."


def refusal(solver: AnySolver, problem: Problem) -> str | None:
    """Why the solver does not take the problem, or None."""
    if isinstance(problem, RankingProblem) and not isinstance(solver, RankingNewton):
        return f"{solver.name} takes rows, and not pairs of them. Use solver='auto' for a ranking."
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
    if problem.penalty is Penalty.L1 and not solver.takes_l1:
        offered = ", ".join(name for name, kind in SOLVERS.items() if kind.takes_l1)
        return f"{solver.name} solves problems with the l2 penalty. Use {offered} for the l1 penalty."
    if problem.total is not None and not solver.takes_totals:
        offered = ", ".join(name for name, kind in SOLVERS.items() if kind.takes_totals)
        rows = "" if problem.rows.has_kernel else ", with KernelRows(X, Linear()) or another kernel as rows"
        return f"{solver.name} seeks no shift of the targets. Use {offered}{rows}."
    if isinstance(problem.rows, ClassRows) and not isinstance(solver, CrammerSinger | ClassInteriorPoint):
        return f"{solver.name} does not take all classes in one problem. Use 'auto', or CrammerSinger()."
    return solver.accepts(problem)


def _rotated(problem: Problem, state: Any) -> Way | None:
    """The way on where rounding ends the second-order methods, if its steps are affordable.

    An ascent that goes on needs it not: its gap may rise for some sweeps.
    """
    if isinstance(state, hand_over.State) and not state.handed_over and not state.inner.finished:
        return None
    inner: AnySolver = Newton() if problem.loss.name == "logistic" else InteriorPoint()
    rotated = Rotated(inner)
    if rotated.accepts(problem) is None:
        return Way(rotated, _resort_to(inner, ", on the rows' singular vectors"), _active_set)
    solver = affordable(problem)
    if solver is None or refusal(solver, problem) is not None:
        return _active_set(problem, state)
    return Way(solver, _resort_to(solver), _active_set)


def _sweeps_over_classes(problem: Problem, state: Any) -> Way | None:
    """The way on where rounding ends interior points of all classes at once."""
    return Way(CrammerSinger(), _resort_to(CrammerSinger()))


def _active_set(problem: Problem, state: Any) -> Way | None:
    """The last way, for few rows: it knows which of them are inside their walls."""
    solver, rows = ActiveSet(), problem.rows
    few = rows.count <= min(LARGEST_SIDE, ROWS_IN_ACTIVE_SET * rows.columns)
    return Way(solver, _resort_to(solver)) if few and refusal(solver, problem) is None else None


def _resort_to(solver: AnySolver, where: str = "") -> str:
    steps = "the {steps} steps of other methods before it gained no more at a relative gap of {gap:.1e}."
    return f"{solver.name}{where}: {steps}"


@dataclass(frozen=True)
class Running:
    """How the problems of a fit are to be solved, whatever they are."""

    solver: str | AnySolver
    tol: float
    max_steps: int
    """Steps of the solver for each problem."""
    seconds: float
    """The time for all problems together."""
    threads: Callable[[], int]
    """How many there may be."""
    random_state: Any
    draw_seed: Callable[[], int]
    """Draws a seed from ``random_state``."""
    callback: Callable[[Any], Callback] | None = None
    """Gives the callback of a problem, whose name it is told; None: nobody watches."""

    @cached_property
    def seed(self) -> int:
        """The seed of problem 0, that of problem k is k more; drawn when it is first needed."""
        return self.draw_seed()

    @property
    def automatic(self) -> bool:
        """Whether nobody has chosen a solver."""
        return isinstance(self.solver, str) and self.solver == "auto"

    @property
    def unseen(self) -> bool:
        """Whether nobody watches the steps or sets a limit on their time."""
        return self.callback is None and math.isinf(self.seconds)

    def told_of(self, name: Any) -> Callback | None:
        """The callback of a problem."""
        return None if self.callback is None else self.callback(name)


def solve_each(
    count: int, solve_one: Callable[[int, Budget], Model], max_time: float, threads: int
) -> list[Model]:
    """``solve_one(k, budget)`` for every class k, side by side where there are threads for it.

    Each class gets an equal share of the time that is left when its turn comes. Ctrl-C stops all of
    them; classes that had not begun answer with what they would have started from. An error ends the
    classes after it, so that it is always the first class with one that is heard of.
    """
    workers = min(threads, count)
    threads_each = max(1, threads // workers)
    deadline = time.monotonic() + max_time
    lock = threading.RLock()  # Ctrl-C may call ``stop`` where this thread holds it already
    running: dict[int, Budget] = {}
    stopped_from = count

    def run(k: int) -> Model:
        left = max(0.0, deadline - time.monotonic())
        rounds = -(-(count - k) // workers)
        budget = Budget(left / rounds, threads_each)
        with lock:
            running[k] = budget
            if k >= stopped_from:
                budget.stop()
        try:
            model = solve_one(k, budget)
        except Exception:
            stop(k + 1)
            raise
        if budget.stopped and k < stopped_from:  # Ctrl-C reached a solve on this very thread
            stop(0)
        return model

    def stop(first: int) -> None:
        nonlocal stopped_from
        with lock:
            stopped_from = min(stopped_from, first)
            for k, budget in running.items():
                if k >= first:
                    budget.stop()

    with held_back(partial(stop, 0)):
        if workers == 1:
            return [run(k) for k in range(count)]
        with one_blas_thread(), ThreadPoolExecutor(workers, "maxmargin") as pool:
            futures = [pool.submit(run, k) for k in range(count)]
            return [future.result() for future in futures]
