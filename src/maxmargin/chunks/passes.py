# SPDX-License-Identifier: BSD-3-Clause
"""One function over all chunks: the only thing that a fit asks of whatever holds the data.

A ``Passes`` of another kind, say on a cluster, is a class with the two methods of the protocol:

* ``over(task, *arguments)`` calls ``task(chunk, *arguments)`` for every chunk and yields the answers *in
  the order of the chunks*, whatever the order in which they are computed. The task is a function of a
  module and so can be pickled; so can its arguments and answers. It keeps nothing from one chunk to the
  next. A task that fails raises its exception from ``over``.
* ``over(task, *arguments, each=own)`` does so with ``task(chunk, *arguments, own[k])`` for chunk number k.
  Only fits on more columns than a Hessian can have ask for this.
  Where ``own`` is a ``Rounds``, ``own[k]`` is asked for in the order of the chunks, when all answers of the
  rounds before that of k have been taken: it may hang on these, whoever computes them.
* ``rows()`` is the number of all rows, or None where nobody knows it yet.

Chunks must be the same in every pass: their number, order and values. Then the sums of a fit have the same
bits for one worker, two or four. Whoever stops iterating gives the pass up, and no more chunks are read.
"""

from __future__ import annotations

from abc import ABC
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np

from maxmargin.chunks.source import Chunks
from maxmargin.core import default_threads
from maxmargin.tools.one_blas_thread import one_blas_thread

T = TypeVar("T")

_KEPT_BYTES, _KEPT_SHARE = 1 << 23, 1 / 32
"""Bytes up to which an array that is freed stays with the process, 8 MB or a share of the memory: twice a
chunk of packed data. Pages that go back to the system after each chunk cost a third of a pass when they
come again, since the system clears them."""


IN_A_ROUND = 4
"""Chunks of a round where nobody says how many: so many threads have work, and the bits of a fit are the
same for any smaller number of them."""


class Rounds(Sequence[Any], ABC):
    """What chunks are given of their own, in rounds of so many chunks."""

    size: int


class Passes(Protocol):
    """Whatever can run a function over all chunks, again and again."""

    def over(
        self, task: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None
    ) -> Iterator[T]:
        """``task(chunk, *arguments)`` of every chunk, in the order of the chunks."""
        ...

    def rows(self) -> int | None:
        """The number of all rows, if it is known."""
        ...


class LocalPasses:
    """Passes of this process: the calling thread reads ahead and lends a hand, others compute.

    With one worker, the calling thread only reads. With more, one of them is the calling thread: where the
    others have enough to do, it takes a chunk itself. A thread more than there are cores would cost more
    than it reads.
    """

    def __init__(self, chunks: Chunks, workers: int | None = None) -> None:
        self.chunks, self.workers = chunks, workers or default_threads()

    def over(
        self, task: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None
    ) -> Iterator[T]:
        """``task(chunk, *arguments)`` of every chunk, in the order of the chunks."""
        return in_order(self.chunks, self.workers, self.chunks.memory, task, arguments, each)

    def rows(self) -> int | None:
        """The number of all rows, if the chunks know it."""
        return self.chunks.rows


def in_order(
    chunks: Iterable[Any],
    workers: int,
    limit: int | None,
    task: Callable[..., T],
    arguments: tuple[Any, ...],
    each: Sequence[Any] | None = None,
) -> Iterator[T]:
    """``task(chunk, *arguments)`` of every chunk, in the order of the chunks, by so many threads.

    At most one chunk more than there are workers is held at a time, besides the one that is read.
    """
    _keep_freed_memory(limit)
    waiting: deque[Future[T]] = deque()
    others = max(1, workers - 1)
    with ThreadPoolExecutor(others) as pool, one_blas_thread():
        try:
            for number, chunk in enumerate(chunks):
                if isinstance(each, Rounds) and number % each.size == 0:
                    while waiting:
                        yield waiting.popleft().result()
                own = () if each is None else (each[number],)
                busy = sum(not answer.done() for answer in waiting) > others
                if busy and workers > 1:
                    waiting.append(_done(task, chunk, *arguments, *own))
                else:
                    waiting.append(pool.submit(task, chunk, *arguments, *own))
                del chunk
                while len(waiting) > workers or (waiting and waiting[0].done()):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


def _keep_freed_memory(limit: int | None) -> None:
    """Have the next arrays take the place of freed ones, where the C library is glibc.

    It gives large arrays back to the system when they are freed, but once it has seen a freed one that was
    as large as these, it keeps such memory at hand. The one that is freed here is never written to.
    """
    most = _KEPT_BYTES if limit is None else min(_KEPT_BYTES, int(_KEPT_SHARE * limit))
    np.empty(most, np.uint8)


def _done(task: Callable[..., T], *arguments: Any) -> Future[T]:
    """What a task answers, or raises, on this thread; it is raised when its turn comes."""
    answer: Future[T] = Future()
    try:
        answer.set_result(task(*arguments))
    except Exception as error:
        answer.set_exception(error)
    return answer
