# SPDX-License-Identifier: BSD-3-Clause
"""Rows that have room in memory: the first pass takes all of them along, and no other one is made.

The problem is that of all rows, so the certificate of its solution in memory is that of the fit.
"""

from __future__ import annotations

import numpy as np

from maxmargin.chunks.method import Proven
from maxmargin.chunks.sums import losses_of
from maxmargin.core import Budget
from maxmargin.problem.rows import Rows
from maxmargin.proof.model import Status
from maxmargin.proof.solution import Solution
from maxmargin.solving.loop import NO_LIMIT, solve
from maxmargin.solving.ways import find_way


class InMemory(Proven):
    """One problem, solved as it is."""

    name = "in memory"
    reason = "all rows have room there and were read once"
    alpha_from = "the multipliers of all rows"

    def look(self, rows: Rows) -> None:
        """P at the point that is given to begin with."""
        assert self.start is not None
        w, b = self.start
        problem = self.stated.on(rows, self.setting.codes, self.setting.sample.weight).problem
        margins = problem.margins_of(rows.scores(w), b)
        self.take_primal((self.start,), np.array([losses_of(problem, w, b, margins)]), 1)

    def solve(self, rows: Rows, budget: Budget) -> Status:
        """Solve the problem of all rows, which the sample has, and say why that ended."""
        problem = self.stated.whole(rows, *self.labels_and_costs())
        start = None if self.start is None else Solution(w=self.start[0], b=self.start[1])
        tol = self.setting.tol
        way = find_way("auto", problem, tol).with_seed(self.setting.seed)
        model = solve(problem, way, tol=tol, max_steps=NO_LIMIT, start=start, budget=budget)
        proof = model.certificate
        if proof.primal < self.primal:
            self.primal, self.point = proof.primal, (np.array(proof.w), float(proof.b))
        self.dual, self.w_of_alpha = proof.dual, np.array(proof.w_of_alpha)
        return model.status
