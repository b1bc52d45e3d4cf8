# SPDX-License-Identifier: BSD-3-Clause
"""Classifiers of the plane: where they decide how, how wide the margin is, and which rows hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from maxmargin.plot.estimator_checks import check_classifier, check_labels, columns_of, last_step
from maxmargin.plot.styles import GREYS, POINTS, axes_or_new, legend_below
from maxmargin.proof.certificate import RowClass

_GRID = 240
"""Points in each direction at which the scores are computed."""
_LEVELS = {-1.0: "--", 0.0: "-", 1.0: "--"}
_RINGS = {
    RowClass.ON_MARGIN: ("o", "on the margin"),
    RowClass.INSIDE_MARGIN: ("s", "inside the margin"),
    RowClass.MISCLASSIFIED: ("D", "misclassified"),
}


def decision_boundary(estimator: Any, X: Any, y: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the rows of the plane, the boundary between the classes and, for two of them, the margin.

    The boundary, score 0, is a full line; the ends of the margin, scores -1 and 1, are dashed. The side of
    each class has its own grey.

    Parameters
    ----------
    estimator : fitted classifier
        LinearSVC, SVC, or a pipeline that ends in one.
    X : array or data frame of shape (n_samples, 2)
        The rows, as the estimator takes them.
    y : array
        Their labels.
    ax : Axes, optional
        Where to draw; by default a new figure.
    """
    classes = check_classifier(estimator)
    values, names = _plane(X)
    labels = check_labels(classes, y, len(values))
    ax = axes_or_new(ax)
    across, up = (_span(column) for column in values.T)
    corners = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    points = corners if names is None else type(X)(corners, columns=X.columns)
    if len(classes) == 2:
        scores = np.asarray(estimator.decision_function(points)).reshape(_GRID, _GRID)
        _draw_margin(ax, across, up, scores)
    else:
        codes = np.searchsorted(classes, estimator.predict(points)).reshape(_GRID, _GRID)
        _draw_regions(ax, across, up, codes, len(classes))
    for k, label in enumerate(classes):
        marker, face = POINTS[k % len(POINTS)]
        x1, x2 = values[labels == label].T
        style: Any = {"linewidths": 0.8, "edgecolors": "black", "zorder": 3}
        ax.scatter(x1, x2, s=26, marker=marker, c=face, label=f"class {label}", **style)
    ax.set_xlabel("x1" if names is None else names[0])
    ax.set_ylabel("x2" if names is None else names[1])
    legend_below(ax)
    return ax


def support_vectors(estimator: Any, X: Any, y: ArrayLike, ax: Axes | None = None) -> Axes:
    """Mark the support vectors, the rows with a multiplier above 0, by what they are to the solution.

    Two classes: a ring on the margin, a square inside it, a diamond where misclassified (004). More
    classes: a ring around every row that supports any of the boundaries.

    Parameters
    ----------
    estimator : fitted classifier
        LinearSVC, SVC, or a pipeline that ends in one.
    X, y : array
        The data it was trained on, in the same order.
    ax : Axes, optional
        Axes that hold the rows already; by default a new figure with ``decision_boundary``.
    """
    classes = check_classifier(estimator)
    values, _ = _plane(X)
    check_labels(classes, y, len(values))
    kinds = _row_classes(last_step(estimator), len(values))
    if ax is None:
        ax = decision_boundary(estimator, X, y)
    for kind, (marker, name) in _RINGS.items():
        x1, x2 = values[kinds == kind].T
        if not len(x1):
            continue
        text = name if len(classes) == 2 else "support vector"
        ring: Any = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.2, "zorder": 4}
        ax.scatter(x1, x2, s=110, marker=marker, label=f"{text} ({len(x1)})", **ring)
    legend_below(ax)
    return ax


def _plane(X: Any) -> tuple[NDArray[np.float64], list[str] | None]:
    values, names = columns_of(X)
    if values.shape[1] != 2:
        raise ValueError(
            f"Only data of 2 columns can be drawn in the plane. Got {values.shape[1]} instead. Train on "
            "two columns, or use maxmargin.plot.margins, which takes any number."
        )
    return values, names


def _span(column: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = column.min(), column.max()
    room = 0.08 * (high - low) or 1.0
    return np.linspace(low - room, high + room, _GRID)


def _draw_margin(ax: Axes, across: Any, up: Any, scores: NDArray[np.float64]) -> None:
    low, high = scores.min(), scores.max()
    ax.contourf(across, up, scores > 0, levels=[-0.5, 0.5, 1.5], colors=list(GREYS[:2]), zorder=0)
    levels = [level for level in _LEVELS if low < level < high]
    if levels:
        styles = [_LEVELS[level] for level in levels]
        lines = ax.contour(across, up, scores, levels=levels, linestyles=styles, colors="black", zorder=2)
        ax.clabel(lines, fmt="%g", fontsize=8)


def _draw_regions(ax: Axes, across: Any, up: Any, codes: NDArray[np.intp], count: int) -> None:
    greys = [GREYS[k % len(GREYS)] for k in range(count)]
    ax.contourf(across, up, codes, levels=np.arange(count + 1) - 0.5, colors=greys, zorder=0)
    for k in range(count):
        if 0 < np.count_nonzero(codes == k) < codes.size:
            ax.contour(across, up, codes == k, levels=[0.5], colors="black", linewidths=1.2, zorder=2)


def _row_classes(estimator: Any, count: int) -> NDArray[Any]:
    """The ``RowClass`` of every row; with several problems, only whether it supports one of them."""
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        raise ValueError(
            f"Support vectors are known to estimators of maxmargin. Got {type(estimator).__name__} "
            "instead. Fit LinearSVC or SVC, or a pipeline that ends in one."
        )
    if hasattr(certificate, "row_classes"):
        kinds = np.asarray(certificate.row_classes)
    elif hasattr(estimator, "support_"):
        kinds = np.zeros(estimator.shape_fit_[0], np.int8)
        kinds[estimator.support_] = RowClass.ON_MARGIN
    else:
        each = [certificate] if hasattr(certificate, "alpha") else certificate
        support = np.any([proof.alpha > 0 for proof in each], axis=0)
        kinds = np.where(support, RowClass.ON_MARGIN, RowClass.NOT_SUPPORT_VECTOR)
    if len(kinds) != count:
        raise ValueError(
            f"X must hold the {len(kinds)} rows that the estimator was trained on. Got {count} rows "
            "instead. Give the training data, in the same order."
        )
    return kinds
