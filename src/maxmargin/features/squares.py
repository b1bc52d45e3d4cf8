# SPDX-License-Identifier: BSD-3-Clause
"""Squares (003): for quantities of which both extremes are bad, or both are good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxmargin.features.chosen_columns import ColumnMap, beside


class Squares(ColumnMap):
    """Adds x^2 beside x: a linear function of both is any parabola, wherever its vertex lies.

    Parameters
    ----------
    columns : list of names or indices, or None
        The columns to square; None: all. Every column passes through as well.

    Examples
    --------
    >>> from maxmargin.features import Squares
    >>> Squares(columns=[1]).fit_transform([[5.0, 2.0], [7.0, 3.0]])
    array([[5., 2., 4.],
           [7., 3., 9.]])
    """

    def _map(self, X: Any) -> Any:
        chosen = X[:, self.columns_]
        return beside(X, chosen.multiply(chosen) if hasattr(chosen, "multiply") else chosen * chosen)

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        return [*given, *(f"{given[j]}^2" for j in self.columns_)]
