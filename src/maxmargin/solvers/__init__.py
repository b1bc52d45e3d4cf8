# SPDX-License-Identifier: BSD-3-Clause
"""The registry: one line per solver. Tests, command line and benchmarks read it."""

from __future__ import annotations

from maxmargin.solvers.active_set import ActiveSet as ActiveSet
from maxmargin.solvers.augmented_lagrangian import AugmentedLagrangian as AugmentedLagrangian
from maxmargin.solvers.base import AnySolver as AnySolver
from maxmargin.solvers.base import Solver as Solver
from maxmargin.solvers.coordinate_descent import CoordinateDescent as CoordinateDescent
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent as DualCoordinateAscent
from maxmargin.solvers.interior_point import InteriorPoint as InteriorPoint
from maxmargin.solvers.kernel_dual_ascent import KernelDualAscent as KernelDualAscent
from maxmargin.solvers.newton import Newton as Newton
from maxmargin.solvers.pegasos import Pegasos as Pegasos
from maxmargin.solvers.perceptron import Perceptron as Perceptron
from maxmargin.solvers.quadratic_program import QuadraticProgram as QuadraticProgram
from maxmargin.solvers.sequential_minimal_optimization import (
    SequentialMinimalOptimization as SequentialMinimalOptimization,
)
from maxmargin.solvers.stochastic_subgradient import StochasticSubgradient as StochasticSubgradient
from maxmargin.solvers.subgradient import Subgradient as Subgradient
from maxmargin.solvers.working_set import WorkingSet as WorkingSet

SOLVERS: dict[str, type[AnySolver]] = {
    "subgradient": Subgradient,
    "stochastic_subgradient": StochasticSubgradient,
    "pegasos": Pegasos,
    "perceptron": Perceptron,
    "dual_coordinate_ascent": DualCoordinateAscent,
    "coordinate_descent": CoordinateDescent,
    "active_set": ActiveSet,
    "newton": Newton,
    "augmented_lagrangian": AugmentedLagrangian,
    "interior_point": InteriorPoint,
    "quadratic_program": QuadraticProgram,
    "working_set": WorkingSet,
    "sequential_minimal_optimization": SequentialMinimalOptimization,
    "kernel_dual_ascent": KernelDualAscent,
}

LINEAR_SOLVERS = {name: solver for name, solver in SOLVERS.items() if not solver.needs_kernels}
"""The solvers for rows as they are, without a kernel."""
