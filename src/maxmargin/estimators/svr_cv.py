# SPDX-License-Identifier: BSD-3-Clause
"""The kernel regressor that chooses C, epsilon and gamma by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from maxmargin.core import Budget
from maxmargin.estimators.folds import Fold
from maxmargin.estimators.kernel_search import HeldOutScorer, KernelSearch, Line, Outcome, best_factor
from maxmargin.estimators.named_kernels import find_kernel, why_unproven
from maxmargin.estimators.svr import SVR
from maxmargin.estimators.tried_values import tried_values
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model
from maxmargin.reductions.one_kernel_problem import OneKernelProblem
from maxmargin.reductions.regression import Regression
from maxmargin.types import Vector

_NARROWEST, _WIDEST = 0.01, 0.3
"""Epsilon in standard deviations of y, where only a number is asked for."""


@dataclass(eq=False, repr=False, kw_only=True)
class SVRCV(RegressorMixin, KernelSearch):
    """Support vector regression with C, epsilon and gamma chosen by cross-validation, each fit certified.

    The parameters of ``SVR`` but for C, epsilon, gamma and warm_start mean what they mean there, and these
    are added. All fits of a gamma share the rows and, up to ``cache_size / 2``, the values of the kernel,
    and every fold begins at its multipliers of the last C, or of the last epsilon.

    Parameters
    ----------
    Cs : int or array
        The values of C to choose from, or how many of them, on a logarithmic scale from 1e-2 to 1e3
        standard deviations of y: C is in the unit of y.
    epsilons : int or array
        The values of epsilon, or how many of them, on a logarithmic scale from 0.01 to 0.3 standard
        deviations of y.
    gammas : int or array
        As in ``SVCCV``.
    cv : int, splitter, iterable or None
        The folds, as scikit-learn has them; None: 5.
    scoring : str, callable or None
        What the held-out rows are scored by; None: R^2, the coefficient of determination.
    refit : bool
        Whether to be the model of all rows at the chosen values afterwards.
    max_time : float or None
        Seconds for all fits together.
    callback : callable or None
        As in ``SVR``, from every fit.

    Attributes
    ----------
    C_, epsilon_, gamma_ : float
        The chosen values: of equal scores the smallest C, of these the largest epsilon, which has the
        fewest support vectors, and of these the smallest gamma. ``gamma_`` is None where the kernel has no
        gamma to choose.
    Cs_, epsilons_, gammas_ : ndarray
        The values they were chosen from.
    cv_results_, best_score_, best_params_, best_index_
        As in ``SVCCV``.
    best_estimator_ : SVR
        Fitted on all rows at the chosen values, as are the attributes of ``SVR``, which are here as well.
        Only with ``refit=True``.

    Ctrl-C ends the fit without a model: nothing is chosen yet.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import SVRCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SVRCV(Cs=[10.0, 100.0], epsilons=[1.0, 10.0], gammas=[1.0, 10.0]).fit(X, y)
    >>> model.best_params_
    {'C': 100.0, 'epsilon': 10.0, 'gamma': 1.0}
    """

    epsilons: int | ArrayLike = 3

    _machine: ClassVar[type[Any]] = SVR
    _orders_of_C: ClassVar[tuple[float, float]] = (-2.0, 3.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._values_of_epsilon(1.0)

    def _values_of_epsilon(self, unit: float) -> Vector:
        def made(count: int) -> Vector:
            return unit * (np.geomspace(_NARROWEST, _WIDEST, count) if count > 1 else np.array([0.1]))

        return tried_values(self, "epsilons", made, zero=True)

    def _axes(self, X: Any, targets: NDArray[Any], weights: Vector) -> dict[str, Vector]:
        unit = float(np.std(targets)) or 1.0
        return {
            "C": self._values_of_C(unit),
            "epsilon": self._values_of_epsilon(unit),
            "gamma": self._values_of_gamma(X, weights),
        }

    def _preferred(self, values: dict[str, Vector]) -> list[Vector]:
        order = {"gamma": 1.0, "epsilon": -1.0, "C": 1.0}
        return [sign * values[name] for name, sign in order.items() if name in values]

    def _is_quick(self, rows: int) -> bool:
        return False  # the loop of a regression is Python's, and one thread runs it at a time

    def _folds(self, splits: Sequence[Any], X: Any, targets: NDArray[Any], weights: Vector) -> list[Fold]:
        folds, count = [], len(targets)
        for i, (trained, held_out) in enumerate(splits):
            times = np.bincount(np.arange(count)[trained], minlength=count)
            if not (times * weights > 0.0).any():
                raise ValueError(
                    f"Fold {i} of {len(splits)} trains on no row with a weight above 0. Use fewer folds."
                )
            folds.append(Fold(np.arange(count)[held_out], times * weights))
        return folds

    def _line(
        self,
        model: SVR,
        X: Any,
        targets: NDArray[Any],
        weights: Vector,
        folds: list[Fold],
        budget: Budget,
        beside: int,
    ) -> Line:
        kernel = find_kernel(model, X, weights)
        stated = Regression(None, np.asarray(targets, np.float64), 1.0, 0.0, weights=weights)
        regression = OneKernelProblem(X, kernel, stated, float(self.cache_size), shared=model._threads())
        doubt = why_unproven(kernel, X, regression.matrix)
        regression.kernel_is_none |= bool(doubt)
        model.kernel_ = kernel
        return _Line(model, regression, folds, _Scorer(model, self.scoring, X, targets), budget, doubt)

    score = KernelSearch.score  # and not that of scikit-learn's RegressorMixin

    def prediction_bounds(self, X: Any) -> tuple[Vector, Vector]:
        """(low, high): the best model at the chosen values predicts a number between the two."""
        bounds: tuple[Vector, Vector] = self._best().prediction_bounds(X)
        return bounds


class _Line:
    """All folds at one gamma, to be fitted at one C and epsilon after the other."""

    def __init__(
        self,
        model: SVR,
        regression: OneKernelProblem,
        folds: Sequence[Fold],
        score: _Scorer,
        budget: Budget,
        doubt: str,
    ) -> None:
        self.regression, self.folds, self.score, self.budget = regression, folds, score, budget
        self.doubt = doubt
        self.running, self.shrinking = model._running(), bool(model.shrinking)
        _ = self.running.seed
        self.last: list[Certificate] = []
        self.last_point: dict[str, float] = {}
        self.at_cost: dict[float, list[Vector]] = {}
        """The multipliers of every fold at each C, of the last epsilon."""

    def fit(self, point: dict[str, float], seconds: float) -> NDArray[Any]:
        """The outcome of every fold."""
        C, epsilon = point["C"], point["epsilon"]
        running = replace(self.running, seconds=seconds / len(self.folds))
        found, last = np.empty(len(self.folds), object), list[Certificate]()
        for number, fold in enumerate(self.folds):
            before = time.perf_counter()
            part = self.regression.with_costs(fold.weights, C, epsilon)
            model = part.solve(running, shrinking=self.shrinking, start=self._start(number, C))
            if self.budget.stopped:
                break
            value = self.score(part, model, fold.held_out)
            seconds_taken = time.perf_counter() - before
            found[number] = Outcome(value, float(model.certificate.relative_gap), seconds_taken)
            last.append(model.certificate)
        self.last, self.last_point = last, point
        self.at_cost[C] = [proof.alpha for proof in last]
        return found

    def _start(self, number: int, C: float) -> Vector | None:
        """The multipliers of a fold at this C and the last epsilon, or the most of those at the last C."""
        if number < len(self.at_cost.get(C, ())):
            return self.at_cost[C][number]
        if not self.last:
            return None
        proof = self.last[number]
        targets = self.regression.with_costs(None, C, self.last_point["epsilon"]).targets
        return best_factor(proof, float(targets @ proof.alpha), C / self.last_point["C"]) * proof.alpha


class _Scorer(HeldOutScorer):
    """Knows the predictions for all rows of the regression."""

    def _answers(self, problem: OneKernelProblem, found: Model, held_out: NDArray[Any]) -> _Answers:
        return _Answers(problem.predictions(found)[held_out])

    def _model(self, problem: OneKernelProblem, found: Model) -> SVR:
        model = SVR(**self.template.get_params(deep=False))
        model.kernel_ = self.template.kernel_
        model._set_model(self.X, found)
        model._set_proof(problem.stated, found)
        return model


class _Answers(RegressorMixin, BaseEstimator):
    """A regressor whose predictions for the rows in question are known already."""

    def __init__(self, predictions: Vector) -> None:
        self.predictions = predictions

    def predict(self, X: Any) -> Vector:
        return self.predictions
