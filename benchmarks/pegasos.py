# SPDX-License-Identifier: BSD-3-Clause
"""How many rows per second Pegasos steps through, on one core."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.datasets import DataSet
from benchmarks.objective import Objective


@dataclass(frozen=True)
class Rate:
    """Rows (steps of batch 1) per second of one variant."""

    variant: str
    rows_per_second: float


def rates(data: DataSet, C: float, repeat: int, least_seconds: float = 0.3) -> list[Rate]:
    """The best of several for every variant; the variants take turns."""
    import numpy as np

    from maxmargin.core import Budget
    from maxmargin.problem import Problem
    from maxmargin.solvers import Pegasos

    variants = {
        "last iterate, no projection": Pegasos(average="last", project=False),
        "last iterate, projection": Pegasos(average="last"),
        "mean of all iterates, projection": Pegasos(),
    }
    signs = Objective(data, "hinge", C).signs[:, 0]
    problem = Problem.of(data.X, signs, C, loss="hinge", intercept="regularised")
    budget = Budget(np.inf, 1)
    best = dict.fromkeys(variants, 0.0)
    for _ in range(repeat):
        for name, solver in variants.items():
            state = solver.step(problem, solver.init(problem, None), budget)
            epochs, start = 0, time.perf_counter()
            while time.perf_counter() - start < least_seconds:
                state = solver.step(problem, state, budget)
                epochs += 1
            seconds = time.perf_counter() - start
            best[name] = max(best[name], epochs * problem.rows.count / seconds)
    return [Rate(name, rate) for name, rate in best.items()]
