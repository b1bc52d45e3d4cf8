# SPDX-License-Identifier: BSD-3-Clause
"""Whether the parts of a saved model agree with each other: what every reader and writer relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.problem import Intercept
from maxmargin.problem.losses import LOSSES

if TYPE_CHECKING:
    from maxmargin.features.expansion import Expansion
    from maxmargin.files.models.saved import SavedModel
    from maxmargin.files.models.stored import StoredModel
    from maxmargin.proof.certificate import Certificate


def contradiction(model: SavedModel) -> str | None:
    """What is wrong with a linear model, or None for a sound one."""
    coef = model.coef
    if coef.ndim != 2 or coef.dtype != np.float64 or coef.shape[1] < 1:
        return f"coef must be a float64 matrix of at least one column, not {coef.dtype} {coef.shape}."
    if not np.isfinite(coef).all():
        return "coef holds NaN or infinite values."
    if model.expansion is not None and (wrong := _expansion_contradiction(model.expansion, coef.shape[1])):
        return wrong
    return shared_contradiction(model, len(coef), "coef has {} rows") or _proof_contradiction(model)


def _expansion_contradiction(expansion: Expansion, width: int) -> str | None:
    """What is wrong with the features of a model whose coef has so many columns."""
    if expansion.degree != 2:
        return f"its features must be monomials of degree 2, not of degree {expansion.degree}."
    if expansion.columns < 1 or not 0 <= expansion.lowest <= 2:
        return (
            "its features must be of at least one column and begin at degree 0, 1 or 2, not of "
            f"{expansion.columns} columns from degree {expansion.lowest}."
        )
    if not all(np.isfinite(scale) and scale >= 0 for scale in expansion.scales):
        return "its features must have scales that are finite and not negative."
    # A product of whole numbers: nothing of this size is made to find out.
    if expansion.size != width:
        return f"{expansion.columns} columns have {expansion.size} such monomials, and coef weighs {width}."
    return None


def shared_contradiction(model: StoredModel, m: int, counted: str) -> str | None:
    """What is wrong with what all models have; ``counted`` says of what there are m, one per problem."""
    if model.intercept.shape != (m,) or not np.isfinite(model.intercept).all():
        return f"intercept must hold {m} finite numbers, one for each problem."
    k = len(model.classes)
    if model.classes.ndim != 1 or k < 2 or len(set(model.classes.tolist())) < k:
        return f"a classifier has at least two different classes, not {model.classes.tolist()[:5]}."
    if model.decision not in ("one_vs_rest", "one_vs_one"):
        return f"decision must be 'one_vs_rest' or 'one_vs_one', not {model.decision!r}."
    separate = model.problem.get("formulation") != "crammer_singer"
    expected = k if model.decision == "one_vs_rest" else k * (k - 1) // 2
    if m != (1 if k == 2 and separate else expected):
        return f"{counted.format(m)}, which {k} classes decided by {model.decision} cannot have."
    names = model.feature_names
    if names is not None and (
        len(names) != model.features or not all(isinstance(name, str) for name in names)
    ):
        return f"there are {len(names)} feature names for {model.features} columns."
    return _problem_contradictions(model.problem) or _claim_contradictions(model, m)


def _problem_contradictions(problem: dict[str, Any]) -> str | None:
    expected: dict[str, list[Any]] = {
        "loss": list(LOSSES),
        "intercept": [form.value for form in Intercept],
        "penalty": ["l2", "l1"],
        "formulation": ["separate", "crammer_singer"],
        "sample_weights": [True, False],
    }
    wanted = {*expected, "C", "intercept_scaling", "class_weight"}
    if set(problem) != wanted:
        return f"the problem must state {', '.join(sorted(wanted))}, not {', '.join(sorted(problem))}."
    for name, choices in expected.items():
        if not any(type(problem[name]) is type(c) and problem[name] == c for c in choices):
            return f"the problem's {name} must be one of {choices}, not {problem[name]!r}."
    for name in ("C", "intercept_scaling"):
        value = problem[name]
        if value is None and name == "C":
            continue
        if not (isinstance(value, float) and value > 0 and (np.isfinite(value) or name == "C")):
            return f"the problem's {name} must be a finite number above 0, not {value!r}."
    if problem["C"] == np.inf and problem["loss"] not in ("hinge", "squared_hinge"):
        return f"the problem has a hard margin, C = inf, which the loss {problem['loss']} does not have."
    weight = problem["class_weight"]
    if isinstance(weight, dict):
        wrong = [f for f in weight.values() if not (isinstance(f, float) and np.isfinite(f) and f >= 0)]
        return f"the problem's class_weight has a factor {wrong[0]!r}." if wrong else None
    return None if weight in (None, "balanced") else f"the problem's class_weight is {weight!r}."


def _claim_contradictions(model: StoredModel, m: int) -> str | None:
    for name, count in (("rows", model.rows), ("steps", model.steps)):
        if count is not None and (type(count) is not int or count < 0):
            return f"the number of {name} must be a whole number, not {count!r}."
    if model.tol is not None and not (np.isfinite(model.tol) and model.tol >= 0):
        return f"tol must be a finite number of at least 0, not {model.tol!r}."
    if model.status is not None and None in (model.tol, model.steps, model.solver):
        return "it says how the fit ended, but not with which tol, steps and solver."
    for name, parts in (("claims", model.claims), ("proofs", model.certificates), ("traces", model.traces)):
        if parts is not None and len(parts) != m:
            return f"there are {len(parts)} {name} for {m} problems."
    for claim in model.claims or ():
        if np.isnan([claim.primal, claim.dual, claim.kkt_violation]).any() or claim.kkt_violation < 0:
            return "a claimed value is not a number, or a KKT violation is negative."
    return None


def _proof_contradiction(model: SavedModel) -> str | None:
    for certificate in model.certificates or ():
        lengths = {len(certificate.alpha), len(certificate.margins), len(certificate.row_classes)}
        if lengths != {model.rows}:
            return f"a proof speaks of {min(lengths)} to {max(lengths)} rows, the file of {model.rows}."
        if certificate.w_of_alpha.shape != model.coef.shape[1:]:
            return "w_of_alpha and coef differ in their number of columns."
        if wrong := certificate_contradiction(certificate):
            return wrong
    return None


def certificate_contradiction(certificate: Certificate) -> str | None:
    """What is wrong with the numbers of a proof, or None."""
    if not (np.isfinite(certificate.alpha).all() and (certificate.alpha >= 0).all()):
        return "alpha must be finite and not negative."
    if np.isnan(certificate.margins).any():
        return "margins hold NaN."
    if not np.isin(certificate.row_classes, range(4)).all():
        return "row_classes hold a class of rows that does not exist."
    if not np.isfinite(certificate.w_of_alpha).all():
        return "w_of_alpha holds NaN or infinite values."
    return None
