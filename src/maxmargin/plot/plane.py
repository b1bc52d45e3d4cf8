# SPDX-License-Identifier: BSD-3-Clause
"""Models of the plane: where they decide how, how wide the margin is, and which rows hold it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.contour import ContourSet
from numpy.typing import ArrayLike, NDArray

from maxmargin.plot.estimator_checks import check_classifier, check_labels, columns_of, last_step
from maxmargin.plot.styles import axes_or_new, grounds, legend_below, points
from maxmargin.proof.certificate import RowClass

_GRID = 240
"""Points in each direction at which the scores are computed."""
LEVELS = {-1.0: "--", 0.0: "-", 1.0: "--"}
"""The scores at which lines are drawn, and their dashes."""
_WIDTH = 1.4
"""Points of these lines."""
_CONTOUR: dict[str, Any] = {"colors": "black", "linewidths": _WIDTH, "zorder": 2}
RING: dict[str, Any] = {
    "facecolors": "none",
    "edgecolors": "black",
    "linewidths": 1.2,
    "s": 110,
    "zorder": 4,
}
"""The style of what marks a row."""
_BOUNDARY, _MARGIN = "boundary", "margin"
RINGS = {
    RowClass.ON_MARGIN: ("o", "on the margin"),
    RowClass.INSIDE_MARGIN: ("s", "inside the margin"),
    RowClass.MISCLASSIFIED: ("D", "misclassified"),
}
"""How rows are marked, and what that is called."""


def decision_boundary(
    estimator: Any, X: Any, y: ArrayLike, ax: Axes | None = None, *, greyscale: bool = False
) -> Axes:
    """Draw the rows of the plane, the boundary between the classes and, for two of them, the margin.

    The boundary, score 0, is a full line; the ends of the margin, scores -1 and 1, are dashed. Each class
    has a colour, which its side has too, and a shape.

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
    greyscale : bool
        Whether to do without colours.
    """
    ax = _draw_plane(estimator, X, y, ax, greyscale)
    legend_below(ax)
    return ax


def support_vectors(
    estimator: Any, X: Any, y: ArrayLike, ax: Axes | None = None, *, greyscale: bool = False
) -> Axes:
    """Draw ``decision_boundary`` and mark the support vectors.

    Two classes: a ring on the margin, a square inside it, a diamond where misclassified (004), as the
    ``row_classes`` of the certificate say. More classes: a ring around every row that supports any of the
    boundaries, by a multiplier above 0.

    Parameters
    ----------
    estimator : fitted classifier
        LinearSVC, SVC, or a pipeline that ends in one.
    X, y : array
        The data it was trained on, in the same order.
    ax : Axes, optional
        Where to draw; by default a new figure. To Axes that hold a picture of ``decision_boundary``, the
        marks are added.
    greyscale : bool
        Whether to do without colours.
    """
    classes = check_classifier(estimator)
    values, _ = read_plane(X)
    check_labels(classes, y, len(values))
    kinds = _row_classes(last_step(estimator), len(values))
    if ax is None or _BOUNDARY not in ax.get_legend_handles_labels()[1]:
        ax = _draw_plane(estimator, X, y, ax, greyscale)
    for kind, (marker, name) in RINGS.items():
        x1, x2 = values[kinds == kind].T
        if not len(x1):
            continue
        text = name if len(classes) == 2 else "support vector"
        ax.scatter(x1, x2, marker=marker, label=f"{text} ({len(x1)})", **RING)
    legend_below(ax)
    return ax


def region(estimator: Any, X: Any, ax: Axes | None = None, *, greyscale: bool = False) -> Axes:
    """Draw the rows of the plane and the region of one class; support vectors have a ring.

    Parameters
    ----------
    estimator : fitted OneClassSVM or LinearOneClassSVM
        Or a pipeline that ends in one.
    X : array or data frame of shape (n_samples, 2)
        The rows, as the estimator takes them; those of the fit, in the same order, for the rings.
    ax : Axes, optional
        Where to draw; by default a new figure.
    greyscale : bool
        Whether to do without colours.
    """
    one_class = last_step(estimator)
    if not (hasattr(one_class, "offset_") and hasattr(one_class, "score_samples")):
        raise ValueError(
            "The estimator must be a fitted OneClassSVM, or a pipeline that ends in one. Got "
            f"{type(one_class).__name__} instead. decision_boundary draws classifiers."
        )
    values, names = read_plane(X)
    ax = axes_or_new(ax)
    inside = np.asarray(estimator.predict(X)) == 1
    for k, (name, some) in enumerate((("outside", ~inside), ("inside", inside))):
        ax.scatter(*values[some].T, label=f"{name} ({np.count_nonzero(some)})", **points(k, greyscale))
    ax.set_xlabel("x1" if names is None else names[0])
    ax.set_ylabel("x2" if names is None else names[1])
    grid = Grid.around(values)
    corners = grid.corners if names is None else type(X)(grid.corners, columns=X.columns)
    scores = np.asarray(estimator.decision_function(corners))
    ends = [min(float(scores.min()), 0.0) - 1.0, 0.0, max(float(scores.max()), 0.0) + 1.0]
    place = grid.across, grid.up, grid.shaped(scores)
    ax.contourf(*place, levels=ends, colors=grounds(2, greyscale), zorder=0)
    if scores.min() < 0.0 < scores.max():
        ax.contour(*place, levels=[0.0], **_CONTOUR)
        name_lines(ax, [0.0])
    proof: Any = getattr(one_class, "certificate_", None)
    support = getattr(one_class, "support_", None if proof is None else proof.support)
    trained_on = getattr(one_class, "shape_fit_", (None if proof is None else len(proof.alpha),))[0]
    if len(values) == trained_on and support is not None:
        x1, x2 = values[support].T
        ax.scatter(x1, x2, marker="o", label=f"support vector ({len(x1)})", **RING)
    legend_below(ax)
    return ax


def _draw_plane(estimator: Any, X: Any, y: ArrayLike, ax: Axes | None, greyscale: bool) -> Axes:
    """What both pictures have, but for the legend."""
    classes = check_classifier(estimator)
    values, names = read_plane(X)
    labels = check_labels(classes, y, len(values))
    ax = axes_or_new(ax)
    draw_rows(ax, values, labels, classes, names, greyscale)
    grid = Grid.around(values)
    corners = grid.corners if names is None else type(X)(grid.corners, columns=X.columns)
    if len(classes) == 2:
        drawn = draw_sides(ax, grid, np.asarray(estimator.decision_function(corners)), greyscale)
        name_lines(ax, [level for lines in drawn[1:] for level in lines.levels])
    else:
        codes = np.searchsorted(classes, estimator.predict(corners))
        _draw_regions(ax, grid, codes, len(classes), greyscale)
        name_lines(ax, [0.0])
    return ax


def read_plane(X: Any) -> tuple[NDArray[np.float64], list[str] | None]:
    """The rows, which have two columns, and the names of these if there are any."""
    values, names = columns_of(X)
    if values.shape[1] != 2:
        raise ValueError(
            f"Only data of 2 columns can be drawn in the plane. Got {values.shape[1]} instead. Train on "
            "two columns, or use maxmargin.plot.margins, which takes any number."
        )
    return values, names


@dataclass(frozen=True)
class Grid:
    """The part of the plane that a picture shows, and the points at which a classifier is asked there."""

    across: NDArray[np.float64]
    up: NDArray[np.float64]

    @classmethod
    def around(cls, values: NDArray[np.float64], points: int = _GRID) -> Grid:
        """The rows and a little room on every side, with so many points in each direction."""
        return cls(*(_span(column, points) for column in values.T))

    @property
    def corners(self) -> NDArray[np.float64]:
        """The points, one after the other."""
        return np.stack(np.meshgrid(self.across, self.up), axis=-1).reshape(-1, 2)

    def shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        """A value for every point, as contours take them."""
        return values.reshape(len(self.up), len(self.across))


def _span(column: NDArray[np.float64], points: int) -> NDArray[np.float64]:
    low, high = column.min(), column.max()
    room = 0.08 * (high - low) or 1.0
    return np.linspace(low - room, high + room, points)


def draw_rows(
    ax: Axes,
    values: NDArray[np.float64],
    labels: NDArray[Any],
    classes: NDArray[Any],
    names: list[str] | None,
    greyscale: bool,
) -> None:
    """The rows, each with the colour and the shape of its class, and the names of the columns."""
    for k, label in enumerate(classes):
        ax.scatter(*values[labels == label].T, label=f"class {label}", **points(k, greyscale))
    ax.set_xlabel("x1" if names is None else names[0])
    ax.set_ylabel("x2" if names is None else names[1])


def draw_sides(ax: Axes, grid: Grid, scores: NDArray[np.float64], greyscale: bool) -> list[ContourSet]:
    """The sides of two classes and, as far as they are to be seen, the boundary and the margin's ends."""
    low, high, scores = float(scores.min()), float(scores.max()), grid.shaped(scores)
    ends = [min(low, 0.0) - 1.0, 0.0, max(high, 0.0) + 1.0]
    drawn: list[ContourSet] = [
        ax.contourf(grid.across, grid.up, scores, levels=ends, colors=grounds(2, greyscale), zorder=0)
    ]
    levels = [level for level in LEVELS if low < level < high]
    if levels:
        styles = [LEVELS[level] for level in levels]
        drawn.append(ax.contour(grid.across, grid.up, scores, levels=levels, linestyles=styles, **_CONTOUR))
    return drawn


def name_lines(ax: Axes, levels: Iterable[float]) -> None:
    """Names for the legend, of the lines at these scores."""
    for level in sorted({abs(level) for level in levels}):
        name = _MARGIN if level else _BOUNDARY
        ax.plot([], [], color="black", linewidth=_WIDTH, linestyle=LEVELS[level], label=name)


def _draw_regions(ax: Axes, grid: Grid, codes: NDArray[np.intp], count: int, greyscale: bool) -> None:
    """The regions of several classes, and the lines between them."""
    from scipy.ndimage import gaussian_filter

    codes, colours = grid.shaped(codes), np.array([to_rgb(c) for c in grounds(count, greyscale)])
    ends: Any = (grid.across[0], grid.across[-1], grid.up[0], grid.up[-1])
    ax.imshow(colours[codes], origin="lower", extent=ends, aspect="auto", zorder=0)
    for k in range(count):
        if 0 < np.count_nonzero(codes == k) < codes.size:
            # Without the filter, a slanting line would climb from point to point in stairs.
            share = gaussian_filter((codes == k).astype(np.float64), sigma=1.0)
            ax.contour(grid.across, grid.up, share, levels=[0.5], **_CONTOUR)


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
