# SPDX-License-Identifier: BSD-3-Clause
"""maxmargin's own model file: safetensors, with everything that is not an array as JSON in its header.

Arrays of a linear model, m problems, d features, n rows of training data; those after intercept only with
the proof (those of kernel models: see kernel_arrays.py):

    coef (m, d)   intercept (m,)   alpha (m, n)   margins (m, n)   row_classes (m, n), int8
    w_of_alpha (number of problems where it is not w, d)   trace (records of all problems, 5)

The header's ``__metadata__`` has four strings: ``format``, ``version`` (1: linear, 2: with a kernel, 3:
linear in d features that are formed from the columns of the data), ``model``, which is the JSON of all the
rest, and ``checksum``, BLAKE2b over these and the arrays. The checksum tells an accident or an edited
number; who signs a lie with a checksum of his own is found out by ``maxmargin certify``.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.models import kernel_arrays
from maxmargin.files.models.arrays import TYPES, Array, read_traces, taken, trace_array
from maxmargin.files.models.description import described, read_description
from maxmargin.files.models.kernel_model import SavedKernelModel
from maxmargin.files.models.saved import SavedModel
from maxmargin.files.models.stored import ModelError, StoredModel
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.hard_margin import HardMarginCertificate

FORMAT = "maxmargin model"
LINEAR, WITH_KERNEL, WITH_FEATURES = 1, 2, 3
VERSION = WITH_FEATURES
"""The newest that can be read; a file has the oldest that can hold it.

Features have a version of their own, and only they: an older maxmargin goes on reading plain linear models,
and of these says that they are newer, instead of taking their weights for those of columns or the file
for a damaged one."""
_LONGEST_HEADER = 100_000_000  # what readers of safetensors accept


def writer(model: StoredModel) -> Callable[[BinaryIO], None]:
    """What writes the model into an open file."""
    if isinstance(model, SavedKernelModel):
        version, arrays = WITH_KERNEL, kernel_arrays.arrays_of(model)
    else:
        assert isinstance(model, SavedModel)
        version, arrays = LINEAR if model.expansion is None else WITH_FEATURES, _arrays(model)
    texts = {"format": FORMAT, "version": str(version), "model": described(model)}
    texts["checksum"] = _checksum(texts, {name: (a.type, a.shape, a.bytes()) for name, a in arrays.items()})
    header: dict[str, Any] = {"__metadata__": texts}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.size
        header[name] = {"dtype": array.type, "shape": array.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > _LONGEST_HEADER:
        raise ModelError(
            f"The names of features and classes take {len(encoded)} bytes, and safetensors has room for "
            f"{_LONGEST_HEADER}. Fit with an array, which has no names, or with shorter names."
        )
    if version == WITH_KERNEL and (reason := kernel_arrays.unjustified(model.features, end)):
        raise ModelError(f"It could not be loaded again: {reason} Leave out columns without values.")

    def write(file: BinaryIO) -> None:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for array in arrays.values():
            for piece in array.bytes():
                file.write(piece)

    return write


def _arrays(model: SavedModel) -> dict[str, Array]:
    m, d = model.coef.shape
    arrays = {"coef": Array.of(model.coef), "intercept": Array.of(model.intercept)}
    if model.traces is not None:
        arrays["trace"] = trace_array(model.traces)
    if model.certificates is not None:
        proofs = model.certificates
        shape = (m, len(proofs[0].alpha))
        others = [proof.w_of_alpha for proof in proofs if proof.w_of_alpha is not proof.w]
        arrays["alpha"] = Array("F64", shape, [proof.alpha for proof in proofs])
        arrays["margins"] = Array("F64", shape, [proof.margins for proof in proofs])
        arrays["w_of_alpha"] = Array("F64", (len(others), d), others)
        arrays["row_classes"] = Array("I8", shape, [proof.row_classes for proof in proofs])
    return arrays


def _checksum(
    texts: Mapping[str, str], arrays: Mapping[str, tuple[str, tuple[int, ...], Iterable[memoryview]]]
) -> str:
    """Over the metadata but the checksum itself, and names, types, shapes and bytes of the arrays."""
    total = hashlib.blake2b(digest_size=32)

    def add_text(text: str) -> None:
        encoded = text.encode()
        total.update(struct.pack("<Q", len(encoded)) + encoded)

    for name in ("format", "version", "model"):
        add_text(texts[name])
    for name in sorted(arrays):
        type, shape, pieces = arrays[name]
        add_text(f"{name} {type} {list(shape)}")
        for piece in pieces:
            total.update(piece)
    return f"blake2b:{total.hexdigest()}"


def read_model(file: BinaryIO, size: int) -> StoredModel:
    """The model of an open file of so many bytes; raises ModelError with the reason."""
    texts, arrays = _read_parts(file, size)
    sums = {
        name: (type, array.shape, Array(type, array.shape, [array]).bytes())
        for name, (type, array) in arrays.items()
    }
    if _checksum(texts, sums) != texts["checksum"]:
        raise ModelError(
            "its contents do not match its checksum: the file was damaged or edited. Save the model anew."
        )
    version = int(texts["version"])
    with_kernel = version == WITH_KERNEL
    description = read_description(
        texts["model"], with_kernel=with_kernel, with_features=version == WITH_FEATURES
    )
    found = {name: array for name, (_, array) in arrays.items()}
    model: StoredModel
    if with_kernel:
        model = kernel_arrays.model_of(found, description, size)
    else:
        model = _linear_model(found, description)
    if found:
        raise ModelError(f"it holds an array {min(found)!r} that its description does not speak of.")
    for certificate, b in zip(model.certificates or (), model.intercept.tolist(), strict=False):
        if certificate.b != b:
            raise ModelError(f"the proof is about the intercept {certificate.b!r}, the model has {b!r}.")
    return model


def _linear_model(arrays: dict[str, NDArray[Any]], description: dict[str, Any]) -> SavedModel:
    coef, intercept = taken(arrays, "coef", 2), taken(arrays, "intercept", 1)
    certificates = traces = None
    if "certificates" in description:
        hard = description["problem"].get("C") == np.inf
        kind = HardMarginCertificate if hard else Certificate
        proofs, claims = description.pop("certificates"), description["claims"]
        certificates = _certificates(kind, coef, arrays, proofs, claims)
    if "traces" in description:
        traces = read_traces(arrays, description.pop("traces"))
    return SavedModel(
        coef=coef, intercept=intercept, certificates=certificates, traces=traces, **description
    )


def _read_parts(file: BinaryIO, size: int) -> tuple[dict[str, str], dict[str, tuple[str, NDArray[Any]]]]:
    """The metadata and the arrays, as large as the file's size says they are."""
    from safetensors import SafetensorError, safe_open

    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        raise ModelError(
            f"its header should have {length} bytes, but the file ends after {size}: it was cut off, or "
            "is not a model file."
        )
    if length > _LONGEST_HEADER:
        raise ModelError(
            f"its header has {length} bytes, more than the {_LONGEST_HEADER} that are allowed."
        )
    arrays: dict[str, tuple[str, NDArray[Any]]] = {}
    try:
        with safe_open(os.fsdecode(file.name), framework="np") as parts:
            texts = _checked_texts(parts.metadata() or {})
            for name in parts.keys():  # noqa: SIM118 (not a dictionary)
                part = parts.get_slice(name)
                if part.get_dtype() not in TYPES:
                    types = ", ".join(TYPES)
                    raise ModelError(
                        f"its array {name!r} has the type {part.get_dtype()}, not one of {types}."
                    )
                arrays[name] = part.get_dtype(), parts.get_tensor(name)
    except SafetensorError as error:
        raise ModelError(f"it was cut off or damaged: {error}.") from error
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"it was cut off or damaged: {error}.") from error
    return texts, arrays


