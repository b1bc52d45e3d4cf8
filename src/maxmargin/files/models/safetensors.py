# SPDX-License-Identifier: BSD-3-Clause
"""maxmargin's own model file: safetensors, with everything that is not an array as JSON in its header.

The header's ``__metadata__`` has four strings: ``format``, ``version`` (1: linear, 2: with a kernel, 3:
linear in d features that are formed from the columns of the data; 4, 5, 6: the same where these columns are
made from those of a table; 6 more where it is of regression, ranking or one class; 12 more with scalers or
feature maps before the model; 24 more with a nu), ``model``, which is the JSON of all the rest (see
description.py), and ``checksum``, BLAKE2b over these and the arrays (see arrays.py). The checksum tells an
accident or an edited number; who signs a lie with a checksum of his own is found out by ``maxmargin
certify``.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

from numpy.typing import NDArray

from maxmargin.files.models.arrays import TYPES, Array, arrays_of, model_of, unjustified
from maxmargin.files.models.description import (
    LINEAR,
    REGRESSION,
    WITH_FEATURES,
    WITH_KERNEL,
    WITH_SHARES,
    WITH_STEPS,
    WITH_TABLE,
    described,
    read_description,
)
from maxmargin.files.models.stored import ModelError, SavedKernelModel, StoredModel

FORMAT = "maxmargin model"
VERSION = WITH_FEATURES + WITH_TABLE + REGRESSION + WITH_STEPS + WITH_SHARES
"""The newest version that can be read; a file has the oldest that can hold it."""
_LONGEST_HEADER = 100_000_000
"""The most bytes of a header that readers of safetensors accept."""


def writer(model: StoredModel) -> Callable[[BinaryIO], None]:
    """What writes the model into an open file."""
    version = LINEAR if getattr(model, "expansion", None) is None else WITH_FEATURES
    if isinstance(model, SavedKernelModel):
        version = WITH_KERNEL
    if model.encoding is not None:
        version += WITH_TABLE
    if not model.has_classes:
        version += REGRESSION
    if model.preparation is not None:
        version += WITH_STEPS
    if model.has_nu:
        version += WITH_SHARES
    arrays = arrays_of(model)
    texts = {"format": FORMAT, "version": str(version), "model": described(model, version)}
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
    if isinstance(model, SavedKernelModel) and (reason := unjustified(model.own_features, end)):
        raise ModelError(f"It could not be loaded again: {reason} Leave out columns without values.")

    def write(file: BinaryIO) -> None:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        for array in arrays.values():
            for piece in array.bytes():
                file.write(piece)

    return write


def _checksum(
    texts: Mapping[str, str], arrays: Mapping[str, tuple[str, tuple[int, ...], Iterable[memoryview]]]
) -> str:
    """The hash of the other metadata, and of the names, types, shapes and bytes of the arrays."""
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
    sums = {name: (type, a.shape, Array(type, a.shape, [a]).bytes()) for name, (type, a) in arrays.items()}
    if _checksum(texts, sums) != texts["checksum"]:
        raise ModelError(
            "its contents do not match its checksum: the file was damaged or edited. Save the model anew."
        )
    description = read_description(texts["model"], int(texts["version"]))
    return model_of({name: array for name, (_, array) in arrays.items()}, description, size)


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
                type = parts.get_slice(name).get_dtype()
                if type not in TYPES:
                    raise ModelError(
                        f"its array {name!r} has the type {type}, not one of {', '.join(TYPES)}."
                    )
                arrays[name] = type, parts.get_tensor(name)
    except ModelError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelError(f"it was cut off or damaged: {error}.") from error
    return texts, arrays


def _checked_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a file that this version of maxmargin can read."""
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
