# SPDX-License-Identifier: BSD-3-Clause
"""A small kit for pictures in SVG: axes, bars, lines, points and regions.

Colours are classes of the page's style sheet, so that a picture follows its colour scheme. What they tell
is told by shapes and hatches as well. Every text is escaped here, and nowhere before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, Literal

from maxmargin.files.data.reading import printable

WIDTH = 380
"""Units of a picture. A phone shows it with letters of 10 pixels, a page on a desk with letters of 16."""
_LETTER = 6.2
"""Units that a letter takes, on average."""
_LONGEST_NAME = 48
"""Characters of a name from a file that are shown: enough to know it again."""
COLOURS = 6
"""Colours and markers that differ; after these they begin anew."""
_LINES = ("", "6 3", "2 2", "8 3 2 3", "1 3", "10 4")
"""Dashes of the lines that belong to the colours."""

Scale = Literal["linear", "log"]


def clipped(name: Any, most: int = _LONGEST_NAME) -> str:
    """A name from a file or from data: short, and of printable characters."""
    text = printable(str(name))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shown(name: Any) -> str:
    """Such a name, escaped for HTML."""
    return escape(clipped(name))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two others: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= rough * (1.0 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [(first + k) * step for k in range(math.floor(high / step + 1e-9) - first + 1)]


def decades(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten between two positive numbers, not too many of them."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**k for k in range(first, last + 1, max(1, math.ceil((last - first + 1) / most)))]


@dataclass(frozen=True)
class Axis:
    """A range of numbers, where it lies in the picture, and what stands beside it."""

    low: float
    high: float
    name: str
    scale: Scale = "linear"
    marks: Sequence[tuple[float, str]] | None = None
    """Places and their words; by default round numbers."""

    def place(self, value: float) -> float:
        """A number from 0 at the low end to 1 at the high end, and not beyond."""
        low, high = self.low, self.high
        if self.scale == "log":
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        return min(max((value - low) / (high - low), 0.0), 1.0)

    @property
    def labels(self) -> Sequence[tuple[float, str]]:
        """The numbers that are written, and how."""
        if self.marks is not None:
            return self.marks
        if self.scale == "log":
            return [(value, _power(value)) for value in decades(self.low, self.high)]
        return [(value, f"{value + 0.0:.6g}") for value in ticks(self.low, self.high)]


def _power(value: float) -> str:
    """A power of ten as it is written beside an axis."""
    exponent = round(math.log10(value))
    return f"{value:.0f}" if 0 <= exponent <= 4 else f"1e{exponent}"


class Picture:
    """A picture with two axes that grows by what is drawn into it, and becomes one SVG element."""

    def __init__(self, across: Axis, up: Axis, *, height: int = 240, left: float | None = None) -> None:
        longest = max((len(text) for _, text in up.labels), default=0)
        self.left = 12 + _LETTER * longest + (16 if up.name else 0) if left is None else left
        self.right, self.top, self.bottom = WIDTH - 12.0, 10.0, height - 36.0
        self.across, self.up, self.height = across, up, height
        self._parts: list[str] = []
        self._hatches: set[int] = set()
        self._key: list[tuple[str, str]] = []
        self._draw_axes()

    def x(self, value: float) -> float:
        """Where a number of the horizontal axis is."""
        return self.left + self.across.place(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Where a number of the vertical axis is."""
        return self.bottom - self.up.place(value) * (self.bottom - self.top)

    def _draw_axes(self) -> None:
        for value, text in self.across.labels:
            x = self.x(value)
            self._add(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{self.top}" y2="{self.bottom}"/>')
            self.text(x, self.bottom + 13, text, "middle")
        for value, text in self.up.labels:
            y = self.y(value)
            self._add(
                f'<line class="grid" x1="{self.left:.1f}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            self.text(self.left - 5, y + 3.5, text, "end")
        self.text((self.left + self.right) / 2, self.height - 7, self.across.name, "middle")
        if self.up.name:
            middle = (self.top + self.bottom) / 2
            turned = f'transform="rotate(-90 11 {middle:.1f})"'
            self._add(
                f'<text x="11" y="{middle:.1f}" text-anchor="middle" {turned}>{shown(self.up.name)}</text>'
            )

    def _add(self, part: str) -> None:
        self._parts.append(part)

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """Words at a place of the picture."""
        self._add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown(words)}</text>')

    def upright(self, value: float, style: str = "mark") -> None:
        """A line from the bottom to the top."""
        x = self.x(value)
        self._add(f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{self.top}" y2="{self.bottom}"/>')

    def level(self, value: float, words: str) -> None:
        """A line from the left to the right, with its name above its end."""
        y = self.y(value)
        self._add(f'<line class="mark" x1="{self.left:.1f}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        self.text(self.right - 2, y - 4 if y > self.top + 14 else y + 12, words, "end")

    def bar(self, low: float, high: float, start: float, end: float, k: int) -> None:
        """A bar over a piece of the horizontal axis, between two numbers of the vertical one."""
        if start == end:
            return
        self._hatches.add(k)
        x, y = self.x(low), min(self.y(start), self.y(end))
        width, height = self.x(high) - x, abs(self.y(end) - self.y(start))
        box = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
        self._add(f'<rect class="fill c{k}" {box}/><rect class="edge c{k}" fill="url(#HATCH{k})" {box}/>')

    def line(self, points: Iterable[tuple[float, float]], k: int, style: str = "") -> None:
        """A line through points, in a colour with its dashes; ``style`` has another in their place."""
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        dashes = f' stroke-dasharray="{_LINES[k % COLOURS]}"' if _LINES[k % COLOURS] and not style else ""
        self._add(f'<polyline class="{style or f"line c{k % COLOURS}"}" points="{path}"{dashes}/>')

    def region(self, points: Any, starts: Any, k: int) -> None:
        """A polygon, perhaps with holes: the outlines one after the other, and where each begins."""
        rings = [points[a:b] for a, b in pairwise(starts)]
        outline = "".join(
            "M" + "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in ring.tolist()) + "Z"
            for ring in rings
        )
        self._add(f'<path class="region c{k % COLOURS}" d="{outline}"/>')

    def between(self, x: float, low: float, high: float, k: int) -> None:
        """An upright line between two numbers, with ends: an interval."""
        at, y1, y2 = self.x(x), self.y(low), self.y(high)
        ends = "".join(f"M{at - 3:.1f} {y:.1f}h6" for y in (y1, y2))
        self._add(f'<path class="line c{k}" d="M{at:.1f} {y1:.1f}V{y2:.1f}{ends}"/>')

    def point(self, x: float, y: float, k: int, size: float = 3.5) -> None:
        """A marker of the k-th shape and colour."""
        self._add(marker(self.x(x), self.y(y), k, size))

    def ring(self, x: float, y: float) -> None:
        """A ring around a point."""
        self._add(f'<circle class="ring" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="6.5"/>')

    def explain(self, kind: Literal["marker", "bar", "line", "ring"], k: int, words: str) -> None:
        """Say below the picture what a shape stands for."""
        drawn = {
            "marker": marker(8, 7, k, 4.5),
            "bar": f'<rect class="fill c{k}" x="1" y="2" width="14" height="10"/>'
            f'<rect class="edge c{k}" fill="url(#HATCH{k})" x="1" y="2" width="14" height="10"/>',
            "line": f'<path class="line c{k % COLOURS}" stroke-dasharray="{_LINES[k % COLOURS] or "none"}" '
            f'd="M0 7H16"/>{marker(8, 7, k, 3.5)}',
            "ring": '<circle class="ring" cx="8" cy="7" r="6"/>',
        }[kind]
        self._key.append((drawn, words))

    def svg(self, name: str, description: str) -> str:
        """The picture as an element, with its hatches, whose ids begin with the name, and its key."""
        patterns = "".join(_hatch(f"{name}-{k}", k) for k in sorted(self._hatches))
        body = "".join(self._parts).replace("#HATCH", f"#{name}-")
        drawn = (
            f'<svg viewBox="0 0 {WIDTH} {self.height}" role="img" aria-labelledby="{name}-says">'
            f'<title id="{name}-says">{escape(description)}</title>'
            f"{f'<defs>{patterns}</defs>' if patterns else ''}{body}</svg>"
        )
        entries = [
            f'<li><svg viewBox="0 0 16 14" aria-hidden="true">{shape}</svg> {escape(words)}</li>'
            for shape, words in self._key
        ]
        key = "".join(entries).replace("#HATCH", f"#{name}-")
        return drawn + (f'<ul class="key">{key}</ul>' if key else "")


def marker(x: float, y: float, k: int, size: float) -> str:
    """A circle, triangle, square, diamond, turned triangle or cross."""
    s, shape = size, k % COLOURS
    if shape == 0:
        return f'<circle class="point c0" cx="{x:.1f}" cy="{y:.1f}" r="{s}"/>'
    outline = (
        "",
        f"M{x:.1f} {y - 1.2 * s:.1f}l{1.15 * s:.1f} {2.1 * s:.1f}h{-2.3 * s:.1f}z",
        f"M{x - 0.9 * s:.1f} {y - 0.9 * s:.1f}h{1.8 * s:.1f}v{1.8 * s:.1f}h{-1.8 * s:.1f}z",
        f"M{x:.1f} {y - 1.3 * s:.1f}l{1.3 * s:.1f} {1.3 * s:.1f}l{-1.3 * s:.1f} {1.3 * s:.1f}"
        f"l{-1.3 * s:.1f} {-1.3 * s:.1f}z",
        f"M{x:.1f} {y + 1.2 * s:.1f}l{1.15 * s:.1f} {-2.1 * s:.1f}h{-2.3 * s:.1f}z",
        f"M{x - 0.4 * s:.1f} {y - 1.2 * s:.1f}h{0.8 * s:.1f}v{0.8 * s:.1f}h{0.8 * s:.1f}v{0.8 * s:.1f}"
        f"h{-0.8 * s:.1f}v{0.8 * s:.1f}h{-0.8 * s:.1f}v{-0.8 * s:.1f}h{-0.8 * s:.1f}v{-0.8 * s:.1f}"
        f"h{0.8 * s:.1f}z",
    )[shape]
    return f'<path class="point c{shape}" d="{outline}"/>'


def _hatch(name: str, k: int) -> str:
    """What fills the bars of a colour: nothing, strokes, strokes the other way, or dots."""
    strokes = ("", "M0 6L6 0", "M0 0L6 6", "M3 2v2", "M0 3h6", "M3 0v6")[k % COLOURS]
    return (
        f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path class="hatch c{k % COLOURS}" d="{strokes}"/></pattern>'
    )
