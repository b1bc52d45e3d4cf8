# SPDX-License-Identifier: BSD-3-Clause
"""The hinge on very many rows of few columns: rows near the margin are solved for, the others are settled.

    1  (w0, b0) is the solution of a sample, (w1, b1) that of a larger one, of which the first is a part
    2  by how much margins of the larger sample's rows have changed from one to the other tells how much
       they may still change, and so the width within which a margin is near 1
    3  one visit of every row: those that are not near are settled, with alpha_i = C_i below 1 and 0 above,
       and summed up; the others are copied
    4  minimise over (w, b)   1/2 |w|^2 + sum_near C_i max(0, 1 - m_i) + sum_settled alpha_i (1 - m_i)

Line 4 is a problem of some hundredths of the rows. Its multipliers and those of the settled rows are
feasible for all rows, and worth as much there. What its primal value lacks is what settled rows lose on the
other side of 1, and line 2 makes that a small part of the wanted gap. Nothing is taken on trust: what comes
of it is a start like any other, and where the proof says that it will not do, lines 3 and 4 go on from
there once more, and then the method on all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.second_order.opening import Opening, larger_sample
from maxmargin.solvers.second_order.system import NewtonSystem
from maxmargin.types import Vector

_VISITS = 3.0
"""Rows of the larger sample: (this times sqrt(d) n)^(2/3) of n rows with d columns. With so many the visits
of all rows are fewest, where a row of the sample is visited five times, and one that it leaves unsure ten
times: that is a share of 3 sqrt(d / m) of all rows, for m rows in the sample."""
_SPREADS = 3.0
"""The share of the larger sample's rows that the first one leaves unsure, in units of sqrt(d / m)."""
_PRECISION = 0.2
"""The relative gap to which the larger sample's problem is solved, in units of d / m: among all rows its
solution has a gap of about d / m."""
_OF_GAP = 0.2
"""The part of the wanted gap that settled rows may lose."""
_OF_SOLUTION = 0.1
"""The part of the wanted gap that the problem of line 4 is solved to."""
_FINEST = 1e-8
"""The smallest gap that is a matter of rows near the margin: a smaller one shows the rounding of sums."""
_OF_GAIN = 0.05
"""The part of what the larger sample has gained over the first one, that its settled rows would lose: with
more of them, lines stand for losses that are curved where the solution is looked for."""
_TO_BE_SURE = 1.3
"""What the width is multiplied by: the larger sample's rows were solved for, and tell a little less than
others of how much margins may change."""
_MOST_SPREADS = 6.0
"""The share of all rows that are near, at most, in the same units as ``_SPREADS``: a few rows that move
farther are taken when they have crossed."""
_WIDER = 2.0
"""The factor on the width where line 4 has no solution."""
_NO_SURPRISE = 3.0
"""What the solution of all rows may lose on the larger sample, relatively and in units of d / m."""
_LEAST_NEAR = 20
"""Rows near the margin for each column, at least."""
_MOST_NEAR = 0.5
"""The share of all rows near the margin from which little is gained."""
_STEPS, _MOST_TIMES = 10, 6
"""Steps on rows near the margin, after which it is looked whether their problem has an end; how often."""
_ROUNDS = 3
"""How often rows are settled: what is left then is a matter of all rows."""


def offers_settling(problem: Problem) -> bool:
    """Whether the core can settle rows of a problem."""
    plain = problem.targets is None and problem.group == 1 and problem.total is None
    return plain and problem.fixed_intercept == 0.0 and problem.rows.is_stored


class Found(NamedTuple):
    """What was found where rows far from the margin are settled."""

    w: Vector
    b: float
    alpha: Vector
    primal: float
    """The primal value, but for what settled rows lose on the other side of 1."""
    gap: float
    """The relative gap, but for the same."""


