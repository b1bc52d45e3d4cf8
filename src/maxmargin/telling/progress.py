# SPDX-License-Identifier: BSD-3-Clause
"""How far a fit is, from what its callback is told: the share that is done, the time left, and in words."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maxmargin.files.data.labels import problem_text
from maxmargin.tools.words import seconds_in_words

if TYPE_CHECKING:
    from maxmargin.solving.loop import Progress

Saw = Callable[["Progress"], tuple[float, str]]
"""Takes what a callback is told, and answers with the share that is done and with words."""


def one_problem(tol: float, max_time: float) -> Saw:
    """Tells the gap of one problem, and the time left."""
    left = TimeLeft(tol, max_time)

    def saw(progress: Progress) -> tuple[float, str]:
        gap, how = gap_now(progress)
        left.saw(progress.seconds, gap)
        return share_done(gap, tol), gap_words(gap, how, left.seconds)

    return saw


def several_problems(count: int, max_time: float, *, pairs: bool) -> Saw:
    """Tells how far one class against the rest, or one pair, is; or several side by side."""
    classes = ClassesDone(count, max_time)
    one, many = ("pair", "pairs") if pairs else ("class", "classes")

    def saw(progress: Progress) -> tuple[float, str]:
        done, now = classes.saw(progress), gap_words(*gap_now(progress), classes.seconds_left)
        return done, f"{classes.done} of {count} {many}, {one} {problem_text(progress.label)}: {now}"

    return saw


def many_fits(count: int) -> Saw:
    """Tells how many of many fits, some of them side by side, have got where they should."""
    clock, done = Clock(), 0

    def saw(progress: Progress) -> tuple[float, str]:
        nonlocal done
        done = min(done + (progress.relative_gap <= progress.tol), count)
        left = clock.seconds * (count - done) / done if 0 < done < count else None
        return done / count, f"{done} of {count} fits{left_words(left)}"

    return saw


def gap_now(progress: Progress) -> tuple[float, str]:
    """The relative gap now, and whether it is certified or the solver's own estimate."""
    if progress.estimate < progress.relative_gap:  # never where it is NaN
        return max(progress.estimate, 0.0), "estimated"
    return progress.relative_gap, "certified"


def share_done(gap: float, tol: float) -> float:
    """How much is done, from 0 to 1, counted in orders of magnitude since a gap shrinks by factors."""
    if gap <= tol:
        return 1.0
    if not gap < 1.0:
        return 0.0
    return math.log(gap) / math.log(max(tol, 1e-16))


def gap_words(gap: float, how: str, left: float | None) -> str:
    """The gap, how it is known, and the time that is left."""
    words = "no gap yet" if math.isinf(gap) else f"gap {gap:.1e} {how}"
    return words + left_words(left)


def left_words(left: float | None) -> str:
    """The seconds that are left; empty where that is not known."""
    if left is None:
        return ""
    whole = math.ceil(left)
    return f", {whole} s left" if whole < 60 else f", {seconds_in_words(whole)} left"


class TimeLeft:
    """The time until a gap that shrinks by factors reaches tol; never more than the budget still has."""

    def __init__(self, tol: float, max_time: float) -> None:
        self.tol, self.max_time = max(tol, 1e-16), max_time
        self._seen: list[tuple[float, float]] = []
        self._now = 0.0

    def saw(self, seconds: float, gap: float) -> None:
        """Note the gap after so many seconds; only new lows count."""
        self._now = seconds
        if 0.0 < gap < math.inf and (not self._seen or gap < self._seen[-1][1]):
            self._seen.append((seconds, gap))

    @property
    def seconds(self) -> float | None:
        """The seconds that are left; None while there is nothing to go by."""
        budget = max(0.0, self.max_time - self._now)
        needed = self._until_tol()
        if needed is None:
            return budget if math.isfinite(budget) else None
        return min(needed, budget)

    def _until_tol(self) -> float | None:
        """The seconds by the decay over the later half of the time, since the first steps are faster."""
        if len(self._seen) < 2:
            return None
        last, gap = self._seen[-1]
        if gap <= self.tol:
            return 0.0
        since, before = next(seen for seen in self._seen if seen[0] >= last / 2 or seen is self._seen[-2])
        rate = math.log(before / gap) / max(self._now - since, 1e-9)
        return math.log(gap / self.tol) / rate


class ClassesDone:
    """How many classes are done, from callbacks that only tell which class they are about.

    A class runs on one thread from beginning to end, so it is done when its thread turns to another.
    """

    def __init__(self, count: int, max_time: float) -> None:
        self.count, self.max_time = count, max_time
        self.done = 0
        self._running: dict[int, tuple[Any, float]] = {}
        self._clock = Clock()

    def saw(self, progress: Progress) -> float:
        """Note a callback; answers the share of all work that is done."""
        thread = threading.get_ident()
        label, _ = self._running.get(thread, (progress.label, 0.0))
        self.done += label != progress.label
        gap, _ = gap_now(progress)
        self._running[thread] = (progress.label, share_done(gap, progress.tol))
        return self._share

    @property
    def _share(self) -> float:
        return min(1.0, (self.done + sum(share for _, share in self._running.values())) / self.count)

    @property
    def seconds_left(self) -> float | None:
        """The seconds that are left if the other classes take as long as those that are done."""
        budget = max(0.0, self.max_time - self._clock.seconds)
        if self.done == 0:
            return budget if math.isfinite(budget) else None
        return min(budget, self._clock.seconds * (1.0 - self._share) / self._share)


class Clock:
    """Seconds since it was made, and laps."""

    def __init__(self) -> None:
        self._started = self._lap = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The seconds since the beginning."""
        return time.perf_counter() - self._started

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self._lap = self._lap, time.perf_counter()
        return self._lap - before


def rich_bars(*, shown: bool) -> Any:
    """Bars on stderr that are gone when they are stopped; each task has ``words`` beside its bar."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[words]}", markup=False),
    )
    return RichProgress(*columns, console=Console(stderr=True), transient=True, disable=not shown)
