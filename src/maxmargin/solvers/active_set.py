# SPDX-License-Identifier: BSD-3-Clause
"""Active sets on the dual, for wide data on which few multipliers are free.

    minimise over beta   1/2 |sum_i beta_i x_i|^2 + 1/2 sum_i D beta_i^2 - y'beta,      beta_i = alpha_i y_i
    where                0 <= alpha_i <= U;      sum_i beta_i = 0 where the intercept is exact

U and D as in dual_coordinate_ascent.py: U = C, D = 0 for the hinge, U = inf, D = 1/(2C) for its square. At
the end most multipliers rest on a wall, 0 or U, and those inside solve a linear system. What is to be found
is which ones these are.

    1  w = sum_i beta_i x_i;   b = the best intercept for w;   f_i = <w, x_i> + b - y_i + D beta_i
    2  W = the rows inside their walls, and those at a wall that f pushes away from it, the worst ones first
    3  J = W;   t = beta
    4  repeat
    5      solve for t_J, and a change c of b:    f + (K + D + r) (t - beta) + c = 0 on J,     sum_i t_i = 0
    6      rows of J that t leads beyond a wall stay there; rows at a wall that the left side of 5 pushes
           away from it are in J: until none is left, or a few times
    7  beta += s (t - beta) on W, with the best s in [0, 1];      r = r / 100 if it went well but slowly

K = X_W X_W' is made of the rows of W alone. The proximal term r (t - beta)^2 / 2 keeps a first step from
going to walls that lie far beyond the solution, and changes nothing at the end. With a regularised
intercept, sum_i beta_i = b / s^2 takes the place of 0.

Where rows contradict each other, t leads many of them beyond U at once, and only some belong there. Then
the next system is wrong for all rows. It shows by how many of them would change sides, and line 6 takes
back those of U alone.

Line 5 is factored once for the first J (solvers/second_order/bordered.py). Rows that come and go later are
a border of that system, until they are too many or r changes; and so they are in the steps that follow,
since rows of W stay in W while there is room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, end_if_stopped, visits_single_rows
from maxmargin.solvers.second_order.bordered import Bordered, Equations, Mask
from maxmargin.solvers.second_order.system import RowProducts
from maxmargin.solvers.sizes import LARGEST_SIDE
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Range, Seed
from maxmargin.types import Indices, Vector

_MOST_SYSTEMS = 12
"""Systems of one step: most steps need fewer."""
_NEARLY_ALL = 0.01
"""The share of the rows of J that may still change where a step counts as solved."""
_SHARPEN, _SOFTEN = 0.01, 10.0
"""The factors on r after a step that was solved, and after one that was not."""
_FAST = 0.1
"""The share of the gap that a fast step leaves: then r is small enough, and its factor can be kept."""
_LEAST_PROXIMAL = 1e-11
"""The least r, in units of the mean |x_i|^2: less would be lost in the rounding of K."""
_FEWEST_VIOLATORS = 500
"""Rows at a wall that a step may take into W, at least; else half as many as are inside."""
_ROUNDING = 1e-13
"""The share of the dual value that a step may gain and count as nothing."""
_LARGEST_PROXIMAL = 1e6
"""The largest r, in units of the mean |x_i|^2: beyond, steps are too short to be seen."""
_PATIENCE = 8
"""Steps in a row without any gain after which rounding is all that is left."""
_TINY = 1e-12
"""A push that is rounding: f is a difference of numbers around 1."""
_IDLE_ROWS, _MANY_ROWS = 1.25, 500
"""Rows of W beside those that are wanted there, as a factor on these: products with them cost little. Up to
so many rows all may stay."""


@dataclass
class State:
    """The multipliers with what follows from them: line 1."""

    products: RowProducts
    beta: Vector
    low: Vector
    high: Vector
    own: Vector
    """D."""
    proximal: float
    """r, in units of ``scale``."""
    scale: float
    """The mean |x_i|^2."""
    w: Vector
    scores: Vector
    b: float = 0.0
    dual: float = -np.inf
    relative_gap: float = np.inf
    sharpen: bool = False
    """Whether the last step went well."""
    idle: int = 0
    """Steps in a row that gained nothing."""
    finished: bool = False
    system: Bordered | None = None
    """The last factor, with the rows that have come and gone since."""

    @property
    def inside(self) -> Mask:
        """The rows whose multiplier rests on no wall."""
        return (self.beta > self.low) & (self.beta < self.high)


@dataclass(frozen=True)
class ActiveSet(Solver[State]):
    """Active sets on the dual, with w kept; for the hinge and the squared hinge."""

    name: ClassVar[str] = "active_set"
    size: Annotated[int, Range("[2, inf)")] = LARGEST_SIDE
    """Rows of W, at most. Where more are free, sets of so many take turns, and convergence is slow."""
    proximal: Annotated[float, Range("(0, 1e6]")] = 1e-4
    """The first r, in units of the mean |x_i|^2."""
    seed: Seed = 0
    """Nothing here is random."""

    def accepts(self, problem: Problem) -> str | None:
        """The losses whose dual is a quadratic program, on rows that can be visited one by one."""
        if problem.loss.name not in ("hinge", "squared_hinge"):
            return (
                f"active_set solves the hinge and the squared hinge, not {problem.loss.name}; use newton "
                "for the logistic loss, subgradient for the perceptron."
            )
        return visits_single_rows(self.name, problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin with alpha = 0, or with the start's alpha."""
        y, upper = problem.y, problem.upper
        own = np.zeros(problem.rows.count)
        if problem.loss.name == "squared_hinge":
            np.divide(0.5, problem.costs, out=own, where=problem.costs > 0.0)
        state = State(
            products=RowProducts(problem.rows),
            beta=np.zeros(problem.rows.count),
            low=np.where(y > 0.0, 0.0, -upper),
            high=np.where(y > 0.0, upper, 0.0),
            own=own,
            proximal=self.proximal,
            scale=float(problem.rows.squared_norms.mean()) or 1.0,
            w=np.zeros(problem.rows.columns),
            scores=np.zeros(problem.rows.count),
        )
        if start is not None and start.alpha is not None:
            alpha = np.clip(np.nan_to_num(start.alpha), 0.0, upper)
            if problem.intercept is Intercept.EXACT:
                problem.objective.make_feasible(alpha)
            state.beta = alpha * y
        _look(problem, state, core.ALL_CORES)
        return state

    def resume(self, problem: Problem, start: Solution | None, before: State) -> State:
        """Begin with the products of rows that are known already."""
        state = self.init(problem, start)
        state.products = before.products
        return state

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One working set."""
        f = state.scores + state.b - problem.y + state.own * state.beta
        wanted = self._choose(problem, state, f)  # 2
        if not len(wanted):
            state.finished = True
            return state
        most = min(self.size, max(int(_IDLE_ROWS * len(wanted)), _MANY_ROWS))
        if state.products.keep(wanted, most, budget):
            state.system = None
        end_if_stopped(budget)
        with one_blas_thread():
            self._solve(problem, state, f, budget)
        before, gap = state.dual, state.relative_gap
        _look(problem, state, budget)
        if state.sharpen and not state.relative_gap <= _FAST * gap:
            state.proximal = max(_SHARPEN * state.proximal, _LEAST_PROXIMAL)
        gained = state.dual - before > _ROUNDING * abs(state.dual)
        state.idle = 0 if gained else state.idle + 1
        state.finished = state.idle >= _PATIENCE
        return state

    def _solve(self, problem: Problem, state: State, f: Vector, budget: Budget) -> None:
        """Lines 3 to 7 on the rows whose products are kept."""
        which, exact = state.products.kept, problem.intercept is Intercept.EXACT
        missing = -float(state.beta.sum()) if exact else 0.0
        small = _OnSet(problem, state, which, f[which], missing)
        solved = small.solve(state, budget)  # 3 to 6
        beta, target = small.beta, small.target
        possible = not exact or _balance(target, small.low, small.high, missing + float(beta.sum()))
        change = target - beta
        length = small.best_step(change) if possible else 0.0
        state.beta[which] = np.clip(beta + length * change, small.low, small.high)  # 7
        state.sharpen = solved and length > 0.5
        if not solved or length == 0.0:
            state.proximal = min(_SOFTEN * state.proximal, _LARGEST_PROXIMAL)

    def _choose(self, problem: Problem, state: State, f: Vector) -> Indices:
        """The rows inside, and the worst of those at a wall that f pushes away from it."""
        inside, may_grow, may_fall = state.inside, state.beta < state.high, state.beta > state.low
        rows = np.flatnonzero(inside)
        up, down = (np.flatnonzero(~inside & push) for push in (may_grow & (f < 0.0), may_fall & (f > 0.0)))
        with np.errstate(over="ignore"):  # a row of no length to speak of comes first
            worst = f * f / np.maximum(problem.rows.squared_norms + state.own, 1e-300)
        if len(rows) > self.size:
            rows = _largest(worst, rows, self.size // 2)
        room = min(max(_FEWEST_VIOLATORS, len(rows) // 2), self.size - len(rows))
        half = max(room // 2, room - min(len(up), len(down)))
        if problem.intercept is Intercept.EXACT and not len(rows) and len(up) + len(down):
            # Where one multiplier grows, another has to fall: if nothing pushes it, the next best will do.
            if not len(down):
                down = _largest(f, np.flatnonzero(may_fall), half)
            elif not len(up):
                up = _largest(-f, np.flatnonzero(may_grow), half)
        violators = np.concatenate([_largest(worst, up, half), _largest(worst, down, half)])
        return np.union1d(rows, violators)

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """Alpha, with the w that it makes."""
        return Solution(b=state.b, alpha=state.beta * problem.y, w_of_alpha=state.w)

    def report(self, state: State) -> Report:
        """The gap itself; it is finished when no set of rows gains anything beyond rounding."""
        return Report(state.relative_gap, state.finished, near=lambda: True)


def _look(problem: Problem, state: State, budget: Budget) -> None:
    """Line 1, and the values of both sides: a pass over the support vectors, and one over all rows."""
    alpha = state.beta * problem.y
    state.w = problem.rows.combine(state.beta, budget)
    state.scores = problem.rows.scores(state.w, budget)
    state.b = 0.0
    if problem.intercept is Intercept.REGULARISED:
        state.b = problem.intercept_scaling**2 * float(state.beta.sum())
    elif problem.intercept is Intercept.EXACT:
        state.b = problem.best_intercept(state.scores)
    state.dual = problem.dual_of(alpha, state.w)
    primal = problem.primal_of(state.w, state.b, problem.y * (state.scores + state.b))
    state.relative_gap = core.relative_gap(primal, state.dual)


def _largest(values: Vector, rows: Indices, count: int) -> Indices:
    """Those of the rows with the largest values, at most so many."""
    if len(rows) <= count:
        return rows
    return rows[np.argpartition(-values[rows], count - 1)[:count]] if count > 0 else rows[:0]


def _balance(beta: Vector, low: Vector, high: Vector, total: float) -> bool:
    """Make the sum of beta what it should be by shrinking some, those inside their walls first.

    Whether that was possible.
    """
    inside = (beta > low) & (beta < high)
    for gives in (inside, np.ones(len(beta), bool)):
        missing = total - float(beta.sum())
        gives &= beta * missing < 0.0
        offered = abs(float(beta.sum(where=gives)))
        if offered > 0.0:
            beta[gives] *= 1.0 - min(1.0, abs(missing) / offered)
        if offered >= abs(missing):
            return True
    return False


class _OnSet:
    """The problem on the rows of W."""

    def __init__(self, problem: Problem, state: State, which: Indices, f: Vector, missing: float) -> None:
        self.f, self.own = f, state.own[which]
        self.beta, self.low, self.high = state.beta[which], state.low[which], state.high[which]
        self.give = None if problem.intercept is Intercept.NONE else 0.0
        """What a unit of b takes from the sum of beta; None: there is no b."""
        if problem.intercept is Intercept.REGULARISED:
            self.give = problem.intercept_scaling**-2
        self.matrix = state.products.products
        diagonal = self.own + state.proximal * state.scale
        self.equations = Equations(self.matrix, diagonal, -f, missing, self.give)
        self.target = self.beta
        self.tiny = _TINY / state.scale
        """What beta changes by where f is rounding."""

    def solve(self, state: State, budget: Budget) -> bool:
        """Lines 3 to 6; whether hardly a row would still change."""
        f, beta, low, high = self.f, self.beta, self.low, self.high
        J = ((beta > low) & (beta < high)) | ((f < 0.0) & (beta < high)) | ((f > 0.0) & (beta > low))
        system, before = state.system, len(J)
        if system is not None and system.r != state.proximal:
            system = None
        for _ in range(_MOST_SYSTEMS):
            if system is None or not system.reaches(J):
                state.system = system = Bordered(self.equations, J, state.proximal, budget)
            change, shift = system.solve(self.equations, J, self.target - beta, budget)
            pushed = f + self.matrix @ change + self.equations.diagonal * change + shift
            target = beta + change
            beyond = J & ((target < low - self.tiny) | (target > high + self.tiny))
            away = ((pushed < -_TINY) & (self.target < high)) | ((pushed > _TINY) & (self.target > low))
            away &= ~J
            from_upper = away & (self.target != 0.0)
            self.target = np.where(J, np.clip(target, low, high), self.target)
            changes = int(np.count_nonzero(beyond) + np.count_nonzero(away))
            few = changes <= _NEARLY_ALL * np.count_nonzero(J)
            if changes == 0 or (few and changes >= before) or budget.spent:
                break
            misled = changes > before and from_upper.any()
            J = J | from_upper if misled else (J & ~beyond) | away
            before = changes
        return bool(few)

    def best_step(self, change: Vector) -> float:
        """The best length in [0, 1] along a change of beta."""
        slope = -core.dot(self.f, change)
        curvature = core.dot(change, self.matrix @ change) + core.dot(change, self.own * change)
        if self.give:
            curvature += float(change.sum()) ** 2 / self.give
        if slope <= 0.0:
            return 0.0
        return 1.0 if slope >= curvature else slope / curvature
