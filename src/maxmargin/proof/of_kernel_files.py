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

from maxmargin.files.models.support_vectors import are_rows
from maxmargin.proof.of_files import ROUNDING, Alphas, Part, part_of, rows_of, statement
from maxmargin.proof.of_shares import set_scales

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.files import SavedKernelModel
    from maxmargin.kernels import Kernel
    from maxmargin.problem.rows import Rows


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
        raise ValueError(
            "The rows that the model calls its support vectors must be of the classes that it gives them. "
            "Got others in the data. Give the matrix and the labels of the training."
        )
    both = _below(X, model.vectors)
    extra = np.arange(X.shape[0], both.shape[0])
    return _Placed(rows_of(both), extra, extra)


def _below(X: Any, vectors: Any) -> Any:
    import numpy as np
    from scipy import sparse

    from maxmargin.files.models.stored import widened

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
    alphas: Alphas,
    *,
    C: float,
    class_weight: Any,
    rows: NDArray[Any] | None,
) -> Iterator[Part]:
    """The problems of the model on these data, one at a time; ``codes`` are positions in its classes.

    ``rows`` are those of its support vectors, as far as is known.
    """
    import numpy as np

    from maxmargin.reductions.class_problems import KernelProblems

    placed = _place(model, X, codes, rows)
    problems = KernelProblems(
        codes=codes,
        X=placed.rows,
        kernel=model.kernel,
        no_cost=placed.extra if len(placed.extra) else None,
        **statement(model, C, class_weight),
    )
    if not alphas.of_all_rows and any(
        alpha is not None and len(alpha) != problems.count(k) for k, alpha in enumerate(alphas.each)
    ):
        raise OtherCounts
    set_scales(model, problems)
    for k in range(len(problems)):
        claim = None if model.claims is None else model.claims[k]
        # What the blocks leave out is bounded in both values, by less than is noticed.
        known = claim is not None and math.isfinite(claim.primal)
        problems.may_leave_out = 0.01 * ROUNDING * abs(claim.primal) if known and claim is not None else 0.0
        which = problems.part(k).which
        by_row = np.zeros(placed.rows.count)
        by_row[placed.places] = model.coefficients_of(k)
        yield part_of(model, problems, k, by_row if which is None else by_row[which], alphas)


class OtherCounts(Exception):
    """The data have other numbers of rows of each class than the multipliers are for."""


def doubt(kernel: Kernel, X: Any) -> str:
    """Why the proof of a model proves nothing: where its function is not shown to be a kernel."""
    from maxmargin.kernels.validity import doubt_about

    sentence = "" if kernel.is_known else doubt_about(kernel, X)
    if not sentence:
        return ""
    start, shown = sentence.rstrip(".").split(": ", 1)
    what = "not a kernel" if start == "No kernel" else "not shown to be a kernel"
    return (
        f"the function is {what} on these data, so that the dual value is no lower bound on the objective: "
        f"{shown}"
    )
