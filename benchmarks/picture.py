# SPDX-License-Identifier: BSD-3-Clause
"""The picture of the results: suboptimality against seconds, one panel per problem."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from benchmarks.linear import Result
from benchmarks.solvers import LIBLINEAR, LINEAR_SVC, OURS, QUALITIES, SGD
from benchmarks.solvers.base import MissingPackage

# Told apart by marker and line style; the colours (Okabe and Ito) only help.
_STYLES: dict[str, dict[str, Any]] = {
    OURS: {"marker": "o", "linestyle": "-", "color": "black", "linewidth": 1.8, "zorder": 5},
    LIBLINEAR: {"marker": "s", "linestyle": "--", "color": "#D55E00", "markerfacecolor": "white"},
    LINEAR_SVC: {"marker": "^", "linestyle": "-.", "color": "#0072B2", "markerfacecolor": "white"},
    SGD: {"marker": "x", "linestyle": ":", "color": "#009E73"},
}
_LABELS = {
    OURS: "maxmargin LinearSVC: gap that each fit proves",
    LIBLINEAR: "LIBLINEAR: true suboptimality",
    LINEAR_SVC: "scikit-learn LinearSVC: true suboptimality",
    SGD: "scikit-learn SGDClassifier: true suboptimality",
}
_TRACE = "maxmargin, one run certified after every step (slower for it)"
_COLUMNS = 4
_LOWEST, _HIGHEST = 3e-8, 3.0


def draw(results: list[Result], path: Path) -> None:
    """Small multiples, in the order of the results."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingPackage("matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(len(results), _COLUMNS)
    rows = math.ceil(len(results) / columns)
    figure, axes = pyplot.subplots(
        rows,
        columns,
        figsize=(3.3 * columns + 0.6, 3.1 * rows + 1.0),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    for panel in axes.flat[len(results) :]:
        panel.set_visible(False)
    for panel, result in zip(axes.flat, results, strict=False):
        _panel(panel, result)
    for panel in axes[:, 0]:
        panel.set_ylabel("relative gap or suboptimality (no unit)")
    for panel in axes.flat[max(0, len(results) - columns) :]:
        panel.set_xlabel("time (seconds)")
    entries: dict[str, Any] = {}
    for panel in axes.flat:
        handles, labels = panel.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    shown = [label for label in (*_LABELS.values(), _TRACE) if label in entries]
    figure.legend(
        [entries[label] for label in shown],
        shown,
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _panel(panel: Any, result: Result) -> None:
    for quality in QUALITIES:
        panel.axhline(quality, color="0.75", linewidth=0.8, zorder=0)
    if result.trace:
        seconds, gaps = zip(*result.trace, strict=True)
        panel.plot(seconds, gaps, color="0.55", linewidth=1.0, zorder=1, label=_TRACE)
    for name, style in _STYLES.items():
        runs = result.scores[name].best_per_setting()
        ours = name == OURS
        reached = [run.certified_gap if ours else run.suboptimality for run in runs]
        seconds = [run.seconds for run in runs]
        if min(reached) > _HIGHEST:
            _say_outside(panel, name, min(reached))
            continue
        points = {key: value for key, value in style.items() if key != "linestyle"}
        panel.plot(seconds, reached, markersize=5, linestyle="none", **points)
        line = {key: style[key] for key in ("color", "linestyle", "linewidth") if key in style}
        panel.plot(*front(seconds, reached), **line)
        panel.plot([], [], markersize=5, label=_LABELS[name], **style)  # for the legend
    panel.set_xscale("log")
    whole_decades(panel)
    panel.set_yscale("log")
    panel.set_ylim(_LOWEST, _HIGHEST)
    panel.set_title(f"{result.data}, {result.loss.replace('_', ' ')}, C = {result.C:g}", fontsize=10)
    panel.tick_params(labelsize=8)
    panel.grid(axis="x", which="major", color="0.9", linewidth=0.6)


def _say_outside(panel: Any, name: str, smallest: float) -> None:
    text = f"{name}: never below {smallest:.0e}"
    style = {"fontsize": 7, "ha": "right", "va": "top", "transform": panel.transAxes}
    panel.text(0.98, 0.98, text, **style)


def front(seconds: list[float], reached: list[float]) -> tuple[list[float], list[float]]:
    """The fits that no other fit of the same contestant beats in both time and quality."""
    front: list[tuple[float, float]] = []
    for time, quality in sorted(zip(seconds, reached, strict=True)):
        if not front or quality < front[-1][1]:
            front.append((time, quality))
    return [time for time, _ in front], [quality for _, quality in front]


def whole_decades(panel: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = panel.get_xlim()
    panel.set_xlim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    panel.xaxis.set_major_locator(LogLocator(numticks=10))
    panel.xaxis.set_minor_formatter(NullFormatter())
