# SPDX-License-Identifier: BSD-3-Clause
"""The arrays of a model in maxmargin's own file: written piece by piece, and taken out one by one.

A linear model of m problems, d features and n rows of training data has

    coef (m, d)   intercept (m,)

and with the proof

    alpha, margins (m, n)   row_classes (m, n), I8
    w_of_alpha (number of problems where it is not w, d)   trace (records of all problems, 5)

Where all k classes are in one problem, coef and intercept have a line for each class, and the proof one
line: alpha and margins of n (k - 1) rows, row_classes of n, w_of_alpha of all classes.

A kernel model of s support vectors and m problems of n_1, ..., n_m rows, n = n_1 + ... + n_m, has

    coefficients (lines, s)   intercept (m,)   support (s,), I64, where the rows are known
    vectors (s, d), or values, indices (I32 or I64) and offsets (I64, s + 1) of CSR; F32 or F64; neither
    for a precomputed kernel

and with the proof

    w, alpha, margins (n,)   row_classes (n,), I8
    w_of_alpha (rows of the problems where it is not w,)   trace (records of all problems, 5)

In regression a problem has two rows for each row of the data, in alpha, margins and row_classes; w, which a
kernel model holds by a coefficient for each row of the data, has n / 2. In ranking, alpha has for each row
the signed sum of the multipliers of its pairs, and margins are scores.

Scalers and feature maps before a model have arrays of their own, ``step 0 scale_`` and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.models.preparation import Preparation, Step, array_types
from maxmargin.files.models.stored import ModelError, SavedKernelModel, SavedModel, StoredModel
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.hard_margin import HardMarginCertificate
from maxmargin.proof.model import Record, Trace
from maxmargin.proof.ranking import RankingCertificate
from maxmargin.reductions.joint_classes import constant_of, joined
from maxmargin.tools.parameters import changed

TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I8": np.dtype("i1"),
}
_NAMES = {dtype: name for name, dtype in TYPES.items()}
_COLUMNS = len(Record._fields)
_ALWAYS_ALLOWED = 1 << 20
"""Columns that support vectors may have in the smallest file: 8 MiB for a row without sparsity."""
_COLUMNS_PER_BYTE = 4
"""Columns that each byte of a larger file allows: honest vectors have far more bytes than columns."""


class Array(NamedTuple):
    """An array that is hashed and written piece by piece, so that no second copy of all is made."""

    type: str
    shape: tuple[int, ...]
    pieces: Iterable[Any]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Array:
        """A whole array, in its own type."""
        return cls(_NAMES[array.dtype.newbyteorder("<")], array.shape, [array])

    def bytes(self) -> Iterator[memoryview]:
        """The bytes of each piece, in the order of the file."""
        for piece in self.pieces:
            yield np.ascontiguousarray(piece, TYPES[self.type]).reshape(-1).view(np.uint8).data

    @property
    def size(self) -> int:
        """The number of bytes."""
        return int(np.prod(self.shape, dtype=object)) * TYPES[self.type].itemsize


def unjustified(columns: int, size: int) -> str | None:
    """Why a file of so many bytes may not have so many columns: predictions need memory for each."""
    if columns <= max(_ALWAYS_ALLOWED, _COLUMNS_PER_BYTE * size):
        return None
    return f"its support vectors have {columns} columns, which a file of {size} bytes does not justify."


def arrays_of(model: StoredModel) -> dict[str, Array]:
    """What is written, in the order of the file."""
    if isinstance(model, SavedKernelModel):
        arrays = {"coefficients": Array.of(model.coefficients), "intercept": Array.of(model.intercept)}
        arrays |= _vector_arrays(model)
    else:
        assert isinstance(model, SavedModel)
        arrays = {"coef": Array.of(model.coef), "intercept": Array.of(model.intercept)}
    for k, step in enumerate(() if model.preparation is None else model.preparation.steps):
        arrays |= {f"step {k} {part}": Array.of(array) for part, array in step.arrays.items()}
    if model.traces is not None:
        records = [np.array(trace.records, np.float64).reshape(-1, _COLUMNS) for trace in model.traces]
        arrays["trace"] = Array("F64", (sum(map(len, records)), _COLUMNS), records)
    if proofs := model.certificates:
        others = [proof.w_of_alpha for proof in proofs if proof.w_of_alpha is not proof.w]
        shape: tuple[int, ...] = (len(proofs), len(proofs[0].alpha))
        shape_of_others: tuple[int, ...] = (len(others), len(proofs[0].w))
        if isinstance(model, SavedKernelModel):
            shape, shape_of_others = (sum(len(p.alpha) for p in proofs),), (sum(map(len, others)),)
            arrays["w"] = Array("F64", (sum(len(p.w) for p in proofs),), [proof.w for proof in proofs])
        arrays["alpha"] = Array("F64", shape, [proof.alpha for proof in proofs])
        arrays["margins"] = Array("F64", shape, [proof.margins for proof in proofs])
        arrays["w_of_alpha"] = Array("F64", shape_of_others, others)
        if model.is_joint:
            shape = (1, len(proofs[0].row_classes))
        arrays["row_classes"] = Array("I8", shape, [proof.row_classes for proof in proofs])
    return arrays


def _vector_arrays(model: SavedKernelModel) -> dict[str, Array]:
    vectors = model.vectors
    arrays = {} if model.support is None else {"support": Array.of(model.support)}
    if sparse.issparse(vectors):
        arrays |= {"values": Array.of(vectors.data), "indices": Array.of(vectors.indices)}
        arrays["offsets"] = Array("I64", vectors.indptr.shape, [vectors.indptr])
    elif vectors is not None:
        arrays["vectors"] = Array.of(vectors)
    return arrays


class Taken:
    """The arrays of a file, each of which is to be taken once."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.left = arrays

    def __call__(self, name: str, dimensions: int, *types: str) -> NDArray[Any]:
        """The array of that name, which must be of one of these types (default: F64)."""
        if name not in self.left:
            raise ModelError(f"the array {name!r} is missing.")
        array = self.left.pop(name)
        if array.ndim != dimensions or array.dtype not in [TYPES[kind] for kind in types or ("F64",)]:
            raise ModelError(f"the array {name!r} has the type {array.dtype} and the shape {array.shape}.")
        return array


