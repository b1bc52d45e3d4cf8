# SPDX-License-Identifier: BSD-3-Clause
"""What the rounding of a kernel's values leaves of a proof, where no way has come to ``tol``."""

from __future__ import annotations

from maxmargin import core
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate, feasible
from maxmargin.proof.model import Model
from maxmargin.types import Vector

_WORTH_NOTHING = 0.5
"""A relative gap that tells hardly more than that of no model at all, which is 1."""


def is_all_rounding(problem: Problem, on_columns: Model, known: Certificate, tol: float) -> bool:
    """Whether the answer on columns is one to other values of the kernel, as rounding makes them.

    It is not proven through the kernel, and rounding can change the objective by all that there is; or
    it is worth next to nothing there, though it is proven on the columns, as the trace of the run on
    these tells.
    """
    own, seen = on_columns.trace.records, on_columns.certificate
    if not own or seen.relative_gap <= tol:
        return False
    if _lost_by_rounding(problem, _telling(problem, seen)) > abs(known.primal):
        return True
    return own[-1].relative_gap <= tol and seen.relative_gap > _WORTH_NOTHING


def is_rounding(problem: Problem, proof: Certificate, tol: float) -> bool:
    """Whether the rounding of the kernel's values can change the objective by more than ``tol``."""
    lost = _lost_by_rounding(problem, _telling(problem, proof))
    return lost > tol * abs(proof.primal)


def _telling(problem: Problem, proof: Certificate) -> Vector:
    """The multipliers that were proven; where these are worth next to nothing, those of C."""
    if proof.relative_gap > _WORTH_NOTHING or not proof.alpha.any():
        return feasible(problem, problem.costs)
    return proof.alpha


def _lost_by_rounding(problem: Problem, alpha: Vector) -> float:
    """What the rounding of the kernel's values can change the objective by at these multipliers."""
    rows = problem.rows
    per_length, constant = rows.score_error(rows.combine(alpha * problem.y))
    return core.dot(problem.costs, per_length * rows.lengths + constant)
