# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate descent on working sets of columns, for the l1 penalty and smooth losses.

    minimise over (w, b)   |w|_1 + sum_i C_i loss(m_i),      m_i = y_i (<w, x_i> + b)

    1  repeat
    2      a_i = -C_i loss'(m_i);      v_j = sum_i a_i y_i x_ij for all columns j
    3      W = the columns with w_j != 0, and of those with |v_j| > 1 the ones that pull hardest
    4      repeat
    5          h_i = C_i loss''(m_i)
    6          z = descend(w, -v, h): the model  -<v, z - w> + 1/2 sum_i h_i <z - w, x_i>^2 + |z|_1  on W
    7          s = 1, halved until the objective falls;   w += s (z - w);   b = the best for w
    8          a and v_j for j in W as in line 2
    9      until W is solved ten times better than all columns were

    descend:
    1  repeat
    2      for each j in W
    3          z_j = the minimiser of the model in this coordinate: a quadratic with a kink at 0
    4          the slopes of all others follow
    5      where products are written down, now and then: jump to the best point with the same signs

At the optimum |v_j| <= 1 for all columns, and v_j is the sign of w_j where that is not 0: a column whose
pull is below 1 stays out. Most are never looked at but in line 2. The best of a free b is a function of
the columns, so that it follows each of them within the model. Where W is small its products
sum_i h_i x_ij x_ik are written down, and a visit costs one number; else sweeps go over the columns.
Divided by the largest |v_j|, a is a feasible dual point: the certificate needs nothing else.
Sweeps are in core/linear/coordinate_descent.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Penalty, Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, end_if_stopped
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Count, Seed
from maxmargin.types import Indices, Vector

_LEAST_SHARE = 1e-8
"""The least curvature of a row, as a share of its multiplier: a loss that is all slope has none of its own.
One that is nearly 0 has as much as it has slope, however little that is."""
_ALL_PRODUCTS = 1000
"""Columns in a working set up to which their products are written down: 8 megabytes."""
_PAIRS_PER_VALUE = 40.0
"""Products of two values of a row, per value, above which sweeps over sparse columns are cheaper."""
_JUMPS = 20
"""Rounds of sweeps over written products, with a jump between two of them."""
_RIDGE = 1e-12
"""What is added to the diagonal of a jump's system, as a share of it: columns may depend on each other."""
_ROUNDING = 1e-14
"""The share of the objective that rounding may hide. It falls as the square of how far columns are from
optimal, and the gap as that itself: steps go on where only the second can be seen."""
_GAIN = 0.5
"""Such a step has to leave no more than this of the gap, or of what is off."""


@dataclass(kw_only=True)
class State:
    """A point with its margins, and how all columns pull at it."""

    columns: core.Data
    lengths: Vector
    """The length of each column; 1 for those that are empty."""
    w: Vector
    b: float
    margins: Vector
    pulls: Vector
    """v_j of all columns."""
    primal: float
    gap: float
    """The relative gap, but for rounding."""
    finished: bool = False
    """Whether a step found nothing to gain."""


