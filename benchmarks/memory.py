# SPDX-License-Identifier: BSD-3-Clause
"""Peak memory of a fit, each in its own process: python -m benchmarks.memory NAME DTYPE load|fit"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import datasets
from benchmarks.new_process import in_new_process
from benchmarks.solvers.maxmargin_solvers import linear_svc
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Certificates

DATA = ("imdb_tfidf", "news20_binary_like", "20news_tfidf")
_TOL = 1e-3


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    data: str
    dtype: str
    input: int
    float32_copy: int
    """Of one CSR copy with float32 values and the input's indices."""
    answer: int
    """What stays when the fit is over: coef_, and the certificates' numbers for every row."""
    peak_difference: int
    """Peak of (load and fit) minus peak of (load only)."""
    above_loaded: int | None
    """Peak during the fit minus what was in memory before it; None where the system cannot tell."""


def measure(name: str, dtype: str) -> Memory:
    """Two processes: one that only loads, one that loads and fits."""
    loaded, fitted = (in_new_process("memory", name, dtype, what) for what in ("load", "fit"))
    return Memory(
        data=name,
        dtype=dtype,
        input=fitted["input"],
        float32_copy=fitted["float32_copy"],
        answer=fitted["answer"],
        peak_difference=max(0, fitted["peak"] - loaded["peak"]),
        above_loaded=fitted["above_loaded"],
    )


def _main(name: str, dtype: str, what: str) -> None:
    generator = np.random.default_rng(0)
    # Both processes import and run everything once, so that only the data make the difference.
    linear_svc("hinge", 1.0, _TOL, 1).fit(generator.normal(size=(50, 50)), np.arange(50) % 2)
    data = datasets.load(name, dtype)
    gc.collect()
    peak_of_loading = _peak()
    before = status("VmRSS") if reset_peak() else None
    answer = {"answer": 0, "above_loaded": None}
    if what == "fit":
        estimator = linear_svc("hinge", 1.0, _TOL, 1).fit(data.X, data.y)
        answer["answer"] = estimator.coef_.nbytes + _certificate_bytes(estimator.certificate_)
        if before is not None:
            answer["above_loaded"] = status("VmHWM") - before
    answer["peak"] = max(peak_of_loading, _peak())
    answer["input"] = data.bytes
    answer["float32_copy"] = data.bytes - data.stored * (data.X.dtype.itemsize - 4)
    print(json.dumps(answer))


def _certificate_bytes(certificates: Certificate | Certificates) -> int:
    """Without w, which is coef_'s."""
    each = [certificates] if isinstance(certificates, Certificate) else certificates
    return sum(c.alpha.nbytes + c.margins.nbytes + c.row_classes.nbytes for c in each)


def _peak() -> int:
    if sys.platform == "linux":
        return status("VmHWM")  # ru_maxrss starts from the peak of the parent process
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def reset_peak() -> bool:
    """Linux forgets the peak of a process on request."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise KeyError(field)


if __name__ == "__main__":
    _main(*sys.argv[1:])
