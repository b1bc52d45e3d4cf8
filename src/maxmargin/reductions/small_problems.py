# SPDX-License-Identifier: BSD-3-Clause
"""Small kernel problems whose matrix is at hand: all of a fit in one call of the core.

A pair of classes with a hundred rows takes some ten microseconds to solve and to prove; a run of ``solve``
and its certificate in Python would take twenty times as long. The answers are those of ``solve``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.certificate import ROUNDING, Certificate
from maxmargin.losses import HINGE
from maxmargin.model import Model, Record, Status, Trace
from maxmargin.problem import Intercept, Problem
from maxmargin.rows import Rows
from maxmargin.types import Vector

STORY = "working_set: for few rows all of them are in the set, and all values of the kernel are at hand."
MOST_ROUNDS = 100
"""Of at most 20 steps for each row; harder problems are left to ``solve``."""


class Part(NamedTuple):
    """One of the problems: which rows of the matrix, their labels and costs."""

    which: NDArray[np.intp]
    y: Vector
    costs: Vector


def solve_small(
    matrix: NDArray[np.float64],
    parts: Sequence[Part],
    tol: float,
    tiny: int,
    budget: core.Budget,
    *,
    kernel_is_none: bool = False,
    rounds: int = MOST_ROUNDS,
) -> list[Model]:
    """Minimise the hinge problem with exact intercept on each part of a kernel matrix.

    Until the relative gap is at most ``tol``, or, for at most ``tiny`` rows, until only rounding is left. A
    model may fall short: its status says so. So it does where the kernel is known to be none.
    """
    begun = time.perf_counter()
    order = np.concatenate([part.which for part in parts])
    y, costs = np.concatenate([part.y for part in parts]), np.concatenate([part.costs for part in parts])
    begins = np.concatenate([[0], np.cumsum([len(part.which) for part in parts])])
    alpha, margins, values = np.zeros(len(y)), np.empty(len(y)), np.empty((len(parts), 5))
    status = Status.RULE_FIRED
    try:
        steps = core.solve_small(
            matrix, order, begins, y, costs, alpha, margins, values, tol, tiny, rounds, budget
        )
    except KeyboardInterrupt:
        budget.stop()
        steps, status = [0] * len(parts), Status.INTERRUPTED
    seconds = time.perf_counter() - begun
    beta = alpha * y
    whole = Problem(Rows(matrix, check_finite=False, keep_zeros=True), y, costs, HINGE, Intercept.EXACT)
    together = Certificate(whole, beta, 0.0, math.inf, alpha, 0.0, "the working set", margins, beta)
    classes = together.row_classes
    violations = np.maximum.reduceat(HINGE.kkt_violation(margins, alpha, costs), begins[:-1])
    models = []
    for k, (b, primal, dual, low, high) in enumerate(values.tolist()):
        these = slice(begins[k], begins[k + 1])
        if 0.0 < dual - primal <= ROUNDING * abs(primal):
            dual = primal
        w = beta[these]
        proof = Certificate(None, w, b, primal, alpha[these], dual, together.alpha_from, margins[these], w)
        proven = proof.proven and not kernel_is_none
        proof = proof.with_known(float(violations[k]), classes[these], (low, high), proven)
        gap = proof.relative_gap
        trace = Trace([Record(steps[k], seconds, primal, dual, gap)])
        ended = Status.within_tol(proof) if gap <= tol else status
        models.append(Model(proof, trace, ended, tol, steps[k], STORY, {}, STORY))
    return models
