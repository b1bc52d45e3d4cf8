# SPDX-License-Identifier: BSD-3-Clause
"""``SVC(probability=True)`` against scikit-learn's, by the objective of the machine behind it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn import svm

from benchmarks.family import Case, Peer
from benchmarks.family_members.with_kernel import CACHE, objective, seen, some_rows
from maxmargin import SVC, Problem

SETTINGS = {
    "a9a": (1.0, 0.05),
    "ijcnn1": (1.0, 1.0),
    "mnist38": (1.0, 0.02),
    "svmguide1": (1.0, 0.0002),
}
"""C and gamma."""


def cases(data: list[str] | None) -> Iterator[Case]:
    """Data of two classes."""
    for name, (C, gamma) in SETTINGS.items():
        if data is not None and name not in data:
            continue
        X, labels = some_rows(name)
        y = np.where(labels == labels.max(), 1.0, -1.0)
        own = {"C": C, "gamma": gamma, "cache_size": CACHE, "probability": True, "random_state": 0}
        yield Case(
            "SVC(probability=True)",
            name,
            f"C = {C:g}, gamma = {gamma:g}",
            X,
            y,
            lambda tol, own=own: SVC(tol=tol, **own),
            [Peer("scikit-learn", lambda tol, own=own: svm.SVC(tol=tol, **own), 5.0)],
            partial(objective, Problem.of(seen(X, gamma), y, C)),
        )
