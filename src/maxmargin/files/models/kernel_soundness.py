# SPDX-License-Identifier: BSD-3-Clause
"""Whether the parts of a saved kernel model agree: what every reader and writer relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from maxmargin.files.models.soundness import certificate_contradiction, shared_contradiction
from maxmargin.kernels.base import Function, Precomputed
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.files.models.kernel_model import SavedKernelModel
    from maxmargin.proof.certificate import Certificate


def contradiction(model: SavedKernelModel) -> str | None:
    """What is wrong with a kernel model, or None for a sound one."""
    if isinstance(model.kernel, Function):
        return "a function as kernel cannot be in a file: code is not saved."
    m = model.intercept.shape[0] if model.intercept.ndim == 1 else -1
    return (
        shared_contradiction(model, m, "there are {} problems")
        or _coefficients(model)
        or (_rows_of_the_matrix(model) if model.vectors is None else _vectors(model))
        or _support(model)
        or _settings(model, m)
        or _proofs(model)
    )


def _coefficients(model: SavedKernelModel) -> str | None:
    table, k = model.coefficients, len(model.classes)
    if table.ndim != 2 or table.dtype != np.float64 or not np.isfinite(table).all():
        return "the coefficients must be a matrix of finite float64 numbers."
    lines = 1 if k == 2 else k - (model.decision == "one_vs_one")
    if len(table) != lines:
        return f"there are {len(table)} lines of coefficients, and {k} classes need {lines}."
    counts = model.counts
    if counts.shape != (k,) or counts.dtype.kind != "i" or (counts < 0).any():
        return f"the numbers of support vectors must be {k} whole numbers, one for each class."
    if sum(counts.tolist()) != table.shape[1]:  # of any size, so not in 64 bits
        return f"the classes' support vectors do not add up to the {table.shape[1]} of the coefficients."
    return None


def _vectors(model: SavedKernelModel) -> str | None:
    vectors, count = model.vectors, model.coefficients.shape[1]
    if isinstance(model.kernel, Precomputed):
        return "a precomputed kernel has no support vectors of its own."
    is_sparse = sparse.issparse(vectors)
    if vectors.ndim != 2 or vectors.shape[0] != count or vectors.shape[1] < 1:
        return f"there must be {count} support vectors of at least one column, not {vectors.shape}."
    if vectors.dtype not in (np.float32, np.float64) or (is_sparse and vectors.format != "csr"):
        return "the support vectors must be a dense or a CSR matrix of float32 or float64."
    if is_sparse and (wrong := _csr_contradiction(vectors)):
        return wrong
    values = vectors.data if is_sparse else vectors
    if not np.isfinite(values).all():
        return "the support vectors hold NaN or infinite values."
    if model.open_ended and not is_sparse:
        return "only sparse support vectors can be shorter than the rows they meet."
    harmonic = any(factor[0] == "harmonic" for _, factors in model.kernel.terms for factor in factors)
    if harmonic and values.min(initial=0.0) < 0:
        return "the chi-squared kernel has support vectors with negative values."
    return None


def _csr_contradiction(matrix: Any) -> str | None:
    offsets, indices = matrix.indptr, matrix.indices
    if offsets.shape != (matrix.shape[0] + 1,) or indices.shape != matrix.data.shape or indices.ndim != 1:
        return "the arrays of the support vectors do not fit together."
    if offsets[0] != 0 or offsets[-1] != len(indices) or (offsets[1:] < offsets[:-1]).any():
        return "the support vectors do not lie one after the other."
    if len(indices) and not (indices.min() >= 0 and indices.max() < matrix.shape[1]):
        return f"a support vector has a column outside the {matrix.shape[1]} that there are."
    # Within a row columns increase; where the next row begins they may fall back.
    falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
    if not np.isin(falls, offsets).all():
        return "the columns of a support vector do not increase."
    return None


def _rows_of_the_matrix(model: SavedKernelModel) -> str | None:
    if not isinstance(model.kernel, Precomputed):
        return "the support vectors are missing."
    if model.support is None or not model.rows:
        return "a precomputed kernel needs the rows of its support vectors."
    return None


def _support(model: SavedKernelModel) -> str | None:
    support = model.support
    if support is None:
        return None
    count = model.coefficients.shape[1]
    if support.shape != (count,) or support.dtype != np.int64:
        return f"support must name {count} rows, one for each support vector."
    if model.rows is None or (count and not (support.min() >= 0 and support.max() < model.rows)):
        return f"support names a row outside the {model.rows} of the training data."
    if len(np.unique(support)) < count:
        return "support names a row twice."
    return None


def _settings(model: SavedKernelModel, m: int) -> str | None:
    problem = model.problem
    if problem["loss"] != "hinge" or problem["intercept"] != "exact" or problem["penalty"] != "l2":
        return "a kernel model minimises the hinge loss with an exact intercept and the l2 penalty."
    if problem["C"] == np.inf or problem["formulation"] != "separate":
        return "a kernel model has a finite C and one problem for each intercept."
    each = model.steps_each
    if each is not None and (len(each) != m or min(each) < 0):
        return f"the steps must be {m} whole numbers, one for each problem."
    factors = model.class_factors
    if factors is not None and (
        len(factors) != len(model.classes) or not all(0 <= f < np.inf for f in factors)
    ):
        return "class_factors must hold one finite number of at least 0 for each class."
    return None


def _proofs(model: SavedKernelModel) -> str | None:
    if model.certificates is None:
        return None
    if model.support is None:
        return "it has a proof but does not say which rows its support vectors are."
    several = len(model.classes) > 2 and model.decision == "one_vs_one"
    for k, certificate in enumerate(model.certificates):
        parts = ("w", "alpha", "margins", "row_classes", "w_of_alpha")
        lengths = {len(getattr(certificate, name)) for name in parts}
        if len(lengths) > 1 or not (
            max(lengths) <= (model.rows or 0) if several else lengths == {model.rows}
        ):
            return f"a proof speaks of {min(lengths)} to {max(lengths)} rows, the file of {model.rows}."
        if wrong := certificate_contradiction(certificate):
            return wrong
        if not _is_the_models(model, certificate, k, several):
            return "the proof is about other coefficients than those of the model."
    return None


def _is_the_models(model: SavedKernelModel, certificate: Certificate, k: int, several: bool) -> bool:
    signed = model.coefficients_of(k)
    if not several:
        assert model.support is not None
        expected: Vector = np.zeros(len(certificate.w))
        expected[model.support] = signed
        return np.array_equal(certificate.w, expected)
    # The rows of a pair are those of its first class and then those of its second, as are the vectors.
    return np.array_equal(certificate.w[certificate.w != 0], signed[signed != 0])
