# SPDX-License-Identifier: BSD-3-Clause
"""Files as streams of text, decompressed on the way; recognised by their first bytes, not by name."""

from __future__ import annotations

import io
import os
import stat
from typing import Any

from maxmargin.files.data.reading import DataError, open_file

SMALLEST_BOUND = 64 << 20
"""Bytes that any compressed file may become."""
LARGEST_RATIO = 200
"""Bytes that each byte of a larger file may become: text of numbers shrinks to a tenth, hardly further."""
_LARGEST_WINDOW = 1 << 27
"""Bytes of memory that a zstandard file may ask for, which is what its own program allows."""
_PIECE = 1 << 10
"""Bytes that are decompressed at once: a hostile piece can become 32,768 times as long."""


def bound(compressed: int) -> int:
    """The bytes that so many compressed ones may become: far more than honest text ever does."""
    return max(SMALLEST_BOUND, LARGEST_RATIO * compressed)


class TextSource:
    """The text of a file, to be read once from front to end."""

    def __init__(self, path: str) -> None:
        self._file = open_file(path)
        try:
            status = os.fstat(self._file.fileno())
            self.size: int | None = status.st_size if stat.S_ISREG(status.st_mode) else None
            """Bytes of the file; None for a pipe."""
            self._stream, self.compressed = _decompressed(io.BufferedReader(self._file, 1 << 16))
        except BaseException:
            self._file.close()
            raise
        self.taken = 0
        """Bytes of text so far."""

    @property
    def largest(self) -> int | None:
        """The text cannot have more bytes than this; None for a pipe."""
        return bound(self.size) if self.compressed and self.size is not None else self.size

    @property
    def done(self) -> int:
        """Bytes of the file so far."""
        return int(self._file.tell()) if self.size is not None else self.taken

    def fill(self, buffer: memoryview) -> int:
        """Read until the buffer is full or the text ends; returns the number of bytes."""
        filled = 0
        while filled < len(buffer):
            got = self._read_into(buffer[filled:])
            if got == 0:
                break
            filled += got
        self.taken += filled
        if self.compressed and self.size is not None and self.taken > bound(self.size):
            raise DataError(
                f"{self.size} compressed bytes have become more than {bound(self.size)}, which text "
                "does not do",
                "If the file can be trusted, decompress it first and read the result.",
            )
        return filled

    def _read_into(self, buffer: memoryview) -> int:
        import zlib

        try:
            return int(self._stream.readinto(buffer))
        except EOFError:
            cure = "It was cut off, perhaps in a copy or a download: get it again."
            raise DataError("the compressed file ends too early", cure) from None
        except (OSError, zlib.error, _zstd_error()) as error:
            what = "decompressed" if self.compressed else "read"
            raise DataError(f"the file cannot be {what}: {error}") from error

    def __enter__(self) -> TextSource:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _decompressed(file: io.BufferedReader) -> tuple[Any, bool]:
    try:
        magic = file.peek(6)[:6]
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}") from error
    if magic[:2] == b"\x1f\x8b":
        import gzip

        return gzip.GzipFile(fileobj=file), True
    if magic[:3] == b"BZh":
        import bz2

        return bz2.BZ2File(file), True
    if magic[:4] == b"\x28\xb5\x2f\xfd" or (magic[1:4] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5):
        return _ZstdFile(file), True
    if magic == b"\xfd7zXZ\x00":
        raise DataError("xz files cannot be read", "Decompress it with xz -d first.")
    return file, False


class _ZstdFile:
    """zstandard's own reader takes a file that was cut off for a whole one; this one does not."""

    def __init__(self, file: io.BufferedReader) -> None:
        import zstandard

        self._file = file
        self._context = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
        self._frame = self._context.decompressobj()
        self._begun = False
        self._waiting = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:
        while not len(self._waiting):
            piece = self._frame.unused_data if self._frame.eof else b""
            piece = piece or self._file.read(_PIECE)
            if not piece:
                if self._begun and not self._frame.eof:
                    raise EOFError
                return 0
            if self._frame.eof:
                self._frame = self._context.decompressobj()
            self._begun = True
            self._waiting = memoryview(self._frame.decompress(piece))
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError
