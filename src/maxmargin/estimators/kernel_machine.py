# SPDX-License-Identifier: BSD-3-Clause
"""What the estimators with a kernel and one problem share: regressors, and those of one class."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from maxmargin.core import Budget
from maxmargin.estimators.certified import check_solver
from maxmargin.estimators.named_kernels import (
    check_kernel,
    find_kernel,
    is_function,
    is_precomputed,
    why_unproven,
)
from maxmargin.estimators.one_problem import OneProblem
from maxmargin.estimators.reading import MATRIX, telling_of_tables, weights_or_zero
from maxmargin.kernels.base import Function, Linear, Precomputed
from maxmargin.proof.model import Model, Status
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.reductions.one_class import OneClass
from maxmargin.reductions.one_kernel_problem import OneKernelProblem
from maxmargin.reductions.regression import Regression
from maxmargin.tools.interrupts import Interrupts, held_back
from maxmargin.tools.parameters import check_options
from maxmargin.types import Vector


class KernelMachine(OneProblem):
    """An estimator with one problem on rows that are seen through a kernel."""

    kernel: Any
    shrinking: Any
    cache_size: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def _fit_once(self, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Interrupts:
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
        found = OneKernelProblem(X, kernel, self._statement(values, weights), float(self.cache_size))
        doubt = why_unproven(kernel, X, found.matrix)
        found.kernel_is_none |= bool(doubt)
        problem = found.stated.problem()
        start = self._last_multipliers(problem.rows.count)
        model = found.solve(self._running(), shrinking=bool(self.shrinking), start=start)
        self.kernel_, self.shape_fit_ = kernel, X.shape if hasattr(X, "shape") else (len(values),)
        self._set_model(X, model)
        self.n_iter_ = max(1, model.steps)
        self._set_proof(found.stated, model)
        self._outline = found.stated.outline(found.value_error)
        self._stated_problem |= {"kernel": str(kernel)}
        self.fit_status_ = 0 if self.status_.certified else 1
        return doubt

    @abstractmethod
    def _statement(self, values: Vector, weights: Vector | None) -> Regression | OneClass:
        """What is minimised, on rows that are yet to be named."""

    def _last_multipliers(self, count: int) -> Vector | None:
        """The multipliers of the last fit, if there was one on as many rows and it is to be the start."""
        proof: Any = getattr(self, "certificate_", None)
        if not self.warm_start or proof is None or len(proof.alpha) != count:
            return None
        alpha: Vector = proof.alpha
        return alpha

    def _checked_data(self, X: Any, y: ArrayLike | None) -> tuple[Any, Vector]:
        """The rows, and their numbers: those of one class are 1."""
        if is_function(self.kernel):
            # What X is, only the function knows.
            count = X.shape[0] if hasattr(X, "shape") else len(X)
            values = np.ones(count) if y is None else column_or_1d(y, warn=True, dtype=np.float64)
            check_consistent_length(X, values)
        else:
            self._refuse_sparse_matrix(X)
            with telling_of_tables(X):
                if y is None:
                    X = validate_data(self, X, order="C", **MATRIX)
                    values = np.ones(X.shape[0])
                else:
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

    def _scores(self, X: Any) -> NDArray[np.float64]:
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
        return self._scores(X)[:, np.newaxis], lengths, errors
