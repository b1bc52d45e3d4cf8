# SPDX-License-Identifier: BSD-3-Clause
"""The arrays of a kernel model in maxmargin's own file, version 2 of the format.

s support vectors, m problems of n_1, ..., n_m rows, n = n_1 + ... + n_m:

    coefficients (lines, s)   intercept (m,)   support (s,), I64, where the rows are known
    vectors (s, d), or values, indices (I32 or I64) and offsets (I64, s + 1) of CSR; F32 or F64; neither
    for a precomputed kernel
    with the proof: w, alpha, margins (n,)   row_classes (n,), I8   w_of_alpha (rows of the problems where
    it is not w,)   trace (records of all problems, 5)
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.models.arrays import Array, read_traces, taken, trace_array
from maxmargin.files.models.kernel_model import SavedKernelModel
from maxmargin.files.models.stored import ModelError
from maxmargin.proof.certificate import Certificate

_ALWAYS_ALLOWED = 1 << 20
_COLUMNS_PER_BYTE = 4


def unjustified(columns: int, size: int) -> str | None:
    """Why a file of so many bytes may not have so many columns: predictions need memory for each."""
    if columns <= max(_ALWAYS_ALLOWED, _COLUMNS_PER_BYTE * size):
        return None
    return f"its support vectors have {columns} columns, which a file of {size} bytes does not justify."


def arrays_of(model: SavedKernelModel) -> dict[str, Array]:
    """What is written."""
    arrays = {"coefficients": Array.of(model.coefficients), "intercept": Array.of(model.intercept)}
    if model.support is not None:
        arrays["support"] = Array.of(model.support)
    vectors = model.vectors
    if sparse.issparse(vectors):
        arrays["values"] = Array.of(vectors.data)
        arrays["indices"] = Array.of(vectors.indices)
        arrays["offsets"] = Array("I64", vectors.indptr.shape, [vectors.indptr])
    elif vectors is not None:
        arrays["vectors"] = Array.of(vectors)
    if model.traces is not None:
        arrays["trace"] = trace_array(model.traces)
    if model.certificates is not None:
        proofs = model.certificates
        total = sum(len(proof.alpha) for proof in proofs)
        for name in ("w", "alpha", "margins"):
            arrays[name] = Array("F64", (total,), [getattr(proof, name) for proof in proofs])
        others = [proof.w_of_alpha for proof in proofs if proof.w_of_alpha is not proof.w]
        arrays["w_of_alpha"] = Array("F64", (sum(map(len, others)),), others)
        arrays["row_classes"] = Array("I8", (total,), [proof.row_classes for proof in proofs])
    return arrays


def model_of(arrays: dict[str, NDArray[Any]], description: dict[str, Any], size: int) -> SavedKernelModel:
    """The model of a file of so many bytes; arrays that it does not speak of are left."""
    held = description.pop("vectors")
    certificates = traces = None
    if "certificates" in description:
        certificates = _certificates(arrays, description.pop("certificates"), description["claims"])
    if "traces" in description:
        traces = read_traces(arrays, description.pop("traces"))
    return SavedKernelModel(
        coefficients=taken(arrays, "coefficients", 2),
        intercept=taken(arrays, "intercept", 1),
        support=taken(arrays, "support", 1, "I64") if "support" in arrays else None,
        vectors=_vectors(arrays, held, description["rows"], size),
        certificates=certificates,
        traces=traces,
        **description,
    )


def _vectors(arrays: dict[str, NDArray[Any]], held: dict[str, Any], rows: int | None, size: int) -> Any:
    kind, columns = held["format"], held["columns"]
    if reason := unjustified(columns, size):
        raise ModelError(reason)
    if kind == "none":
        if columns != rows:
            raise ModelError(f"the kernel is precomputed for {columns} rows, the file speaks of {rows}.")
        return None
    if kind == "dense":
        vectors = taken(arrays, "vectors", 2, "F32", "F64")
        if vectors.shape[1] != columns:
            raise ModelError(f"the array 'vectors' has {vectors.shape[1]} columns, not {columns}.")
        return vectors
    values, indices = taken(arrays, "values", 1, "F32", "F64"), taken(arrays, "indices", 1, "I32", "I64")
    offsets = taken(arrays, "offsets", 1, "I64")
    if len(offsets) < 1 or len(values) != len(indices):
        raise ModelError("the arrays of the support vectors do not fit together.")
    # SciPy would look at the arrays in its own way, and say so in its own words; soundness.py does it here.
    matrix = sparse.csr_matrix((len(offsets) - 1, columns), dtype=values.dtype)
    matrix.data, matrix.indices, matrix.indptr = values, indices, offsets.astype(indices.dtype)
    if not np.array_equal(matrix.indptr, offsets):
        raise ModelError("the support vectors do not lie one after the other.")
    return matrix


def _certificates(
    arrays: dict[str, NDArray[Any]], proofs: list[Any], claims: list[Any]
) -> list[Certificate]:
    whole = {name: taken(arrays, name, 1) for name in ("w", "alpha", "margins")}
    row_classes, others = taken(arrays, "row_classes", 1, "I8"), taken(arrays, "w_of_alpha", 1)
    sizes = [proof["rows"] for proof in proofs]
    wanted = sum(size for size, proof in zip(sizes, proofs, strict=True) if not proof["w_is_w_of_alpha"])
    lengths = {len(array) for array in (*whole.values(), row_classes)}
    if lengths != {sum(sizes)} or len(others) != wanted or len(claims) != len(proofs):
        raise ModelError("the arrays of the proof do not have the rows that its description speaks of.")
    cuts = list(accumulate(sizes))[:-1]
    parts = {name: np.split(array, cuts) for name, array in whole.items()}
    classes = np.split(row_classes, cuts)
    certificates, used = [], 0
    for k, (proof, claim) in enumerate(zip(proofs, claims, strict=True)):
        w = w_of_alpha = parts["w"][k]
        if not proof["w_is_w_of_alpha"]:
            w_of_alpha = others[used : used + sizes[k]]
            used += sizes[k]
        certificate = Certificate(
            None,
            w,
            proof["b"],
            claim.primal,
            parts["alpha"][k],
            claim.dual,
            claim.alpha_from,
            parts["margins"][k],
            w_of_alpha,
        )
        # What follows from the data, which are not here; see Certificate.without_problem.
        known = claim.kkt_violation, classes[k], proof["b_interval"], proof["proven"]
        certificates.append(certificate.with_known(*known))
    return certificates
