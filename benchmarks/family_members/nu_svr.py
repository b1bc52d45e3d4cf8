# SPDX-License-Identifier: BSD-3-Clause
"""``NuSVR`` against LIBSVM, as scikit-learn calls it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sklearn import svm
from sklearn.preprocessing import scale

from benchmarks.family import Case, Peer
from benchmarks.family_members.with_kernel import CACHE, objective, seen, some_rows
from maxmargin import NuSVR
from maxmargin.problem.shares import nu_regression_problem

SETTINGS = {"cpusmall": (0.5, 10.0, 0.2), "abalone": (0.3, 10.0, 0.5)}
"""nu, C and gamma, of columns and values that are standardised."""


def cases(data: list[str] | None) -> Iterator[Case]:
    """Data with numbers as labels."""
    for name, (nu, C, gamma) in SETTINGS.items():
        if data is not None and name not in data:
            continue
        X, values = some_rows(name)
        X, y = scale(X), scale(values.astype(float))
        own = {"nu": nu, "C": C, "gamma": gamma, "cache_size": CACHE}
        problem = nu_regression_problem(seen(X, gamma), y, C, nu)
        yield Case(
            "NuSVR",
            name,
            f"nu = {nu:g}, C = {C:g}, gamma = {gamma:g}",
            X,
            y,
            lambda tol, own=own: NuSVR(tol=tol, random_state=0, **own),
            [Peer("LIBSVM", lambda tol, own=own: svm.NuSVR(tol=tol, **own), 5.0)],
            partial(objective, problem),
        )
