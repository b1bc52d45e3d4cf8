# SPDX-License-Identifier: BSD-3-Clause
"""What a proof says about the margin of a row when it is left out, without another fit.

Let P_i be the objective without row i, u = (w, b) any point, z_j = (x_j, 1), or x_j without intercept, and
1/2 u'Ru the regulariser. Where losses are smooth, the minimisers u + d of P_i are near u, since P_i is
curved:

    P_i(u + d) >= P_i(u) + <g, d> + 1/2 d'Hd        g = Ru - sum_{j != i} a_j y_j z_j, the gradient
                                                    H = R + sum_{j != i} k_j z_j z_j'

with a_j = -C_j loss'(m_j). The curvature k_j is one that row j keeps as long as its margin moves by at most
t_j: 2 C_j for a squared hinge with t_j = 1 - m_j > 0, ``C_j loss''(|m_j| + t_j)`` for the logistic loss.

Let ``|g|^2 = g'H^-1 g`` and ``|d|^2 = d'Hd``. Where |d| is above ``2 |g|``, P_i(u + d) is above P_i(u). If
no margin moves by more than its t_j up to there, all minimisers are inside, as P_i is convex. There
P_i(u) >= P_i(u + d) + 1/2 |d|^2 as well, since u + d is a minimiser. The two lines add up to

    |d|^2 + <g, d> <= 0        or        |d + H^-1 g / 2| <= |g| / 2.

At an optimum u of P, g = a_i y_i z_i. Then the margin of row i is between m_i - a_i z_i'H^-1 z_i and m_i.
The hinge has no curvature: left_out_hinge.py bounds its rows by multipliers.

All bounds are rounded outwards. docs/certificate.md has the proof at more leisure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.rows import UNIT, Matrix
from maxmargin.proof.certificate import Certificate
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector

MOST_COLUMNS = 1000
"""Columns up to which a matrix of all pairs of them takes no longer than a fit."""
_BLOCK = 4096
"""Rows that are made dense at a time: a few MiB."""
_WORST_ROUNDING = 1e-3
"""The share of the smallest curvature that rounding may take; above it nothing is said."""
_ROUNDINGS = 16.0
"""Roundings on the way to a bound besides those of its longest sum."""


class Interval(NamedTuple):
    """Two ends for each row; infinite where nothing is proven."""

    low: Vector
    high: Vector


def errors_of_margins(problem: Problem, proof: Certificate) -> Vector:
    """How far the margins of a certificate can be off."""
    off = proof.off(problem.rows)
    errors: Vector = off.per_length * problem.rows.lengths + off.constant
    return errors + 4.0 * UNIT * (np.abs(proof.margins) + 2.0 * abs(proof.b))


def no_better_without(problem: Problem, proof: Certificate) -> Vector:
    """At most the margins that rows have at any minimiser u' of the problem without them, one at a time.

    ``P(u') >= D`` and ``P_i(u') <= P_i(u)``: the difference is that the loss of the row is at least the one
    at u, less a gap. No loss rises with its margin.
    """
    costs, gap = problem.costs, proof.primal - proof.dual
    gap = (max(gap, 0.0) + 4.0 * UNIT * proof.primal) if proof.proven else math.inf
    counted = costs > 0.0
    errors = errors_of_margins(problem, proof)
    losses = problem.loss.value(proof.margins + errors) * (1.0 - _ROUNDINGS * UNIT)
    losses -= np.divide(gap, costs, out=np.full(len(costs), math.inf), where=counted)
    seen = losses > 0.0
    least = np.where(seen, losses, 1.0) * (1.0 - _ROUNDINGS * UNIT)
    if problem.loss.name == "logistic":
        margins = -least - np.log(-np.expm1(-least))
    else:
        margins = 1.0 - (np.sqrt(least) if problem.loss.name == "squared_hinge" else least)
    highest: Vector = np.where(seen, margins + _ROUNDINGS * UNIT * (1.0 + np.abs(margins)), math.inf)
    return highest


class _Bent(NamedTuple):
    """What every row adds to the lower bound on the objective."""

    multipliers: Vector
    off: Vector
    """How far rounding can put each multiplier off."""
    curvatures: Vector
    ranges: Vector
    """By how much a margin may move until its curvature is lost."""


def _bent(problem: Problem, proof: Certificate, errors: Vector, reach: float) -> _Bent:
    """What rows add; of the squared hinge, those count whose margins lack at least ``reach``."""
    margins, costs, loss = proof.margins, problem.costs, problem.loss
    alpha = loss.multiplier(margins, costs)
    if loss.name == "squared_hinge":
        ranges = 1.0 - margins - errors
        counted = ranges >= reach
        curvatures, steepest = np.where(counted, 2.0 * costs, 0.0), 2.0
    else:
        ranges = np.full(len(margins), reach)
        slopes = -LOSSES["logistic"].derivative(np.abs(margins) + errors + reach)
        curvatures, steepest = costs * slopes * (1.0 - slopes), 0.25
    return _Bent(alpha, steepest * costs * errors + _ROUNDINGS * UNIT * alpha, curvatures, ranges)


class _Metric:
    """H of all rows, held by its Cholesky factor."""

    def __init__(self, problem: Problem, curvatures: Vector) -> None:
        self.rows, self.with_intercept = problem.rows, problem.intercept is not Intercept.NONE
        matrix = np.diag(problem.regulariser_diagonal())
        d = self.rows.columns
        if curvatures.any():
            matrix[:d, :d] += self.rows.gram(curvatures)
            if self.with_intercept:
                matrix[:d, d] = matrix[d, :d] = self.rows.combine(curvatures)
                matrix[d, d] += curvatures.sum()
        self.least = float(eigvalsh(matrix, subset_by_index=[0, 0])[0])
        terms = np.count_nonzero(curvatures) + len(matrix) ** 2 + _ROUNDINGS
        lost = 8.0 * terms * UNIT * float(np.trace(matrix))
        self.is_sound = self.least > 0.0 and lost <= _WORST_ROUNDING * self.least
        if self.is_sound:
            self.looser = 1.0 + 4.0 * lost / self.least
            self.least /= self.looser
            self.factor = cholesky(matrix, lower=True)

    def squared_lengths(self, which: Indices) -> Vector:
        """``z_i'H^-1 z_i`` of some rows, or a little more."""
        out, d = np.empty(len(which)), self.rows.columns
        for begin in range(0, len(which), _BLOCK):
            part = which[begin : begin + _BLOCK]
            z = np.ones((len(part), len(self.factor)))
            z[:, :d] = self.rows.dense(part)
            out[begin : begin + len(part)] = self._squared(z.T)
        return out

    def length(self, vector: Vector) -> float:
        """``sqrt(v'H^-1 v)``, or a little more."""
        return math.sqrt(float(self._squared(vector[:, np.newaxis])[0]))

    def _squared(self, columns: Matrix) -> Vector:
        solved = solve_triangular(self.factor, columns, lower=True, check_finite=False, overwrite_b=True)
        lengths: Vector = np.einsum("ij,ij->j", solved, solved) * self.looser
        return lengths


