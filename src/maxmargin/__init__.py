# SPDX-License-Identifier: BSD-3-Clause
"""Support vector machines in which every fit comes with a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin.lazy_names import lazy_names

if TYPE_CHECKING:
    from maxmargin.along_costs import path, whole_path
    from maxmargin.certificate import Certificate, RowClass, certify
    from maxmargin.choose import choose_solver
    from maxmargin.estimators import SVC, LinearSVC, LinearSVCCV
    from maxmargin.hard_margin_certificate import HardMarginCertificate, certify_hard_margin
    from maxmargin.inseparable import InseparabilityProof, InseparableError
    from maxmargin.loop import Progress, solve
    from maxmargin.model import Model, Status, Trace
    from maxmargin.model_path import Path
    from maxmargin.problem import Intercept, Problem
    from maxmargin.reductions.hard_margin import solve_hard_margin
    from maxmargin.rows import Rows
    from maxmargin.solution import Solution

# Imported when they are first asked for, so that `maxmargin --help` does not wait for scikit-learn.
_HOME = {
    "Certificate": "certificate",
    "HardMarginCertificate": "hard_margin_certificate",
    "InseparabilityProof": "inseparable",
    "InseparableError": "inseparable",
    "Intercept": "problem",
    "LinearSVC": "estimators",
    "LinearSVCCV": "estimators",
    "Model": "model",
    "Path": "model_path",
    "Problem": "problem",
    "Progress": "loop",
    "RowClass": "certificate",
    "Rows": "rows",
    "SVC": "estimators",
    "Solution": "solution",
    "Status": "model",
    "Trace": "model",
    "certify": "certificate",
    "certify_hard_margin": "hard_margin_certificate",
    "choose_solver": "choose",
    "path": "along_costs",
    "solve": "loop",
    "solve_hard_margin": "reductions.hard_margin",
    "whole_path": "along_costs",
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