def model_of(arrays: dict[str, NDArray[Any]], description: dict[str, Any], size: int) -> StoredModel:
    """The model of a file of so many bytes; raises ModelError where its parts do not fit together."""
    taken = Taken(arrays)
    with_kernel = "kernel" in description
    fields: dict[str, Any] = dict(description)
    if with_kernel:
        fields["coefficients"] = taken("coefficients", 2)
        fields["support"] = taken("support", 1, "I64") if "support" in arrays else None
        fields["open_ended"] = fields["vectors"].pop("open_ended")
        fields["vectors"] = _vectors(taken, **fields["vectors"], rows=fields["rows"], size=size)
    else:
        fields["coef"] = taken("coef", 2)
    fields["intercept"] = taken("intercept", 1)
    if "preparation" in fields:
        fields["preparation"] = _preparation(taken, fields["preparation"])
    if fields["certificates"] is not None:
        parts = _kernel_proofs if with_kernel else _linear_proofs
        fields["certificates"] = list(parts(taken, fields))
    if fields["traces"] is not None:
        fields["traces"] = _traces(taken("trace", 2), fields["traces"])
    model = SavedKernelModel(**fields) if with_kernel else SavedModel(**fields)
    if taken.left:
        raise ModelError(f"it holds an array {min(taken.left)!r} that its description does not speak of.")
    return model


def _preparation(taken: Taken, described: list[dict[str, Any]]) -> Preparation:
    """The steps before a model, with their arrays; whether they are sound, the model asks."""
    steps = []
    for k, step in enumerate(described):
        arrays = {}
        for part in step["arrays"]:
            if (known := array_types(step["name"], part)) is None:
                raise ModelError(f"a step {step['name']!r} has no array {part!r:.60}.")
            arrays[part] = taken(f"step {k} {part}", known[0], *known[1])
        steps.append(Step(step["name"], step["columns"], step["parameters"], arrays))
    if not steps:
        raise ModelError("it speaks of steps before the model and has none.")
    return Preparation(tuple(steps))


def _vectors(taken: Taken, *, format: str, columns: int, rows: int | None, size: int) -> Any:
    if reason := unjustified(columns, size):
        raise ModelError(reason)
    if format == "none":
        if columns != rows:
            raise ModelError(f"the kernel is precomputed for {columns} rows, the file speaks of {rows}.")
        return None
    if format == "dense":
        vectors = taken("vectors", 2, "F32", "F64")
        if vectors.shape[1] != columns:
            raise ModelError(f"the array 'vectors' has {vectors.shape[1]} columns, not {columns}.")
        return vectors
    values, indices = taken("values", 1, "F32", "F64"), taken("indices", 1, "I32", "I64")
    offsets = taken("offsets", 1, "I64")
    if len(offsets) < 1 or len(values) != len(indices):
        raise ModelError("the arrays of the support vectors do not fit together.")
    # SciPy would look at the arrays in its own way, and say so in its own words; soundness.py does it here.
    matrix = sparse.csr_matrix((len(offsets) - 1, columns), dtype=values.dtype)
    matrix.data, matrix.indices, matrix.indptr = values, indices, offsets.astype(indices.dtype)
    if not np.array_equal(matrix.indptr, offsets):
        raise ModelError("the support vectors do not lie one after the other.")
    return matrix


