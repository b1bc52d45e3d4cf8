# SPDX-License-Identifier: BSD-3-Clause
"""The model text of LIBSVM (``svm-train``, ``svm-predict``), of all its types, but no precomputed kernel.

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

A classifier with a nu (``nu_svc``) has the same lines; its multipliers are in units of its rho. A regressor
(``epsilon_svr``, ``nu_svr``) has neither ``label`` nor ``nr_sv``, and one coefficient for each vector: the
multiplier of the lower wall of its tube minus that of the upper one. One class (``one_class``) has the same
lines as a regressor, and multipliers for coefficients.

C is not in the file, but no multiplier is larger. Nor is epsilon or nu, nor the number of columns: those
after the last one of the support vectors count in the distances of a kernel all the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.models.arrays import unjustified
from maxmargin.files.models.soundness import PROBLEM
from maxmargin.files.models.stored import ModelError, SavedKernelModel, SavedModel, StoredModel
from maxmargin.files.models.text import (
    Header,
    Lines,
    integer_labels,
    refuse_features,
    shown,
    to_integer,
    to_number,
)
from maxmargin.kernels.base import KINDS, Kernel, Linear
from maxmargin.kernels.names import describe
from maxmargin.types import Vector

_KEYWORDS = {"svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho"}
_KEYWORDS |= {"label", "probA", "probB", "prob_density_marks", "nr_sv"}
_KERNELS = {"linear": "linear", "polynomial": "polynomial", "rbf": "gaussian", "sigmoid": "sigmoid"}
"""LIBSVM's names of kernels, and ours."""
_WITHOUT_CLASSES = {"epsilon_svr": "regression", "nu_svr": "regression", "one_class": "one_class"}
"""The types of files whose answers are numbers, and what they decide."""
_WITH_NU = ("nu_svc", "nu_svr", "one_class")
_KINDS = ("c_svc", "nu_svc", *_WITHOUT_CLASSES)
_VALUES_AT_A_TIME = 4096
"""Values of a vector that are turned into text at once: w may have millions of them."""
_ALWAYS_ALLOWED = 1 << 26
"""Bytes that the weights of the smallest linear model may take, 64 MiB."""
_BYTES_PER_BYTE = 64
"""Bytes of weights that each byte of a larger file allows: text of sparse vectors is far denser."""