class NearRows:
    """Lines 3 and 4 at a point."""

    def __init__(self, problem: Problem, w: Vector, b: float, width: float, budget: Budget) -> None:
        self.problem, self.w, self.b = problem, w, b
        rows = problem.rows
        self.alpha, self.sums = np.empty(rows.count), np.empty(rows.columns)
        """The multipliers of settled rows, and of the others what was found last; and the sum of line 4."""
        given = problem.y, problem.costs, np.ascontiguousarray(w), b, width
        self.near, self.costs, self.balance = core.settle_rows(
            rows.compiled, *given, self.alpha, self.sums, budget
        )

    @property
    def share(self) -> float:
        """The share of the rows that are near."""
        return len(self.near) / self.problem.rows.count

    def solve(self, options: core.LagrangianOptions, until: float, budget: Budget) -> Found | None:
        """Line 4, to a relative gap; None where it has no solution."""
        problem, near, d = self.problem, self.near, self.problem.rows.columns
        if not len(near):
            return None
        taken = replace(problem, rows=problem.rows.take(near), y=problem.y[near], costs=problem.costs[near])
        system = NewtonSystem(taken)
        v, settled = self.w, self.sums
        if system.has_intercept:
            v, settled = np.append(v, self.b), np.append(settled, self.balance)
        method = core.AugmentedLagrangian(options, taken.y, taken.costs, system.regulariser)
        method.settle(settled, self.costs)
        try:
            method.begin(system.for_steps, v, taken.margins(self.w, self.b), None, None, budget)
            for _ in range(_MOST_TIMES):
                if method.steps(system.for_steps, _STEPS, until, budget) == 0 or method.best_primal <= 0.0:
                    return None  # lines have no end: too many rows are settled
                if method.finished or method.relative_gap <= until or budget.spent:
                    break
        except FloatingPointError:
            return None
        self.alpha[near] = method.best_multipliers
        best = method.best_v
        at = best[:d].copy(), float(best[d:].sum())
        return Found(*at, self.alpha, method.best_primal, method.relative_gap)

    def take_crossed(self, margins: Vector, budget: Budget) -> None:
        """Have rows near that are settled on the other side of 1 at other margins."""
        loses = self.alpha > 0.0
        crossed = (margins < 1.0) != loses
        crossed[self.near] = False
        own = np.where(crossed & loses, self.problem.costs, 0.0)
        pulls = own * self.problem.y
        self.sums -= self.problem.rows.combine(pulls, budget)
        self.costs -= float(own.sum())
        self.balance -= float(pulls.sum())
        crossed[self.near] = True
        self.near = np.flatnonzero(crossed)


