# SPDX-License-Identifier: BSD-3-Clause
"""A linear support vector regressor with scikit-learn's interface and a proof in every fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified_regressor import CertifiedRegressor
from maxmargin.estimators.linear_machine import LinearMachine
from maxmargin.estimators.reading import (
    MATRIX,
    card_for,
    checked_weights,
    from_card,
    in_the_kind_of,
    read_onto,
    scores_on,
    telling_of_tables,
)
from maxmargin.problem import Intercept
from maxmargin.problem.rows import Rows, lies_on_card
from maxmargin.reductions.linear_fit import LinearFit
from maxmargin.reductions.regression import Regression
from maxmargin.solvers import AnySolver
from maxmargin.tools.interrupts import Interrupts, held_back


@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVR(CertifiedRegressor, LinearMachine):
    """Linear support vector regression; every fit proves how close to the optimum it is.

        minimise over (w, b)   1/2 |w|^2  +  C sum_k weight_k max(0, |y_k - <w, x_k> - b| - epsilon)

    or with the squares of the losses.

    Parameters
    ----------
    epsilon : float
        How far a prediction may be off at no cost, in units of y.
    tol : float
        The relative gap to reach: ``(primal - dual) / |primal|``.
    C : float
        Weight of the losses: a larger C fits the data harder.
    loss : "epsilon_insensitive" or "squared_epsilon_insensitive"
        The loss of what a prediction is off by, beyond epsilon.
    fit_intercept : bool
        Whether there is an intercept b.
    intercept_scaling : float
        With ``regularize_intercept=True``, the value s of the constant feature: ``b^2 / (2 s^2)`` is
        added to the objective.
    dual : "auto" or bool
        Accepted for compatibility and without effect: every solver here proves its answer in the
        primal and the dual.
    regularize_intercept : bool
        False: b is free, as in ``SVR``. True: b is regularised, as in LIBLINEAR and scikit-learn's
        ``LinearSVR``.
    verbose, random_state, max_iter, solver, max_time, callback, warm_start, n_jobs, device
        As in ``LinearSVC``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
        Steps taken.
    certificate_ : Certificate
        The proof. Its margins and multipliers are those of two rows for each example: 2k for the lower
        wall of the tube, 2k + 1 for the upper one.
    trace_ : Trace
        The certificates on the way.
    status_ : Status
        Why the fit ended.
    solver_ : str
        What ran and why, in one sentence.

    Ctrl-C during a fit ends it: the best certified model so far is kept, and a warning says so.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from maxmargin import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=100.0, epsilon=5.0).fit(X, y)
    >>> bool(model.certificate_.relative_gap <= 1e-4)
    True
    """

    epsilon: takes.Tube = 0.0
    C: takes.Cost = 1.0
    loss: takes.TubeLoss = "epsilon_insensitive"
    fit_intercept: takes.Flag = True
    intercept_scaling: takes.ConstantFeature = 1.0
    dual: takes.Dual = "auto"
    solver: str | AnySolver = "auto"
    regularize_intercept: takes.Flag = False
    device: takes.Device = None

    def _fit_once(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Interrupts:
        self._check_parameters()
        card, rows = card_for(self.device, X), None
        if card is not None:
            _, values, rows = read_onto(card, self, X, y, y_numeric=True)
        else:
            X, y = from_card(X), from_card(y)
            with telling_of_tables(X):
                X, values = validate_data(self, X, y, order="C", y_numeric=True, **MATRIX)
        weights = checked_weights(sample_weight, values)
        with held_back() as interrupts:
            regression = Regression(
                rows or Rows(X, check_finite=False),
                np.asarray(values, np.float64),
                self.C,
                self.epsilon,
                self.loss,
                self._intercept_form(),
                self.intercept_scaling,
                weights,
            )
            models, coef = LinearFit(regression, self._running(), self._begin(regression.rows)).solve()
            self.coef_, self.n_iter_ = coef[0], max(1, models[0].steps)
            self._set_proof(regression, models[0])
        self._warn_of_shortfall()
        return interrupts

    def _intercept_form(self) -> Intercept:
        if not self.fit_intercept:
            return Intercept.NONE
        return Intercept.REGULARISED if self.regularize_intercept else Intercept.EXACT

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The coefficient of determination, R^2; arrays that lie on a GPU are taken, too."""
        if not lies_on_card(X):
            return float(super().score(X, y, sample_weight=sample_weight))
        return float(r2_score(from_card(y), self._scores(X), sample_weight=from_card(sample_weight)))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        if not lies_on_card(X):
            return super()._scores(X)
        check_is_fitted(self)
        if (card := card_for(self.device, X)) is None:
            return super()._scores(from_card(X))
        return np.asarray(scores_on(card, self, X, self.coef_[np.newaxis])[:, 0] + self.intercept_[0])

    def predict(self, X: Any) -> Any:
        """``<w, x> + b`` of each row."""
        return in_the_kind_of(X, self._scores(X))
