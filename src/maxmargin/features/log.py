# SPDX-License-Identifier: BSD-3-Clause
"""log(1 + x) (003): for quantities with diminishing returns and a large range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.features.chosen_columns import ColumnMap


class Log(ColumnMap):
    """Replaces x by ``log(1 + x)``, which is accurate near 0 and keeps sparse data sparse.

    Values of -1 and below have no logarithm and are refused.

    Parameters
    ----------
    columns : list of names or indices, or None
        The columns to replace; None: all. The others pass through.

    Examples
    --------
    >>> from maxmargin.features import Log
    >>> Log(columns=[1]).fit_transform([[5.0, 0.0], [7.0, 9.0]])
    array([[5.        , 0.        ],
           [7.        , 2.30258509]])
    """

    def _learn(self, X: Any) -> None:
        super()._learn(X)
        self._refuse(X)

    def _map(self, X: Any) -> Any:
        self._refuse(X)
        out = X.copy()
        if sparse.issparse(X):
            chosen = np.isin(out.indices, self.columns_)
            out.data[chosen] = np.log1p(out.data[chosen])
        else:
            out[:, self.columns_] = np.log1p(out[:, self.columns_])
        return out

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        chosen = set(self.columns_)
        return [f"log(1+{name})" if j in chosen else name for j, name in enumerate(given)]

    def _refuse(self, X: Any) -> None:
        for j in self.columns_:
            smallest = X[:, [j]].min()
            if smallest <= -1:
                name = self.feature_names_in_[j] if hasattr(self, "feature_names_in_") else f"x{j}"
                raise ValueError(
                    f"Negative values in data passed to Log: log(1 + x) needs x > -1. Column {name!r} has "
                    f"{smallest:g}. Leave the column out with 'columns', or shift it first."
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
