# SPDX-License-Identifier: BSD-3-Clause
"""Whether the parts of a stored model agree with each other: what every reader and writer relies on.

Each function yields a sentence for everything that is wrong. Only the first one counts: rules rely on those
before them, so nothing may be asked for after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from maxmargin.kernels.base import Function, Precomputed
from maxmargin.problem import Intercept
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.ranking import RANKING_LOSSES
from maxmargin.problem.regression import TUBE_LOSSES
from maxmargin.reductions.joint_classes import constant_of, of_classes
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.features.expansion import Expansion
    from maxmargin.files.models.stored import SavedKernelModel, SavedModel, StoredModel
    from maxmargin.proof.certificate import Certificate

PROBLEM: dict[str, Any] = {
    "loss": "hinge",
    "C": None,
    "intercept": "exact",
    "intercept_scaling": 1.0,
    "class_weight": None,
    "sample_weights": False,
    "penalty": "l2",
    "formulation": "separate",
}
"""All that a stated problem says: what is usual, and what stands where a file does not say."""
_CHOICES: dict[str, list[Any]] = {
    "loss": list(LOSSES),
    "intercept": [form.value for form in Intercept],
    "penalty": ["l2", "l1"],
    "formulation": ["separate", "crammer_singer"],
    "sample_weights": [True, False],
}
"""What a stated problem can choose between."""


def linear_contradictions(model: SavedModel) -> Iterator[str]:
    """What is wrong with a linear model."""
    coef = model.coef
    if coef.ndim != 2 or coef.dtype != np.float64 or coef.shape[1] < 1:
        yield f"coef must be a float64 matrix of at least one column, not {coef.dtype} {coef.shape}."
    if not np.isfinite(coef).all():
        yield "coef holds NaN or infinite values."
    if model.expansion is not None:
        yield from _of_features(model.expansion, coef.shape[1])
    yield from _of_any_model(model, len(coef), f"coef has {len(coef)} rows")
    if model.problem["penalty"] == "l1":
        smooth = model.problem["loss"] in ("squared_hinge", "logistic")
        if not smooth or model.problem["C"] == np.inf or model.is_joint:
            yield "the l1 penalty goes with the squared hinge or the logistic loss, and with a finite C."
        if model.optimum is not None:
            yield "with the l1 penalty, the place of the optimum is not known."
    if model.is_joint:
        yield from _of_joint_proofs(model)
        return
    for k, proof in enumerate(model.certificates or ()):
        lengths = {len(proof.alpha), len(proof.margins), len(proof.row_classes)}
        if lengths != {model.rows_of_proof}:
            yield f"a proof speaks of {min(lengths)} to {max(lengths)} rows, the file of {model.rows}."
        if not (np.array_equal(proof.w, coef[k]) and proof.is_about_its_w):
            yield "the proof is about other coefficients than those of the model."
        if proof.w_of_alpha.shape != coef.shape[1:]:
            yield "w_of_alpha and coef differ in their number of columns."
        yield from _of_proof(proof, model.intercept[k], signed=model.is_ranking)


def _of_joint_proofs(model: SavedModel) -> Iterator[str]:
    """What is wrong with the one proof of all classes."""
    stated = model.problem
    for proof in model.certificates or ():
        if stated["loss"] != "hinge" or stated["intercept"] == "exact" or stated["C"] in (None, np.inf):
            yield "the proof of all classes at once is of a finite C, and of no exact intercept."
        lengths = {len(proof.alpha), len(proof.margins)}
        if lengths != {model.rows_of_proof} or len(proof.row_classes) != model.rows:
            yield f"a proof speaks of {min(lengths)} to {max(lengths)} rows, the file of {model.rows}."
        own = of_classes(proof.w, len(model.classes), constant_of(model.problem))
        if not (np.array_equal(own[0], model.coef) and _nearly_equal(own[1], model.intercept)):
            yield "the proof is about other coefficients than those of the model."
        if proof.w_of_alpha.shape != proof.w.shape:
            yield "w_of_alpha and coef differ in their number of columns."
        yield from _of_proof(proof, 0.0)


def _nearly_equal(a: Vector, b: Vector) -> bool:
    """Whether only rounding tells two intercepts apart: they are products with the constant feature."""
    return a.shape == b.shape and bool((np.abs(a - b) <= 1e-15 * np.abs(b)).all())


def kernel_contradictions(model: SavedKernelModel) -> Iterator[str]:
    """What is wrong with a model with a kernel."""
    if isinstance(model.kernel, Function):
        yield "a function as kernel cannot be in a file: code is not saved."
    m = model.intercept.shape[0] if model.intercept.ndim == 1 else -1
    yield from _of_any_model(model, m, f"there are {m} problems")
    yield from _of_coefficients(model)
    yield from _of_support_vectors(model)
    yield from _of_kernel_settings(model, m)
    yield from _of_kernel_proofs(model)


def _of_any_model(model: StoredModel, m: int, counted: str) -> Iterator[str]:
    """What is wrong with what all models have; ``counted`` says of what there are m, one per problem."""
    if model.intercept.shape != (m,) or not np.isfinite(model.intercept).all():
        yield f"intercept must hold {m} finite numbers, one for each problem."
    tasks = {"regression": _of_regression, "ranking": _of_ranking, "one_class": _of_one_class}
    if model.has_classes:
        yield from _of_classes(model, m, counted)
    else:
        yield from tasks[model.decision](model, m)
    names = model.feature_names
    if names is not None and (
        len(names) != model.features or not all(isinstance(name, str) for name in names)
    ):
        yield f"there are {len(names)} feature names for {model.features} columns."
    yield from _of_problem(model.problem, model.decision)
    yield from _of_shares(model, m)
    for name, count in (("rows", model.rows), ("steps", model.steps)):
        if count is not None and (type(count) is not int or count < 0):
            yield f"the number of {name} must be a whole number, not {count!r}."
    if model.tol is not None and not (np.isfinite(model.tol) and model.tol >= 0):
        yield f"tol must be a finite number of at least 0, not {model.tol!r}."
    if model.status is not None and None in (model.tol, model.steps, model.solver):
        yield "it says how the fit ended, but not with which tol, steps and solver."
    counted_parts: dict[str, Any] = {"claims": model.claims, "proofs": model.certificates}
    counted_parts |= {"traces": model.traces, "places of the optimum": model.optimum}
    for name, parts in counted_parts.items():
        if parts is not None and len(parts) != model.problems:
            yield f"there are {len(parts)} {name} for {model.problems} problems."
    for radius, low, high, scaling in model.optimum or ():
        if not (radius >= 0 and low <= high and scaling >= 0):
            yield "the place of an optimum is not a radius and an interval."
    for claim in model.claims or ():
        if np.isnan([claim.primal, claim.dual, claim.kkt_violation]).any() or claim.kkt_violation < 0:
            yield "a claimed value is not a number, or a KKT violation is negative."


def _of_classes(model: StoredModel, m: int, counted: str) -> Iterator[str]:
    """What is wrong with the classes of a classifier."""
    k = len(model.classes)
    if model.classes.ndim != 1 or k < 2 or len(set(model.classes.tolist())) < k:
        yield f"a classifier has at least two different classes, not {model.classes.tolist()[:5]}."
    if model.decision not in ("one_vs_rest", "one_vs_one"):
        yield f"decision must be 'one_vs_rest' or 'one_vs_one', not {model.decision!r}."
    separate = model.problem.get("formulation") != "crammer_singer"
    expected = k if model.decision == "one_vs_rest" else k * (k - 1) // 2
    if m != (1 if k == 2 and separate else expected):
        yield f"{counted}, which {k} classes decided by {model.decision} cannot have."


def _of_regression(model: StoredModel, m: int) -> Iterator[str]:
    """What is wrong with what only a regressor has, or has not."""
    if model.classes.shape != (0,) or m != 1:
        yield f"a regressor has one problem and no classes, not {m} and {len(model.classes)}."
    if getattr(model, "expansion", None) is not None:
        yield "a regressor has no features that are formed from the columns of the data."
    epsilon = model.problem.get("epsilon")
    of_others = epsilon is None and model.format != "maxmargin"  # whose text does not have it
    if not of_others and not (isinstance(epsilon, float) and 0 <= epsilon < np.inf):
        yield f"the problem's epsilon must be a finite number of at least 0, not {epsilon!r}."
    if model.problem.get("C") == np.inf or model.problem.get("class_weight") is not None:
        yield "a regressor has a finite C and no class_weight."


def _of_ranking(model: StoredModel, m: int) -> Iterator[str]:
    """What is wrong with what only a ranking has, or has not."""
    if model.classes.shape != (0,) or m != 1 or hasattr(model, "kernel"):
        yield f"a ranking is linear, with one problem and no classes, not {m} and {len(model.classes)}."
    if getattr(model, "expansion", None) is not None:
        yield "a ranking has no features that are formed from the columns of the data."
    if model.intercept.any() or model.problem.get("intercept") != "none":
        yield "a ranking has no intercept."
    width = model.problem.get("width")
    if not (isinstance(width, float) and 0 <= width < np.inf):
        yield f"the problem's width must be a finite number of at least 0, not {width!r}."
    if model.problem.get("C") == np.inf or model.problem.get("class_weight") is not None:
        yield "a ranking has a finite C and no class_weight."


def _of_one_class(model: StoredModel, m: int) -> Iterator[str]:
    """What is wrong with what only the region of one class has, or has not."""
    if model.classes.shape != (0,) or m != 1:
        yield f"the region of one class has one problem, and no classes, not {m} and {len(model.classes)}."
    if getattr(model, "expansion", None) is not None:
        yield "one class has no features that are formed from the columns of the data."
    if model.problem.get("intercept") != "none" or model.problem.get("C") != 1.0:
        yield "one class has no intercept but the shift of its targets, and C = 1."
    if model.problem.get("class_weight") is not None:
        yield "one class has no class_weight."


def _of_shares(model: StoredModel, m: int) -> Iterator[str]:
    """What is wrong with nu, and with what it does not say of each problem."""
    problem, shares = model.problem, model.shares
    if not model.has_nu:
        if shares is not None:
            yield "it has shares, and no nu."
        return
    nu = problem["nu"]
    of_others = nu is None and model.format != "maxmargin"  # whose text does not have it
    if not of_others and not (isinstance(nu, float) and 0 < nu <= 1):
        yield f"the problem's nu must be a number above 0 and at most 1, not {nu!r}."
    if problem["C"] == np.inf or problem["formulation"] != "separate" or problem["penalty"] != "l2":
        yield "a model with a nu has a finite C, the l2 penalty and one problem for each intercept."
    if problem["loss"] != ("epsilon_insensitive" if model.is_regression else "hinge"):
        yield "a model with a nu minimises the hinge or the epsilon-insensitive loss."
    if problem["intercept"] != ("none" if model.is_one_class else "exact"):
        yield "a model with a nu has an exact intercept, and that of one class none."
    if model.is_regression and problem["epsilon"] not in (0.0, None):
        yield "where nu is given, epsilon is sought."
    if shares is None:
        if model.format == "maxmargin":
            yield "it has a nu, and does not say what its multipliers add up to."
        return
    if len(shares) != m:
        yield f"there are {len(shares)} shares for {m} problems."
    for cost, total, shift in shares:
        if not (0 < cost < np.inf and 0 < total < np.inf and np.isfinite(shift)):
            yield "a share has a cost, a total or a shift that is not a number, or not above 0."
    if model.is_one_class and shares[0].shift != float(model.intercept[0]):
        yield "the intercept of one class must be the shift of its targets."


_OF_TASKS: dict[str, tuple[str, list[str]]] = {
    "regression": ("epsilon", list(TUBE_LOSSES)),
    "ranking": ("width", list(RANKING_LOSSES)),
    "one_class": ("nu", ["hinge"]),
}
"""What the problem of a model without classes states besides, and its losses."""


def _of_problem(problem: dict[str, Any], decision: str) -> Iterator[str]:
    """What is wrong with what the model says it minimises."""
    own, losses = _OF_TASKS.get(decision, (None, list(LOSSES)))
    expected = set(PROBLEM) | ({own} if own is not None else set())
    if decision != "ranking" and "nu" in problem:
        expected.add("nu")
    if set(problem) != expected:
        yield f"the problem must state {', '.join(sorted(expected))}, not {', '.join(sorted(problem))}."
    for name, choices in (_CHOICES | {"loss": losses}).items():
        if not any(type(problem[name]) is type(c) and problem[name] == c for c in choices):
            yield f"the problem's {name} must be one of {choices}, not {problem[name]!r}."
    for name, most in (("C", np.inf), ("intercept_scaling", np.finfo(np.float64).max)):
        value = problem[name]
        if not (isinstance(value, float) and 0 < value <= most) and not (name == "C" and value is None):
            yield f"the problem's {name} must be a finite number above 0, not {value!r}."
    if problem["C"] == np.inf and problem["loss"] not in ("hinge", "squared_hinge"):
        yield f"the problem has a hard margin, C = inf, which the loss {problem['loss']} does not have."
    weight = problem["class_weight"]
    for factor in weight.values() if isinstance(weight, dict) else ():
        if not (isinstance(factor, float) and np.isfinite(factor) and factor >= 0):
            yield f"the problem's class_weight has a factor {factor!r}."
    if not isinstance(weight, dict) and weight not in (None, "balanced"):
        yield f"the problem's class_weight is {weight!r}."


def _of_features(expansion: Expansion, width: int) -> Iterator[str]:
    """What is wrong with the features of a model whose coef has so many columns."""
    if expansion.degree != 2:
        yield f"its features must be monomials of degree 2, not of degree {expansion.degree}."
    if expansion.columns < 1 or not 0 <= expansion.lowest <= 2:
        yield (
            "its features must be of at least one column and begin at degree 0, 1 or 2, not of "
            f"{expansion.columns} columns from degree {expansion.lowest}."
        )
    if not all(np.isfinite(scale) and scale >= 0 for scale in expansion.scales):
        yield "its features must have scales that are finite and not negative."
    # A product of whole numbers: nothing of this size is made to find out.
    if expansion.size != width:
        yield f"{expansion.columns} columns have {expansion.size} such monomials, and coef weighs {width}."


def _of_proof(proof: Certificate, intercept: Any, *, signed: bool = False) -> Iterator[str]:
    """What is wrong with the numbers of the proof of a problem; ``signed``: alpha may be negative."""
    if not (np.isfinite(proof.alpha).all() and (signed or (proof.alpha >= 0).all())):
        yield "alpha must be finite and not negative."
    if np.isnan(proof.margins).any():
        yield "margins hold NaN."
    if not np.isin(proof.row_classes, range(4)).all():
        yield "row_classes hold a class of rows that does not exist."
    if not np.isfinite(proof.w_of_alpha).all():
        yield "w_of_alpha holds NaN or infinite values."
    own = getattr(proof, "intercept", proof.b)  # a hard margin's has no shift
    if own != float(intercept):
        yield f"the proof is about the intercept {own!r}, the model has {float(intercept)!r}."


def _of_coefficients(model: SavedKernelModel) -> Iterator[str]:
    table, counts = model.coefficients, model.counts
    # All support vectors of a regressor, or of one class, are of one kind.
    k = len(model.classes) if model.has_classes else 1
    if table.ndim != 2 or table.dtype != np.float64 or not np.isfinite(table).all():
        yield "the coefficients must be a matrix of finite float64 numbers."
    lines = 1 if k == 2 else k - (model.decision == "one_vs_one")
    if len(table) != lines:
        yield f"there are {len(table)} lines of coefficients, and {k} classes need {lines}."
    if counts.shape != (k,) or counts.dtype.kind != "i" or (counts < 0).any():
        yield f"the numbers of support vectors must be {k} whole numbers, one for each class."
    if sum(counts.tolist()) != table.shape[1]:  # a sum of whole numbers of any size, not of 64 bits
        yield f"the classes' support vectors do not add up to the {table.shape[1]} of the coefficients."


def _of_support_vectors(model: SavedKernelModel) -> Iterator[str]:
    """What is wrong with the vectors, and with the rows that they are."""
    support, count = model.support, model.coefficients.shape[1]
    if model.vectors is not None:
        yield from _of_vectors(model, count)
    elif not isinstance(model.kernel, Precomputed):
        yield "the support vectors are missing."
    elif support is None or not model.rows:
        yield "a precomputed kernel needs the rows of its support vectors."
    if support is None:
        return
    if support.shape != (count,) or support.dtype != np.int64:
        yield f"support must name {count} rows, one for each support vector."
    if model.rows is None or (count and not (support.min() >= 0 and support.max() < model.rows)):
        yield f"support names a row outside the {model.rows} of the training data."
    if len(np.unique(support)) < count:
        yield "support names a row twice."


def _of_vectors(model: SavedKernelModel, count: int) -> Iterator[str]:
    vectors, is_sparse = model.vectors, sparse.issparse(model.vectors)
    if isinstance(model.kernel, Precomputed):
        yield "a precomputed kernel has no support vectors of its own."
    if vectors.ndim != 2 or vectors.shape[0] != count or vectors.shape[1] < 1:
        yield f"there must be {count} support vectors of at least one column, not {vectors.shape}."
    if vectors.dtype not in (np.float32, np.float64) or (is_sparse and vectors.format != "csr"):
        yield "the support vectors must be a dense or a CSR matrix of float32 or float64."
    if is_sparse:
        yield from _of_csr(vectors)
    values = vectors.data if is_sparse else vectors
    if not np.isfinite(values).all():
        yield "the support vectors hold NaN or infinite values."
    if model.open_ended and not is_sparse:
        yield "only sparse support vectors can be shorter than the rows they meet."
    harmonic = any(factor[0] == "harmonic" for _, factors in model.kernel.terms for factor in factors)
    if harmonic and values.min(initial=0.0) < 0:
        yield "the chi-squared kernel has support vectors with negative values."


def _of_csr(matrix: Any) -> Iterator[str]:
    offsets, indices = matrix.indptr, matrix.indices
    if offsets.shape != (matrix.shape[0] + 1,) or indices.shape != matrix.data.shape or indices.ndim != 1:
        yield "the arrays of the support vectors do not fit together."
    if offsets[0] != 0 or offsets[-1] != len(indices) or (offsets[1:] < offsets[:-1]).any():
        yield "the support vectors do not lie one after the other."
    if len(indices) and not (indices.min() >= 0 and indices.max() < matrix.shape[1]):
        yield f"a support vector has a column outside the {matrix.shape[1]} that there are."
    # Within a row columns increase; where the next row begins they may fall back.
    falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
    if not np.isin(falls, offsets).all():
        yield "the columns of a support vector do not increase."


def _of_kernel_settings(model: SavedKernelModel, m: int) -> Iterator[str]:
    problem, each, factors = model.problem, model.steps_each, model.class_factors
    hinge = "epsilon_insensitive" if model.is_regression else "hinge"
    form = "none" if model.is_one_class else "exact"
    if problem["loss"] != hinge or problem["intercept"] != form or problem["penalty"] != "l2":
        yield "a kernel model minimises the hinge loss with an exact intercept and the l2 penalty."
    if problem["C"] == np.inf or problem["formulation"] != "separate":
        yield "a kernel model has a finite C and one problem for each intercept."
    if each is not None and (len(each) != m or min(each) < 0):
        yield f"the steps must be {m} whole numbers, one for each problem."
    if factors is not None and (
        len(factors) != len(model.classes) or not all(0 <= f < np.inf for f in factors)
    ):
        yield "class_factors must hold one finite number of at least 0 for each class."


def _of_kernel_proofs(model: SavedKernelModel) -> Iterator[str]:
    if model.certificates is not None and model.support is None:
        yield "it has a proof but does not say which rows its support vectors are."
    for k, proof in enumerate(model.certificates or ()):
        parts = (proof.alpha, proof.margins, proof.row_classes)
        of_w = 2 if model.is_regression else 1  # rows of the problem for each number of w
        lengths = {len(part) for part in parts} | {of_w * len(proof.w), of_w * len(proof.w_of_alpha)}
        of_all = (
            max(lengths) == model.rows_of_proof
            if model.kind.all_rows
            else max(lengths) <= (model.rows or 0)
        )
        if len(lengths) > 1 or not of_all:
            yield f"a proof speaks of {min(lengths)} to {max(lengths)} rows, the file of {model.rows}."
        yield from _of_proof(proof, model.intercept[k])
        if not _is_about(model, proof.w, k):
            yield "the proof is about other coefficients than those of the model."


def _is_about(model: SavedKernelModel, w: Vector, k: int) -> bool:
    """Whether w, the coefficients of the rows of a problem, are those of the model's support vectors."""
    signed = model.coefficients_of(k)
    if not model.kind.all_rows:
        # The rows of a pair are those of its first class and then those of its second, as are the vectors.
        return np.array_equal(w[w != 0], signed[signed != 0])
    expected: Vector = np.zeros(len(w))
    expected[model.support] = signed
    return np.array_equal(w, expected)
