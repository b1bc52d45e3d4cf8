# SPDX-License-Identifier: BSD-3-Clause
"""Support vector machines in which every fit comes with a proof."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maxmargin.tools.lazy_names import lazy_names

if TYPE_CHECKING:
    from maxmargin.along_costs.model_path import Path as Path
    from maxmargin.along_costs.path import path as path
    from maxmargin.along_costs.path import smallest_C as smallest_C
    from maxmargin.along_costs.path import whole_path as whole_path
    from maxmargin.chunks.source import Chunks as Chunks
    from maxmargin.estimators import SVC as SVC
    from maxmargin.estimators import SVCCV as SVCCV
    from maxmargin.estimators import SVR as SVR
    from maxmargin.estimators import SVRCV as SVRCV
    from maxmargin.estimators import LinearOneClassSVM as LinearOneClassSVM
    from maxmargin.estimators import LinearSVC as LinearSVC
    from maxmargin.estimators import LinearSVCCV as LinearSVCCV
    from maxmargin.estimators import LinearSVR as LinearSVR
    from maxmargin.estimators import LogisticRegression as LogisticRegression
    from maxmargin.estimators import NuSVC as NuSVC
    from maxmargin.estimators import NuSVR as NuSVR
    from maxmargin.estimators import OneClassSVM as OneClassSVM
    from maxmargin.estimators import RankSVM as RankSVM
    from maxmargin.estimators.patching import patch as patch
    from maxmargin.estimators.patching import unpatch as unpatch
    from maxmargin.problem import Intercept as Intercept
    from maxmargin.problem import Problem as Problem
    from maxmargin.problem.ranking import ranking_problem as ranking_problem
    from maxmargin.problem.regression import regression_problem as regression_problem
    from maxmargin.problem.rows import Rows as Rows
    from maxmargin.proof.certificate import Certificate as Certificate
    from maxmargin.proof.certificate import RowClass as RowClass
    from maxmargin.proof.certificate import certify as certify
    from maxmargin.proof.hard_margin import HardMarginCertificate as HardMarginCertificate
    from maxmargin.proof.hard_margin import certify_hard_margin as certify_hard_margin
    from maxmargin.proof.inseparable import InseparabilityProof as InseparabilityProof
    from maxmargin.proof.inseparable import InseparableError as InseparableError
    from maxmargin.proof.model import Model as Model
    from maxmargin.proof.model import Status as Status
    from maxmargin.proof.model import Trace as Trace
    from maxmargin.proof.solution import Solution as Solution
    from maxmargin.reductions.hard_margin import solve_hard_margin as solve_hard_margin
    from maxmargin.solving.loop import Progress as Progress
    from maxmargin.solving.loop import solve as solve
    from maxmargin.solving.ways import choose_solver as choose_solver
    from maxmargin.tables.transformer import Table as Table
    from maxmargin.telling.doubts import DoubtfulModelWarning as DoubtfulModelWarning

# Imported when they are first asked for, so that `maxmargin --help` does not wait for scikit-learn.
_NAMES = {
    "along_costs.model_path": ["Path"],
    "along_costs.path": ["path", "smallest_C", "whole_path"],
    "chunks.source": ["Chunks"],
    "estimators": [
        "LinearOneClassSVM",
        "LinearSVC",
        "LinearSVCCV",
        "LinearSVR",
        "LogisticRegression",
        "NuSVC",
        "NuSVR",
        "OneClassSVM",
        "RankSVM",
        "SVC",
        "SVCCV",
        "SVR",
        "SVRCV",
    ],
    "estimators.patching": ["patch", "unpatch"],
    "problem": ["Intercept", "Problem"],
    "problem.ranking": ["ranking_problem"],
    "problem.regression": ["regression_problem"],
    "problem.rows": ["Rows"],
    "proof.certificate": ["Certificate", "RowClass", "certify"],
    "proof.hard_margin": ["HardMarginCertificate", "certify_hard_margin"],
    "proof.inseparable": ["InseparabilityProof", "InseparableError"],
    "proof.model": ["Model", "Status", "Trace"],
    "proof.solution": ["Solution"],
    "reductions.hard_margin": ["solve_hard_margin"],
    "solving.loop": ["Progress", "solve"],
    "solving.ways": ["choose_solver"],
    "tables.transformer": ["Table"],
    "telling.doubts": ["DoubtfulModelWarning"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_HOME)

_MODULES = ("dask", "features", "files", "kernels", "onnx", "plot", "solvers")
"""The modules that are for everybody, too."""

_get, _names = lazy_names(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("maxmargin")
    if name in _MODULES:
        return import_module(f"maxmargin.{name}")
    return _get(name)


def __dir__() -> list[str]:
    return sorted([*_names(), *_MODULES, "__version__"])
