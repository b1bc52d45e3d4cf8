# SPDX-License-Identifier: BSD-3-Clause
"""Fitted estimators are turned into what a file holds, and what a file holds into fitted estimators."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse

from maxmargin.files.data.reading import printable
from maxmargin.files.models.soundness import PROBLEM
from maxmargin.files.models.stored import (
    Claim,
    ModelError,
    SavedKernelModel,
    SavedModel,
    Share,
    StoredModel,
)
from maxmargin.kernels.base import SHORT_NAMES, Function, Kernel, Precomputed
from maxmargin.kernels.names import describe, from_description
from maxmargin.proof.model import Trace, each_of
from maxmargin.proof.sure import Neighbourhood
from maxmargin.reductions.joint_classes import constant_of, from_scores, of_classes, of_scores
from maxmargin.solvers import SOLVERS, AnySolver, Solver
from maxmargin.tools.parameters import rules

if TYPE_CHECKING:
    from maxmargin.estimators.certified import Certified

Estimator = TypeVar("Estimator", bound="Certified")
_PLAIN = (str, bool, int, float, type(None))
_TRUE_OR_FALSE: tuple[str, ...] = ("fit_intercept", "regularize_intercept", "warm_start")
_TRUE_OR_FALSE += ("shrinking", "break_ties")


def prepared(
    model: StoredModel | Certified, data: tuple[Any, Any] | str | None, proof: bool
) -> StoredModel:
    """What is to be written, with the fingerprint of the data and with or without the proof."""
    saved = model if isinstance(model, StoredModel) else from_estimator(model)
    if data is not None:
        saved = replace(saved, fingerprint=_fingerprint(data, saved.rows))
    return saved if proof else replace(saved, certificates=None, traces=None)


def _rows_of(proofs: Any, each: int) -> int | None:
    """The rows that a fit has seen, of which a proof has so many for each; None where nobody knows."""
    if not proofs:
        return None
    if proofs[0].knows_rows:
        return len(proofs[0].alpha) // each
    return getattr(proofs[0], "rows_read", None) or None


def _fingerprint(data: tuple[Any, Any] | str, rows: int | None) -> str:
    if isinstance(data, str):
        return data
    from maxmargin.files.data.fingerprints import fingerprint_of

    X, y = data
    count = X.shape[0] if y is None else len(y)
    if rows is not None and count != rows:
        raise ValueError(
            f"data must be the (X, y) of the fit, which had {rows} rows. Got {count} rows instead."
        )
    return fingerprint_of(X, y)


def from_estimator(estimator: Any) -> StoredModel:
    """What a fitted estimator amounts to.

    Left out are ``callback``, a ``random_state`` that is not a number, and a configured solver that is not
    of the registry: code cannot be saved. They come back as their defaults.
    """
    from sklearn.utils.validation import check_is_fitted

    from maxmargin.estimators import SVC
    from maxmargin.estimators.kernel_machine import KernelMachine

    estimator = getattr(estimator, "best_estimator_", estimator)  # of a search, what it has chosen
    if hasattr(estimator, "steps"):
        from maxmargin.files.models.pipelines import from_pipeline

        return from_pipeline(estimator)
    check_is_fitted(estimator)
    with_kernel, task = isinstance(estimator, SVC | KernelMachine), _task(type(estimator))
    own: dict[str, Any] = (
        _of_svc(estimator) if with_kernel else {"coef": np.atleast_2d(_dense(estimator.coef_))}
    )
    proof = getattr(estimator, "certificate_", None)
    proofs = None if proof is None else list(each_of(proof))
    of_rows = proofs is not None and all(each.knows_rows for each in proofs)
    steps, traces = getattr(estimator, "n_iter_", None), getattr(estimator, "trace_", None)
    names = getattr(estimator, "feature_names_in_", None)
    stated = estimator._stated_problem
    fields: dict[str, Any] = {
        "classes": estimator.classes_ if task == "classification" else np.empty(0),
        "intercept": np.array(estimator.intercept_, np.float64).reshape(-1),
        "problem": {name: stated.get(name, usual) for name, usual in PROBLEM.items()},
        "parameters": parameters_to_json(estimator),
        "feature_names": None if names is None else [str(name) for name in names],
        "claims": proofs
        and [Claim(float(c.primal), float(c.dual), float(c.kkt_violation), c.alpha_from) for c in proofs],
        "certificates": proofs if of_rows else None,
        "traces": ([traces] if isinstance(traces, Trace) else traces) if of_rows else None,
        "optimum": _places(estimator),
        "calibration": getattr(estimator, "calibration_", None),
        "status": getattr(estimator, "status_", None),
        "steps": None if steps is None else int(np.max(steps)),
        "solver": getattr(estimator, "solver_", None),
        "tol": stated["tol"],
        "rows": _rows_of(proofs, 2 if task == "regression" else 1),
    }
    if fields["problem"]["formulation"] == "crammer_singer":
        own["coef"], fields["intercept"] = _of_each_class(own["coef"], fields["intercept"], fields)
        fields["rows"] = proofs and len(proofs[0].alpha) // (len(estimator.classes_) - 1)
    if task != "classification":
        own["decision"] = task
    for name in {"regression": ["epsilon"], "ranking": ["width"]}.get(task, []):
        fields["problem"][name] = stated[name]
    if stated.get("nu") is not None:
        fields["problem"]["nu"] = stated["nu"]
        fields["shares"] = _shares(estimator, proofs)
    if hasattr(estimator, "expansion_"):
        own["expansion"] = estimator.expansion_
    try:
        return (SavedKernelModel if with_kernel else SavedModel)(**fields | own)
    except ModelError as error:
        if "the proof is about" not in str(error):
            raise
        changed = "dual_coef_ and support_" if with_kernel else "coef_ and intercept_"
        raise ValueError(
            f"{changed} must be those that the fit proved. Got others: they were changed since. Fit again, "
            "or delete certificate_ to save the changed numbers without any proof."
        ) from error


def _of_each_class(coef: Any, intercept: Any, fields: dict[str, Any]) -> tuple[Any, Any]:
    """The weights and intercepts of each class, where ``coef_`` has the difference of two classes."""
    classes = len(fields["classes"])
    if fields["certificates"]:
        own = of_classes(fields["certificates"][0].w, classes, constant_of(fields["problem"]))
        shown = of_scores(*own)
        if np.array_equal(shown[0], coef) and np.array_equal(shown[1], intercept):
            return own
    return from_scores(coef, intercept, classes)


def _of_svc(estimator: Any) -> dict[str, Any]:
    """The fields that only a model with a kernel has."""
    kernel, table = estimator.kernel_, _dense(estimator.dual_coef_)
    classes, steps = getattr(estimator, "classes_", ()), getattr(estimator, "n_iter_", None)
    k, factors = len(classes), getattr(estimator, "class_weight_", None)
    if isinstance(kernel, Function):
        raise ModelError(
            "A kernel that is a function cannot be saved: files hold no code. Use one of "
            "maxmargin.kernels, or kernel='precomputed' with the matrix of its values."
        )
    return {
        "kernel": kernel,
        "vectors": None if isinstance(kernel, Precomputed) else _vectors(estimator.support_vectors_),
        "coefficients": table,
        "counts": np.asarray(estimator.n_support_, np.int64),
        "support": np.asarray(estimator.support_, np.int64),
        "decision": "one_vs_rest" if k == 2 or len(table) == k else "one_vs_one",
        "steps_each": None if steps is None else np.atleast_1d(steps).tolist(),
        "rows": int(estimator.shape_fit_[0]),
        "class_factors": None if factors is None else np.asarray(factors, np.float64).tolist(),
    }


def _shares(estimator: Any, proofs: list[Any] | None) -> list[Share]:
    """What of each problem nu does not say: as a file told it, or as the fit has it."""
    if (told := estimator.__dict__.get("_shares")) is not None:
        return list(told)
    outline: Any = estimator._outline
    costs = [outline.cost(k) if hasattr(outline, "cost") else float(outline.C) for k in range(len(outline))]
    return [
        Share(cost, float(proof.total), float(proof.shift))
        for cost, proof in zip(costs, proofs or (), strict=True)
    ]


def _places(estimator: Any) -> list[Neighbourhood] | None:
    """Where the best models are, as far as that is known."""
    from maxmargin.estimators.sureness import has_place, places_of

    known = "_places" in estimator.__dict__ or "_outline" in estimator.__dict__
    known = known and hasattr(estimator, "certificate_") and has_place(estimator)
    return places_of(estimator) if known else None


def _dense(matrix: Any) -> Any:
    return np.ascontiguousarray(matrix.toarray() if sparse.issparse(matrix) else matrix, np.float64)


def _vectors(vectors: Any) -> Any:
    """The vectors as a file holds them: in C order, or CSR with sorted columns and nothing twice."""
    if not sparse.issparse(vectors):
        return np.ascontiguousarray(vectors)
    matrix = sparse.csr_matrix(vectors)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def to_estimator(saved: StoredModel, kind: type[Estimator]) -> Estimator:
    """The fitted estimator; raises ModelError where one of that kind does not solve such a problem."""
    from maxmargin.estimators import SVC
    from maxmargin.estimators.kernel_machine import KernelMachine

    if saved.preparation is not None:
        raise ModelError(
            f"there are steps before the model: {saved.preparation}. Load all of it with "
            "maxmargin.files.load_pipeline(path)."
        )
    _refuse_other_tasks(saved, kind)
    with_kernel = issubclass(kind, SVC | KernelMachine)
    known = _with_support_vectors(saved) if with_kernel else _linear(saved)
    model: Any = known
    if saved.has_classes:
        model = known.in_order(np.argsort(known.classes))  # the classes of an estimator are sorted
    proofs, traces = model.certificates, model.traces
    if proofs and saved.has_classes:
        proofs = model.kind.together(proofs, model.classes.tolist())
    if model.problems == 1:
        proofs, traces = proofs and proofs[0], traces and traces[0]
    names, expansion = model.feature_names, getattr(model, "expansion", None)
    if expansion is not None:
        names = None  # scikit-learn's are of coef's columns
    fitted = {
        "classes_": model.classes if saved.has_classes else None,
        "intercept_": model.intercept,
        "certificate_": proofs,
        "trace_": traces,
        "status_": model.status,
        "n_iter_": model.steps,
        "solver_": model.solver,
        "feature_names_in_": None if names is None else np.array(names, object),
        "_stated_problem": {**model.problem, "tol": model.tol},
        "_places": model.optimum,
        "_shares": model.shares,
        "calibration_": model.calibration,
    }
    if isinstance(model, SavedKernelModel):
        fitted |= _svc_attributes(model)
        if not saved.has_classes:
            fitted |= {"class_weight_": None, "n_iter_": model.steps}
    else:
        fitted |= {"coef_": model.coef, "n_features_in_": model.coef.shape[1], "expansion_": expansion}
        if model.is_joint:
            fitted["coef_"], fitted["intercept_"] = of_scores(model.coef, model.intercept)
        if model.is_regression or model.is_ranking:
            fitted["coef_"] = model.coef[0]
    estimator: Any = with_parameters(kind, model)
    vars(estimator).update({name: value for name, value in fitted.items() if value is not None})
    if isinstance(model, SavedKernelModel):
        estimator._set_scores(model.coefficients)
    fitted_estimator: Estimator = estimator
    return fitted_estimator


def kinds_of(saved: StoredModel) -> tuple[type[Any], ...]:
    """The estimators that solve the problem of a model: the linear one, and that with a kernel."""
    from maxmargin.estimators import (
        SVC,
        SVR,
        LinearOneClassSVM,
        LinearSVC,
        LinearSVR,
        NuSVC,
        NuSVR,
        OneClassSVM,
        RankSVM,
    )

    if saved.is_ranking:
        return (RankSVM,)
    if saved.is_one_class:
        return (LinearOneClassSVM, OneClassSVM)
    if saved.is_regression:
        return (NuSVR,) if saved.has_nu else (LinearSVR, SVR)
    return (NuSVC,) if saved.has_nu else (LinearSVC, SVC)


def _task(kind: type[Any]) -> str:
    """What estimators of a kind are for."""
    from maxmargin.estimators import RankSVM
    from maxmargin.estimators.certified_regressor import CertifiedRegressor
    from maxmargin.estimators.one_class_region import OneClassRegion

    tasks = {RankSVM: "ranking", OneClassRegion: "one_class", CertifiedRegressor: "regression"}
    return next((task for one, task in tasks.items() if issubclass(kind, one)), "classification")


def _refuse_other_tasks(saved: StoredModel, kind: type[Any]) -> None:
    """Raise ModelError where an estimator of that kind solves another problem."""
    task = "classification" if saved.has_classes else saved.decision
    if _task(kind) == task and saved.has_nu == hasattr(kind, "nu"):
        return
    what, cure = task.replace("_", " "), " or ".join(f"{one.__name__}.load" for one in kinds_of(saved))
    with_nu = " with a nu" if saved.has_nu else ""
    raise ModelError(f"it is a model of {what}{with_nu}. Load it with {cure} instead.")


def _linear(saved: StoredModel) -> SavedModel:
    """A model that ``LinearSVC`` can be."""
    if not isinstance(saved, SavedModel):
        kind = kinds_of(saved)[-1].__name__
        raise ModelError(f"it is a model with a kernel. Load it with {kind}.load instead.")
    if len(saved.classes) > 2 and saved.decision != "one_vs_rest":
        raise ModelError(
            "LinearSVC tells one class from the rest, and this model decides between pairs of classes. "
            "Predict with maxmargin.files.load_model(path).predict(X) instead."
        )
    return saved


def _with_support_vectors(saved: StoredModel) -> SavedKernelModel:
    """A model that ``SVC`` can be."""
    model = saved.support if isinstance(saved, SavedModel) else saved
    if not isinstance(model, SavedKernelModel):
        raise ModelError(
            "it is a linear model without support vectors. Load it with "
            f"{kinds_of(saved)[0].__name__}.load, or predict with "
            "maxmargin.files.load_model(path).predict(X)."
        )
    return model


def _svc_attributes(model: SavedKernelModel) -> dict[str, Any]:
    """The attributes that only a fitted ``SVC`` has."""
    # Files of others do not tell the rows; the vectors are then all that is known of the data.
    count, each = model.coefficients.shape[1], model.steps_each
    support = np.arange(count) if model.support is None else model.support
    is_sparse = sparse.issparse(model.vectors)
    rest = len(model.classes) > 2 and model.decision == "one_vs_rest"
    # Every SVC has the penalty and the formulation that a kernel model must have.
    stated = {key: model.problem[key] for key in model.problem if key not in ("penalty", "formulation")}
    stated |= {"multi_class": "ovr" if rest else "ovo", "kernel": str(model.kernel), "tol": model.tol}
    return {
        "kernel_": model.kernel,
        "n_support_": model.counts.astype(np.int32),
        "dual_coef_": sparse.csr_matrix(model.coefficients) if is_sparse else model.coefficients,
        "support_vectors_": np.empty((0, 0)) if model.vectors is None else model.vectors,
        "support_": support.astype(np.int32),
        "n_features_in_": model.features,
        "shape_fit_": (count if model.rows is None else model.rows, model.features),
        "class_weight_": np.array(model.class_factors or np.ones(len(model.classes)), np.float64),
        "n_iter_": None if each is None else np.array(each, np.int64).clip(max=2**31 - 1).astype(np.int32),
        "fit_status_": None if model.status is None else int(not model.status.certified),
        "_stated_problem": stated,
    }


def parameters_to_json(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator that are plain values, or can be described in such."""
    parameters = dict(getattr(estimator, "_fixed", {}))
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
    stored = _without_fixed(model.parameters or _stated(model), kind)
    estimator = kind(**(_from_json(stored, kind) if model.parameters else stored))
    try:
        estimator._check_parameters()
    except (ValueError, TypeError) as error:
        reason = printable(str(error))
        raise ModelError(f"it has a parameter that {kind.__name__} does not take: {reason}") from error
    return estimator


