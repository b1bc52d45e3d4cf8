# SPDX-License-Identifier: BSD-3-Clause
"""``SVCCV`` against ``GridSearchCV`` over scikit-learn's ``SVC``: 10 values of C, 10 of gamma, 5 folds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks import machine
from benchmarks.family import Case, Peer
from benchmarks.family_members.with_kernel import some_rows
from maxmargin import SVCCV

ROWS = {
    "heart_scale": 270,
    "svmguide1": 1500,
    "a9a": 1000,
    "ijcnn1": 1500,
    "mnist38": 800,
    "pendigits": 1000,
}
"""How many rows are drawn of each: GridSearchCV takes minutes for more."""
_COSTS = np.logspace(-2, 4, 10)


def cases(data: list[str] | None) -> Iterator[Case]:
    """The same grid and the same folds for both; both use all cores."""
    for name, rows in ROWS.items():
        if data is not None and name not in data:
            continue
        X, y = some_rows(name, rows)
        gammas = np.logspace(-2, 2, 10) / (X.shape[1] * X.var())
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        yield Case(
            "SVCCV",
            name,
            "10 x 10, 5 folds",
            X,
            y,
            lambda tol, gammas=gammas, folds=folds: SVCCV(
                Cs=_COSTS, gammas=gammas, cv=folds, random_state=0
            ),
            [
                Peer(
                    "GridSearchCV",
                    lambda tol, gammas=gammas, folds=folds: _searched(gammas, folds),
                    10.0,
                    (1e-3,),
                )
            ],
            lambda model: float(model.best_score_),
            scored=True,
        )


def _searched(gammas: Any, folds: Any) -> GridSearchCV:
    grid = {"C": _COSTS, "gamma": gammas}
    return GridSearchCV(svm.SVC(cache_size=1000), grid, cv=folds, n_jobs=machine.cores())
