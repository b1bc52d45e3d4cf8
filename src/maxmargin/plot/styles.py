# SPDX-License-Identifier: BSD-3-Clause
"""What the pictures share: lines and markers that differ without colours, and the Axes to draw into."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

# Line styles and markers tell lines apart; the colours (Okabe and Ito) only help.
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

POINTS = (("o", "white"), ("^", "0.25"), ("s", "0.6"), ("D", "white"), ("v", "0.25"), ("P", "0.6"))
"""Marker and face of the rows of each class."""
HATCHES = ("", "///", "xxx", "...")
GREYS = ("1.0", "0.88", "0.94", "0.82", "0.97", "0.85")


def line(k: int) -> dict[str, Any]:
    """The style of the k-th line."""
    return {
        "linestyle": _LINES[k % len(_LINES)],
        "marker": _MARKERS[k % len(_MARKERS)],
        "color": _COLOURS[k % len(_COLOURS)],
        "markerfacecolor": "white",
        "markersize": 5,
        "linewidth": 1.4,
    }


def axes_or_new(ax: Axes | None) -> Axes:
    """The Axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    _, new = pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")
    return new


def tidy(ax: Axes) -> None:
    """A light grid below the data, and no frame where there is no axis."""
    ax.grid(color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def legend_below(ax: Axes) -> None:
    """A legend that hides no data: below the horizontal axis."""
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
