# SPDX-License-Identifier: BSD-3-Clause
"""Write packed data (see packed.py): block by block under a temporary name, which is renamed at the end.

A packing that was stopped leaves whole blocks behind. The next one of the same files, with the same
options, goes on after the last block whose checksums are right.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.files.data.block_writer import BlockWriter, Taken, some_rows
from maxmargin.files.data.reading import DataSet, Progress, about, file_format, stream
from maxmargin.files.data.several import data_files, state_of
from maxmargin.files.whole import rename_whole, writing_errors

Parts = Callable[[], Iterable[tuple[Any, ...]]]
"""What returns an iterator over (X, y) or (X, y, weights)."""


@dataclass(frozen=True)
class PackedSource:
    """What was packed."""

    path: str
    files: tuple[str, ...]
    rows: int
    columns: int
    stored: int
    blocks: int
    nbytes: int
    sparse: bool
    weighted: bool
    skipped: int
    """Bad lines that were left out."""
    resumed: int
    """Rows that an earlier packing had written."""
    fingerprint: str | None


def pack(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Parts,
    path: str | os.PathLike[str],
    *,
    dense: bool = False,
    columns: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> PackedSource:
    """Write data files as one packed file, whole or not at all.

    Args:
        source: Paths, folders and patterns of data files; or a function that returns an iterator over parts
            (X, y) or (X, y, weights).
        path: The file to write, usually ``.mmd``. Meanwhile its name ends in ``.part``.
        dense: Write sparse rows as dense ones, which LIBSVM text of full rows is worth.
        columns: Columns of LIBSVM text; None takes the largest index.
        progress: Called now and then with the bytes done and the bytes in all.
        options: As in ``read``.

    Values are stored as float32 where that type has all of a block exactly, so that the data are the same.
    """
    target = os.fspath(path)
    if callable(source):
        return _packed(_of_parts(source), target, (), {"source": None}, dense, progress)
    paths = data_files(source)
    if os.path.exists(target) and any(os.path.samefile(target, each) for each in paths):
        raise ValueError(f"The packed file must not be one of its sources. Got {target!r} for both.")
    if dense and columns is None and any(file_format(each) == "libsvm" for each in paths):
        columns = _widest(paths, options)
    options["columns"] = columns
    told = {name: value for name, value in options.items() if name != "threads"}
    head = {"source": state_of(paths), "options": repr((dense, sorted(told.items())))}

    def read(taken: Taken) -> Iterator[tuple[DataSet, Taken]]:
        return _of_files(paths, options, taken, progress)

    return _packed(read, target, tuple(paths), head, dense, progress)


Read = Callable[[Taken], Iterator[tuple[DataSet, Taken]]]


def _of_files(
    paths: list[str], options: dict[str, Any], taken: Taken, progress: Progress | None
) -> Iterator[tuple[DataSet, Taken]]:
    """The rows of all files after those taken, and how far each piece leads."""
    sizes = [os.path.getsize(path) for path in paths]
    total, skipped, wanted = sum(sizes), taken.skipped, taken.rows
    for number in range(taken.file, len(paths)):
        before, rows, left_out = sum(sizes[:number]), 0, 0

        def told(done: int, _: int, before: int = before) -> None:
            assert progress is not None
            progress(before + done, total)

        shown = None if progress is None else told
        for data in stream(paths[number], progress=shown, **options):
            count = data.X.shape[0]
            left_out += data.skipped
            if rows < wanted:  # written by an earlier packing
                first = min(count, wanted - rows)
                rows += first
                data = some_rows(data, first, count)
                count -= first
            rows += count
            yield data, Taken(number, rows, skipped)
        skipped, wanted = skipped + left_out, 0


def _of_parts(parts: Parts) -> Read:
    def read(taken: Taken) -> Iterator[tuple[DataSet, Taken]]:
        rows = 0
        for part in parts():
            given, y, weight = part if len(part) == 3 else (*part, None)
            X: Any = given.tocsr() if sparse.issparse(given) else np.asarray(given)
            X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
            if sparse.issparse(X) and not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            rows += X.shape[0]
            weight = None if weight is None else np.asarray(weight, np.float64)
            yield DataSet(X, np.asarray(y), weight=weight), Taken(0, rows, 0)

    return read


def _widest(paths: list[str], options: dict[str, Any]) -> int:
    """The number of columns of LIBSVM text, which one has to look through to know."""
    return max(int(data.X.shape[1]) for path in paths for data in stream(path, **options))


def _packed(
    read: Read,
    target: str,
    paths: tuple[str, ...],
    head: dict[str, Any],
    dense: bool,
    progress: Progress | None,
) -> PackedSource:
    with writing_errors(target), _opened(f"{os.path.realpath(target)}.part") as file:
        packer = BlockWriter(file, head, dense, hashes=bool(paths))
        resumed = packer.rows
        last = packer.taken
        skipped = last.skipped
        number, of_file = last.file, 0
        for data, taken in read(last):
            if taken.file != number:
                number, of_file = taken.file, 0
            of_file += data.skipped
            skipped = taken.skipped + of_file
            with about(paths[number]) if paths else nullcontext():
                packer.add(data, taken)
        index = packer.finish()
        nbytes = os.fstat(file.fileno()).st_size
        os.fsync(file.fileno())
        rename_whole(f"{os.path.realpath(target)}.part", target)
    return PackedSource(
        target,
        paths,
        index["rows"],
        index["columns"],
        packer.stored,
        len(index["blocks"]),
        nbytes,
        index["sparse"],
        index["weighted"],
        skipped,
        resumed,
        index["fingerprint"],
    )


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """The file to go on with, for this process alone."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    with open(descriptor, "r+b", buffering=0) as file:
        with suppress(ImportError):  # a system without fcntl has no such locks
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError(errno.EBUSY, "another process is packing it", path) from None
        yield file
