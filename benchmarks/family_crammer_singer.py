# SPDX-License-Identifier: BSD-3-Clause
"""All classes in one problem: LinearSVC(multi_class="crammer_singer") beside LIBLINEAR -s 4.

Both minimise the same objective, with an intercept of scale 1. A fit counts once its objective is within
1e-3 of the best value, of which our certificate of a closer fit is a lower bound. Neither is told that:
each is tried with one setting of its tolerance after the other, and the first that suffices is shown.

    python -m benchmarks.family_crammer_singer [DATA ...]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.datasets import MissingData, load

DATA = ("mnist", "20news_tfidf", "sector_scale", "letter_scale", "pendigits")
NEAR = 1e-3
"""The share of the best value that an objective may be above it."""
CLOSE = 1e-4
"""The relative gap of the fit whose certificate bounds the best value."""
OUR_TOL = (3e-3, 1e-3)
THEIR_EPSILON = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
LONGEST = 40.0
"""Seconds of a fit after which no closer one is tried."""


class Fit(NamedTuple):
    """One fit: how long it took, and what it reached."""

    setting: str
    seconds: float
    objective: float


def objective(X: Any, codes: NDArray[np.intp], C: float, weights: NDArray[np.float64]) -> float:
    """The value of weights of which the last column is the intercept."""
    scores, rows = np.asarray(X @ weights[:, :-1].T) + weights[:, -1], np.arange(len(codes))
    own = scores[rows, codes].copy()
    scores += 1.0
    scores[rows, codes] -= 1.0
    return 0.5 * float((weights**2).sum()) + C * float((scores.max(axis=1) - own).sum())


def ours(X: Any, codes: NDArray[np.intp], C: float) -> Iterator[Fit]:
    """Fits of LinearSVC."""
    from maxmargin import LinearSVC

    for tol in OUR_TOL:
        begin = time.perf_counter()
        model = LinearSVC(multi_class="crammer_singer", C=C, tol=tol, random_state=0, max_time=LONGEST)
        model.fit(X, codes)
        seconds = time.perf_counter() - begin
        weights = np.column_stack([model.coef_, model.intercept_])
        yield Fit(f"tol {tol:g}", seconds, objective(X, codes, C, weights))


def theirs(X: Any, codes: NDArray[np.intp], C: float) -> Iterator[Fit]:
    """Fits of LIBLINEAR."""
    from liblinear.liblinearutil import parameter, problem, train

    stated, classes = (
        problem(codes.astype(float), sparse.csr_matrix(X, dtype=np.float64), bias=1),
        codes.max() + 1,
    )
    for epsilon in THEIR_EPSILON:
        begin = time.perf_counter()
        model = train(stated, parameter(f"-s 4 -c {C} -e {epsilon} -q"))
        seconds = time.perf_counter() - begin
        table = np.ctypeslib.as_array(model.w, shape=((X.shape[1] + 1) * classes,)).reshape(-1, classes)
        weights = np.empty((classes, X.shape[1] + 1))
        weights[np.array(model.get_labels(), int)] = table.T
        yield Fit(f"-e {epsilon:g}", seconds, objective(X, codes, C, weights))


def first_near(fits: Iterator[Fit], best: float) -> tuple[Fit, bool]:
    """The first fit that is near, and whether it is; else the last that was tried."""
    for fit in fits:
        if fit.objective <= (1.0 + NEAR) * best:
            return fit, True
        if fit.seconds > 0.5 * LONGEST:
            break
    return fit, False


def measured(name: str, C: float = 1.0, tell: Callable[[str], object] = print) -> str:
    """The line of a data set in the table."""
    from maxmargin import LinearSVC

    data = load(name)
    X, (_, codes) = data.X, np.unique(data.y, return_inverse=True)
    if name == "mnist":
        X = X.astype(np.float32) / np.float32(255)
    closer = LinearSVC(multi_class="crammer_singer", C=C, tol=CLOSE, random_state=0, max_time=LONGEST)
    best = closer.fit(X, codes).certificate_.dual
    results = []
    for who in (ours, theirs):
        fit, near = first_near(who(X, codes, C), best)
        above = fit.objective / best - 1.0
        tell(f"{name}, {who.__name__}: {fit.seconds:.3f} s with {fit.setting}, {above:.1e} above the bound")
        results.append((fit, near))
    (own, reached), (other, they_reached) = results
    shown = f"{other.seconds:.2f} s" if they_reached else f"not in {other.seconds:.0f} s"
    ratio = f"{'' if they_reached else 'more than '}{other.seconds / own.seconds:.1f}" if reached else ""
    size = f"{X.shape[0]:,} x {X.shape[1]:,}, {codes.max() + 1} classes"
    mine = f"{own.seconds:.2f} s" if reached else f"not in {own.seconds:.0f} s"
    return f"| {name} | {size} | {mine} | {shown} | {ratio} |"


def table(names: tuple[str, ...] = DATA) -> str:
    """The section of the page."""
    lines = ["| data | size | maxmargin | LIBLINEAR -s 4 | times as fast |", "|---|---|---|---|---|"]
    for name in names:
        try:
            lines.append(measured(name))
        except MissingData as missing:
            print(missing)
    return "\n".join(lines)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(table(tuple(sys.argv[1:]) or DATA))
