# SPDX-License-Identifier: BSD-3-Clause
"""Rows of matrices and tables, checked for what a fit would refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.data.reading import DataError, DataSet, Options


def checked(path: str, X: Any, y: NDArray[Any] | None, first: int, options: Options) -> DataSet:
    """Rows whose values and labels are finite, with the columns asked for; ``first`` rows came before."""
    bad = _bad_rows(X, y)
    skipped = int(bad.sum())
    if skipped and not options.skip_bad_lines:
        problem = f"row {first + int(np.argmax(bad)) + 1} has a value or a label that is not finite"
        cure = "Remove the row or replace the value."
        raise DataError(problem, path=path, cure=cure)
    if skipped:
        X, y = X[~bad], None if y is None else y[~bad]
    X, dropped = _with_columns(path, X, options)
    return DataSet(X, y, None, skipped, dropped)


def _bad_rows(X: Any, y: NDArray[Any] | None) -> NDArray[np.bool_]:
    bad = np.zeros(X.shape[0], np.bool_)
    if sparse.issparse(X):
        wrong = np.flatnonzero(~np.isfinite(X.data))
        bad[np.searchsorted(X.indptr, wrong, side="right") - 1] = True
    else:
        bad |= ~np.isfinite(X).all(axis=1)
    if y is not None and y.dtype.kind == "f":
        bad |= ~np.isfinite(y)
    return bad


def _with_columns(path: str, X: Any, options: Options) -> tuple[Any, int]:
    """X with the columns asked for, and the number of values that were left out for it."""
    columns = X.shape[1] if options.columns is None else options.columns
    if columns == X.shape[1]:
        return X, 0
    if columns < X.shape[1] and options.ignore_extra:
        kept = X[:, :columns]
        left_out = X.nnz - kept.nnz if sparse.issparse(X) else X.size - kept.size
        return kept, left_out
    if columns > X.shape[1] and sparse.issparse(X):
        return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], columns)), 0
    cure = "Take another file, or say ignore_extra=True to leave later columns out."
    raise DataError(f"there are {X.shape[1]} columns, and {columns} were asked for", path=path, cure=cure)
