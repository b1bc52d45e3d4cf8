# SPDX-License-Identifier: BSD-3-Clause
"""The picture of the results: suboptimality against seconds, one panel per problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.linear import Result
from benchmarks.panels import draw_panels, plot_fits, set_scales
from benchmarks.solvers import LIBLINEAR, LINEAR_SVC, OURS, QUALITIES, SGD

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
_LOWEST, _HIGHEST = 3e-8, 3.0


def draw(results: list[Result], path: Path) -> None:
    """Small multiples, in the order of the results."""
    draw_panels(
        results,
        path,
        _panel,
        measure="relative gap or suboptimality (no unit)",
        columns=4,
        size=(3.3, 3.1),
        legend=(*_LABELS.values(), _TRACE),
        legend_columns=3,
    )


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
        plot_fits(panel, seconds, reached, style, _LABELS[name])
    set_scales(panel, _LOWEST, _HIGHEST)
    panel.set_title(f"{result.data}, {result.loss.replace('_', ' ')}, C = {result.C:g}", fontsize=10)


def _say_outside(panel: Any, name: str, smallest: float) -> None:
    text = f"{name}: never below {smallest:.0e}"
    style = {"fontsize": 7, "ha": "right", "va": "top", "transform": panel.transAxes}
    panel.text(0.98, 0.98, text, **style)
