# SPDX-License-Identifier: BSD-3-Clause
"""The compiled core, in the widest instruction set that this processor has.

The environment variable ``MAXMARGIN_INSTRUCTION_SET`` (baseline, avx2 or avx512) asks for another one.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maxmargin import _core_baseline as _core
else:
    _offered = [
        name
        for name in import_module("maxmargin._core_baseline").instruction_sets()
        if find_spec(f"maxmargin._core_{name}")
    ]
    INSTRUCTION_SET = os.environ.get("MAXMARGIN_INSTRUCTION_SET", _offered[-1])
    if INSTRUCTION_SET not in _offered:
        raise ImportError(
            f"MAXMARGIN_INSTRUCTION_SET is {INSTRUCTION_SET!r}, but this processor and this build "
            f"offer {', '.join(_offered)}. Set it to one of these or leave it unset."
        )
    _core = import_module(f"maxmargin._core_{INSTRUCTION_SET}")

AugmentedLagrangian = _core.AugmentedLagrangian
Budget = _core.Budget
CacheCounts = _core.CacheCounts
CompactData = _core.CompactData
Data = _core.Data
GrowingBytes = _core.GrowingBytes
Hessian = _core.Hessian
Iterate = _core.Iterate
KernelDual = _core.KernelDual
KernelMatrix = _core.KernelMatrix
KernelSum = _core.KernelSum
LagrangianOptions = _core.LagrangianOptions
MonomialData = _core.MonomialData
Monomials = _core.Monomials
NewtonMethod = _core.NewtonMethod
Objective = _core.Objective
ParsedRows = _core.ParsedRows
Place = _core.Place
SecondOrderMethod = _core.SecondOrderMethod
SequentialMinimalOptimization = _core.SequentialMinimalOptimization
SmallClass = _core.SmallClass
SmallOptions = _core.SmallOptions
SmallProblems = _core.SmallProblems
SmallSystem = _core.SmallSystem
SpareMemory = _core.SpareMemory
WorkingSet = _core.WorkingSet
add_outer_products = _core.add_outer_products
add_rows = _core.add_rows
column_ranges = _core.column_ranges
combine = _core.combine
curvature_product = _core.curvature_product
dot = _core.dot
draw = _core.draw
dual_coordinate_ascent = _core.dual_coordinate_ascent
gather = _core.gather
go_on = _core.go_on
inner_products = _core.inner_products
kernel_block = _core.kernel_block
kernel_diagonal = _core.kernel_diagonal
kernel_dual_ascent = _core.kernel_dual_ascent
kernel_encoding = _core.kernel_encoding
kernel_expansions = _core.kernel_expansions
line_search = _core.line_search
parse_libsvm = _core.parse_libsvm
read_columns = _core.read_columns
relative_gap = _core.relative_gap
row_classes = _core.row_classes
scores = _core.scores
scores_of = _core.scores_of
shuffle = _core.shuffle
small_system = _core.small_system
solve_small_classes = _core.solve_small_classes
squared_norms = _core.squared_norms
stochastic_subgradient = _core.stochastic_subgradient
subgradient = _core.subgradient
weighted_quantile = _core.weighted_quantile
without_private_columns = _core.without_private_columns


def default_threads() -> int:
    """OMP_NUM_THREADS if it is set to a number, else the cores this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


ALL_CORES = Budget(float("inf"), default_threads())
"""For passes outside a run: no limit on time, all the threads there are."""
