# SPDX-License-Identifier: BSD-3-Clause
"""The data sets: read from ``../shared/data`` or from the folder in MAXMARGIN_DATA."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

COSTS = {
    "a9a": (1.0, 32.0),
    "ijcnn1": (1.0, 32.0),
    "covtype_binary_scale": (0.0625, 1.0, 32.0),
    "mnist38": (0.03125, 1.0),
    "imdb_tfidf": (1.0, 10.0),
    "news20_binary_like": (1.0, 10.0),
    "20news_tfidf": (1.0, 10.0),
}
"""The data sets of a plain run, and the values of C that each is measured at."""
DEFAULT = tuple(COSTS)
SELECTABLE = (
    *DEFAULT,
    "reuters_moneyfx",
    "rcv1_vw1k",
    "mnist",
    "sector_scale",
    "news20_counts",
    "svmguide1",
    "mushrooms",
    "heart_scale",
    "abalone",
    "cpusmall",
    "housing_scale",
    "letter_scale",
    "pendigits",
    "skin_nonskin",
)


class MissingData(Exception):
    """A data set is not on this machine; the message says where it was looked for."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """One part of a data set, in the precision in which it is stored."""

    name: str
    X: Any
    """CSR with 32-bit indices, or a dense matrix; float32 or float64."""
    y: NDArray[Any]
    """Whole numbers, but for targets that are none."""

    @property
    def classes(self) -> NDArray[Any]:
        return np.unique(self.y)

    @property
    def stored(self) -> int:
        return int(self.X.nnz) if sparse.issparse(self.X) else int(self.X.size)

    @property
    def bytes(self) -> int:
        """Size of X in memory."""
        if sparse.issparse(self.X):
            return self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes
        return self.X.nbytes

    def describe(self) -> str:
        return (
            f"{self.X.shape[0]:,} x {self.X.shape[1]:,}, {self.stored:,} stored values, "
            f"{len(self.classes)} classes, {self.X.dtype}"
        )


def folder() -> Path:
    """Where the data are."""
    repository = Path(__file__).resolve().parent.parent
    return Path(os.environ.get("MAXMARGIN_DATA", repository.parent / "shared" / "data"))


def find(name: str, part: str = "train") -> Path:
    """The file of a data set, "train" or "test"; MissingData where there is none."""
    if name not in SELECTABLE:
        raise ValueError(f"The data set must be one of {', '.join(SELECTABLE)}. Got {name!r} instead.")
    stem = "mnist" if name == "mnist38" else name
    path = folder() / f"{stem}.{part}.npz"
    if not path.exists():
        raise MissingData(
            f"{name} is skipped: {path.name} is neither in ../shared/data nor in the folder that "
            "MAXMARGIN_DATA names."
        )
    return path


def load(name: str, dtype: str | None = None, part: str = "train") -> DataSet:
    """A part of a data set, "train" or "test", converted to ``dtype`` if one is given."""
    with np.load(find(name, part)) as archive:
        y = archive["y"].astype(np.float64 if name == "housing_scale" else np.int64)
        if "X" in archive:
            X: Any = archive["X"]
        else:
            parts = archive["data"], archive["indices"], archive["indptr"]
            X = sparse.csr_matrix(parts, shape=tuple(archive["shape"]))
    if name == "mnist38":
        chosen = (y == 3) | (y == 8)
        X, y = X[chosen].astype(np.float32) / np.float32(255), y[chosen]
    if dtype is not None and X.dtype != dtype:
        X = X.astype(dtype)
    return DataSet(name, X, y)
