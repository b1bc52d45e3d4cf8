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
from maxmargin.solvers.second_order.opening import Opening, sample_size
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
_RARE_PER_COLUMN = 10
"""Rows of the rarer class that a sample has for each column, at least: of fewer its solution fits these."""
_SOLVED = 0.1
"""What a model leaves of how far columns were from optimal, where products are written down."""
_SHARE = 0.1
"""A model over the columns themselves is solved until a sweep gains no more than this share of what all
have gained: then the next model gains more for its price."""
_NEAR = 1e-3
"""A model that gains no more than this share of the objective is near the optimum: most signs are right."""
_HIDDEN = 1e-10
"""One that gains no more than this is solved until columns are nearer to optimal: gains are rounding."""
_PROMISING = 1e-2
"""One that gains no more than this may have multipliers that prove something."""
_SMALL = 0.1
"""The share of all stored values that a small working set has: a few of its models cost less than a look at
all columns."""
_GROWTH, _GROWTH_OF_PRODUCTS = 4, 2
"""How many columns may come into a working set for each that has a weight: fewer where their products are
written down, whose price is the square of their number."""
_LEFT = 0.1
"""What the last model of a small working set gains, as a share of what the first one did."""
_JUMPS = 20
"""Rounds of sweeps, with a jump between two of them."""
_GRADIENTS, _GRADIENTS_WITH_CARE = 8, 30
"""Conjugate gradients for a jump over the columns themselves, at most."""
_PAIRS_PER_VALUE = 40.0
"""Products of two values of a row, per value, up to which careful models have those of sparse columns."""
_PATIENCE = 12
"""Steps that do not halve the gap, all of them together, before models are solved with care. Texts and
other easy data halve it in 10 or fewer."""
_CUT, _UNSOLVED = 2, 4
"""How many such steps a model counts for whose step had to be cut, and a working set on which all of its
models gain much the same: each of them was solved too loosely for the next one to be nearly right."""
_ROUNDING = 1e-14
"""The share of the objective that rounding may hide. It falls as the square of how far columns are from
optimal, and the gap as that itself: steps go on where only the second can be seen."""
_GAIN = 0.5
"""Such a step has to leave no more than this of the gap."""


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
    multipliers: Vector
    """a_i at the point."""
    pulls: Vector
    """v_j of all columns, with these multipliers."""
    is_seen: bool
    """Whether the two are those of the point as it is now."""
    primal: float
    gap: float
    """The relative gap, but for rounding."""
    alpha: Vector | None = None
    """The best feasible multipliers so far."""
    dual: float = -np.inf
    """What they are worth, but for rounding."""
    promise: float = np.inf
    """What the last model fell by, as a share of the objective."""
    lifted: bool = True
    """Whether models are lifted to where they do not fall below 0: far from the optimum, and after a step
    that had to be cut."""
    careful: bool = False
    """Whether models are solved with care from now on: loose ones were no good."""
    halved: float = 1.0
    """The gap when it was halved last."""
    waited: int = 0
    """How many steps ago that was."""
    finished: bool = False
    """Whether a step found nothing to gain."""
    opening: Opening | None = None
    """The same problem with a sample of very many rows, at whose solution the first step begins."""

    def judge(self) -> None:
        """Count steps that do not halve the gap, and lose patience with loose models."""
        self.waited += 1
        if self.gap <= 0.5 * self.halved:
            self.halved, self.waited = self.gap, 0
        self.careful |= self.waited >= _PATIENCE


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
        b, margins, primal = _at(problem, w)
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
        _look(problem, state, core.ALL_CORES)
        _take_dual(problem, state, state.multipliers.copy(), state.pulls)
        return state

    @one_blas_thread()
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One working set: lines 2 to 9."""
        if state.opening is not None:
            self._open(problem, state, state.opening, budget)
        if not state.is_seen:
            _look(problem, state, budget)  # 2
        which = self._working_set(state)  # 3
        before, first = (state.primal, state.gap), np.inf
        if not len(which):  # and w is 0: nothing pulls
            _take_dual(problem, state, state.multipliers.copy(), state.pulls)
            state.finished = True
            return state
        working = _Working(problem, state, which, self.sweeps, budget)
        enough = _SOLVED * working.violation
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
                _look(problem, state, budget)
                _take_dual(problem, state, state.multipliers.copy(), state.pulls)
            else:  # 9
                alpha = working.tangent
                problem.objective.make_feasible(alpha)
                _take_dual(problem, state, alpha, _pulls(problem, state.columns, alpha, budget))
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
        b, margins, primal = _at(problem, w)
        if primal < state.primal:
            state.w, state.b, state.margins, state.primal = w, b, margins, primal

    def _working_set(self, state: State) -> Indices:
        """The columns that are to be solved for next, in their order."""
        if len(state.w) <= _FEW_COLUMNS:
            return np.arange(len(state.w))
        inside = state.w != 0.0
        beyond = np.abs(state.pulls) - 1.0
        outside = np.flatnonzero(~inside & (beyond > 0.0))
        growth = _GROWTH_OF_PRODUCTS if state.careful or _is_dense(state) else _GROWTH
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


def _at(problem: Problem, w: Vector) -> tuple[float, Vector, float]:
    """The best intercept for w, the margins, and the objective."""
    if w.any():
        margins = problem.rows.scores(w)
        b = problem.objective.take_best_intercept(margins)[0]
    else:
        b = _intercept_of_zero(problem)
        margins = problem.y * b
    return b, margins, problem.regulariser(w, b) + problem.loss_sum(margins)


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


def _is_dense(state: State) -> bool:
    """Whether every row has a value in every column, as dense data have."""
    columns = state.columns
    return columns is not None and columns.stored == columns.count * len(state.margins)


def _look(problem: Problem, state: State, budget: Budget) -> None:
    """Multipliers and pulls at the point: line 2."""
    state.multipliers = problem.multipliers(state.margins)
    state.pulls = _pulls(problem, state.columns, state.multipliers, budget)
    state.is_seen = True


def _take_dual(problem: Problem, state: State, alpha: Vector, pulls: Vector) -> None:
    """The gap with the best multiple of these multipliers, if they are the best so far."""
    factor = problem.best_multiple(alpha, pulls)
    alpha *= factor
    dual = problem.objective.dual(alpha, factor * problem.plain_dual_size(pulls), 0.0)
    if dual > state.dual:
        state.alpha, state.dual = alpha, dual
    state.gap = core.relative_gap(state.primal, state.dual)


def _pulls(problem: Problem, columns: core.Data | None, alpha: Vector, budget: Budget) -> Vector:
    """``sum_i alpha_i y_i x_ij`` of these columns, or of all."""
    if columns is None:
        return problem.rows.combine(alpha * problem.y, budget)
    return _products(columns, alpha * problem.y, budget)


def _products(columns: core.AnyData, values: Vector, budget: Budget) -> Vector:
    """The products of all columns with a vector."""
    out = np.empty(columns.count)
    core.scores(columns, values, out, budget)
    return out


class _Working:
    """A working set: its columns, and the model on them."""

    def __init__(self, problem: Problem, state: State, which: Indices, sweeps: int, budget: Budget) -> None:
        self.problem, self.state, self.which, self.budget = problem, state, which, budget
        self.sweeps = sweeps
        self.whole = len(which) == len(state.w)
        self.columns, self.places = state.columns, which
        """Columns, and where those of the working set are among them."""
        self.w, self.b = state.w[which], state.b
        self.multipliers, self.pulls = state.multipliers, state.pulls[which]
        self.tangent: Vector | None = None
        """The multipliers of the last model, line 9, unless the step to its best point was cut."""
        self.stored = problem.rows.stored
        """How many values the model has."""

    @property
    def has_products(self) -> bool:
        """Whether the products of its columns are written down."""
        if self.columns is None or len(self.which) > _ALL_PRODUCTS:
            return self.columns is None
        return _is_dense(self.state) or (self.state.careful and self._pairs_are_few())

    @property
    def is_small(self) -> bool:
        """Whether it gets several models: they cost less than looks, or than products of more columns."""
        return self.has_products or self.stored < _SMALL * self.problem.rows.stored

    def _pairs_are_few(self) -> bool:
        """Whether products of these sparse columns cost less than so many sweeps over them."""
        assert self.columns is not None
        stored = self._taken().stored
        return stored <= _PAIRS_PER_VALUE * self.problem.rows.count

    def _taken(self) -> core.Data:
        """The columns of the working set alone."""
        assert self.columns is not None
        if self.columns is self.state.columns and not self.whole:
            self.columns, self.places = self.columns.take(self.which), np.arange(len(self.which))
        return self.columns

    @property
    def violation(self) -> float:
        """How far its columns are from optimal."""
        return self.problem.distance_from_optimal(self.w, self.pulls)

    def look(self) -> None:
        """Multipliers and pulls of these columns at the point, for another model: line 5."""
        self._taken()
        self.w, self.b = self.state.w[self.which], self.state.b
        self.multipliers = self.problem.multipliers(self.state.margins)
        self.pulls = _pulls(self.problem, self.columns, self.multipliers, self.budget)

    def newton_step(self) -> bool:
        """Whether there was a step: lines 5 to 7."""
        problem, state = self.problem, self.state
        self.tangent = None
        curvatures = _curvatures(problem, self.multipliers, state.lifted)  # 5
        z, c = self._descended(curvatures)  # 6
        step, shift = z - self.w, c - self.b
        if not np.isfinite(step).all() or not (step.any() or shift):
            return False
        change = problem.y * (self._scores(step) + shift)
        threshold = _threshold(problem)
        held = float(np.abs(self.w).sum()) + threshold * abs(self.b)
        slope = float(np.abs(z).sum()) + threshold * abs(c) - held - core.dot(self.multipliers, change)
        curved = curvatures * change
        tangent = self.multipliers - curved
        self.tangent = tangent if np.isfinite(tangent).all() else None
        if not slope < 0.0:
            return False
        state.promise = -(slope + 0.5 * core.dot(curved, change)) / state.primal
        factor = 1.0
        while True:  # 7
            w, b = self.w + factor * step, self.b + factor * shift
            if factor == 1.0:
                w = z
            margins = state.margins + factor * change
            value = float(np.abs(w).sum()) + threshold * abs(b) + problem.loss_sum(margins)
            if value <= state.primal + 0.01 * factor * slope + _ROUNDING * state.primal:
                break
            factor *= 0.5
            if factor < 1e-10:
                return False
        state.w[self.which], state.b, state.margins, state.primal = w, b, margins, value
        state.is_seen = False
        if factor < 1.0:
            state.lifted, self.tangent = True, None
            state.waited += _CUT
        return True

    def _scores(self, step: Vector) -> Vector:
        """What a step of the columns adds to the score of every row."""
        if self.columns is None:
            return self.problem.rows.scores(step, self.budget)
        scores, spread = np.empty(self.problem.rows.count), np.zeros(self.columns.count)
        spread[self.places] = step
        core.combine(self.columns, spread, scores, self.budget)
        return scores

    def _descended(self, curvatures: Vector) -> tuple[Vector, float]:
        if self.columns is None or (self.whole and self.has_products):
            return self._on_products(self.problem.rows.stored_data, curvatures)
        if self.has_products:
            rows = self.columns.take(self.places).transposed(self.budget)
            return self._on_products(rows, curvatures)
        return self._on_columns(self.columns, curvatures)

    def _on_products(self, rows: core.Data, curvatures: Vector) -> tuple[Vector, float]:
        problem, size = self.problem, len(self.w)
        # Sweeps are cheap beside the products: steps square what is off, and first of all where every step
        # writes the products of the same columns down again.
        off = self.violation
        enough = min(_SOLVED * _SOLVED if self.whole else _SOLVED, off) * off
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

    def _on_columns(self, columns: core.Data, curvatures: Vector) -> tuple[Vector, float]:
        model = _ScaledColumns(self, columns, curvatures)
        self.stored = model.columns.stored
        off = self.violation
        if self.state.careful:
            self._carefully(model, _SOLVED * off)
            return model.z, self.b + model.shift
        gained = model.sweep(self.sweeps)
        for _ in range(_JUMPS):
            # A jump is for the signs that z has: before most of them are right it gains little.
            if gained > _NEAR * self.state.primal or self.budget.spent:
                break
            gain = model.jump() + model.sweep(2)
            gained += gain
            # What is off shows in the gap when the objective, which falls as its square, is all rounding.
            hidden = gained <= _HIDDEN * self.state.primal and model.off > _SOLVED * off
            if not gain > _SHARE * gained and not hidden:
                break
        return model.z, self.b + model.shift

    def _carefully(self, model: _ScaledColumns, enough: float) -> None:
        """Sweeps until columns are near enough to optimal, with jumps as soon as signs have settled."""
        few = max(1, self.sweeps // 3)
        model.sweep(self.sweeps - few, 0.0, enough)
        for _ in range(_JUMPS):
            if model.off <= enough:
                break
            signs = np.sign(model.z)
            model.sweep(few, 0.0, enough)
            if model.off <= enough or self.budget.spent:
                break
            if not np.array_equal(signs, np.sign(model.z)):
                break
            if not model.jump(_GRADIENTS_WITH_CARE, 0.5 * enough) > 0.0:
                break


class _ScaledColumns:
    """The model by its columns, each with its values times the roots of the curvatures."""

    def __init__(self, working: _Working, columns: core.Data, curvatures: Vector) -> None:
        problem, size = working.problem, len(working.w)
        self.budget, self.w, self.b = working.budget, working.w, working.b
        self.roots = np.sqrt(curvatures)
        self.gradient, self.z = -working.pulls, working.w.copy()
        self.squares, self.residuals = np.empty(size), np.zeros(problem.rows.count)
        mixed = np.empty(size)
        self.columns = columns.take_scaled(working.places, self.roots, self.squares, mixed, self.budget)
        self.z[_flat(self.squares, self.gradient, 1.0)] = 0.0
        self.mixed, self.curvature, self.slope = np.zeros(size), 0.0, 0.0
        self.threshold = _threshold(problem)
        self.shift, self.order = 0.0, np.arange(size)
        """What b has moved by; and the columns in the order in which they are visited."""
        self.off = 0.0
        """How far the last sweep has seen them from optimal."""
        if problem.intercept is not Intercept.NONE:
            self.mixed = mixed
            self.curvature = float(curvatures.sum())
            self.slope = -core.dot(working.multipliers, problem.y)

    def slope_of_b(self) -> float:
        """How the model rises with b, without its penalty."""
        return self.slope + core.dot(self.mixed, self.z - self.w) + self.shift * self.curvature

    def sweep(self, most: int, share: float = _SHARE, enough: float = 0.0) -> float:
        """So many sweeps or fewer; what they gained."""
        self._settle()
        gain, self.off, moved = core.descend_on_columns(
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
            share=share,
            enough=enough,
            budget=self.budget,
        )
        self.shift += moved
        return float(gain)

    def jump(self, gradients: int = _GRADIENTS, enough: float = 0.0) -> float:
        """Jump with all that are not 0, and b, in the direction that conjugate gradients find.

        These are products with all columns, which threads share, and there are fewer of them than there
        would be sweeps. What it gained.
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
            return 0.0

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
        enough = enough or _SOLVED * float(np.abs(left).max())
        for _ in range(gradients):
            if self.budget.spent or float(np.abs(left).max()) <= enough:
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
            return 0.0
        point, effect = moved
        change = point - before
        held = core.dot(thresholds, np.abs(point) - np.abs(before))
        gain = -core.dot(gradient, change) - 0.5 * core.dot(effect, effect) - held
        self.z[some] = point[: len(some)]
        self.residuals += effect
        if moves_b:
            self.shift += float(point[-1]) - b
            self.residuals -= (float(point[-1]) - b) * self.roots
        return gain

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


def _curvatures(problem: Problem, multipliers: Vector, lifted: bool) -> Vector:
    """``C_i loss''(m_i)``, from ``-C_i loss'(m_i)``: line 5.

    No loss is below 0. A model of the logistic loss is, where a row is on the wrong side by much: there the
    loss is all slope, and the model falls without end. Lifted, it has the least curvature with which it
    does not fall below 0: ``a_i^2 / (2 C_i loss)``. The model of a squared hinge touches 0 as it is.
    """
    if problem.loss.name == "squared_hinge":
        return np.where(multipliers > 0.0, 2.0 * problem.costs, 0.0)
    costs = problem.costs
    shares = np.divide(multipliers, costs, out=np.zeros_like(multipliers), where=costs > 0.0)
    plain = multipliers * np.maximum(1.0 - shares, _LEAST_SHARE)
    if not lifted:
        return plain
    losses = -np.log1p(-np.minimum(shares, 1.0 - _LEAST_SHARE))  # over C_i
    return np.maximum(plain, 0.5 * multipliers * np.divide(shares, losses, out=shares, where=losses > 0.0))
