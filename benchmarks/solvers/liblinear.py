# SPDX-License-Identifier: BSD-3-Clause
"""LIBLINEAR's dual solvers, -s 3 (hinge) and -s 1 (squared hinge), by its own Python package."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.objective import Objective
from benchmarks.solvers.base import Contestant, Fit, MissingPackage

_SOLVER = {"hinge": 3, "squared_hinge": 1}


class Liblinear(Contestant):
    """Timed: the C function ``train`` alone. Not timed: the conversion to its node format."""

    settings = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
    setting_name = "-e"

    def prepare(self, objective: Objective) -> None:
        try:
            from liblinear import liblinear as package
        except ImportError as error:
            raise MissingPackage("liblinear-official") from error
        self._package: Any = package
        self._objective = objective
        labels = objective.data.y.astype(np.float64)
        self._problem = package.problem(labels, sparse.csr_matrix(objective.X), 1.0)

    def fit(self, setting: float) -> Fit:
        package, objective = self._package, self._objective
        options = f"-s {_SOLVER[objective.loss]} -c {objective.C!r} -B 1 -e {setting!r} -q"
        parameter = package.parameter(options)
        ctypes.CDLL(None).srand(1)  # it draws from C's rand: the same seed, the same run
        start = time.perf_counter()
        pointer = package.liblinear.train(self._problem, parameter)
        seconds = time.perf_counter() - start
        model = package.toPyModel(pointer)
        columns = objective.X.shape[1] + 1
        raw = np.ctypeslib.as_array(model.w, shape=(columns * objective.problems,)).copy()
        W = raw.reshape(columns, objective.problems).T
        labels = np.array(model.get_labels())
        if objective.problems == 1:
            W = W if labels[0] == objective.data.classes[1] else -W
        else:
            W = W[np.argsort(labels)]
        return Fit(seconds, W[:, :-1], W[:, -1])
