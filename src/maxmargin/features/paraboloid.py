# SPDX-License-Identifier: BSD-3-Clause
"""The lift onto a paraboloid (003): what a circle or a sphere separates, a plane separates after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.features.chosen_columns import ColumnMap, beside


class Paraboloid(ColumnMap):
    """``(x1, x2) -> (x1, x2, x1^2 + x2^2)``: one column more, the squared length of the row.

    A linear function of the image is ``a |x|^2 + <c, x> + b``, whose zeros are a sphere with the center
    ``-c / (2 a)``, wherever that lies, or a plane for ``a = 0``. So one column suffices for every circle,
    where all monomials of degree 2 would give every ellipse and hyperbola, too.

    Parameters
    ----------
    columns : list of names or indices, or None
        The columns whose squares are added up; None: all. Every column passes through as well.

    Examples
    --------
    >>> from maxmargin.features import Paraboloid
    >>> Paraboloid().fit_transform([[1.0, 2.0], [0.0, 3.0]])
    array([[1., 2., 5.],
           [0., 3., 9.]])
    """

    def _map(self, X: Any) -> Any:
        chosen = X[:, self.columns_]
        if sparse.issparse(chosen):
            squares = np.asarray(chosen.multiply(chosen).sum(axis=1)).reshape(-1, 1)
            return beside(X, sparse.csr_array(squares))
        return beside(X, np.square(chosen).sum(axis=1, keepdims=True))

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        return [*given, "|x|^2"]
