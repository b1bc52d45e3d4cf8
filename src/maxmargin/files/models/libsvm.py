# SPDX-License-Identifier: BSD-3-Clause
"""The model text of LIBSVM (``svm-train``, ``svm-predict``): C-SVC, with all kernels but precomputed ones.

    svm_type c_svc
    kernel_type rbf                  linear, polynomial ((gamma <x, z> + coef0)^degree), rbf or sigmoid
    gamma 0.5                        those of degree, gamma and coef0 that the kernel has
    nr_class 3
    total_sv 25
    rho 0.8 -0.79 -0.53              minus the intercept, of classes (0, 1), (0, 2), (1, 2)
    label 2 0 1                      of each pair, the class named first is the positive one
    nr_sv 9 11 5                     support vectors by class, in the order of the lines below
    SV
    0.02 0 1:-0.5 3:1                y alpha against each other class; then the vector, counted from 1

C is not in the file, but no multiplier is larger. Nor is the number of columns: those after the last one of
the support vectors count in the distances of a kernel all the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import combinations
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.data.text import (
    Header,
    Lines,
    integer_labels,
    refuse_features,
    shown,
    to_integer,
    to_number,
)
from maxmargin.files.models.kernel_arrays import unjustified
from maxmargin.files.models.kernel_model import SavedKernelModel, with_linear_kernel
from maxmargin.files.models.saved import SavedModel, Support
from maxmargin.files.models.stored import ModelError, StoredModel
from maxmargin.kernels.base import Gaussian, Kernel, Linear, Polynomial, Sigmoid
from maxmargin.kernels.names import describe
from maxmargin.types import Vector

_KEYWORDS = {"svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho"}
_KEYWORDS |= {"label", "probA", "probB", "prob_density_marks", "nr_sv"}
_ALWAYS_ALLOWED = 1 << 26
_BYTES_PER_BYTE = 64
_PROBLEM = {
    "loss": "hinge",
    "C": None,
    "intercept": "exact",
    "intercept_scaling": 1.0,
    "class_weight": None,
    "sample_weights": False,
    "penalty": "l2",
    "formulation": "separate",
}


def read_model(file: BinaryIO, size: int) -> StoredModel:
    """The model of an open file of so many bytes; raises ModelError with line and reason."""
    lines = Lines(file, size)
    header = lines.header(_KEYWORDS, end="SV")
    kernel = _kernel(header)
    k = header.count("nr_class", 2)
    labels = header.labels("label", k)
    rho = np.array(header.numbers("rho", k * (k - 1) // 2))
    total = header.count("total_sv", 1)
    counts = [to_integer(word, header.line("nr_sv"), 0, total) for word in header.words("nr_sv", k)]
    if sum(counts) != total:
        raise ModelError(
            f"line {header.line('nr_sv')}: the classes' support vectors do not add up to {total}."
        )
    lines.room_for(total * (k - 1), f"{total} support vectors of {k} classes")
    coefficients, vectors = _support_vectors(lines, total, k)
    owner = np.repeat(np.arange(k), counts)
    common: dict[str, Any] = {
        "intercept": -rho,
        "classes": labels[::-1] if k == 2 else labels,
        "decision": "one_vs_rest" if k == 2 else "one_vs_one",
        "problem": dict(_PROBLEM),
        "writer": "LIBSVM",
        "format": "libsvm",
    }
    if isinstance(kernel, Linear):
        support = Support(vectors, coefficients, labels[owner], labels)
        return SavedModel(coef=_weights(support, owner, size), support=support, **common)
    if reason := unjustified(vectors.shape[1], size):
        raise ModelError(f"{reason} An index in it is far too large.")
    # Of two classes the second is the positive one here, and the first there.
    order = np.argsort(k - 1 - owner, kind="stable") if k == 2 else np.arange(total)
    return SavedKernelModel(
        kernel=kernel,
        vectors=vectors[order],
        coefficients=np.ascontiguousarray(coefficients[order].T),
        counts=np.array(counts[::-1] if k == 2 else counts, np.int64),
        open_ended=True,
        **common,
    )


def _weights(support: Support, owner: NDArray[np.intp], size: int) -> Vector:
    """The w of every problem of a linear model."""
    k, d = len(support.order), support.vectors.shape[1]
    m = k * (k - 1) // 2
    if 8 * m * d > max(_ALWAYS_ALLOWED, _BYTES_PER_BYTE * size):
        raise ModelError(
            f"its {m} times {d} weights would take {8 * m * d} bytes, which a file of {size} bytes does "
            "not justify: an index in it is far too large."
        )
    return np.ascontiguousarray((_shares(support.coefficients, owner, k) @ support.vectors).toarray())


def _kernel(header: Header) -> Kernel:
    """The kernel that the header names, with its numbers."""
    kind = header.word("svm_type")
    if kind != "c_svc":
        raise ModelError(
            f"line {header.line('svm_type')}: the SVM is of the type {kind[:40]!r}. Only files of C-SVC "
            "can be read (svm-train -s 0)."
        )
    name, line = header.word("kernel_type"), header.line("kernel_type")
    if name == "precomputed":
        raise ModelError(
            f"line {line}: the kernel is precomputed. Its support vectors are numbers of rows of a matrix "
            "that is not in the file. Train with another kernel, or with SVC(kernel='precomputed')."
        )
    makers: dict[str, Callable[[], Kernel]] = {
        "linear": Linear,
        "polynomial": lambda: Polynomial(
            header.count("degree", 0), header.number("gamma"), header.number("coef0")
        ),
        "rbf": lambda: Gaussian(header.number("gamma")),
        "sigmoid": lambda: Sigmoid(header.number("gamma"), header.number("coef0")),
    }
    if name not in makers:
        raise ModelError(
            f"line {line}: the kernel is {name[:40]!r}. Those that can be read are {', '.join(makers)}."
        )
    try:
        return makers[name]()
    except ModelError:
        raise
    except ValueError as error:
        raise ModelError(f"line {line}: {error}") from error


def _support_vectors(lines: Lines, total: int, k: int) -> tuple[Vector, Any]:
    """The coefficients, and the vectors as CSR: memory follows what was read."""
    coefficients = np.empty((total, k - 1))
    values, indices, ends = array("d"), array("q"), array("q", [0])
    for row in coefficients:
        words = lines.next().split()
        if len(words) < k - 1:
            raise ModelError(f"line {lines.number}: {k - 1} coefficients should be here, not {len(words)}.")
        row[:] = [to_number(word, lines.number) for word in words[: k - 1]]
        last = 0
        for word in words[k - 1 :]:
            index, colon, value = word.partition(b":")
            if not colon:
                raise ModelError(f"line {lines.number}: {shown(word)} should be index:value.")
            last = to_integer(index, lines.number, last + 1, 2**31 - 1)
            indices.append(last - 1)
            values.append(to_number(value, lines.number))
        ends.append(len(values))
    lines.expect_end()
    d = max(indices, default=0) + 1
    parts = (np.array(values), np.array(indices), np.array(ends))
    return coefficients, sparse.csr_matrix(parts, shape=(total, d))


def _shares(coefficients: Vector, owner: Any, k: int) -> Any:
    """The matrix whose product with the support vectors is coef: one row per pair of classes."""
    number = np.zeros((k, k), np.int64)
    for place, (first, second) in enumerate(combinations(range(k), 2)):
        number[first, second] = number[second, first] = place
    column = np.arange(k - 1)
    other = column + (column >= owner[:, np.newaxis])  # a class has no coefficient against itself
    pair = number[owner[:, np.newaxis], other]
    vector = np.broadcast_to(np.arange(len(owner))[:, np.newaxis], pair.shape)
    shape = (k * (k - 1) // 2, len(owner))
    return sparse.csr_matrix((coefficients.ravel(), (pair.ravel(), vector.ravel())), shape=shape)


def writer(model: StoredModel) -> Callable[[BinaryIO], None]:
    """What writes the model into an open file: support vectors, or w of a linear model of two classes."""
    if isinstance(model, SavedKernelModel):
        return _kernel_writer(model)
    assert isinstance(model, SavedModel)
    if model.support is not None:
        return _kernel_writer(with_linear_kernel(model))
    return _linear_writer(model)


def _kernel_header(kernel: Kernel) -> str:
    names = {Linear: "linear", Polynomial: "polynomial", Gaussian: "rbf", Sigmoid: "sigmoid"}
    name = names.get(type(kernel))
    if name is None:
        raise ModelError(
            f"LIBSVM has no kernel {kernel}. Save it with format='maxmargin', or train with one of "
            f"{', '.join(names.values())}."
        )
    stated = describe(kernel)
    numbers = [f"{key} {stated[key]!r}\n" for key in ("degree", "gamma", "coef0") if key in stated]
    return f"svm_type c_svc\nkernel_type {name}\n{''.join(numbers)}"


def _kernel_writer(model: SavedKernelModel) -> Callable[[BinaryIO], None]:
    """LIBSVM then computes the same values, and predicts the same but for ties between classes."""
    k, total = len(model.classes), model.coefficients.shape[1]
    start = _kernel_header(model.kernel)
    if k > 2 and model.decision != "one_vs_one":
        raise ModelError(
            "LIBSVM tells every pair of classes apart, and this model one class from the rest. Save it "
            "with format='maxmargin', or train with multi_class='ovo'."
        )
    if total == 0:
        raise ModelError(
            "It has no support vectors, and the text of LIBSVM needs one. Use format='maxmargin'."
        )
    labels, counts = integer_labels(model.classes, "LIBSVM"), model.counts.tolist()
    order: NDArray[np.intp] = np.arange(total)
    if k == 2:
        labels, counts = labels[::-1], counts[::-1]
        order = np.argsort(1 - model.owners, kind="stable")
    rho = " ".join(repr(-b) for b in model.intercept.tolist())
    header = (
        f"{start}nr_class {k}\ntotal_sv {total}\nrho {rho}\nlabel {' '.join(map(str, labels))}\n"
        f"nr_sv {' '.join(map(str, counts))}\nSV\n"
    )
    vectors = sparse.csr_matrix(model.vectors)

    def write(file: BinaryIO) -> None:
        file.write(header.encode())
        for s in order.tolist():
            words = map(repr, model.coefficients[:, s].tolist())
            stored = slice(vectors.indptr[s], vectors.indptr[s + 1])
            pairs = zip((vectors.indices[stored] + 1).tolist(), vectors.data[stored].tolist(), strict=True)
            line = " ".join([*words, *(f"{index}:{value!r}" for index, value in pairs)])
            file.write(f"{line} \n".encode())

    return write


def _linear_writer(model: SavedModel) -> Callable[[BinaryIO], None]:
    """What writes a model of two classes into an open file.

    w itself is the one support vector, with the coefficient 1: LIBSVM then computes <w, x> - rho, and
    predicts the same. The multipliers of the training rows are not in such a file, since the rows are not
    here; and who reads it takes the loss for the hinge and the intercept for exact.
    """
    refuse_features(model, "LIBSVM")
    if len(model.coef) != 1:
        reason = "tells one class from the rest" if model.decision == "one_vs_rest" else "has none of them"
        cure = "'liblinear' or format='maxmargin'" if model.decision == "one_vs_rest" else "'maxmargin'"
        raise ModelError(
            "A LIBSVM file of more than two classes holds the support vectors of every pair of classes, "
            f"and this model {reason}. Save it with format={cure} instead."
        )
    negative, positive = integer_labels(model.classes, "LIBSVM")
    w = model.coef[0]
    stored = np.flatnonzero(w)

    def write(file: BinaryIO) -> None:
        header = (
            "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 1\n"
            f"rho {-float(model.intercept[0])!r}\nlabel {positive} {negative}\nnr_sv 1 0\nSV\n1 "
        )
        file.write(header.encode())
        for start in range(0, len(stored), 4096):
            part = stored[start : start + 4096]
            pairs = zip((part + 1).tolist(), w[part].tolist(), strict=True)
            file.write("".join(f"{index}:{value!r} " for index, value in pairs).encode())
        file.write(b"\n")

    return write
