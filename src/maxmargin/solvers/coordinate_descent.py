# SPDX-License-Identifier: BSD-3-Clause
"""Coordinate descent on working sets of columns, for the l1 penalty and smooth losses.

    minimise over (w, b)   |w|_1 + sum_i C_i loss(m_i),      m_i = y_i (<w, x_i> + b)

    1  repeat
    2      v_j = sum_i a_i y_i x_ij for all columns j, with the multipliers of line 9, else a_i of line 5
    3      W = the columns with w_j != 0, and of those with |v_j| > 1 the ones that pull hardest
    4      repeat
    5          a_i = -C_i loss'(m_i);      h_i = C_i loss''(m_i);      v_j as in line 2 for j in W
    6          z, c = descend(w, b, -v, h): the model  -<v, z - w> + 1/2 sum_i h_i s_i^2 + |z|_1  on W,
               where the score of row i changes by  s_i = <z - w, x_i> + c - b
    7          t = 1, halved until the objective falls;   (w, b) += t (z - w, c - b)
    8      until W is solved ten times better than all columns were
    9      a_i = the last a_i - h_i y_i s_i, inside its box, if t = 1

    descend:
    1  repeat
    2      for each j in W
    3          z_j = the minimiser of the model in this coordinate: a quadratic with a kink at 0
    4          the slopes of all others follow
    5      now and then: jump to the best point in the direction that is best for the signs of z

At the optimum |v_j| <= 1 for all columns, and v_j is the sign of w_j where that is not 0: a column whose
pull is below 1 stays out. Most are never looked at but in line 2. The best of a free b is a function of
the columns, so that it follows each of them within the model. Where W is small its products
sum_i h_i x_ij x_ik are written down, and a visit costs one number; else sweeps go over the columns.
Divided by the largest |v_j|, a is a feasible dual point. The model's own multipliers, line 9, are feasible
on W as soon as the model is solved, and near the optimum they are off by the square of the step only: so
their gap falls with the objective, and not as slowly as the pulls do. Sweeps are in
core/linear/coordinate_descent.hpp, jumps in primal/jumps.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Penalty, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver, end_if_stopped
from maxmargin.solvers.primal.jumps import best_move, jumps_on_products
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Count, Seed
from maxmargin.types import Indices, Vector

_LEAST_SHARE = 1e-8
"""The least curvature of a row, as a share of its multiplier: a loss that is all slope has none of its own.
One that is nearly 0 has as much as it has slope, however little that is."""
_FEW_COLUMNS = 200
"""Columns up to which all of them are in every working set, and the rows are read as they are: fewer than
twice the first working set."""
_ALL_PRODUCTS = 1000
"""Columns in a working set up to which their products are written down: 8 megabytes."""
_PAIRS_PER_VALUE = 40.0
"""Products of two values of a row, per value, above which sweeps over sparse columns are cheaper."""
_SOLVED = 0.1
"""What a model, or a working set, leaves of how far columns were from optimal."""
_JUMPS = 20
"""Rounds of sweeps, with a jump between two of them."""
_GRADIENTS = 30
"""Conjugate gradients for a jump over the columns themselves, at most."""
_ROUNDING = 1e-14
"""The share of the objective that rounding may hide. It falls as the square of how far columns are from
optimal, and the gap as that itself: steps go on where only the second can be seen."""
_GAIN = 0.5
"""Such a step has to leave no more than this of the gap, or of what is off."""


@dataclass(kw_only=True)
class State:
    """A point with its margins, and how all columns pull at it."""

    columns: core.Data | None
    """The columns as rows; None where these are few, and are read by rows."""
    lengths: Vector
    """The length of each column; 1 for those that are empty. None are needed where columns are few."""
    w: Vector
    b: float
    margins: Vector
    pulls: Vector
    """v_j of all columns, at the point or at the multipliers of its last model."""
    primal: float
    gap: float
    """The relative gap, but for rounding."""
    alpha: Vector | None = None
    """The best feasible multipliers so far."""
    dual: float = -np.inf
    """What they are worth, but for rounding."""
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
    """The most sweeps before a jump."""
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
        columns, lengths = None, np.ones(rows.columns)
        if rows.columns > _FEW_COLUMNS:
            columns = rows.by_columns
            core.squared_norms(columns, lengths, core.ALL_CORES)
            lengths = np.sqrt(lengths, out=lengths)
            lengths[lengths == 0.0] = 1.0
        w = np.zeros(rows.columns) if start is None or start.w is None else np.array(start.w, np.float64)
        if w.any():
            margins = rows.scores(w)
            b = problem.objective.take_best_intercept(margins)[0]
        else:
            b = _intercept_of_zero(problem)
            margins = problem.y * b
        state = State(
            columns=columns,
            lengths=lengths,
            w=w,
            b=b,
            margins=margins,
            pulls=lengths,
            primal=problem.regulariser(w, b) + problem.loss_sum(margins),
            gap=1.0,
        )
        _look(problem, state, None, core.ALL_CORES)
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
        enough = _SOLVED * working.violation
        for _ in range(self.newton_steps):  # 4
            end_if_stopped(budget)
            earlier = working.value, working.violation
            if not working.newton_step() or working.whole:  # of all columns, line 2 is a look at them
                break
            working.look()
            fell = _fell(earlier, (working.value, working.violation))
            if not fell or working.violation <= enough or budget.spent:  # 8
                break
        working.write_back()
        _look(problem, state, working.tangent, budget)  # 9, 2
        state.finished = not _fell(before, (state.primal, state.gap))
        return state

    def _working_set(self, state: State) -> Indices:
        """The columns that are to be solved for next, in their order."""
        if len(state.w) <= _FEW_COLUMNS:
            return np.arange(len(state.w))
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
        """The point, with the best multipliers so far."""
        return Solution(w=state.w.copy(), b=state.b, alpha=state.alpha, alpha_from="a model of the losses")

    def report(self, state: State) -> Report:
        """The gap itself, but for rounding."""
        return Report(state.gap, state.finished)


def _intercept_of_zero(problem: Problem) -> float:
    """The best intercept for w = 0, where the rows of a class are one row of all their costs."""
    signs = np.array([1.0, -1.0])
    costs = np.array([problem.costs[problem.y == sign].sum() for sign in signs])
    number = (
        problem.intercept_scaling if problem.intercept is Intercept.REGULARISED else problem.fixed_intercept
    )
    two = core.Objective(
        problem.loss.name, signs, costs, problem.intercept.value, number, penalty=problem.penalty.value
    )
    return two.best_intercept(np.zeros(2))[0]


def _look(problem: Problem, state: State, alpha: Vector | None, budget: Budget) -> None:
    """Line 2 for these multipliers, or else those of the point, and the gap."""
    if alpha is None:
        alpha = problem.multipliers(state.margins)
    else:
        problem.objective.make_feasible(alpha)
    state.pulls = _pulls(problem, state.columns, alpha, budget)
    factor = problem.best_multiple(alpha, state.pulls)
    alpha *= factor
    dual = problem.objective.dual(alpha, factor * problem.plain_dual_size(state.pulls), 0.0)
    if dual > state.dual:
        state.alpha, state.dual = alpha, dual
    state.gap = core.relative_gap(state.primal, state.dual)


def _pulls(problem: Problem, columns: core.Data | None, alpha: Vector, budget: Budget) -> Vector:
    """``sum_i alpha_i y_i x_ij`` of these columns, or of all."""
    if columns is None:
        return problem.rows.combine(alpha * problem.y, budget)
    return _products(columns, alpha * problem.y, budget)


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
        self.whole = len(which) == len(state.w)
        columns = state.columns
        self.columns = columns if columns is None or self.whole else columns.take(which)
        self.w, self.b, self.margins = state.w[which], state.b, state.margins
        self.value = state.primal  # columns outside have no weight
        self.tangent: Vector | None = None
        """The multipliers of the last model, line 9, if it was followed to its best point."""
        self.look()
        self.rows: core.Data | None = None
        """The rows of these columns, where products are written down."""
        if self.columns is None:
            self.rows = problem.rows.stored_data
            return
        count, stored = problem.rows.count, self.columns.stored
        dense = stored == count * len(which)
        if len(which) <= _ALL_PRODUCTS and (dense or stored <= _PAIRS_PER_VALUE * count):
            self.rows = problem.rows.stored_data if self.whole else self.columns.transposed(budget)

    def look(self) -> None:
        """Multipliers and pulls at the point: line 5."""
        self.multipliers = self.problem.multipliers(self.margins)
        self.pulls = _pulls(self.problem, self.columns, self.multipliers, self.budget)

    @property
    def violation(self) -> float:
        """How far the columns are from optimal."""
        return self.problem.distance_from_optimal(self.w, self.pulls)

    def newton_step(self) -> bool:
        """Whether there was a step: lines 5 to 7."""
        problem = self.problem
        self.tangent = None
        curvatures = _curvatures(problem, self.multipliers)  # 5
        z, c = self._descended(curvatures)  # 6
        step, shift = z - self.w, c - self.b
        if not np.isfinite(step).all() or not (step.any() or shift):
            return False
        change = problem.y * (self._scores(step) + shift)
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
        if factor == 1.0:
            tangent = self.multipliers - curvatures * change
            self.tangent = tangent if np.isfinite(tangent).all() else None
        self.w, self.b, self.margins, self.value = w, b, margins, value
        return True

    def _scores(self, step: Vector) -> Vector:
        """What a step of the columns adds to the score of every row."""
        if self.columns is None:
            return self.problem.rows.scores(step, self.budget)
        scores = np.empty(self.problem.rows.count)
        core.combine(self.columns, step, scores, self.budget)
        return scores

    def _descended(self, curvatures: Vector) -> tuple[Vector, float]:
        off = self.violation
        if self.rows is None:
            return self._on_columns(curvatures, _SOLVED * off)
        # Where sweeps are cheap beside the products steps square what is off, and first of all where
        # every step writes the products of the same columns down again.
        solved = _SOLVED * _SOLVED if self.whole else _SOLVED
        return self._on_products(self.rows, curvatures, min(solved, off) * off)

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
        z[_flat(np.diagonal(products), gradient, thresholds)] = 0.0
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
            done = off <= enough or self.budget.spent
            if done or not jumps_on_products(products, gradient, z, thresholds, self.budget):
                break
        if problem.intercept is Intercept.REGULARISED:
            return z[:-1], float(z[-1])
        if has_intercept and curvature > 0.0:
            return z, self.b - (slope + core.dot(mixed, z - self.w)) / curvature
        return z, self.b

    def _on_columns(self, curvatures: Vector, enough: float) -> tuple[Vector, float]:
        assert self.columns is not None
        model = _ScaledColumns(self, self.columns, curvatures)
        few = max(1, self.sweeps // 3)
        if model.sweep(self.sweeps - few, enough) > enough:
            for _ in range(_JUMPS):
                signs = np.sign(model.z)
                if model.sweep(few, enough) <= enough or self.budget.spent:
                    break
                # A jump is for the signs that z has: before they have settled it gains little.
                if not np.array_equal(signs, np.sign(model.z)) or not model.jump(enough):
                    break
        return model.z, self.b + model.shift

    def write_back(self) -> None:
        """Make the point that of the state."""
        state = self.state
        state.w[self.which], state.b, state.margins = self.w, self.b, self.margins
        state.primal = self.value


class _ScaledColumns:
    """The model by its columns, each with its values times the roots of the curvatures."""

    def __init__(self, working: _Working, columns: core.Data, curvatures: Vector) -> None:
        problem, size = working.problem, len(working.w)
        self.budget, self.w, self.b = working.budget, working.w, working.b
        self.roots = np.sqrt(curvatures)
        self.columns = columns.take_scaled(np.arange(size), self.roots)
        self.gradient, self.z = -working.pulls, working.w.copy()
        self.squares, self.residuals = np.empty(size), np.zeros(problem.rows.count)
        core.squared_norms(self.columns, self.squares, self.budget)
        self.z[_flat(self.squares, self.gradient, 1.0)] = 0.0
        self.mixed, self.curvature, self.slope = np.zeros(size), 0.0, 0.0
        self.threshold = _threshold(problem)
        self.shift, self.order = 0.0, np.arange(size)
        """What b has moved by; and the columns in the order in which they are visited."""
        if problem.intercept is not Intercept.NONE:
            self.mixed = _products(self.columns, self.roots, self.budget)
            self.curvature = float(curvatures.sum())
            self.slope = -core.dot(working.multipliers, problem.y)

    def slope_of_b(self) -> float:
        """How the model rises with b, without its penalty."""
        return self.slope + core.dot(self.mixed, self.z - self.w) + self.shift * self.curvature

    def sweep(self, most: int, enough: float) -> float:
        """So many sweeps or fewer; how far the last one over all columns has seen them from optimal."""
        self._settle()
        _, off, moved = core.descend_on_columns(
            self.columns,
            self.gradient + self.shift * self.mixed,
            self.squares,
            self.mixed,
            self.z,
            self.residuals,
            self.order,
            b=self.b + self.shift,
            slope=self.slope_of_b(),
            curvature=self.curvature,
            threshold=self.threshold,
            sweeps=most,
            enough=enough,
            budget=self.budget,
        )
        self.shift += moved
        return off

    def jump(self, enough: float) -> bool:
        """Jump with all that are not 0, and b, in the direction that conjugate gradients find.

        These are products with all columns, which threads share, and there are fewer of them than there
        would be sweeps. Whether there was a move.
        """
        some = np.flatnonzero((self.z != 0.0) & (self.squares > 0.0))
        b = self.b + self.shift
        moves_b = self.curvature > 0.0 and (self.threshold == 0.0 or b != 0.0)
        before, thresholds = self.z[some], np.ones(len(some))
        gradient = (self.gradient + self.shift * self.mixed + self._back(self.residuals))[some]
        diagonal = self.squares[some]
        if moves_b:
            before, thresholds = np.append(before, b), np.append(thresholds, self.threshold)
            gradient, diagonal = np.append(gradient, self.slope_of_b()), np.append(diagonal, self.curvature)
        if not len(before):
            return False

        def effect_of(change: Vector) -> tuple[Vector, float]:
            spread, image = np.zeros_like(self.z), np.empty_like(self.roots)
            spread[some] = change[: len(some)]
            core.combine(self.columns, spread, image, self.budget)
            if moves_b:
                image += change[-1] * self.roots
            return image, core.dot(image, image)

        slopes = gradient + thresholds * np.sign(before)
        step, left = np.zeros_like(before), -slopes
        direction, last = np.zeros_like(before), np.inf
        for _ in range(_GRADIENTS):
            if self.budget.spent or float(np.abs(left).max()) <= _GAIN * enough:
                break
            scaled = left / diagonal
            size = core.dot(left, scaled)
            direction = scaled + (size / last) * direction
            image, curvature = effect_of(direction)
            if not curvature > 0.0:
                break
            last, share = size, size / curvature
            step += share * direction
            turned = self._back(image)[some]
            left -= share * (np.append(turned, core.dot(self.roots, image)) if moves_b else turned)
        moved = best_move(before, step, thresholds, gradient, effect_of)
        if moved is None:
            return False
        point, effect = moved
        self.z[some] = point[: len(some)]
        self.residuals += effect
        if moves_b:
            self.shift += float(point[-1]) - b
            self.residuals -= (float(point[-1]) - b) * self.roots
        return True

    def _settle(self) -> None:
        """The best b for z, which it stays while columns move."""
        if not self.curvature > 0.0:
            return
        b = self.b + self.shift
        goal = self.curvature * b - self.slope_of_b()
        held = np.clip(goal, -self.threshold, self.threshold)
        self.shift += (goal - held) / self.curvature - b

    def _back(self, image: Vector) -> Vector:
        return _products(self.columns, image, self.budget)


def _flat(curvatures: Vector, gradient: Vector, thresholds: Vector | float) -> NDArray[np.bool_]:
    """Columns whose rows have no curvature, and which pull less than they cost: the model has them at 0."""
    return np.asarray((curvatures == 0.0) & (np.abs(gradient) < thresholds), np.bool_)


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
