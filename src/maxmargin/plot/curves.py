# SPDX-License-Identifier: BSD-3-Clause
"""How runs converge: the certified gap, or the suboptimality, against seconds or steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from maxmargin.plot.estimator_checks import last_step
from maxmargin.plot.styles import axes_or_new, legend_below, line, tidy
from maxmargin.proof.model import Trace

_LOWEST = 1e-16
"""The smallest gap that is drawn: a logarithmic axis has no place for 0."""
_MARKED = 12
"""About this many points of a line have a marker."""


def convergence(
    runs: Any,
    ax: Axes | None = None,
    *,
    against: Literal["seconds", "steps"] = "seconds",
    best: float | Mapping[str, float] | None = None,
    greyscale: bool = False,
) -> Axes:
    """Draw how the certificates of one or several runs tightened.

    Parameters
    ----------
    runs : fitted estimator, Model, Trace, a list of these, or a dict of names and these
        An estimator of several classes has one line per problem.
    ax : Axes, optional
        Where to draw; by default a new figure.
    against : "seconds" or "steps"
        The horizontal axis.
    best : float, or dict of names and floats, optional
        The best value that is known. With it the relative suboptimality ``(primal - best) / |best|`` of the
        best point so far is drawn, and not the certified gap.
    greyscale : bool
        Whether to do without colours.
    """
    if against not in ("seconds", "steps"):
        raise ValueError(f"against must be 'seconds' or 'steps'. Got {against!r} instead.")
    traces = _traces(runs)
    ax = axes_or_new(ax)
    for k, (name, trace) in enumerate(traces.items()):
        if not len(trace):
            raise ValueError(
                f"The trace {name!r} is empty, so there is nothing to draw. It belongs to a run that ended "
                "before its first certificate: give it more time or steps."
            )
        heights = trace.column("relative_gap")
        if best is not None:
            value = best[name] if isinstance(best, Mapping) else best
            heights = (trace.column("primal") - value) / abs(value)
        places = trace.column("seconds" if against == "seconds" else "step")
        shown = np.isfinite(heights)
        style = line(k, greyscale) | {"markevery": max(1, int(shown.sum()) // _MARKED)}
        ax.plot(places[shown], np.maximum(heights[shown], _LOWEST), label=name, **style)
    ax.set_yscale("log")
    if against == "seconds":
        ax.set_xscale("log")
    ax.set_xlabel("time (seconds)" if against == "seconds" else "steps of the solver")
    ax.set_ylabel("certified relative gap" if best is None else "relative suboptimality")
    tidy(ax)
    if len(traces) > 1 or isinstance(runs, Mapping):
        legend_below(ax)
    return ax


def _traces(runs: Any) -> dict[str, Trace]:
    if isinstance(runs, Mapping):
        return {
            str(name) if len(each) == 1 else f"{name}, {label}": trace
            for name, run in runs.items()
            for each in [_traces(run)]
            for label, trace in each.items()
        }
    if isinstance(runs, Trace):
        return {"run": runs}
    found = getattr(runs, "trace", None)
    if found is None:
        found = getattr(last_step(runs), "trace_", None)
    if isinstance(found, Trace):
        return {"run": found}
    if found is None and isinstance(runs, Sequence) and not isinstance(runs, str):
        found = [trace for run in runs for trace in _traces(run).values()]
    if not found:
        raise ValueError(
            "runs must be a fitted LinearSVC or SVC, a Model, a Trace, a list of these or a dict of names "
            f"and these. Got {type(runs).__name__} instead. Fit the estimator first."
        )
    return {str(k): trace for k, trace in enumerate(found)}
