# SPDX-License-Identifier: BSD-3-Clause
"""CSV and Parquet: texts changed token by token, and Parquet written anew with columns of every type."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.mutations import mutated
from fuzz.oracles import attempt, joined, reason, require, require_rereadable, require_same, require_sound
from fuzz.targets import Input, Target, Verdict
from maxmargin.files.data import reading as data_files
from maxmargin.files.data import sheets
from maxmargin.files.data import tables as table_files
from maxmargin.files.data.compressed import bound
from maxmargin.files.data.reading import DataError

WORDS = [b"label", b"target", b"y", b"class", b"a", b"true", b"NULL", b"N/A", b'"', b'""', b",,", b"\t"]
WORDS += [b"2020-01-01", b"12:30:00", b"\n,,\n", b'"a\nb"', b"1 000", b"PAR1"]
WAYS: list[dict[str, Any]] = [
    {},
    {"skip_bad_lines": True},
    {"labelled": False},
    {"label": "a"},
    {"dtype": np.float32, "skip_bad_lines": True},
    {"columns": 2, "ignore_extra": True},
    {"columns": 2, "threads": 1},
]
_FEW = 2
_MIB = 1 << 20


class _Tables(Target):
    name = "tables"

    def missing(self) -> str | None:
        return None if find_spec("pyarrow") is not None else "pyarrow is not installed"

    def allowance(self, given: Input) -> int:
        # pyarrow keeps a pool of its own, and decodes columns that the bound allows.
        return 256 * _MIB + 4 * bound(len(given.content))

    def mutate(self, random: Random, pool: list[Input]) -> Input:
        given = random.choice(pool)
        other = random.choice([one for one in pool if one.suffix == given.suffix])
        if given.suffix.startswith(".parquet"):
            if random.random() < 0.5:
                return Input(_parquet(random), given.suffix)
            return Input(mutated(given.content, random, WORDS, other.content), given.suffix)
        if given.suffix.endswith(".gz"):
            try:
                content = mutated(gzip.decompress(given.content), random, WORDS)
                return Input(gzip.compress(content, 1, mtime=0), given.suffix)
            except (OSError, EOFError, ValueError, zlib.error):
                pass
        return Input(mutated(given.content, random, WORDS, other.content), given.suffix)

    def check(self, path: Path, given: Input, random: Random, *, thorough: bool) -> Verdict:
        name = str(path)
        outcomes = []
        with _small_batches(random):
            for way in WAYS if thorough else [*WAYS[:2], *random.sample(WAYS[2:], _FEW)]:
                whole = attempt(lambda way=way: data_files.read(path, **way), DataError, name)
                chunks = attempt(lambda way=way: list(data_files.stream(path, **way)), DataError, name)
                if whole.refused:
                    same = chunks.refused and str(whole.error).partition(": ")[0] in str(chunks.error)
                    require(
                        same or "would take" in str(whole.error), f"the stream was not refused with {way}"
                    )
                else:
                    require(not chunks.refused, f"only the stream was refused with {way}: {chunks.error}")
                    _check_read(whole.value, chunks.value, way)
                outcomes.append(whole)
        first, tolerant = outcomes[:2]
        if not first.refused:
            require(not tolerant.refused, f"skip_bad_lines refused a good file: {tolerant.error}")
            require_same(first.value, tolerant.value, "skip_bad_lines changed a good file")
            require_rereadable(first.value, path.with_name("again.svm"), data_files.read)
        signature = (given.suffix, reason(first.error, name), reason(tolerant.error, name))
        return Verdict(signature[1], signature)


def _check_read(data: Any, chunks: list[Any], way: dict[str, Any]) -> None:
    dtype, labelled = way.get("dtype", np.float64), way.get("labelled", True)
    require_sound(data, dtype=dtype, columns=way.get("columns"), labelled=labelled)
    require(len(data.feature_names) == data.X.shape[1], "a feature has no name")
    require_same(data, joined(chunks, data.X.shape[1]), f"as a stream with {way}")


@contextmanager
def _small_batches(random: Random) -> Iterator[None]:
    usual = sheets._BLOCK, table_files._VALUES_AT_A_TIME
    sheets._BLOCK = random.choice((64, 300, usual[0]))
    table_files._VALUES_AT_A_TIME = random.choice((40, 400, usual[1]))
    try:
        yield
    finally:
        sheets._BLOCK, table_files._VALUES_AT_A_TIME = usual


def _parquet(random: Random) -> bytes:
    """A sound file with columns of any type, or one damaged afterwards."""
    import pyarrow
    from pyarrow import parquet

    rows = random.choice((0, 1, 3, 17))
    names = ["label", "a", "b", "c", "", "y", "label", "\x1b[31m", "n" * 500]
    columns, chosen = [], []
    for place in range(random.choice((1, 2, 3, 4))):
        columns.append(_column(random, rows))
        chosen.append(names[place] if random.random() < 0.8 else random.choice(names))
    table = pyarrow.Table.from_arrays(columns, chosen)
    file = io.BytesIO()
    compression = random.choice(("none", "snappy", "gzip", "zstd", "brotli", "lz4"))
    parquet.write_table(table, file, compression=compression, row_group_size=random.choice((1, 2, 1000)))
    content = file.getvalue()
    return mutated(content, random, WORDS) if random.random() < 0.4 else content


def _column(random: Random, rows: int) -> Any:
    import datetime
    import decimal

    import pyarrow

    whole = [0, 1, -1, 2, 2**31, 2**53 + 1, 2**63 - 1]
    kinds: list[tuple[Any, list[Any]]] = [
        (pyarrow.float64(), [0.0, -0.0, 1.5, 1e300, 3.5e38, 5e-324]),
        (pyarrow.float64(), [0.0, float("nan"), float("inf")]),
        (pyarrow.float32(), [0.0, 1.5, 3e38]),
        (pyarrow.float16(), [np.float16(0), np.float16(1.5)]),
        (pyarrow.int64(), whole),
        (pyarrow.uint64(), [0, 2**64 - 1]),
        (pyarrow.int8(), [0, 1, -128]),
        (pyarrow.bool_(), [True, False]),
        (pyarrow.string(), ["a", "b", "", "1", "\x1b[31m", "x" * 300, "nul\0"]),
        (pyarrow.large_string(), ["a", "b"]),
        (pyarrow.binary(), [b"a", b"\xff"]),
        (pyarrow.null(), [None]),
        (pyarrow.date32(), [datetime.date(2020, 1, 1)]),
        (pyarrow.timestamp("ns"), [0, 2**62]),
        (pyarrow.decimal128(30, 5), [decimal.Decimal("1.5"), decimal.Decimal("1e20")]),
        (pyarrow.decimal256(76, 0), [decimal.Decimal(10) ** 75]),
        (pyarrow.list_(pyarrow.float64()), [[1.0], []]),
        (pyarrow.struct([("a", pyarrow.int8())]), [{"a": 1}]),
    ]
    kind, values = random.choice(kinds)
    usual = random.random() < 0.7
    chosen = [random.choice(values if usual else [*values, None]) for _ in range(rows)]
    array = pyarrow.array(chosen, kind)
    if kind in (pyarrow.string(), pyarrow.int64()) and random.random() < 0.3:
        return array.dictionary_encode()
    return array


TARGET = _Tables()