@dataclass(frozen=True)
class CoordinateDescent(Solver[State]):
    """Newton steps on working sets of columns, each by sweeps of coordinate descent; for the l1 penalty."""

    name: ClassVar[str] = "coordinate_descent"
    takes_l1: ClassVar[bool] = True
    least_columns: Count = 100
    """The size of the first working set, if so many columns pull; later ones have twice as many columns as
    w has entries that are not 0, or more."""
    newton_steps: Count = 10
    """The most steps on one working set."""
    sweeps: Count = 30
    """The most sweeps for one Newton step over the columns themselves, or on products before a jump."""
    seed: Seed = 0
    """Without effect: columns are visited in their order."""

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
        columns, lengths = rows.by_columns, np.empty(rows.columns)
        core.squared_norms(columns, lengths, core.ALL_CORES)
        lengths = np.sqrt(lengths, out=lengths)
        lengths[lengths == 0.0] = 1.0
        w = np.zeros(rows.columns) if start is None or start.w is None else np.array(start.w, np.float64)
        margins = rows.scores(w)
        b = problem.objective.take_best_intercept(margins)[0]
        state = State(
            columns=columns, lengths=lengths, w=w, b=b, margins=margins, pulls=lengths, primal=0.0, gap=1.0
        )
        _look(problem, state, core.ALL_CORES)
        return state

    @one_blas_thread()
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One working set: lines 2 to 9."""
        which = self._working_set(state)  # 3
        if not len(which):
            state.finished = True
            return state
        working = _Working(problem, state, which, self.sweeps, budget)
        before = state.primal, state.gap
        enough = 0.1 * working.violation
        for _ in range(self.newton_steps):  # 4
            end_if_stopped(budget)
            if not working.newton_step() or working.violation <= enough or budget.spent:  # 5 to 9
                break
        working.write_back()
        _look(problem, state, budget)  # 2
        state.finished = not _fell(before, (state.primal, state.gap))
        return state

    def _working_set(self, state: State) -> Indices:
        """The columns that are to be solved for next, in their order."""
        inside = state.w != 0.0
        beyond = np.abs(state.pulls) - 1.0
        outside = np.flatnonzero(~inside & (beyond > 0.0))
        many = max(self.least_columns, 2 * int(np.count_nonzero(inside)))
        if len(outside) > many:
            force = beyond[outside] / state.lengths[outside]
            outside = outside[np.argpartition(force, len(force) - many)[-many:]]
        inside[outside] = True
        return np.flatnonzero(inside)

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The point alone: the certificate makes the same multipliers from its margins."""
        return Solution(w=state.w.copy(), b=state.b)

    def report(self, state: State) -> Report:
        """The gap itself, but for rounding."""
        return Report(state.gap, state.finished)


def _look(problem: Problem, state: State, budget: Budget) -> None:
    """Line 2, and the gap at the point."""
    alpha = problem.multipliers(state.margins)
    state.pulls = _products(state.columns, alpha * problem.y, budget)
    state.primal = problem.regulariser(state.w, state.b) + problem.loss_sum(state.margins)
    factor = problem.best_multiple(alpha, state.pulls)
    size = factor * problem.plain_dual_size(state.pulls)
    dual = problem.objective.dual(factor * alpha, size, 0.0)
    state.gap = core.relative_gap(state.primal, dual)


def _products(columns: core.Data, values: Vector, budget: Budget) -> Vector:
    """The products of all columns with a vector."""
    out = np.empty(columns.count)
    core.scores(columns, values, out, budget)
    return out


