# SPDX-License-Identifier: BSD-3-Clause
"""Small multiples for both pictures: what fits reach against their seconds, one panel per problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


def draw_panels(
    results: list[Result],
    path: Path,
    draw: Callable[[Any, Result], None],
    *,
    measure: str,
    columns: int,
    size: tuple[float, float],
    legend: Iterable[str],
    legend_columns: int,
) -> None:
    """Panels of so many inches in the order of the results; ``legend`` has all labels that may occur."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(len(results), columns)
    rows = math.ceil(len(results) / columns)
    inches = size[0] * columns + 0.6, size[1] * rows + 1.0
    figure, axes = pyplot.subplots(
        rows, columns, figsize=inches, squeeze=False, sharey=True, layout="constrained"
    )
    for panel in axes.flat[len(results) :]:
        panel.set_visible(False)
    for panel, result in zip(axes.flat, results, strict=False):
        draw(panel, result)
    for panel in axes[:, 0]:
        panel.set_ylabel(measure)
    for panel in axes.flat[max(0, len(results) - columns) :]:
        panel.set_xlabel("time (seconds)")
    entries: dict[str, Any] = {}
    for panel in axes.flat:
        handles, labels = panel.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    shown = [label for label in legend if label in entries]
    figure.legend(
        [entries[label] for label in shown],
        shown,
        loc="outside lower center",
        ncols=legend_columns,
        frameon=False,
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def plot_fits(
    panel: Any, seconds: list[float], reached: list[float], style: dict[str, Any], label: str
) -> None:
    """A point for each fit of a contestant, and a line through those that no other one beats."""
    points = {key: value for key, value in style.items() if key != "linestyle"}
    panel.plot(seconds, reached, markersize=5, linestyle="none", **points)
    line = {key: style[key] for key in ("color", "linestyle", "linewidth") if key in style}
    panel.plot(*_front(seconds, reached), **line)
    panel.plot([], [], markersize=5, label=label, **style)  # for the legend


def set_scales(panel: Any, lowest: float, highest: float) -> None:
    """Logarithmic, whole decades of seconds."""
    from matplotlib.ticker import LogLocator, NullFormatter

    panel.set_xscale("log")
    low, high = panel.get_xlim()
    panel.set_xlim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    panel.xaxis.set_major_locator(LogLocator(numticks=10))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_yscale("log")
    panel.set_ylim(lowest, highest)
    panel.tick_params(labelsize=8)
    panel.grid(axis="x", which="major", color="0.9", linewidth=0.6)


def _front(seconds: list[float], reached: list[float]) -> tuple[list[float], list[float]]:
    """The fits that no other fit of the same contestant beats in both time and quality."""
    front: list[tuple[float, float]] = []
    for time, quality in sorted(zip(seconds, reached, strict=True)):
        if not front or quality < front[-1][1]:
            front.append((time, quality))
    return [time for time, _ in front], [quality for _, quality in front]
