# SPDX-License-Identifier: BSD-3-Clause
"""The few elements of HTML that a report is made of. Whatever is not ``Markup`` already is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from maxmargin.files.data.reading import printable
from maxmargin.report.drawing import shown


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def html(value: Any) -> Markup:
    """The value as HTML; a plain text is escaped."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def joined(*parts: Any) -> Markup:
    """The parts one after the other."""
    return Markup("".join(html(part) for part in parts))


def name(value: Any) -> Markup:
    """A name from a file or from data, kept apart from the direction in which the text around it runs."""
    return Markup(f"<bdi>{shown(value)}</bdi>")


def names(values: Sequence[Any], most: int) -> Markup:
    """Names with commas between them, not too many."""
    parts = [part for value in values[:most] for part in (", ", name(value))][1:]
    more = len(values) - most
    return joined(*parts, f" and {more} more" if more > 0 else "")


def sentence(text: str) -> Markup:
    """Words from a file that are longer than a name."""
    return html(printable(text))


def hash_text(text: str) -> Markup:
    """A fingerprint, which may be broken anywhere."""
    return Markup(f"<code>{escape(text)}</code>")


def paragraph(*parts: Any, quiet: bool = False) -> Markup:
    """A paragraph."""
    kind = ' class="quiet"' if quiet else ""
    return Markup(f"<p{kind}>{joined(*parts)}</p>")


def heading(text: str) -> Markup:
    """The title of a part of a section."""
    return Markup(f"<h3>{escape(text)}</h3>")


def listed(items: Iterable[str]) -> Markup:
    """A list with a point for each item."""
    return Markup(f"<ul>{''.join(f'<li>{sentence(item)}</li>' for item in items)}</ul>")


def code(*lines: str) -> Markup:
    """Lines to be typed."""
    return Markup(f"<pre><code>{'<br>'.join(map(sentence, lines))}</code></pre>")


def section(key: str, title: str, parts: Iterable[Markup]) -> Markup:
    """A part of the page, which its table of contents can point to."""
    start = f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{escape(title)}</h2>'
    return Markup(f"{start}\n{joined(*parts)}\n</section>\n")


def facts(rows: Iterable[tuple[str, Any]]) -> Markup:
    """A table of names and what they stand for."""
    lines = [f'<tr><th scope="row">{escape(key)}</th><td>{html(value)}</td></tr>\n' for key, value in rows]
    return Markup(f'<table class="facts"><tbody>{"".join(lines)}</tbody></table>')


def table(
    caption: str,
    headings: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    words: Sequence[int] = (),
    meanings: Sequence[str] = (),
    kind: str = "",
) -> Markup:
    """A table whose first column names its lines; the others are numbers, but for those in ``words``.

    Below each line can stand its meaning. A cell that is a pair brings its attributes along.
    """

    def side(column: int) -> str:
        return "" if column == 0 else ' class="words"' if column in words else ' class="number"'

    head = "".join(f'<th scope="col"{side(k)}>{html(words)}</th>' for k, words in enumerate(headings))
    lines = []
    for place, (first, *rest) in enumerate(rows):
        cells = [cell if isinstance(cell, tuple) else (side(k), cell) for k, cell in enumerate(rest, 1)]
        inner = "".join(f"<td{attributes}>{html(cell)}</td>" for attributes, cell in cells)
        below = ' class="explained"' if meanings else ""
        lines.append(f'<tr{below}><th scope="row">{html(first)}</th>{inner}</tr>\n')
        if meanings:
            lines.append(f'<tr><td colspan="{len(headings)}">{escape(meanings[place])}</td></tr>\n')
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>{''.join(lines)}</tbody>"
    opened = f'<div class="scroll" role="group" tabindex="0" aria-label="{escape(caption)}">'
    return Markup(
        f'<figure class="table"><figcaption>{escape(caption)}</figcaption>'
        f'{opened}<table class="{kind}">{inner}</table></div></figure>'
    )


def figure(picture: str, *caption: Any) -> Markup:
    """A picture with what it shows."""
    return Markup(f"<figure>{picture}<figcaption>{joined(*caption)}</figcaption></figure>\n")


def side_by_side(figures: Sequence[Markup], kind: str = "figures") -> Markup:
    """Pictures, or tables, that stand beside each other where there is room."""
    return Markup(f'<div class="{kind}">{"".join(figures)}</div>')


def bar(share: float, *, minus: bool = False) -> Markup:
    """A bar beside a number: its share of the longest."""
    kind = "bar minus" if minus else "bar"
    return Markup(f'<span class="{kind}" style="--share:{100 * share:.1f}"></span>')
