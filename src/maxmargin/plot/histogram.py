# SPDX-License-Identifier: BSD-3-Clause
"""The margins of all rows as a histogram: what is misclassified, what needs slack, what is at ease."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from maxmargin.plot.estimator_checks import check_classifier, check_labels
from maxmargin.plot.styles import MISCLASSIFIED, NO_LOSS, SLACK, axes_or_new, bars, legend_below, tidy

_BARS = 60
"""Bars of a histogram, at most."""


def margins(
    estimator: Any, X: Any, y: ArrayLike, ax: Axes | None = None, *, greyscale: bool = False
) -> Axes:
    """Draw how the margins ``y_i (<w, x_i> + b)`` of the rows are distributed; two classes, any X.

    Below 0 a row is misclassified, between 0 and 1 it needs slack; each part has its own colour and hatch.

    Parameters
    ----------
    estimator : fitted classifier
        LinearSVC, SVC, or a pipeline that ends in one.
    X, y : array
        Rows and labels, of the training data or of others.
    ax : Axes, optional
        Where to draw; by default a new figure.
    greyscale : bool
        Whether to do without colours.
    """
    classes = check_classifier(estimator)
    if len(classes) != 2:
        raise ValueError(
            f"A row has one margin where there are two classes. Got {len(classes)} instead. Train on two "
            "of them, or on one against the rest."
        )
    scores = np.asarray(estimator.decision_function(X), np.float64)
    labels = check_labels(classes, y, len(scores))
    values = np.where(labels == classes[1], scores, -scores)
    ax = axes_or_new(ax)
    wrong, slack = values <= 0, (values > 0) & (values < 1)
    parts = [values[wrong], values[slack], values[~wrong & ~slack]]
    words = ("at most 0: misclassified", "between 0 and 1: slack", "at least 1: no loss")
    colours, hatches = bars((MISCLASSIFIED, SLACK, NO_LOSS), greyscale)
    groups: Any
    _, _, groups = ax.hist(
        parts,
        bins=_edges(values).tolist(),
        stacked=True,
        color=colours,
        edgecolor="black",
        linewidth=0.6,
        label=[f"{name} ({len(part)})" for name, part in zip(words, parts, strict=True)],
    )
    for group, hatch in zip(groups, hatches, strict=True):
        for bar in group:
            bar.set_hatch(hatch)
    for place, style in ((0.0, "-"), (1.0, "--")):
        ax.axvline(place, color="black", linestyle=style, linewidth=1.2)
    ax.set_xlabel("margin y (<w, x> + b)")
    ax.set_ylabel("rows")
    tidy(ax)
    legend_below(ax)
    return ax


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of equal bars, 0 and 1 among them unless the margins spread too far for that."""
    low, high = min(values.min(), 0.0), max(values.max(), 1.0)
    width = next(
        (w for w in (0.05, 0.1, 0.25, 0.5, 1.0) if (high - low) / w <= _BARS), (high - low) / _BARS
    )
    return width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
