# SPDX-License-Identifier: BSD-3-Clause
"""What Ctrl-C does while a model is trained and written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


@contextmanager
def _interrupts_go_to(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is told of signals
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) == handler:
            signal.signal(signal.SIGINT, before)


def one_interrupt() -> AbstractContextManager[None]:
    """The first Ctrl-C ends the training; later ones are ignored, lest they take away what it leaves."""

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    return _interrupts_go_to(interrupt)


def no_interrupt() -> AbstractContextManager[None]:
    """Ctrl-C waits the moment that the writing of a finished model takes."""
    return _interrupts_go_to(signal.SIG_IGN)