def _linear_proofs(taken: Taken, fields: dict[str, Any]) -> Iterator[Certificate]:
    """The proofs of a linear model, whose problems all have the same rows."""
    coef, proofs = fields["coef"], fields["certificates"]
    if fields["problem"].get("formulation") == "crammer_singer":
        coef = _one_w_of_all_classes(fields)
    alpha, margins, row_classes = taken("alpha", 2), taken("margins", 2), taken("row_classes", 2, "I8")
    others = taken("w_of_alpha", 2)
    if {len(alpha), len(margins), len(row_classes), len(proofs), len(fields["claims"])} != {len(coef)}:
        raise ModelError(f"coef has {len(coef)} rows, but its proof speaks of another number of problems.")
    if sum(not proof["w_is_w_of_alpha"] for proof in proofs) != len(others):
        raise ModelError("the number of rows of w_of_alpha is not that of the problems that have one.")
    return _certificates(fields, [coef, alpha, margins, row_classes], iter(others))


def _one_w_of_all_classes(fields: dict[str, Any]) -> NDArray[Any]:
    """The w of Crammer and Singer's problem, as a matrix of one line."""
    coef, intercept, problem = fields["coef"], fields["intercept"], fields["problem"]
    if not len(coef) == len(intercept) == len(fields["classes"]):
        raise ModelError("all classes of one problem need a line of coef and an intercept each.")
    scaling = problem.get("intercept_scaling")
    if not (isinstance(scaling, float) and scaling > 0 and np.isfinite(intercept / scaling).all()):
        raise ModelError(f"the problem's intercept_scaling is {scaling!r}.")
    return joined(coef, intercept, constant_of(problem))[np.newaxis]


def _kernel_proofs(taken: Taken, fields: dict[str, Any]) -> Iterator[Certificate]:
    """The proofs of a kernel model, whose problems have rows of their own: they follow on each other."""
    proofs, claims = fields["certificates"], fields["claims"]
    parts = [taken("w", 1), taken("alpha", 1), taken("margins", 1), taken("row_classes", 1, "I8")]
    others = taken("w_of_alpha", 1)
    sizes = [proof["rows"] for proof in proofs]
    of_w = [size // 2 for size in sizes] if fields["decision"] == "regression" else sizes
    own = [size for size, proof in zip(of_w, proofs, strict=True) if not proof["w_is_w_of_alpha"]]
    lengths = {len(part) for part in parts[1:]}
    others_fit = len(parts[0]) == sum(of_w) and len(others) == sum(own)
    if lengths != {sum(sizes)} or not others_fit or len(claims) != len(proofs):
        raise ModelError("the arrays of the proof do not have the rows that its description speaks of.")
    split = [
        np.split(part, np.cumsum(each))[:-1]
        for part, each in zip(parts, [of_w, sizes, sizes, sizes], strict=True)
    ]
    return _certificates(fields, split, iter(np.split(others, np.cumsum(own))))


def _certificates(fields: dict[str, Any], parts: list[Any], others: Iterator[Any]) -> Iterator[Certificate]:
    """The proof of each problem, of whose w, alpha, margins and row classes ``parts`` are lists.

    ``others`` are w_of_alpha of the problems where it is not w.
    """
    kind: Callable[..., Certificate] = (
        HardMarginCertificate if fields["problem"].get("C") == np.inf else Certificate
    )
    if fields["decision"] == "ranking":
        kind = partial(RankingCertificate, width=fields["problem"].get("width"))
    shares = fields.get("shares") or [None] * len(fields["claims"])
    if len(shares) != len(fields["claims"]):
        raise ModelError("its shares are not one for each problem.")
    for proof, claim, share, w, alpha, margins, row_classes in zip(
        fields["certificates"], fields["claims"], shares, *parts, strict=True
    ):
        w_of_alpha = w if proof["w_is_w_of_alpha"] else next(others)
        point = w, proof["b"], claim.primal, alpha, claim.dual, claim.alpha_from, margins, w_of_alpha
        # What follows from the data, which are not here; see Certificate.without_problem.
        known = claim.kkt_violation, row_classes, proof["b_interval"], proof["proven"]
        certificate = kind(None, *point).with_known(*known)
        if share is not None:
            certificate = changed(certificate, shift=share.shift, total=share.total)
        certificate.__dict__["of_one_class"] = fields["decision"] == "one_class"
        if fields["decision"] == "regression":
            certificate.__dict__["of_regression"] = True
        if fields["problem"].get("formulation") == "crammer_singer":
            certificate.__dict__["group"] = len(fields["classes"]) - 1
        yield certificate


def _traces(table: NDArray[Any], parts: list[Any]) -> list[Trace]:
    """The traces that a description tells the lengths of."""
    if table.shape != (sum(part["records"] for part in parts), _COLUMNS):
        raise ModelError(f"the array 'trace' has the shape {table.shape}, which its description denies.")
    steps = table[:, 0]
    whole = np.isfinite(steps).all() and bool((np.floor(steps) == steps).all())
    if not whole or not ((steps >= 0) & (steps < 2.0**53)).all():
        raise ModelError("the array 'trace' has a step that is not a whole number.")
    lines = iter(table.tolist())
    return [
        Trace(
            [Record(int(line[0]), *line[1:]) for line in islice(lines, part["records"])],
            certifying=part["certifying"],
        )
        for part in parts
    ]
