# SPDX-License-Identifier: BSD-3-Clause
"""What the pictures share: one palette, shapes that tell the same without colours, and room for legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotParams
from matplotlib.transforms import ScaledTranslation

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, which the colour-blind can tell apart. The k-th class and the k-th line
have the k-th colour in every picture of the library; the style sheet of reports has the first six."""
_GREYS = ("0.0", "0.45", "0.25", "0.6")
"""What lines have in the place of colours."""
# The numbers of colours, dashes and markers have few common factors: what has the colour of another line
# or class has another shape.
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)))
_LINE_MARKERS = ("o", "s", "^", "D", "v")
_CLASS_MARKERS = ("o", "^", "s", "D", "v", "P")
_CLASS_FACES = ("1.0", "0.25", "0.6", "0.8", "0.0")
"""The greys of points, which have dark edges."""
_CLASS_GROUNDS = ("1.0", "0.88", "0.94", "0.82", "0.97", "0.85")
"""The greys of regions."""
_TINT = 0.2
"""The share of its colour that a region has, of white the rest: rows stand out on it."""
_BAR_TINT = 0.55
"""The share of its colour that a bar or a band has: its hatch stands out on it."""
_LETTERS = 0.65
"""The share of its brightness that a colour keeps for letters: the lightest of them has a contrast of 5 on
white, where 4.5 is needed to read small ones."""

MISCLASSIFIED, SLACK, ON_MARGIN, NO_LOSS = 1, 4, 5, 0
"""The colours, by number, of what rows are to a solution."""
_HATCHES = {MISCLASSIFIED: "xxx", SLACK: "///", ON_MARGIN: "...", NO_LOSS: ""}
_HATCHED_GREYS = {MISCLASSIFIED: "0.6", SLACK: "0.8", ON_MARGIN: "0.92", NO_LOSS: "1.0"}

SMALL = 8.5
"""Points of the letters in legends: one size below those beside the axes."""
_GAP = 5.0
"""Points between an axis and the legend below it."""
_MOST_COLUMNS = 6
"""Columns of a legend: more names do not fit beside each other below one axis."""
_WIDEST = 1.12
"""How wide a legend may be, in widths of its axes: so much is free below the labels of the other axis."""


def line(k: int, greyscale: bool = False) -> dict[str, Any]:
    """The style of the k-th line."""
    colours = _GREYS if greyscale else COLOURS
    return {
        "linestyle": _LINES[k % len(_LINES)],
        "marker": _LINE_MARKERS[k % len(_LINE_MARKERS)],
        "color": colours[k % len(colours)],
        "markerfacecolor": "white",
        "markersize": 5,
        "linewidth": 1.4,
    }


def points(k: int, greyscale: bool = False) -> dict[str, Any]:
    """The style of the rows of the k-th class."""
    faces = _CLASS_FACES if greyscale else COLOURS
    return {
        "marker": _CLASS_MARKERS[k % len(_CLASS_MARKERS)],
        "color": faces[k % len(faces)],
        "edgecolors": "black",
        "linewidths": 0.8 if greyscale else 0.5,
        "s": 26,
        "zorder": 3,
    }


def grounds(count: int, greyscale: bool = False) -> list[str]:
    """The colours of the regions of so many classes."""
    if greyscale:
        return [_CLASS_GROUNDS[k % len(_CLASS_GROUNDS)] for k in range(count)]
    return [_mixed(COLOURS[k % len(COLOURS)], _TINT) for k in range(count)]


def bars(kinds: Sequence[int], greyscale: bool = False) -> tuple[list[str], list[str]]:
    """The colours and the hatches of bars or bands that stand for what rows are to a solution."""
    faces = [_HATCHED_GREYS[kind] if greyscale else _mixed(COLOURS[kind], _BAR_TINT) for kind in kinds]
    return faces, [_HATCHES[kind] for kind in kinds]


def _mixed(colour: str, share: float) -> str:
    """A colour on white."""
    red, green, blue = (share * part + 1.0 - share for part in to_rgb(colour))
    return to_hex((red, green, blue))


def letters(colour: str) -> str:
    """The colour of a line, dark enough for letters on white."""
    red, green, blue = (_LETTERS * part for part in to_rgb(colour))
    return to_hex((red, green, blue))


def axes_or_new(ax: Axes | None) -> Axes:
    """The Axes given, or those of a new figure; in both cases the figure makes room for a legend below.

    A figure that has no layout engine, and the margins that all figures have, is given the constrained one:
    without it the legend would be cut off, or lie on the next row of axes.
    """
    if ax is None:
        from matplotlib import pyplot

        _, new = pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")
        return new
    figure = ax.figure.figure if ax.figure is not None else None
    if isinstance(figure, Figure) and figure.get_layout_engine() is None and _has_usual_margins(figure):
        figure.set_layout_engine("constrained")
    return ax


def _has_usual_margins(figure: Figure) -> bool:
    """Whether nobody has said where the axes should lie."""
    return vars(figure.subplotpars) == vars(SubplotParams())


def tidy(ax: Axes) -> None:
    """A light grid below the data, and no frame where there is no axis."""
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def legend_below(ax: Axes) -> None:
    """A legend that hides nothing: below the horizontal axis and its label, as wide as the axes allow.

    What has the same name is named once.
    """
    handles, labels = ax.get_legend_handles_labels()
    named = dict(zip(labels[::-1], handles[::-1], strict=True))
    figure = ax.figure
    if not named or figure is None:
        return
    axis = ax.xaxis.get_tightbbox()
    down = _GAP + (max(ax.bbox.y0 - axis.y0, 0.0) * 72.0 / figure.dpi if axis is not None else 0.0)
    place = ax.transAxes + ScaledTranslation(0.0, -down / 72.0, figure.dpi_scale_trans)
    order = list(dict.fromkeys(labels))
    for most in range(min(len(order), _MOST_COLUMNS), 0, -1):
        legend = ax.legend(
            [named[label] for label in order],
            order,
            fontsize=SMALL,
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            bbox_transform=place,
            borderaxespad=0.0,
            ncols=math.ceil(len(order) / math.ceil(len(order) / most)),  # columns of equal length
            columnspacing=1.4,
            handletextpad=0.5,
            frameon=False,
        )
        if legend.get_window_extent().width <= _WIDEST * ax.bbox.width:
            return
