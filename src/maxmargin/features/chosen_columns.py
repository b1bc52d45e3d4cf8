# SPDX-License-Identifier: BSD-3-Clause
"""Maps of some columns, chosen by name or by index; the others pass through."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.features.base import FeatureMap
from maxmargin.tools.parameters import Expected, wrong

_WANTED = "names or indices of columns, or None"
Columns = Annotated[Iterable[str] | Iterable[int] | str | int | None, Expected(_WANTED)]


class ColumnMap(FeatureMap):
    """A map that reads the columns named by the parameter ``columns`` (None: all of them).

    Names are those of the data frame that ``fit`` was given. Sets ``columns_``, the indices.
    """

    def __init__(self, columns: Columns = None) -> None:
        self.columns = columns

    def _learn(self, X: Any) -> None:
        self.columns_ = self._find_columns(X.shape[1])

    def _find_columns(self, width: int) -> NDArray[np.int64]:
        if self.columns is None:
            return np.arange(width)
        one = isinstance(self.columns, str | Integral)
        wanted = [self.columns] if one else list(self.columns)  # type: ignore[arg-type]
        found = np.array([self._find_column(column, width) for column in wanted], np.int64)
        if not len(found) or len(np.unique(found)) < len(found):
            raise wrong(self, "columns", self.columns, "a list of different columns, with at least one")
        return found

    def _find_column(self, column: Any, width: int) -> int:
        if isinstance(column, str):
            names = list(getattr(self, "feature_names_in_", ()))
            if column in names:
                return names.index(column)
            cure = (
                f"There is no column {column!r}; there are {', '.join(map(repr, names))}."
                if names
                else "X has no column names: give a data frame, or indices."
            )
            raise wrong(self, "columns", self.columns, "names of columns of X", cure)
        if not isinstance(column, Integral) or isinstance(column, bool):
            raise wrong(self, "columns", self.columns, _WANTED)
        if not -width <= int(column) < width:
            # scikit-learn's words for the width, so that its checks know the error.
            raise wrong(
                self, "columns", self.columns, "indices of columns of X", f"X has n_features = {width}."
            )
        return int(column) % width

    def _others(self, width: int) -> NDArray[np.int64]:
        """The columns that pass through."""
        return np.setdiff1d(np.arange(width), self.columns_)


def beside(*parts: Any) -> Any:
    """Matrices side by side: sparse if one of them is, of the first one's type of values."""
    dtype = parts[0].dtype
    if any(map(sparse.issparse, parts)):
        return sparse.hstack(parts, format="csr", dtype=dtype)
    return np.hstack(parts, dtype=dtype)
