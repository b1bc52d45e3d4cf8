# SPDX-License-Identifier: BSD-3-Clause
"""LIBSVM text, plain and compressed, against a second reader of it."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

from fuzz.mutations import mutated
from fuzz.oracles import (
    Outcome,
    attempt,
    joined,
    reason,
    require,
    require_rereadable,
    require_same,
    require_sound,
)
from fuzz.reference import Rows, rows_of, text_of
from fuzz.targets import Input, Target, Verdict
from maxmargin.files.data import libsvm as libsvm_files
from maxmargin.files.data import reading as data_files
from maxmargin.files.data.compressed import bound
from maxmargin.files.data.reading import DataError, DataSet, Options

WORDS = [b"qid:1", b"qid:7", b"qid:9223372036854775808", b"qid:"]
WORDS += [b"1:1", b"2:1", b"0:1", b"-1:1", b"1:", b":1", b"3:nan", b"1,2", b"+1:1"]
WAYS = [
    {"zero_based": zero, "columns": columns, "skip_bad_lines": skip, "labelled": labelled, "dtype": dtype}
    | ({"ignore_extra": True} if extra else {})
    for zero, (columns, extra), skip, labelled, dtype in product(
        (False, True),
        ((None, False), (3, False), (3, True), (2**33, False), (2**63 - 1, True)),
        (False, True),
        (True, False),
        (np.float64, np.float32),
    )
]
_ALWAYS = [WAYS[0], {**WAYS[0], "skip_bad_lines": True}]
_FEW = 2
_BLOCKS = (1, 2, 7, 33, 64, 1000, 1 << 18)
_LENGTHS = (8, 30, 200)
_MIB = 1 << 20


class _Text(Target):
    name = "libsvm"

    def allowance(self, given: Input) -> int:
        # Blocks and threads have a size of their own; compressed text may become as long as ``bound`` says.
        text = len(given.content) if _plain(given.content) else bound(len(given.content))
        return 48 * _MIB + 12 * text

    def mutate(self, random: Random, pool: list[Input]) -> Input:
        given, other = random.choice(pool), random.choice(pool)
        content = given.content
        packed = not _plain(content)
        if packed and random.random() < 0.5:
            content = text_of(content) or content
        content = mutated(content, random, WORDS, other.content)
        if random.random() < (0.5 if packed else 0.05):
            content = _packed(content, random)
            if random.random() < 0.5:
                content = mutated(content, random, [])
        return Input(content)

    def check(self, path: Path, given: Input, random: Random, *, thorough: bool) -> Verdict:
        text = text_of(given.content)
        outcomes = []
        for way in [*_ALWAYS, *(WAYS if thorough else random.sample(WAYS, _FEW))]:
            short = len(outcomes) >= len(_ALWAYS) and random.random() < 0.1
            outcomes.append(_read(path, given.content, text, way, random, short))
        first, tolerant = outcomes[:2]
        if not first.refused and not tolerant.refused:
            require_same(first.value, tolerant.value, "skip_bad_lines changed a good file")
            require_rereadable(first.value, path.with_name("again.svm"), data_files.read)
        name = str(path)
        shape = "" if tolerant.refused else str(tolerant.value.X.nnz.bit_length())
        signature = (reason(first.error, name), reason(tolerant.error, name), shape)
        return Verdict(signature[0], signature)


def _plain(content: bytes) -> bool:
    packed = content[:2] == b"\x1f\x8b" or content[:3] == b"BZh"
    return not (packed or content[1:4] in (b"\xb5\x2f\xfd", b"\x2a\x4d\x18"))


def _packed(text: bytes, random: Random) -> bytes:
    kind = random.randrange(3)
    if kind == 0:
        return gzip.compress(text, 1, mtime=0)
    if kind == 1:
        return bz2.compress(text, 1)
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=random.random() < 0.5).compress(text)


def _read(
    path: Path, content: bytes, text: bytes | None, way: dict[str, Any], random: Random, short: bool
) -> Outcome:
    """Whole, in blocks and as a stream, with one thread and two: all the same, and as the reference says.

    ``short`` sets a small limit to the length of a line.
    """
    name = str(path)
    options = Options.of(**way, threads=random.choice((1, 1, 1, 2)))
    block = random.choice(_BLOCKS)
    block = max(block, 1 << 12 if text is None else len(text) // 20)  # blocks cost more than their bytes
    longest, whole_block = libsvm_files.LONGEST_LINE, None
    if short:
        longest = whole_block = random.choice(_LENGTHS)
        block = min(block, longest)  # as it always is with the usual ones
    with _longest_line(longest):
        if whole_block is None:
            whole = attempt(lambda: data_files.read(path, format="libsvm", **way), DataError, name)
        else:
            whole = attempt(
                lambda: libsvm_files.read_text(name, options, block=whole_block), DataError, name
            )
        pieces = attempt(lambda: libsvm_files.read_text(name, options, block=block), DataError, name)
        chunks = attempt(
            lambda: list(libsvm_files.stream_text(name, options, block=block)), DataError, name
        )
    what = f"with {way}, blocks of {block}, {options.threads} threads and lines up to {longest}"
    # Blocks decide whether a bad line or a damaged archive is met first.
    alike = _plain(content)
    _require_equal(whole, pieces, f"in blocks {what}", messages=alike)
    if whole.refused:
        # A stream does not know of the whole text when it meets an index that is too large for it.
        if "is above" not in str(whole.error):
            _require_equal(whole, chunks, f"as a stream {what}", messages=alike)
    else:
        require_sound(whole.value, dtype=way["dtype"], columns=way["columns"], labelled=way["labelled"])
        require(not chunks.refused, f"only the stream was refused {what}: {chunks.error}")
        stream = joined(chunks.value, whole.value.X.shape[1])
        require_same(whole.value, stream, f"as a stream {what}")
    if text is not None:
        _require_as_reference(whole, content, text, way, longest, what)
    return whole


@contextmanager
def _longest_line(longest: int) -> Iterator[None]:
    """Lines of 64 MiB are too long to fuzz with."""
    usual = libsvm_files.LONGEST_LINE
    libsvm_files.LONGEST_LINE = longest
    try:
        yield
    finally:
        libsvm_files.LONGEST_LINE = usual


def _require_equal(one: Outcome, other: Outcome, what: str, *, messages: bool) -> None:
    require(one.refused == other.refused, f"only one was refused {what}: {one.error or other.error}")
    if one.refused:
        same = not messages or str(one.error) == str(other.error)
        require(same, f"{what}: {one.error} / {other.error}")
    else:
        require_same(one.value, other.value, what)


def _require_as_reference(
    outcome: Outcome, content: bytes, text: bytes, way: dict[str, Any], longest: int, what: str
) -> None:
    size = len(content) if _plain(content) else bound(len(content))
    limit = way["columns"] or max(_MIB, size)
    rows = rows_of(
        text,
        limit=limit,
        longest=longest,
        zero_based=way["zero_based"],
        drop=way.get("ignore_extra", False),
        labelled=way["labelled"],
        dtype=way["dtype"],
    )
    if rows.first_bad is not None and not way["skip_bad_lines"]:
        require(outcome.refused, f"line {rows.first_bad} is bad and was taken {what}")
        line = getattr(outcome.error, "line", None)
        require(line == rows.first_bad, f"line {rows.first_bad} is bad, not {line}, {what}")
    elif not rows.rows:
        require("not a single row" in str(outcome.error), f"there are no rows {what}: {outcome.error}")
    elif way["columns"] is None and rows.columns > max(_MIB, len(text)):
        require(outcome.refused, f"an index that the text does not justify was taken {what}")
    else:
        require(not outcome.refused, f"the text is good but was refused {what}: {outcome.error}")
        require_same(outcome.value, _data_set(rows, way), f"against the reference {what}")


def _data_set(rows: Rows, way: dict[str, Any]) -> DataSet:
    offsets = np.cumsum([0, *map(len, rows.rows)])
    indices = np.array([index for row in rows.rows for index, _ in row], np.int64)
    values = np.array([value for row in rows.rows for _, value in row], way["dtype"])
    columns = way["columns"] or rows.columns
    X = sparse.csr_array((values, indices, offsets), shape=(len(rows.rows), columns))
    queries = np.array(rows.queries, np.int64)
    found = None if (queries < 0).all() else queries
    return DataSet(X, np.array(rows.labels), None, rows.skipped, rows.dropped, query=found)


TARGET = _Text()
