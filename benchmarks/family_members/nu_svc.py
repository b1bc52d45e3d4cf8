# SPDX-License-Identifier: BSD-3-Clause
"""``NuSVC`` against LIBSVM, as scikit-learn calls it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn import svm

from benchmarks.family import Case, Peer
from benchmarks.family_members.with_kernel import CACHE, objective, seen, some_rows
from maxmargin import NuSVC
from maxmargin.problem.shares import nu_classification_problem

SETTINGS = {
    "a9a": (0.35, 0.05),
    "ijcnn1": (0.1, 1.0),
    "mnist38": (0.05, 0.02),
    "covtype_binary_scale": (0.4, 2.0),
}
"""nu and gamma."""


def cases(data: list[str] | None) -> Iterator[Case]:
    """Data of two classes. The objective is that of costs of 1, whatever a model's own scale is."""
    for name, (nu, gamma) in SETTINGS.items():
        if data is not None and name not in data:
            continue
        X, labels = some_rows(name)
        y = np.where(labels == labels.max(), 1.0, -1.0)
        own = {"nu": nu, "gamma": gamma, "cache_size": CACHE}
        problem = nu_classification_problem(seen(X, gamma), y, nu)
        yield Case(
            "NuSVC",
            name,
            f"nu = {nu:g}, gamma = {gamma:g}",
            X,
            y,
            lambda tol, own=own: NuSVC(tol=tol, random_state=0, **own),
            [Peer("LIBSVM", lambda tol, own=own: svm.NuSVC(tol=tol, **own), 5.0)],
            partial(objective, problem, scaled=True),
        )
