# SPDX-License-Identifier: BSD-3-Clause
"""From a fitted estimator to what a file holds, and back; SVC's part is in fitted_kernel.py."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse

from maxmargin.files.data.reading import printable
from maxmargin.files.models.saved import SavedModel
from maxmargin.files.models.stored import Claim, ModelError, StoredModel
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.names import describe, from_description
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Certificates, Trace, each_of
from maxmargin.solvers import SOLVERS, AnySolver, Solver
from maxmargin.tools.parameters import rules

if TYPE_CHECKING:
    from maxmargin.estimators import SVC, LinearSVC

Estimator = TypeVar("Estimator", bound="LinearSVC")

_PLAIN = (str, bool, int, float, type(None))


def prepared(
    model: StoredModel | LinearSVC | SVC, data: tuple[Any, Any] | str | None, proof: bool
) -> StoredModel:
    """What is to be written, with the fingerprint of the data and with or without the proof."""
    saved = model if isinstance(model, StoredModel) else _from_any(model)
    if data is not None:
        saved = replace(saved, fingerprint=_fingerprint(data, saved.rows))
    return saved if proof else replace(saved, certificates=None, traces=None)


def _from_any(estimator: Any) -> StoredModel:
    from maxmargin.estimators import SVC
    from maxmargin.files.models.fitted_kernel import from_kernel_estimator

    return from_kernel_estimator(estimator) if isinstance(estimator, SVC) else from_estimator(estimator)


def _fingerprint(data: tuple[Any, Any] | str, rows: int | None) -> str:
    if isinstance(data, str):
        return data
    from maxmargin.files.data.fingerprints import fingerprint

    X, y = data
    if rows is not None and len(y) != rows:
        raise ValueError(
            f"data must be the (X, y) of the fit, which had {rows} rows. Got {len(y)} rows instead."
        )
    return fingerprint(X, y)


def from_estimator(estimator: LinearSVC) -> SavedModel:
    """What a fitted estimator amounts to.

    Left out are ``callback``, a ``random_state`` that is not a number, and a configured solver that is not
    of the registry: code cannot be saved. They come back as their defaults.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    coef: Any = estimator.coef_
    coef = np.ascontiguousarray(coef.toarray() if sparse.issparse(coef) else coef, np.float64)
    intercept = np.array(estimator.intercept_, np.float64).reshape(-1)
    proofs = _certificates(estimator, coef, intercept)
    stated = dict(estimator._stated_problem)
    return SavedModel(
        coef=coef,
        expansion=getattr(estimator, "expansion_", None),
        intercept=intercept,
        tol=stated.pop("tol"),
        problem=stated,
        steps=getattr(estimator, "n_iter_", None),
        rows=None if proofs is None else len(proofs[0].alpha),
        **what_is_known(estimator, proofs),
    )


def what_is_known(estimator: Any, proofs: list[Certificate] | None) -> dict[str, Any]:
    """The fields of a stored model that are the same for every fitted classifier."""
    traces = getattr(estimator, "trace_", None)
    names = getattr(estimator, "feature_names_in_", None)
    claims = None
    if proofs is not None:
        claims = [
            Claim(float(c.primal), float(c.dual), float(c.kkt_violation), c.alpha_from) for c in proofs
        ]
    return {
        "classes": estimator.classes_,
        "parameters": parameters_to_json(estimator),
        "feature_names": None if names is None else [str(name) for name in names],
        "claims": claims,
        "certificates": proofs,
        "traces": [traces] if isinstance(traces, Trace) else traces,
        "status": getattr(estimator, "status_", None),
        "solver": getattr(estimator, "solver_", None),
    }


def _certificates(estimator: LinearSVC, coef: Any, intercept: Any) -> list[Certificate] | None:
    certificates = getattr(estimator, "certificate_", None)
    if certificates is None:
        return None
    each = list(each_of(certificates))
    same = len(each) == len(coef) == len(intercept)
    if not same or not all(
        np.array_equal(c.w, w) and c.b == b for c, w, b in zip(each, coef, intercept, strict=True)
    ):
        raise ValueError(
            "coef_ and intercept_ must be those that the fit proved. Got others: they were changed since. "
            "Fit again, or delete certificate_ to save the changed numbers without any proof."
        )
    return each


def parameters_to_json(estimator: Any) -> dict[str, Any]:
    """Those of an estimator that are plain values, and what can be described in such."""
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        value = value.item() if isinstance(value, np.generic) else value
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


