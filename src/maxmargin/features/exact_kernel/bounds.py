# SPDX-License-Identifier: BSD-3-Clause
"""How far a linear model on approximate kernel features is from the SVM of the kernel itself.

The approximate and the exact problem have the same labels, costs and intercept. So the model's multipliers
alpha are feasible in the exact dual too, and so are t alpha for t in [0, 1]: the best D(t alpha), with the
exact kernel in it, is a lower bound on the exact optimum P*. Upper bounds are values of functions in the
space of the kernel. Nystroem's model is such a function (see ``in_span``): its own value is an upper bound,
and its distance to the lower bound says how far this very model is from the exact SVM. Random features
span no part of that space, so there the bracket tells where the exact optimum lies, and the model's value
can be compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from maxmargin.core import relative_gap
from maxmargin.estimators.linear_svc import LinearSVC
from maxmargin.estimators.linear_svc_cv import LinearSVCCV
from maxmargin.features.exact_kernel.bracket import (
    Bound,
    DualExpansion,
    ExactProblem,
    draw_rows,
    stand_in,
    upper_bound_by,
)
from maxmargin.features.exact_kernel.function import in_span, rounding_of_norm
from maxmargin.features.nystroem import Nystroem
from maxmargin.features.polynomial_sketch import PolynomialSketch
from maxmargin.features.random_fourier import RandomFourier
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import Certificate, feasible
from maxmargin.proof.model import Certificates
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.reductions.decompositions import decomposition
from maxmargin.tools.one_blas_thread import one_blas_thread

KernelMap = Nystroem | RandomFourier | PolynomialSketch


@dataclass(frozen=True)
class ExactKernelBound:
    """``lower <= P* <= upper`` for the best value P* of the exact kernel SVM, and the model beside it.

    It holds for every positive semidefinite kernel, up to the rounding of sums in double precision.
    """

    lower: float
    upper: float
    model_value: float
    """The model's objective: in the exact problem if ``model_is_exact``, else in its own."""
    model_is_exact: bool
    """Whether the model is a point of the exact problem, as Nystroem's are."""
    lower_rests_on: str
    upper_rests_on: str

    @property
    def gap(self) -> float:
        """How far from P* the model can be or, if it is no point of the problem, the point of ``upper``."""
        return max(self._proven - self.lower, 0.0)

    @property
    def relative_gap(self) -> float:
        """``gap`` over the value that it is the gap of."""
        return relative_gap(self._proven, self.lower)

    @property
    def _proven(self) -> float:
        return self.model_value if self.model_is_exact else self.upper

    def __str__(self) -> str:
        if self.model_is_exact:
            model = (
                f"This model is a point of the exact problem, of value {self.model_value:.8g}: within "
                f"{self.gap:.3g} of the best, a relative gap of {self.relative_gap:.2e}."
            )
        else:
            model = (
                f"This model is no point of the exact problem. Its own value is {self.model_value:.8g}; "
                f"the relative gap between the bounds is {self.relative_gap:.2e}."
            )
        return (
            f"The best value of the exact kernel SVM lies between {self.lower:.8g} and {self.upper:.8g}.\n"
            f"{model}\n"
            f"The lower bound comes from {self.lower_rests_on}.\n"
            f"The upper bound comes from {self.upper_rests_on}."
        )


class ExactKernelBounds(tuple[ExactKernelBound, ...]):
    """One bound per class against the rest; as a whole it is worth what the worst of them is worth."""

    __slots__ = ()

    @property
    def worst(self) -> ExactKernelBound:
        """The one with the largest relative gap."""
        return max(self, key=lambda bound: bound.relative_gap)

    @property
    def relative_gap(self) -> float:
        """The relative gap of the worst bound, the largest of all."""
        return self.worst.relative_gap

    def __str__(self) -> str:
        return f"One bound for each of {len(self)} classes. The worst of them:\n{self.worst}"

    def __repr__(self) -> str:
        return f"ExactKernelBounds({len(self)} classes, worst={self.worst!r})"


