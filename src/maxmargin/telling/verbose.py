# SPDX-License-Identifier: BSD-3-Clause
"""What ``verbose`` shows of a fit: 1 how far it is, 2 every certificate; then, in one line, how it ended.

How far it is, is a bar in a terminal, a line that is written over in a notebook, and elsewhere, as in a
file, a line now and then. Notebooks show stderr as if it were an error, so they get stdout; all others get
stderr, which leaves stdout to the answers of a program.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from maxmargin.files.data.labels import problem_text
from maxmargin.telling.progress import Clock, Saw, rich_bars
from maxmargin.tools.words import seconds_in_words

if TYPE_CHECKING:
    from maxmargin.solving.loop import Progress

_BETWEEN_LINES = 10.0
"""Seconds between two lines where nothing can be written over."""
_BETWEEN_CHANGES = 0.2
"""Seconds between two changes of a line in a notebook: each is a message to the browser."""


class Shown:
    """What is shown of one fit, or of several that make up one; threads may tell of theirs side by side.

    A copy in another process shows nothing: what is seen there, this one does not know.
    """

    def __init__(self, title: str, verbose: int, saw: Saw) -> None:
        self.title = title
        self.clock = Clock()
        self._every_certificate = verbose >= 2
        self._saw = saw
        self._place = _place()
        self._lock = threading.Lock()
        self._last: dict[Any, Any] = {}

    def __call__(self, progress: Progress) -> None:
        """Show what a callback is told."""
        with self._lock:
            share, words = self._saw(progress)
            if not self._every_certificate:
                self._place.show(self.title, share, words)
            elif self._last.get(progress.label) is not progress.certificate:
                self._last[progress.label] = progress.certificate
                self._place.line(f"{self.title}{_certificate_in_words(progress)}")

    def line(self, words: str) -> None:
        """A line of its own."""
        with self._lock:
            self._place.line(f"{self.title}: {words}")

    def end(self, words: str = "") -> None:
        """Nothing more is to come; the words say how the fit ended, unless it broke off."""
        with self._lock:
            self._place.end()
            if words:
                self._place.line(f"{self.title}, {seconds_in_words(self.clock.seconds)}: {words}")

    def __reduce__(self) -> Any:
        return _nothing_shown, ()


def _nothing_shown() -> Any:
    return _show_nothing


def _show_nothing(progress: Progress) -> None:
    """What the copy of ``Shown`` in another process is."""


def _certificate_in_words(progress: Progress) -> str:
    proof, label = progress.certificate, progress.label
    of = "" if label is None else f", {problem_text(label)}"
    values = "" if proof is None else f", primal {proof.primal:.8g}, dual {proof.dual:.8g}"
    when = f"step {progress.step}, {seconds_in_words(progress.seconds)}"
    return f"{of}: {when}{values}, relative gap {progress.relative_gap:.2e}"


class _Lines:
    """A file, or whatever else keeps what is written: a line now and then."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._shown = 0.0

    @property
    def stream(self) -> Any:
        """Where it is written; asked for every time, since tests and notebooks exchange it."""
        return sys.stderr

    def show(self, title: str, share: float, words: str) -> None:
        """How far the fit is."""
        if self._clock.seconds - self._shown >= _BETWEEN_LINES:
            self._shown = self._clock.seconds
            self.line(f"{title}: {words}")

    def line(self, text: str) -> None:
        """A line that stays."""
        print(text, file=self.stream, flush=True)

    def end(self) -> None:
        """Remove what does not stay."""


class _Notebook(_Lines):
    """A line that is written over."""

    def __init__(self) -> None:
        super().__init__()
        self._width = 0

    @property
    def stream(self) -> Any:
        return sys.stdout

    def show(self, title: str, share: float, words: str) -> None:
        if self._width and self._clock.seconds - self._shown < _BETWEEN_CHANGES:
            return
        self._shown = self._clock.seconds
        text = f"{title}: {100 * share:.0f} %, {words}"
        self._width = max(self._width, len(text))
        print(f"\r{text:<{self._width}}", end="", file=self.stream, flush=True)

    def line(self, text: str) -> None:
        self.end()
        super().line(text)

    def end(self) -> None:
        if self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=self.stream, flush=True)
            self._width = 0


class _Terminal(_Lines):
    """A bar, which is there from the first that is told until the end."""

    _bars: Any = None

    def show(self, title: str, share: float, words: str) -> None:
        if self._bars is None:
            self._bars = rich_bars(shown=True)
            self._bars.start()
            self._bar = self._bars.add_task(title, total=1.0, words="")
        self._bars.update(self._bar, completed=share, words=words)

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


def _place() -> _Lines:
    """Where this process shows things."""
    interactive: Any = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    if hasattr(shell, "kernel"):
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() else _Lines()
