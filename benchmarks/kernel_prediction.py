# SPDX-License-Identifier: BSD-3-Clause
"""Prediction of test rows, against scikit-learn's SVC with the very same support vectors."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import kernel_data
from benchmarks.machine import cores
from benchmarks.solvers.kernel_maxmargin import svc
from benchmarks.solvers.kernel_scikit_learn import scikit_svc

DATA = ("mnist", "a9a")
_REPEAT_SECONDS = 30.0


@dataclass
class Prediction:
    """Best seconds of ``predict`` for all test rows."""

    title: str
    queries: int
    support: int
    ours: float
    ours_one_thread: float
    scikit: float
    scikit_form: str
    different: int
    """Rows for which the two answers differ."""
    accuracy: float


def measure(name: str, rows: int | None, repeat: int, tell: Callable[[str], None]) -> Prediction:
    """Ours is trained; scikit-learn's SVC is given its support vectors and coefficients."""
    tell(f"prediction: {name}, training")
    objective = kernel_data.objective(name, rows)
    ours = svc(objective.C, objective.gamma, 1e-3, cores()).fit(objective.data.X, objective.data.y)
    test = kernel_data.load(name, rows, "test")
    tell(f"prediction: {name}")
    all_cores, answer = _timed(ours, test.X, repeat)
    one_thread, _ = _timed(ours.set_params(n_jobs=1), test.X, repeat)
    X = test.X.astype(np.float64)
    forms = {"dense": X.toarray(), "sparse": X} if sparse.issparse(X) else {"dense": X}
    times = {}
    for form, queries in forms.items():
        peer = _same_model(ours, objective.C, objective.gamma, form)
        times[form], peer_answer = _timed(peer, queries, repeat)
    best = min(times, key=lambda form: times[form])
    return Prediction(
        title=objective.title,
        queries=len(test.y),
        support=len(ours.support_),
        ours=all_cores,
        ours_one_thread=one_thread,
        scikit=times[best],
        scikit_form=best,
        different=int((answer != peer_answer).sum()),
        accuracy=float((answer == test.y).mean()),
    )


def _timed(estimator: Any, X: Any, repeat: int) -> tuple[float, Any]:
    best, spent = math.inf, 0.0
    for _ in range(repeat):
        start = time.perf_counter()
        answer = estimator.predict(X)
        seconds = time.perf_counter() - start
        best, spent = min(best, seconds), spent + seconds
        if spent > _REPEAT_SECONDS:
            break
    return best, answer


def _same_model(ours: Any, C: float, gamma: float, form: str) -> Any:
    """scikit-learn's SVC as if its fit had found our support vectors: training it would take far longer."""
    support = ours.support_vectors_
    coefficients = ours.dual_coef_
    if sparse.issparse(support) and form == "dense":
        support, coefficients = support.toarray(), coefficients.toarray()
    support = support.astype(np.float64)
    few = _one_of_each(ours)
    peer = scikit_svc(C, gamma, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(support[few], ours.classes_)
    # LIBSVM's own signs: its first class is positive, of two classes as well.
    sign = -1.0 if len(ours.classes_) == 2 else 1.0
    peer.support_, peer.support_vectors_ = ours.support_, support
    peer._n_support = ours.n_support_
    peer.dual_coef_, peer._dual_coef_ = coefficients, sign * coefficients
    peer.intercept_, peer._intercept_ = ours.intercept_, sign * ours.intercept_
    peer.shape_fit_ = ours.shape_fit_
    return peer


def _one_of_each(ours: Any) -> Any:
    """A support vector of every class; they are sorted by class."""
    return np.concatenate([[0], np.cumsum(ours.n_support_)[:-1]])
