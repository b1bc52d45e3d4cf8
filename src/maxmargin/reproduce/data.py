# SPDX-License-Identifier: BSD-3-Clause
"""The lectures' data sets: files that are not part of the package, from a folder that the caller names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.files import read

DIGITS = {"mnist38": ("mnist", 3, 8)}
"""Two classes of a larger set: its name and their labels."""
UNDIVIDED = ("covtype_binary_scale", "news20_binary_like")
"""Sets without a part for tests: a random fifth of the rows is set aside."""


class MissingData(ValueError):
    """A data set is not on this machine; the message says where it was looked for, and what to do."""


@dataclass(frozen=True, eq=False)
class Data:
    """A data set, its labels -1 and 1."""

    name: str
    X: Any
    y: NDArray[np.float64]
    X_test: Any
    y_test: NDArray[np.float64]

    @property
    def size(self) -> str:
        """Rows and columns in words."""
        return f"{self.X.shape[0]:,} x {self.X.shape[1]:,}"


def data_folder(given: Path | None) -> Path:
    """The folder given, else that of MAXMARGIN_DATA, else ../shared/data."""
    return given or Path(os.environ.get("MAXMARGIN_DATA", "../shared/data"))


def missing(names: tuple[str, ...], given: Path | None) -> list[str]:
    """The data sets among these whose files are not there."""
    folder = data_folder(given)
    return [name for name in names if not all(path.is_file() for path in _paths(name, folder))]


def load(name: str, given: Path | None = None, *, rows: int | None = None) -> Data:
    """A data set; with ``rows``, at most so many for training and as many for the test, drawn at random."""
    folder = data_folder(given)
    if missing((name,), given):
        wanted = " and ".join(path.name for path in _paths(name, folder))
        raise MissingData(
            f"{name} needs {wanted} in {folder}. Name the folder with --data or MAXMARGIN_DATA, or choose "
            "parts that need no files: pegasos_bound, subgradient, support_vectors."
        )
    parts = [_read(name, path) for path in _paths(name, folder)]
    random = np.random.default_rng(0)
    if len(parts) == 1:
        X, y = parts[0]
        order = random.permutation(len(y))
        cut = len(y) * 4 // 5
        parts = [(X[which], y[which]) for which in (order[:cut], order[cut:])]
    if rows is not None:
        parts = [_some(X, y, rows, random) for X, y in parts]
    (X, y), (X_test, y_test) = parts
    return Data(name, X, y, X_test, y_test)


def _paths(name: str, folder: Path) -> list[Path]:
    stem = DIGITS[name][0] if name in DIGITS else name
    kinds = ("train",) if name in UNDIVIDED else ("train", "test")
    return [folder / f"{stem}.{kind}.npz" for kind in kinds]


def _read(name: str, path: Path) -> tuple[Any, NDArray[np.float64]]:
    data = read(path, dtype=np.float32)
    X, y = data.X, np.asarray(data.y, np.float64)
    if name in DIGITS:
        _, first, second = DIGITS[name]
        chosen = (y == first) | (y == second)
        X, y = X[chosen] / np.float32(255), y[chosen]
    return X, np.where(y == y.max(), 1.0, -1.0)


def _some(X: Any, y: NDArray[np.float64], rows: int, random: np.random.Generator) -> tuple[Any, Any]:
    which = np.sort(random.permutation(len(y))[:rows])
    return X[which], y[which]
