# SPDX-License-Identifier: BSD-3-Clause
"""``-`` for a data file: standard input, which is kept in a file of its own while the command runs.

A table is read twice, and its format is told by its first bytes: what can be read only once would not do.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path, PosixPath, WindowsPath

NAME = "standard input"
_LIBSVM = re.compile(rb"[+-]?[\d.]\S*([ \t]+\d+:\S+)*[ \t]*(#.*)?\r?")
"""A line of LIBSVM text."""
_folders: list[str] = []


class StandardInput(PosixPath if os.name == "posix" else WindowsPath):  # type: ignore[misc]
    """The file in which standard input lies, called by the name under which it was given."""

    def __str__(self) -> str:
        return NAME

    def __fspath__(self) -> str:
        return str(super().__str__())

    @property
    def name(self) -> str:
        """For progress bars."""
        return NAME


def kept(path: Path, format: str | None) -> Path:
    """The path of a data file; standard input is written to one, whose suffix says what its bytes are."""
    if str(path) != "-":
        return path
    folder = tempfile.mkdtemp(prefix="maxmargin-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _folders.append(folder)
    plain = os.path.join(folder, "data")
    with open(plain, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    named = plain + ("" if format is not None else _suffix(plain))
    os.rename(plain, named)
    return StandardInput(named)


def in_its_name(message: str) -> str:
    """A message in which the file of standard input is called so."""
    for folder in _folders:
        message = re.sub(re.escape(folder) + r"[/\\\\]data[.\w]*", NAME, message)
    return message


def _suffix(path: str) -> str:
    """The suffix of the format that the first bytes are of; compressed text is looked into."""
    from maxmargin.files.data.compressed import TextSource

    with open(path, "rb") as file:
        magic = file.read(4)
    known = {b"PK\x03\x04": ".npz", b"PAR1": ".parquet", b"maxm": ".mmd"}
    if magic in known:
        return known[magic]
    with TextSource(path) as source:
        start = bytearray(1 << 16)
        line = bytes(start[: source.fill(memoryview(start))]).lstrip().partition(b"\n")[0]
    if not line or (_LIBSVM.fullmatch(line) and (b":" in line or b"," not in line)):
        return ".svm"
    return ".tsv" if line.count(b"\t") > line.count(b",") else ".csv"
