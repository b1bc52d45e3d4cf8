# SPDX-License-Identifier: BSD-3-Clause
"""Reading LIBSVM text: seconds and memory, ours against scikit-learn's, and both against the floor.

A process of its own measures memory: python -m benchmarks.reading FILE ours|scikit_learn THREADS
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import datasets, machine
from benchmarks.memory import reset_peak, status
from benchmarks.new_process import in_new_process
from benchmarks.report import table

DATA = ("a9a", "imdb_tfidf", "mnist", "covtype_binary_scale")
OURS, OURS_ALONE, PEER = CONTESTANTS = ("maxmargin", "maxmargin, one thread", "scikit-learn")
_BLOCK = 1 << 22
_WARM_UP = "1 1:0.5 2:1\n" * 100_000


@dataclass
class Reading:
    """One file; best of all rounds."""

    data: str
    text: int
    """Bytes."""
    csr: int
    values: int
    wall: dict[str, float] = field(default_factory=dict[str, float])
    processor: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of all threads together, which others on the machine disturb less."""
    floor: float = np.inf
    memory: dict[str, float] = field(default_factory=dict[str, float])
    """Peak of the process above what it had before, over the bytes of the CSR."""

    def note(self, name: str, wall: float, processor: float) -> None:
        self.wall[name] = min(wall, self.wall.get(name, np.inf))
        self.processor[name] = min(processor, self.processor.get(name, np.inf))

    def rate(self, name: str) -> float:
        """MB of text per second."""
        return self.text / self.wall[name] / 1e6


def measure(names: list[str], repeat: int, tell: Callable[[str], None]) -> list[Reading]:
    """Contestants take turns; every result is compared with scikit-learn's, number by number."""
    readings = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            tell(f"{name}: writing the text")
            path = Path(folder) / f"{name}.svm"
            _write(datasets.load(name), path)
            readings.append(_measure_one(name, path, repeat, tell))
            path.unlink()
    return readings


def _write(data: datasets.DataSet, path: Path) -> None:
    from sklearn.datasets import dump_svmlight_file

    X = sparse.csr_matrix(data.X, dtype=np.float64)
    dump_svmlight_file(X, data.y, str(path), zero_based=False)


def _readers(path: str) -> dict[str, Callable[[], Any]]:
    from sklearn.datasets import load_svmlight_file

    from maxmargin.files import read_libsvm

    return {
        OURS: lambda: read_libsvm(path),
        OURS_ALONE: lambda: read_libsvm(path, threads=1),
        PEER: lambda: load_svmlight_file(path),
    }


def _measure_one(name: str, path: Path, repeat: int, tell: Callable[[str], None]) -> Reading:
    readers = _readers(str(path))
    expected = readers[PEER]()
    X, _ = readers[OURS]()
    csr = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    reading = Reading(name, path.stat().st_size, csr, X.nnz)
    del X
    for number in range(repeat):
        tell(f"{name}: round {number + 1}")
        reading.floor = min(reading.floor, _floor(path, csr))
        for contestant, read in readers.items():
            wall, processor = time.perf_counter(), time.process_time()
            found = read()
            reading.note(contestant, time.perf_counter() - wall, time.process_time() - processor)
            _require_equal(found, expected)
            del found
    for contestant, arguments in (
        (OURS, ["ours", str(machine.cores())]),
        (OURS_ALONE, ["ours", "1"]),
        (PEER, ["scikit_learn", "1"]),
    ):
        tell(f"{name}: memory of {contestant}")
        reading.memory[contestant] = _memory(path, arguments)
    return reading


def _require_equal(found: Any, expected: Any) -> None:
    (X, y), (their_X, their_y) = found, expected
    pairs = ((X.data, their_X.data), (X.indices, their_X.indices), (X.indptr, their_X.indptr), (y, their_y))
    if not all(np.array_equal(ours, theirs) for ours, theirs in pairs):
        raise AssertionError("the two readers disagree")