def _checked_texts(texts: Mapping[str, str]) -> dict[str, str]:
    if texts.get("format") != FORMAT:
        raise ModelError("it is a safetensors file, but not one that maxmargin wrote.")
    version = texts.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise ModelError(f"its format version {version[:20]!r} is not a number.")
    if int(version) > VERSION:
        raise ModelError(
            f"it has format version {int(version)}, and this maxmargin reads up to version {VERSION}. "
            "Upgrade with: pip install --upgrade maxmargin."
        )
    if int(version) < 1:
        raise ModelError(f"its format version {version!r} does not exist.")
    if "model" not in texts or "checksum" not in texts:
        raise ModelError("its header lacks the description of the model or the checksum.")
    return dict(texts)


def _certificates(
    kind: type[Certificate],
    coef: NDArray[Any],
    arrays: dict[str, NDArray[Any]],
    proofs: list[Any],
    claims: list[Any],
) -> list[Certificate]:
    alpha, margins = taken(arrays, "alpha", 2), taken(arrays, "margins", 2)
    row_classes, others = taken(arrays, "row_classes", 2, "I8"), taken(arrays, "w_of_alpha", 2)
    m = len(coef)
    if {len(alpha), len(margins), len(row_classes), len(proofs), len(claims)} != {m}:
        raise ModelError(f"coef has {m} rows, but its proof speaks of another number of problems.")
    remaining = iter(others)
    if sum(not proof["w_is_w_of_alpha"] for proof in proofs) != len(others):
        raise ModelError("the number of rows of w_of_alpha is not that of the problems that have one.")
    certificates = []
    for k, (proof, claim) in enumerate(zip(proofs, claims, strict=True)):
        w = coef[k]
        w_of_alpha = w if proof["w_is_w_of_alpha"] else next(remaining)
        certificate = kind(
            None,
            w,
            proof["b"],
            claim.primal,
            alpha[k],
            claim.dual,
            claim.alpha_from,
            margins[k],
            w_of_alpha,
        )
        # What follows from the data, which are not here; see Certificate.without_problem.
        known = claim.kkt_violation, row_classes[k], proof["b_interval"], proof["proven"]
        certificates.append(certificate.with_known(*known))
    return certificates
