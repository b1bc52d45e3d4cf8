# SPDX-License-Identifier: BSD-3-Clause
"""Augmented Lagrangian with semismooth Newton inside, for the hinge.

    minimise over v = (w, b)   1/2 v'Rv + sum_i C_i max(0, 1 - m_i),      m_i = y_i <v, z_i>

R and z_i as in second_order/system.py. The kink of each loss is rounded off over a stretch of 1/k around
a place that alpha_i says; when the smooth problem is nearly solved, its multipliers are the next alpha,
and k grows.

    1  repeat
    2      a_i = clip(alpha_i + k C_i (1 - m_i), 0, C_i);      J = the rows with 0 < a_i < C_i
    3      g   = R v - sum_i a_i y_i z_i
    4      if g'R^-1 g / 2 is a small part of the gap between v and a:   alpha = a;  k = 3 k or 10 k
    5      solve (R + k sum_J C_i z_i z_i') p = -g
    6      s   = the best step along p;   v += s p;   m_i += s y_i <p, z_i>

A step costs two passes over the data, most of which are spared rows whose a_i stays, and the factor. The
number of steps hardly depends on C. Three things make them few:

* the start is a few sweeps of dual coordinate ascent, whose alpha knows most of the rows already. Few and
  short rows begin at zero; very many rows of few columns with samples of them, and most are then settled
  in one visit (second_order/near_margin.py);
* after line 4, J is taken over: a_i of its rows is not clipped in the first g, so that the first step aims
  at m_i = 1 for all of them;
* a row that has just left J counts for 0.3 of its curvature once more, since it often comes back.

core/linear/augmented_lagrangian.hpp has the steps; what follows says where they begin, and begin again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.second_order.base import Begun, SecondOrder, multipliers_of, point_of
from maxmargin.solvers.second_order.near_margin import NearMargin, offers_settling
from maxmargin.solvers.second_order.opening import Opening
from maxmargin.solvers.second_order.system import NewtonSystem
from maxmargin.solvers.sizes import FEW_COLUMNS, FEW_VALUES, SHORT_ROW_OF_HINGE
from maxmargin.tools.parameters import Positive, Range

_ENOUGH = 1e-9
"""The relative gap above which a run that can go no further begins again."""
_MOST_RESTARTS = 5
"""Runs that begin again, at most."""
_SOFTEN = 1000.0
"""The k of a run that begins again is so many times smaller than the last one."""
_EPSILON = float(np.finfo(float).eps)
_STIFFEST = 1e7
"""The largest k, in units of the spread of the targets: beyond, margins show nothing but their rounding."""
_SWEEPS = 4
"""Sweeps of dual ascent at the start, unless rows are few and short."""
_USUAL = 1e-4
"""The relative gap that rows near the margin are chosen for, where somebody counts the steps."""
_AFTER_SAMPLE = 10.0
"""The first k after a sample: its margins are nearer to the end than those after a few sweeps."""


@dataclass(kw_only=True)
class State(Begun):
    """The state of the method between two steps."""

    method: core.AugmentedLagrangian
    restarts: int = 0


@dataclass(frozen=True)
class AugmentedLagrangian(SecondOrder[State]):
    """Augmented Lagrangian with semismooth Newton inside; for the hinge."""

    name: ClassVar[str] = "augmented_lagrangian"
    takes_targets: ClassVar[bool] = True
    stiffness: Positive = 3.0
    """The first k."""
    raise_by: Annotated[float, Range("[1, inf)")] | None = None
    """The factor on k in line 4. None: 3; 10 for at most 20 columns, since few rows can then be free, and a
    step finds them from further away."""
    small_part: Positive = 0.2
    """How small |g|^2 / 2 must be beside the gap in line 4."""

    def accepts(self, problem: Problem) -> str | None:
        """The hinge."""
        if problem.loss.name != "hinge":
            return (
                "augmented_lagrangian rounds off the kink of the hinge. Got the loss "
                f"{problem.loss.name!r} instead. Use newton for the smooth losses."
            )
        return None

    def nests_samples(self, problem: Problem) -> bool:
        """Where rows far from the margin can be settled."""
        return offers_settling(problem)

    def after_opening(self, problem: Problem, opening: Opening, budget: Budget) -> Opening | State:
        """First with rows near the margin alone, where there was a sample; stiffer after it."""
        if not opening.sampled and not isinstance(opening, NearMargin):
            return self.begin(problem, opening.solution(budget), budget)
        stiffer = replace(self, stiffness=max(self.stiffness, _AFTER_SAMPLE))
        options, tol = stiffer.options_for(problem), _USUAL if self.until is None else self.until
        near = NearMargin.after(opening, problem, options, tol, budget)
        return near or stiffer.begin(problem, opening.solution(budget), budget)

    def stiffer(self, before: State) -> float:
        """The last k of ``before`` beside the first one of this run."""
        return before.method.stiffness * before.problem.spread / self.stiffness

    def sweeps_of(self, problem: Problem) -> int:
        """Four by default; none for few and short rows, where they cost as much as the steps they spare."""
        if self.sweeps is not None:
            return self.sweeps
        rows = problem.rows
        return 0 if rows.stored <= min(FEW_VALUES, SHORT_ROW_OF_HINGE * rows.count) else _SWEEPS

    def begin(
        self, problem: Problem, start: Solution, budget: Budget, system: NewtonSystem | None = None
    ) -> State:
        """Begin with the alpha of the start, or with the middle of the box where it has none."""
        system = system or NewtonSystem(problem)
        options = self.options_for(problem)
        terms = problem.y, problem.costs, system.regulariser, problem.targets
        method = core.AugmentedLagrangian(options, *terms)
        state = State(problem=problem, system=system, method=method)
        _go_to(state, start, budget)
        return state

    def advance(self, problem: Problem, state: State, budget: Budget) -> State:
        """Lines 2 to 6; or again from the best multipliers, where rounding has ended a run too early."""
        state = super().advance(problem, state, budget)
        if state.finished and state.restarts < _MOST_RESTARTS and _is_wide(problem, state):
            # With a smaller k: too stiff a system leaves only rounding.
            state.restarts += 1
            state.method.options.stiffness = state.method.stiffness / _SOFTEN
            _go_to(state, Solution(alpha=state.method.best_multipliers.copy()), budget)
        return state

    def options_for(self, problem: Problem) -> core.LagrangianOptions:
        """The numbers of lines 2 and 4 for a problem."""
        raise_by = self.raise_by
        if raise_by is None:
            raise_by = 10.0 if problem.rows.columns <= FEW_COLUMNS else 3.0
        return core.LagrangianOptions(
            stiffness=self.stiffness / problem.spread,
            raise_by=raise_by,
            small_part=self.small_part,
            stiffest=_STIFFEST / problem.spread,
        )

    def reached(self, problem: Problem, state: State) -> Solution:
        """The best v and the best multipliers so far: any two points make a proof."""
        method, d = state.method, problem.rows.columns
        w, b = method.best_v[:d].copy(), float(method.best_v[d:].sum())
        return Solution(w=w, b=b, alpha=method.best_multipliers.copy(), any_length=True)


def _go_to(state: State, start: Solution, budget: Budget) -> None:
    problem, system = state.problem, state.system
    alpha, combined = multipliers_of(problem, start), None
    if alpha is not None and start.w_of_alpha is not None:
        balance = [core.dot(alpha, problem.y)] if system.has_intercept else []
        combined = np.append(start.w_of_alpha, balance)
    point = point_of(system, start, alpha, budget)
    state.method.begin(system.for_steps, *point, alpha, combined, budget)


def _is_wide(problem: Problem, state: State) -> bool:
    """Whether the gap is more than margins tell that are off by a rounding."""
    unseen = _EPSILON * problem.total_cost * max(problem.spread, 1.0)
    primal = state.method.best_primal
    return primal - state.method.best_dual > max(_ENOUGH * abs(primal), unseen)
