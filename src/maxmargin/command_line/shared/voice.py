# SPDX-License-Identifier: BSD-3-Clause
"""How much a command says: as much as it does by itself, less with -q, more with -v."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Voice:
    """What was asked for; one command runs in a process, and in tests one after the other."""

    quiet: bool = False
    """Answers and warnings alone: no progress, no words beside."""
    verbose: bool = False
    """Every certificate of a fit, line by line."""


VOICE = Voice()


@contextmanager
def speaking(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """While a command runs."""
    VOICE.quiet, VOICE.verbose = quiet, verbose
    try:
        yield
    finally:
        VOICE.quiet = VOICE.verbose = False
