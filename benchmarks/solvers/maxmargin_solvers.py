# SPDX-License-Identifier: BSD-3-Clause
"""Ours: the whole ``LinearSVC.fit``, which ends when its own certificate reaches ``tol``."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.objective import Objective
from benchmarks.solvers.base import Contestant, Fit


class MaxMargin(Contestant):
    """The automatic choice of solver; timed: validation, solve and proof, for every class."""

    setting_name = "tol"

    def __init__(
        self, name: str, settings: tuple[float, ...], threads: int, dtype: str | None = None
    ) -> None:
        super().__init__(name)
        self.settings = settings
        self._threads = threads
        self._dtype = dtype

    def prepare(self, objective: Objective) -> None:
        self._objective = objective
        X = objective.data.X
        self._X = X if self._dtype is None or X.dtype == self._dtype else X.astype(self._dtype)

    def fit(self, setting: float) -> Fit:
        objective = self._objective
        estimator = linear_svc(objective.loss, objective.C, setting, self._threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gap says whether it fell short
            start = time.perf_counter()
            estimator.fit(self._X, objective.data.y)
            seconds = time.perf_counter() - start
        return Fit(seconds, estimator.coef_, estimator.intercept_, _largest_gap(estimator))


def linear_svc(loss: str, C: float, tol: float, threads: int) -> Any:
    """The estimator as all benchmarks configure it."""
    from maxmargin import LinearSVC

    return LinearSVC(
        loss=loss,
        C=C,
        tol=tol,
        regularize_intercept=True,
        max_iter=100_000,
        random_state=0,
        n_jobs=threads,
    )


def trace(objective: Objective, tol: float) -> list[tuple[float, float]]:
    """Seconds and certified gap after every step, of a problem with two classes, on one thread.

    The clock runs during the certificates too: a fit certifies rarely and is faster.
    """
    from maxmargin.problem import Problem
    from maxmargin.solving.loop import solve

    start = time.perf_counter()
    problem = Problem.of(
        objective.data.X,
        objective.signs[:, 0],
        objective.C,
        loss=objective.loss,
        intercept="regularised",
    )
    before = time.perf_counter() - start
    model = solve(
        problem,
        "auto",
        tol=tol,
        max_steps=100_000,
        max_time=10.0,
        certify_every=1,
        threads=1,
    )
    return [(before + record.seconds, record.relative_gap) for record in model.trace]


def _largest_gap(estimator: Any) -> float:
    if len(estimator.classes_) == 2:
        return float(estimator.certificate_.relative_gap)
    return float(np.max([each.relative_gap for each in estimator.certificate_]))
