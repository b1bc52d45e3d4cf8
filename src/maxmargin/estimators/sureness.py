# SPDX-License-Identifier: BSD-3-Clause
"""Between which values the best model's scores are, and which rows it decides as the fitted one does.

The mathematics is in proof/sure.py. Here an estimator's parts are put together for it: what the fit has
kept of its problems, and the lengths of the rows that are asked about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernels.base import Function, Kernel, Precomputed
from maxmargin.kernels.rounding import has_exact_sums, rounding_of
from maxmargin.problem import Intercept
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import each_of
from maxmargin.proof.sure import (
    Matrix,
    Neighbourhood,
    SettledRows,
    Side,
    kernel_errors,
    linear_errors,
    margin_bounds,
    neighbourhood,
    settled_rows,
)
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.reductions.decompositions import Decomposition
from maxmargin.reductions.joint_classes import constant_of, of_classes, of_scores
from maxmargin.types import Indices, Vector

OPEN, WRONG, RIGHT = -1, 0, 1
"""What is known of the class that a model gives a row."""


def places_of(estimator: Any) -> list[Neighbourhood]:
    """Where the best model of each problem is; they are found once, when they are first asked for."""
    places: list[Neighbourhood] | None = estimator.__dict__.get("_places")
    if places is None:
        places = [neighbourhood(proof, side) for proof, side in _proofs_and_sides(estimator)]
        estimator._places = places
    return places


def has_place(estimator: Any) -> bool:
    """Whether the gap bounds how far the best model is: not with the l1 penalty."""
    return bool(estimator._stated_problem.get("penalty", "l2") == "l2")


def settled_of(estimator: Any) -> list[SettledRows]:
    """The training rows of each problem whose multipliers at the optimum are known."""
    return [settled_rows(proof, side) for proof, side in _proofs_and_sides(estimator)]


def accuracy_bounds(estimator: Any, which: Indices) -> tuple[float, float]:
    """Between which shares of some rows of the fit, as a rule of no weight, the best model has right."""
    outline, low, high = estimator._outline, [], []
    for proof, side in _proofs_and_sides(estimator):
        least, most = margin_bounds(proof, side)
        ours = side.y[which] > 0.0
        low.append(np.where(ours, least[which], -most[which]))
        high.append(np.where(ours, most[which], -least[which]))
    right = verdicts(outline.kind, outline.codes[which], np.column_stack(low), np.column_stack(high))
    return float(np.mean(right == RIGHT)), float(np.mean(right != WRONG))


def verdicts(kind: Decomposition, codes: NDArray[Any], low: Matrix, high: Matrix) -> NDArray[np.int8]:
    """Which rows are right for all scores between the bounds, which wrong, and which open."""
    out = np.full(len(codes), OPEN, np.int8)
    decided = kind.is_decided(low, high)
    out[decided] = np.where(kind.decide(low) == codes, RIGHT, WRONG)[decided]
    if len(kind) > 1:  # another class may be ahead for certain, whichever of several it is
        every, others = np.arange(len(codes)), low.copy()
        others[every, codes] = -math.inf
        out[others.max(axis=1) > high[every, codes]] = WRONG
    return out


def _proofs_and_sides(estimator: Any) -> Iterator[tuple[Certificate, Side]]:
    if not has_place(estimator):
        raise ValueError(
            "Bounds on scores rest on how the l2 penalty is curved. Got the l1 penalty instead, which is "
            "not: points of nearly the same value can be far apart. Use penalty='l2'."
        )
    outline: ClassProblems | None = estimator.__dict__.get("_outline")
    if outline is None:
        raise ValueError(
            f"Bounds on scores need what a fit proves of where the best model is. {why_unknown(estimator)}"
        )
    for k, proof in enumerate(each_of(estimator.certificate_)):
        yield proof, side_of(outline, k, estimator, proof.w)


def why_unknown(estimator: Any) -> str:
    """Why an estimator does not know the problems that it was fitted on, and the cure."""
    if estimator.__dict__.get("_in_passes"):
        return (
            "This one was fitted in passes over Chunks, whose rows are not kept. Use fit(X, y) in memory."
        )
    return "This one was loaded from a file that does not say it. Use fit(X, y) again."


def side_of(outline: ClassProblems, k: int, estimator: Any, w: Vector) -> Side:
    """What the rows of a problem are to it."""
    which, y, weights = outline.part(k)
    has_kernel = hasattr(estimator, "kernel_")
    lengths = outline.lengths if which is None else outline.lengths[which]
    if has_kernel:
        columns = int(getattr(estimator, "n_features_in_", 0))
        of_w = lengths if len(w) == len(lengths) else lengths[::2]  # two rows for each of its examples
        errors = kernel_errors(outline.value_error, [w], of_w, lengths, columns)[:, 0]
        errors += getattr(outline, "left_out", 0.0) * float(np.abs(w).sum())
    else:
        errors = linear_errors(w[np.newaxis], lengths, len(w))[:, 0]
    targets, total = getattr(outline, "targets", None), getattr(outline, "total", None)
    C = outline.C
    if isinstance(outline, ClassProblems) and outline.nu is not None:
        C, (targets, total) = outline.cost(k), outline.shares(k) or (None, None)
    return Side(
        y,
        weights if outline.hard else C * weights,
        lengths,
        "hinge" if outline.hard else getattr(outline, "loss_of_rows", outline.loss),
        Intercept(outline.intercept_of_rows),
        outline.intercept_scaling,
        errors,
        has_kernel,
        outline.hard,
        targets,
        getattr(outline, "group", 1),
        total,
    )


def linear_scales(coef: Matrix, X: Any) -> tuple[Vector, Matrix]:
    """The lengths of rows, or of their monomials, and how far computed scores can be off."""
    lengths = Rows(X, check_finite=False).lengths
    return lengths, linear_errors(coef, lengths, coef.shape[1])


def kernel_scales(kernel: Kernel, each: Sequence[Vector], support: Any, X: Any) -> tuple[Vector, Matrix]:
    """The lengths of the images of rows, and how far computed scores can be off.

    ``each`` holds the coefficients of the support vectors in each problem.
    """
    if isinstance(kernel, Precomputed | Function):
        raise ValueError(
            "Bounds on scores need the values k(x, x) of the rows in X, which a kernel that is given as a "
            "matrix or as a function does not tell. Use one of the kernels of maxmargin.kernels."
        )
    rows = Rows(X, check_finite=False, keep_zeros=True).stored_data
    if not support.shape[0]:
        return rounding_of(kernel, rows).simple[0], np.zeros((X.shape[0], len(each)))
    own = Rows(support, check_finite=False, keep_zeros=True).stored_data
    exact = has_exact_sums(kernel, rows) and has_exact_sums(kernel, own)  # of rows of both together
    lengths, error = rounding_of(kernel, rows, exact_sums=exact).simple
    of_support, own_error = rounding_of(kernel, own, exact_sums=exact).simple
    return lengths, kernel_errors(max(error, own_error), each, of_support, lengths, X.shape[1])


def _form(estimator: Any) -> tuple[int, float]:
    """How many classes one problem tells apart, and the constant feature of their intercepts."""
    return len(estimator.classes_), constant_of(estimator._stated_problem)


def refuse_changed(estimator: Any, points: Sequence[NDArray[Any]], *, joint: bool = False) -> None:
    """An error where the model is no longer the point that its certificate is about.

    ``joint``: one certificate is about all of the points.
    """
    proofs = each_of(estimator.certificate_) if hasattr(estimator, "certificate_") else []
    # With a kernel, w has a coefficient for each row and a point for each support vector, in another order.
    pairs = zip(points, (proof.w for proof in proofs), strict=False)
    if joint:
        answers = [of_scores(*of_classes(proof.w, *_form(estimator))) for proof in proofs]
        same = all(
            np.array_equal(points, a) and np.array_equal(estimator.intercept_, b) for a, b in answers
        )
    else:
        same = all(np.array_equal(np.sort(a[a != 0.0]), np.sort(w[w != 0.0])) for a, w in pairs)
        same = same and all(proof.is_about_its_w for proof in proofs)
        proven = [getattr(proof, "intercept", proof.b) for proof in proofs]
        same = same and all(b == own for b, own in zip(estimator.intercept_, proven, strict=False))
    if not same:
        raise ValueError(
            "Bounds on scores are about the coefficients and intercepts that the fit proved. Got others: "
            "they were changed since. Fit again."
        )
