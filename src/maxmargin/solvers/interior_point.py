# SPDX-License-Identifier: BSD-3-Clause
"""A primal-dual interior point method: Mehrotra's predictor-corrector with Gondzio's corrections.

    minimise    1/2 v'Rv + sum_i C_i xi_i      over v = (w, b) and xi          (squared hinge: C_i xi_i^2)
    subject to  m_i + xi_i - s_i = p_i,  xi_i >= 0,  s_i >= 0,    m_i = y_i <v, z_i>,  z_i = (x_i, 1)

The targets p_i are 1 in classification. R is the identity, and on the intercept's place 1/s^2 when it is
regularised, 0 when it is exact. A point is optimal if g = Rv - sum_i alpha_i y_i z_i = 0 and, for the
hinge, every row has, at mu = 0,

    alpha_i s_i = mu,      (C_i - alpha_i) xi_i = mu.

The squared hinge has the first product alone, and xi_i = D_i alpha_i with D_i = 1 / (2 C_i); else D_i = 0.
All factors stay positive while Newton's method follows the equations' solutions from a large mu to 0:

    1  mu     = the mean of the products;   Theta_i = 1 / (D_i + s_i / alpha_i + xi_i / (C_i - alpha_i))
    2  factor   R + sum_i Theta_i z_i z_i'                                      once, for lines 3, 5 and 6
    3  predict: Newton's step for products of 0;   mu' = their mean as far as it can go
    4  sigma  = (mu' / mu)^3
    5  correct: Newton's step for products of sigma mu, less the second-order terms of line 3
    6  up to ``corrections`` times: products that a step longer by 0.3 would take out of [0.1, 10] sigma mu
       are drawn back into it; kept if the step can then be longer
    7  move by 0.995 of the way to the nearest wall, or by the whole step

Newton's step that changes the products by p and p' solves

    (R + sum_i Theta_i z_i z_i') dv = -g + sum_i Theta_i rho_i y_i z_i,
    rho_i = p_i - m_i - xi_i + s_i + p_i / alpha_i - p'_i / (C_i - alpha_i)

and has dalpha_i = Theta_i (rho_i - y_i <dv, z_i>). Newton's method does not see the scales of the features,
and mu starts at the scale of C and of the targets: the number of steps hardly depends on these. The start
is v = 0 with the alpha, s and xi that meet the constraints and whose products are the mean of C_i times
the spread of the targets: all conditions but g = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.core import ALL_CORES, Budget, dot
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.second_order.system import Factor, NewtonSystem
from maxmargin.solvers.sizes import AFFORDABLE_STEP, LARGEST_INTERIOR_SIDE
from maxmargin.tools.parameters import Natural, Seed
from maxmargin.types import Indices, Vector

Pairs = NDArray[np.float64]
"""One line for each kind of product, one column for each row of the data."""

_TO_THE_WALL = 0.995
"""The share of the way to the nearest wall in line 7."""
_LONGER = 0.3
"""How much longer line 6 wants the step to be."""
_WORTH = 1.02
"""The factor on the length of the step from which a correction is kept."""
_LOWEST, _HIGHEST = 0.1, 10.0
"""The ends of the interval in line 6, in units of sigma mu."""
_WARM = 1e-2
"""The least mu of a start, in units of the mean cost."""
_REFINEMENTS = 2
"""How often a step on the rows' side is solved for again with what it left."""
_ROUNDS = 3
"""Rounds in which the free multipliers make up for those that are taken to be on the walls."""
_ROUNDING = 1e-15
"""The share of the primal value below which the products are rounding."""
_PATIENCE = 10
"""Steps without a smaller gap after which nothing is left to gain."""


@dataclass
class State:
    """The state of the method. Arrays over rows leave out those of cost 0, whose box is empty."""

    system: NewtonSystem
    active: Indices | slice
    """The rows of cost above 0."""
    own: Vector
    """D."""
    wanted: Vector
    """p."""
    v: Vector
    """(w, b)."""
    margins: Vector
    """m, which lacks the targets."""
    multipliers: Pairs
    """alpha and, for the hinge, C - alpha: close to C a difference would not be exact."""
    distances: Pairs
    """s and, for the hinge, xi."""
    equations: _Equations | None = None
    """The equations of the last step."""
    vanishing: NDArray[np.bool_] | None = None
    """Which multipliers fell faster than their distances in the last step: Tapia's indicators."""
    relative_gap: float = np.inf
    smallest_gap: float = np.inf
    steps_since: int = 0
    """Steps since the smallest gap."""
    finished: bool = False

    @property
    def w(self) -> Vector:
        """The point without its intercept."""
        return self.v[: self.system.columns]

    @property
    def b(self) -> float:
        """The intercept."""
        return float(self.v[-1]) if self.system.has_intercept else 0.0

    @property
    def signs(self) -> Vector:
        """How each line of ``multipliers`` changes with alpha."""
        return np.array([1.0, -1.0])[: len(self.multipliers)]