def _floor(path: Path, csr: int) -> float:
    """Seconds to take the text from the system block by block, and to write as much as the CSR has."""
    begun = time.perf_counter()
    block = bytearray(_BLOCK)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(block):
            pass
    np.empty(csr, np.uint8).fill(1)
    return time.perf_counter() - begun


def _memory(path: Path, arguments: list[str]) -> float:
    return float(in_new_process("reading", str(path), *arguments))


def _main(path: str, who: str, threads: str) -> None:
    from sklearn.datasets import load_svmlight_file

    from maxmargin.files import read_libsvm

    def read(name: str) -> Any:
        return read_libsvm(name, threads=int(threads)) if who == "ours" else load_svmlight_file(name)

    with tempfile.NamedTemporaryFile("w", suffix=".svm") as small:
        small.write(_WARM_UP)
        small.flush()
        read(small.name)  # so that only the data make the difference
    before = status("VmRSS") if reset_peak() else None
    X, _ = read(path)
    csr = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    print(json.dumps(float("nan") if before is None else (status("VmHWM") - before) / csr))


_HOW = """\
# Reading LIBSVM text

## How it was measured

* {facts}.
* The data sets are written as text by scikit-learn's `dump_svmlight_file` (16 digits) and read back from
  the system's cache. maxmargin: `maxmargin.files.read_libsvm`, everything checked. scikit-learn:
  `load_svmlight_file`. After every round the two results are compared number by number.
* The contestants take turns in {repeat} rounds, and the best time of each counts. Processor seconds are
  those of all threads together.
* The floor is what no reader can avoid: taking the text from the system, block by block, and writing as
  many bytes as the CSR matrix has, once, on one thread. What remains is work on characters.
* Memory: the peak of a process of its own above what it had before reading, over the bytes of the CSR
  matrix that it got. The labels and the blocks in flight count as excess, and weigh more in small files.
  scikit-learn's CSR has 64-bit indices, and is a third larger."""


def markdown(readings: list[Reading], repeat: int) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    how = _HOW.format(facts=facts, repeat=repeat)
    times = [
        [
            reading.data,
            f"{reading.rate(OURS):.0f}",
            f"{reading.rate(OURS_ALONE):.0f}",
            f"{reading.rate(PEER):.0f}",
            f"{reading.wall[PEER] / reading.wall[OURS]:.1f}x",
            f"{reading.wall[PEER] / reading.wall[OURS_ALONE]:.1f}x",
            f"{reading.processor[PEER] / reading.processor[OURS]:.1f}x",
        ]
        for reading in readings
    ]
    floors = [
        [
            reading.data,
            f"{reading.text / 1e6:.1f} + {reading.csr / 1e6:.1f}",
            f"{1e3 * reading.floor:.1f} ms",
            f"{1e3 * reading.wall[OURS]:.1f} ms",
            f"{1e3 * reading.wall[OURS_ALONE]:.1f} ms",
            f"{1e9 * (reading.wall[OURS_ALONE] - reading.floor) / reading.values:.1f} ns",
        ]
        for reading in readings
    ]
    memory = [
        [
            reading.data,
            f"{reading.csr / 2**20:.1f}",
            *(f"{reading.memory[name]:.2f}" for name in CONTESTANTS),
        ]
        for reading in readings
    ]
    return (
        "\n\n".join(
            [
                how,
                "## MB of text per second",
                table(
                    [
                        "data",
                        OURS,
                        OURS_ALONE,
                        PEER,
                        "ratio",
                        "ratio, one thread",
                        "ratio of processor seconds",
                    ],
                    times,
                ),
                "## Above the floor",
                table(
                    [
                        "data",
                        "MB to move: text + CSR",
                        "floor",
                        OURS,
                        OURS_ALONE,
                        "what remains per value, one thread",
                    ],
                    floors,
                ),
                "## Peak memory over the size of the CSR",
                table(["data", "CSR, MiB", *CONTESTANTS], memory),
            ]
        )
        + "\n"
    )


if __name__ == "__main__":
    _main(*sys.argv[1:])
