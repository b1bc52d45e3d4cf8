# SPDX-License-Identifier: BSD-3-Clause
"""The proof that no hyperplane separates the classes: weights under which their convex hulls meet.

Farkas: either some (w, b) has y_i (<w, x_i> + b) > 0 for all rows, or there are weights, not negative and
of sum 1 in each class, that make the same point of both classes. Not both: the sum of y_i (<w, x_i> + b)
under such weights is 0. Without intercept it is the hull of the rows y_i x_i that holds 0, and all weights
together have the sum 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.exact_hulls import has_positive_solution
from maxmargin.solvers import sizes
from maxmargin.types import Vector

_MOST_NAMED = 10
"""Rows that a message names at most."""
_MEET = 1e-12
"""Hulls that are nearer than this share of the data's scale meet."""
_EPSILON = float(np.finfo(np.float64).eps)


class InseparableError(ValueError):
    """No hyperplane separates the classes; ``certificate`` is the proof."""

    def __init__(self, certificate: InseparabilityProof) -> None:
        super().__init__(str(certificate))
        self.certificate = certificate

    def __reduce__(self) -> Any:
        return type(self), (self.certificate,)


@dataclass(frozen=True, eq=False)
class InseparabilityProof:
    """Weights of rows that make the same point of both classes."""

    weights_positive: Vector
    """One for each row, 0 for rows of the negative class; not negative."""
    weights_negative: Vector
    distance: float
    """The distance of the two points, 0 but for rounding: no margin can be above half of it."""
    scale: float
    """The scale of the data: the largest distance of a row from their mean, or from 0 without intercept."""
    blur: float
    """What rounding can make of a distance of 0."""
    intercept: Intercept
    positive_label: Any = 1.0
    several_classes: bool = False

    @property
    def weights(self) -> Vector:
        """The weights of all rows; each row belongs to one class."""
        return self.weights_positive + self.weights_negative

    @property
    def rows(self) -> NDArray[np.intp]:
        """Indices of the rows that have a weight, the heaviest first."""
        weights = self.weights
        order = np.argsort(-weights, kind="stable")
        return order[: np.count_nonzero(weights)]

    @property
    def meets(self) -> bool:
        """Whether the distance is 0, but for rounding."""
        return self.distance <= max(_MEET * self.scale, self.blur)

    def about(self, label: Any, several: bool) -> InseparabilityProof:
        """The same proof for labels of any kind, of which ``label`` is the positive one."""
        plain = label.item() if isinstance(label, np.generic) else label
        return replace(self, positive_label=plain, several_classes=several)

    def check(self, X: Any, y: ArrayLike) -> float:
        """The distance of the two points, computed anew from the data; needs nothing of maxmargin.

        Raises ValueError where the weights are not what a proof needs.
        """
        matrix = X if sparse.issparse(X) else np.asarray(X)
        positive = np.asarray(y) == self.positive_label
        ours, theirs = self.weights_positive, self.weights_negative
        if matrix.shape[0] != len(ours) or positive.shape != ours.shape:
            raise ValueError(f"The proof is about {len(ours)} rows. Got {matrix.shape[0]} instead.")
        if (ours < 0).any() or (theirs < 0).any():
            raise ValueError("The weights of a proof must not be negative.")
        if ours[~positive].any() or theirs[positive].any():
            raise ValueError("The proof gives weight to rows of the other class: these are other labels.")
        total = ours.sum(), theirs.sum()
        sums = [sum(total)] if self.intercept is Intercept.NONE else total
        if not np.allclose(sums, 1.0, rtol=0.0, atol=1e-12):
            raise ValueError("The weights of a proof must have the sum 1.")
        difference = matrix.T @ (ours - theirs)
        return float(np.linalg.norm(difference))

    @property
    def statement(self) -> str:
        """What is proven, and which rows do it."""
        rows = self.rows
        named = ", ".join(map(str, rows[:_MOST_NAMED].tolist()))
        if len(rows) > _MOST_NAMED:
            named += ", ..., the heaviest first"
        who = f"Class {self.positive_label} against the rest" if self.several_classes else "The two classes"
        no_intercept = self.intercept is Intercept.NONE
        where = " by a hyperplane through 0" if no_intercept else ""
        if no_intercept:
            what = "weights that sum to 1 bring the rows y_i x_i to 0"
        else:
            what = "weights that sum to 1 in each class make one point of both"
        return (
            f"{who} cannot be separated{where}: {what}, so the convex hulls meet (within "
            f"{self.distance:.1e}, where the data reach over {self.scale:.3g}). {len(rows)} "
            f"{'row is' if len(rows) == 1 else 'rows are'} involved, counted from 0: {named}."
        )

    def __str__(self) -> str:
        return (
            f"{self.statement} Give C a finite value, which allows slack, or correct these rows. The "
            "weights are in the certificate; its check(X, y) adds them up again."
        )


def scale_of(problem: Problem) -> tuple[float, float]:
    """The largest distance of a row from the mean (from 0 without intercept), and what counts as 0."""
    counted = problem.costs > 0
    squared = problem.rows.squared_norms[counted]
    largest = math.sqrt(float(squared.max(initial=0.0)))
    scale = largest
    if problem.intercept is not Intercept.NONE and counted.any():
        mean = problem.rows.combine(counted / np.count_nonzero(counted))
        squared = squared - 2.0 * problem.rows.scores(mean)[counted] + core.dot(mean, mean)
        scale = math.sqrt(max(float(squared.max(initial=0.0)), 0.0))
    return scale, 16.0 * _EPSILON * largest