@dataclass(frozen=True)
class Direction:
    """A step of all variables."""

    v: Vector
    margins: Vector
    multipliers: Pairs
    distances: Pairs


def affordable(problem: Problem) -> InteriorPoint | None:
    """The solver, where it takes the problem and a step takes well below a second; else None."""
    solver, rows = InteriorPoint(), problem.rows
    work = max(rows.stored, rows.count) * min(rows.count, rows.columns)
    return solver if work <= AFFORDABLE_STEP and solver.accepts(problem) is None else None


@dataclass(frozen=True)
class InteriorPoint(Solver[State]):
    """Primal-dual interior point method, for the hinge and the squared hinge."""

    name: ClassVar[str] = "interior_point"
    takes_targets: ClassVar[bool] = True

    corrections: Natural = 2
    """Gondzio's corrections in a step, at most: each costs two passes, and saves steps. 0: Mehrotra's."""
    seed: Seed = 0
    """Nothing here is random."""

    def accepts(self, problem: Problem) -> str | None:
        """The factor is as large as the smaller side of the data."""
        if problem.loss.name not in ("hinge", "squared_hinge"):
            return (
                f"interior_point solves the hinge and the squared hinge, not {problem.loss.name}; "
                "use subgradient, or newton for the logistic loss."
            )
        side = min(problem.rows.count, problem.rows.columns)
        if side > LARGEST_INTERIOR_SIDE:
            return (
                "interior_point factors a matrix as large as the smaller side of the data in every step; "
                f"that side may have up to {LARGEST_INTERIOR_SIDE} rows or columns. Got {side} instead. "
                "Use dual_coordinate_ascent."
            )
        return None

    def system(self, problem: Problem) -> NewtonSystem:
        """The system of the steps."""
        return NewtonSystem(problem)

    @np.errstate(over="ignore", invalid="ignore")
    def init(self, problem: Problem, start: Solution | None) -> State:
        """Begin at zero or at the start's w, with mu by the gap there: all conditions but g = 0 hold."""
        system = self.system(problem)
        v = np.zeros(len(system.regulariser))
        dual = 0.0
        if start is not None:
            w, b = start.w, start.b
            if start.alpha is not None:
                dual = max(problem.dual(start.alpha), 0.0)
                if w is None:
                    w, b = problem.primal_from_dual(start.alpha)
            if w is not None:
                v[: system.columns] = w
            if system.has_intercept:
                v[-1] = b
        active: Indices | slice = slice(None) if problem.costs.all() else np.flatnonzero(problem.costs)
        margins = (problem.y * system.scores(v, ALL_CORES))[active]
        costs = problem.costs[active]
        primal = problem.primal(v[: system.columns], float(v[-1]) if system.has_intercept else 0.0)
        # From a start at the walls all steps would be short: mu takes it back to the middle.
        mu = max((primal - dual) / len(costs), _WARM * float(costs.mean()) * problem.spread)
        central = _central_squared if problem.loss.name == "squared_hinge" else _central
        wanted = np.ones(len(margins)) if problem.targets is None else problem.targets[active]
        own, multipliers, distances = central(wanted - margins, costs, mu)
        return State(system, active, own, wanted, v, margins, multipliers, distances)

    @np.errstate(over="ignore", invalid="ignore")  # what overflows ends the run by its own rule
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One predictor-corrector iteration."""
        products = state.multipliers * state.distances
        mu = float(products.mean())  # 1
        try:
            equations = _Equations(problem, state, budget)  # 2
        except FloatingPointError:
            if state.equations is None:
                raise
            state.finished = True  # products have become 0 in float64: there is no step beyond
            return state
        predictor = equations.direction(-products, budget)  # 3
        foreseen = _products_after(state, predictor, min(1.0, _reach(state, predictor)))
        target = mu * (float(foreseen.mean()) / mu) ** 3  # 4
        changes = target - products - predictor.multipliers * predictor.distances
        direction = equations.direction(changes, budget)  # 5
        reach = _reach(state, direction)
        for _ in range(self.corrections):  # 6
            if reach >= 1.0:
                break
            there = _products_after(state, direction, min(1.0, reach + _LONGER))
            drawn_back = np.clip(there, _LOWEST * target, _HIGHEST * target) - there
            changes = changes + np.maximum(drawn_back, -_HIGHEST * target)
            corrected = equations.direction(changes, budget)
            longer = _reach(state, corrected)
            if longer < _WORTH * reach:
                break
            direction, reach = corrected, longer
        if not np.isfinite(direction.v).all():
            state.finished = True
            return state
        length = min(1.0, _TO_THE_WALL * reach)  # 7
        state.vanishing = direction.multipliers * state.distances < direction.distances * state.multipliers
        state.v += length * direction.v
        state.margins += length * direction.margins
        state.multipliers += length * direction.multipliers
        state.distances += length * direction.distances
        state.equations = equations
        _judge(problem, state, budget)
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The iterate, with the multipliers that vanish taken for 0 where that raises the dual value."""
        alpha = None
        if state.equations is not None and state.vanishing is not None:
            alpha = _best_alpha(problem, state, state.equations, state.vanishing, budget)
        return Solution(w=state.w.copy(), b=state.b, alpha=alpha, any_length=True)

    def report(self, state: State) -> Report:
        """The gap of the iterate's own primal and dual values.

        It is finished when rounding leaves nothing to gain: the products are 0, or the gap falls no more.
        """
        return Report(state.relative_gap, state.finished)


