# SPDX-License-Identifier: BSD-3-Clause
"""Fits on at most 500 rows, against scikit-learn's SVC: as in ``small``, and how good the answers are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import datasets, kernel_data
from benchmarks.datasets import DataSet
from benchmarks.kernel_objective import KernelObjective
from benchmarks.kernel_reference import kernel_reference
from benchmarks.machine import cores
from benchmarks.small import best_of, kernel_data_sets
from benchmarks.solvers.kernel_base import answer_of
from benchmarks.solvers.kernel_maxmargin import svc
from benchmarks.solvers.kernel_scikit_learn import scikit_svc

COSTS = (1.0, 100.0)
_ROWS = 500
_TOL = 1e-3
"""The default of both, though it means different things."""
_FITS_PER_ROUND = 20


@dataclass(frozen=True)
class SmallFit:
    """One problem; milliseconds of the best fit, and the suboptimality of both answers."""

    title: str
    described: str
    ours: float
    scikit: float
    our_error: float
    scikit_error: float


def measure(repeat: int, tell: Callable[[str], None]) -> list[SmallFit]:
    """Both take turns; gamma is scikit-learn's "scale", as a number."""
    measured = []
    for data in _data():
        for C in COSTS:
            tell(f"small: {data.name}, C = {C:g}")
            measured.append(_measure_one(KernelObjective(data, C, _scale(data.X)), repeat))
    return measured


def _measure_one(objective: KernelObjective, repeat: int) -> SmallFit:
    ours = svc(objective.C, objective.gamma, _TOL, cores())
    scikit = scikit_svc(objective.C, objective.gamma, _TOL)
    data = objective.data
    times = best_of((ours, scikit), data.X, data.y, _FITS_PER_ROUND * repeat)
    errors = _error(objective, ours), _error(objective, scikit)
    return SmallFit(objective.title, data.describe(), *times, *errors)


def _error(objective: KernelObjective, estimator: Any) -> float:
    classes = estimator.classes_.tolist()
    answer = answer_of(estimator.dual_coef_, estimator.support_, classes, objective)
    return kernel_reference(objective).suboptimality(objective.values(answer).primal)


def _data() -> Iterator[DataSet]:
    for name, X, y in kernel_data_sets():
        yield DataSet(name, X, y.astype(np.int64))
    for name in ("heart_scale", "svmguide1", "rcv1_vw1k"):
        try:
            yield kernel_data.load(name, _ROWS)
        except datasets.MissingData:
            continue


def _scale(X: Any) -> float:
    """1 / (columns * variance)."""
    variance = X.multiply(X).mean() - X.mean() ** 2 if sparse.issparse(X) else X.var()
    return float(1.0 / (X.shape[1] * variance))
