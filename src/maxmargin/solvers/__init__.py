# SPDX-License-Identifier: BSD-3-Clause
"""The registry: one line per solver. Tests, command line and benchmarks read it."""

from __future__ import annotations

from maxmargin.solvers.active_set import ActiveSet
from maxmargin.solvers.augmented_lagrangian import AugmentedLagrangian
from maxmargin.solvers.base import AnySolver, Solver
from maxmargin.solvers.coordinate_descent import CoordinateDescent
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.kernel_dual_ascent import KernelDualAscent
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.pegasos import Pegasos
from maxmargin.solvers.perceptron import Perceptron
from maxmargin.solvers.quadratic_program import QuadraticProgram
from maxmargin.solvers.sequential_minimal_optimization import SequentialMinimalOptimization
from maxmargin.solvers.stochastic_subgradient import StochasticSubgradient
from maxmargin.solvers.subgradient import Subgradient
from maxmargin.solvers.working_set import WorkingSet

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

__all__ = [
    "LINEAR_SOLVERS",
    "SOLVERS",
    "ActiveSet",
    "AnySolver",
    "AugmentedLagrangian",
    "CoordinateDescent",
    "DualCoordinateAscent",
    "InteriorPoint",
    "KernelDualAscent",
    "Newton",
    "Pegasos",
    "Perceptron",
    "QuadraticProgram",
    "SequentialMinimalOptimization",
    "Solver",
    "StochasticSubgradient",
    "Subgradient",
    "WorkingSet",
]
