# SPDX-License-Identifier: BSD-3-Clause
"""One fit of degree-2 monomials in a process of its own: python -m benchmarks.degree2_process JSON

    minimise  1/2 |w|^2 + C sum_i max(0, 1 - y_i <w, phi(x_i)>),    <phi(x), phi(z)> = (gamma <x, z> + 1)^2

No intercept: the constant is among the monomials.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks import datasets
from benchmarks.machine import cores
from benchmarks.memory import reset_peak, status
from benchmarks.new_process import in_new_process
from benchmarks.solvers.base import MissingPackage

LIBLINEAR, LAZY, WRITTEN_OUT = "LIBLINEAR", "maxmargin, lazy", "maxmargin, written out"


@dataclass(frozen=True)
class Asked:
    """What to fit, by whom."""

    contestant: str
    data: str
    C: float
    gamma: float
    setting: float
    """LIBLINEAR's eps, or our tol."""


@dataclass(frozen=True)
class Measured:
    """What one fit took, and what it is worth."""

    asked: Asked
    seconds: float
    """Of expansion and training."""
    expansion_seconds: float
    peak: int | None
    """Bytes above what was in memory with the data loaded; None where the system cannot tell."""
    primal: float
    certified_gap: float | None
    columns: int
    stored: int
    """Products of all rows."""
    rows: int
    ran: str
    """Which solver and why."""


def measure(asked: Asked) -> Measured:
    """In a new process."""
    told = in_new_process("degree2_process", json.dumps(asdict(asked)))
    return Measured(**{**told, "asked": asked})


def expansion(gamma: float, *, lazy: bool) -> Any:
    from maxmargin.features import Monomials

    return Monomials(2, scaling="kernel", gamma=gamma, lazy=lazy, max_bytes=2**36)


def primal(phi: Any, signs: NDArray[np.float64], C: float, w: NDArray[np.float64]) -> float:
    """The objective in plain SciPy."""
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - signs * (phi @ w)).sum())


def _liblinear(X: Any, y: NDArray[Any], asked: Asked) -> tuple[float, float, NDArray[np.float64]]:
    """Not timed: the conversion of the expansion to its node format."""
    try:
        from liblinear import liblinear as package
    except ImportError as error:
        raise MissingPackage("liblinear-official") from error
    start = time.perf_counter()
    phi = expansion(asked.gamma, lazy=False).fit_transform(X)
    expanding = time.perf_counter() - start
    problem = package.problem(y.astype(np.float64), sparse.csr_matrix(phi), -1)
    columns = phi.shape[1]
    del phi
    parameter = package.parameter(f"-s 3 -c {asked.C!r} -B -1 -e {asked.setting!r} -q")
    ctypes.CDLL(None).srand(1)  # it draws from C's rand: the same seed, the same run
    start = time.perf_counter()
    pointer = package.liblinear.train(problem, parameter)
    training = time.perf_counter() - start
    model = package.toPyModel(pointer)
    w = np.ctypeslib.as_array(model.w, shape=(columns,)).copy()
    return expanding, training, w if model.get_labels()[0] == y.max() else -w


def _maxmargin(X: Any, y: NDArray[Any], asked: Asked) -> tuple[float, float, Any]:
    from maxmargin import LinearSVC

    estimator = LinearSVC(
        loss="hinge",
        C=asked.C,
        tol=asked.setting,
        fit_intercept=False,
        max_iter=100_000,
        random_state=0,
        n_jobs=cores(),
    )
    start = time.perf_counter()
    phi = expansion(asked.gamma, lazy=asked.contestant == LAZY).fit_transform(X)
    expanding = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says whether it fell short
        estimator.fit(phi, y)
    return expanding, time.perf_counter() - start - expanding, estimator


def _main(asked: Asked) -> None:
    run = _liblinear if asked.contestant == LIBLINEAR else _maxmargin
    # Everything is imported and run once, so that only the data make the difference.
    generator = np.random.default_rng(0)
    run(sparse.csr_matrix(generator.normal(size=(50, 3))), np.arange(50) % 2, asked)
    data = datasets.load(asked.data)
    gc.collect()
    before = status("VmRSS") if reset_peak() else None
    expanding, training, answer = run(data.X, data.y, asked)
    peak = None if before is None else status("VmHWM") - before
    ours = asked.contestant != LIBLINEAR
    phi = expansion(asked.gamma, lazy=False).fit_transform(data.X)
    w = answer.coef_[0] if ours else answer
    signs = np.where(data.y == data.y.max(), 1.0, -1.0)
    told = Measured(
        asked=asked,
        seconds=expanding + training,
        expansion_seconds=expanding,
        peak=peak,
        primal=primal(phi.astype(np.float64), signs, asked.C, w),
        certified_gap=float(answer.certificate_.relative_gap) if ours else None,
        columns=phi.shape[1],
        stored=phi.nnz if sparse.issparse(phi) else phi.size,
        rows=phi.shape[0],
        ran=answer.solver_.split(":")[0] if ours else "",
    )
    print(json.dumps(asdict(told)))


if __name__ == "__main__":
    _main(Asked(**json.loads(sys.argv[1])))
