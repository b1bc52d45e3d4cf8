# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate descent on working sets of columns, for the l1 penalty and smooth losses.

    minimise over (w, b)   |w|_1 + sum_i C_i loss(m_i),      m_i = y_i (<w, x_i> + b)

    1  repeat
    2      a_i = -C_i loss'(m_i);      v_j = sum_i a_i y_i x_ij for all columns j
    3      W = the columns with w_j != 0, and of those with |v_j| > 1 the ones that pull hardest
    4      repeat
    5          a_i as in line 2;      h_i = C_i loss''(m_i), lifted far from the optimum;   v_j for j in W
    6          z, c = descend(w, b, -v, h): the model  -<v, z - w> + 1/2 sum_i h_i s_i^2 + |z|_1  on W,
               where the score of row i changes by  s_i = <z - w, x_i> + c - b
    7          t = 1, halved until the objective falls;   (w, b) += t (z - w, c - b)
    8      until W is large, or a model gains a tenth of what the first one did
    9      near the optimum: propose  a_i - h_i y_i s_i  of the last model, inside its box, if t = 1

    descend:
    1  repeat
    2      for each j in W, and then again for those that were off most
    3          z_j = the minimiser of the model in this coordinate: a quadratic with a kink at 0
    4          the slopes of all others follow
    5      now and then: jump to the best point in the direction that is best for the signs of z

At the optimum |v_j| <= 1 for all columns, and v_j is the sign of w_j where that is not 0: a column whose
pull is below 1 stays out. Most are never looked at but in line 2. The best of a free b is a function of
the columns, so that it follows each of them within the model. Of dense columns, where W is small, the
products sum_i h_i x_ij x_ik are written down, and a visit costs one number. Else sweeps go over columns,
until one of them gains a tenth of what all have gained: the next model gains more for its price. Where
such loose models do not bring the gap down, or steps are cut, models are solved with care from then on:
until columns are ten times nearer to optimal, and line 8 goes on until those of W are, too.
Very many rows of few columns begin at the solution of a sample of them (second_order/opening.py).
Divided by the largest |v_j|, a is a feasible dual point. The model's own multipliers, line 9, are feasible
on W as soon as the model is solved, and near the optimum they are off by the square of the step only: so
their gap falls with the objective, and not as slowly as the pulls do. The parts lie in columns/: the point
and its proof in point.py, lines 4 to 7 in working_set.py, the model and its descent in models.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Penalty, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, end_if_stopped
from maxmargin.solvers.columns.models import SOLVED
from maxmargin.solvers.columns.point import State, at, is_dense, look, pulls_of, take_dual
from maxmargin.solvers.columns.working_set import ROUNDING, WorkingSet
from maxmargin.solvers.second_order.opening import Opening, sample_size
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Count, Seed
from maxmargin.types import Indices

_FEW_COLUMNS = 200
"""Columns up to which all of them are in every working set, and the rows are read as they are: fewer than
twice the first working set."""
_RARE_PER_COLUMN = 10
"""Rows of the rarer class that a sample has for each column, at least: of fewer its solution fits these."""
_PROMISING = 1e-2
"""A model that gains no more than this share of the objective may have multipliers that prove something."""
_GROWTH, _GROWTH_OF_PRODUCTS = 4, 2
"""How many columns may come into a working set for each that has a weight: fewer where their products are
written down, whose price is the square of their number."""
_LEFT = 0.1
"""What the last model of a small working set gains, as a share of what the first one did."""
_UNSOLVED = 4
"""How many steps without a gain a working set counts for on which all models gain much the same: each of
them was solved too loosely for the next one to be nearly right."""
_GAIN = 0.5
"""What a step leaves of the gap, at most, where rounding hides whether the objective fell."""