def exact_kernel_bound(
    fitted: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    landmarks: int = 1000,
    max_values: int = 2_000_000_000,
) -> ExactKernelBound | ExactKernelBounds:
    """What a fitted model on kernel features says about the SVM of the kernel itself.

    Parameters
    ----------
    fitted : Pipeline or (map, model)
        A ``Nystroem``, ``RandomFourier`` or ``PolynomialSketch``, and a ``LinearSVC`` or ``LinearSVCCV``
        fitted on its features; steps of a pipeline before them are applied to X.
    X, y, sample_weight :
        What it was fitted to. Other data give bounds that hold for those, and are looser.
    landmarks : int
        For random features: the size of the sample in whose span a function like the model is looked for.
    max_values : int
        About how many kernel values may be computed for a bound, for all classes together. The default is
        some ten seconds of work for rows with few values. Beyond it the quadratic term of the dual is
        bounded instead of computed, and the bound says so.

    Returns
    -------
    ExactKernelBound, or ExactKernelBounds for more than two classes, in the order of ``classes_``.
    """
    features, model, X = _parts(fitted, X)
    X = features._read(X, reset=False)
    for name, value in (("landmarks", landmarks), ("max_values", max_values)):
        if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1):
            raise ValueError(
                f"The {name!r} parameter of exact_kernel_bound must be an int in the range [1, inf). "
                f"Got {value!r} instead."
            )
    certificates = _certificates(model, X)
    problems = _problems(model, X, y, sample_weight)
    bounds = []
    with one_blas_thread():
        for problem, certificate in zip(problems, certificates, strict=True):
            exact = ExactProblem(problem, features.kernel_, X, int(max_values) // len(certificates))
            expansion = DualExpansion(exact, feasible(problem, certificate.alpha))
            if isinstance(features, Nystroem):
                bounds.append(_in_exact_space(expansion, features, certificate))
            else:
                bounds.append(_beside_it(expansion, features, certificate, int(landmarks)))
    return bounds[0] if len(bounds) == 1 else ExactKernelBounds(bounds)


def _in_exact_space(
    expansion: DualExpansion, features: Nystroem, certificate: Certificate
) -> ExactKernelBound:
    exact = expansion.exact
    function = in_span(features, certificate.w)
    norm = function.squared_norm + rounding_of_norm(function)
    model_value = exact.value(function.at(exact.X), norm, certificate.b)
    upper = Bound(model_value, "the model itself")
    return _bound(expansion.lower_bound(), [upper, expansion.upper_bound()], model_value, True)


def _beside_it(
    expansion: DualExpansion,
    features: RandomFourier | PolynomialSketch,
    certificate: Certificate,
    landmarks: int,
) -> ExactKernelBound:
    exact = expansion.exact
    count = min(landmarks, max(1, exact.max_values // exact.X.shape[0]))
    rows = draw_rows(exact.X.shape[0], count)
    span = Nystroem(count, features.kernel_).fit(exact.X[rows].astype(np.float64, copy=False))
    scores = np.asarray(features.transform(exact.X[rows]) @ certificate.w, np.float64)
    function = stand_in(exact, span, rows, scores)
    upper = upper_bound_by(exact, function, function.squared_norm + rounding_of_norm(function))
    return _bound(expansion.lower_bound(), [upper, expansion.upper_bound()], certificate.primal, False)


def _bound(
    lower: Bound, uppers: Sequence[Bound | None], model_value: float, model_is_exact: bool
) -> ExactKernelBound:
    upper = min((bound for bound in uppers if bound is not None), key=lambda bound: bound.value)
    return ExactKernelBound(
        lower.value, upper.value, model_value, model_is_exact, lower.rests_on, upper.rests_on
    )


def _parts(fitted: Any, X: Any) -> tuple[KernelMap, LinearSVC, Any]:
    """The map, the model, and X as the map sees it."""
    if isinstance(fitted, Pipeline) and len(fitted) >= 2:
        features, model = fitted[-2], fitted[-1]
        if len(fitted) > 2:
            X = fitted[:-2].transform(X)
    elif isinstance(fitted, tuple) and len(fitted) == 2:
        features, model = fitted
    else:
        raise TypeError(
            "exact_kernel_bound needs a pipeline that ends with a map and a model, or the pair "
            f"(map, model). Got {type(fitted).__name__} instead."
        )
    if not isinstance(features, KernelMap):
        raise TypeError(
            "The map must stand for a kernel: Nystroem, RandomFourier or PolynomialSketch. Got "
            f"{type(features).__name__} instead."
        )
    if not isinstance(model, LinearSVC | LinearSVCCV):
        raise TypeError(
            f"The model must be a LinearSVC or LinearSVCCV. Got {type(model).__name__} instead: only they "
            "have the multipliers that the bound rests on."
        )
    check_is_fitted(features)
    check_is_fitted(model)
    return features, model.best_estimator_ if isinstance(model, LinearSVCCV) else model, X


def _certificates(model: LinearSVC, X: Any) -> list[Certificate]:
    proof = getattr(model, "certificate_", None)
    each = list(proof) if isinstance(proof, Certificates) else [proof]
    certificates = [one for one in each if isinstance(one, Certificate)]
    if any(not one.knows_rows for one in certificates):
        raise ValueError(
            "exact_kernel_bound needs a multiplier for each row, and a fit in passes over Chunks keeps "
            "none: what it proves is about the problem on the features. Fit rows that fit into memory for "
            "a bound on the exact kernel."
        )
    if len(certificates) < len(each) or math.isinf(model._stated_problem["C"]):
        raise ValueError(
            "exact_kernel_bound needs the certificate of a soft margin. This model has none: fit it again, "
            "with a finite C."
        )
    rows = len(certificates[0].alpha)
    if X.shape[0] != rows:
        raise ValueError(
            f"X must hold the {rows} rows that the model was fitted to. Got {X.shape[0]} rows instead."
        )
    return certificates


def _problems(model: LinearSVC, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Iterator[Problem]:
    """The problems of the fit, as they were stated then; of their rows only the number counts here."""
    stated = model._stated_problem
    if stated["sample_weights"] and sample_weight is None:
        raise ValueError("The model was fitted with sample weights. Give the same sample_weight here.")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    targets = column_or_1d(y)
    labels = model.classes_
    if len(targets) != X.shape[0] or not np.isin(targets, labels).all():
        raise ValueError("y must hold, for each row of X, one of the classes of the model.")
    codes = np.searchsorted(labels, targets)
    problems = ClassProblems(
        labels,
        codes,
        Rows(X, check_finite=False, keep_zeros=True),
        decomposition(len(labels), pairs=False),
        weights=weights,
        **{name: stated[name] for name in ("C", "loss", "intercept", "intercept_scaling", "class_weight")},
    )
    for k in range(len(problems)):
        yield problems.problem(k)
