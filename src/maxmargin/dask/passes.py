# SPDX-License-Identifier: BSD-3-Clause
"""Passes over the partitions of a cluster: results of Dask's tasks are all that travels.

A pass submits one task for each partition and takes the answers in the order of the partitions. What all
tasks of a pass need (the points, the width of a band) is a result of a task, too: Dask can make it again
where the worker that held it has gone, as it can every partition. There are no sockets and no actors
besides Dask's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from dask.delayed import Delayed, delayed
from distributed import Client, Future

import dask
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.source import joined
from maxmargin.dask.parts import Part, row_count
from maxmargin.tools.one_blas_thread import one_blas_thread

T = TypeVar("T")

_BATCH = 16
"""Tasks for each thread of the cluster that are submitted at once, while those before are under way: calls
of the scheduler take milliseconds, and answers that have to wait for their turn take little memory."""
_LARGE_GRAPH = {"distributed.admin.large-graph-warning-threshold": "1 GiB"}
"""Dask warns of data inside of its tasks from 10 MB on; the points of wide data are that long."""


class DaskPasses:
    """Passes by the workers of a cluster, one task for each partition that has rows.

    With ``persist`` the partitions are made once and stay with the workers, which write them to their disks
    where memory is short. Without it they are made anew in every pass. ``counts`` are the rows of each
    partition, where they are known: then no round of tasks has to find out.
    """

    def __init__(
        self,
        client: Client,
        parts: Sequence[Delayed | Future],
        *,
        persist: bool = True,
        counts: Sequence[int] | None = None,
    ) -> None:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ValueError(
                "The cluster of this client has no workers. Start some; client.wait_for_workers(1) waits "
                "until one is there."
            )
        self.client, self._batch = client, _BATCH * threads
        made = list(client.compute(parts)) if persist else list(parts)
        if counts is None:
            counts = client.gather(self._submit(row_count, [(part,) for part in made]))
        first = accumulate(counts, initial=0)
        self._parts = [
            (part, n, count) for part, n, count in zip(made, first, counts, strict=False) if count
        ]
        self._rows = sum(counts)

    def over(
        self, task: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None
    ) -> Iterator[T]:
        """``task(chunk, *arguments)`` of every partition, in their order."""
        with dask.config.set(_LARGE_GRAPH):
            shared = self.client.submit(_held, task, arguments, pure=False)
        waiting: deque[list[Future]] = deque()
        try:
            for begin in range(0, len(self._parts), self._batch):
                some = range(begin, min(begin + self._batch, len(self._parts)))
                calls = [(*self._parts[k], shared, () if each is None else (each[k],)) for k in some]
                with dask.config.set(_LARGE_GRAPH):
                    waiting.append(self._submit(_answer, calls))
                if len(waiting) == 2:
                    yield from self._answers(waiting)
            while waiting:
                yield from self._answers(waiting)
        finally:
            self.client.cancel([future for futures in waiting for future in futures])

    def rows(self) -> int:
        """The number of all rows."""
        return self._rows

    def _answers(self, waiting: deque[list[Future]]) -> list[Any]:
        """The answers of the first tasks that are waited for, which are waited for no longer."""
        answers: list[Any] = self.client.gather(waiting[0])
        waiting.popleft()
        return answers

    def _submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Future]:
        """One task for each call; its first argument is a partition."""
        if calls and isinstance(calls[0][0], Delayed):
            tasks = [delayed(function, pure=False)(*call) for call in calls]
            return list(self.client.compute(tasks))
        return list(self.client.map(function, *zip(*calls, strict=True), pure=False))


def _held(
    task: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What all tasks of a pass share."""
    return task, arguments


def _answer(
    part: Part,
    first: int,
    count: int,
    shared: tuple[Callable[..., T], tuple[Any, ...]],
    own: tuple[Any, ...],
) -> T:
    """A task of a pass: what the rows of one partition answer."""
    task, arguments = shared
    if row_count(part) != count:
        raise ValueError(
            f"A Dask array must have the chunks that it tells of. The one from row {first} on has "
            f"{row_count(part)} rows in place of {count}: give from_delayed the right shape, or call "
            "compute_chunk_sizes()."
        )
    chunk: Chunk = joined([part], first)
    with one_blas_thread():
        return task(chunk, *arguments, *own)