class _Working:
    """A working set: its columns, and the point on them."""

    def __init__(self, problem: Problem, state: State, which: Indices, sweeps: int, budget: Budget) -> None:
        self.problem, self.state, self.which, self.budget = problem, state, which, budget
        self.sweeps = sweeps
        whole = len(which) == state.columns.count
        self.columns = state.columns if whole else state.columns.take(which)
        self.w, self.pulls = state.w[which], state.pulls[which]
        self.b, self.margins = state.b, state.margins.copy()
        self.multipliers = problem.multipliers(self.margins)
        self.value = state.primal - float(np.abs(state.w).sum()) + float(np.abs(self.w).sum())
        self.rows: core.Data | None = None
        """The rows of these columns, where products are written down."""
        count, stored = problem.rows.count, self.columns.stored
        dense = stored == count * len(which)
        if len(which) <= _ALL_PRODUCTS and (dense or stored <= _PAIRS_PER_VALUE * count):
            self.rows = problem.rows.stored_data if whole else self.columns.transposed(budget)

    @property
    def violation(self) -> float:
        """How far the columns are from optimal."""
        return self.problem.distance_from_optimal(self.w, self.pulls)

    def newton_step(self) -> bool:
        """Whether the objective fell: lines 5 to 8."""
        problem = self.problem
        curvatures = _curvatures(problem, self.multipliers)  # 5
        z, c = self._descended(curvatures)  # 6
        step, shift = z - self.w, c - self.b
        if not np.isfinite(step).all() or not (step.any() or shift):
            return False
        change = np.zeros(problem.rows.count)
        moved = np.flatnonzero(step)
        core.add_rows(self.columns, moved, step[moved], change)
        change = problem.y * (change + shift)
        threshold = _threshold(problem)
        held = float(np.abs(self.w).sum()) + threshold * abs(self.b)
        slope = float(np.abs(z).sum()) + threshold * abs(c) - held - core.dot(self.multipliers, change)
        if not slope < 0.0:
            return False
        factor = 1.0
        while True:  # 7
            w, b = self.w + factor * step, self.b + factor * shift
            if factor == 1.0:
                w = z
            margins = self.margins + factor * change
            value = float(np.abs(w).sum()) + threshold * abs(b) + problem.loss_sum(margins)
            if value <= self.value + 0.01 * factor * slope + _ROUNDING * self.value:
                break
            factor *= 0.5
            if factor < 1e-10:
                return False
        scores = problem.scores_of(margins, b)
        self.b = problem.objective.take_best_intercept(scores)[0]
        before = self.value, self.violation
        self.w, self.margins = w, scores
        self.value = float(np.abs(w).sum()) + threshold * abs(self.b) + problem.loss_sum(self.margins)
        self.multipliers = problem.multipliers(self.margins)  # 8
        self.pulls = _products(self.columns, self.multipliers * problem.y, self.budget)
        return _fell(before, (self.value, self.violation))

    def _descended(self, curvatures: Vector) -> tuple[Vector, float]:
        off = self.violation
        if self.rows is not None:  # where sweeps are cheap: then steps square what is off
            return self._on_products(self.rows, curvatures, min(0.1, off) * off)
        return self._on_columns(curvatures, 0.1 * off)

    def _on_products(self, rows: core.Data, curvatures: Vector, enough: float) -> tuple[Vector, float]:
        problem, size = self.problem, len(self.w)
        has_intercept = problem.intercept is not Intercept.NONE
        lower = np.zeros((size + has_intercept, size + has_intercept))
        core.add_outer_products(rows, curvatures, lower, self.budget)
        products = lower + np.tril(lower, -1).T
        gradient, z, thresholds = -self.pulls, self.w.copy(), np.ones(size)
        slope = -core.dot(self.multipliers, problem.y)
        mixed, curvature = products[-1, :-1].copy(), float(products[-1, -1])
        if problem.intercept is Intercept.REGULARISED:
            gradient, z = np.append(gradient, slope), np.append(z, self.b)
            thresholds = np.append(thresholds, _threshold(problem))
        elif has_intercept:
            products = products[:-1, :-1]
            if curvature > 0.0:
                products = products - np.outer(mixed, mixed / curvature)
                gradient = gradient - mixed * (slope / curvature)
                diagonal = np.diag_indices_from(products)
                products[diagonal] = np.maximum(products[diagonal], 1e-12 * lower[:-1, :-1][diagonal])
        products = np.ascontiguousarray(products)
        order = np.arange(len(z))
        for _ in range(_JUMPS):
            _, off = core.descend_on_products(
                products,
                gradient,
                z,
                thresholds,
                order,
                sweeps=self.sweeps,
                enough=enough,
                budget=self.budget,
            )
            if off <= enough or self.budget.spent or not _jump(products, gradient, z, thresholds):
                break
        if problem.intercept is Intercept.REGULARISED:
            return z[:-1], float(z[-1])
        if has_intercept and curvature > 0.0:
            return z, self.b - (slope + core.dot(mixed, z - self.w)) / curvature
        return z, self.b

    def _on_columns(self, curvatures: Vector, enough: float) -> tuple[Vector, float]:
        problem, size = self.problem, len(self.w)
        roots = np.sqrt(curvatures)
        scaled = self.columns.take_scaled(np.arange(size), roots)
        z, squares, residuals = self.w.copy(), np.empty(size), np.zeros(problem.rows.count)
        core.squared_norms(scaled, squares, self.budget)
        mixed, curvature, slope = np.zeros(size), 0.0, 0.0
        if problem.intercept is not Intercept.NONE:
            mixed = _products(scaled, roots, self.budget)
            curvature, slope = float(curvatures.sum()), -core.dot(self.multipliers, problem.y)
        _, _, shift = core.descend_on_columns(
            scaled,
            -self.pulls,
            squares,
            mixed,
            z,
            residuals,
            np.arange(size),
            b=self.b,
            slope=slope,
            curvature=curvature,
            threshold=_threshold(problem),
            sweeps=self.sweeps,
            enough=enough,
            budget=self.budget,
        )
        return z, self.b + shift

    def write_back(self) -> None:
        """Make the point that of the state."""
        state = self.state
        state.w[self.which], state.b, state.margins = self.w, self.b, self.margins


