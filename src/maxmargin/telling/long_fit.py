# SPDX-License-Identifier: BSD-3-Clause
"""What a fit that may go on for long tells a log that takes INFO: now and then, how far it is."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from maxmargin.telling.progress import TimeLeft, gap_now, gap_words
from maxmargin.tools.words import seconds_in_words

if TYPE_CHECKING:
    from maxmargin.solving.loop import Progress

logger = logging.getLogger("maxmargin")

_FIRST_LINE = 10.0
"""Seconds before the first line. Each of the others comes when it has taken twice as long."""
_TELLS = 0.5
"""A relative gap above which its pace tells nothing of the time left: it falls slowly as long as the primal
value is far above the dual one, whatever follows."""


class LongFit:
    """A callback that says how far the last way is, which has no end of its own but the gap."""

    def __init__(self, name: str, tol: float) -> None:
        self.name, self.tol = name, tol
        self._next = _FIRST_LINE
        self._left = TimeLeft(tol, math.inf)

    def __call__(self, progress: Progress) -> None:
        """Say it where it is time to."""
        gap, how = gap_now(progress)
        self._left.saw(progress.seconds, gap)
        if progress.seconds >= self._next:
            self._next = 2.0 * progress.seconds
            left = self._left.seconds if gap <= _TELLS else None
            logger.info(
                "%s: %s after %s of steps on pairs of rows, which go on until it is %.1e. Ctrl-C ends them "
                "with the best model so far, and so does max_time. A smaller C or gamma is solved sooner.",
                self.name,
                gap_words(gap, how, left),
                seconds_in_words(progress.seconds),
                self.tol,
            )