class _Equations:
    """Newton's equations at a state, with their factor."""

    def __init__(self, problem: Problem, state: State, budget: Budget) -> None:
        self.problem, self.state = problem, state
        self.curvatures: Vector = 1.0 / (state.own + (state.distances / state.multipliers).sum(axis=0))
        self.residual: Vector = (
            state.wanted - state.margins - state.own * state.multipliers[0] + state.signs @ state.distances
        )
        # With fewer rows than columns the factor makes a step out of a difference of much larger vectors;
        # what that leaves of g is solved for again.
        self.refinements = _REFINEMENTS if problem.rows.count < problem.rows.columns else 0
        # From zero: curvatures change by orders of magnitude, and differences would leave their rounding.
        state.system.scale(0.0)
        self.factor: Factor = state.system.factor(_spread(problem, state, self.curvatures), budget)

    def direction(self, changes: Pairs, budget: Budget) -> Direction:
        """The step that changes the products by so much, to first order."""
        state = self.state
        residual = self.residual + state.signs @ (changes / state.multipliers)
        # g and the other part of the right-hand side in one pass: both are sums over the rows.
        step, margins = self.respond(state.v, state.multipliers[0] + self.curvatures * residual, budget)
        alpha = self.curvatures * (residual - margins)
        for _ in range(self.refinements):
            more, shift = self.respond(state.v + step, state.multipliers[0] + alpha, budget)
            step += more
            margins += shift
            alpha -= self.curvatures * shift
        multipliers = np.outer(state.signs, alpha)
        distances = (changes - state.distances * multipliers) / state.multipliers
        return Direction(step, margins, multipliers, distances)

    def respond(self, v: Vector, alpha: Vector, budget: Budget) -> tuple[Vector, Vector]:
        """The dv that answers to g at these v and alpha, and how the margins change with it."""
        system = self.state.system
        gradient = system.regulariser * v - _combine(self.problem, self.state, alpha, budget)
        step = self.factor.solve(gradient)
        return step, (self.problem.y * system.scores(step, budget))[self.state.active]


def _central(slack: Vector, costs: Vector, mu: float) -> tuple[Vector, Pairs, Pairs]:
    """The hinge: alpha s = mu, (C - alpha) xi = mu and xi - s = slack."""
    half, unit = 0.5 * slack, mu / costs
    middle = unit + np.hypot(unit, half)
    # The product of both is 2 unit middle. The larger one first: nothing cancels.
    larger = middle + np.abs(half)
    smaller = 2.0 * unit * (middle / larger)
    distances = np.stack([np.where(half > 0.0, smaller, larger), np.where(half > 0.0, larger, smaller)])
    return np.zeros_like(slack), mu / distances, distances


