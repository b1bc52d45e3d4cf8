# SPDX-License-Identifier: BSD-3-Clause
"""Text cut into blocks of whole lines, and work on blocks by several threads that keeps their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from maxmargin.files.data.compressed import TextSource

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Item = TypeVar("Item")
Result = TypeVar("Result")


def blocks(
    source: TextSource, size: int, longest: int, spare: list[bytearray], *, skip_long: bool
) -> Iterator[memoryview | None]:
    """Blocks of about ``size`` bytes that end with a newline, also where the text does not.

    None stands in the place of a line of more than ``longest`` bytes, and is the last block unless such
    lines are to be skipped. No more than about that is ever held. Whoever is done with a block may put
    its buffer in ``spare``, to be filled again: fresh memory costs more than reading into it.
    """
    begun = b""  # of a line whose end has not been read
    while True:
        wanted = min(max(size, 2 * len(begun)), longest + 1) + 1
        buffer = spare.pop() if spare else bytearray(wanted)
        if len(buffer) != wanted:
            buffer = bytearray(wanted)
        buffer[: len(begun)] = begun
        filled, cut, ended = _fill_to_newline(source, buffer, len(begun), longest)
        first = source.taken == filled
        start = len(_BYTE_ORDER_MARK) if first and buffer.startswith(_BYTE_ORDER_MARK) else 0
        if ended:
            if filled > start and buffer[filled - 1] != ord("\n"):
                buffer[filled] = ord("\n")
                filled += 1
            if filled > start:
                yield memoryview(buffer)[start:filled]
            return
        if cut:
            begun = bytes(memoryview(buffer)[cut:filled])
            yield memoryview(buffer)[start:cut]
        else:
            yield None
            if not skip_long:
                return
            begun = _after_line(source, size)


def _fill_to_newline(
    source: TextSource, buffer: bytearray, filled: int, longest: int
) -> tuple[int, int, bool]:
    """Fill the buffer but for one byte, and let it grow until a line ends in it or is too long.

    Returns how much is filled, where the last line ends (0 if none does), and whether the text ended.
    """
    while True:
        with memoryview(buffer) as view, view[filled:-1] as rest:
            got, room = source.fill(rest), len(rest)
        filled += got
        cut = buffer.rfind(b"\n", 0, filled) + 1
        if cut or got < room or filled > longest:
            return filled, cut, got < room
        buffer.extend(bytes(min(len(buffer), longest + 2 - len(buffer))))


def _after_line(source: TextSource, size: int) -> bytes:
    """Read on to the end of the line; returns what was read beyond it."""
    buffer = bytearray(size)
    view = memoryview(buffer)
    while filled := source.fill(view):
        cut = buffer.find(b"\n", 0, filled) + 1
        if cut:
            return bytes(view[cut:filled])
    return b""


def in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """``map(work, items)`` on several threads, with only a few items in flight at any time."""
    if threads == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