def _without_fixed(parameters: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The parameters without those that the estimator has no choice about, and which must be its own."""
    fixed = getattr(kind, "_fixed", {})
    for name, value in fixed.items():
        if parameters.get(name, value) != value:
            raise ModelError(
                f"its {name} is {parameters[name]!r:.60}, and that of {kind.__name__} {value!r}. Load it "
                "with LinearSVC.load instead."
            )
    return {name: value for name, value in parameters.items() if name not in fixed}


def _stated(model: StoredModel) -> dict[str, Any]:
    """The parameters that give the problem of a model."""
    problem = model.problem
    names = ("nu", "C", "class_weight") if model.is_regression else ("nu", "class_weight")
    names = names if model.has_nu else ("C", "class_weight")
    stated = {name: problem[name] for name in names if problem[name] is not None}
    if not isinstance(model, SavedKernelModel):
        if model.is_one_class:
            return stated
        form, scaling = problem["intercept"], problem["intercept_scaling"]
        stated |= {"fit_intercept": form != "none", "regularize_intercept": form == "regularised"}
        stated |= {"penalty": problem["penalty"]} if problem["penalty"] != "l2" else {}
        if model.is_joint:
            stated["multi_class"] = "crammer_singer"
        return stated | {"loss": problem["loss"], "intercept_scaling": scaling}
    if len(model.classes) > 2 and model.decision == "one_vs_rest":
        stated["multi_class"] = "ovr"
    described = describe(model.kernel)
    name = described.pop("kernel")
    if name == "sum":
        return stated | {"kernel": model.kernel}
    return stated | described | {"kernel": SHORT_NAMES.get(name, name)}


def _from_json(stored: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The parameters that a file holds, looked at where the estimator itself does not."""
    defaults, parameters = kind().get_params(deep=False), dict(stored)
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
