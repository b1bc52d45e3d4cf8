# SPDX-License-Identifier: BSD-3-Clause
"""Memory and work of one fit, in a process of its own: python -m benchmarks.kernel_process JSON"""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks import kernel_data
from benchmarks.kernel_objective import KernelObjective
from benchmarks.machine import cores
from benchmarks.memory import reset_peak, status
from benchmarks.new_process import in_new_process
from benchmarks.solvers.kernel_base import answer_of
from benchmarks.solvers.kernel_maxmargin import svc

_CHECKED_ROWS = 100


@dataclass(frozen=True)
class Asked:
    """What to fit."""

    data: str
    rows: int | None
    C: float | None
    gamma: float | None
    tol: float
    cache_size: float
    """In megabytes."""


@dataclass(frozen=True)
class Measured:
    """What one fit took; sizes in bytes."""

    asked: Asked
    title: str
    described: str
    seconds: float
    relative_gap: float
    primal: float
    dual: float
    support: int
    rounds: int
    """Working sets."""
    computed_rows: int
    """Of the kernel matrix, or of a part of it; a row that was computed twice counts twice."""
    input: int
    peak: int | None
    """Above what was in memory before the fit; None where the system cannot tell."""
    largest_difference: float
    """Between scores of some rows and the same in plain NumPy."""


def measure(asked: Asked) -> Measured:
    """In a new process."""
    told = in_new_process("kernel_process", json.dumps(asdict(asked)))
    return Measured(**{**told, "asked": asked})


class _Counts:
    """Rounds and rows of all working sets, read after every call of the core."""

    def __init__(self) -> None:
        self.rounds = 0
        self.rows: list[int] = []

    def watch(self) -> None:
        """From now on."""
        from maxmargin import core

        made, counts = core.WorkingSet, self

        class Counted:
            def __init__(self, matrix: Any, *arguments: Any) -> None:
                self._set, self._matrix = made(matrix, *arguments), matrix
                self._number = len(counts.rows)
                counts.rows.append(0)

            def run(self, *arguments: Any) -> Any:
                rounds = self._set.run(*arguments)
                counts.rounds += rounds
                counts.rows[self._number] = self._matrix.computed_rows
                return rounds

            def __getattr__(self, name: str) -> Any:
                return getattr(self._set, name)

        core.WorkingSet = Counted


def _main(asked: Asked) -> None:
    generator = np.random.default_rng(0)
    # Everything is imported and run once, so that only the data make the difference.
    svc(1.0, 1.0, 1e-3, cores()).fit(generator.normal(size=(200, 5)), np.arange(200) % 2)
    objective = kernel_data.objective(asked.data, asked.rows, asked.C, asked.gamma)
    counts = _Counts()
    counts.watch()
    estimator = svc(objective.C, objective.gamma, asked.tol, cores(), asked.cache_size)
    gc.collect()
    before = status("VmRSS") if reset_peak() else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says whether it fell short
        start = time.perf_counter()
        estimator.fit(objective.data.X, objective.data.y)
        seconds = time.perf_counter() - start
    peak = None if before is None else status("VmHWM") - before
    proof = estimator.certificate_
    each = list(proof) if len(objective.pairs) > 1 else [proof]
    told = Measured(
        asked=asked,
        title=objective.title,
        described=objective.data.describe(),
        seconds=seconds,
        relative_gap=float(proof.relative_gap),
        primal=sum(certificate.primal for certificate in each),
        dual=sum(certificate.dual for certificate in each),
        support=len(estimator.support_),
        rounds=counts.rounds,
        computed_rows=sum(counts.rows),
        input=objective.data.bytes,
        peak=peak,
        largest_difference=_check(objective, estimator),
    )
    print(json.dumps(asdict(told)))


def _check(objective: KernelObjective, estimator: Any) -> float:
    """Scores of some rows, against the same in NumPy; of several classes, those of the first pair."""
    pair = objective.pairs[0]
    chosen = kernel_data.some_rows(len(objective.data.y), _CHECKED_ROWS)
    estimator.set_params(decision_function_shape="ovo")
    scores = estimator.decision_function(objective.data.X[chosen]).reshape(len(chosen), -1)[:, 0]
    classes = estimator.classes_.tolist()
    rows, alpha = answer_of(estimator.dual_coef_, estimator.support_, classes, objective)[0]
    # Of two classes the second is positive, of a pair among several its first.
    positive = pair[1] if len(classes) == 2 else pair[0]
    coefficients = np.where(objective.data.y[rows] == positive, alpha, -alpha)
    expected = objective.scores(chosen, rows, coefficients[:, np.newaxis])[:, 0] + estimator.intercept_[0]
    return float(np.abs(scores - expected).max())


if __name__ == "__main__":
    _main(Asked(**json.loads(sys.argv[1])))
