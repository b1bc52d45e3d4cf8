# SPDX-License-Identifier: BSD-3-Clause
"""Newton's method for the smooth losses: semismooth for the squared hinge, plain for the logistic loss.

    minimise over v = (w, b)   1/2 v'Rv + sum_i C_i loss(m_i),      m_i = y_i <v, z_i>

    1  repeat
    2      a_i = -C_i loss'(m_i);      h_i = C_i loss''(m_i)
    3      g   = R v - sum_i a_i y_i z_i
    4      solve (R + sum_i h_i z_i z_i') p = -g
    5      s   = the best step along p;   v += s p;   m_i += s y_i <p, z_i>

R and z_i as in second_order/system.py. The squared hinge has a second derivative everywhere but at m = 1:
h_i is 2 C_i below and 0 above. Along a line the objective is a parabola from kink to kink. A few steps
are enough: the last ones square the error. With a as multipliers the gap is |g|^2 / 2.
The step itself is in core/linear/newton.hpp. Of very many rows, lines 1 to 5 are for a sample first; where
rows are long, line 4 has the Hessian of a larger sample, scaled up, as long as that gains enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.second_order.base import Begun, SecondOrder, multipliers_of, point_of
from maxmargin.solvers.second_order.opening import Opening, larger_sample
from maxmargin.solvers.second_order.system import GivenSystem, NewtonSystem
from maxmargin.solvers.sizes import LARGEST_SIDE, SHORT_ROW

_LONG_ROW = 24
"""Stored values in a row on average, from which a Hessian of all rows is worth to be spared: with 20
columns it takes as long as the two steps more that one of a sample needs, with 50 twice as long."""
_ROWS_PER_COLUMN = 2000.0
"""Rows of a sample for each column from which its Hessian will do for all rows: the steps are then off by
two hundredths, and leave a thousandth of the gap."""
_MANY_ROWS = 4
"""How many times more rows there are than in that sample, at least."""
_ENOUGH_OF_SAMPLE, _MOST_STEPS_ON_SAMPLE = 0.1, 10
"""The relative gap on that sample, in units of d / m, which m rows of d columns tell of all; and the steps
to it, at most."""
_SLOW = 0.03
"""The part of the gap that a step with such a Hessian may leave, for the next one to have it, too."""


@dataclass(kw_only=True)
class State(Begun):
    """The state of the method between two steps."""

    method: core.NewtonMethod


@dataclass(frozen=True)
class Newton(SecondOrder[State]):
    """Newton's method with an exact line search; for the squared hinge and the logistic loss."""

    name: ClassVar[str] = "newton"
    takes_targets: ClassVar[bool] = True

    def accepts(self, problem: Problem) -> str | None:
        """The smooth losses."""
        if not problem.loss.smooth:
            return (
                f"newton needs a loss with a slope everywhere. Got the loss {problem.loss.name!r} instead, "
                "which has a kink. Use augmented_lagrangian for the hinge."
            )
        return None

    def sweeps_of(self, problem: Problem) -> int:
        """One by default where rows are long: it tells which rows count before a Hessian is made of all."""
        if self.sweeps is None:
            return int(problem.rows.stored > SHORT_ROW * problem.rows.count)
        return self.sweeps

    def nests_samples(self, problem: Problem) -> bool:
        """Where a Hessian of all rows would take longer than the steps that it spares."""
        rows = problem.rows
        many = rows.count >= _MANY_ROWS * _ROWS_PER_COLUMN * (rows.columns + 1)
        return (
            many
            and rows.is_stored
            and _LONG_ROW * rows.count <= rows.stored
            and rows.columns <= LARGEST_SIDE
        )

    def after_opening(self, problem: Problem, opening: Opening, budget: Budget) -> Opening | State:
        """The first steps have the Hessian of a larger sample, where there was one."""
        start = opening.solution(budget)
        if not opening.sampled or not self.nests_samples(problem):
            return self.begin(problem, start, budget)
        columns = problem.rows.columns + 1
        larger = larger_sample(problem, opening, _ROWS_PER_COLUMN * columns)
        if larger is None:
            return self.begin(problem, start, budget)
        state = self.begin(larger, start, budget)
        state.system = GivenSystem(larger, _lower_matrix(state, budget))
        enough = _ENOUGH_OF_SAMPLE * columns / larger.rows.count
        for _ in range(_MOST_STEPS_ON_SAMPLE):
            if state.relative_gap <= enough or state.finished or budget.spent:
                break
            state = self.advance(larger, state, budget)
        reached = replace(self.reached(larger, state), alpha=None)
        return self.begin(problem, reached, budget, GivenSystem(problem, _lower_matrix(state, budget)))

    def advance(self, problem: Problem, state: State, budget: Budget) -> State:
        """One step, or several; the Hessian is that of all rows once one of a sample gains too little."""
        before = state.relative_gap
        state = super().advance(problem, state, budget)
        if isinstance(state.system, GivenSystem) and state.relative_gap > _SLOW * before:
            state.system = NewtonSystem(problem)
        return state

    def begin(
        self, problem: Problem, start: Solution, budget: Budget, system: NewtonSystem | None = None
    ) -> State:
        """Begin at the w of the start."""
        system = system or NewtonSystem(problem)
        point = point_of(system, start, multipliers_of(problem, start), budget)
        terms = problem.y, problem.costs, system.regulariser, problem.targets
        method = core.NewtonMethod(problem.loss.name, *terms)
        method.begin(system.for_steps, *point, budget)
        return State(problem=problem, system=system, method=method)

    def reached(self, problem: Problem, state: State) -> Solution:
        """The point w alone: the certificate makes the same multipliers from its margins."""
        d, v = problem.rows.columns, state.method.v
        return Solution(w=v[:d].copy(), b=float(v[d:].sum()))


def _lower_matrix(state: State, budget: Budget) -> Matrix:
    """``sum_i h_i z_i z_i'`` at the point of a state, the lower triangle."""
    rows, d, curvatures = state.problem.rows, state.problem.rows.columns, np.array(state.method.curvatures)
    if not state.system.has_intercept:
        return rows.gram(curvatures, budget)
    matrix = np.empty((d + 1, d + 1))
    matrix[:d, :d], matrix[d, :d], matrix[d, d] = rows.bordered_gram(curvatures, budget)
    return matrix
