# SPDX-License-Identifier: BSD-3-Clause
"""``OneClassSVM`` against LIBSVM, as scikit-learn calls it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sklearn import svm

from benchmarks.family import Case, Peer
from benchmarks.family_members.with_kernel import CACHE, objective, seen, some_rows
from maxmargin import OneClassSVM
from maxmargin.problem.shares import one_class_problem

SETTINGS = {
    "a9a": (0.1, 0.05),
    "ijcnn1": (0.1, 1.0),
    "mnist38": (0.1, 0.02),
    "covtype_binary_scale": (0.1, 2.0),
}
"""nu and gamma."""


def cases(data: list[str] | None) -> Iterator[Case]:
    """Rows of one class or of two, whose labels are not looked at."""
    for name, (nu, gamma) in SETTINGS.items():
        if data is not None and name not in data:
            continue
        X, _ = some_rows(name)
        own = {"nu": nu, "gamma": gamma, "cache_size": CACHE}
        problem = one_class_problem(seen(X, gamma), nu)
        yield Case(
            "OneClassSVM",
            name,
            f"nu = {nu:g}, gamma = {gamma:g}",
            X,
            None,
            lambda tol, own=own: OneClassSVM(tol=tol, random_state=0, **own),
            [Peer("LIBSVM", lambda tol, own=own: svm.OneClassSVM(tol=tol, **own), 5.0)],
            partial(objective, problem),
        )
