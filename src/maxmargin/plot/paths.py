# SPDX-License-Identifier: BSD-3-Clause
"""One problem along C: coefficients, classes of rows, or proofs."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from maxmargin.along_costs.model_path import Path
from maxmargin.along_costs.other_costs import can_combine
from maxmargin.plot.styles import (
    MISCLASSIFIED,
    ON_MARGIN,
    SLACK,
    axes_or_new,
    bars,
    legend_below,
    line,
    tidy,
)
from maxmargin.types import Indices

_NAMED = 6
"""This many coefficients have a name in the legend."""
_FLOOR = 1e-16
"""The smallest gap that is drawn: a logarithmic axis has no place for 0."""
_POINTS = 1000
"""Values of C at which the bound between two fits is drawn."""


def path(
    models: Path,
    ax: Axes | None = None,
    *,
    show: Literal["coefficients", "rows", "gaps"] = "coefficients",
    greyscale: bool = False,
) -> Axes:
    """Draw what ``maxmargin.path`` found, against C.

    Parameters
    ----------
    models : Path
        The answer of ``maxmargin.path``.
    ax : Axes, optional
        Where to draw; by default a new figure.
    show : "coefficients", "rows" or "gaps"
        The entries of w, of which the six largest are named; the share of the rows on the margin, inside
        it and misclassified; or the certified relative gaps, and what they are at most at every C between.
    greyscale : bool
        Whether to do without colours.
    """
    drawers = {"coefficients": _coefficients, "rows": _rows, "gaps": _gaps}
    if show not in drawers:
        names = ", ".join(map(repr, drawers))
        raise ValueError(f"show must be one of {names}. Got {show!r} instead.")
    if not isinstance(models, Path):
        raise ValueError(
            f"models must be the answer of maxmargin.path. Got {type(models).__name__} instead. "
            "path(problem, Cs) makes it."
        )
    ax = axes_or_new(ax)
    order = np.argsort(models.C)
    drawers[show](ax, models, order, greyscale)
    ax.set_xscale("log")
    ax.set_xlabel("C")
    tidy(ax)
    legend_below(ax)
    return ax


def _coefficients(ax: Axes, models: Path, order: Indices, greyscale: bool) -> None:
    w = np.array([models[int(k)].w for k in order])
    largest = np.argsort(-np.abs(w).max(axis=0), kind="stable")
    for j in largest[_NAMED:]:
        ax.plot(models.C[order], w[:, j], color="0.75", linewidth=0.8)
    for k, j in enumerate(largest[:_NAMED]):
        ax.plot(models.C[order], w[:, j], label=f"w{j + 1}", **line(k, greyscale))
    ax.set_ylabel("coefficients w")


def _rows(ax: Axes, models: Path, order: Indices, greyscale: bool) -> None:
    classes = [models[int(k)].certificate.row_classes for k in order]
    shares = np.array([np.bincount(kinds, minlength=4) / len(kinds) for kinds in classes])
    names = ("misclassified", "inside the margin", "on the margin")
    colours, hatches = bars((MISCLASSIFIED, SLACK, ON_MARGIN), greyscale)
    bands = ax.stackplot(models.C[order], shares[:, :0:-1].T, labels=names, colors=colours)
    for band, hatch in zip(bands, hatches, strict=True):
        band.set_hatch(hatch)
        band.set_edgecolor("black")
    ax.set_ylabel("share of the rows")
    ax.set_ylim(0.0)


def _gaps(ax: Axes, models: Path, order: Indices, greyscale: bool) -> None:
    ax.plot(
        models.C[order], np.maximum(models.gaps[order], _FLOOR), label="at these C", **line(0, greyscale)
    )
    if len(models) > 1 and can_combine(models.problem):
        C = np.geomspace(models.C[order[0]], models.C[order[-1]], _POINTS)
        # The ends of a geometric sequence are rounded.
        bounds = [models.gap_at(float(at)) for at in np.clip(C, models.C.min(), models.C.max())]
        ax.plot(C, np.maximum(bounds, _FLOOR), color="0.5", linewidth=1.0, label="between, at most")
    ax.set_yscale("log")
    ax.set_ylabel("certified relative gap")