def proof_by_weights(problem: Problem, alpha: Vector) -> InseparabilityProof | None:
    """What multipliers are worth as a proof; None where a class has none."""
    positive = np.where(problem.y > 0, alpha, 0.0)
    negative = np.where(problem.y < 0, alpha, 0.0)
    sums = float(positive.sum()), float(negative.sum())
    if problem.intercept is Intercept.NONE:
        sums = (sum(sums), sum(sums))
    if min(sums) <= 0.0:
        return None
    positive /= sums[0]
    negative /= sums[1]
    distance = float(np.linalg.norm(problem.rows.combine(positive - negative)))
    return InseparabilityProof(positive, negative, distance, *scale_of(problem), problem.intercept)


def equal_rows(problem: Problem) -> InseparabilityProof | None:
    """The simplest proof, found in one pass: a row that occurs with both labels.

    Without intercept, y_i x_i = -y_j x_j or x_i = 0. Rows are told apart by their place along one random
    direction, and those at the same place are compared.
    """
    counted = np.flatnonzero(problem.costs > 0)
    along = np.random.default_rng(0).standard_normal(problem.rows.columns)
    place, side = problem.rows.scores(along)[counted], problem.y[counted]
    if problem.intercept is Intercept.NONE:
        place *= side
        place, side = np.abs(place), np.sign(place)
        empty = counted[place == 0.0]
        empty = empty[problem.rows.squared_norms[empty] == 0.0]
        if len(empty):
            return _of_rows(problem, empty[:1])
    order = np.lexsort((side, place))
    place, side = place[order], side[order]
    pairs = np.flatnonzero((place[1:] == place[:-1]) & (side[1:] != side[:-1]))
    for at in pairs[:_MOST_NAMED]:
        proof = _of_rows(problem, counted[order[at : at + 2]])
        if proof is not None and proof.distance == 0.0:
            return proof
    return None


def _of_rows(problem: Problem, rows: NDArray[np.intp]) -> InseparabilityProof | None:
    alpha = np.zeros(problem.rows.count)
    alpha[rows] = 1.0
    return proof_by_weights(problem, alpha)


def meets_exactly(problem: Problem, proof: InseparabilityProof, budget: core.Budget) -> bool:
    """Whether weights near those of a proof make exactly one point of both classes."""
    rows = np.sort(proof.rows).astype(np.int64)
    if not proof.meets:
        return False
    system, right = _equations(problem, rows, problem.rows.dense(rows, budget))
    return has_positive_solution(system, right, proof.weights[rows])


def _equations(problem: Problem, rows: NDArray[np.intp], block: Matrix) -> tuple[Matrix, Vector]:
    """``sum_i alpha_i y_i x_i = 0``, and the sums of the classes' weights are 1."""
    y = problem.y[rows]
    if problem.intercept is Intercept.NONE:
        sums = np.ones((1, len(rows)))
    else:
        sums = np.stack([y > 0, y < 0]).astype(np.float64)
    right = np.append(np.zeros(block.shape[1]), np.ones(len(sums)))
    return np.vstack([(block * y[:, np.newaxis]).T, sums]), right


def proof_by_least_squares(
    problem: Problem, candidates: NDArray[np.intp], budget: core.Budget
) -> InseparabilityProof | None:
    """A proof with at most d + 2 of the candidates (Caratheodory); None where none is found.

    Non-negative least squares bring the classes' points together as far as they will go, and end with
    linearly independent rows. Of many candidates, some are drawn by lot first: any rows whose hulls meet
    will do, and where the classes are mixed, a few are enough.
    """
    size = problem.rows.columns + 2
    most = sizes.FEW_ROWS_PROOF_VALUES // size
    if not len(candidates) or (len(candidates) > most and most < 2 * size):
        return None
    order = np.random.default_rng(0).permutation(candidates)
    for count in sorted({min(8 * size, most, len(order)), min(most, len(order))}):
        alpha = _nearest_point(problem, order[:count], budget)
        proof = None if alpha is None else proof_by_weights(problem, alpha)
        if proof is not None and meets_exactly(problem, proof, budget):
            return proof
        if budget.spent:
            break
    return None


def _nearest_point(problem: Problem, rows: NDArray[np.intp], budget: core.Budget) -> Vector | None:
    """Multipliers on these rows that bring ``sum_i alpha_i y_i x_i`` to 0 and the sums to 1, nearly."""
    from scipy.optimize import nnls

    block = problem.rows.dense(np.ascontiguousarray(rows, np.int64), budget)
    if problem.intercept is not Intercept.NONE:
        block -= block.mean(axis=0)  # with equal sums, only the rounding depends on where 0 is
    # Columns of one scale: small ones may be all that separates the classes.
    block /= np.maximum(np.abs(block).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
    left, right = _equations(problem, rows, block)
    try:
        solved, _ = nnls(left, right)
    except RuntimeError:  # too many iterations
        return None
    alpha = np.zeros(problem.rows.count)
    alpha[rows] = solved
    return alpha
