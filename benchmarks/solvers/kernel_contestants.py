# SPDX-License-Identifier: BSD-3-Clause
"""Who takes part with kernels: ours first, then the peers. One line each."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.solvers.kernel_base import KernelContestant
from benchmarks.solvers.kernel_libsvm import Libsvm
from benchmarks.solvers.kernel_maxmargin import MaxMarginSVC
from benchmarks.solvers.kernel_scikit_learn import IntelexSVC, ScikitSVC

OURS = "maxmargin, all cores"
OURS_ONE_THREAD = "maxmargin, one thread"
LIBSVM = "LIBSVM"
SCIKIT = "scikit-learn SVC"
INTELEX = "scikit-learn-intelex SVC"

_MAKERS: dict[str, tuple[str, Callable[[str, int], KernelContestant]]] = {
    "all_cores": (OURS, MaxMarginSVC),
    "one_thread": (OURS_ONE_THREAD, lambda name, cores: MaxMarginSVC(name, 1)),
    "libsvm": (LIBSVM, lambda name, cores: Libsvm(name)),
    "scikit_learn": (SCIKIT, lambda name, cores: ScikitSVC(name)),
    "intelex": (INTELEX, lambda name, cores: IntelexSVC(name)),
}
SELECTABLE = tuple(_MAKERS)


def kernel_contestants(chosen: list[str], cores: int) -> list[KernelContestant]:
    """Fresh ones, in the order of the round robin."""
    return [make(name, cores) for key, (name, make) in _MAKERS.items() if key in chosen]
