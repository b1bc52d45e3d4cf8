# SPDX-License-Identifier: BSD-3-Clause
"""A kernel support vector regressor with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from maxmargin.core import Budget
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified import check_solver
from maxmargin.estimators.certified_regressor import CertifiedRegressor
from maxmargin.estimators.named_kernels import (
    check_kernel,
    find_kernel,
    is_function,
    is_precomputed,
    why_unproven,
)
from maxmargin.estimators.reading import MATRIX, telling_of_tables, weights_or_zero
from maxmargin.kernels.base import Function, Linear, Precomputed
from maxmargin.proof.model import Model, Status
from maxmargin.reductions.kernel_regression import KernelRegression
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.solvers import AnySolver
from maxmargin.solving.loop import Callback
from maxmargin.tools.interrupts import Interrupts, held_back
from maxmargin.tools.parameters import AnyNumber, Natural, check_options
from maxmargin.types import Vector


@dataclass(eq=False, repr=False, kw_only=True)
class SVR(CertifiedRegressor):
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
        Weight of the losses: a larger C fits the data harder.
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

    kernel: Any = "rbf"
    degree: Natural = 3
    gamma: takes.Gamma = "scale"
    coef0: AnyNumber = 0.0
    tol: takes.Tolerance = 1e-3
    C: takes.Cost = 1.0
    epsilon: takes.Tube = 0.1
    shrinking: takes.Flag = True
    cache_size: takes.Megabytes = 1000.0
    verbose: takes.Verbose = 0
    max_iter: takes.Steps = -1
    random_state: takes.RandomState = None
    solver: str | AnySolver = "auto"
    max_time: takes.Seconds = None
    callback: Callback | None = None
    warm_start: takes.Flag = False
    n_jobs: takes.Jobs = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def _fit_once(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Interrupts:
        self._check_parameters()
        X, values = self._checked_data(X, y)
        weights = weights_or_zero(sample_weight, values)
        with held_back() as interrupts:
            doubt = self._fit_checked(X, values, weights)
        if doubt:
            warnings.warn(doubt, UserWarning, stacklevel=3)
        if not (doubt and self.status_ is Status.NOT_PROVEN):  # that was said already
            self._warn_of_shortfall()
        return interrupts

    def _check_parameters(self) -> None:
        check_solver(self)
        check_kernel(self)
        check_options(self)

    def _fit_checked(self, X: Any, values: Vector, weights: Vector | None) -> str:
        """Fit; what is to be warned of the kernel, if anything."""
        kernel = find_kernel(self, X, weights)
        regression = KernelRegression(
            X, kernel, values, float(self.C), float(self.epsilon), weights, float(self.cache_size)
        )
        doubt = why_unproven(kernel, X, regression.matrix)
        regression.kernel_is_none |= bool(doubt)
        start = self._last_multipliers(len(values))
        model = regression.solve(self._running(), shrinking=bool(self.shrinking), start=start)
        self.kernel_, self.shape_fit_ = kernel, X.shape if hasattr(X, "shape") else (len(values),)
        self._set_model(X, model)
        self.n_iter_ = max(1, model.steps)
        self._set_proof(regression.stated, model)
        self._outline = regression.stated.outline(regression.value_error)
        self._stated_problem |= {"kernel": str(kernel)}
        self.fit_status_ = 0 if self.status_.certified else 1
        return doubt

    def _last_multipliers(self, count: int) -> Vector | None:
        """The multipliers of the last fit, if there was one on as many rows and it is to be the start."""
        proof: Any = getattr(self, "certificate_", None)
        if not self.warm_start or proof is None or len(proof.alpha) != 2 * count:
            return None
        alpha: Vector = proof.alpha
        return alpha

    def _checked_data(self, X: Any, y: ArrayLike) -> tuple[Any, Vector]:
        if is_function(self.kernel):
            # What X is, only the function knows.
            values = column_or_1d(y, warn=True, dtype=np.float64)
            check_consistent_length(X, values)
        else:
            self._refuse_sparse_matrix(X)
            with telling_of_tables(X):
                X, values = validate_data(self, X, y, order="C", y_numeric=True, **MATRIX)
        if is_precomputed(self.kernel) and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix: a row and a column for every example. Input "
                f"is a {X.shape[0]}x{X.shape[1]} matrix. Give kernel(X_train, X_train) to fit."
            )
        return X, np.asarray(values, np.float64)

    def _refuse_sparse_matrix(self, X: Any) -> None:
        if sparse.issparse(X) and is_precomputed(self.kernel):
            raise TypeError("Sparse precomputed kernels are not supported. Use X.toarray().")

    def _set_model(self, X: Any, model: Model) -> None:
        """The support vectors with their coefficients."""
        self.support_ = np.flatnonzero(model.w).astype(np.int32)
        self.n_support_ = np.array([len(self.support_)], np.int32)
        coefficients = np.ascontiguousarray(model.w[self.support_][np.newaxis])
        self.dual_coef_ = sparse.csr_matrix(coefficients) if sparse.issparse(X) else coefficients
        if isinstance(self.kernel_, Precomputed):
            self.support_vectors_ = np.empty((0, 0), X.dtype)
        elif isinstance(self.kernel_, Function):
            self.support_vectors_ = _safe_indexing(X, self.support_)
        else:
            self.support_vectors_ = X[self.support_]
        self._set_scores(coefficients)

    def _set_scores(self, coefficients: NDArray[np.float64]) -> None:
        """How rows are scored; the coefficients are those of ``dual_coef_``, not sparse."""
        support = self.support_ if isinstance(self.kernel_, Precomputed) else self.support_vectors_
        self._problem_scores = KernelScores(self.kernel_, support, coefficients, self.n_support_)

    @property
    def coef_(self) -> Any:
        """``w``; of the linear kernel only."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = self._problem_scores.weights()
        # Computed from ``dual_coef_``, which predicts: a change of it would be lost.
        (weights.data if sparse.issparse(weights) else weights).flags.writeable = False
        return weights

    def predict(self, X: Any) -> NDArray[np.float64]:
        """``<w, phi(x)> + b`` of each row."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Function):
            self._refuse_sparse_matrix(X)
            X = validate_data(self, X, order="C", reset=False, **MATRIX)
        budget = Budget(math.inf, self._threads())
        return np.asarray(self._problem_scores(X, self.intercept_, budget)[:, 0])

    def _scored(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        from maxmargin.estimators.sureness import kernel_scales, refuse_changed

        coefficients = self._problem_scores.coefficients[0]
        refuse_changed(self, [coefficients])
        if not isinstance(self.kernel_, Function | Precomputed):
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False)
        lengths, errors = kernel_scales(self.kernel_, [coefficients], self.support_vectors_, X)
        return self.predict(X)[:, np.newaxis], lengths, errors
