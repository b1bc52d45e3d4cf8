# SPDX-License-Identifier: BSD-3-Clause
"""How a second-order solver begins: after a few sweeps of dual ascent, or at the solution of a sample.

A sample is for very many rows of few columns:

    minimise   1/2 |w|^2 + (sum C / sum_S C) sum_{i in S} C_i loss(m_i)        S: rows drawn at random

With many more rows than columns in S, its minimiser is within about a hundredth of the whole problem's
best value, and finding it costs less than one pass over the data. Nothing is taken on trust: it is a start
like any other.
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

_ENOUGH = 1e-2
"""The relative gap on the sample; its rows tell no more about the others."""
_MOST_STEPS = 50
"""Steps on the sample at most."""


def sample_size(problem: Problem) -> int:
    """How many rows tell enough about the others; 0 where the rows are too few to spare any."""
    n = problem.rows.count
    size = max(ROWS_PER_COLUMN * (problem.rows.columns + 1), n // SAMPLE_AT_LEAST)
    return size if problem.rows.offers_samples and n >= SAMPLED_ROWS and size * SAMPLE_AT_MOST <= n else 0


@dataclass
class Opening:
    """Steps of another solver, or of the same one on a sample, before the first of its own."""

    problem: Problem
    solver: AnySolver
    state: object
    steps_left: int
    enough: float = 0.0
    """The relative gap that ends it early."""
    sampled: bool = False

    @classmethod
    def of(cls, problem: Problem, sampler: AnySolver | None, sweeps: int, seed: int) -> Opening | None:
        """An opening by a sample for ``sampler`` where that pays, else by so many sweeps; or None."""
        opening = None if sampler is None else cls.by_sample(problem, sampler)
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
    def by_sample(cls, problem: Problem, solver: AnySolver) -> Opening | None:
        """An opening by the solver itself on a sample; None where a sample would not pay."""
        size = sample_size(problem)
        if size == 0:
            return None
        order = np.sort(np.random.default_rng(solver.seed).integers(0, problem.rows.count, size))
        costs = problem.costs[order]
        total = float(costs.sum())
        if total == 0.0:
            return None
        costs *= problem.total_cost / total
        targets = None if problem.targets is None else problem.targets[order]
        rows = problem.rows.take(order)
        small = replace(
            problem, rows=rows, y=problem.y[order], costs=costs, targets=targets, targets_rest=None
        )
        return cls(small, solver, solver.init(small, None), _MOST_STEPS, _ENOUGH, sampled=True)

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
        w = solution.w
        if w is None:
            assert solution.alpha is not None
            w = self.problem.rows.combine(solution.alpha * self.problem.y, budget)
        return Solution(w=w, b=solution.b)

    @property
    def estimate(self) -> float:
        """An estimate of the whole problem's relative gap, of which a sample tells nothing."""
        return math.inf if self.sampled else self.solver.report(self.state).gap
