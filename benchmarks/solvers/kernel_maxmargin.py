# SPDX-License-Identifier: BSD-3-Clause
"""Ours: the whole ``SVC.fit`` on data as they are stored, which ends when its certificate reaches tol."""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.kernel_objective import KernelObjective
from benchmarks.solvers.kernel_base import CACHE_MEGABYTES, KernelContestant, KernelFit, answer_of

OUR_SETTINGS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


class MaxMarginSVC(KernelContestant):
    """Timed: validation, all problems and their proofs."""

    settings = OUR_SETTINGS

    def __init__(self, name: str, threads: int) -> None:
        super().__init__(name)
        self._threads = threads

    def prepare(self, objective: KernelObjective) -> None:
        self._objective = objective

    def fit(self, setting: float) -> KernelFit:
        objective = self._objective
        estimator = svc(objective.C, objective.gamma, setting, self._threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gap says whether it fell short
            start = time.perf_counter()
            estimator.fit(objective.data.X, objective.data.y)
            seconds = time.perf_counter() - start
        answer = answer_of(estimator.dual_coef_, estimator.support_, estimator.classes_.tolist(), objective)
        return KernelFit(seconds, answer, float(estimator.certificate_.relative_gap))


def svc(C: float, gamma: float, tol: float, threads: int, cache_size: float = CACHE_MEGABYTES) -> Any:
    """The estimator as all benchmarks configure it."""
    from maxmargin import SVC

    return SVC(C=C, gamma=gamma, tol=tol, cache_size=cache_size, random_state=0, n_jobs=threads)
