# SPDX-License-Identifier: BSD-3-Clause
"""From a fitted SVC to what a file holds, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse

from maxmargin.files.models.fitted import made, parameters_from_json, what_is_known
from maxmargin.files.models.kernel_model import SavedKernelModel, in_order, with_linear_kernel
from maxmargin.files.models.saved import SavedModel
from maxmargin.files.models.stored import ModelError, StoredModel
from maxmargin.kernels.base import Function, Kernel, Precomputed
from maxmargin.kernels.names import describe
from maxmargin.proof.model import each_of

if TYPE_CHECKING:
    from maxmargin.estimators import SVC

Estimator = TypeVar("Estimator", bound="SVC")

_STATED = ("loss", "C", "intercept", "intercept_scaling", "class_weight", "sample_weights")
"""What says which problems were solved, besides the data and the kernel."""


def from_kernel_estimator(estimator: SVC) -> SavedKernelModel:
    """What a fitted ``SVC`` amounts to; what is left out is what ``fitted.from_estimator`` leaves out."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    kernel = estimator.kernel_
    if isinstance(kernel, Function):
        raise ModelError(
            "A kernel that is a function cannot be saved: files hold no code. Use one of "
            "maxmargin.kernels, or kernel='precomputed' with the matrix of its values."
        )
    table: Any = estimator.dual_coef_
    table = np.ascontiguousarray(table.toarray() if sparse.issparse(table) else table, np.float64)
    stated = dict(estimator._stated_problem)
    proof: Any = getattr(estimator, "certificate_", None)
    proofs = None if proof is None else list(each_of(proof))
    one_vs_rest = len(estimator.classes_) == 2 or len(table) == len(estimator.classes_)
    steps = getattr(estimator, "n_iter_", None)
    try:
        return SavedKernelModel(
            kernel=kernel,
            vectors=None if isinstance(kernel, Precomputed) else _vectors(estimator.support_vectors_),
            coefficients=table,
            counts=np.asarray(estimator.n_support_, np.int64),
            support=np.asarray(estimator.support_, np.int64),
            intercept=np.array(estimator.intercept_, np.float64).reshape(-1),
            decision="one_vs_rest" if one_vs_rest else "one_vs_one",
            problem=_problem(stated),
            steps=None if steps is None else int(np.max(steps)),
            steps_each=None if steps is None else np.asarray(steps).tolist(),
            tol=stated["tol"],
            rows=int(estimator.shape_fit_[0]),
            class_factors=np.asarray(estimator.class_weight_, np.float64).tolist(),
            **what_is_known(estimator, proofs),
        )
    except ModelError as error:
        if "other coefficients" not in str(error):
            raise
        raise ValueError(
            "dual_coef_ and support_ must be those that the fit proved. Got others: they were changed "
            "since. Fit again, or delete certificate_ to save the changed numbers without any proof."
        ) from error


def _vectors(vectors: Any) -> Any:
    """As a file holds them: in C order, or CSR with sorted columns and nothing twice."""
    if not sparse.issparse(vectors):
        return np.ascontiguousarray(vectors)
    matrix = sparse.csr_matrix(vectors)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _problem(stated: dict[str, Any]) -> dict[str, Any]:
    return {**{name: stated[name] for name in _STATED}, "penalty": "l2", "formulation": "separate"}


def to_kernel_estimator(saved: StoredModel, kind: type[Estimator]) -> Estimator:
    """The fitted ``SVC``; raises ModelError where it does not solve such a problem."""
    if isinstance(saved, SavedModel):
        saved = with_linear_kernel(saved)
    assert isinstance(saved, SavedKernelModel)
    # SVC's classes are sorted.
    model = in_order(saved, np.argsort(saved.classes))
    estimator: Estimator = made(kind, _parameters(model, kind))
    estimator.classes_ = model.classes
    estimator.kernel_ = model.kernel
    estimator.intercept_ = model.intercept
    estimator.n_support_ = model.counts.astype(np.int32)
    is_sparse = sparse.issparse(model.vectors)
    estimator.dual_coef_ = sparse.csr_matrix(model.coefficients) if is_sparse else model.coefficients
    estimator.support_vectors_ = np.empty((0, 0)) if model.vectors is None else model.vectors
    estimator.n_features_in_ = model.features
    # Files of others do not tell the rows; the vectors are then all that is known of the data.
    count = model.coefficients.shape[1]
    support = np.arange(count) if model.support is None else model.support
    estimator.support_ = support.astype(np.int32)
    estimator._set_scores(model.coefficients)
    estimator.shape_fit_ = (count if model.rows is None else model.rows, model.features)
    estimator.class_weight_ = np.array(model.class_factors or np.ones(len(model.classes)), np.float64)
    estimator._stated_problem = _statement(model)
    if model.feature_names is not None:
        estimator.feature_names_in_ = np.array(model.feature_names, object)
    _set_proof(estimator, model)
    return estimator


def _statement(model: SavedKernelModel) -> dict[str, Any]:
    several = len(model.classes) > 2 and model.decision == "one_vs_rest"
    return {
        **{name: model.problem.get(name) for name in _STATED},
        "multi_class": "ovr" if several else "ovo",
        "kernel": str(model.kernel),
        "tol": model.tol,
    }


def _set_proof(estimator: Any, model: SavedKernelModel) -> None:
    several = len(model.intercept) > 1
    if model.certificates is not None:
        proofs = model.kind.together(model.certificates, model.classes.tolist())
        estimator.certificate_ = proofs if several else proofs[0]
    if model.traces is not None:
        estimator.trace_ = model.traces if several else model.traces[0]
    if model.steps_each is not None:
        estimator.n_iter_ = np.array(model.steps_each, np.int64).clip(max=2**31 - 1).astype(np.int32)
    if model.solver is not None:
        estimator.solver_ = model.solver
    if model.status is not None:
        estimator.status_ = model.status
        estimator.fit_status_ = 0 if model.status.certified else 1


def _parameters(model: SavedKernelModel, kind: type[SVC]) -> dict[str, Any]:
    """Those of the file; for the files of others, what their problem says."""
    if model.parameters:
        return parameters_from_json(model.parameters, kind)
    problem = model.problem
    parameters: dict[str, Any] = {"C": problem.get("C"), "class_weight": problem.get("class_weight")}
    parameters = {name: value for name, value in parameters.items() if value is not None}
    if len(model.classes) > 2 and model.decision == "one_vs_rest":
        parameters["multi_class"] = "ovr"
    return parameters | kernel_parameters(model.kernel)


_NAMES = {
    "linear": "linear",
    "polynomial": "poly",
    "gaussian": "rbf",
    "laplacian": "laplacian",
    "chi_squared": "chi2",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}


def kernel_parameters(kernel: Kernel) -> dict[str, Any]:
    """The parameters of ``SVC`` that give this kernel: a name with its numbers, or the kernel itself."""
    stated = describe(kernel)
    name = _NAMES.get(stated.pop("kernel"))
    return {"kernel": kernel} if name is None else {"kernel": name, **stated}
