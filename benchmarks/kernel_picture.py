# SPDX-License-Identifier: BSD-3-Clause
"""The picture of the results with kernels: suboptimality against seconds, one panel per problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.kernel_rounds import Result
from benchmarks.panels import draw_panels, plot_fits, set_scales
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
    columns = min(len(results), 2 if len(results) == 4 else 3)
    draw_panels(
        results,
        path,
        _panel,
        measure="true suboptimality (P - P*) / P* (no unit)",
        columns=columns,
        size=(3.6, 3.3),
        legend=_STYLES,
        legend_columns=columns,
    )


def _panel(panel: Any, result: Result) -> None:
    panel.axhline(_QUALITY, color="0.75", linewidth=0.8, zorder=0)
    for name, style in _STYLES.items():
        if name not in result.scores:
            continue
        runs = result.scores[name].best_per_setting()
        seconds = [run.seconds for run in runs]
        reached = [max(run.primal_error, _LOWEST) for run in runs]
        plot_fits(panel, seconds, reached, style, name)
    set_scales(panel, 0.8 * _LOWEST, _HIGHEST)
    panel.set_title(result.title, fontsize=9)
