# SPDX-License-Identifier: BSD-3-Clause
"""One fit of packed data in a process of its own: ours in chunks, or SGDClassifier.partial_fit.

``python -m benchmarks.chunks_process ours|sgd|sgd_chosen|read FILE LOSS LIMIT`` prints one JSON object.
LIMIT is the memory in bytes; for SGD it is the lower bound of the best objective.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.memory import reset_peak, status
from maxmargin import Chunks, LinearSVC

COST, QUALITY = 1.0, 1e-3
LONGEST = 150.0
"""Seconds that a fit in chunks may take."""
CHOSEN = {"learning_rate": "invscaling", "eta0": 0.01, "power_t": 0.5}
"""Step sizes for SGD that did well on a million of the drawn rows, where the default ones diverge."""
_LONGEST = 10.0
"""Seconds of partial_fit, after which SGD is not asked for more."""


def parts(path: str) -> Iterator[tuple[Any, Any]]:
    """The blocks of the file."""
    for chunk in Chunks(path):
        yield chunk.X, chunk.y


def objective(path: str, w: Any, b: float, loss: str) -> float:
    """That of all rows, by NumPy alone."""
    total = 0.5 * float(w @ w)
    for X, y in parts(path):
        slack = np.maximum(0.0, 1.0 - np.where(y > 0, 1.0, -1.0) * (X @ w + b))
        total += COST * float((slack * slack if loss == "squared_hinge" else slack).sum())
    return total


def read(path: str) -> dict[str, Any]:
    """Two passes over the blocks that nothing is computed from, as fits read them: copied into new arrays.

    The first compares the checksums, as the first pass of a fit does; the others do not.
    """
    chunks, seconds = Chunks(path), []
    for _ in range(3):
        start = time.perf_counter()
        for _chunk in chunks:
            pass
        seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "seconds": min(seconds[1:])}


def ours(path: str, loss: str, memory: int, longest: float = LONGEST) -> dict[str, Any]:
    """A fit in chunks."""
    reset_peak()
    before = status("VmHWM")
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(loss=loss, C=COST, tol=QUALITY, max_time=longest)
        model.fit(Chunks(path, memory=memory))
    seconds = time.perf_counter() - start
    peak = status("VmHWM")
    proof = model.certificate_
    value = objective(path, model.coef_[0], float(model.intercept_[0]), loss)
    return {
        "seconds": seconds,
        "passes": int(model.n_iter_),
        "gap": float(proof.relative_gap),
        "dual": float(proof.dual),
        "above": value / float(proof.dual) - 1.0,
        "memory": peak - before,
        "peak": peak,
    }


def sgd(path: str, loss: str, dual: float, **steps: Any) -> dict[str, Any]:
    """Epochs of SGD until it is truly as near as ``QUALITY``, or its time is over."""
    from sklearn.linear_model import SGDClassifier

    rows = sum(len(y) for _, y in parts(path))
    model = SGDClassifier(loss=loss, alpha=1.0 / (COST * rows), random_state=0, **steps)
    seconds, above, epochs = 0.0, np.inf, 0
    classes: Any = None
    while above > QUALITY and seconds < _LONGEST:
        start = time.perf_counter()
        for X, y in parts(path):
            classes = np.unique(y) if classes is None else classes
            model.partial_fit(X, y, classes=classes)
            if time.perf_counter() - start + seconds > 2 * _LONGEST:
                break
        seconds += time.perf_counter() - start
        epochs += 1
        value = objective(path, model.coef_[0].astype(np.float64), float(model.intercept_[0]), loss)
        above = value / dual - 1.0
    return {"seconds": seconds, "passes": epochs, "above": above, "cut": seconds > 2 * _LONGEST}


def main(arguments: list[str]) -> None:
    """Print what was asked for."""
    what, path, loss, limit = arguments
    tasks: dict[str, Any] = {
        "read": lambda: read(path),
        "ours": lambda: ours(path, loss, int(limit)),
        "sgd": lambda: sgd(path, loss, float(limit)),
        "sgd_chosen": lambda: sgd(path, loss, float(limit), **CHOSEN),
    }
    print(json.dumps(tasks[what]()))


if __name__ == "__main__":
    main(sys.argv[1:])
