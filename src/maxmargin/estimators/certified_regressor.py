# SPDX-License-Identifier: BSD-3-Clause
"""What all regressors here share: how a fit runs and ends, and what it says of predictions."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.certified import Certified
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model, Status, Trace
from maxmargin.reductions.ladders import Running
from maxmargin.reductions.ranking import Ranking
from maxmargin.reductions.regression import Regression
from maxmargin.solving.loop import Callback, Progress
from maxmargin.tools.interrupts import Interrupts
from maxmargin.types import Vector


class CertifiedRegressor(RegressorMixin, Certified):
    """A regressor whose fit ends with a certificate."""

    intercept_: NDArray[np.float64]
    trace_: Trace
    status_: Status

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train until the relative gap is at most ``tol``.

        X : array or sparse matrix of shape (n_samples, n_features), read in place where ``Rows`` can.
        ``SVR`` with a precomputed kernel takes a matrix of shape (n_samples, n_samples). y : one number per
        row. sample_weight : one factor on C per row, not negative.

        Ctrl-C ends a fit whose data are checked: the best model that is proven so far is kept, and a
        warning says so.
        """
        with self._showing() if self.verbose else nullcontext():
            interrupts = self._fit_once(X, y, sample_weight)
        if self.status_.certified:
            interrupts.pass_on()
        return self

    @abstractmethod
    def _fit_once(self, X: Any, y: Any, sample_weight: Any) -> Interrupts:
        """Fit to ``tol``; whether Ctrl-C came meanwhile."""

    def _running(self) -> Running:
        """How the problem of a fit is to be solved."""
        if self.verbose:
            self._show()
        return self._running_told(self._told_of)

    def _told_of(self, name: Any) -> Callback:
        """The user's callback, and what ``verbose`` shows."""

        def tell(progress: Progress) -> bool | None:
            self._tell("regression", progress)
            return None if self.callback is None else self.callback(progress)

        return tell

    def _set_proof(self, regression: Regression | Ranking, model: Model) -> None:
        """The intercept, the proof and how the fit ended; warns where it fell short."""
        self.certificate_, self.trace_ = model.certificate, model.trace
        self.intercept_ = np.array([model.b])
        self._stated_problem = regression.statement() | {"tol": float(self.tol)}
        self._outline = regression.outline()
        self.__dict__.pop("_places", None)
        self.solver_, self.status_ = model.solver, model.status
        gap = model.certificate.relative_gap
        if gap <= self.tol:
            self.status_ = Status.within_tol(model.certificate)

    def _warn_of_shortfall(self) -> None:
        """Warn where the fit has not come within ``tol``."""
        if self.status_.certified:
            return
        assert isinstance(self.certificate_, Certificate)
        gap, steps = self.certificate_.relative_gap, int(self.n_iter_)
        warnings.warn(self.status_.sentence(gap, float(self.tol), steps), ConvergenceWarning, stacklevel=4)

    @abstractmethod
    def _scored(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The predictions for all rows as a column, the lengths of the rows, and errors."""

    def prediction_bounds(self, X: Any) -> tuple[Vector, Vector]:
        """(low, high): what the best model predicts for each row is between the two, whatever it is.

        The best model is the one that minimises the objective of the fit; the certificate bounds how far
        it is from this one. A smaller ``tol`` brings the bounds together.
        """
        from maxmargin.estimators.sureness import places_of
        from maxmargin.proof.sure import score_bounds

        check_is_fitted(self)
        low, high = score_bounds(*self._scored(X), places_of(self), self.intercept_)
        return low.ravel(), high.ravel()
