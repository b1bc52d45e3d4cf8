# SPDX-License-Identifier: BSD-3-Clause
"""The parameters of an estimator as a model file holds them: plain values, and what such can describe."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from maxmargin.files.data.reading import printable
from maxmargin.files.models.kernel_model import SavedKernelModel
from maxmargin.files.models.stored import ModelError, StoredModel
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.names import describe, from_description
from maxmargin.solvers import SOLVERS, AnySolver, Solver
from maxmargin.tools.parameters import rules

_PLAIN = (str, bool, int, float, type(None))
_TRUE_OR_FALSE = (
    "fit_intercept",
    "regularize_intercept",
    "warm_start",
    "shrinking",
    "probability",
    "break_ties",
)
_SVC_NAMES = {
    "linear": "linear",
    "polynomial": "poly",
    "gaussian": "rbf",
    "laplacian": "laplacian",
    "chi_squared": "chi2",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
"""What ``SVC`` calls the kernels that it has a name for."""


def parameters_to_json(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator that are plain values, or can be described in such."""
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        value = _item(value)
        if name == "class_weight" and isinstance(value, dict):
            value = {_item(label): float(factor) for label, factor in value.items()}
        elif isinstance(value, Solver):
            value = _solver_to_json(value)
        elif isinstance(value, Kernel):
            value = describe(value)
        elif name == "callback" or not isinstance(value, _PLAIN):
            continue
        if value != {}:
            parameters[name] = value
    return parameters


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _solver_to_json(solver: AnySolver) -> dict[str, Any]:
    """The name of a solver with its options; nothing for one that is not of the registry or has others."""
    if SOLVERS.get(solver.name) is not type(solver):
        return {}
    options: Any = solver
    described: dict[str, Any] = {"name": solver.name}
    for option in fields(options):
        value = _item(getattr(options, option.name))
        if not isinstance(value, _PLAIN):
            return {}  # step sizes as a function of t, or one by one
        infinite = isinstance(value, float) and not np.isfinite(value)  # which JSON does not have
        described[option.name] = str(value) if infinite else value
    return described


def with_parameters(kind: type[Any], model: StoredModel) -> Any:
    """An estimator with the parameters of the file; the files of others have what their problem says."""
    parameters = _from_json(model.parameters, kind) if model.parameters else _stated(model)
    estimator = kind(**parameters)
    try:
        estimator._check_parameters()
    except (ValueError, TypeError) as error:
        reason = printable(str(error))
        raise ModelError(f"it has a parameter that {kind.__name__} does not take: {reason}") from error
    return estimator


def _stated(model: StoredModel) -> dict[str, Any]:
    """The parameters that give the problem of a model."""
    problem = model.problem
    stated = {name: problem[name] for name in ("C", "class_weight") if problem[name] is not None}
    if not isinstance(model, SavedKernelModel):
        form, scaling = problem["intercept"], problem["intercept_scaling"]
        stated |= {"fit_intercept": form != "none", "regularize_intercept": form == "regularised"}
        return stated | {"loss": problem["loss"], "intercept_scaling": scaling}
    if len(model.classes) > 2 and model.decision == "one_vs_rest":
        stated["multi_class"] = "ovr"
    described = describe(model.kernel)
    name = _SVC_NAMES.get(described.pop("kernel"))
    return stated | ({"kernel": model.kernel} if name is None else {"kernel": name, **described})


def _from_json(stored: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The parameters that a file holds, looked at where the estimator itself does not."""
    defaults = kind().get_params(deep=False)
    parameters = dict(stored)
    for name, value in stored.items():
        if name not in defaults or name == "callback":
            raise ModelError(f"it has a parameter {name!r:.60} that {kind.__name__} does not have.")
        whole, sound = type(value) is int, True
        if name in _TRUE_OR_FALSE:
            sound = isinstance(value, bool)
        elif name in ("random_state", "n_jobs"):
            sound = value is None or (whole and -1 <= value < 2**32 and bool(value or name != "n_jobs"))
        elif name == "verbose":
            sound = whole or isinstance(value, bool)
        if not sound:
            raise ModelError(f"its parameter {name!r:.60} has the value {value!r:.60}.")
        if isinstance(value, dict) and name in ("solver", "kernel"):
            parameters[name] = _solver_from_json(value) if name == "solver" else from_description(value)
    return parameters


def _solver_from_json(stored: dict[str, Any]) -> AnySolver:
    name = stored.get("name")
    if name not in SOLVERS:
        raise ModelError(f"its solver {name!r:.60} is not one of {', '.join(SOLVERS)}.")
    known, options = rules(SOLVERS[name]), {}
    for option, value in stored.items():
        if option == "name":
            continue
        value = float(value) if value in ("inf", "-inf", "nan") else value
        if option not in known or not known[option].takes(value):
            raise ModelError(
                f"its solver {name!r} has no option {option!r:.60} of the value {value!r:.60}."
            )
        options[option] = value
    return SOLVERS[name](**options)