@dataclass
class NearMargin(Opening):
    """The steps on all rows, after the samples: each is line 4, with more rows from step to step."""

    options: core.LagrangianOptions = field(kw_only=True)
    point: Solution = field(kw_only=True)
    """The best point so far, with its multipliers once there are any."""
    width: float = field(kw_only=True)
    tol: float = field(kw_only=True)
    """The wanted gap."""
    larger: Problem = field(kw_only=True)
    """That of the larger sample."""
    usual: float = field(kw_only=True)
    """A primal value of it that is no surprise at the solution of all rows."""
    gap: float = math.inf
    rows: NearRows | None = None

    @classmethod
    def after(
        cls, opening: Opening, problem: Problem, options: core.LagrangianOptions, tol: float, budget: Budget
    ) -> Self | None:
        """The steps after those on a sample; None where rows are too few, or too many of them are near."""
        if opening.order is None or not offers_settling(problem):
            return None
        n, columns = problem.rows.count, problem.rows.columns + 1
        larger = larger_sample(problem, opening, (_VISITS * math.sqrt(columns) * n) ** (2.0 / 3.0))
        if larger is None:
            return None
        w, b = opening.point_alone(budget)
        few, many = len(opening.order), larger.rows.count
        before = larger.margins(w, b)
        unsure = float(np.quantile(np.abs(before - 1.0), min(1.0, _SPREADS * math.sqrt(columns / few))))
        found, after = _of_sample(larger, w, b, unsure, options, _PRECISION * columns / many, budget)
        if found is None:
            return None
        value, best = (larger.plain_value(*at, 0.0) for at in ((w, b, before), (found.w, found.b, after)))
        # The solution of m rows is off by 1 / m, squared and on average, and that of a part by the rest.
        share = (1.0 / many - 1.0 / n) / (1.0 / few - 1.0 / many)
        most = min(_OF_GAP * tol * best / share, _OF_GAIN * max(0.0, value - best))
        moved = width_that_loses(larger, before, after, most)
        shares = min(1.0, _LEAST_NEAR * columns / n), min(1.0, _MOST_SPREADS * math.sqrt(columns / many))
        least, most = np.quantile(np.abs(after - 1.0), shares).tolist()
        return cls(
            problem,
            opening.solver,
            None,
            _ROUNDS,
            options=options,
            point=Solution(w=found.w, b=found.b),
            width=min(max(_TO_BE_SURE * math.sqrt(share) * moved, least), most),
            tol=max(tol, _FINEST),
            larger=larger,
            usual=best * (1.0 + _NO_SURPRISE * columns / many),
        )

    def step(self, budget: Budget) -> bool:
        """Lines 3 and 4; whether there is nothing left for another such step to gain."""
        w, b = self.point.w, self.point.b
        assert w is not None
        self.steps_left -= 1
        if self.rows is None:
            self.rows = NearRows(self.problem, w, b, self.width, budget)
        else:
            self.rows.take_crossed(self.problem.margins(w, b), budget)
        if self.rows.share > _MOST_NEAR or budget.spent:
            return self._gives_up()
        found = self.rows.solve(self.options, _OF_SOLUTION * self.tol, budget)
        if found is None:
            self.width, self.rows = _WIDER * self.width, None
            return self.steps_left < 1 and self._gives_up()
        self.point = Solution(w=found.w, b=found.b, alpha=found.alpha, any_length=True)
        self.gap = found.gap + max(0.0, self.larger.primal(found.w, found.b) / self.usual - 1.0)
        return self.steps_left < 0

    def _gives_up(self) -> bool:
        """Go back to the point of the sample, where nothing better is known; this is the end."""
        if self.rows is not None:
            self.point = Solution(w=self.rows.w, b=self.rows.b)
        return True

    def solution(self, budget: Budget) -> Solution:
        """The point that was found, and its multipliers."""
        return self.point

    @property
    def estimate(self) -> float:
        """The relative gap of the rows near the margin, and what the larger sample sees beyond it."""
        return self.gap


def _of_sample(
    larger: Problem,
    w: Vector,
    b: float,
    width: float,
    options: core.LagrangianOptions,
    precision: float,
    budget: Budget,
) -> tuple[Found | None, Vector]:
    """The solution of the larger sample and its margins: by rows near the margin, or by all of them."""
    margins = np.empty(0)
    for at_most in (width, math.inf):
        rows = NearRows(larger, w, b, at_most, budget)
        for _ in range(_ROUNDS):
            if len(margins):
                rows.take_crossed(margins, budget)
            found = rows.solve(options, precision, budget)
            if found is None or budget.spent:
                break
            margins = larger.margins(found.w, found.b)
            value = larger.plain_value(found.w, found.b, margins, 0.0)
            if value - found.primal <= precision * value:
                return found, margins
        margins = np.empty(0)
    return None, margins


def width_that_loses(problem: Problem, before: Vector, after: Vector, most: float) -> float:
    """The least width of rows that are near at some margins, where the others lose so much at other ones.

    That is by how much losses are more than the lines that they would be.
    """
    distances = np.abs(before - 1.0)
    lost = problem.costs * np.maximum(0.0, np.sign(1.0 - before) * (after - 1.0))
    crossed = np.flatnonzero(lost)
    order = crossed[np.argsort(-distances[crossed])]
    kept = int(np.searchsorted(np.cumsum(lost[order]), most))
    return float(distances[order[kept]]) if kept < len(order) else 0.0
