# SPDX-License-Identifier: BSD-3-Clause
"""What everybody minimises with a Gaussian kernel, written again in plain NumPy and SciPy.

    P(w, b)  = 1/2 |w|^2 + C sum_i max(0, 1 - y_i (<w, phi(x_i)> + b)),      w = sum_j alpha_j y_j phi(x_j)
    D(alpha) = sum_i alpha_i - 1/2 |w|^2,      0 <= alpha_i <= C,  sum_i alpha_i y_i = 0

With several classes there is one problem for each pair of classes, and the measure is the sum over the
pairs. A contestant is marked by its multipliers alone: b is the best one for them. All values of the kernel
and all sums are in float64, outside the clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.datasets import DataSet

_VALUES_AT_ONCE = 4_000_000
_DENSE_COLUMNS = 2_000
"""Up to so many columns a product of dense matrices is faster than one of sparse matrices."""

Vector = NDArray[np.float64]


class Multipliers(NamedTuple):
    """Of the problem of one pair of classes: the support vectors among all rows, and their alpha."""

    rows: NDArray[np.intp]
    alpha: Vector


class Values(NamedTuple):
    """Of one answer, summed over the pairs."""

    primal: float
    dual: float


@dataclass(frozen=True, eq=False)
class KernelObjective:
    """One data set with C and gamma; the intercept is exact, as LIBSVM has it."""

    data: DataSet
    C: float
    gamma: float
    _known: dict[bytes, Values] = field(default_factory=dict[bytes, Values])

    @cached_property
    def X(self) -> Any:
        """The data in float64, dense unless there are many columns."""
        X = self.data.X.astype(np.float64)
        return X.toarray() if sparse.issparse(X) and X.shape[1] <= _DENSE_COLUMNS else X

    @cached_property
    def pairs(self) -> list[tuple[Any, Any]]:
        """The labels of each problem."""
        return list(combinations(self.data.classes.tolist(), 2))

    @property
    def title(self) -> str:
        """Data, C and gamma."""
        return f"{self.data.name}, C = {self.C:g}, gamma = {self.gamma:g}"

    def values(self, answer: Sequence[Multipliers]) -> Values:
        """Both values of an answer, one ``Multipliers`` per pair; equal answers are computed once."""
        digest = hashlib.sha256()
        for each in answer:
            digest.update(np.ascontiguousarray(each.rows, np.int64).tobytes())
            digest.update(np.ascontiguousarray(each.alpha, np.float64).tobytes())
        key = digest.digest()
        if key not in self._known:
            each_pair = [self._of_pair(*pair) for pair in zip(self.pairs, answer, strict=True)]
            self._known[key] = Values(sum(v.primal for v in each_pair), sum(v.dual for v in each_pair))
        return self._known[key]

    def _of_pair(self, pair: tuple[Any, Any], multipliers: Multipliers) -> Values:
        order = np.argsort(multipliers.rows)
        rows, alpha = multipliers.rows[order], multipliers.alpha[order]
        members = np.flatnonzero(np.isin(self.data.y, pair))
        y = np.where(self.data.y == pair[0], 1.0, -1.0)
        feasible = self._feasible(alpha, y[rows])
        coefficients = np.column_stack([alpha, feasible]) * y[rows, np.newaxis]
        scores = self.scores(members, rows, coefficients)
        at_support = scores[np.searchsorted(members, rows)]
        squared_norms = np.einsum("ij,ij->j", coefficients, at_support)
        primal = 0.5 * squared_norms[0] + self.C * least_slack(scores[:, 0], y[members])
        return Values(float(primal), float(feasible.sum() - 0.5 * squared_norms[1]))

    def _feasible(self, alpha: Vector, y: Vector) -> Vector:
        """Inside the box and balanced, so that D is a lower bound whatever rounding did to alpha."""
        alpha = np.clip(alpha, 0.0, self.C)
        positive = y > 0
        sums = alpha[positive].sum(), alpha[~positive].sum()
        heavier = positive if sums[0] > sums[1] else ~positive
        if max(sums) > 0:
            alpha[heavier] *= min(sums) / max(sums)
        return alpha

    def scores(self, targets: NDArray[np.intp], rows: NDArray[np.intp], coefficients: Vector) -> Vector:
        """``sum_j coefficient_j k(x_j, x_i)`` for i in targets, one column for each column given."""
        support = self.X[rows]
        norms = _squared_norms(support)
        out = np.empty((len(targets), coefficients.shape[1]))
        size = max(1, _VALUES_AT_ONCE // max(1, len(rows)))
        for begin in range(0, len(targets), size):
            block = self.X[targets[begin : begin + size]]
            products = block @ support.T
            if sparse.issparse(products):
                products = products.toarray()
            products *= -2.0
            products += _squared_norms(block)[:, np.newaxis]
            products += norms
            np.maximum(products, 0.0, out=products)
            products *= -self.gamma
            np.exp(products, out=products)
            out[begin : begin + size] = products @ coefficients
        return out


def least_slack(scores: Vector, y: Vector) -> float:
    """``min over b of sum_i max(0, 1 - y_i (score_i + b))``.

    The sum has a corner at every ``y_i - score_i``, where its slope grows by one. It begins with minus the
    number of positive rows, so the corner of that number is a best b.
    """
    positives = int((y > 0).sum())
    b = np.partition(y - scores, positives - 1)[positives - 1]
    return float(np.maximum(0.0, 1.0 - y * (scores + b)).sum())


def _squared_norms(X: Any) -> Vector:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)
