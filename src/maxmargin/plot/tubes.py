# SPDX-License-Identifier: BSD-3-Clause
"""What a regressor predicts, and the tube within which that costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from maxmargin.plot.estimator_checks import columns_of, last_step
from maxmargin.plot.styles import axes_or_new, grounds, legend_below, points, tidy

_POINTS = 400
"""Places along the horizontal axis at which a regressor is asked: its curve is smooth then."""
_ROOM = 0.05
"""The share of the span of the rows that is left free on either side."""


def tube(estimator: Any, X: Any, y: ArrayLike, ax: Axes | None = None, *, greyscale: bool = False) -> Axes:
    """Draw a regressor and its tube: rows within it cost nothing, and the others what they are outside by.

    Of one column, the picture shows y against it, and the prediction as a line. Of several, it shows y
    against what is predicted for each row.

    Parameters
    ----------
    estimator : fitted regressor
        LinearSVR, SVR, NuSVR, or a pipeline or a search that ends in one.
    X, y : array
        Rows and their numbers, of the training data or of others.
    ax : Axes, optional
        Where to draw; by default a new figure.
    greyscale : bool
        Whether to do without colours.
    """
    check_is_fitted(estimator)
    last = last_step(estimator)
    epsilon = getattr(last, "epsilon_" if hasattr(last, "nu") else "epsilon", None)
    if epsilon is None or not is_regressor(estimator):
        raise ValueError(
            "The estimator must be a fitted regressor with an epsilon. Got "
            f"{type(estimator).__name__} instead. LinearSVR, SVR and NuSVR have one, and pipelines that "
            "end in them. Classifiers are drawn by maxmargin.plot.support_vectors."
        )
    values, names = columns_of(X)
    numbers = np.asarray(y, np.float64)
    if numbers.shape != (len(values),):
        raise ValueError(
            f"y must hold one number for each of the {len(values)} rows of X. Got an array of shape "
            f"{numbers.shape} instead."
        )
    predicted = np.asarray(estimator.predict(X), np.float64)
    along_column = values.shape[1] == 1
    across = values[:, 0] if along_column else predicted
    low, high = float(across.min()), float(across.max())
    room = _ROOM * ((high - low) or 1.0)
    places = np.linspace(low - room, high + room, _POINTS)
    middle = places
    if along_column:
        asked = places[:, np.newaxis]
        middle = np.asarray(estimator.predict(type(X)(asked, columns=X.columns) if names else asked))
    ax = axes_or_new(ax)
    ax.fill_between(
        places,
        middle - epsilon,
        middle + epsilon,
        color=grounds(2, greyscale)[1],
        label=f"the tube, {epsilon:.3g} to either side",
        zorder=1,
    )
    ax.plot(places, middle, color="black", linewidth=1.6, label="predicted", zorder=2)
    outside = np.abs(numbers - predicted) > epsilon
    for k, (kind, which) in enumerate((("within the tube", ~outside), ("outside of it", outside))):
        label = f"{kind} ({np.count_nonzero(which)})"
        ax.scatter(across[which], numbers[which], label=label, **points(k, greyscale))
    ax.set_xlabel((names[0] if names else "x") if along_column else "predicted")
    ax.set_ylabel("y")
    tidy(ax)
    legend_below(ax)
    return ax
