# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C while a model is made: it ends the work, and never lands between two statements of ours.

Python turns a signal into a KeyboardInterrupt wherever the program happens to be: while a problem is built,
a proof is written down, or threads are joined. What was found until then would be lost. So a block that has
something to lose begins with ``held_back``: handlers of signals run as ever, but a KeyboardInterrupt that
one of them raises only calls what stops the work, and the block ends by itself with what it has.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

_SIGNALS = [
    getattr(signal, name) for name in ("SIGALRM", "SIGTERM", "SIGBREAK", "SIGINT") if hasattr(signal, name)
]
"""The signals whose handlers may raise KeyboardInterrupt; the usual one is last, the first to be held."""
_PATIENCE = 5.0
"""Seconds after which another Ctrl-C is raised at once: whatever holds it back must have gone wrong."""
_NO_TIME = 0.01
"""Seconds. Nobody can tell them from none: who interrupts such work means all that it is a part of."""

_holding: Interrupts | None = None
"""What the main thread is holding back now; other threads are not told of signals."""


class Interrupts:
    """The interrupts that come while a block of the main thread holds them back."""

    def __init__(self) -> None:
        self.came = False
        """Whether there was one."""
        self._began = self._since = time.monotonic()
        self._ended = math.inf
        self._stops: list[Callable[[], None]] = []
        self._passing = 0
        self._handlers: list[tuple[int, Any, Any]] = []

    def pass_on(self) -> None:
        """Raise KeyboardInterrupt if there was one, after work that was done in no time all the same.

        Such work is one piece of much, and all of it was meant. Blocks that still hold it back go first.
        """
        if self.came and _holding is not self and self._ended - self._began < _NO_TIME:
            raise KeyboardInterrupt

    def _hold(self) -> None:
        for number in reversed(_SIGNALS):
            handler = signal.getsignal(number)
            if callable(handler):
                ours = self._instead_of(handler)
                self._handlers.append((number, handler, ours))
                signal.signal(number, ours)

    def _let_go(self) -> None:
        while self._handlers:
            number, handler, ours = self._handlers.pop()
            if signal.getsignal(number) is ours:
                signal.signal(number, handler)

    def _instead_of(self, handler: Callable[..., Any]) -> Callable[..., None]:
        def handle(number: int, frame: Any) -> None:
            try:
                handler(number, frame)
            except KeyboardInterrupt:
                if self._take():
                    raise

        return handle

    def _take(self) -> bool:
        """Stop the work; whether KeyboardInterrupt is to be raised nevertheless."""
        now = time.monotonic()
        if not self.came:
            self.came, self._since = True, now
        for stop in list(self._stops):
            stop()
        return self._passing > 0 or now - self._since > _PATIENCE


class held_back:
    """Until the block ends, a signal's KeyboardInterrupt calls ``stop`` instead of being raised.

    Blocks may be nested: one Ctrl-C stops all of them, also a block that begins after it. The answer of
    ``with`` tells whether there was one. Blocks of other threads than the main one change nothing.
    """

    def __init__(self, stop: Callable[[], None] | None = None) -> None:
        self._stop, self._is_outermost, self._interrupts = stop, False, Interrupts()

    def __enter__(self) -> Interrupts:
        global _holding
        if threading.get_ident() != threading.main_thread().ident:
            self._stop = None
            return self._interrupts
        if _holding is None:
            self._is_outermost = True
            try:
                self._interrupts._hold()
                _holding = self._interrupts
            except BaseException:
                self._interrupts._let_go()
                raise
        self._interrupts = _holding
        if self._stop is not None:
            self._interrupts._stops.append(self._stop)
            if self._interrupts.came:
                self._stop()
        return self._interrupts

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _holding
        if self._stop is not None:
            self._interrupts._stops.remove(self._stop)
        if self._is_outermost:
            _holding = None
            self._interrupts._let_go()
            self._interrupts._ended = time.monotonic()


class let_through:
    """For what has nothing to lose inside such a block: Ctrl-C stops the work, and is raised there as well.

    So it is for code of the user's, and while data are read that nobody has checked yet.
    """

    def __enter__(self) -> None:
        self._interrupts = None
        if _holding is not None and threading.get_ident() == threading.main_thread().ident:
            self._interrupts = _holding
            _holding._passing += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._interrupts is not None:
            self._interrupts._passing -= 1
