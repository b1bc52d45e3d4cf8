# SPDX-License-Identifier: BSD-3-Clause
"""How the problems of a kernel classifier score rows: through its support vectors, or with w itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.kernels.base import Kernel, Linear
from maxmargin.kernels.expansions import Expansions, row_blocks
from maxmargin.problem.rows import Matrix
from maxmargin.reductions.decompositions import Decomposition, decomposition
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector


@dataclass(frozen=True, eq=False)
class KernelScores:
    """``<w, phi(x)> + b`` of every problem, w being a sum over support vectors.

    With the linear kernel w is formed once, and the scores are a product with it, which differ from the
    sums by rounding only. Where there are so many pairs of classes that a row meets fewer values of the
    support vectors than of all w, sums are left as they are.
    """

    kernel: Kernel
    support: Any
    """The support vectors, those of the first class first; see ``Expansions``."""
    coefficients: Matrix
    """In the shape of ``SVC.dual_coef_``: one line for two classes, k - 1 for all pairs of k classes, k for
    each of them against the rest."""
    counts: NDArray[Any]
    """Support vectors of each class."""

    def __call__(self, X: Any, intercepts: Vector, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """The scores of all rows of X, one column for each problem."""
        if self._weights_to_score is not None:
            return _product(X, self._weights_to_score) + intercepts
        sums = Expansions(self.kernel, self.support, self.coefficients, self.segments)(X, budget)
        by_segment = sums.reshape(-1, len(self.coefficients), sums.shape[1])
        return np.asarray(self.kind.joined(by_segment)).T + intercepts

    def weights(self) -> Any:
        """W of every problem of the linear kernel, one line each; CSR where the support vectors are."""
        is_sparse = sparse.issparse(self.support)
        table = sparse.csr_matrix(self.coefficients) if is_sparse else self.coefficients
        parts = [slice(begin, end) for begin, end in pairwise(self.segments)]
        sums = [table[:, part] @ self.support[part] for part in parts]
        if self.kind.all_rows:
            return sums[0]
        lines = self.kind.joined([[of[[line]] for line in range(of.shape[0])] for of in sums])
        return sparse.vstack(lines).tocsr() if is_sparse else np.vstack(lines)

    @cached_property
    def kind(self) -> Decomposition:
        """How the classes are told apart, as the lines of the coefficients tell."""
        return decomposition(len(self.counts), pairs=len(self.coefficients) < len(self.counts))

    @property
    def segments(self) -> Indices:
        """Shares of the support vectors that are summed apart: of each class, for pairs; else all."""
        sizes = [self.coefficients.shape[1]] if self.kind.all_rows else self.counts
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def _weights_to_score(self) -> Any:
        """W of every problem, one column each; None where the kernel is not linear, or sums are cheaper."""
        if not isinstance(self.kernel, Linear):
            return None
        stored = self.support.nnz if sparse.issparse(self.support) else self.support.size
        lines, count = self.coefficients.shape
        # What a row of as many values as a support vector meets: all w, or all support vectors.
        if len(self.kind) * stored > count * (stored + lines * count):
            return None
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            weights = self.weights().T
        weights = weights.tocsr() if sparse.issparse(weights) else np.ascontiguousarray(weights)
        # A sum over support vectors may still be finite where w is not.
        values = weights.data if sparse.issparse(weights) else weights
        return weights if np.isfinite(values).all() else None


def _product(X: Any, weights: Any) -> Matrix:
    """``<w, x>`` of all rows and problems, in double precision; weights have a column for each."""
    columns, problems = weights.shape
    with one_blas_thread():
        if sparse.issparse(weights):
            if sparse.issparse(X) and X.nnz < columns:  # too few to write all w out for
                return np.asarray((X @ weights).toarray())
            out = np.empty((X.shape[0], problems))
            for some in row_blocks(problems, columns, at_least=1):
                out[:, some] = _product(X, weights[:, some].toarray())
            return out
        if sparse.issparse(X) or X.dtype == np.float64:
            return np.asarray(X @ weights)
        out = np.empty((X.shape[0], problems))
        for block in row_blocks(X.shape[0], X.shape[1]):  # each is copied to double precision
            out[block] = X[block] @ weights
    return out
