# SPDX-License-Identifier: BSD-3-Clause
"""The picture of the results with kernels: suboptimality against seconds, one panel per problem."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from benchmarks.kernel_rounds import Result
from benchmarks.picture import front, whole_decades
from benchmarks.solvers.base import MissingPackage
from benchmarks.solvers.kernel_contestants import INTELEX, LIBSVM, OURS, OURS_ONE_THREAD, SCIKIT

# Told apart by marker and line style; the colours (Okabe and Ito) only help.
_STYLES: dict[str, dict[str, Any]] = {
    OURS: {"marker": "o", "linestyle": "-", "color": "black", "linewidth": 1.8, "zorder": 5},
    OURS_ONE_THREAD: {"marker": "o", "linestyle": "-", "color": "0.45", "markerfacecolor": "white"},
    LIBSVM: {"marker": "s", "linestyle": "--", "color": "#D55E00", "markerfacecolor": "white"},
    SCIKIT: {"marker": "^", "linestyle": "-.", "color": "#0072B2", "markerfacecolor": "white"},
    INTELEX: {"marker": "x", "linestyle": ":", "color": "#009E73", "linewidth": 1.8},
}
_LOWEST, _HIGHEST = 1e-7, 10.0
_QUALITY = 1e-3


def draw(results: list[Result], path: Path) -> None:
    """Small multiples, in the order of the results."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingPackage("matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(len(results), 2 if len(results) == 4 else 3)
    rows = math.ceil(len(results) / columns)
    size = 3.6 * columns + 0.6, 3.3 * rows + 1.0
    figure, axes = pyplot.subplots(
        rows, columns, figsize=size, squeeze=False, sharey=True, layout="constrained"
    )
    for panel in axes.flat[len(results) :]:
        panel.set_visible(False)
    for panel, result in zip(axes.flat, results, strict=False):
        _panel(panel, result)
    for panel in axes[:, 0]:
        panel.set_ylabel("true suboptimality (P - P*) / P* (no unit)")
    for panel in axes.flat[max(0, len(results) - columns) :]:
        panel.set_xlabel("time (seconds)")
    entries: dict[str, Any] = {}
    for panel in axes.flat:
        handles, labels = panel.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    shown = [name for name in _STYLES if name in entries]
    figure.legend(
        [entries[name] for name in shown],
        shown,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _panel(panel: Any, result: Result) -> None:
    panel.axhline(_QUALITY, color="0.75", linewidth=0.8, zorder=0)
    for name, style in _STYLES.items():
        if name not in result.scores:
            continue
        runs = result.scores[name].best_per_setting()
        seconds = [run.seconds for run in runs]
        reached = [max(run.primal_error, _LOWEST) for run in runs]
        points = {key: value for key, value in style.items() if key != "linestyle"}
        panel.plot(seconds, reached, markersize=5, linestyle="none", **points)
        line = {key: style[key] for key in ("color", "linestyle", "linewidth") if key in style}
        panel.plot(*front(seconds, reached), **line)
        panel.plot([], [], markersize=5, label=name, **style)  # for the legend
    panel.set_xscale("log")
    whole_decades(panel)
    panel.set_yscale("log")
    panel.set_ylim(0.8 * _LOWEST, _HIGHEST)
    panel.set_title(result.title, fontsize=9)
    panel.tick_params(labelsize=8)
    panel.grid(axis="x", which="major", color="0.9", linewidth=0.6)