def _central_squared(slack: Vector, costs: Vector, mu: float) -> tuple[Vector, Pairs, Pairs]:
    """The squared hinge: alpha s = mu and D alpha - s = slack."""
    own = 0.5 / costs
    # The larger of s and D alpha first: nothing cancels.
    larger = 0.5 * (np.abs(slack) + np.hypot(slack, 2.0 * np.sqrt(own * mu)))
    alpha = np.where(slack > 0.0, larger / own, mu / larger)
    return own, alpha[np.newaxis], (mu / alpha)[np.newaxis]


def _products_after(state: State, direction: Direction, length: float) -> Pairs:
    return (state.multipliers + length * direction.multipliers) * (
        state.distances + length * direction.distances
    )


def _reach(state: State, direction: Direction) -> float:
    """How much of the direction fits in before a multiplier or a distance becomes 0."""
    fastest = max(
        float(np.max(-direction.multipliers / state.multipliers)),
        float(np.max(-direction.distances / state.distances)),
    )
    return 1.0 / fastest if fastest > 0.0 else math.inf


def _judge(problem: Problem, state: State, budget: Budget) -> None:
    """The gap of the iterate, and whether rounding is all that is left of it."""
    costs = problem.costs[state.active]
    primal = state.system.half_size(state.w, state.b)
    primal += dot(costs, problem.loss.value(state.margins + (1.0 - state.wanted)))
    alpha = state.multipliers[0]
    dual = _dual(problem, state, alpha, _combine(problem, state, alpha, budget))
    state.relative_gap = abs(primal - dual) / primal if primal > 0.0 else 0.0
    state.steps_since += 1
    if state.relative_gap < state.smallest_gap:
        state.smallest_gap, state.steps_since = state.relative_gap, 0
    products = float(np.sum(state.multipliers * state.distances))
    state.finished = products <= _ROUNDING * primal or state.steps_since >= _PATIENCE


def _dual(problem: Problem, state: State, alpha: Vector, combined: Vector) -> float:
    """The dual value; where alpha should be balanced, less Lagrange's term for what is missing."""
    value = dot(alpha, state.wanted - 0.5 * state.own * alpha)
    b = 0.0
    if problem.intercept is Intercept.REGULARISED:
        b = problem.intercept_scaling**2 * float(combined[-1])
    elif problem.intercept is Intercept.EXACT:
        value -= state.b * float(combined[-1])
    return value - state.system.half_size(combined[: state.system.columns], b)


def _best_alpha(
    problem: Problem, state: State, equations: _Equations, vanishing: NDArray[np.bool_], budget: Budget
) -> Vector:
    """The iterate's alpha, or its neighbour on the walls: rows are at 0 or C there, or free."""
    upper = problem.upper[state.active]
    inside: Vector = state.multipliers[0]
    at_wall = vanishing.any(axis=0)
    outside = np.where(vanishing[0], 0.0, inside)
    if len(vanishing) > 1:
        outside[vanishing[1]] = upper[vanishing[1]]
    # Thousands of multipliers that were almost 0 weigh in sum: the free ones make up for them.
    for _ in range(_ROUNDS):
        _, margins = equations.respond(state.v, outside, budget)
        answer = np.where(at_wall, outside, outside - equations.curvatures * margins)
        outside = np.clip(_less_in_common(problem, answer), 0.0, upper)
    combined = _combine(problem, state, inside, budget)
    value = _dual(problem, state, inside, combined)
    if _dual(problem, state, outside, _combine(problem, state, outside, budget)) > value:
        return _spread(problem, state, outside)
    # Far from the optimum, a multiple of alpha is worth more.
    alpha = _spread(problem, state, inside)
    return problem.best_multiple(alpha, combined[: state.system.columns]) * alpha


def _less_in_common(problem: Problem, alpha: Vector) -> Vector:
    """Multipliers with the same differences between twins, one of which is 0.

    Without a tube both are near C inside the walls, and their difference would have the rounding of C.
    """
    if not isinstance(problem.rows, TwinRows):
        return alpha
    differences = alpha[::2] - alpha[1::2]
    return np.column_stack([differences, -differences]).clip(0.0).ravel()


def _spread(problem: Problem, state: State, values: Vector) -> Vector:
    """Over all rows: those of cost 0 get 0."""
    out = np.zeros(problem.rows.count)
    out[state.active] = values
    return out


def _combine(problem: Problem, state: State, values: Vector, budget: Budget) -> Vector:
    """``sum_i value_i y_i z_i``."""
    return state.system.combine(_spread(problem, state, values) * problem.y, budget)
