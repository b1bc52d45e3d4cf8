# SPDX-License-Identifier: BSD-3-Clause
"""Progress on stderr: how much is read, the gap now, and the time left.

Shown only where stderr is a terminal and nobody asked for JSON.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, Self

import typer

import maxmargin
from maxmargin.command_line.shared.voice import VOICE
from maxmargin.telling.progress import many_fits, one_problem, rich_bars, several_problems

_READING = "reading "
"""How the bars of files that are read begin."""
Show = Callable[["maxmargin.Progress"], None]
"""A callback of a fit."""


class Bars:
    """Bars that come and go; outside a terminal they cost nothing and show nothing."""

    def __init__(self, *, quiet: bool) -> None:
        self.shown = sys.stderr.isatty() and not quiet and not VOICE.quiet and not VOICE.verbose
        self._bars = rich_bars(shown=self.shown)

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
        return self._showing(name, one_problem(tol, max_time))

    def solving_classes(self, name: str, *, count: int, max_time: float, pairs: bool) -> Show | None:
        """A callback for one class against the rest, or one pair, at a time, or several side by side."""
        return self._showing(name, several_problems(count, max_time, pairs=pairs))

    def counting(self, name: str, count: int) -> Show | None:
        """A callback for many fits, some of them side by side: how many have got where they should."""
        return self._showing(name, many_fits(count))

    def passing(self, name: str, seen: Callable[[], tuple[float, str]]) -> Callable[..., None] | None:
        """What shows how far a fit in passes is; in lines, only where a pass has ended."""
        if VOICE.verbose:
            return lambda *, at_end: typer.echo(f"{name}: {seen()[1]}", err=True) if at_end else None
        if not self.shown:
            return None
        bar = self._add(name)
        return lambda *, at_end: self._show(bar, *seen())

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


def fit_and_warnings(estimator: Any, *data: Any) -> list[str]:
    """Fit an estimator whose callback is a bar; what is to be warned of, beside how it ended."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(*data)
    estimator.set_params(callback=None)
    return [str(one.message) for one in caught if not issubclass(one.category, ConvergenceWarning)]
