# SPDX-License-Identifier: BSD-3-Clause
"""What has to hold for every input, whatever is in it."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from maxmargin.files.data.libsvm import write_libsvm

_LONGEST_MESSAGE = 4000
_QUOTED = re.compile(r"(?<!\w)'[^']*'?|\"[^\"]*\"?|<[^>]*>|b?\(.*?\)")
_NUMBER = re.compile(r"(?<![\w-])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_PLACE = re.compile(r"^(, line N)?(, column N)?[:,] ?")
_LONGEST_REASON = 70


class Broken(AssertionError):
    """Something that has to hold does not."""


class Outcome(NamedTuple):
    """What became of an input, or of one way to read it."""

    value: Any = None
    error: Exception | None = None

    @property
    def refused(self) -> bool:
        return self.error is not None


def require(holds: Any, what: str) -> None:
    if not holds:
        raise Broken(what)


def attempt(read: Callable[[], Any], expected: type[Exception], path: str) -> Outcome:
    """Read, and let nothing through but the error that a bad file is to give, and no warning."""
    try:
        with warnings.catch_warnings(), _nothing_ignored():
            warnings.simplefilter("error")
            return Outcome(read())
    except expected as error:
        message = str(error)
        require(message.startswith(path), f"a message does not begin with the file: {message[:200]!r}")
        require(len(message) <= _LONGEST_MESSAGE, f"a message has {len(message)} characters")
        require(
            message.isprintable(),
            f"a message has characters that a terminal obeys: {message!r}",
        )
        return Outcome(error=error)


@contextmanager
def _nothing_ignored() -> Iterator[None]:
    """Exceptions that a callback cannot pass on are printed by Python; here they count."""
    ignored: list[str] = []
    usual, sys.unraisablehook = sys.unraisablehook, lambda given: ignored.append(repr(given.exc_value))
    try:
        yield
    finally:
        sys.unraisablehook = usual
        require(not ignored, f"an exception was ignored and printed: {ignored}")


def reason(error: Exception | None, path: str) -> str:
    """The class of a refusal: its message without what belongs to this one input."""
    if error is None:
        return "read"
    text = _NUMBER.sub("N", _QUOTED.sub("'...'", str(error).removeprefix(path)))
    text = _PLACE.sub("", text.split("\n")[0])
    return re.split(r"[:;.] |\.+$|, not |, which |, the model | has the type ", text)[0][
        :_LONGEST_REASON
    ].strip()


def require_sound(data: Any, *, dtype: Any, columns: int | None, labelled: bool) -> None:
    """A data set has what ``DataSet`` promises."""
    X, y = data.X, data.y
    require(X.dtype == dtype, f"X has the type {X.dtype}, not {dtype}")
    require(columns is None or X.shape[1] == columns, f"X has {X.shape[1]} columns, not {columns}")
    if sparse.issparse(X):
        _require_canonical(X)
    else:
        require(type(X) is np.ndarray and X.ndim == 2, "X is no matrix")
    require(np.isfinite(X.data if sparse.issparse(X) else X).all(), "a value of X is not finite")
    require(data.skipped >= 0 and data.dropped >= 0, "a count is negative")
    if data.query is not None:
        require(data.query.shape == (X.shape[0],), "there are not as many queries as rows")
    if y is None:
        require(not labelled, "there are no labels")
        return
    require(y.shape == (X.shape[0],), f"there are {y.shape} labels for {X.shape[0]} rows")
    require(y.dtype.kind in "biufUS", f"the labels are {y.dtype}")
    if y.dtype.kind == "f":
        require(np.isfinite(y).all() or not labelled, "a label is not finite")


def _require_canonical(X: Any) -> None:
    require(X.format == "csr", "X is not CSR")
    starts, indices = X.indptr, X.indices
    require(starts.shape == (X.shape[0] + 1,) and starts[0] == 0, "indptr does not belong to the rows")
    require((np.diff(starts) >= 0).all() and starts[-1] == len(indices) == len(X.data), "indptr is wrong")
    require(starts.dtype == indices.dtype, "indptr and indices differ in type")
    if len(indices):
        require(indices.min() >= 0 and indices.max() < X.shape[1], "an index lies outside the matrix")
    steps = np.diff(indices) > 0
    begins = starts[1:-1]
    steps[begins[(begins > 0) & (begins < len(indices))] - 1] = True  # from one row to the next
    require(steps.all(), "the indices of a row do not increase")
    require(X.has_canonical_format and X.has_sorted_indices, "CSR is not marked as canonical")


def require_same(one: Any, other: Any, what: str, *, counts: bool = True) -> None:
    """Two data sets hold the same rows, to the last bit, and were read with the same losses."""
    require(same_matrix(one.X, other.X), f"{what}: X differs")
    require((one.y is None) == (other.y is None), f"{what}: only one has labels")
    if one.y is not None:
        same = one.y.tolist() == other.y.tolist() or np.array_equal(one.y, other.y, equal_nan=True)
        require(same, f"{what}: the labels differ")
    queries = [None if each.query is None else each.query.tolist() for each in (one, other)]
    require(queries[0] == queries[1], f"{what}: the queries differ")
    if counts:
        same = (one.skipped, one.dropped) == (other.skipped, other.dropped)
        require(same, f"{what}: the counts of what was left out differ")


def same_matrix(one: Any, other: Any) -> bool:
    if (
        one.shape != other.shape
        or one.dtype != other.dtype
        or sparse.issparse(one) != sparse.issparse(other)
    ):
        return False
    if not sparse.issparse(one):
        return one.tobytes() == other.tobytes()
    return (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and one.data.tobytes() == other.data.tobytes()
    )


def require_rereadable(data: Any, path: Path, read: Callable[..., Any]) -> None:
    """The rows written as LIBSVM text, with all digits, and read again are the same."""
    X, y = sparse.csr_array(data.X), data.y
    if y is None or y.dtype.kind not in "biuf" or not np.isfinite(y).all() or X.shape[1] == 0:
        return
    whole = data.query is not None and data.query.dtype.kind == "i" and (data.query >= 0).all()
    write_libsvm(path, X, y, data.query if whole else None)
    again = read(str(path), format="libsvm", columns=X.shape[1], dtype=X.dtype)
    require(same_matrix(again.X, X), "written as text and read again, X differs")
    require(np.array_equal(again.y, y.astype(np.float64)), "written as text and read again, y differs")
    same = not whole or np.array_equal(again.query, data.query)
    require(same, "written as text and read again, the queries differ")


def joined(chunks: list[Any], columns: int) -> Any:
    """The chunks of a stream as one data set; each may have fewer columns than all together."""
    first = chunks[0]
    if sparse.issparse(first.X):
        indices = np.concatenate([chunk.X.indices for chunk in chunks])
        values = np.concatenate([chunk.X.data for chunk in chunks])
        lengths = np.concatenate([np.diff(chunk.X.indptr) for chunk in chunks])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        X = sparse.csr_array((values, indices, offsets), shape=(len(lengths), columns))
    else:
        X = np.concatenate([chunk.X for chunk in chunks])
    y = None if first.y is None else np.concatenate([chunk.y for chunk in chunks])
    return type(first)(
        X,
        y,
        first.feature_names,
        sum(chunk.skipped for chunk in chunks),
        sum(chunk.dropped for chunk in chunks),
        query=_queries_of(chunks),
    )


def _queries_of(chunks: list[Any]) -> Any:
    """The queries of all chunks; one of LIBSVM text in which no row has any says nothing of them."""
    if all(chunk.query is None for chunk in chunks):
        return None
    rows = [chunk.X.shape[0] for chunk in chunks]
    return np.concatenate(
        [
            np.full(n, -1) if chunk.query is None else chunk.query
            for n, chunk in zip(rows, chunks, strict=True)
        ]
    )
