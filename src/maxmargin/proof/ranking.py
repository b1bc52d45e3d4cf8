# SPDX-License-Identifier: BSD-3-Clause
"""The proof that comes with a ranking.

The problem is that of problem/ranking.py, whose rows are pairs. Any w gives an upper bound. The margins of
any w suggest a multiplier for every pair, inside its box [0, C weight_i weight_j], or of at least 0 for the
squared hinge; any multiple t of them gives with ``u = sum over pairs of alpha_ij (x_i - x_j)`` the bound

    D(t) = t sum alpha_ij  -  1/2 t^2 |u|^2                          t in [0, 1]     hinge
    D(t) = t sum alpha_ij  -  t^2 (1/2 |u|^2 + C sum loss_ij)        t >= 0          squared hinge

since for the squared hinge ``alpha_ij^2 / (4 C_ij)`` is the loss itself. The best t is taken. No multiplier
is stored: all sums, and u through one coefficient for each row, follow from the sorted scores of a w and,
for the hinge, from the width over which its slope rises. So w and that width are the whole proof.

Rounding: multipliers are defined by the computed scores, which are numbers like any other; comparisons of
margins are exact, sums are in twofold precision, and what is left of their rounding is counted against the
bound. The primal value takes every margin to be smaller by twice what a score can be off.

``Objective`` (core/passes/proof.hpp) computes P and D everywhere else, from a margin and a multiplier for
each row. Here these belong to pairs that nobody writes out, so both values are computed in this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem.ranking import Ramp, RankingProblem
from maxmargin.problem.rows import UNIT
from maxmargin.proof.certificate import Certificate, RowClass
from maxmargin.proof.solution import Solution
from maxmargin.proof.sure import Neighbourhood
from maxmargin.types import Vector

FROM_PAIRS = "the margins of pairs"
_A_FEW = 1.0 + 16.0 * UNIT
"""The factor that covers a few roundings."""


@dataclass(frozen=True, eq=False, repr=False)
class RankingCertificate(Certificate):
    """A w for ranking, and multipliers of all pairs, of which each row knows the sum over its own.

    ``alpha`` has for each row those of the pairs in which it is the more relevant one, minus the others: so
    ``w_of_alpha`` is ``sum_i alpha_i x_i``. ``margins`` are the scores of the rows.
    """

    width: float = 0.0
    """Over how much of the margin the multipliers of the hinge rise; 0 for the squared hinge."""

    @cached_property
    def kkt_violation(self) -> float:
        """The largest violation of the KKT conditions: of ``w = w_of_alpha``, and of any pair's margin.

        A pair whose multiplier is between the walls has a margin that is off 1 by half the width at most.
        """
        return max(float(np.abs(self.w - self.w_of_alpha).max(initial=0.0)), 0.5 * self.width)

    @cached_property
    def row_classes(self) -> NDArray[np.int8]:
        """Whether a row is a support vector; there are no other classes of rows here."""
        return np.where(self.alpha != 0.0, RowClass.INSIDE_MARGIN, RowClass.NOT_SUPPORT_VECTOR).astype(
            np.int8
        )

    @cached_property
    def b_interval(self) -> tuple[float, float] | None:
        """There is no intercept: it would cancel out."""
        return None

    @property
    def support(self) -> NDArray[np.intp]:
        """Indices of the rows that w is made of."""
        return np.flatnonzero(self.alpha != 0.0)

    @property
    def place(self) -> Neighbourhood:
        """Where the best w is: the objective grows by half the squared distance from it, at least."""
        return Neighbourhood(math.sqrt(2.0 * self.gap) * _A_FEW, 0.0, 0.0)

    @property
    def rows_in_words(self) -> str:
        """How many rows are in a pair that pulls."""
        return f"{len(self.support)} of {len(self.alpha)} rows are support vectors."


def certify_ranking(
    problem: RankingProblem,
    solution: Solution,
    *,
    known: Certificate | None = None,
    budget: core.Budget = core.ALL_CORES,
) -> RankingCertificate:
    """Prove what a w is worth: two passes over the data, and sums over sorted scores.

    Of this proof and the one that is known, the one with the smaller gap is kept. They are not mixed: the
    multipliers are those that w suggests.
    """
    w = np.zeros(problem.rows.columns) if solution.w is None else np.array(solution.w, np.float64)
    scores = problem.rows.scores(w, budget)
    proof = _at_zero(problem)
    if np.isfinite(scores).all():
        problem.pairs.sort(scores)
        primal = _primal(problem, w)
        if primal < math.inf:
            proof = replace(proof, w=w, primal=primal, margins=scores)
            proof = _with_multipliers(problem, proof, solution.width, budget)
    if isinstance(known, RankingCertificate) and known.relative_gap <= proof.relative_gap:
        return known
    return proof


def _at_zero(problem: RankingProblem) -> RankingCertificate:
    """What is known of w = 0 and multipliers of 0 without a pass."""
    rows = problem.rows
    upper = problem.primal_of_zero * _A_FEW
    nothing = np.zeros(rows.columns)
    each = np.zeros(rows.count)
    return RankingCertificate(problem, nothing, 0.0, upper, each, 0.0, "alpha = 0", each, nothing)


def _primal(problem: RankingProblem, w: Vector) -> float:
    """An upper bound on P(w), whose computed scores are sorted; infinite where it is beyond all numbers."""
    rows = problem.rows
    per_length, constant = rows.score_error(w)
    off = (per_length * rows.largest_length + constant) * _A_FEW
    value = (0.5 * rows.squared_norm(w) + problem.C * problem.sorted_loss(off)) * _A_FEW
    return value if math.isfinite(value) else math.inf


def _with_multipliers(
    problem: RankingProblem, proof: RankingCertificate, width: float, budget: core.Budget
) -> RankingCertificate:
    """The proof with the multipliers that the sorted scores suggest, if these are worth more than 0."""
    rows, C = problem.rows, problem.C
    squared = problem.loss.name == "squared_hinge"
    width = 0.0 if squared or not width > 0.0 else float(width)
    found = problem.sorted_multipliers(Ramp.of(problem.loss.name, width))
    total = C * (found.total - found.total_off) / _A_FEW
    combined = rows.combine(found.signed, budget)
    off = rows.combined_error(found.signed) + core.dot(found.off, rows.lengths) * (
        1.0 + core.sum_rounding(rows.count)
    )
    curvature = 0.5 * C * C * rows.squared_norm_of(found.signed, combined, off) * _A_FEW
    if squared:
        curvature += C * problem.sorted_loss(0.0)
    if not (total > 0.0 and math.isfinite(curvature)):
        return proof
    t = 0.5 * total / curvature if curvature > 0.0 else 1.0
    t = t if squared else min(t, 1.0)
    dual = t * total - t * t * curvature * _A_FEW
    dual -= 4.0 * UNIT * t * total
    if not dual > proof.dual:
        return proof
    return replace(
        proof,
        alpha=t * C * found.signed,
        dual=dual,
        alpha_from=FROM_PAIRS,
        w_of_alpha=t * C * combined,
        width=width,
    )
