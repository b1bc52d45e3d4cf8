# SPDX-License-Identifier: BSD-3-Clause
"""What the members with a kernel share: some rows of the data, and the objective of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.datasets import load
from benchmarks.solvers.base import MissingPackage
from maxmargin.kernels import Gaussian
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import certify
from maxmargin.proof.solution import Solution

ROWS = 10_000
"""Of larger data sets as many rows are drawn: LIBSVM takes minutes for more."""
CACHE = 1000
"""Megabytes for rows of the kernel matrix, for all."""


def some_rows(name: str, rows: int = ROWS) -> tuple[Any, Any]:
    """At most so many rows, as a dense matrix in double precision, and their labels."""
    data = load(name)
    chosen = np.sort(np.random.default_rng(0).permutation(len(data.y))[:rows])
    X = data.X[chosen]
    X = X.toarray() if sparse.issparse(X) else X
    return np.ascontiguousarray(X, np.float64), data.y[chosen]


def seen(X: Any, gamma: float) -> KernelRows:
    """The rows through a Gaussian kernel."""
    return KernelRows(Rows(X), Gaussian(gamma))


def intelex(name: str) -> Any:
    """A class of scikit-learn-intelex."""
    try:
        from sklearnex import svm
    except ImportError as error:
        raise MissingPackage("scikit-learn-intelex") from error
    return getattr(svm, name)


def objective(problem: Problem, model: Any, *, scaled: bool = False) -> float:
    """The value of a fitted model's w, with the best intercept and, with nu, the best shift for it.

    ``scaled``: its w is in units of its own rho, and is brought to the total of the problem.
    """
    w = np.zeros(problem.rows.columns)
    w[model.support_] = np.asarray(model.dual_coef_)[0]
    if scaled:
        assert problem.total is not None
        w *= problem.total / np.abs(w).sum()
    return certify(problem, Solution(w=w)).primal
