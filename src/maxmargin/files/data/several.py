# SPDX-License-Identifier: BSD-3-Clause
"""Several data files as one: folders, patterns, and a text that tells whether files have changed."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from maxmargin.files.data.reading import COMPRESSED, DataError, about, file_format, open_file

_KNOWN = (".svm", ".libsvm", ".txt", ".npz", ".csv", ".tsv", ".parquet", ".mmd")
"""How the names of data files end, before what says that they are compressed."""
_PIECES, _PIECE = 64, 1 << 14
"""Pieces of a file that are looked at, spread evenly over it, and the bytes of each."""

_SHORTEST_LINE = 2
"""Bytes of a line with a label and no value."""
_SHORT_LINE = 32
"""Bytes of a line with a few values: compressed text is taken for such lines where nobody counts them."""
_TEXT_SHRINKS = 5
"""How many times smaller text of numbers is when it is compressed, about."""


def data_files(sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that paths, folders and patterns stand for; those of a folder or pattern by their names."""
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    found: list[str] = []
    for source in [os.fspath(each) for each in sources]:
        if os.path.isdir(source):
            inside = sorted(entry.path for entry in os.scandir(source) if _is_data(entry.path))
            if not inside:
                raise DataError(
                    "there is no data file in this folder",
                    f"The names of data files end in {', '.join(_KNOWN)}, or in these and "
                    f"{', '.join(COMPRESSED)}.",
                    path=source,
                )
            found += inside
        elif glob.has_magic(source) and not os.path.exists(source):
            matching = sorted(path for path in glob.glob(source) if os.path.isfile(path))
            if not matching:
                raise DataError("no file has such a name", "Check the pattern.", path=source)
            found += matching
        else:
            open_file(source).close()
            found.append(source)
    return found


def _is_data(path: str) -> bool:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    named = bool(suffixes) and suffixes[-1] in _KNOWN and not Path(path).name.startswith(".")
    return named and os.path.isfile(path)


def state_of(paths: Sequence[str]) -> str:
    """A short text that changes where a file does: its size, its time, or one of 64 pieces spread over it.

    It is read in milliseconds, however large the files are. Somebody who changes some other bytes and sets
    the time back is not noticed by it.
    """
    total = hashlib.blake2b(digest_size=16)
    for path in paths:
        with open_file(path) as file:
            status = os.fstat(file.fileno())
            total.update(f"{status.st_size} {status.st_mtime_ns} ".encode())
            for k in range(_PIECES):
                file.seek(max(0, status.st_size - _PIECE) * k // (_PIECES - 1))
                total.update(file.read(_PIECE))
                if status.st_size <= _PIECE:
                    break
    return total.hexdigest()


def most_rows(paths: Sequence[str], format: str | None, enough: int) -> int:
    """At most how many rows packed files and LIBSVM text have; 0 for others.

    Lines are counted only where there can be more than ``enough``.
    """
    rows = 0
    for path in paths:
        kind = file_format(path, format)
        if kind not in ("mmd", "libsvm"):
            continue
        with about(path), open_file(path) as file:
            if kind == "mmd":
                from maxmargin.files.data.packed import Packed

                rows += Packed(file).rows
            elif Path(path).suffix.lower() in COMPRESSED:
                rows += _TEXT_SHRINKS * os.path.getsize(path) // _SHORT_LINE
            elif os.path.getsize(path) > _SHORTEST_LINE * enough:
                rows += sum(piece.count(b"\n") for piece in iter(partial(file.read, 1 << 20), b"")) + 1
    return rows


def bytes_in_memory(paths: Sequence[str], format: str | None = None) -> int:
    """About how many bytes the rows of some files take in memory, without reading them."""
    return sum(_bytes_of(path, file_format(path, format)) for path in paths)


def _bytes_of(path: str, format: str) -> int:
    size = os.path.getsize(path)
    if format == "mmd":
        from maxmargin.files.data.packed import Packed

        with about(path), open_file(path) as file:
            packed = Packed(file)
        return 2 * size if packed.is_sparse else 8 * packed.rows * packed.columns
    if format == "npz":
        import zipfile

        try:
            with zipfile.ZipFile(path) as archive:
                return sum(member.file_size for member in archive.infolist())
        except (OSError, zipfile.BadZipFile, ValueError):
            return size  # the reader says what is wrong
    if format == "parquet":
        try:
            from pyarrow import parquet

            metadata = parquet.read_metadata(path)
            return 8 * int(metadata.num_rows) * int(metadata.num_columns)
        except (ImportError, OSError, ValueError):
            return size  # the reader says what is wrong
    return size * (_TEXT_SHRINKS if Path(path).suffix.lower() in COMPRESSED else 1)
