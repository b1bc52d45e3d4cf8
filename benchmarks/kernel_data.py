# SPDX-License-Identifier: BSD-3-Clause
"""The kernel problems: data, C and gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import datasets
from benchmarks.datasets import DataSet
from benchmarks.kernel_objective import KernelObjective

PARAMETERS = {
    "a9a": (8.0, 2.0**-5),
    "ijcnn1": (32.0, 2.0),
    "mnist38": (2.0, 2.0**-5),
    "mnist": (2.0, 2.0**-5),
    "covtype_binary_scale": (32.0, 32.0),
}
"""C and gamma of 001's tables 4 and 5; those of mnist are those of its digits 3 and 8."""
DEFAULT = ("a9a", "ijcnn1", "mnist38")
SLOW = {"mnist": ("libsvm",)}
"""Contestants that take part in a problem only if they are named: a fit takes them an hour or so."""


def objective(
    name: str, rows: int | None = None, C: float | None = None, gamma: float | None = None
) -> KernelObjective:
    """A problem; on so many rows, drawn with a fixed seed, if not on all."""
    data = load(name, rows)
    known_C, known_gamma = PARAMETERS.get(name, (1.0, 1.0 / data.X.shape[1]))
    return KernelObjective(data, known_C if C is None else C, known_gamma if gamma is None else gamma)


def load(name: str, rows: int | None = None, part: str = "train") -> DataSet:
    """A data set as it is stored; the bytes of mnist become float32 in [0, 1]."""
    data = datasets.load(name, part=part)
    X, y = data.X, data.y
    if rows is not None and rows < len(y):
        chosen = some_rows(len(y), rows)
        X, y = X[chosen], y[chosen]
    if X.dtype == np.uint8:
        X = X.astype(np.float32) / np.float32(255)
    return DataSet(name, X, y)


def some_rows(count: int, wanted: int) -> Any:
    """Drawn with a fixed seed, in their order."""
    return np.sort(np.random.default_rng(0).permutation(count)[:wanted])