@one_blas_thread()
def left_out_bounds(problem: Problem, proof: Certificate, which: Indices, reach: float) -> Interval:
    """The margins of some rows at every minimiser of the problem without the row, one row at a time.

    ``proof`` is a certificate of the whole problem, and ``reach`` by how much margins may move: a larger
    one allows for more change, and less curvature.
    """
    nothing = Interval(np.full(len(which), -math.inf), np.full(len(which), math.inf))
    rows, y, d = problem.rows, problem.y, problem.rows.columns
    smooth = problem.loss.name in ("squared_hinge", "logistic")
    if not smooth or rows.has_kernel or d > MOST_COLUMNS or not proof.proven:
        return nothing
    errors = errors_of_margins(problem, proof)
    bent = _bent(problem, proof, errors, reach)
    metric = _Metric(problem, bent.curvatures)
    if not metric.is_sound:
        return nothing
    point = proof.w if not metric.with_intercept else np.append(proof.w, proof.b)
    pulls = bent.multipliers * y
    pulled = rows.combine(pulls)
    if metric.with_intercept:
        pulled = np.append(pulled, pulls.sum())
    of_rows = np.hypot(rows.lengths, 1.0 if metric.with_intercept else 0.0)
    regulariser = problem.regulariser_diagonal()
    sizes = bent.off + (len(y) + _ROUNDINGS) * UNIT * bent.multipliers
    unseen = float(sizes @ of_rows) + 4.0 * UNIT * float(np.abs(regulariser * point).sum())
    rest = metric.length(regulariser * point - pulled) + unseen * 1.01 / math.sqrt(metric.least)

    bending = np.flatnonzero(bent.curvatures)
    nearest = 0.0  # the most that a margin moves, in units of how far it may
    squared = np.zeros(len(y))
    if len(bending):
        squared[bending] = metric.squared_lengths(bending)
        nearest = float((np.sqrt(squared[bending]) / bent.ranges[bending]).max())
    others = which[bent.curvatures[which] == 0.0]
    squared[others] = metric.squared_lengths(others)
    own, a, m = squared[which], bent.multipliers[which], proof.margins[which]
    left = 1.0 - bent.curvatures[which] * own * (1.0 + _ROUNDINGS * UNIT)
    known = left > UNIT**0.5
    left = np.where(known, left, 1.0)
    # Without its own curvature, z'(H - k z z')^-1 z = z'H^-1 z / (1 - k z'H^-1 z); no other grows by more.
    own, rest_of = np.sqrt(own / left), rest / np.sqrt(left)
    pull = rest_of + a * own
    known &= 2.0 * pull * nearest < (1.0 - 1e-9) * np.sqrt(left)
    centre = m - 0.5 * a * own**2
    away = own * 0.5 * (rest_of + pull)
    away = away * (1.0 + 2.0 * _ROUNDINGS * UNIT) + errors[which] + 4.0 * UNIT * np.abs(centre)
    return Interval(np.where(known, centre - away, -math.inf), np.where(known, centre + away, math.inf))
