# SPDX-License-Identifier: BSD-3-Clause
"""Who takes part: ours first, then the peers. One line each."""

from __future__ import annotations

from benchmarks.solvers.base import Contestant, Fit
from benchmarks.solvers.liblinear import Liblinear
from benchmarks.solvers.maxmargin_solvers import MaxMargin
from benchmarks.solvers.scikit_learn import ScikitLinearSVC, ScikitSGD

QUALITIES = (1e-3, 1e-6)
OURS = "maxmargin"
OURS_ALL_CORES = "maxmargin, all cores"
OURS_FLOAT64 = "maxmargin, float64 input"
LIBLINEAR = "LIBLINEAR"
LINEAR_SVC = "scikit-learn LinearSVC"
SGD = "scikit-learn SGDClassifier"


def contestants(cores: int) -> list[Contestant]:
    """Fresh ones, in the order of the round robin."""
    ours: list[Contestant] = [MaxMargin(OURS, (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6), threads=1)]
    if cores > 1:
        ours.append(MaxMargin(OURS_ALL_CORES, QUALITIES, threads=cores))
    return [
        *ours,
        MaxMargin(OURS_FLOAT64, QUALITIES, threads=1, dtype="float64"),
        Liblinear(LIBLINEAR),
        ScikitLinearSVC(LINEAR_SVC),
        ScikitSGD(SGD),
    ]


__all__ = [
    "LIBLINEAR",
    "LINEAR_SVC",
    "OURS",
    "OURS_ALL_CORES",
    "OURS_FLOAT64",
    "QUALITIES",
    "SGD",
    "Contestant",
    "Fit",
    "contestants",
]
