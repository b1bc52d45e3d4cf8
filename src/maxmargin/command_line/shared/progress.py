# SPDX-License-Identifier: BSD-3-Clause
"""Progress on stderr: how much is read, the gap now, and the time left.

Shown only where stderr is a terminal and nobody asked for JSON.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import typer

import maxmargin
from maxmargin.command_line.shared.voice import VOICE
from maxmargin.command_line.shared.words import seconds_in_words
from maxmargin.files.data.labels import problem_text

_READING = "reading "
"""How the bars of files that are read begin."""
Show = Callable[["maxmargin.Progress"], None]
"""A callback of a fit."""


class Bars:
    """Bars that come and go; outside a terminal they cost nothing and show nothing."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        console = Console(stderr=True)
        self.shown = sys.stderr.isatty() and not quiet and not VOICE.quiet and not VOICE.verbose
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[words]}", markup=False),
        )
        self._bars = RichProgress(*columns, console=console, transient=True, disable=not self.shown)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def reading(self, name: str) -> Callable[[int, int], None] | None:
        """A callback that is told how many bytes have been read."""

        def seen(done: int, total: int) -> tuple[float, str]:
            in_all = f" of {total / 2**20:.0f}" if total else ""
            return min(done / total, 1.0) if total else 0.0, f"{done / 2**20:.0f}{in_all} MiB"

        return self._showing(f"{_READING}{name}", seen)

    def solving(self, name: str, *, tol: float, max_time: float) -> Show | None:
        """A callback for one problem: the gap now, and the time left."""
        left = TimeLeft(tol, max_time)

        def seen(progress: maxmargin.Progress) -> tuple[float, str]:
            gap, how = gap_now(progress)
            left.saw(progress.seconds, gap)
            return share_done(gap, tol), _gap_words(gap, how, left.seconds)

        return self._showing(name, seen)

    def solving_classes(self, name: str, *, count: int, max_time: float, pairs: bool) -> Show | None:
        """A callback for one class against the rest, or one pair, at a time, or several side by side."""
        classes = ClassesDone(count, max_time)
        one, many = ("pair", "pairs") if pairs else ("class", "classes")

        def seen(progress: maxmargin.Progress) -> tuple[float, str]:
            done, now = classes.saw(progress), _gap_words(*gap_now(progress), classes.seconds_left)
            return done, f"{classes.done} of {count} {many}, {one} {problem_text(progress.label)}: {now}"

        return self._showing(name, seen)

    def counting(self, name: str, count: int) -> Show | None:
        """A callback for many fits, some of them side by side: how many have got where they should."""
        clock, done = Clock(), 0

        def seen(progress: maxmargin.Progress) -> tuple[float, str]:
            nonlocal done
            done = min(done + (progress.relative_gap <= progress.tol), count)
            left = clock.seconds * (count - done) / done if 0 < done < count else None
            return done / count, f"{done} of {count} fits{_left_words(left)}"

        return self._showing(name, seen)

    def _showing(self, name: str, seen: Callable[..., tuple[float, str]]) -> Callable[..., None] | None:
        """A callback that shows what ``seen`` makes of what it is told: the share done, and words."""
        if VOICE.verbose and not name.startswith(_READING):
            return lambda *told: typer.echo(f"{name}: {seen(*told)[1]}", err=True)
        if not self.shown:
            return None
        bar, lock = self._add(name), threading.Lock()

        def show(*told: Any) -> None:
            with lock:  # fits side by side tell of themselves from several threads
                self._show(bar, *seen(*told))

        return show

    def waiting(self, name: str) -> None:
        """A bar that moves without telling how much is done, for what nobody counts."""
        if self.shown:
            self._add(name)

    def finish(self) -> None:
        """Clear what is shown: the next thing has its own bar."""
        for task in list(self._bars.task_ids):
            self._bars.remove_task(task)

    def _add(self, name: str) -> Any:
        """A bar that moves to and fro until it is told how much is done."""
        self.finish()
        return self._bars.add_task(name, total=None, words="")

    def _show(self, bar: Any, share: float, words: str) -> None:
        self._bars.update(bar, total=1.0, completed=share, words=words)


def gap_now(progress: maxmargin.Progress) -> tuple[float, str]:
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


def _gap_words(gap: float, how: str, left: float | None) -> str:
    words = "no gap yet" if math.isinf(gap) else f"gap {gap:.1e} {how}"
    return words + _left_words(left)


def _left_words(left: float | None) -> str:
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

    def saw(self, progress: maxmargin.Progress) -> float:
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