def read_model(file: BinaryIO, size: int) -> StoredModel:
    """The model of an open file of so many bytes; raises ModelError with line and reason."""
    lines = Lines(file, size)
    header = lines.header(_KEYWORDS, end="SV")
    kernel = _kernel(header)
    kind = header.word("svm_type")
    task, with_nu, linear = _WITHOUT_CLASSES.get(kind), kind in _WITH_NU, isinstance(kernel, Linear)
    k = header.count("nr_class", 2) if task is None else 2
    labels: NDArray[Any] = np.empty(0) if task else header.labels("label", k)
    rho = np.array(header.numbers("rho", k * (k - 1) // 2))
    total = header.count("total_sv", 1)
    counts = [total]
    if task is None:
        counts = [to_integer(word, header.line("nr_sv"), 0, total) for word in header.words("nr_sv", k)]
    if sum(counts) != total:
        raise ModelError(
            f"line {header.line('nr_sv')}: the classes' support vectors do not add up to {total}."
        )
    lines.room_for(total * (k - 1), f"{total} support vectors" + ("" if task else f" of {k} classes"))
    coefficients, vectors = _support_vectors(lines, total, k)
    if not (linear and task is None) and (reason := unjustified(vectors.shape[1], size)):
        raise ModelError(f"{reason} An index in it is far too large.")
    if k == 2 and task is None:  # the second class is the positive one here, and the first there
        order = np.roll(np.arange(total), -counts[0])
        labels, counts = labels[::-1], counts[::-1]
        coefficients, vectors = coefficients[order], vectors[order]
    stated: dict[str, Any] = {"C": 1.0} if with_nu and task != "regression" else {}
    stated |= {"nu": None} if with_nu else {}
    stated |= {"loss": "epsilon_insensitive", "epsilon": None} if task == "regression" else {}
    stated |= {"intercept": "none"} if task == "one_class" else {}
    common: dict[str, Any] = {
        "intercept": -rho,
        "classes": labels,
        "decision": task or ("one_vs_rest" if k == 2 else "one_vs_one"),
        "problem": PROBLEM | stated,
        "writer": "LIBSVM",
        "format": "libsvm",
    }
    if linear and task == "regression" and not with_nu:
        return SavedModel(coef=np.ascontiguousarray(coefficients.T @ vectors), **common)
    model = SavedKernelModel(
        kernel=kernel,
        vectors=vectors,
        coefficients=np.ascontiguousarray(coefficients.T),
        counts=np.array(counts, np.int64),
        open_ended=True,
        **common,
    )
    if not linear or with_nu:
        return model
    return SavedModel(coef=_weights(model, size), support=model, **common)


def _weights(model: SavedKernelModel, size: int) -> Vector:
    """The w of every problem of a model with the linear kernel, which came from so many bytes."""
    m, d, k = len(model.intercept), model.features, len(model.classes)
    if 8 * m * d > max(_ALWAYS_ALLOWED, _BYTES_PER_BYTE * size):
        raise ModelError(
            f"its {m} times {d} weights would take {8 * m * d} bytes, which a file of {size} bytes does "
            "not justify: an index in it is far too large."
        )
    problem = np.zeros((k, k), np.int64)
    problem[np.triu_indices(k, 1)] = np.arange(m)
    problem += problem.T
    coef = np.zeros((m, d))
    ends = np.cumsum(model.counts)
    for c in range(k):  # the vectors of a class have a coefficient against each other class
        own = slice(ends[c] - model.counts[c], ends[c])
        coef[np.delete(problem[c], c)] += model.coefficients[:, own] @ model.vectors[own]
    return coef


def _kernel(header: Header) -> Kernel:
    """The kernel that the header names, with its numbers."""
    kind = header.word("svm_type")
    if kind not in _KINDS:
        raise ModelError(
            f"line {header.line('svm_type')}: the SVM is of the type {kind[:40]!r}. Those that can be read "
            f"are {', '.join(_KINDS)}."
        )
    name, line = header.word("kernel_type"), header.line("kernel_type")
    if name == "precomputed":
        raise ModelError(
            f"line {line}: the kernel is precomputed. Its support vectors are numbers of rows of a matrix "
            "that is not in the file. Train with another kernel, or with SVC(kernel='precomputed')."
        )
    if name not in _KERNELS:
        raise ModelError(
            f"line {line}: the kernel is {name[:40]!r}. Those that can be read are {', '.join(_KERNELS)}."
        )
    kernel, numbers = KINDS[_KERNELS[name]]
    given = {key: header.count(key, 0) if key == "degree" else header.number(key) for key in numbers}
    try:
        return kernel(**given)
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


def writer(model: StoredModel) -> Callable[[BinaryIO], None]:
    """What writes the support vectors of a model into an open file.

    LIBSVM then computes the same values, and predicts the same but for ties between classes.
    """
    given = model if isinstance(model, SavedKernelModel) else _with_support_vectors(model)
    k, total = len(given.classes), given.coefficients.shape[1]
    kinds = {"regression": ("epsilon_svr", "nu_svr"), "one_class": ("one_class", "one_class")}
    kind = kinds.get(given.decision, ("c_svc", "nu_svc"))[given.has_nu]
    start = f"svm_type {kind}\n{_kernel_header(given.kernel)}"
    if k > 2 and given.decision != "one_vs_one":
        raise ModelError(
            "LIBSVM tells every pair of classes apart, and this model one class from the rest. Save it "
            "with format='maxmargin', or train with multi_class='ovo'."
        )
    if total == 0:
        raise ModelError(
            "It has no support vectors, and the text of LIBSVM needs one. Use format='maxmargin'."
        )
    rho = " ".join(repr(-b) for b in given.intercept.tolist())
    order: NDArray[np.intp] = np.arange(total)
    if not given.has_classes:
        header = f"{start}nr_class 2\ntotal_sv {total}\nrho {rho}\nSV\n"
    else:
        labels, counts = integer_labels(given.classes, "LIBSVM"), given.counts.tolist()
        if k == 2:
            labels, counts = labels[::-1], counts[::-1]
            order = np.roll(order, -counts[1])
        header = (
            f"{start}nr_class {k}\ntotal_sv {total}\nrho {rho}\nlabel {' '.join(map(str, labels))}\n"
            f"nr_sv {' '.join(map(str, counts))}\nSV\n"
        )
    vectors = sparse.csr_matrix(given.vectors)

    def write(file: BinaryIO) -> None:
        file.write(header.encode())
        for s in order.tolist():
            file.write("".join(f"{number!r} " for number in given.coefficients[:, s].tolist()).encode())
            begin, end = vectors.indptr[s : s + 2].tolist()
            for first in range(begin, end, _VALUES_AT_A_TIME):
                part = slice(first, min(first + _VALUES_AT_A_TIME, end))
                pairs = zip((vectors.indices[part] + 1).tolist(), vectors.data[part].tolist(), strict=True)
                file.write("".join(f"{index}:{value!r} " for index, value in pairs).encode())
            file.write(b"\n")

    return write


def _with_support_vectors(model: Any) -> SavedKernelModel:
    """A linear model as its support vectors, or as w, if it is of two classes.

    w is then the one support vector, with the coefficient 1: LIBSVM computes <w, x> - rho. The multipliers
    of the training rows are not in such a file, since the rows are not here; and who reads it takes the
    loss for the hinge and the intercept for exact.
    """
    if model.support is not None:
        support: SavedKernelModel = model.support
        return support
    refuse_features(model, "LIBSVM")
    if len(model.coef) != 1:
        reason = "tells one class from the rest" if model.decision == "one_vs_rest" else "has none of them"
        cure = "'liblinear' or format='maxmargin'" if model.decision == "one_vs_rest" else "'maxmargin'"
        raise ModelError(
            "A LIBSVM file of more than two classes holds the support vectors of every pair of classes, "
            f"and this model {reason}. Save it with format={cure} instead."
        )
    problem = PROBLEM | ({"loss": "epsilon_insensitive", "epsilon": 0.0} if model.is_regression else {})
    if model.is_one_class:
        problem = model.problem
    return SavedKernelModel(
        kernel=Linear(),
        vectors=sparse.csr_matrix(model.coef),
        coefficients=np.ones((1, 1)),
        counts=np.array([0, 1]) if model.has_classes else np.array([1]),
        intercept=model.intercept,
        classes=model.classes,
        decision=model.decision,
        problem=problem,
        shares=model.shares,
        format=model.format,
    )


def _kernel_header(kernel: Kernel) -> str:
    """The lines that name the kernel and its numbers."""
    numbers = describe(kernel)
    kind = numbers.pop("kernel")
    name = next((name for name, ours in _KERNELS.items() if ours == kind), None)
    if name is None:
        raise ModelError(
            f"LIBSVM has no kernel {kernel}. Save it with format='maxmargin', or train with one of "
            f"{', '.join(_KERNELS)}."
        )
    lines = [f"{key} {value!r}\n" for key, value in numbers.items()]
    return f"kernel_type {name}\n{''.join(lines)}"
