# SPDX-License-Identifier: BSD-3-Clause
"""Cross terms (003): for quantities that count only relative to each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from maxmargin.features.chosen_columns import ColumnMap, Columns, beside
from maxmargin.features.expansion import Expansion
from maxmargin.tools.parameters import Count


class Interactions(ColumnMap):
    """Adds the product of every two different columns; no squares (see ``Squares`` and ``Monomials``).

    Parameters
    ----------
    columns : list of names or indices, or None
        The columns to multiply with each other; None: all. Every column passes through as well.
    max_bytes : int
        The largest result that is made; a larger one is refused before any memory is taken.

    Examples
    --------
    >>> from maxmargin.features import Interactions
    >>> Interactions().fit_transform([[5.0, 2.0], [7.0, 3.0]])
    array([[ 5.,  2., 10.],
           [ 7.,  3., 21.]])
    """

    def __init__(self, columns: Columns = None, max_bytes: Count = 2**32) -> None:
        self.columns = columns
        self.max_bytes = max_bytes

    def _learn(self, X: Any) -> None:
        super()._learn(X)
        self._expansion().refuse_too_large(self, X[:, self.columns_])

    def _map(self, X: Any) -> Any:
        expansion, chosen = self._expansion(), X[:, self.columns_]
        expansion.refuse_too_large(self, chosen)
        return beside(X, expansion(chosen))

    def _expansion(self) -> Expansion:
        return Expansion(columns=len(self.columns_), lowest=2, scales=(1.0, 1.0, 1.0), once=True)

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        return [*given, *(f"{given[i]}*{given[j]}" for i, j in combinations(self.columns_, 2))]
