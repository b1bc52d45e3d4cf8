# SPDX-License-Identifier: BSD-3-Clause
"""LIBSVM text read a second time, by regular expressions and Python's float: slow, and easy to check."""

from __future__ import annotations

import bz2
import gzip
import math
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_BLANK = rb"[ \t\v\f\r]"
_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LABEL = re.compile(_NUMBER)
_QUERY = re.compile(rb"qid:(\d+)")
_PAIR = re.compile(rb"\+?(\d+):(" + _NUMBER + rb")")
_SPLIT = re.compile(_BLANK + rb"+")
LARGEST = 1 << 15


@dataclass
class Rows:
    """What the text holds."""

    labels: list[float] = field(default_factory=list[float])
    rows: list[list[tuple[int, float]]] = field(default_factory=list[list[tuple[int, float]]])
    queries: list[int] = field(default_factory=list[int])
    """The number of each row's query; -1 where it has none."""
    skipped: int = 0
    dropped: int = 0
    first_bad: int | None = None
    """Number of the first bad line."""

    @property
    def columns(self) -> int:
        return 1 + max((row[-1][0] for row in self.rows if row), default=-1)


def text_of(content: bytes) -> bytes | None:
    """Decompressed; None where that does not work, or the text is too long for this slow reader."""
    if len(content) > LARGEST:
        return None
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        elif content[:3] == b"BZh":
            content = bz2.decompress(content)
        elif content[1:4] in (b"\xb5\x2f\xfd", b"\x2a\x4d\x18") or content[:6] == b"\xfd7zXZ\0":
            return None  # zstandard's own reader takes a file that was cut off for a whole one
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return content if len(content) <= LARGEST else None


def rows_of(
    text: bytes, *, limit: int, longest: int, zero_based: bool, drop: bool, labelled: bool, dtype: Any
) -> Rows:
    """All good rows; ``limit`` is the number of columns that there may be."""
    found = Rows()
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, 1):
        too_long = len(line) > longest
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        words = [part for part in _SPLIT.split(line.partition(b"#")[0]) if part]
        if not words and not too_long:
            continue
        row = None if too_long else _row(words, limit, zero_based, drop, labelled, dtype)
        if row is None:
            found.skipped += 1
            found.first_bad = found.first_bad or number
            continue
        label, query, pairs = row
        found.labels.append(label)
        found.queries.append(query)
        found.rows.append([pair for pair in pairs if pair[0] < limit])
        found.dropped += sum(pair[0] >= limit for pair in pairs)
    return found


def _row(
    words: list[bytes], limit: int, zero_based: bool, drop: bool, labelled: bool, dtype: Any
) -> tuple[float, int, list[tuple[int, float]]] | None:
    label, query = math.nan, -1
    if _LABEL.fullmatch(words[0]):
        label = float(words[0])
        if not math.isfinite(label):
            return None
        words = words[1:]
        if words and (match := _QUERY.fullmatch(words[0])):
            words = words[1:]
            digits = match[1].lstrip(b"0") or b"0"
            if len(digits) > 19 or int(digits) >= 2**63:
                return None
            query = int(digits)
    elif labelled:
        return None
    pairs: list[tuple[int, float]] = []
    for word in words:
        match = _PAIR.fullmatch(word)
        if match is None:
            return None
        digits = match[1].lstrip(b"0") or b"0"
        if len(digits) > 19 or int(digits) >= 2**63:
            return None
        column = int(digits) - (0 if zero_based else 1)
        with np.errstate(over="ignore"):
            value = float(dtype(float(match[2])))
        if column < 0 or (pairs and column <= pairs[-1][0]) or not math.isfinite(value):
            return None
        if column >= limit and not drop:
            return None
        pairs.append((column, value))
    return label, query, pairs
