# SPDX-License-Identifier: BSD-3-Clause
"""The state of a fit in passes on the disk: whole or not at all, after every pass.

The file has 16 bytes of magic, 8 of a length, so many bytes of JSON, and the arrays that it speaks of. JSON
has the checksum of each of them, and its own stands before it. There is no pickle: a state is made of
numbers, texts, lists, tuples, dictionaries and arrays. Whoever can write the file can lie in it, as in the
memory of the process; what a lie would claim, ``maxmargin certify`` finds out.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import struct
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.data.reading import DataError
from maxmargin.files.whole import write_whole

_MAGIC = b"maxmargin run 1\n"
_HEADER = struct.Struct("<QI")
_DAMAGED = "It was cut off or damaged: delete it and begin anew."


class Checkpoint:
    """Where the state of a fit is kept, and what it is a fit of."""

    def __init__(self, path: str | os.PathLike[str], identity: str | None) -> None:
        self.path, self.identity = os.fspath(path), identity
        """``identity`` is other for other data; None where nobody knows."""

    def save(self, problem: str, state: dict[str, Any]) -> None:
        """Replace what is on the disk by the state of a fit of this problem."""
        arrays: list[NDArray[Any]] = []
        tree = _encoded({"problem": problem, "data": self.identity, "state": state}, arrays)
        facts = [[a.dtype.str, list(a.shape), zlib.crc32(_bytes(a))] for a in arrays]
        text = json.dumps({"tree": tree, "arrays": facts}).encode()

        def write(file: BinaryIO) -> None:
            file.write(_MAGIC + _HEADER.pack(len(text), zlib.crc32(text)) + text)
            for array in arrays:
                file.write(_bytes(array))

        write_whole(self.path, write)

    def load(self, problem: str) -> dict[str, Any] | None:
        """The state to go on from; None where there is none. Raises DataError for that of another fit."""
        try:
            with open(self.path, "rb") as file:
                found = _read(file, os.fstat(file.fileno()).st_size)
        except FileNotFoundError:
            return None
        except DataError as error:
            error.speak_of(self.path)
            raise
        for name, own, what in (("data", self.identity, "data"), ("problem", problem, "parameters")):
            if found.get(name) != own:
                raise DataError(
                    f"this state is that of a fit with other {what}",
                    "Give the same data and parameters, another name, or delete it to begin anew.",
                    path=self.path,
                )
        state = found.get("state")
        return state if isinstance(state, dict) else None


def _read(file: BinaryIO, size: int) -> dict[str, Any]:
    start = file.read(len(_MAGIC) + _HEADER.size)
    if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + _HEADER.size:
        raise DataError("this is not the state of a fit", "Choose another name for it.")
    length, checksum = _HEADER.unpack(start[len(_MAGIC) :])
    if length > size:
        raise DataError("the file ends too early", _DAMAGED)
    text = file.read(length)
    if zlib.crc32(text) != checksum:
        raise DataError("the state does not match its checksum", _DAMAGED)
    try:
        described = json.loads(text)
        arrays = [_array(file, size, *facts) for facts in described["arrays"]]
        found = _decoded(described["tree"], arrays)
    except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the state cannot be read: {error}", _DAMAGED) from None
    if not isinstance(found, dict):
        raise DataError("the state cannot be read", _DAMAGED)
    return found


def _array(file: BinaryIO, size: int, kind: str, shape: list[int], checksum: int) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if dtype.kind not in "biufU" or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"it has an array of {kind}")
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > size:
        raise DataError("the file ends too early", _DAMAGED)
    content = file.read(nbytes)
    if len(content) < nbytes or zlib.crc32(content) != checksum:
        raise DataError("the state does not match its checksum", _DAMAGED)
    return np.frombuffer(bytearray(content), dtype).reshape(shape)


def _bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")


def _encoded(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """A value in JSON, its arrays in a list beside."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if sparse.issparse(value):
        rows = value.tocsr()
        parts = [_encoded(part, arrays) for part in (rows.data, rows.indices, rows.indptr)]
        return {"rows": [*parts, list(rows.shape)]}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(each, arrays) for each in value]}
    if isinstance(value, list):
        return {"list": [_encoded(each, arrays) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[_encoded(key, arrays), _encoded(one, arrays)] for key, one in value.items()]}
    if dataclasses.is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _encoded(named, arrays)
    raise TypeError(f"A state is made of numbers, texts and arrays. Got {type(value).__name__} instead.")


def _decoded(tree: Any, arrays: list[NDArray[Any]]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, held),) = tree.items()
    if kind == "float":
        return float.fromhex(held)
    if kind == "array":
        return arrays[held]
    if kind == "rows":
        data, indices, indptr = (_decoded(part, arrays) for part in held[:3])
        rows = sparse.csr_matrix((data, indices, indptr), shape=tuple(held[3]))
        rows.check_format(full_check=True)
        return rows
    if kind == "tuple":
        return tuple(_decoded(each, arrays) for each in held)
    if kind == "list":
        return [_decoded(each, arrays) for each in held]
    if kind == "dict":
        return {_decoded(key, arrays): _decoded(one, arrays) for key, one in held}
    raise ValueError(f"it has a {kind[:40]!r}")
