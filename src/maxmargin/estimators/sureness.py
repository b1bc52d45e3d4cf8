# SPDX-License-Identifier: BSD-3-Clause
"""Between which values the best model's scores are, and which rows it decides as the fitted one does.

The mathematics is in proof/sure.py. Here an estimator's parts are put together for it: what the fit has
kept of its problems, and the lengths of the rows that are asked about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernels.base import Function, Kernel, Precomputed
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Intercept
from maxmargin.problem.rows import Rows
from maxmargin.proof.model import each_of
from maxmargin.proof.sure import Matrix, Neighbourhood, Side, kernel_errors, linear_errors, neighbourhood
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.types import Vector

_LENGTH_ROUNDINGS = 64.0 * 2.0**-53
"""What a computed length can lack, for each column, relatively: with a kernel, of a power of up to 64."""


def places_of(estimator: Any) -> list[Neighbourhood]:
    """Where the best model of each problem is; they are found once, when they are first asked for."""
    places: list[Neighbourhood] | None = estimator.__dict__.get("_places")
    if places is None:
        outline: ClassProblems | None = estimator.__dict__.get("_outline")
        if outline is None:
            raise ValueError(
                "Bounds on scores need what the fit has proven. This model was loaded from a file that "
                "does not say it. Fit again, or save the fitted model anew."
            )
        proofs = each_of(estimator.certificate_)
        sides = (_side(outline, k, estimator, proof.w) for k, proof in enumerate(proofs))
        places = [neighbourhood(proof, side) for proof, side in zip(proofs, sides, strict=True)]
        estimator._places = places
    return places


def _side(outline: ClassProblems, k: int, estimator: Any, w: Vector) -> Side:
    """What the rows of a problem are to it."""
    which, y, weights = outline.part(k)
    kernel = getattr(estimator, "kernel_", None)
    columns = int(estimator.n_features_in_) if hasattr(estimator, "n_features_in_") else 0
    lengths = lengthened(outline.squared_lengths, columns)
    own = lengths if which is None else lengths[which]
    costs = weights if outline.hard else outline.C * weights
    if kernel is None:
        errors = linear_errors(w[np.newaxis], own, len(w))[:, 0]
    else:
        errors = kernel_errors(kernel, [w], own, own, estimator._longest_row, columns)[:, 0]
        errors += getattr(outline, "left_out", 0.0) * float(np.abs(w).sum())
    return Side(
        y,
        costs,
        own,
        "hinge" if outline.hard else outline.loss,
        Intercept(outline.intercept),
        outline.intercept_scaling,
        errors,
        kernel is not None,
        outline.hard,
    )


def lengthened(squared_lengths: Vector, columns: int) -> Vector:
    """Lengths that are not below the exact ones."""
    lengths: Vector = np.sqrt(np.maximum(squared_lengths, 0.0)) * (1.0 + (columns + 16) * _LENGTH_ROUNDINGS)
    return lengths


def linear_lengths(X: Any) -> tuple[Vector, int]:
    """The lengths of the rows of a matrix, or of their monomials, and how many products a score has."""
    rows = Rows(X, check_finite=False)
    return lengthened(rows.squared_norms, rows.columns), rows.columns


def image_lengths(kernel: Kernel, X: Any) -> Vector:
    """The lengths of rows as a kernel sees them."""
    if isinstance(kernel, Precomputed | Function):
        raise ValueError(
            "Bounds on scores need the values k(x, x) of the rows in X, which a kernel that is given as a "
            "matrix or as a function does not tell. Use one of the kernels of maxmargin.kernels."
        )
    rows = KernelRows(X, kernel, check_finite=False)
    return lengthened(rows.squared_norms, X.shape[1])


def score_errors(kernel: Kernel, each: Sequence[Vector], support: Any, X: Any, lengths: Vector) -> Matrix:
    """How far computed scores of a kernel model can be off, for all rows of X."""
    if not support.shape[0]:
        return np.zeros((X.shape[0], len(each)))
    of_support, (rows, columns) = image_lengths(kernel, support), linear_lengths(X)
    longest = max(float(rows.max(initial=0.0)), float(linear_lengths(support)[0].max()))
    return kernel_errors(kernel, each, of_support, lengths, longest, columns)


def refuse_changed(estimator: Any, points: Sequence[NDArray[Any]]) -> None:
    """An error where the model is no longer the point that its certificate is about."""
    proofs = each_of(estimator.certificate_) if hasattr(estimator, "certificate_") else []
    # With a kernel, w has a coefficient for each row and a point for each support vector, in another order.
    pairs = zip(points, (proof.w for proof in proofs), strict=False)
    same = all(np.array_equal(np.sort(a[a != 0.0]), np.sort(w[w != 0.0])) for a, w in pairs)
    if not same or any(b != proof.b for b, proof in zip(estimator.intercept_, proofs, strict=False)):
        raise ValueError(
            "Bounds on scores are about the coefficients and intercepts that the fit proved. Got others: "
            "they were changed since. Fit again."
        )
