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
The step itself is in core/linear/newton.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.second_order.base import Begun, SecondOrder, multipliers_of, point_of
from maxmargin.solvers.second_order.system import NewtonSystem
from maxmargin.solvers.sizes import SHORT_ROW


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
