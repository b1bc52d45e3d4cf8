# SPDX-License-Identifier: BSD-3-Clause
"""P* of a kernel problem, as a lower bound that is proved, computed once."""

from __future__ import annotations

import warnings

from benchmarks.kernel_objective import KernelObjective
from benchmarks.machine import cores, newest_source
from benchmarks.reference import Reference, cached, fingerprint
from benchmarks.solvers.kernel_base import answer_of
from benchmarks.solvers.kernel_maxmargin import svc

TOLERANCE = 1e-8
_SECONDS = 600.0


def kernel_reference(objective: KernelObjective) -> Reference:
    """From the cache in the temporary folder, or solved now; both values are recomputed in NumPy."""
    told = f"gaussian {objective.C!r} {objective.gamma!r} {TOLERANCE} {newest_source()}"
    name = f"{objective.data.name}-gaussian-{fingerprint(objective.data, told)}"
    return cached(name, lambda: _solve(objective))


def _solve(objective: KernelObjective) -> Reference:
    estimator = svc(objective.C, objective.gamma, TOLERANCE, cores())
    estimator.set_params(max_time=_SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page tells its gap
        estimator.fit(objective.data.X, objective.data.y)
    classes = estimator.classes_.tolist()
    values = objective.values(answer_of(estimator.dual_coef_, estimator.support_, classes, objective))
    return Reference(values.dual, values.primal)
