# SPDX-License-Identifier: BSD-3-Clause
"""LIBSVM's C-SVC (-s 0 -t 2) by its own Python package."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.kernel_objective import KernelObjective
from benchmarks.machine import cores
from benchmarks.solvers.base import MissingPackage
from benchmarks.solvers.kernel_base import (
    CACHE_MEGABYTES,
    KernelContestant,
    KernelFit,
    answer_of,
    trial_rows,
)


class Libsvm(KernelContestant):
    """Timed: the C function ``svm_train`` alone. Not timed: the conversion to its node format.

    Its package computes kernel rows on all cores, whose threads wait by spinning: it gets one thread if a
    trial is faster so, as it is where others use the machine.
    """

    setting_name = "-e"

    def prepare(self, objective: KernelObjective) -> None:
        try:
            from libsvm import svm as package
        except ImportError as error:
            raise MissingPackage("libsvm-official") from error
        self._package: Any = package
        self._objective = objective
        X = sparse.csr_matrix(objective.data.X.astype(np.float64))
        y = objective.data.y.astype(np.float64)
        self._problem = package.svm_problem(y, X)
        self._printed: list[str] = []
        # Kept here, because the C library holds on to it.
        self._printer = package.PRINT_STRING_FUN(lambda text: self._printed.append(text.decode()))
        trial = trial_rows(X.shape[0])
        few = package.svm_problem(y[trial], X[trial])
        times = {threads: self._train(few, 1.0, threads)[1] for threads in (1, cores())}
        self._threads = min(times, key=lambda threads: times[threads])

    def _train(self, problem: Any, setting: float, threads: int) -> tuple[Any, float]:
        package, objective = self._package, self._objective
        parameter = package.svm_parameter(
            f"-s 0 -t 2 -c {objective.C!r} -g {objective.gamma!r} -e {setting!r} -m {CACHE_MEGABYTES} -q"
        )
        package.libsvm.svm_set_print_string_function(self._printer)
        with threadpool_limits(threads, user_api="openmp"):
            start = time.perf_counter()
            pointer = package.libsvm.svm_train(problem, parameter)
            return pointer, time.perf_counter() - start

    def fit(self, setting: float) -> KernelFit:
        self._printed.clear()
        pointer, seconds = self._train(self._problem, setting, self._threads)
        model = self._package.toPyModel(pointer)
        table = np.array(
            [np.ctypeslib.as_array(model.sv_coef[k], shape=(model.l,)) for k in range(model.nr_class - 1)]
        )
        support = np.ctypeslib.as_array(model.sv_indices, shape=(model.l,)) - 1
        told = re.findall(r"obj = (\S+),", "".join(self._printed))
        return KernelFit(
            seconds,
            answer_of(table, support, model.get_labels(), self._objective),
            own_dual=-sum(map(float, told)) if told else None,
        )
