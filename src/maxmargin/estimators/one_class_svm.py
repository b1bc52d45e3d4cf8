# SPDX-License-Identifier: BSD-3-Clause
"""The region of one class, with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.proof.model import Model
from maxmargin.reductions.one_class import OneClass
from maxmargin.reductions.ranking import Ranking
from maxmargin.reductions.regression import Regression
from maxmargin.types import Vector


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassSVM(OutlierMixin, KernelMachine):
    """The region where rows of one class are found; every fit proves how close to the optimum it is.

        minimise over (w, rho)   1/2 |w|^2  -  nu n rho  +  sum_i weight_i max(0, rho - <w, phi(x_i)>)

    with ``<phi(x), phi(z)> = k(x, z)``, where n is the sum of all weights. A share of at most nu of the
    rows is then outside, and one of at least nu are support vectors.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in ``SVC``.
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    nu : float
        A share of the rows, above 0 and at most 1.
    shrinking, cache_size, verbose, max_iter, random_state, solver, max_time, callback, warm_start, n_jobs
        As in ``SVC``.

    Attributes
    ----------
    dual_coef_ : array or CSR matrix of shape (1, n_SV)
        Multipliers, which add up to ``nu n``.
    intercept_ : ndarray of shape (1,)
        ``-rho``.
    offset_ : float
        ``rho``: ``decision_function`` is ``score_samples`` less this.

    All others are as in ``SVR``; ``certificate_.shift`` is ``-rho``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import OneClassSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> bool(model.certificate_.relative_gap <= 1e-3)
    True
    >>> bool((model.predict(X) == -1).mean() <= 0.1)
    True
    """

    nu: takes.Share = 0.5

    _what: ClassVar[str] = "one class"

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train until the relative gap is at most ``tol``.

        X : array or sparse matrix of shape (n_samples, n_features), or of all values of a precomputed
        kernel. y : ignored. sample_weight : one cost per row, not negative.

        Ctrl-C ends a fit whose data are checked: the best model that is proven so far is kept, and a
        warning says so.
        """
        with self._showing() if self.verbose else nullcontext():
            interrupts = self._fit_once(X, None, sample_weight)
        if self.status_.certified:
            interrupts.pass_on()
        return self

    def _statement(self, values: Vector, weights: Vector | None) -> OneClass:
        return OneClass(None, len(values), float(self.nu), weights)

    def _set_proof(self, stated: Regression | OneClass | Ranking, model: Model) -> None:
        super()._set_proof(stated, model)
        self.intercept_ = np.array([model.certificate.shift])

    @property
    def offset_(self) -> float:
        """``rho``."""
        check_is_fitted(self)
        return float(-self.intercept_[0])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """``<w, phi(x)> - rho`` of each row: at least 0 inside."""
        return self._scores(X)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """``<w, phi(x)>`` of each row."""
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
        from maxmargin.estimators.sureness import places_of
        from maxmargin.proof.sure import score_bounds

        check_is_fitted(self)
        low, high = score_bounds(*self._scored(X), places_of(self), self.intercept_)
        return low.ravel(), high.ravel()
