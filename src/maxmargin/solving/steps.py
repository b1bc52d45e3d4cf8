# SPDX-License-Identifier: BSD-3-Clause
"""A run seen step by step: every iterate of a solver, for those who want to watch it.

``solve`` proves what it finds and keeps the best point. Here nothing is proven and nothing kept back: a
step that raises the objective is seen, too. What a solver does many times within one of its steps is seen
one by one: the draws of stochastic methods, and the pairs of sequential minimal optimisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np

from maxmargin.core import ALL_CORES
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import AnySolver
from maxmargin.solvers.pegasos import Pegasos
from maxmargin.solvers.perceptron import Perceptron
from maxmargin.solvers.primal.step_sizes import step_sizes
from maxmargin.solvers.sequential_minimal_optimization import SequentialMinimalOptimization
from maxmargin.solvers.stochastic_subgradient import StepRule, StochasticSubgradient, draw_rows, walk
from maxmargin.solvers.subgradient import Subgradient
from maxmargin.solving.loop import solve
from maxmargin.solving.ways import find_way
from maxmargin.types import Indices, Vector

_OPTIMUM = 1e-9
"""The relative gap of the optimum that steps are held against: below what a picture can show."""
_SECONDS = 60.0
"""Seconds to look for it: what is found by then is certified as well as that time allows."""


@dataclass(frozen=True)
class Step:
    """Where a solver is after one step."""

    problem: Problem
    solution: Solution
    rows: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    """The rows that the step was about, a batch or a pair; none where it was about all."""
    dual: float = math.nan
    """The dual value, where the solver knows it without a pass."""

    @cached_property
    def point(self) -> tuple[Vector, float]:
        """The w and b; of a dual method those that follow from alpha, with two passes over the data."""
        if self.solution.w is not None:
            return self.solution.w, self.solution.b
        assert self.solution.alpha is not None
        return self.problem.primal_from_dual(self.solution.alpha)


@dataclass(frozen=True)
class Recording:
    """Steps of one solver on one problem, and the optimum that they can be held against."""

    problem: Problem
    solver: AnySolver
    steps: Sequence[Step]
    best: Certificate
    """The proof of a tight run: the optimum lies between its dual and its primal value."""

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return f"Recording({len(self)} steps of {self.solver.name}, {self.problem.rows.count} rows)"


def record(problem: Problem, solver: str | AnySolver = "auto", steps: int = 100) -> Recording:
    """Take steps of a solver from zero, and keep where each of them led.

    A step is the smallest that the method has: a draw of a stochastic one, a pair of sequential minimal
    optimisation. The recording ends earlier where the solver does, or where steps that are too long have
    left what float64 can hold.

    Parameters
    ----------
    problem : Problem
        What is to be solved. Small ones are pleasant to watch.
    solver : str or Solver
        "auto", a name of ``maxmargin.solvers.SOLVERS``, or a configured solver.
    steps : int
        The number of steps, at most.
    """
    if steps < 1:
        raise ValueError(f"steps must be a number of at least 1. Got {steps!r} instead.")
    chosen = find_way(solver, problem).solver
    taken = []
    for step in islice(steps_of(problem, chosen), steps):
        w, b = step.point
        if not (np.isfinite(w).all() and math.isfinite(b)):
            break
        taken.append(step)
    best = solve(problem, tol=_OPTIMUM, max_time=_SECONDS).certificate
    return Recording(problem, chosen, taken, best)


def steps_of(problem: Problem, solver: AnySolver) -> Iterator[Step]:
    """The steps of a solver from zero, one by one; they end only where a rule of its own says so."""
    refusal = solver.accepts(problem)
    if refusal is not None:
        raise ValueError(refusal)
    ways: dict[type, Callable[[Problem, Any], Iterator[Step]]] = {
        StochasticSubgradient: _draws,
        Pegasos: _draws,
        Subgradient: _full_steps,
        Perceptron: _passes,
        SequentialMinimalOptimization: _pairs,
    }
    return ways.get(type(solver), _proposals)(problem, solver)


def _draws(problem: Problem, solver: Any) -> Iterator[Step]:
    """Steps of a stochastic method, of which the solver itself takes an epoch at a time."""
    state = solver.init(problem, None)
    projects = getattr(solver, "project", False)
    radius = float(np.sqrt(problem.total_cost)) if projects else np.inf
    rule = StepRule(solver.batch, solver.order, solver.average, radius, solver.intercept_step_size)
    sizes_of = (
        solver.step_sizes if isinstance(solver, StochasticSubgradient) else partial(step_sizes, solver)
    )
    while not state.recent.finished:
        sizes = sizes_of(problem, rule.upcoming(problem, state))
        order = draw_rows(problem, state, rule, len(sizes))
        for k in range(len(sizes)):
            batch = order[k * solver.batch : (k + 1) * solver.batch].copy()
            walk(problem, state, rule, batch, sizes[k : k + 1], ALL_CORES)
            w, b = state.iterate.scale * state.v, problem.bias_feature * state.iterate.beta
            yield Step(problem, Solution(w=w, b=b), batch)


def _full_steps(problem: Problem, solver: Subgradient) -> Iterator[Step]:
    state = solver.init(problem, None)
    while not state.finished:
        state = solver.step(problem, state, ALL_CORES)
        yield Step(problem, Solution(w=state.point.w, b=problem.bias_feature * state.point.beta))


def _passes(problem: Problem, solver: Perceptron) -> Iterator[Step]:
    state = solver.init(problem, None)
    while not state.finished:
        state = solver.step(problem, state, ALL_CORES)
        yield Step(problem, Solution(w=state.w.copy(), b=problem.bias_feature * state.beta))


def _pairs(problem: Problem, solver: SequentialMinimalOptimization) -> Iterator[Step]:
    solver = solver.with_options(pairs_per_step=1)
    state, before = solver.init(problem, None), np.zeros(problem.rows.count)
    while not state.finished:
        state = solver.step(problem, state, ALL_CORES)
        alpha = np.asarray(solver.solution(problem, state, ALL_CORES).alpha)
        yield Step(problem, Solution(alpha=alpha), np.flatnonzero(alpha != before), state.dual)
        before = alpha


def _proposals(problem: Problem, solver: AnySolver) -> Iterator[Step]:
    """What a method proposes after every step."""
    state = solver.init(problem, None)
    while not solver.report(state).finished:
        state = solver.step(problem, state, ALL_CORES)
        yield Step(problem, solver.solution(problem, state, ALL_CORES))
