# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators of one class share: how a fit runs, and what is inside of their region."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.one_problem import OneProblem
from maxmargin.problem.rows import in_numpy
from maxmargin.proof.model import Model
from maxmargin.reductions.one_class import OneClass
from maxmargin.reductions.ranking import Ranking
from maxmargin.reductions.regression import Regression
from maxmargin.types import Vector


class OneClassRegion(OutlierMixin, OneProblem):
    """An estimator of the region of one class, whose fit ends with a certificate."""

    _what: ClassVar[str] = "one class"

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train until the relative gap is at most ``tol``.

        X : array or sparse matrix of shape (n_samples, n_features); ``OneClassSVM`` takes all values of a
        precomputed kernel. y : ignored. sample_weight : one cost per row, not negative.

        Ctrl-C ends a fit whose data are checked: the best model that is proven so far is kept, and a
        warning says so.
        """
        with self._showing() if self.verbose else nullcontext():
            interrupts = self._fit_once(in_numpy(X), None, in_numpy(sample_weight))
        if self.status_.certified:
            interrupts.pass_on()
        return self

    def _set_proof(self, stated: Regression | OneClass | Ranking, model: Model) -> None:
        super()._set_proof(stated, model)
        self.intercept_ = np.array([model.certificate.shift])

    @property
    def offset_(self) -> float:
        """``rho``."""
        check_is_fitted(self)
        return float(-self.intercept_[0])

    @abstractmethod
    def _scores(self, X: Any) -> NDArray[np.float64]:
        """``<w, x> - rho`` of each row."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """``<w, x> - rho`` of each row, through the kernel where there is one: at least 0 inside."""
        return self._scores(X)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """``<w, x>`` of each row."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 for rows inside, and -1 for those outside."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def is_sure(self, X: Any) -> NDArray[np.bool_]:
        """Whether the best model has each row on the same side, inside or outside, whatever it is."""
        low, high = self.decision_bounds(X)
        return (low >= 0.0) | (high < 0.0)

    def decision_bounds(self, X: Any) -> tuple[Vector, Vector]:
        """(low, high): what the best model scores each row is between the two, whatever it is."""
        return self._flat_bounds(X)
