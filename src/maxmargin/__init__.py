# SPDX-License-Identifier: BSD-3-Clause
"""Support vector machines in which every fit comes with a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin.tools.lazy_names import lazy_names

if TYPE_CHECKING:
    from maxmargin.along_costs.model_path import Path
    from maxmargin.along_costs.path import path, whole_path
    from maxmargin.estimators import SVC, LinearSVC, LinearSVCCV
    from maxmargin.problem import Intercept, Problem
    from maxmargin.problem.rows import Rows
    from maxmargin.proof.certificate import Certificate, RowClass, certify
    from maxmargin.proof.hard_margin import HardMarginCertificate, certify_hard_margin
    from maxmargin.proof.inseparable import InseparabilityProof, InseparableError
    from maxmargin.proof.model import Model, Status, Trace
    from maxmargin.proof.solution import Solution
    from maxmargin.reductions.hard_margin import solve_hard_margin
    from maxmargin.solving.loop import Progress, solve
    from maxmargin.solving.ways import choose_solver

# Imported when they are first asked for, so that `maxmargin --help` does not wait for scikit-learn.
_HOME = {
    "Certificate": "proof.certificate",
    "HardMarginCertificate": "proof.hard_margin",
    "InseparabilityProof": "proof.inseparable",
    "InseparableError": "proof.inseparable",
    "Intercept": "problem",
    "LinearSVC": "estimators",
    "LinearSVCCV": "estimators",
    "Model": "proof.model",
    "Path": "along_costs.model_path",
    "Problem": "problem",
    "Progress": "solving.loop",
    "RowClass": "proof.certificate",
    "Rows": "problem.rows",
    "SVC": "estimators",
    "Solution": "proof.solution",
    "Status": "proof.model",
    "Trace": "proof.model",
    "certify": "proof.certificate",
    "certify_hard_margin": "proof.hard_margin",
    "choose_solver": "solving.ways",
    "path": "along_costs.path",
    "solve": "solving.loop",
    "solve_hard_margin": "reductions.hard_margin",
    "whole_path": "along_costs.path",
}

__all__ = [
    "SVC",
    "Certificate",
    "HardMarginCertificate",
    "InseparabilityProof",
    "InseparableError",
    "Intercept",
    "LinearSVC",
    "LinearSVCCV",
    "Model",
    "Path",
    "Problem",
    "Progress",
    "RowClass",
    "Rows",
    "Solution",
    "Status",
    "Trace",
    "certify",
    "certify_hard_margin",
    "choose_solver",
    "path",
    "solve",
    "solve_hard_margin",
    "whole_path",
]

_get, __dir__ = lazy_names(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("maxmargin")
    return _get(name)
