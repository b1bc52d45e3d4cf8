# SPDX-License-Identifier: BSD-3-Clause
"""``SVR`` against LIBSVM, as scikit-learn calls it, and scikit-learn-intelex."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sklearn import svm
from sklearn.preprocessing import scale

from benchmarks.family import Case, Peer
from benchmarks.family_members.with_kernel import CACHE, intelex, objective, seen, some_rows
from maxmargin import SVR
from maxmargin.problem.regression import regression_problem

SETTINGS = {
    "cpusmall": ((1.0, 0.1, 0.1), (100.0, 0.1, 0.1)),
    "abalone": ((1.0, 0.1, 0.2), (100.0, 0.1, 0.2)),
    "housing_scale": ((10.0, 0.1, 0.1),),
}
"""C, epsilon and gamma, of columns and values that are standardised."""


def cases(data: list[str] | None) -> Iterator[Case]:
    """Data with numbers as labels."""
    for name, settings in SETTINGS.items():
        if data is not None and name not in data:
            continue
        X, values = some_rows(name)
        X, y = scale(X), scale(values.astype(float))
        for C, epsilon, gamma in settings:
            own = {"C": C, "epsilon": epsilon, "gamma": gamma, "cache_size": CACHE}
            problem = regression_problem(seen(X, gamma), y, C, epsilon=epsilon)
            yield Case(
                "SVR",
                name,
                f"C = {C:g}, epsilon = {epsilon:g}, gamma = {gamma:g}",
                X,
                y,
                lambda tol, own=own: SVR(tol=tol, random_state=0, **own),
                [
                    Peer("LIBSVM", lambda tol, own=own: svm.SVR(tol=tol, **own), 10.0),
                    Peer("scikit-learn-intelex", lambda tol, own=own: intelex("SVR")(tol=tol, **own), 2.0),
                ],
                partial(objective, problem),
            )
