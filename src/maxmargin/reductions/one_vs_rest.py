# SPDX-License-Identifier: BSD-3-Clause
"""Several classes as one problem per class: that class against all the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import overload

from maxmargin.core import Budget
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model


class Certificates(Sequence[Certificate]):
    """One certificate per class; as a whole it is worth what the worst of them is worth."""

    def __init__(self, certificates: Sequence[Certificate]) -> None:
        self._certificates = certificates

    @property
    def worst(self) -> Certificate:
        """The one with the largest relative gap."""
        return max(self._certificates, key=lambda certificate: certificate.relative_gap)

    @property
    def primal(self) -> float:
        """Of the worst."""
        return self.worst.primal

    @property
    def dual(self) -> float:
        """Of the worst."""
        return self.worst.dual

    @property
    def gap(self) -> float:
        """Of the worst."""
        return self.worst.gap

    @property
    def relative_gap(self) -> float:
        """Of the worst: the largest."""
        return self.worst.relative_gap

    @property
    def proven(self) -> bool:
        """Whether all of them are."""
        return all(certificate.proven for certificate in self._certificates)

    @property
    def kkt_violation(self) -> float:
        """The largest of all classes."""
        return max(certificate.kkt_violation for certificate in self._certificates)

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate]: ...
    def __getitem__(self, index: int | slice) -> Certificate | Sequence[Certificate]:
        return self._certificates[index]

    def __len__(self) -> int:
        return len(self._certificates)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self._certificates)

    def __str__(self) -> str:
        return f"One certificate for each of {len(self)} classes. The worst of them:\n{self.worst}"

    def __repr__(self) -> str:
        return f"Certificates({len(self)} classes, worst={self.worst!r})"


def solve_each(
    count: int, solve_one: Callable[[int, Budget], Model], max_time: float, threads: int
) -> list[Model]:
    """``solve_one(k, budget)`` for every class k, side by side where there are threads for it.

    Each class gets an equal share of the time that is left when its turn comes. Ctrl-C stops all of
    them; classes that had not begun answer with what they would have started from. An error ends the
    classes after it, so that it is always the first class with one that is heard of.
    """
    workers = min(threads, count)
    threads_each = max(1, threads // workers)
    deadline = time.monotonic() + max_time
    lock = threading.Lock()
    running: dict[int, Budget] = {}
    stopped_from = count

    def run(k: int) -> Model:
        left = max(0.0, deadline - time.monotonic())
        rounds = -(-(count - k) // workers)
        budget = Budget(left / rounds, threads_each)
        with lock:
            running[k] = budget
            if k >= stopped_from:
                budget.stop()
        try:
            model = solve_one(k, budget)
        except Exception:
            stop(k + 1)
            raise
        if budget.stopped and k < stopped_from:  # Ctrl-C reached a solve on this very thread
            stop(0)
        return model

    def stop(first: int) -> None:
        nonlocal stopped_from
        with lock:
            stopped_from = min(stopped_from, first)
            for k, budget in running.items():
                if k >= first:
                    budget.stop()

    if workers == 1:
        return [run(k) for k in range(count)]
    with ThreadPoolExecutor(workers, "maxmargin") as pool:
        futures = [pool.submit(run, k) for k in range(count)]
        while True:
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                stop(0)
