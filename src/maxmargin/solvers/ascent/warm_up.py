# SPDX-License-Identifier: BSD-3-Clause
"""The warm-up of dual coordinate ascent: first with a small C, which is raised fourfold at a time.

While C |x|^2 is large, a multiplier that belongs at C needs many visits to get there. So the first sweeps
solve the problem roughly with a C so small that one visit crosses the box. On data that overlap, the
multipliers grow with C: then alpha and w are multiplied along, by what an exact line search allows. On data
that are nearly separable they do not, and the warm-up ends.
"""

from __future__ import annotations

import math

import numpy as np

from maxmargin import core
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers.ascent.state import DIAGONAL, RAISE, State

_STAGE_SWEEPS = 6
"""Sweeps in one stage, at most."""
_STAGE_GAP = 0.02
"""The relative gap that ends a stage: the next C moves the solution by more."""
_LEAST_GROWTH = 2.0
"""The factor on the multipliers at the next C below which the data count as nearly separable."""


def visits_to_cross(problem: Problem) -> float:
    """The mean of ``C_i |x_i|^2``: about so many visits take a multiplier from one wall to the other."""
    return core.dot(problem.costs, problem.rows.squared_norms) / max(problem.rows.count, 1)


def warm_up_stages(problem: Problem) -> int:
    """How many times C has to be divided by 4 until one visit crosses the box."""
    visits = visits_to_cross(problem)
    if not RAISE <= visits < math.inf:
        return 0
    return 1 + math.floor(math.log(visits, RAISE))


def after_sweep(problem: Problem, state: State) -> None:
    """Go to the next stage once this one is solved as well as it needs to be."""
    state.stage_sweeps += 1
    if state.relative_gap < _STAGE_GAP or state.stage_sweeps == _STAGE_SWEEPS:
        _raise_costs(problem, state)


def _raise_costs(problem: Problem, state: State) -> None:
    """The next stage, or the end of the warm-up, from where this stage has led."""
    state.stage -= 1
    state.set_costs(problem)
    alpha = state.alpha
    linear = core.dot(alpha, state.targets)
    # D(t alpha) = t linear - t^2 quadratic with the next C, largest at t = growth.
    quadratic = 0.5 * (
        core.dot(state.w, state.w) + float(np.sum(state.coordinates[:, DIAGONAL] * alpha**2))
    )
    if problem.intercept is Intercept.REGULARISED:
        beta = problem.intercept_scaling * float(np.sum(alpha * problem.y))
        quadratic += 0.5 * beta * beta
    growth = min(RAISE, 0.5 * linear / quadratic) if quadratic > 0 else 1.0
    if growth < _LEAST_GROWTH and state.stage > 0:
        state.stage = 0
        state.set_costs(problem)
    growth = max(growth, 1.0)
    alpha *= growth
    state.w *= growth
    state.intercept.times(growth)
    state.dual = growth * linear - growth**2 * quadratic
    state.relative_gap, state.stage_sweeps = np.inf, 0
    state.last_move = None
