# SPDX-License-Identifier: BSD-3-Clause
"""Squares (003): for quantities of which both extremes are bad, or both are good."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Annotated, Any

import numpy as np
from scipy import sparse

from maxmargin.features.chosen_columns import ColumnMap, Columns, beside
from maxmargin.tools.parameters import Check, wrong


def _is_center(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return np.ndim(value) == 1 and len(value) > 0 and all(map(_is_center, value))
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


Center = Annotated[float | Sequence[float], Check(_is_center, "a number, or one for each of 'columns'")]


class Squares(ColumnMap):
    """Adds (x - center)^2 beside x: a linear function of both is any parabola, wherever its vertex lies.

    With a center that is known, such as 37 degrees for a body's temperature, the square alone is what both
    extremes have in common, and one weight says that both are bad. It is good for the numbers, too, since x
    and x^2 far from 0 are nearly multiples of each other.

    Parameters
    ----------
    columns : list of names or indices, or None
        The columns to square; None: all. Every column passes through as well.
    center : float or list of floats
        What is subtracted before the square: one number, or one for each of ``columns``. Sparse rows then
        have as many stored values more as there are squares.

    Examples
    --------
    >>> from maxmargin.features import Squares
    >>> Squares(columns=[1]).fit_transform([[5.0, 2.0], [7.0, 3.0]])
    array([[5., 2., 4.],
           [7., 3., 9.]])
    >>> Squares(center=37.0).fit_transform([[36.0], [37.5], [40.0]])
    array([[36.  ,  1.  ],
           [37.5 ,  0.25],
           [40.  ,  9.  ]])
    """

    def __init__(self, columns: Columns = None, center: Center = 0.0) -> None:
        super().__init__(columns)
        self.center = center

    def _learn(self, X: Any) -> None:
        super()._learn(X)
        centers = np.atleast_1d(np.asarray(self.center, np.float64))
        if len(centers) not in (1, len(self.columns_)):
            cure = f"There are {len(self.columns_)} columns to square."
            raise wrong(self, "center", self.center, "a number, or one for each of 'columns'", cure)
        self.centers_ = np.broadcast_to(centers, len(self.columns_)).copy()

    def _map(self, X: Any) -> Any:
        chosen = X[:, self.columns_]
        if not sparse.issparse(chosen):
            return beside(X, np.square(chosen - self.centers_.astype(X.dtype)))
        if not self.centers_.any():
            return beside(X, chosen.multiply(chosen))
        return beside(X, sparse.csr_array(np.square(chosen.toarray() - self.centers_.astype(X.dtype))))

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        names = [
            f"({given[j]}{-center:+g})^2" if center else f"{given[j]}^2"
            for j, center in zip(self.columns_, self.centers_, strict=True)
        ]
        return [*given, *names]
