# SPDX-License-Identifier: BSD-3-Clause
"""One indicator per interval (003): any step function of a quantity becomes linear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from maxmargin.features.chosen_columns import ColumnMap, Columns, beside
from maxmargin.tools.parameters import wrong

_WANTED = "an int of at least 2, increasing numbers, or a dictionary from columns to increasing numbers"


class Buckets(ColumnMap):
    """Replaces x by the indicators of ``x < e_1``, ``e_1 <= x < e_2``, ..., ``x >= e_k``: one of them is 1.

    They come after the columns that pass through.

    Parameters
    ----------
    edges : int, array or dict
        How many buckets of about equally many rows to learn, or the edges e_1 < e_2 < ... for all chosen
        columns, or a dictionary with the edges of each. Where many rows share a value, fewer are learnt.
    columns : list of names or indices, or None
        The columns to replace; None: all, or those that the dictionary names.
    sparse_output : bool
        CSR, or a dense matrix as data frames need it.

    Attributes
    ----------
    edges_ : list of ndarray
        The edges of each chosen column.

    Examples
    --------
    >>> from maxmargin.features import Buckets
    >>> buckets = Buckets(edges=[10, 100], sparse_output=False)
    >>> buckets.fit_transform([[3.0], [10.0], [5000.0]])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> list(buckets.get_feature_names_out(["sold"]))
    ['sold < 10', 'sold in [10, 100)', 'sold >= 100']
    """

    def __init__(
        self,
        edges: int | ArrayLike | Mapping[Any, ArrayLike] = 5,
        columns: Columns = None,
        sparse_output: bool = True,
    ) -> None:
        self.edges = edges
        self.columns = columns
        self.sparse_output = sparse_output

    def _learn(self, X: Any) -> None:
        super()._learn(X)
        edges = self.edges
        if isinstance(edges, Mapping):
            given = {self._find_column(column, X.shape[1]): self._given(e) for column, e in edges.items()}
            if self.columns is None:
                self.columns_ = np.array(sorted(given), np.int64)
            if not given or set(given) != set(self.columns_):
                raise wrong(self, "edges", edges, "a dictionary with edges for every one of the columns")
            self.edges_ = [given[j] for j in self.columns_]
        elif isinstance(edges, Integral):
            if isinstance(edges, bool) or edges < 2:
                raise wrong(self, "edges", edges, _WANTED)
            self.edges_ = [_quantiles(_column(X, j), int(edges)) for j in self.columns_]
        else:
            self.edges_ = [self._given(edges)] * len(self.columns_)

    def _given(self, edges: Any) -> NDArray[np.float64]:
        try:
            array = np.asarray(edges, np.float64)
        except (TypeError, ValueError):
            raise wrong(self, "edges", self.edges, _WANTED) from None
        if array.ndim != 1 or not len(array) or not np.isfinite(array).all() or (np.diff(array) <= 0).any():
            raise wrong(self, "edges", self.edges, _WANTED)
        return array

    def _map(self, X: Any) -> Any:
        # A value of float32 is compared as what it is, not with an edge rounded to float32.
        indicators = self._indicators(
            [
                np.searchsorted(e, _column(X, j), side="right")
                for j, e in zip(self.columns_, self.edges_, strict=True)
            ],
            X.dtype,
        )
        others = X[:, self._others(X.shape[1])]
        if not self.sparse_output:
            others = others.toarray() if sparse.issparse(others) else others
            return beside(others, indicators.toarray())
        return beside(sparse.csr_array(others), indicators)

    def _indicators(self, places: list[NDArray[np.int64]], dtype: np.dtype[Any]) -> Any:
        """A CSR matrix with a 1 at the place of each chosen column in every row."""
        sizes = [len(edges) + 1 for edges in self.edges_]
        first = np.cumsum([0, *sizes])
        indices = np.column_stack(places) + first[:-1]
        rows, each = indices.shape
        values = np.ones(rows * each, dtype)
        offsets = np.arange(0, rows * each + 1, each)
        return sparse.csr_array((values, indices.ravel(), offsets), shape=(rows, first[-1]))

    def _names(self, given: Sequence[str]) -> Sequence[str]:
        names = [given[j] for j in self._others(len(given))]
        for j, edges in zip(self.columns_, self.edges_, strict=True):
            words = [_in_words(edge) for edge in edges]
            names.append(f"{given[j]} < {words[0]}")
            names += [f"{given[j]} in [{low}, {high})" for low, high in pairwise(words)]
            names.append(f"{given[j]} >= {words[-1]}")
        return names


def _column(X: Any, j: int) -> NDArray[np.float64]:
    column = X[:, [j]]
    values: NDArray[Any] = column.toarray() if sparse.issparse(column) else column
    return values.ravel().astype(np.float64)


def _quantiles(values: NDArray[np.float64], buckets: int) -> NDArray[np.float64]:
    """Edges between buckets of about equally many values; each is one of the values."""
    levels = np.arange(1, buckets) / buckets
    edges: NDArray[np.float64] = np.unique(np.quantile(values, levels, method="higher"))
    # Nothing lies below the smallest value: the bucket in front of it would stay empty.
    edges = edges[edges > values.min()]
    return edges if len(edges) else values.max(keepdims=True)


def _in_words(edge: float) -> str:
    """The shortest decimal number that is this one; 20 rather than 20.0."""
    return repr(float(edge)).removesuffix(".0")
