# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's LinearSVC and SGDClassifier; timed: the whole fit."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.objective import Objective
from benchmarks.solvers.base import Contestant, Fit


class ScikitLinearSVC(Contestant):
    """Its copy of LIBLINEAR, with its default cap on iterations; on float64, as it wants."""

    settings = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
    setting_name = "tol"

    def prepare(self, objective: Objective) -> None:
        self._objective = objective

    def fit(self, setting: float) -> Fit:
        from sklearn.svm import LinearSVC

        objective = self._objective
        estimator = LinearSVC(
            loss=objective.loss,
            C=objective.C,
            tol=setting,
            dual=True,
            fit_intercept=True,
            intercept_scaling=1.0,
            max_iter=1000,
            random_state=0,
        )
        seconds = _timed(estimator, objective.X, objective.data.y)
        return Fit(seconds, estimator.coef_, estimator.intercept_)


class ScikitSGD(Contestant):
    """Stochastic gradient descent on the same objective.

    It minimises ``alpha / 2 |w|^2 + (1 / n) sum loss``: with alpha = 1 / (C n), ours over C n.
    The intercept is the weight of an appended constant column, because its own is not regularised.
    """

    settings = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
    setting_name = "max_iter"

    def prepare(self, objective: Objective) -> None:
        self._objective = objective
        ones = np.ones((objective.X.shape[0], 1))
        if sparse.issparse(objective.X):
            self._X: Any = sparse.csr_matrix(sparse.hstack([objective.X, ones], format="csr"))
        else:
            self._X = np.hstack([objective.X, ones])

    def fit(self, setting: float) -> Fit:
        from sklearn.linear_model import SGDClassifier

        objective = self._objective
        estimator = SGDClassifier(
            loss=objective.loss,
            alpha=1.0 / (objective.C * objective.X.shape[0]),
            fit_intercept=False,
            max_iter=int(setting),
            tol=None,
            random_state=0,
        )
        seconds = _timed(estimator, self._X, objective.data.y)
        return Fit(seconds, estimator.coef_[:, :-1], estimator.coef_[:, -1])


def _timed(estimator: Any, X: Any, y: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        estimator.fit(X, y)
        return time.perf_counter() - start
