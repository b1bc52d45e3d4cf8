# SPDX-License-Identifier: BSD-3-Clause
"""Passes over the partitions of a cluster: results of Dask's tasks are all that travels.

A pass submits one task for some partitions that the same worker holds, or for each partition where nobody
knows who holds it, and takes the answers of all partitions in their order: so the bits do not depend on
who holds what. What all tasks of a pass need (the points, the width of a band) is a part of each task, or
where it is long a result of a task, too: Dask can make it again where the worker that held it has gone, as
it can every partition. There are no sockets and no actors besides Dask's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from dask.delayed import Delayed, delayed
from distributed import Client, Future
from distributed.protocol.pickle import dumps, loads

import dask
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.passes import IN_A_ROUND, Rounds
from maxmargin.chunks.source import joined
from maxmargin.dask.parts import Part, known_rows, places_of, plain_parts, row_counts
from maxmargin.tools.one_blas_thread import one_blas_thread

T = TypeVar("T")

_BATCH = 32
"""Partitions for each thread of the cluster whose tasks are submitted at once, while those before are under
way: calls of the scheduler take milliseconds, and answers that have to wait for their turn take little
memory. Where all partitions are in one batch, a wave of empty tasks takes three quarters of the time that
two batches take."""
_SHARED_BYTES = 1 << 16
"""Bytes up to which what all tasks of a pass need is sent with each of them; from there on it is a result
of a task, sent once, which takes a message more."""
_LARGE_GRAPH = {"distributed.admin.large-graph-warning-threshold": "1 GiB"}
"""Dask warns of data inside of its tasks from 10 MB on; the points of wide data are that long."""


@dataclass(frozen=True)
class _Group:
    """Some partitions that one task answers for."""

    parts: Delayed | Future
    """A list of them."""
    numbers: list[int]
    """Their places among all partitions."""


class DaskPasses:
    """Passes by the workers of a cluster over partitions, of which those without rows are passed over.

    ``pieces`` are what ``plain_part`` makes partitions of. With ``persist`` these are made once and stay
    with the workers, which write them to their disks where memory is short. Without it they are made anew
    in every pass. ``counts`` are the rows of each partition, where they are known: then no round of tasks
    has to find out. ``places`` are the workers that hold them, where some do.
    """

    def __init__(
        self,
        client: Client,
        pieces: Sequence[Any],
        *,
        persist: bool = True,
        counts: Sequence[int] | None = None,
        places: Sequence[str | None] | None = None,
    ) -> None:
        threads = client.nthreads()
        if not threads:
            raise ValueError(
                "The cluster of this client has no workers. Start some; client.wait_for_workers(1) waits "
                "until one is there."
            )
        self.client = client
        together = _grouped(places or [None] * len(pieces), threads)
        lists: list[Any] = [
            [delayed(plain_parts)([pieces[k] for k in numbers], numbers) for numbers in batch]
            for batch in together
        ]
        if persist:
            lists = [client.compute(batch) for batch in lists]
        self._batches = [
            [_Group(*pair) for pair in zip(made, batch, strict=True)]
            for made, batch in zip(lists, together, strict=True)
        ]
        if counts is None:
            counts = [
                count
                for batch in self._batches
                for count in self._in_order(
                    batch, self._submit(row_counts, [(one.parts,) for one in batch])
                )
            ]
        self._counts = list(counts)
        # More threads than these would have no work in a round: then all partitions are one.
        self.in_a_round = IN_A_ROUND if sum(threads.values()) <= IN_A_ROUND else len(self._counts)
        self._first = list(accumulate(counts, initial=0))

    def over(
        self, task: Callable[..., T], *arguments: Any, each: Sequence[Any] | None = None
    ) -> Iterator[T]:
        """``task(chunk, *arguments)`` of every partition that has rows, in their order."""
        shared: bytes | Future = dumps((task, arguments))
        if len(shared) > _SHARED_BYTES:
            with dask.config.set(_LARGE_GRAPH):
                shared = self.client.submit(_held, task, arguments, pure=False)
        places = accumulate((count > 0 for count in self._counts), initial=0)
        place = dict(enumerate(places))  # of a partition among those that have rows
        waiting: deque[tuple[list[_Group], list[Future]]] = deque()
        try:
            for batch, asked in self._waves(each):
                own = {k: () if each is None else (each[place[k]],) for k in sorted(asked)}
                calls = []
                for one in batch:
                    about = [(self._first[k], self._counts[k], own.get(k)) for k in one.numbers]
                    calls.append((one.parts, about, shared))
                with dask.config.set(_LARGE_GRAPH):
                    waiting.append((batch, self._submit(_answers, calls)))
                if isinstance(each, Rounds) or len(waiting) == 2:
                    yield from self._answers(waiting)
            while waiting:
                yield from self._answers(waiting)
        finally:
            if waiting:  # to cancel nothing takes a message, too
                self.client.cancel([future for _, futures in waiting for future in futures])

    def rows(self) -> int:
        """The number of all rows."""
        return self._first[-1]

    def _waves(self, each: Sequence[Any] | None) -> Iterator[tuple[list[_Group], set[int]]]:
        """What is submitted at once, and the partitions with rows that are asked: a batch, or a round."""
        if not isinstance(each, Rounds):
            for batch in self._batches:
                yield batch, {k for one in batch for k in one.numbers if self._counts[k]}
            return
        full = [k for k, count in enumerate(self._counts) if count]
        groups = [one for batch in self._batches for one in batch]
        for begin in range(0, len(full), each.size):
            asked = set(full[begin : begin + each.size])
            yield [one for one in groups if not asked.isdisjoint(one.numbers)], asked

    def _answers(self, waiting: deque[tuple[list[_Group], list[Future]]]) -> Iterator[Any]:
        """The answers of the first tasks that are waited for, which are waited for no longer."""
        answers = self._in_order(*waiting[0])
        waiting.popleft()
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            if answer is not None:
                yield answer

    def _in_order(self, batch: list[_Group], futures: list[Future]) -> list[Any]:
        """What the tasks of a batch say of each partition, in the order of the partitions."""
        numbers = [k for one in batch for k in one.numbers]
        said = [answer for answers in self.client.gather(futures) for answer in answers]
        return [answer for _, answer in sorted(zip(numbers, said, strict=True), key=lambda pair: pair[0])]

    def _submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Future]:
        """One task for each call; its first argument are some partitions."""
        if calls and isinstance(calls[0][0], Delayed):
            tasks = [delayed(function, pure=False)(*call) for call in calls]
            return list(self.client.compute(tasks))
        return list(self.client.map(function, *zip(*calls, strict=True), pure=False))


def passes_over(client: Client, X: Any, pieces: Sequence[Any], *, persist: bool) -> DaskPasses:
    """Passes over the pieces of X, with what Dask can tell of them before any task has run."""
    counts, places = known_rows(X, len(pieces)), places_of(client, X, pieces)
    return DaskPasses(client, pieces, persist=persist, counts=counts, places=places)


def _grouped(places: Sequence[str | None], threads: Mapping[str, int]) -> list[list[list[int]]]:
    """Batches of partitions in their order, each in groups that one worker holds."""
    batches, size = [], _BATCH * sum(threads.values())
    for begin in range(0, len(places), size):
        held: dict[str, list[int]] = {}
        groups = []
        for number, place in enumerate(places[begin : begin + size], begin):
            if place is None:
                groups.append([number])
            else:
                held.setdefault(place, []).append(number)
        for place, some in held.items():
            most = -(-len(some) // threads.get(place, 1))
            groups += [some[i : i + most] for i in range(0, len(some), most)]
        batches.append(sorted(groups))
    return batches


def _held(
    task: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What all tasks of a pass share."""
    return task, arguments


def _answers(
    parts: Sequence[Part],
    about: Sequence[tuple[int, int, tuple[Any, ...] | None]],
    shared: bytes | tuple[Callable[..., T], tuple[Any, ...]],
) -> list[T | Exception | None]:
    """A task of a pass: what the rows of each of some partitions answer; None where nothing is asked.

    The first one that fails answers with its exception, so that it is raised when its turn comes.
    """
    task, arguments = loads(shared) if isinstance(shared, bytes) else shared
    answers: list[T | Exception | None] = []
    with one_blas_thread():
        for part, (first, count, own) in zip(parts, about, strict=True):
            try:
                answers.append(None if own is None else task(_chunk(part, first, count), *arguments, *own))
            except Exception as error:
                return [*answers, *[error] * (len(parts) - len(answers))]
    return answers


def _chunk(part: Part, first: int, count: int) -> Chunk:
    """A partition as a chunk; ValueError where it does not have the rows that it is said to have."""
    found = int(part[0].shape[0])
    if found != count:
        raise ValueError(
            f"A Dask array must have the chunks that it tells of. The one from row {first} on has "
            f"{found} rows in place of {count}: give from_delayed the right shape, or call "
            "compute_chunk_sizes()."
        )
    return joined([part], first)
