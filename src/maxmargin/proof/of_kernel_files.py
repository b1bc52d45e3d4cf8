# SPDX-License-Identifier: BSD-3-Clause
"""The problems behind a kernel model's file, rebuilt from the data.

The file's own w is the sum of its support vectors with its coefficients, whatever rows they come from.
Where they are rows of the data, w is held by the coefficients of those rows. Where they are not, the
vectors are put below the data as rows of no cost: they change nothing in the problem, and hold w.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.labels import label_text
from maxmargin.command_line.shared.support_vectors import are_rows
from maxmargin.proof.of_files import ROUNDING, Part, class_factors, name_of, rows_of, tells_apart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.files import SavedKernelModel
    from maxmargin.kernels import Kernel
    from maxmargin.problem.rows import Rows
    from maxmargin.types import Vector


_SPLIT_FROM = 5_000
"""Rows of a problem from which on it pays to look for blocks that the kernel cannot couple."""


@dataclass(frozen=True)
class _Placed:
    """The data, and the row of each support vector in them."""

    rows: Rows
    places: NDArray[Any]
    extra: NDArray[Any]
    """Rows of no cost."""


def _place(model: SavedKernelModel, X: Any, codes: NDArray[Any], rows: NDArray[Any] | None) -> _Placed:
    import numpy as np

    if rows is not None and are_rows(model, X, codes, rows):
        return _Placed(rows_of(X, keep_zeros=model.vectors is None), rows, np.arange(0))
    if model.vectors is None:
        raise Failure(
            "The rows that the model calls its support vectors must be of the classes that it gives them. "
            "Got others in the data. Give the matrix and the labels of the training."
        )
    both = _below(X, model.vectors)
    extra = np.arange(X.shape[0], both.shape[0])
    return _Placed(rows_of(both), extra, extra)


def _below(X: Any, vectors: Any) -> Any:
    import numpy as np
    from scipy import sparse

    from maxmargin.files.models.kernel_model import widened

    width = max(X.shape[1], vectors.shape[1])
    X, vectors = widened(X, width), widened(vectors, width)
    if sparse.issparse(X):
        return sparse.vstack([sparse.csr_matrix(X), sparse.csr_matrix(vectors)], format="csr")
    dense = vectors.toarray() if sparse.issparse(vectors) else vectors
    return np.vstack([X, dense])


def kernel_parts(
    model: SavedKernelModel,
    X: Any,
    codes: NDArray[Any],
    *,
    C: float,
    class_weight: Any,
    rows: NDArray[Any] | None,
    alphas: list[Vector | None],
    alpha_from: str,
) -> Iterator[Part]:
    """The problems of the model on these data, one at a time; ``codes`` are positions in its classes.

    ``rows`` are those of its support vectors as far as is known; ``alphas`` have a number for each row of
    the problem, in the order of ``SVC``: those of the first class of a pair and then those of its second.
    """
    import numpy as np

    from maxmargin import Problem
    from maxmargin.kernels import KernelRows
    from maxmargin.kernels.uncoupled import split

    placed = _place(model, X, codes, rows)
    names = [label_text(label) for label in model.classes]
    factors = class_factors(class_weight, model.classes, codes)
    claims: list[Any] = list(model.claims) if model.claims is not None else [None] * len(model.intercept)
    for k, (positive, negative) in enumerate(tells_apart(model)):
        chosen = chosen_rows(model, codes, k)
        extra = placed.extra
        which = np.concatenate([chosen, extra])
        y = np.concatenate([np.where(codes[chosen] == positive, 1.0, -1.0), np.ones(len(extra))])
        weights = np.concatenate([factors[codes[chosen]], np.zeros(len(extra))])
        alpha = alphas[k]
        seen = KernelRows(placed.rows, model.kernel, which=which)
        if len(which) >= _SPLIT_FROM and claims[k] is not None and math.isfinite(claims[k].primal):
            # What the blocks leave out is bounded in both values, by less than is noticed.
            error = 0.01 * ROUNDING * abs(claims[k].primal)
            seen.blocks = split(placed.rows, model.kernel, C * float(weights.sum()), error, which)
        yield Part(
            name=name_of(names, positive, negative),
            problem=Problem.of(seen, y, C, loss="hinge", weights=weights),
            w=_held(model.coefficients_of(k), placed.places, which, placed.rows.count),
            b=float(model.intercept[k]),
            claim=claims[k],
            alpha=None if alpha is None else np.concatenate([alpha, np.zeros(len(extra))]),
            alpha_from=alpha_from,
        )


def chosen_rows(model: SavedKernelModel, codes: NDArray[Any], k: int) -> NDArray[Any]:
    """The rows of a problem, in the order that ``SVC`` gives them."""
    import numpy as np

    if len(model.classes) == 2 or model.decision == "one_vs_rest":
        return np.arange(len(codes))
    return np.concatenate([np.flatnonzero(codes == position) for position in model.pairs[k]])


def _held(signed: Vector, places: NDArray[Any], which: NDArray[Any], count: int) -> Vector:
    """The w of a problem, one coefficient for each of its rows."""
    import numpy as np

    by_row = np.zeros(count)
    by_row[places] = signed
    w: Vector = by_row[which]
    return w


def doubt(kernel: Kernel, X: Any) -> str:
    """Why the proof of a model with this kernel proves nothing, if up to 500 rows show that it is none."""
    from maxmargin.kernels import is_valid

    certain = all(
        common != "given" and shape != "tanh" and shift >= 0
        for _, factors in kernel.terms
        for common, shape, _, shift, _ in factors
    )
    validity = None if certain else is_valid(kernel, X)
    if validity is None or validity:
        return ""
    shown = str(validity).rstrip(".").replace("No kernel: ", "")
    return (
        "the kernel is none on these data, so that the dual value is no lower bound on the objective: "
        f"{shown}"
    )
