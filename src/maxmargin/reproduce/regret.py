# SPDX-License-Identifier: BSD-3-Clause
"""002, 1.2: the regret of Pegasos, for every realisation of the draws and any strongly convex losses.

Step t has a loss of its own, that of the batch drawn for it, and pays it before it knows it:

    f_t(w) = lambda / 2 |w|^2 + (1 / k) sum_{i in I_t} loss(y_i <w, x_i>)
    regret = sum_t f_t(w_t) - min_w sum_t f_t(w)

Each f_t is lambda-strongly convex, whatever the convex loss is. So for steps of 1 / (lambda t), whatever
was drawn, with g_t a subgradient of f_t at w_t and G the longest of them,

    regret  <=  1 / (2 lambda) sum_t |g_t|^2 / t  <=  G^2 / (2 lambda) (1 + ln T)

The lecture has ln(T + 1) in the place of 1 + ln T, which one step shows to be too little. Its X is the
longest row: while no slope of the loss is steeper than 1, lambda w_t is a mean of vectors no longer than X,
and G <= 2 X. A negative regret is possible: the best w is one for all steps, and w_t may change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxmargin import core
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers.stochastic_subgradient import State, StepRule, draw_rows, init_state, walk
from maxmargin.solving.loop import solve
from maxmargin.types import Indices, Vector

_UNLIMITED = core.Budget(math.inf, 1)


@dataclass(frozen=True)
class Regret:
    """What T steps paid beyond the best w for the very losses that they met."""

    T: int
    lambda_: float
    paid: float
    """sum_t f_t(w_t)."""
    best: float
    """A lower bound on min_w sum_t f_t(w), the dual value of a certified fit."""
    G: float
    """The longest subgradient met."""
    allowed_G: float
    """What theory says that no subgradient exceeds; 2 X where no slope of the loss is steeper than 1."""
    sharp_bound: float
    """1 / (2 lambda) sum_t |g_t|^2 / t."""

    @property
    def regret(self) -> float:
        """A bound on the regret from above, since ``best`` is proven, by no more than that fit's gap."""
        return self.paid - self.best

    @property
    def bound(self) -> float:
        """G^2 / (2 lambda) (1 + ln T), with the G that was measured."""
        return self.G**2 / (2.0 * self.lambda_) * (1.0 + math.log(self.T))


def regret(
    problem: Problem, T: int, *, seed: int = 0, batch: int = 1, project: bool = False, tol: float = 1e-7
) -> Regret:
    """The regret of T steps of 1 / (lambda t) on uniform draws, for any loss.

    ``project`` keeps w in a ball that holds the best w of every realisation, of the radius 1 / sqrt(lambda)
    for the hinge and sqrt(2 loss(0) / lambda) for other losses. The squared hinge needs it, since its slope
    has no bound of its own. ``tol`` is the relative gap of the fit that finds the minimum.
    """
    return regrets(problem, [T], seed=seed, batch=batch, project=project, tol=tol)[0]


def regrets(
    problem: Problem,
    horizons: Sequence[int],
    *,
    seed: int = 0,
    batch: int = 1,
    project: bool = False,
    tol: float = 1e-7,
) -> list[Regret]:
    """As ``regret``, of one realisation after each of several numbers of steps."""
    if problem.intercept is Intercept.EXACT:
        raise ValueError(
            "The regret is bounded where every f_t is strongly convex in all variables. Got "
            "intercept='exact', which is not regularised. Use intercept='none' or 'regularised'."
        )
    weights = problem.costs * (problem.rows.count / problem.total_cost)
    radius = _radius(problem, weights) if project else math.inf
    rule = StepRule(batch, "uniform", "last", radius, 1.0)
    state = init_state(problem, None, False, 0.0, seed, core.RecentSteps(0, 0.0))
    order = draw_rows(problem, state, rule, max(horizons)).reshape(-1, batch)
    counts = np.zeros(problem.rows.count)
    allowed = _allowed(problem, weights, radius)
    paid = longest = over_t = 0.0
    found = {}
    for t, rows in enumerate(order, start=1):
        value, squared_length = _loss_of_step(problem, state, rows, weights)
        paid += value
        longest = max(longest, math.sqrt(squared_length))
        over_t += squared_length / t
        np.add.at(counts, rows, 1.0)
        walk(problem, state, rule, rows, np.array([problem.total_cost / t]), _UNLIMITED)
        if math.isfinite(radius):
            state.iterate.squared_norm = core.dot(state.v, state.v)
        if t in horizons:
            best = _best(problem, counts * weights / batch, t, tol)
            bound = 0.5 * problem.total_cost * over_t
            found[t] = Regret(t, 1.0 / problem.total_cost, paid, best, longest, allowed, bound)
    return [found[T] for T in horizons]


def _loss_of_step(problem: Problem, state: State, rows: Indices, weights: Vector) -> tuple[float, float]:
    """f_t(w_t), and the squared length of a subgradient there."""
    lambda_, feature = 1.0 / problem.total_cost, problem.bias_feature
    w, beta = state.iterate.scale * state.v, state.iterate.beta
    margins = (problem.y * (problem.rows.scores(w) + feature * beta))[rows]
    shares = weights[rows] / len(rows)
    value = lambda_ * problem.regulariser(w, feature * beta) + float(
        np.sum(shares * problem.loss.value(margins))
    )
    pulls = np.zeros(problem.rows.count)
    np.add.at(pulls, rows, shares * problem.loss.derivative(margins) * problem.y[rows])
    subgradient = lambda_ * w + problem.rows.combine(pulls)
    by_beta = lambda_ * beta + feature * float(pulls.sum())
    return value, core.dot(subgradient, subgradient) + by_beta**2


def _best(problem: Problem, shares: Vector, T: int, tol: float) -> float:
    """A lower bound on min_w T lambda / 2 |w|^2 + sum_i shares_i loss(y_i <w, x_i>)."""
    scale = T / problem.total_cost
    drawn = replace(problem, costs=shares / scale)
    return scale * solve(drawn, tol=tol, max_steps=10_000).certificate.dual


def _radius(problem: Problem, weights: Vector) -> float:
    """The radius of a ball around 0 that holds the best w of every realisation: none loses more than w = 0.

    For the hinge, P* = D* halves what follows from that alone (001).
    """
    largest = float(weights.max()) * (1.0 if problem.loss.name == "hinge" else 2.0 * problem.loss.at_zero)
    return math.sqrt(largest * problem.total_cost)


def _allowed(problem: Problem, weights: Vector, radius: float) -> float:
    """The length that no subgradient exceeds: infinite for a loss whose slopes nothing bounds."""
    lengths = np.sqrt(problem.rows.squared_norms + problem.bias_feature**2)
    X = float(np.max(weights * lengths))
    if problem.loss.name != "squared_hinge":
        return 2.0 * X
    steepest = 2.0 * (1.0 + float(lengths.max()) * radius)
    return steepest * X + radius / problem.total_cost
