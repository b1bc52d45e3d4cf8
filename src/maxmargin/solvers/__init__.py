# SPDX-License-Identifier: BSD-3-Clause
"""The registry: one line per solver. Tests, command line and benchmarks read it."""

from __future__ import annotations

from maxmargin.solvers.augmented_lagrangian import AugmentedLagrangian
from maxmargin.solvers.base import AnySolver, Solver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscent
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.pegasos import Pegasos
from maxmargin.solvers.quadratic_program import QuadraticProgram
from maxmargin.solvers.stochastic_subgradient import StochasticSubgradient
from maxmargin.solvers.subgradient import Subgradient

SOLVERS: dict[str, type[AnySolver]] = {
    "subgradient": Subgradient,
    "stochastic_subgradient": StochasticSubgradient,
    "pegasos": Pegasos,
    "dual_coordinate_ascent": DualCoordinateAscent,
    "newton": Newton,
    "augmented_lagrangian": AugmentedLagrangian,
    "interior_point": InteriorPoint,
    "quadratic_program": QuadraticProgram,
}

__all__ = [
    "SOLVERS",
    "AnySolver",
    "AugmentedLagrangian",
    "DualCoordinateAscent",
    "InteriorPoint",
    "Newton",
    "Pegasos",
    "QuadraticProgram",
    "Solver",
    "StochasticSubgradient",
    "Subgradient",
]