def _item(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _solver_to_json(solver: AnySolver) -> dict[str, Any]:
    if SOLVERS.get(solver.name) is not type(solver):
        return {}
    options: Any = solver
    values = {f.name: _item(getattr(options, f.name)) for f in fields(options)}
    return {"name": solver.name, **{name: _number_to_json(value) for name, value in values.items()}}


def _number_to_json(value: Any) -> Any:
    """JSON has no infinity, which some options of solvers have."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def to_estimator(saved: StoredModel, kind: type[Estimator]) -> Estimator:
    """The fitted estimator; raises ModelError where ``LinearSVC`` does not solve such a problem."""
    if not isinstance(saved, SavedModel):
        raise ModelError("it is a model with a kernel. Load it with SVC.load instead.")
    problem = saved.problem
    several = len(saved.classes) > 2
    if problem.get("penalty", "l2") != "l2" or problem.get("formulation", "separate") != "separate":
        raise ModelError(
            "LinearSVC has neither the l1 penalty nor Crammer and Singer's formulation. Predict with "
            "maxmargin.files.load_model(path).predict(X) instead."
        )
    if several and saved.decision != "one_vs_rest":
        raise ModelError(
            "LinearSVC tells one class from the rest, and this model decides between pairs of classes. "
            "Predict with maxmargin.files.load_model(path).predict(X) instead."
        )
    estimator: Estimator = made(kind, _parameters(saved, kind))
    order = np.argsort(saved.classes)
    # LinearSVC's classes are sorted; with two of them, turning them around turns the sign.
    sign = -1.0 if not several and order[0] == 1 else 1.0
    rows = order if several else np.zeros(1, np.intp)
    in_order = bool((order == np.arange(len(order))).all())
    estimator.classes_ = saved.classes[order]
    estimator.coef_ = saved.coef if in_order else sign * saved.coef[rows]
    estimator.intercept_ = saved.intercept if in_order else sign * saved.intercept[rows]
    estimator.n_features_in_ = saved.coef.shape[1]
    if saved.expansion is not None:
        estimator.expansion_ = saved.expansion
    estimator._stated_problem = {**problem, "tol": saved.tol}
    if saved.feature_names is not None and saved.expansion is None:  # scikit-learn's are of coef's columns
        estimator.feature_names_in_ = np.array(saved.feature_names, object)
    if in_order and saved.certificates is not None:
        proofs = saved.certificates
        estimator.certificate_ = Certificates(proofs) if several else proofs[0]
    if in_order and saved.traces is not None:
        estimator.trace_ = saved.traces if several else saved.traces[0]
    for name, value in (("status_", saved.status), ("n_iter_", saved.steps), ("solver_", saved.solver)):
        if value is not None:
            setattr(estimator, name, value)
    return estimator


def made(kind: type[Any], parameters: dict[str, Any]) -> Any:
    """An estimator with these parameters, all of them sound."""
    estimator = kind(**parameters)
    try:
        estimator._check_parameters()
    except (ValueError, TypeError) as error:
        reason = printable(str(error))
        raise ModelError(f"it has a parameter that {kind.__name__} does not take: {reason}") from error
    return estimator


def _parameters(saved: SavedModel, kind: type[LinearSVC]) -> dict[str, Any]:
    """Those of the file; for the files of others, what their problem says."""
    if saved.parameters:
        return parameters_from_json(saved.parameters, kind)
    problem = saved.problem
    parameters = {
        "loss": problem.get("loss"),
        "C": problem.get("C"),
        "class_weight": problem.get("class_weight"),
        "intercept_scaling": problem.get("intercept_scaling"),
    }
    parameters = {name: value for name, value in parameters.items() if value is not None}
    form = problem.get("intercept", "exact")
    return {**parameters, "fit_intercept": form != "none", "regularize_intercept": form == "regularised"}


_TRUE_OR_FALSE = (
    "fit_intercept",
    "regularize_intercept",
    "warm_start",
    "shrinking",
    "probability",
    "break_ties",
)


def parameters_from_json(stored: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The parameters that a file holds, looked at where the estimator itself does not."""
    defaults = kind().get_params(deep=False)
    parameters = dict(stored)
    for name, value in stored.items():
        if name not in defaults or name == "callback":
            raise ModelError(f"it has a parameter {name!r:.60} that {kind.__name__} does not have.")
        whole = type(value) is int
        if name in _TRUE_OR_FALSE:
            sound = isinstance(value, bool)
        elif name in ("random_state", "n_jobs"):
            sound = value is None or (whole and -1 <= value < 2**32 and (value or name != "n_jobs"))
        elif name == "verbose":
            sound = whole or isinstance(value, bool)
        else:
            sound = True  # the estimator looks at the others itself
        if not sound:
            raise ModelError(f"its parameter {name!r:.60} has the value {value!r:.60}.")
    if isinstance(stored.get("solver"), dict):
        parameters["solver"] = _solver_from_json(stored["solver"])
    if isinstance(stored.get("kernel"), dict):
        parameters["kernel"] = from_description(stored["kernel"])
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
