# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's SVC and that of scikit-learn-intelex; timed: the whole fit."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.kernel_objective import KernelObjective
from benchmarks.solvers.base import MissingPackage
from benchmarks.solvers.kernel_base import (
    CACHE_MEGABYTES,
    PEER_SETTINGS,
    TIGHTER,
    KernelContestant,
    KernelFit,
    answer_of,
    trial_rows,
)

_DENSE_COLUMNS = 2_000


class ScikitSVC(KernelContestant):
    """Its copy of LIBSVM, in float64, as it wants; dense or sparse, whichever is faster in a trial."""

    settings = (*PEER_SETTINGS, TIGHTER)

    def prepare(self, objective: KernelObjective) -> None:
        self._objective = objective
        X = objective.data.X.astype(np.float64)
        self._X: Any = X
        if X.shape[1] > _DENSE_COLUMNS:
            return
        forms = (X.toarray(), X) if sparse.issparse(X) else (X, sparse.csr_matrix(X))
        trial = trial_rows(X.shape[0])
        times = []
        for form in forms:
            estimator = scikit_svc(objective.C, objective.gamma, 1.0)
            times.append(timed_fit(estimator, form[trial], objective.data.y[trial]))
        self._X = forms[int(np.argmin(times))]

    def fit(self, setting: float) -> KernelFit:
        estimator = scikit_svc(self._objective.C, self._objective.gamma, setting)
        return _fitted(estimator, self._X, self._objective)


class IntelexSVC(KernelContestant):
    """oneDAL's SVC by scikit-learn-intelex: float32 and dense, which is its fastest form; all cores."""

    # With several classes it refuses 1.
    settings = (0.9, *PEER_SETTINGS[1:], TIGHTER)

    def prepare(self, objective: KernelObjective) -> None:
        try:
            from sklearnex.svm import SVC
        except ImportError as error:
            raise MissingPackage("scikit-learn-intelex") from error
        self._class = SVC
        self._objective = objective
        X = objective.data.X
        X = X.toarray() if sparse.issparse(X) else X
        self._X = np.ascontiguousarray(X, np.float32)

    def fit(self, setting: float) -> KernelFit:
        objective = self._objective
        options = {"C": objective.C, "gamma": objective.gamma, "tol": setting}
        estimator = self._class(kernel="rbf", cache_size=CACHE_MEGABYTES, **options)
        fit = _fitted(estimator, self._X, objective)
        if not hasattr(estimator, "_onedal_estimator"):
            raise RuntimeError("scikit-learn-intelex left the fit to scikit-learn: nothing was compared.")
        return fit


def scikit_svc(C: float, gamma: float, tol: float) -> Any:
    """The estimator as all benchmarks configure it."""
    from sklearn.svm import SVC

    return SVC(kernel="rbf", C=C, gamma=gamma, tol=tol, cache_size=CACHE_MEGABYTES)


def timed_fit(estimator: Any, X: Any, y: Any) -> float:
    """Seconds of ``fit``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        estimator.fit(X, y)
        return time.perf_counter() - start


def _fitted(estimator: Any, X: Any, objective: KernelObjective) -> KernelFit:
    seconds = timed_fit(estimator, X, objective.data.y)
    table, support = estimator.dual_coef_, estimator.support_
    return KernelFit(seconds, answer_of(table, support, estimator.classes_.tolist(), objective))
