# SPDX-License-Identifier: BSD-3-Clause
"""What makes a proven model useless all the same: each is told once, in one sentence with the cure."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from maxmargin.tools.words import count_in_words, percent, some

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.types import Vector

_ORDERS_APART = 3
"""Orders of magnitude between columns from which they are told of where there is a report, or trouble."""
_MANY_ORDERS = 7
"""Orders from which they are warned of whatever the model is worth: what lies below the columns of feature
maps, whose smallest are as small as rounding lets an eigenvalue be, and those of principal components."""
_ROUNDING = 1e-12
"""The share of the largest column below which a column is nothing but rounding."""
_LARGE_VALUE = 100.0
"""The value above which columns count as not scaled."""
_MOST_ROWS = 10_000
"""Rows that are looked at for the size of columns: orders of magnitude show in some of them."""
_FEW_ROWS = 50
"""Rows that are looked at by every fit, which takes some microseconds."""
_FEW_STORED = 50_000
"""Stored values that are looked at by every fit on sparse rows."""
_MOST_VALUES = 50_000_000
"""Values that are looked at, at most, for columns that separate the classes: less than a second."""
_VALUES_AT_ONCE = 1_000_000
"""Those that are written out at once: sparse rows of many columns would take far more than the fit."""
_FEWEST_ROWS = 20
"""Rows below which a column may separate the classes by chance."""


class DoubtfulModelWarning(UserWarning):
    """A model is proven to be near the best one, and may be of no use all the same.

    ``warnings.simplefilter("ignore", maxmargin.DoubtfulModelWarning)`` silences it, where a search tries
    values of which some are bound to be poor.
    """


class Cures(NamedTuple):
    """What to do, in the words of those who are told."""

    scale: str
    """Where columns are far apart."""
    model: str
    """Where a model is of no use."""


ON_THE_COMMAND_LINE = Cures(
    "Add --scale standard, or --scale max-abs where most values are zero",
    "Scale the columns, raise -C, try --kernel gaussian or --class-weight balanced, or look for columns "
    "that say more.",
)
IN_PYTHON = Cures(
    "Put StandardScaler before the classifier, or MaxAbsScaler where most values are zero",
    "Raise C, try SVC or class_weight='balanced', or look for columns that say more.",
)
IN_THE_DATA = Cures("Scale them to similar ranges, such as [-1, 1]", "")


def scale_doubts(
    scales: Vector, name: Callable[[int], str], cures: Cures, *, large: bool = True
) -> list[str]:
    """Columns of very different sizes; with ``large``, also those that are merely large.

    ``scales`` has the largest size of any value of each column.
    """
    used = np.flatnonzero(scales > 0).tolist()
    if not used:
        return ["All values are zero."]
    orders, largest, smallest = orders_apart(scales)
    cure = f"{cures.scale}: training needs far fewer steps, and no column rules the penalty."
    if orders >= _ORDERS_APART:
        middle = float(np.median(scales[used]))
        far = [column for column in used if abs(math.log10(scales[column] / middle)) >= _ORDERS_APART]
        named = some([name(column) for column in far])
        return [
            f"Columns are {count_in_words(orders)} orders of magnitude apart: column {name(largest)} "
            f"reaches {scales[largest]:.3g}, column {name(smallest)} only {scales[smallest]:.3g}. "
            f"{f'Far from the rest: {named}. ' if len(used) > 2 and far else ''}{cure}"
        ]
    if large and scales[largest] > _LARGE_VALUE:
        return [f"Not scaled: column {name(largest)} reaches {scales[largest]:.3g}. {cure}"]
    return []


def orders_apart(scales: Vector, least: float = 0.0) -> tuple[int, int, int]:
    """The orders of magnitude between the largest and the smallest column above ``least``, and which."""
    largest = int(np.argmax(scales))
    smallest = int(np.argmin(np.where(scales > least, scales, np.inf)))
    if not scales[largest] > least:
        return 0, largest, largest
    return math.floor(math.log10(scales[largest] / scales[smallest]) + 1e-9), largest, smallest


def doubts_of_fit(X: Any, name: Callable[[int], str], *, useless: bool) -> str:
    """What a fit warns of, in words that are the same in all fits on such data; else empty.

    Nothing in the fits of scikit-learn's cross-validation and searches: some of them are bound to be poor,
    and their scores say so. The fit of all rows at the end does warn.
    """
    apart = ""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        scales = few_column_scales(X)
        if not useless and scales.max(initial=0.0) < 10.0**_MANY_ORDERS * scales.min(initial=np.inf):
            return ""  # as in most fits, which must not wait for it
        orders, largest, smallest = orders_apart(scales, _ROUNDING * float(scales.max(initial=0.0)))
        if orders >= (_ORDERS_APART if useless else _MANY_ORDERS):
            apart = (
                f"Columns are {count_in_words(orders)} orders of magnitude apart: column {name(smallest)} "
                f"is the smallest and column {name(largest)} the largest, which rules the penalty. "
                f"{IN_PYTHON.scale}. "
            )
    words = f"{USELESS} {apart}{IN_PYTHON.model}" if useless else apart.rstrip()
    return "" if not words or _is_scored_by_others() else words


def _is_scored_by_others() -> bool:
    """Whether it is scikit-learn's cross-validation that fits."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_fit_and_score" and frame.f_globals["__name__"].startswith("sklearn."):
            return True
        frame = frame.f_back
    return False


