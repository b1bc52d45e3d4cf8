# SPDX-License-Identifier: BSD-3-Clause
"""NumPy's .npz: members of the archive are edited, and their headers, with sizes that agree or do not."""

from __future__ import annotations

import ast
import io
import math
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.mutations import mutated
from fuzz.oracles import attempt, joined, reason, require, require_rereadable, require_same, require_sound
from fuzz.targets import Input, Target, Verdict
from maxmargin.files.data import npz as npz_files
from maxmargin.files.data import reading as data_files
from maxmargin.files.data.compressed import bound
from maxmargin.files.data.reading import DataError

WAYS: list[dict[str, Any]] = [
    {},
    {"skip_bad_lines": True},
    {"labelled": False},
    {"dtype": np.float32},
    {"dtype": np.float32, "skip_bad_lines": True},
    {"columns": 2},
    {"columns": 2, "ignore_extra": True},
    {"columns": 2**31, "ignore_extra": True},
    {"columns": 50, "labelled": False, "skip_bad_lines": True},
]
_FEW = 2
_NAMES = ("X", "y", "data", "indices", "indptr", "shape", "format", "Z", "../X", "X.npy", "", "x" * 300)
_TYPES = [
    "<f8",
    "<f4",
    "<f2",
    ">f8",
    ">i4",
    "<i4",
    "<i8",
    "<u8",
    "<u1",
    "|b1",
    "<U3",
    "|S2",
    "|O",
    "<c16",
    "<M8[s]",
    "|V4",
    "<f16",
    "<U0",
    "|S0",
    "|V0",
    "f",
    "i8,f8",
]
_COUNTS = (0, 1, 2, 3, 4, 7, 255, 2**20, 2**31 - 1, 2**31, 2**32, 2**62, 2**63, 2**64, 10**30, -1)
_EDGES = np.array([0, 1, -1, 2, 127, -128, 2**31 - 1, -(2**31), 2**53, 2**62, -(2**63), 2**63 - 1])
_FLOATS = np.array([0.0, -0.0, 1.0, 1e-320, 1e300, 3.5e38, np.nan, np.inf, -np.inf, 0.1])
_WORDS = [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"\x93NUMPY", b"descr", b"shape"]
_MIB = 1 << 20


class _Matrices(Target):
    name = "npz"

    def allowance(self, given: Input) -> int:
        # Members may claim up to the bound, and five of them are held at a time, two of them converted.
        size = len(given.content)
        return 48 * _MIB + (8 * bound(size) if size > 4 else size)

    def mutate(self, random: Random, pool: list[Input]) -> Input:
        given, other = random.choice(pool), random.choice(pool)
        members = _members(given.content)
        if members is None or random.random() < 0.3:
            return Input(mutated(given.content, random, _WORDS, other.content), ".npz")
        for _ in range(random.choice((1, 1, 2, 3))):
            _edit(members, _members(other.content) or [], random)
        return Input(_archive(members, random), ".npz")

    def check(self, path: Path, given: Input, random: Random, *, thorough: bool) -> Verdict:
        name = str(path)
        ways = WAYS if thorough else [*WAYS[:2], *random.sample(WAYS[2:], _FEW)]
        outcomes = []
        for way in ways:
            whole = attempt(lambda way=way: data_files.read(path, **way), DataError, name)
            with _small_chunks(random):
                chunks = attempt(lambda way=way: list(data_files.stream(path, **way)), DataError, name)
            require(whole.refused == chunks.refused, f"{way}: {whole.error} / as a stream {chunks.error}")
            if not whole.refused:
                dtype, labelled = way.get("dtype", np.float64), way.get("labelled", True)
                columns = way.get("columns")
                require_sound(whole.value, dtype=dtype, columns=columns, labelled=labelled)
                stream = joined(chunks.value, whole.value.X.shape[1])
                require_same(whole.value, stream, f"as a stream with {way}")
            outcomes.append(whole)
        first, tolerant = outcomes[:2]
        if not first.refused:
            require(not tolerant.refused, f"skip_bad_lines refused a good file: {tolerant.error}")
            require_same(first.value, tolerant.value, "skip_bad_lines changed a good file")
            if first.value.X.shape[1] < 10_000:
                require_rereadable(first.value, path.with_name("again.svm"), data_files.read)
        kind = "" if tolerant.refused else type(tolerant.value.X).__name__
        signature = (reason(first.error, name), reason(tolerant.error, name), kind)
        return Verdict(signature[0], signature)


@contextmanager
def _small_chunks(random: Random) -> Iterator[None]:
    usual = npz_files._VALUES_AT_A_TIME, npz_files._ROWS_AT_A_TIME
    npz_files._VALUES_AT_A_TIME, npz_files._ROWS_AT_A_TIME = (
        random.choice((16, 64, usual[0])),
        random.choice((5, 64, usual[1])),
    )
    try:
        yield
    finally:
        npz_files._VALUES_AT_A_TIME, npz_files._ROWS_AT_A_TIME = usual


