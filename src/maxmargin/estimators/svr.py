# SPDX-License-Identifier: BSD-3-Clause
"""A kernel support vector regressor with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified_regressor import CertifiedRegressor
from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.reductions.regression import Regression
from maxmargin.tools.interrupts import Interrupts
from maxmargin.types import Vector


@dataclass(eq=False, repr=False, kw_only=True)
class SVR(CertifiedRegressor, KernelMachine):
    """Support vector regression with kernels; every fit proves how close to the optimum it is.

        minimise over (w, b)   1/2 |w|^2  +  C sum_k weight_k max(0, |y_k - <w, phi(x_k)> - b| - epsilon)

    with ``<phi(x), phi(z)> = k(x, z)``.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in ``SVC``.
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    C : float
        Weight of the losses: a larger C fits the data harder. ``numpy.inf`` stands for 1e10, as in ``SVC``.
    epsilon : float
        How far a prediction may be off at no cost, in units of y.
    shrinking, cache_size, verbose, max_iter, random_state, solver, max_time, callback, warm_start, n_jobs
        As in ``SVC``.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : array or CSR matrix of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    n_support_ : ndarray of shape (1,)
    dual_coef_ : array or CSR matrix of shape (1, n_SV)
        The multiplier of the lower wall of each one's tube minus that of the upper one.
    intercept_ : ndarray of shape (1,)
    coef_ : array or CSR matrix of shape (1, n_features)
        Of the linear kernel only.
    fit_status_ : int
        0 if the fit is proven to be within ``tol``, else 1.
    shape_fit_ : tuple
        Shape of the training data.
    n_iter_ : int
        Steps taken.
    kernel_ : Kernel
        With gamma as a number.
    certificate_, trace_, status_, solver_
        As in ``LinearSVR``.

    Ctrl-C during a fit ends it: the best certified model so far is kept, and a warning says so. A function
    that is not shown to be a kernel is trained with, but proves nothing, as in ``SVC``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SVR(C=100.0, epsilon=5.0).fit(X, y)
    >>> bool(model.certificate_.relative_gap <= 1e-3)
    True
    """

    C: takes.CostOrHardMargin = 1.0
    epsilon: takes.Tube = 0.1

    def _statement(self, values: Vector, weights: Vector | None) -> Regression:
        C = self._finite_cost(self.C)
        return Regression(None, values, C, float(self.epsilon), weights=weights)

    def _fit_once(self, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Interrupts:
        interrupts = super()._fit_once(X, y, sample_weight)
        self._warn_of_no_hard_margin(self.C)
        return interrupts

    def predict(self, X: Any) -> NDArray[np.float64]:
        """``<w, phi(x)> + b`` of each row."""
        return self._scores(X)
