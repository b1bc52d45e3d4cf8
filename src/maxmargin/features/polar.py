# SPDX-License-Identifier: BSD-3-Clause
"""Polar coordinates (000): what a circle separates, a line separates after this map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.chosen_columns import ColumnMap


class Polar(ColumnMap):
    """``(x, y) -> (r, angle)`` with ``x = r cos(angle)``, ``y = r sin(angle)`` and the angle in (-pi, pi].

    The origin, which has no angle, goes to (0, 0). r does not overflow where x and y do not.

    Parameters
    ----------
    columns : two names or indices, or None
        Which columns are x and y; r and the angle take their places. None: there are only these two.

    Examples
    --------
    >>> from maxmargin.features import Polar
    >>> Polar().fit_transform([[0.0, 2.0], [0.0, 0.0]])
    array([[2.        , 1.57079633],
           [0.        , 0.        ]])
    """

    def _learn(self, X: NDArray[Any]) -> None:
        super()._learn(X)
        if len(self.columns_) != 2:
            raise ValueError(
                f"Polar needs exactly 2 columns, x and y. Got {len(self.columns_)} instead. Name two of "
                "them in 'columns'."
            )

    def _map(self, X: NDArray[Any]) -> NDArray[Any]:
        # Adding 0 turns -0 into 0: the angle of (-0, 0) would be pi, that of (-1, -0) would be -pi.
        x, y = (X[:, self.columns_] + 0).T
        out = X.copy()
        out[:, self.columns_] = np.column_stack([np.hypot(x, y), np.arctan2(y, x)])
        return out

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        names = list(given)
        names[self.columns_[0]], names[self.columns_[1]] = "r", "angle"
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