@dataclass(frozen=True)
class CoordinateDescent(Solver[State]):
    """Newton steps on working sets of columns, each by sweeps of coordinate descent; for the l1 penalty."""

    name: ClassVar[str] = "coordinate_descent"
    takes_l1: ClassVar[bool] = True
    least_columns: Count = 100
    """The size of the first working set, if so many columns pull; later ones have up to five times as many
    columns as w has entries that are not 0."""
    newton_steps: Count = 10
    """The most steps on one working set; a large one gets one step that is not cut."""
    sweeps: Count = 30
    """The most sweeps before a jump."""
    seed: Seed = 0
    """The seed of a sample of very many rows; columns are visited in their order."""

    def accepts(self, problem: Problem) -> str | None:
        """The l1 penalty, on rows that are stored."""
        if problem.penalty is not Penalty.L1:
            return (
                "coordinate_descent solves problems with the l1 penalty. Use dual_coordinate_ascent or "
                "newton for the l2 penalty."
            )
        if not problem.rows.offers_single_columns:
            return (
                "coordinate_descent visits single columns, and these rows do not have them in memory. Use "
                "maxmargin.Rows(X), and write monomials out with expand()."
            )
        return None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin at zero, or at a given w."""
        rows = problem.rows
        columns, lengths = None, np.ones(rows.columns)
        if rows.columns > _FEW_COLUMNS:
            columns = rows.by_columns
            core.squared_norms(columns, lengths, core.ALL_CORES)
            lengths = np.sqrt(lengths, out=lengths)
            lengths[lengths == 0.0] = 1.0
        w = np.zeros(rows.columns) if start is None or start.w is None else np.array(start.w, np.float64)
        b, margins, primal = at(problem, w)
        state = State(
            columns=columns,
            lengths=lengths,
            w=w,
            b=b,
            margins=margins,
            multipliers=margins,
            pulls=lengths,
            is_seen=False,
            primal=primal,
            gap=1.0,
        )
        if columns is None and not w.any() and _has_many_of_both(problem):
            state.opening = Opening.by_sample(problem, self)
            if state.opening is not None:
                return state
        look(problem, state, core.ALL_CORES)
        take_dual(problem, state, state.multipliers.copy(), state.pulls)
        return state

    @one_blas_thread()
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One working set: lines 2 to 9."""
        if state.opening is not None:
            self._open(problem, state, state.opening, budget)
        if not state.is_seen:
            look(problem, state, budget)  # 2
        which = self._working_set(state)  # 3
        before, first = (state.primal, state.gap), np.inf
        if not len(which):  # and w is 0: nothing pulls
            take_dual(problem, state, state.multipliers.copy(), state.pulls)
            state.finished = True
            return state
        working = WorkingSet(problem, state, which, self.sweeps, budget)
        enough = SOLVED * working.violation
        for done in range(self.newton_steps):  # 4
            end_if_stopped(budget)
            if not working.newton_step():
                break
            if done == 0:
                first = state.promise
                state.lifted &= working.tangent is None or first > _PROMISING
            loosely = working.tangent is not None and (
                not working.is_small or state.promise <= _LEFT * first
            )
            if working.whole or budget.spent or (loosely and not state.careful):  # 8
                break
            working.look()
            if state.careful and working.violation <= enough:
                break
        else:
            state.waited += _UNSOLVED
        if state.careful or state.promise <= _PROMISING or state.primal == before[0]:
            if working.tangent is None:
                look(problem, state, budget)
                take_dual(problem, state, state.multipliers.copy(), state.pulls)
            else:  # 9
                alpha = working.tangent
                problem.objective.make_feasible(alpha)
                take_dual(problem, state, alpha, pulls_of(problem, state.columns, alpha, budget))
        state.judge()
        fell = _fell(before, (state.primal, state.gap))
        state.finished = state.careful and not fell
        state.careful |= not fell
        return state

    def _open(self, problem: Problem, state: State, opening: Opening, budget: Budget) -> None:
        """Go to the solution of the sample, where the whole problem gains from it."""
        while not (opening.step(budget) or budget.spent):
            sampled = opening.state
            if isinstance(sampled, State) and sampled.promise <= _PROMISING:
                break
        state.opening, w = None, opening.solution(budget).w
        assert w is not None
        b, margins, primal = at(problem, w)
        if primal < state.primal:
            state.w, state.b, state.margins, state.primal = w, b, margins, primal

    def _working_set(self, state: State) -> Indices:
        """The columns that are to be solved for next, in their order."""
        if len(state.w) <= _FEW_COLUMNS:
            return np.arange(len(state.w))
        inside = state.w != 0.0
        beyond = np.abs(state.pulls) - 1.0
        outside = np.flatnonzero(~inside & (beyond > 0.0))
        growth = _GROWTH_OF_PRODUCTS if state.careful or is_dense(state) else _GROWTH
        many = max(self.least_columns, growth * int(np.count_nonzero(inside)))
        if len(outside) > many:
            force = beyond[outside] / state.lengths[outside]
            outside = outside[np.argpartition(force, len(force) - many)[-many:]]
        inside[outside] = True
        return np.flatnonzero(inside)

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The point, with the best multipliers so far."""
        return Solution(w=state.w.copy(), b=state.b, alpha=state.alpha, alpha_from="a model of the losses")

    def report(self, state: State) -> Report:
        """The gap itself, but for rounding."""
        return Report(state.gap, state.finished)


def _has_many_of_both(problem: Problem) -> bool:
    """Whether a sample has rows enough of the rarer class to tell where its rows lie."""
    share = float(np.mean(problem.y > 0.0))
    return min(share, 1.0 - share) * sample_size(problem) >= _RARE_PER_COLUMN * (problem.rows.columns + 1)


def _fell(before: tuple[float, float], after: tuple[float, float]) -> bool:
    """Whether the objective fell, or where rounding hides that, what is left of the gap."""
    return after[0] < before[0] * (1.0 - ROUNDING) or after[1] < _GAIN * before[1]
