# SPDX-License-Identifier: BSD-3-Clause
"""Packed data: headers, arrays and the index are edited, mostly under checksums that are made anew."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.mutations import mutated
from fuzz.oracles import attempt, joined, reason, require, require_rereadable, require_same, require_sound
from fuzz.targets import Input, Target, Verdict
from maxmargin.files.data import packed as packed_files
from maxmargin.files.data import reading as data_files
from maxmargin.files.data.compressed import bound
from maxmargin.files.data.packed import END, MAGIC, TRAILER, TYPES, aligned, header_checksum
from maxmargin.files.data.reading import DataError

WAYS: list[dict[str, Any]] = [
    {},
    {"skip_bad_lines": True},
    {"labelled": False},
    {"dtype": np.float32},
    {"columns": 2},
    {"columns": 2, "ignore_extra": True},
    {"columns": 50, "labelled": False, "skip_bad_lines": True},
]
_COUNTS = (0, 1, 2, 3, 4, 7, 255, 2**20, 2**31, 2**62, 2**63, 10**30, -1, 1.5, None, "2", [], True)
_FLOATS = np.array([0.0, -0.0, 1.0, 1e-320, 1e300, 3.5e38, np.nan, np.inf, -np.inf, 0.1])
_TEXTS = ("", "a", "\0", "a\0", "\ud800", "\x1b[31m", "x" * 300, 3, None, [])
_WORDS = [MAGIC, END, b'"shape"', b'"F64"', b'"data_offsets"', b"null", b'"labels"']
_MIB = 1 << 20


class _PackedFiles(Target):
    name = "packed"

    def allowance(self, given: Input) -> int:
        # A sparse file may have as many columns as the bound says, and rows are held twice.
        return 64 * _MIB + 4 * bound(len(given.content))

    def mutate(self, random: Random, pool: list[Input]) -> Input:
        given, other = random.choice(pool), random.choice(pool)
        parts = _Parts.of(given.content)
        if parts is None or random.random() < 0.25:
            return Input(mutated(given.content, random, _WORDS, other.content), ".mmd")
        for _ in range(random.choice((1, 1, 2, 3))):
            parts.edit(random, _Parts.of(other.content))
        return Input(parts.content(honest=random.random() < 0.9), ".mmd")

    def check(self, path: Path, given: Input, random: Random, *, thorough: bool) -> Verdict:
        name = str(path)
        ways = WAYS if thorough else [*WAYS[:2], random.choice(WAYS[2:])]
        outcomes = []
        for way in ways:
            whole = attempt(lambda way=way: data_files.read(path, **way), DataError, name)
            with _small_pieces(random):
                pieces = attempt(lambda way=way: list(data_files.stream(path, **way)), DataError, name)
            require(whole.refused == pieces.refused, f"{way}: {whole.error} / as a stream {pieces.error}")
            if not whole.refused:
                dtype, labelled = way.get("dtype", np.float64), way.get("labelled", True)
                require_sound(whole.value, dtype=dtype, columns=way.get("columns"), labelled=labelled)
                stream = joined(pieces.value, whole.value.X.shape[1])
                require_same(whole.value, stream, f"as a stream with {way}")
                weight = whole.value.weight
                require(weight is None or (np.isfinite(weight) & (weight >= 0)).all(), "a weight is wrong")
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
def _small_pieces(random: Random) -> Iterator[None]:
    usual = packed_files._VALUES_AT_A_TIME
    packed_files._VALUES_AT_A_TIME = random.choice((1, 16, usual))
    try:
        yield
    finally:
        packed_files._VALUES_AT_A_TIME = usual


class _Parts:
    """The parts of a packed file: head, blocks, index."""

    def __init__(
        self, head: bytes, blocks: list[tuple[dict[str, Any], bytes]], index: dict[str, Any]
    ) -> None:
        self.head, self.blocks, self.index = head, blocks, index

    @classmethod
    def of(cls, content: bytes) -> _Parts | None:
        try:
            (length,) = struct.unpack("<Q", content[16:24])
            place, size, _, _ = TRAILER.unpack(content[-TRAILER.size :])
            index, blocks = json.loads(content[place : place + size]), []
            for offset, _ in index["blocks"]:
                (long,) = struct.unpack("<Q", content[offset : offset + 8])
                begin = offset + 8 + long
                header = json.loads(content[offset + 8 : begin])
                ends = [entry["data_offsets"][1] for name, entry in header.items() if name[0] != "_"]
                blocks.append((header, content[begin : begin + max(ends)]))
            return cls(content[24 : 24 + length], blocks, index)
        except Exception:  # whatever it is now
            return None

    def edit(self, random: Random, other: _Parts | None) -> None:
        if not self.blocks:
            return
        kind, place = random.random(), random.randrange(len(self.blocks))
        header, data = self.blocks[place]
        header = json.loads(json.dumps(header))
        names = [name for name in header if name[0] != "_"]
        name = random.choice(names) if names else ""
        if kind < 0.3 and name:
            data = _other_values(header[name], data, random)
        elif kind < 0.45 and name:
            self._edit_entry(header[name], random)
        elif kind < 0.55:
            facts = header["__metadata__"]
            fact = random.choice(list(facts))
            facts[fact] = random.choice((json.dumps(random.choice(_COUNTS)), "{", "{}", "[]"))
        elif kind < 0.65:
            texts = {random.choice(("labels", "queries", "values")): [random.choice(_TEXTS)] * 3}
            header["__metadata__"]["texts"] = json.dumps(texts)
        elif kind < 0.7 and name:
            del header[name]
        elif kind < 0.9:
            key = random.choice([*self.index, "more"])
            if key == "blocks" and random.random() < 0.5:
                self.index["blocks"] = random.choice((None, [], [[0, 1]], [[1]], {"0": 1}, [[64, 10**9]]))
            elif key != "blocks":
                self.index[key] = random.choice((*_COUNTS, ["a", "b", "c"], "blake2b:00"))
        elif other is not None and other.blocks:
            self.blocks.insert(place, random.choice(other.blocks))
            rows = self.index.get("rows")
            count = header_rows(self.blocks[place][0])
            if type(rows) is int and count is not None and random.random() < 0.8:
                self.index["rows"] = rows + count
            return
        self.blocks[place] = header, data

    def _edit_entry(self, entry: dict[str, Any], random: Random) -> None:
        kind = random.random()
        if kind < 0.4:
            entry["dtype"] = random.choice([*TYPES, "F16", "U8", "X", None])
        elif kind < 0.8:
            shape = list(entry["shape"]) or [0]
            shape[random.randrange(len(shape))] = random.choice(_COUNTS)
            entry["shape"] = shape
        else:
            entry["data_offsets"] = [random.choice(_COUNTS), random.choice(_COUNTS)]

    def content(self, *, honest: bool) -> bytes:
        out = bytearray(MAGIC + struct.pack("<Q", len(self.head)) + self.head)
        places = []
        for header, data in self.blocks:
            out += bytes(aligned(len(out)) - len(out))
            places.append([len(out), header_rows(header)])
            header = json.loads(json.dumps(header))
            if honest:
                _sign(header, data)
            text = json.dumps(header).encode()
            out += struct.pack("<Q", len(text)) + text + data
        out += bytes(aligned(len(out)) - len(out))
        index = dict(self.index)
        if isinstance(index.get("blocks"), list) and all(len(str(b)) > 3 for b in index["blocks"]):
            index["blocks"] = places
        text = json.dumps(index).encode()
        return bytes(out) + text + TRAILER.pack(len(out), len(text), zlib.crc32(text), END)


def header_rows(header: dict[str, Any]) -> int | None:
    """The rows that a block says it has."""
    try:
        return int(json.loads(header["__metadata__"]["rows"]))
    except Exception:  # edited
        return None


def _sign(header: dict[str, Any], data: bytes) -> None:
    """Checksums that are right for what is there."""
    try:
        facts = header["__metadata__"]
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        sums = {name: zlib.crc32(data[slice(*entry["data_offsets"])]) for name, entry in entries.items()}
        facts["checksums"] = json.dumps(sums)
        facts["checksum"] = str(header_checksum(entries, facts))
    except Exception:  # too far gone
        return


def _other_values(entry: dict[str, Any], data: bytes, random: Random) -> bytes:
    try:
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).copy()
        place = random.randrange(len(values))
        with np.errstate(all="ignore"):
            if values.dtype.kind == "f":
                values[place] = _FLOATS.astype(values.dtype)[random.randrange(len(_FLOATS))]
            else:
                values.view(f"u{values.itemsize}")[place] = random.choice(
                    (0, 1, 2, 3, 255, random.randrange(256), 2 ** (8 * values.itemsize) - 1)
                ) % 2 ** (8 * values.itemsize)
        return data[:begin] + values.tobytes() + data[end:]
    except Exception:  # edited before
        return mutated(data, random, [])


TARGET = _PackedFiles()
