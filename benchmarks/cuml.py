# SPDX-License-Identifier: BSD-3-Clause
"""cuML's LinearSVC: L-BFGS on the primal problem, in single precision on a GPU.

It runs in a process of its own (`python -m benchmarks.cuml`), since it takes over the card's memory.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from typing import Any, NamedTuple

from benchmarks.gpu_rows import rows_on_card

_TOLERANCES = 1e-3, 1e-4, 1e-5, 1e-6
"""What it is tried at. In single precision a smaller one changes nothing."""
_STEPS = 2000
"""Steps that it may take: its default is 1,000."""
_TIMES = 2
"""Fits of a kind, of which the better one counts."""
_ROWS_AT_ONCE = 250_000
"""Rows whose losses are summed up at a time, in double precision."""


class Fit(NamedTuple):
    """What it found at one tolerance."""

    C: float
    tol: float
    seconds: float
    objective: float
    """Of its w and b, in double precision."""
    steps: int


def is_installed() -> bool:
    """Whether it can be measured."""
    return importlib.util.find_spec("cuml") is not None


def fits(shape: tuple[int, int], values_of_C: tuple[float, ...]) -> list[Fit]:
    """Fits of the hinge loss with a free intercept, at every tolerance; none where it fails."""
    given = json.dumps([shape, values_of_C])
    command = [sys.executable, "-m", "benchmarks.cuml", given]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        print(f"cuML failed: {answer.stderr.strip()[-600:]}", file=sys.stderr)
        return []
    return [Fit(*each) for each in json.loads(answer.stdout.splitlines()[-1])]


def _measured(shape: tuple[int, int], values_of_C: list[float]) -> list[Fit]:
    import cupy
    from cuml.svm import LinearSVC

    X, y = rows_on_card(cupy, shape)
    turned, found = cupy.asfortranarray(X), []  # column by column, as cuML wants it

    def fit(C: float, tol: float) -> tuple[float, Any]:
        options = {"C": C, "tol": tol, "max_iter": _STEPS, "penalized_intercept": False}
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        model = LinearSVC(loss="hinge", penalty="l2", **options).fit(turned, y)
        cupy.cuda.Device().synchronize()
        return time.perf_counter() - begin, model

    for C in values_of_C:
        for tol in _TOLERANCES:
            seconds, model = min((fit(C, tol) for _ in range(_TIMES)), key=lambda each: each[0])
            w = cupy.asarray(model.coef_, cupy.float64).ravel()
            value = 0.5 * float(w @ w)
            for first in range(0, len(X), _ROWS_AT_ONCE):
                some = slice(first, first + _ROWS_AT_ONCE)
                scores = X[some].astype(cupy.float64) @ w + float(model.intercept_[0])
                value += C * float(cupy.maximum(1.0 - (2.0 * y[some] - 1.0) * scores, 0.0).sum())
            found.append(Fit(C, tol, seconds, value, int(model.n_iter_)))
    return found


if __name__ == "__main__":
    given_shape, given_C = json.loads(sys.argv[1])
    print(json.dumps(_measured(tuple(given_shape), given_C)))
