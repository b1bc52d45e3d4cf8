# SPDX-License-Identifier: BSD-3-Clause
"""The kernel that parameters of an estimator stand for: names, gamma="scale" or "auto", callables.

``SeesThroughKernel`` is what classifiers, regressors and those of one class share that have such a kernel.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.reading import MATRIX, from_card, here, some_of, telling_of_tables
from maxmargin.kernels.base import KERNEL_NAMES, Function, Kernel, Linear, Precomputed, kernel_from_name
from maxmargin.kernels.expansions import Among
from maxmargin.kernels.validity import doubt_about
from maxmargin.problem.rows import Matrix, in_numpy
from maxmargin.proof.model import each_of
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.solvers import AnySolver
from maxmargin.solving.loop import Callback
from maxmargin.tools.parameters import AnyNumber, Natural, check_choice, wrong
from maxmargin.types import Indices, Vector

_WITHOUT_GAMMA = ("linear", "precomputed")
_LARGEST_COST = 1e10
"""The C that stands for an infinite one: values of common kernels are near 1, and multipliers far below."""


def is_precomputed(kernel: Any) -> bool:
    """Whether the values of the kernel are given in the place of the data."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")


def is_function(kernel: Any) -> bool:
    """Whether the kernel is a user's function, which alone knows what its arguments are."""
    return isinstance(kernel, Function) or (callable(kernel) and not isinstance(kernel, Kernel))


def check_kernel(estimator: Any) -> None:
    """``kernel``, before any data are seen."""
    kernel = estimator.kernel
    if isinstance(kernel, str):
        check_choice(
            estimator, "kernel", KERNEL_NAMES, "A callable or a maxmargin.kernels object is taken too."
        )
    elif not callable(kernel):
        names = ", ".join(map(repr, KERNEL_NAMES))
        raise wrong(
            estimator, "kernel", kernel, f"one of {names}, a callable, or a maxmargin.kernels object"
        )


def find_kernel(estimator: Any, X: Any, weights: Vector | None) -> Kernel:
    """The kernel that the parameters stand for on X, with gamma as a number."""
    kernel = estimator.kernel
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        return Function(kernel)
    gamma = 1.0 if kernel in _WITHOUT_GAMMA else find_gamma(estimator.gamma, X, weights)
    return kernel_from_name(kernel, int(estimator.degree), gamma, float(estimator.coef0))


