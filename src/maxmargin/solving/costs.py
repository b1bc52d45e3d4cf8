# SPDX-License-Identifier: BSD-3-Clause
"""What the ways to solve a linear problem are expected to cost, in visits of a stored value.

A visit is what a sweep of dual coordinate ascent does with a value that is in the cache. The constants that
turn other work into visits were measured once: see docs/how_to_choose.md. Nothing here knows the clock, so
the same data and seed choose the same solver on every machine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from maxmargin.problem import Problem
from maxmargin.problem.rows import RowSpace
from maxmargin.solvers.ascent.warm_up import visits_to_cross
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.second_order.opening import sample_size
from maxmargin.solvers.second_order.system import is_compiled, nearly_full
from maxmargin.solvers.sizes import (
    CACHED_VALUES,
    FEW_VALUES,
    LARGEST_SIDE,
    UNBLOCKED_COLUMNS,
)

_PASS = 0.7
"""Visits that a value in a pass costs: rows come in order, and nothing is written."""
_FLOP = 0.06
"""Visits that a multiply-add of a dense factorisation costs: BLAS, with one thread."""
CALL = 40_000.0
"""A step beside its passes, in visits: calls from Python, and what they allocate."""
_ROW, _ROW_FROM_MEMORY = 30.0, 250.0
"""What it costs to come to a row and to leave it, in visits; and to fetch a sparse one from memory, where
the data are too large for the cache and rows come in a shuffled order."""


class _Steps(NamedTuple):
    """Second-order steps: (base + per_digit digits of tol) (1 + scarcity sqrt(columns / rows)).

    The fewer rows there are to a column, the longer it takes to find the rows that are free.
    """

    base: float
    per_digit: float
    scarcity: float


_STEPS = {"hinge": _Steps(4.0, 2.0, 5.0)}
"""Steps of ``augmented_lagrangian``, whose number grows with the digits of tol: on 2,000 rows of 200
columns of noise 8 of them reach 0.1, 32 reach 1e-4, and 62 reach 1e-8."""
_STEPS_OF_SMOOTH = _Steps(3.4, 0.15, 3.0)
"""Steps of ``newton``, for which tol hardly counts: on the same rows 4 reach 0.1, and 5 reach 1e-8."""
_FEW_VISITS, _FEWER = 100.0, 0.2
"""The mean of C_i |x_i|^2 below which ``newton`` takes fewer steps, and the power of it with which they
fall: where C is small, nearly all rows keep their loss, and the first step is nearly the last."""
_STEPS_AFTER_SAMPLE = 0.5
"""The share of these steps that is left where the solution of a sample of the rows is the start."""
_DIGITS = 1.0, 12.0
"""Digits of tol, at least and at most."""
_FREE_OF_HINGE = 0.1, 0.8
"""Rows on the margin, as a share of all rows, and at least of the smaller side: of many short rows few end
up there, of few long ones nearly as many as there are columns."""
_FREE_OF_SMOOTH = 0.6
"""Rows with a loss, as a share of all rows."""
_CHANGES_OF_HINGE = 0.02
"""Rows that come to the margin or leave it in a step, as a share of all rows."""
_ON_ROWS = 0.8
"""The share of the columns up to which so many free rows make the smaller system."""
_COPIES = 8.0
"""Visits for each value of a system in a step: it is put together, scaled and copied."""
_COMPILED, _COMPILED_OF_HINGE = 0.8, 0.5
"""The share that is left of all this on rows that are nearly full, whose steps the core takes whole."""
_IN_COMMON = 10.0
"""Columns that two sparse rows have in common, beside those that they had if no column had more values."""
_SETS, _FACTORS, _PASSES, _CALLS = 80.0, 5.0, 12.0, 60.0
"""What ``active_set`` takes as a rule: visits for each value of its matrix, factors of it, passes over the
data, and ``CALL``."""
_ROWS_IN_SETS = 2.0
"""Rows to a column up to which ``active_set`` takes few steps with the hinge: of more, most depend on the
others. With the squared hinge they take few whatever the rows: D keeps every system regular."""
_INTERIOR_STEPS = 10.0
"""Steps of the interior point, which hardly depend on the data."""
_INTERIOR_PASSES, _INTERIOR_ROW, _INTERIOR_CALLS = 8.0, 200.0, 30.0
"""What one of them takes beside its factor: passes, visits for each row, and ``CALL``."""


class Costs(NamedTuple):
    """What the ways on from the ascent cost; infinite where one is none."""

    second: float
    """``augmented_lagrangian`` for the hinge, ``newton`` for the smooth losses."""
    active_set: float = math.inf
    interior_point: float = math.inf


NONE = Costs(math.inf)
"""No way on."""


def costs_of_ways(problem: Problem, tol: float, inside: int | None = None) -> Costs:
    """What the ways on cost, with so many multipliers inside their walls; None: that is not known yet."""
    second = second_order_cost(problem, tol, inside)
    sets = active_set_cost(problem, round(_free(problem)) if inside is None else inside)
    return Costs(second, sets, interior_point_cost(problem))


def sweep_cost(problem: Problem, visited: int) -> float:
    """A sweep of dual coordinate ascent over so many rows."""
    rows = problem.rows
    far = rows.stored > CACHED_VALUES and not nearly_full(rows)
    row = _ROW_FROM_MEMORY if far else _ROW
    return (rows.stored / max(rows.count, 1) + row) * visited + CALL


def second_order_steps(problem: Problem, tol: float) -> float:
    """How many steps ``augmented_lagrangian`` (hinge) or ``newton`` (the smooth losses) will take."""
    n, d = problem.rows.count, problem.rows.columns
    digits = min(max(-math.log10(max(tol, 1e-300)), _DIGITS[0]), _DIGITS[1])
    base, per_digit, scarcity = _STEPS.get(problem.loss.name, _STEPS_OF_SMOOTH)
    steps = (base + per_digit * digits) * (1.0 + scarcity * math.sqrt(min(1.0, d / max(n, 1))))
    if problem.loss.name == "squared_hinge":
        steps = max(1.0, steps * min(1.0, visits_to_cross(problem) / _FEW_VISITS) ** _FEWER)
    return steps * (_STEPS_AFTER_SAMPLE if sample_size(problem) > 0 else 1.0)


def second_order_cost(problem: Problem, tol: float, inside: int | None = None) -> float:
    """``augmented_lagrangian`` or ``newton``."""
    rows, loss = problem.rows, problem.loss.name
    n, d, stored = rows.count, rows.columns, max(rows.stored, rows.count)
    steps = second_order_steps(problem, tol)
    free = _free(problem) if inside is None else float(inside)
    if min(free, float(d)) > LARGEST_SIDE:
        return math.inf  # no factor: conjugate gradients may need any number of passes
    full = nearly_full(rows)
    if free < _ON_ROWS * d:
        matrix = free * free * _product(rows)
        factor = _FLOP * free**3 / 6.0 + _COPIES * free * free
    else:
        changes = n if inside is None else free  # the first matrix of newton is one of all rows
        if loss == "hinge":
            changes = _CHANGES_OF_HINGE * n * steps
        elif loss == "logistic":
            changes = n * steps
        width = stored / max(n, 1)
        matrix = changes * 0.5 * (_FLOP * d * d if full else width * width)
        factor = _FLOP * d**3 / 6.0 + (0.0 if is_compiled(problem) else _COPIES * d * d)
    part = 1.0
    if d > UNBLOCKED_COLUMNS and full and is_compiled(problem):
        part = _COMPILED_OF_HINGE if loss == "hinge" else _COMPILED
    call = 0.0 if rows.stored <= FEW_VALUES and is_compiled(problem) else CALL
    return part * (steps * (2.0 * _PASS * stored + factor + call) + matrix)


def active_set_cost(problem: Problem, inside: int) -> float:
    """``active_set`` where so many multipliers are inside their walls."""
    rows = problem.rows
    # With more of them than columns the system is nearly singular, and sets change without an end.
    regular = problem.loss.name == "squared_hinge" or rows.count <= _ROWS_IN_SETS * rows.columns
    too_many = inside > min(LARGEST_SIDE, rows.columns)
    if too_many or not regular or problem.targets is not None:
        return math.inf
    matrix = inside**2 * (_product(rows) + _SETS)
    return matrix + _FACTORS * _FLOP * inside**3 / 6.0 + _PASSES * _PASS * rows.stored + _CALLS * CALL


def interior_point_cost(problem: Problem) -> float:
    """``interior_point``, whose steps are nearly the same ones for all data and costs."""
    rows = problem.rows
    if InteriorPoint().accepts(problem) is not None or problem.targets is not None:
        return math.inf
    n, d, stored = rows.count, rows.columns, max(rows.stored, rows.count)
    width, once = stored / max(n, 1), 0.0
    if n < _ON_ROWS * d:
        once, factor = n * n * _product(rows), _FLOP * n**3 / 6.0 + _COPIES * n * n
    else:
        factor = n * 0.5 * (_FLOP * d * d if nearly_full(rows) else width * width) + _FLOP * d**3 / 6.0
    step = factor + _INTERIOR_PASSES * _PASS * stored + _INTERIOR_ROW * n + _INTERIOR_CALLS * CALL
    return once + _INTERIOR_STEPS * step


def _free(problem: Problem) -> float:
    """Rows whose multipliers will be inside their walls, as far as the shape tells."""
    n, d = problem.rows.count, problem.rows.columns
    if problem.loss.name == "hinge":
        return max(_FREE_OF_HINGE[0] * n, _FREE_OF_HINGE[1] * min(n, d))
    return _FREE_OF_SMOOTH * n


def _product(rows: RowSpace) -> float:
    """The inner product of two rows."""
    if nearly_full(rows):
        return _FLOP * rows.columns
    width = rows.stored / max(rows.count, 1)
    return min(width, _IN_COMMON * width * width / max(rows.columns, 1) + 1.0)
