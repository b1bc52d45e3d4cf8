# SPDX-License-Identifier: BSD-3-Clause
"""The model text of LIBLINEAR (``train``, ``predict``), read and written.

    solver_type L2R_L1LOSS_SVC_DUAL        what was minimised, and how
    nr_class 2
    label 1 -1                             of two classes, the first is the positive one
    nr_feature 13
    bias 1                                 value s of the constant feature; below 0: there is none
    w                                      then one line per feature, one number per problem;
    0.19 ...                               the constant feature comes last, and its weight times s is b

One class (``ONECLASS_SVM``) has no labels and no constant feature, but a line ``rho`` before ``w``. It does
not tell nu.

C is not in the file, nor is whether ``-R`` left b out of the regulariser: b is taken to be in it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from maxmargin.files.models.soundness import PROBLEM
from maxmargin.files.models.stored import ModelError, SavedModel, StoredModel
from maxmargin.files.models.text import Lines, integer_labels, refuse_features

_HINGE, _SQUARED, _LOGISTIC = ({"loss": loss} for loss in ("hinge", "squared_hinge", "logistic"))
_L1 = {"penalty": "l1"}
_USUAL = {"penalty": "l2", "formulation": "separate"}
SOLVER_TYPES: dict[str, dict[str, str]] = {
    "L2R_LR": _LOGISTIC,
    "L2R_L2LOSS_SVC_DUAL": _SQUARED,
    "L2R_L2LOSS_SVC": _SQUARED,
    "L2R_L1LOSS_SVC_DUAL": _HINGE,
    "MCSVM_CS": _HINGE | {"formulation": "crammer_singer"},
    "L1R_L2LOSS_SVC": _SQUARED | _L1,
    "L1R_LR": _LOGISTIC | _L1,
    "L2R_LR_DUAL": _LOGISTIC,
}
_SQUARED_TUBE = {"loss": "squared_epsilon_insensitive"}
REGRESSOR_TYPES: dict[str, dict[str, str]] = {
    "L2R_L2LOSS_SVR": _SQUARED_TUBE,
    "L2R_L2LOSS_SVR_DUAL": _SQUARED_TUBE,
    "L2R_L1LOSS_SVR_DUAL": {"loss": "epsilon_insensitive"},
}
"""Those whose answers are numbers: their files have no labels, and do not tell epsilon."""
ONE_CLASS = "ONECLASS_SVM"


def read_model(file: BinaryIO, size: int) -> SavedModel:
    """The model of an open file of so many bytes; raises ModelError with line and reason."""
    lines = Lines(file, size)
    header = lines.header({"solver_type", "nr_class", "label", "nr_feature", "bias", "rho"}, end="w")
    solver_type = header.word("solver_type")
    known = SOLVER_TYPES | REGRESSOR_TYPES | {ONE_CLASS: {"C": 1.0, "nu": None}}
    if solver_type not in known:
        raise ModelError(
            f"line {header.line('solver_type')}: the solver type {solver_type[:40]!r} is not one of a "
            f"classifier or a regressor. Those that can be read are {', '.join(known)}."
        )
    problem: dict[str, Any] = PROBLEM | known[solver_type]
    regression, one_class = solver_type in REGRESSOR_TYPES, solver_type == ONE_CLASS
    count, features = header.count("nr_class", 2), header.count("nr_feature", 1)
    if (regression or one_class) and count != 2:
        raise ModelError(f"line {header.line('nr_class')}: a regressor should say 2 here, not {count}.")
    labels = np.empty(0) if regression or one_class else header.labels("label", count)
    if regression:
        problem["epsilon"] = None
    bias = header.number("bias")
    if one_class and bias >= 0:
        raise ModelError(f"line {header.line('bias')}: one class has no constant feature, not {bias:g}.")
    columns = 1 if count == 2 and problem["formulation"] == "separate" else count
    height = features + (bias >= 0)
    lines.room_for(height * columns, f"{height} lines of {columns} weights")
    weights = np.empty((height, columns))
    for row in weights:
        lines.read_numbers(row)
    lines.expect_end()
    intercept = np.zeros(columns)
    problem["intercept"] = "none"
    if bias > 0:
        problem |= {"intercept": "regularised", "intercept_scaling": bias}
        with np.errstate(over="ignore"):  # what is infinite is refused
            intercept = bias * weights[features]
    if one_class:
        intercept = -np.array([header.number("rho")])
    return SavedModel(
        coef=np.ascontiguousarray(weights[:features].T),
        intercept=intercept,
        classes=labels[::-1] if columns == 1 else labels,
        decision="regression" if regression else "one_class" if one_class else "one_vs_rest",
        problem=problem,
        writer="LIBLINEAR",
        format="liblinear",
    )


def writer(model: StoredModel) -> Callable[[BinaryIO], None]:
    """What writes the model into an open file.

    LIBLINEAR then predicts the same. The text has no exact intercept: it is written as the weight of a
    constant feature of value 1, and who reads the file takes it for a regularised one.
    """
    if not isinstance(model, SavedModel):
        raise ModelError(
            "LIBLINEAR has no kernels, and this model has one. Save it with format='libsvm' or "
            "format='maxmargin' instead."
        )
    refuse_features(model, "LIBLINEAR")
    if model.decision == "one_vs_one":
        raise ModelError(
            "LIBLINEAR decides between all classes at once, and this model between pairs of classes. "
            "Save it with format='maxmargin' instead."
        )
    labels, problem = [], model.problem
    if model.has_classes:
        labels = integer_labels(model.classes, "LIBLINEAR")
        labels = labels[::-1] if len(model.coef) == 1 else labels
    wanted = {name: problem[name] for name in ("penalty", "formulation", "loss")}
    known = REGRESSOR_TYPES if model.is_regression else SOLVER_TYPES
    solver_type = next((name for name, stated in known.items() if _USUAL | stated == wanted), None)
    solver_type = ONE_CLASS if model.is_one_class else solver_type
    if solver_type is None:
        raise ModelError(
            f"LIBLINEAR has no solver for such a problem: {wanted}. Save it with format='maxmargin' "
            "instead."
        )
    bias = {"none": -1.0, "regularised": problem["intercept_scaling"], "exact": 1.0}[problem["intercept"]]
    with np.errstate(over="ignore"):
        last = [model.intercept / bias] if bias > 0 else []
    if not np.isfinite(last).all():
        raise ModelError(
            f"LIBLINEAR writes the intercept divided by the constant feature, {bias:g}, and that is beyond "
            "all numbers. Save it with format='maxmargin' instead."
        )

    def write(file: BinaryIO) -> None:
        rho = f"rho {-float(model.intercept[0])!r}\n" if model.is_one_class else ""
        named = f"{len(labels)}\nlabel {' '.join(map(str, labels))}" if labels else "2"
        header = (
            f"solver_type {solver_type}\nnr_class {named}\n"
            f"nr_feature {model.features}\nbias {bias:.17g}\n{rho}w\n"
        )
        file.write(header.encode())
        for numbers in chain(model.coef.T, last):
            file.write(" ".join(map(repr, numbers.tolist())).encode() + b" \n")

    return write