def find_gamma(gamma: str | float, X: Any, weights: Vector | None) -> float:
    """The value of gamma: "scale" and "auto" as scikit-learn defines them.

    A weight counts as a repetition of its row, also in the variance of X.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / float(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        if not sparse.issparse(X) and (weights is None or (weights == weights[0]).all()):
            variance = float(X.var(dtype=np.float64))
        else:
            variance = _weighted_variance(X, weights)
        value = 1.0 / (float(X.shape[1]) * variance) if variance > 0 else 1.0
    if math.isfinite(variance) and math.isfinite(value):
        return value
    raise ValueError(
        f"gamma='scale' needs a variance of X that can be inverted in float64. Got {variance:g} instead. "
        "The dual coefficients or intercepts are not finite then. Scale the features, for instance with "
        "StandardScaler."
    )


def _weighted_variance(X: Any, weights: Vector | None) -> float:
    """The variance of all values of X, each counted as often as its row weighs, in double precision."""
    if sparse.issparse(X):
        means = np.asarray(X.mean(axis=1, dtype=np.float64)).ravel()
        squares = np.asarray(X.multiply(X).mean(axis=1, dtype=np.float64)).ravel()
        spreads = squares - means**2
    else:
        means = from_card(X.mean(axis=1, dtype=np.float64))
        spreads = from_card(X.var(axis=1, dtype=np.float64))
    mean = np.average(means, weights=weights)
    return float(np.average(spreads + (means - mean) ** 2, weights=weights))


def why_unproven(kernel: Kernel, X: Any, matrix: NDArray[Any] | None) -> str:
    """What is to be warned of where the function is not shown to be a kernel on these rows; else empty."""
    doubt = "" if kernel.is_known else doubt_about(kernel, X, matrix)
    if not doubt:
        return ""
    return (
        f"{doubt} Training goes on and ends, but without a kernel the problem is not convex: its "
        "certificate is no proof, and the model may be far from the best. The Gaussian kernel, or a "
        "polynomial one with coef0 >= 0, has no such trouble."
    )


@dataclass(eq=False, repr=False, kw_only=True)
class KernelParameters(BaseEstimator):
    """The parameters that all estimators with a kernel have: ``SVC`` says what they mean."""

    kernel: Any = "rbf"
    degree: Natural = 3
    coef0: AnyNumber = 0.0
    shrinking: takes.Flag = True
    tol: takes.Tolerance = 1e-3
    cache_size: takes.Megabytes = 1000.0
    verbose: takes.Verbose = 0
    max_iter: takes.Steps = -1
    random_state: takes.RandomState = None
    solver: str | AnySolver = "auto"
    max_time: takes.Seconds = None
    callback: Callback | None = None
    n_jobs: takes.Jobs = None


@dataclass(eq=False, repr=False, kw_only=True)
class SeesThroughKernel(KernelParameters):
    """An estimator whose rows are seen through a kernel: its data, support vectors and scores."""

    gamma: takes.Gamma = "scale"
    warm_start: takes.Flag = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    def _read(self, X: Any, y: Any, **kind: Any) -> tuple[Any, Any]:
        """The rows and what goes with them, checked; ``kind`` are scikit-learn's options for y."""
        y = in_numpy(y)
        if is_function(self.kernel):
            # What X is, only the function knows.
            y = None if y is None else column_or_1d(y, warn=True)
            check_consistent_length(X, y)
        else:
            X = here(self, X)
            self._refuse_sparse_matrix(X)
            with telling_of_tables(X):
                read = validate_data(self, X, y, order="C", **MATRIX, **({} if y is None else kind))
            X, y = (read, None) if y is None else read
        if is_precomputed(self.kernel) and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix: a row and a column for every example. Input "
                f"is a {X.shape[0]}x{X.shape[1]} matrix. Give kernel(X_train, X_train) to fit."
            )
        return X, y

    def _refuse_sparse_matrix(self, X: Any) -> None:
        if sparse.issparse(X) and is_precomputed(self.kernel):
            raise TypeError("Sparse precomputed kernels are not supported. Use X.toarray().")

    def _set_support(self, X: Any, support: Indices, counts: NDArray[Any], table: Matrix) -> None:
        """The support vectors, how many there are of each class, and the lines of ``dual_coef_``."""
        self.support_, self.n_support_ = support.astype(np.int32), counts.astype(np.int32)
        coefficients = np.ascontiguousarray(table)
        self.dual_coef_ = sparse.csr_matrix(coefficients) if sparse.issparse(X) else coefficients
        if isinstance(self.kernel_, Precomputed):
            self.support_vectors_ = np.empty((0, 0), X.dtype)
        elif isinstance(self.kernel_, Function):
            self.support_vectors_ = _safe_indexing(X, self.support_)
            self._fit_rows = X  # with all of which a function is called, as in scikit-learn
        else:
            self.support_vectors_ = from_card(some_of(X, self.support_))
        self._set_scores(coefficients)

    def _set_scores(self, coefficients: Matrix) -> None:
        """How rows are scored; the coefficients are those of ``dual_coef_``, not sparse."""
        support: Any = self.support_ if isinstance(self.kernel_, Precomputed) else self.support_vectors_
        if isinstance(self.kernel_, Function):
            support = Among(self._fit_rows, self.support_)
        self._problem_scores = KernelScores(self.kernel_, support, coefficients, self.n_support_)

    @property
    def coef_(self) -> Any:
        """``w`` of every problem; of the linear kernel only."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = self._problem_scores.weights()
        # Computed from ``dual_coef_``, which predicts: a change of it would be lost.
        (weights.data if sparse.issparse(weights) else weights).flags.writeable = False
        return weights

    @property
    def _n_support(self) -> NDArray[Any]:
        """``n_support_``, where converters of scikit-learn's models look for it."""
        return self.n_support_

    def _finite_cost(self, C: float) -> float:
        """C, or for an infinite one a number that no multiplier reaches where rows can be separated."""
        return _LARGEST_COST if math.isinf(C) else float(C)

    def _warn_of_no_hard_margin(self, C: float) -> None:
        """Warn where C is infinite and a multiplier has reached what stands for it."""
        if not math.isinf(C):
            return
        estimator: Any = self
        largest = max(float(proof.alpha.max(initial=0.0)) for proof in each_of(estimator.certificate_))
        if largest >= 0.5 * _LARGEST_COST:
            from maxmargin.telling.doubts import DoubtfulModelWarning

            warnings.warn(
                f"C = inf asks that no row costs anything, and that cannot be: at C = {_LARGEST_COST:g} "
                "some do. The model is that of this C. Give a finite C, or a kernel that tells more apart.",
                DoubtfulModelWarning,
                stacklevel=4,
            )

    def _to_score(self, X: Any) -> Any:
        """Rows that are to be scored, checked."""
        if int(self.n_support_.sum()) != self._problem_scores.coefficients.shape[1]:
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: n_support_ does not "
                "add up to the number of support vectors. Fit again."
            )
        if isinstance(self.kernel_, Function):
            return X
        X = here(self, X)
        self._refuse_sparse_matrix(X)
        return validate_data(self, X, order="C", reset=False, **MATRIX)