def _jump(products: Matrix, gradient: Vector, z: Vector, thresholds: Vector) -> bool:
    """Move those that are not 0 to the best point with their signs; what would change its sign becomes 0.

    Columns that nearly depend on each other would take sweeps without end. Where the model does not fall by
    that, they move only until the first of them is 0. Whether there was a move.
    """
    some = np.flatnonzero(z)
    if not len(some):
        return False
    before, change = z[some], np.zeros_like(z)
    slope = gradient[some] + thresholds[some] * np.sign(before)
    step = _solved(products[np.ix_(some, some)], -slope)
    if not (np.isfinite(step).all() and core.dot(step, slope) < 0.0):
        return False
    crosses = (before + step) * before <= 0.0
    moved = np.where(crosses, 0.0, before + step)
    change[some] = moved - before
    turned = products @ change
    if not core.dot(slope + 0.5 * turned[some], change[some]) < 0.0:
        shares = np.divide(-before, step, out=np.full(len(some), np.inf), where=crosses)
        first = int(np.argmin(shares))
        moved = before + min(1.0, shares[first]) * step
        moved[first] = 0.0 if crosses[first] else moved[first]
        change[some] = moved - before
        turned = products @ change
    gradient += turned
    z[some] = moved
    return True


def _solved(matrix: Matrix, right: Vector) -> Vector:
    """The solution of a symmetric system, which a little on its diagonal makes definite beyond rounding."""
    diagonal = np.diag_indices_from(matrix)
    matrix[diagonal] += _RIDGE * (matrix[diagonal] + matrix[diagonal].max())
    try:
        factor = cho_factor(matrix, check_finite=False)
    except LinAlgError:
        return np.full_like(right, np.nan)
    return np.asarray(cho_solve(factor, right, check_finite=False), np.float64)


def _fell(before: tuple[float, float], after: tuple[float, float]) -> bool:
    """Whether the objective fell, or where rounding hides that, what is left of the gap."""
    return after[0] < before[0] * (1.0 - _ROUNDING) or after[1] < _GAIN * before[1]


def _threshold(problem: Problem) -> float:
    """What a unit of b costs."""
    return 1.0 / problem.intercept_scaling if problem.intercept is Intercept.REGULARISED else 0.0


def _curvatures(problem: Problem, multipliers: Vector) -> Vector:
    """``C_i loss''(m_i)``, from ``-C_i loss'(m_i)``: line 5."""
    if problem.loss.name == "squared_hinge":
        return np.where(multipliers > 0.0, 2.0 * problem.costs, 0.0)
    shares = np.divide(
        multipliers, problem.costs, out=np.zeros_like(multipliers), where=problem.costs > 0.0
    )
    return multipliers * np.maximum(1.0 - shares, _LEAST_SHARE)