def few_column_scales(X: Any) -> Vector:
    """The largest size of any value of each column, in a few rows; of sparse rows in the first ones."""
    if not sparse.issparse(X):
        step = max(1, X.shape[0] // _FEW_ROWS)
        return np.asarray(np.abs(X[::step]).max(axis=0), np.float64)
    scales = np.zeros(X.shape[1])
    values = np.abs(X.data[:_FEW_STORED]).astype(np.float64)
    np.maximum.at(scales, X.indices[:_FEW_STORED], values)
    return scales


USELESS = (
    "The model gets no more training rows right than the largest class alone: it is proven, and useless."
)
"""How the warning of such a fit begins."""


def column_scales(X: Any) -> Vector:
    """The largest size of any value of each column, in rows that are spread over all of them."""
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MOST_ROWS)).astype(np.intp)
    if not sparse.issparse(X):
        return np.asarray(np.abs(X[rows]).max(axis=0), np.float64)
    sample, scales = X[rows], np.zeros(X.shape[1])
    np.maximum.at(scales, sample.indices, np.abs(sample.data).astype(np.float64))
    return scales


def majority_doubt(right: int, counts: Sequence[int], cures: Cures) -> list[str]:
    """A model that gets no more rows right than the answer that is always the same."""
    rows, largest = sum(counts), max(counts)
    if right > largest:
        return []
    return [
        f"The model is useless: it gets {percent(right / rows)} of the training rows right, and the "
        f"largest class alone is {percent(largest / rows)} of them. {cures.model}"
    ]


def separating_columns(X: Any, y: NDArray[Any]) -> list[int]:
    """The columns in which one look at the value tells the class, whatever the others hold.

    The values of each class lie in an interval of their own: in some rows first, then in all of them,
    unless these are too many values.
    """
    if X.shape[0] < _FEWEST_ROWS:
        return []
    most = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_VALUES // X.shape[1]))
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], most)).astype(np.intp)
    columns = np.arange(X.shape[1])
    columns = columns[_apart(X[rows], y[rows])]
    if len(columns) and len(rows) < X.shape[0] and len(columns) * X.shape[0] <= _MOST_VALUES:
        columns = columns[_apart(X[:, columns], y)]
    return [int(column) for column in columns]


def _apart(X: Any, y: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the classes lie in intervals of their own, for each column."""
    width = max(1, _VALUES_AT_ONCE // X.shape[0])
    if sparse.issparse(X):
        X = X.tocsc()  # some of its columns are cut out at the price of their values
    blocks = [X[:, first : first + width] for first in range(0, X.shape[1], width)]
    return np.concatenate([_block_apart(block, y) for block in blocks])


def _block_apart(X: Any, y: NDArray[Any]) -> NDArray[np.bool_]:
    X = X.toarray() if sparse.issparse(X) else X
    classes = [X[y == label] for label in np.unique(y)]
    low = np.array([rows.min(axis=0) for rows in classes])
    high = np.array([rows.max(axis=0) for rows in classes])
    order = np.argsort(low, axis=0, kind="stable")
    low, high = np.take_along_axis(low, order, axis=0), np.take_along_axis(high, order, axis=0)
    return np.asarray((high[:-1] < low[1:]).all(axis=0))


def counting_doubts(names: list[str]) -> list[str]:
    """Columns that count the rows."""
    if not names:
        return []
    one = len(names) == 1
    which = f"Column {names[0]} counts" if one else f"Columns {some(names)} count"
    return [
        f"{which} the rows, which says nothing about a new one, and follows the labels where the file is "
        f"sorted by them. Leave {'it' if one else 'them'} out with --drop."
    ]


def separating_doubts(names: list[str]) -> list[str]:
    """Columns that alone separate the classes."""
    if not names:
        return []
    one = len(names) == 1
    which = f"Column {names[0]} alone separates" if one else f"Columns {some(names)} each alone separate"
    return [
        f"{which} the classes: {'it' if one else 'they'} may be a copy of the label, or known only after "
        f"it. If so, leave {'it' if one else 'them'} out with --drop."
    ]