Members = list[tuple[str, bytes]]


def _members(content: bytes) -> Members | None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > 1 << 18:
                return None
            return [(member.filename, archive.read(member)) for member in archive.infolist()]
    except Exception:  # zipfile says in many ways that something is not a zip file
        return None


def _archive(members: Members, random: Random) -> bytes:
    file = io.BytesIO()
    method = random.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
    )
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            member = zipfile.ZipInfo(name)  # of a fixed date
            member.compress_type = method
            archive.writestr(member, content)
    packed = file.getvalue()
    return mutated(packed, random, _WORDS) if random.random() < 0.15 else packed


def _edit(members: Members, others: Members, random: Random) -> None:
    if not members:
        return
    place = random.randrange(len(members))
    name, content = members[place]
    kind = random.random()
    if kind < 0.4:
        members[place] = name, _with_values(content, random)
    elif kind < 0.75:
        members[place] = name, _with_header(content, random)
    elif kind < 0.8:
        members[place] = name, mutated(content, random, _WORDS)
    elif kind < 0.85:
        members[place] = random.choice(_NAMES) + random.choice((".npy", ".npy", "")), content
    elif kind < 0.9:
        del members[place]
    elif others:
        other, content = random.choice(others)
        if all(other != known for known, _ in members) or random.random() < 0.5:
            members[:] = [member for member in members if member[0] != other]
        else:
            other = name
        members[:] = [member for member in members if member[0] != other]
        members.append((other, content))


def _parsed(content: bytes) -> tuple[dict[str, Any], bytes] | None:
    try:
        (length,) = struct.unpack("<H", content[8:10])
        header = ast.literal_eval(content[10 : 10 + length].decode("latin-1").strip())
        np.dtype(header["descr"])
        return dict(header), content[10 + length :]
    except Exception:  # not an array as NumPy writes it
        return None


def _with_values(content: bytes, random: Random) -> bytes:
    """The same array with other numbers in it."""
    parsed = _parsed(content)
    if parsed is None:
        return mutated(content, random, [])
    header, data = parsed
    dtype = np.dtype(header["descr"])
    if dtype.kind not in "iuf" or not dtype.itemsize or len(data) % dtype.itemsize or not len(data):
        return mutated(content, random, [])
    values = np.frombuffer(data, dtype).copy()
    for _ in range(random.choice((1, 1, 1, 3))):
        place = random.randrange(len(values))
        with np.errstate(all="ignore"):
            if dtype.kind == "f":
                values[place] = _FLOATS.astype(dtype)[random.randrange(len(_FLOATS))]
            elif random.random() < 0.5:
                values[place] = _EDGES.astype(dtype)[random.randrange(len(_EDGES))]
            else:
                values[place] += np.array(random.choice((-1, 1, 2, -2))).astype(dtype)
    return content[: len(content) - len(data)] + values.tobytes()


def _with_header(content: bytes, random: Random) -> bytes:
    """The same bytes with another header, and mostly with as many of them as it says."""
    parsed = _parsed(content)
    if parsed is None:
        return mutated(content, random, [])
    header, data = parsed
    kind = random.random()
    shape = header.get("shape")
    if kind < 0.35:
        header["descr"] = random.choice(_TYPES)
    elif kind < 0.5:
        header["fortran_order"] = random.choice((True, False, 1, None, "x"))
    elif kind < 0.9 and isinstance(shape, tuple):
        counts = list(shape)
        action = random.random()
        if action < 0.6 and counts:
            counts[random.randrange(len(counts))] = random.choice(_COUNTS)
        elif action < 0.8:
            counts.insert(random.randrange(len(counts) + 1), random.choice(_COUNTS))
        elif counts:
            counts.pop()
        header["shape"] = tuple(counts)
    else:
        header[random.choice(("descr", "shape", "fortran_order", "more"))] = random.choice(
            (None, (), [], {}, -1, "", (1.5,), ("2",), [("a", "<f8")], ((2, 2),), "O", 10**30)
        )
    if random.random() < 0.75:
        data = _of_size(header, data)
    text = repr(header).encode("latin-1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    if random.random() < 0.1:
        text = mutated(text, random, [])
    version = random.choice((1, 1, 1, 1, 2, 3))
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def _of_size(header: dict[str, Any], data: bytes) -> bytes:
    try:
        size = int(math.prod(header["shape"])) * np.dtype(header["descr"]).itemsize
    except Exception:  # whatever stands there now
        return data
    if not 0 <= size <= 1 << 15:
        return data
    return (data * (size // max(1, len(data)) + 1))[:size].ljust(size, b"\0")


TARGET = _Matrices()
