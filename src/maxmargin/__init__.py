# SPDX-License-Identifier: BSD-3-Clause
"""Support vector machines in which every fit comes with a proof."""

from __future__ import annotations

from importlib.metadata import version

from maxmargin.certificate import Certificate, RowClass, certify
from maxmargin.choose import choose_solver
from maxmargin.estimators import LinearSVC
from maxmargin.model import Model, Status, Trace
from maxmargin.problem import Intercept, Problem
from maxmargin.rows import Rows
from maxmargin.solution import Solution
from maxmargin.solve import Progress, solve

__version__ = version("maxmargin")

__all__ = [
    "Certificate",
    "Intercept",
    "LinearSVC",
    "Model",
    "Problem",
    "Progress",
    "RowClass",
    "Rows",
    "Solution",
    "Status",
    "Trace",
    "certify",
    "choose_solver",
    "solve",
]
