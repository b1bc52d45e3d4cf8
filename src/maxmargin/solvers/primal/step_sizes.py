# SPDX-License-Identifier: BSD-3-Clause
"""Step sizes eta_1, eta_2, ... (000, 001): a rule by its name, any function of t, or any sequence.

All are steps on F, the objective over the sum of the costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Annotated, Any

import numpy as np

from maxmargin.problem import Problem
from maxmargin.tools.parameters import Check, Expected, wrong
from maxmargin.types import Vector


def _is_size(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < math.inf


def _are_sizes(value: Any) -> bool:
    if not isinstance(value, list | tuple | np.ndarray) or np.ndim(value) != 1:
        return False
    return len(value) > 0 and all(map(_is_size, value))


StepFunction = Annotated[Callable[[int], float], Expected("a function of t = 1, 2, ...")]
"""It is called once for every step, with the number of the step, and gives its size."""
StepSequence = Annotated[Sequence[float] | Vector, Check(_are_sizes, "a sequence of numbers above 0")]
"""The size of step t is its member t; the steps after its end have the size of its last member."""


def is_automatic(step_size: Any) -> bool:
    """Whether the solver finds the sizes itself."""
    return isinstance(step_size, str) and step_size == "auto"


def step_sizes(solver: Any, problem: Problem, t: Vector) -> Vector:
    """The sizes of the steps with the numbers t, by the solver's ``step_size``, ``eta`` and ``t0``."""
    rule = solver.step_size
    sizes: Vector
    if callable(rule):
        sizes = np.array([_called(solver, rule, int(number)) for number in t])
    elif not isinstance(rule, str):
        sizes = np.asarray(rule, np.float64)[np.minimum(t, len(rule)).astype(np.int64) - 1]
    elif rule == "constant":
        sizes = np.full_like(t, solver.eta)
    elif rule == "decreasing":
        sizes = solver.eta / (t + solver.t0)
    else:  # "lambda" or "pegasos": eta / (lambda t)
        sizes = solver.eta * problem.total_cost / t
    return sizes


def _called(solver: Any, rule: Callable[[int], float], t: int) -> float:
    size = rule(t)
    if not _is_size(size):
        cure = f"At t = {t} it gives {size!r}."
        raise wrong(solver, "step_size", rule, "a function whose values are numbers above 0", cure)
    return float(size)
