# SPDX-License-Identifier: BSD-3-Clause
"""ThunderSVM, a solver for kernel SVMs on a GPU, through the C interface of its library.

Its source builds with ``nvcc -std=c++17 -arch=sm_90 -shared`` and the headers of cuBLAS and cuSPARSE. The
path of the library is the option ``--thundersvm`` of ``python -m benchmarks gpu``.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

_NEEDS = ("libnvJitLink.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcusparse.so.12")
"""What the library is linked with, where CUDA's libraries come as packages of Python."""
_MEMORY = 65_536
"""Megabytes that it may take on the card for rows of the kernel matrix; its default is 8,192."""


class Answer(NamedTuple):
    """What it found, and how long that took, the copying to the card included."""

    seconds: float
    support: Any
    """The places of its support vectors among the rows."""
    coefficients: Any
    """One line less than there are classes."""


class ThunderSVM:
    """The library, loaded once."""

    def __init__(self, path: str) -> None:
        packages = [Path(folder) for folder in sys.path if folder.endswith("site-packages")]
        for name in _NEEDS:
            found = [file for folder in packages for file in sorted(folder.glob(f"nvidia/**/{name}"))]
            if found:
                ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(path)
        self._library.model_new.restype = ctypes.c_void_p

    def fit(self, X: Any, y: Any, C: float, gamma: float) -> Answer:
        """A fit with the Gaussian kernel, at its default tolerance."""
        rows = sparse.csr_matrix(X).astype(np.float32)
        labels = np.asarray(y, np.float32)
        indices, indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        model = ctypes.c_void_p(self._library.model_new(0))
        columns, classes, succeeded = (ctypes.c_int * 1)(), (ctypes.c_int * 1)(), (ctypes.c_int * 1)()
        real = ctypes.c_float
        begin = time.perf_counter()
        self._library.sparse_model_scikit(
            rows.shape[0],
            *map(_pointer, (rows.data, indptr, indices, labels)),
            *(0, 2, 3, real(gamma), real(0.0), real(C), real(0.5), real(0.1), real(1e-3), 0),
            *(0, None, None, 0, -1, -1, _MEMORY, 0),
            *(columns, classes, succeeded, model),
        )
        seconds = time.perf_counter() - begin
        count, lines = int(self._library.n_sv(model)), classes[0] - 1
        table = np.zeros(lines * count, np.float32)
        self._library.get_coef(_pointer(table), classes[0], count, model)
        starts, places = np.zeros(count + 1, np.int32), np.zeros(count, np.int32)
        values, numbers = (
            np.zeros(count * rows.shape[1], np.float32),
            np.zeros(count * rows.shape[1], np.int32),
        )
        size = (ctypes.c_int * 1)()
        self._library.get_sv(*map(_pointer, (starts, numbers, values)), size, _pointer(places), model)
        self._library.model_free(model)
        return Answer(seconds, places, table.reshape(lines, count))


def _pointer(values: Any) -> Any:
    return values.ctypes.data_as(ctypes.c_void_p)
