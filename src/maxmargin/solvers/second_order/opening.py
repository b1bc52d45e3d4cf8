# SPDX-License-Identifier: BSD-3-Clause
"""How a second-order solver begins: after a few sweeps of dual ascent, or at the solution of a sample.

A sample is for very many rows of few columns:

    minimise   1/2 |w|^2 + (sum C / sum_S C) sum_{i in S} C_i loss(m_i)        S: rows drawn at random

With many more rows than columns in S, its minimiser is within about a hundredth of the whole problem's
best value, and finding it costs less than one pass over the data. A larger sample, which has the first one
as a part, may come after it. Nothing is taken on trust: it is a start like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import AnySolver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent
from maxmargin.solvers.sizes import ROWS_PER_COLUMN, SAMPLE_AT_LEAST, SAMPLE_AT_MOST, SAMPLED_ROWS
from maxmargin.types import Indices, Vector

_ENOUGH = 1e-2
"""The relative gap on the sample; its rows tell no more about the others."""
_ENOUGH_OF_NESTED = 0.3 / ROWS_PER_COLUMN
"""The same before a larger sample, in which the solution of m rows has a gap of about d / m."""
_MOST_STEPS = 50
"""Steps on the sample at most."""
_TIMES = 4
"""A larger sample has so many times the rows of the first one, at least."""
_LARGEST_SHARE = 1 / 3
"""The share of all rows that it has, at most."""


def sample_size(problem: Problem) -> int:
    """How many rows tell enough about the others; 0 where the rows are too few to spare any."""
    n = problem.rows.count
    size = max(ROWS_PER_COLUMN * (problem.rows.columns + 1), n // SAMPLE_AT_LEAST)
    return size if problem.rows.offers_samples and n >= SAMPLED_ROWS and size * SAMPLE_AT_MOST <= n else 0


def sample_of(problem: Problem, order: Indices) -> Problem | None:
    """The problem of some rows, which stand for all of them; None where these have no costs."""
    costs = problem.costs[order]
    total = float(costs.sum())
    if total == 0.0:
        return None
    costs *= problem.total_cost / total
    targets = None if problem.targets is None else problem.targets[order]
    rows = problem.rows.take(order)
    return replace(problem, rows=rows, y=problem.y[order], costs=costs, targets=targets, targets_rest=None)


def larger_sample(problem: Problem, opening: Opening, size: float) -> Problem | None:
    """The problem of the sample and more rows, about so many in all; None where all rows are too few."""
    assert opening.order is not None
    n, first = problem.rows.count, len(opening.order)
    more = int(min(max(size, _TIMES * first), _LARGEST_SHARE * n)) - first
    if more <= first:
        return None
    drawn = np.random.default_rng([opening.solver.seed, 1]).integers(0, n, more)
    return sample_of(problem, np.sort(np.concatenate([opening.order, drawn])))


@dataclass
class Opening:
    """Steps of another solver, or of the same one on a sample, before the first of its own."""

    problem: Problem
    solver: AnySolver
    state: object
    steps_left: int
    enough: float = 0.0
    """The relative gap that ends it early."""
    order: Indices | None = None
    """The rows of the sample, if there is one."""

    @classmethod
    def of(
        cls, problem: Problem, sampler: AnySolver | None, nested: bool, sweeps: int, seed: int
    ) -> Opening | None:
        """An opening by a sample for ``sampler`` where that pays, else by so many sweeps; or None.

        ``nested`` tells that a larger sample comes after it.
        """
        opening = None if sampler is None else cls.by_sample(problem, sampler, nested)
        if opening is None and sweeps > 0:
            return cls.by_sweeps(problem, sweeps, seed)
        return opening

    @classmethod
    def by_sweeps(cls, problem: Problem, sweeps: int, seed: int) -> Opening | None:
        """An opening by sweeps of dual coordinate ascent; None where that does not take the problem."""
        solver = DualCoordinateAscent(seed=seed)
        if solver.accepts(problem) is not None:
            return None
        return cls(problem, solver, solver.init(problem, None), sweeps)

    @classmethod
    def by_sample(cls, problem: Problem, solver: AnySolver, nested: bool = False) -> Opening | None:
        """An opening by the solver itself on a sample; None where a sample would not pay."""
        size, enough = sample_size(problem), _ENOUGH
        if size == 0:
            return None
        if nested:
            size, enough = ROWS_PER_COLUMN * (problem.rows.columns + 1), _ENOUGH_OF_NESTED
        order = np.sort(np.random.default_rng(solver.seed).integers(0, problem.rows.count, size))
        small = sample_of(problem, order)
        if small is None:
            return None
        return cls(small, solver, solver.init(small, None), _MOST_STEPS, enough, order)

    @property
    def sampled(self) -> bool:
        """Whether the steps are those on a sample."""
        return self.order is not None

    def step(self, budget: Budget) -> bool:
        """One step; whether it was the last."""
        self.state = self.solver.step(self.problem, self.state, budget)
        self.steps_left -= 1
        report = self.solver.report(self.state)
        return self.steps_left <= 0 or report.finished or report.gap <= self.enough

    def solution(self, budget: Budget) -> Solution:
        """The point at which the whole problem begins."""
        solution = self.solver.solution(self.problem, self.state, budget)
        if not self.sampled:
            return solution
        w, b = self.point_alone(budget)
        return Solution(w=w, b=b)

    def point_alone(self, budget: Budget) -> tuple[Vector, float]:
        """The same without multipliers: those of a sample are of no use to the whole."""
        solution = self.solver.solution(self.problem, self.state, budget)
        w, b = solution.w, solution.b
        if w is None:
            assert solution.alpha is not None
            w = self.problem.rows.combine(solution.alpha * self.problem.y, budget)
        return w, b

    @property
    def estimate(self) -> float:
        """An estimate of the whole problem's relative gap, of which a sample tells nothing."""
        return math.inf if self.sampled else self.solver.report(self.state).gap
