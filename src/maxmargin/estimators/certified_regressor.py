# SPDX-License-Identifier: BSD-3-Clause
"""What all regressors here share: how a fit runs and ends, and what it says of predictions."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from maxmargin.estimators.one_problem import OneProblem
from maxmargin.problem.rows import TellingOfRoom, in_numpy
from maxmargin.types import Vector


class CertifiedRegressor(RegressorMixin, OneProblem):
    """A regressor whose fit ends with a certificate."""

    _what: ClassVar[str] = "regression"

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train until the relative gap is at most ``tol``.

        X : array or sparse matrix of shape (n_samples, n_features), read in place where ``Rows`` can.
        ``SVR`` with a precomputed kernel takes a matrix of shape (n_samples, n_samples). y : one number per
        row. sample_weight : one factor on C per row, not negative.

        Ctrl-C ends a fit whose data are checked: the best model that is proven so far is kept, and a
        warning says so.
        """
        with self._showing() if self.verbose else nullcontext(), TellingOfRoom():
            interrupts = self._fit_once(*in_numpy(X, y, sample_weight))
        if self.status_.certified:
            interrupts.pass_on()
        return self

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The coefficient of determination, R^2."""
        X, y, sample_weight = in_numpy(X, y, sample_weight)
        return float(super().score(X, y, sample_weight=sample_weight))

    def prediction_bounds(self, X: Any) -> tuple[Vector, Vector]:
        """(low, high): what the best model predicts for each row is between the two, whatever it is.

        The best model is the one that minimises the objective of the fit; the certificate bounds how far
        it is from this one. A smaller ``tol`` brings the bounds together.
        """
        return self._flat_bounds(X)
