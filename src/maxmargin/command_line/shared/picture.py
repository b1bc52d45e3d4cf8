# SPDX-License-Identifier: BSD-3-Clause
"""Pictures that commands write; that of ``compare``: relative gap against seconds, one line per solver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import maxmargin
from maxmargin.command_line.shared.answer import Failure

_LOWEST = 1e-16
"""The smallest gap that is drawn: a logarithmic axis has no place for 0."""

End = tuple[str, str, float, float]
"""The name, the colour and the last point of a line."""


def draw(path: Path, title: str, runs: dict[str, maxmargin.Trace], tol: float) -> None:
    """Write the picture, PNG or SVG by the suffix, whole or not at all."""
    figure, axes = new_figure(8.4, 4.8, title)
    ends = [_line(axes, name, trace, k) for k, (name, trace) in enumerate(runs.items())]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("time, certificates included (seconds)")
    axes.set_ylabel("certified relative gap")
    if tol > 0:
        axes.axhline(tol, color="0.45", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            f"gap to reach: {tol:g}",
            (0.0, tol),
            xycoords=("axes fraction", "data"),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=8.5,
            color="0.35",
        )
    _limit_gaps(axes, runs, tol)
    _name_ends(axes, [end for end in ends if end is not None])
    write_picture(path, figure)


def new_figure(width: float, height: float, title: str) -> tuple[Any, Any]:
    """A figure of so many inches, and its axes, for a file and not for a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from maxmargin.plot.styles import tidy

    figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    axes.set_title(title, fontsize=11, loc="left")
    tidy(axes)
    return figure, axes


def check_picture(option: str, path: Path) -> None:
    """Refuse now what could not be drawn later."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise Failure(f"{option} must end in .png or .svg. Got {path} instead. Rename the picture.")


def write_picture(path: Path, figure: Any) -> None:
    """Write a figure, PNG or SVG by the suffix, whole or not at all, and close it."""
    import matplotlib
    from matplotlib import pyplot

    from maxmargin.files.whole import write_whole

    kind = path.suffix.lower().lstrip(".")
    # No date and no random ids: the same run gives the same file.
    matplotlib.rcParams["svg.hashsalt"] = "maxmargin"
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    write_whole(path, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=metadata))
    pyplot.close(figure)


def _line(axes: Any, name: str, trace: maxmargin.Trace, k: int) -> End | None:
    """The k-th line."""
    from maxmargin.plot.styles import line

    points = [
        (at.seconds, max(at.relative_gap, _LOWEST))
        for at in trace
        if at.seconds > 0 and 0 <= at.relative_gap < float("inf")
    ]
    if not points:
        return None
    xs, ys = zip(*points, strict=True)
    style = line(k) | {"linewidth": 1.8, "markevery": [len(xs) - 1]}
    axes.plot(xs, ys, zorder=3, **style)
    return name, style["color"], float(xs[-1]), float(ys[-1])


def _limit_gaps(axes: Any, runs: dict[str, maxmargin.Trace], tol: float) -> None:
    """Room above and below what is drawn; a gap above 1 says nothing that 1 does not say."""
    gaps = [at.relative_gap for trace in runs.values() for at in trace]
    gaps = [max(gap, _LOWEST) for gap in gaps if gap < float("inf")]
    low, high = min([*gaps, tol or 1.0, 0.1]), max([*gaps, 0.1])
    axes.set_ylim(0.4 * low, 1.6 * min(high, 1.0))


def _name_ends(axes: Any, ends: list[End]) -> None:
    """Each line's name beside its end, moved up where another name is in the way."""
    from maxmargin.plot.styles import letters

    axes.figure.canvas.draw()
    width, height = axes.bbox.width, axes.bbox.height
    placed: list[tuple[float, float]] = []
    for name, colour, x, y in sorted(ends, key=lambda end: end[3]):
        across, up = axes.transData.transform((x, y)) - (axes.bbox.x0, axes.bbox.y0)
        target = up
        for other_across, other_up in sorted(placed, key=lambda place: place[1]):
            if abs(across - other_across) < 0.3 * width and abs(target - other_up) < 0.055 * height:
                target = other_up + 0.055 * height
        placed.append((across, target))
        axes.annotate(
            name.replace("_", " "),
            (x, y),
            xytext=(9.0, (target - up) * 72.0 / axes.figure.dpi),
            textcoords="offset points",
            color=letters(colour),
            fontsize=10,
            va="center",
            annotation_clip=False,
            bbox={"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )
