# SPDX-License-Identifier: BSD-3-Clause
"""Parts from data files, in the order of the files and of their rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from scipy import sparse

from maxmargin.chunks.chunk import BYTES_BESIDE
from maxmargin.files.data.packed import Block, Packed
from maxmargin.files.data.reading import DataError, about, file_format, open_file, stream
from maxmargin.files.data.several import data_files, state_of

_CHANGED = "Leave the files alone while they are read, and begin anew."


class FileParts:
    """What reads files from the beginning at each call.

    A single packed file is read in its own blocks, or in equal parts of them where these are large; its
    checksums are compared in the first pass.
    """

    def __init__(
        self, sources: list[str], columns: int | None, label: str | None, options: dict[str, Any]
    ) -> None:
        self.paths = data_files(sources)
        self.options = {"label": label, "columns": columns} | options
        self.rows: int | None = None
        """The number of all rows, where it is known without reading."""
        self.feature_names: list[str] | None = None
        """The names of the columns of tables, once a row has been read."""
        self.is_packed = len(self.paths) == 1 and self._format(self.paths[0]) == "mmd"
        self.most_bytes: int | None = None
        """Bytes of a part of packed data, at most; None: blocks as they are."""
        self.progress: Callable[[int, int], None] | None = None
        """Called now and then in each pass with the bytes read and the bytes of all files."""
        self._state = state_of(self.paths)
        self._verified = False
        self._known: dict[int, Block] = {}
        """The blocks that have been read, of a packed file."""
        if self.is_packed:
            with about(self.paths[0]), open_file(self.paths[0]) as file:
                packed = Packed(file)
                self.rows, self.feature_names = packed.rows, packed.feature_names
                self.fingerprint, self.identity = packed.fingerprint, packed.identity
        else:
            self.fingerprint, self.identity = None, self._state

    def _format(self, path: str) -> str:
        return file_format(path, self.options.get("format"))

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(map(os.path.getsize, self.paths))

    def __call__(self) -> Iterator[Any]:
        """All parts, from the beginning."""
        if state_of(self.paths) != self._state:
            raise DataError(
                "the data have changed since they were first read", _CHANGED, path=self.paths[0]
            )
        return self._packed() if self.is_packed else self._read()

    def _packed(self) -> Iterator[Any]:
        with about(self.paths[0]), open_file(self.paths[0]) as file:
            packed, done = Packed(file), 0
            for X, y, weight, _ in packed.pieces(
                self._rows_of_a_part(packed), not self._verified, self._known
            ):
                yield X, y, weight
                done += len(y)
                if self.progress is not None:
                    self.progress(packed.size * done // packed.rows, packed.size)
        self._verified = True

    def _rows_of_a_part(self, packed: Packed) -> int:
        """The most rows that take no more than ``most_bytes``."""
        largest = max(rows for _, rows in packed.places)
        if self.most_bytes is None:
            return largest
        parts = -(-(packed.size + BYTES_BESIDE * packed.rows) * largest // (packed.rows * self.most_bytes))
        return max(1, -(-largest // max(1, parts)))

    def _read(self) -> Iterator[Any]:
        options = self.options
        if options["columns"] is None and any(self._format(path) == "libsvm" for path in self.paths):
            options["columns"] = self._widest()
        done, total = 0, self.nbytes
        for number, path in enumerate(self.paths):

            def told(read: int, _: int, before: int = done) -> None:
                if self.progress is not None:
                    self.progress(before + read, total)

            done += os.path.getsize(path)
            for data in stream(path, progress=told, **options):
                with about(path):
                    self._check_names(data.feature_names, first=number == 0)
                    yield data.X, data.y, data.weight

    def _check_names(self, names: list[str] | None, *, first: bool) -> None:
        if first and self.feature_names is None:
            self.feature_names = names
        if names != self.feature_names:
            raise DataError(
                "the columns have other names, or another order, than those of the first file",
                "All files must have the same columns.",
            )

    def _widest(self) -> int:
        """The number of columns of LIBSVM text, which one has to look through to know."""
        most = 1
        for path in self.paths:
            for data in stream(path, **self.options):
                if sparse.issparse(data.X) or data.X.shape[0]:
                    most = max(most, int(data.X.shape[1]))
        return most
