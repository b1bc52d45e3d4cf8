# SPDX-License-Identifier: BSD-3-Clause
"""The rows of a problem, one for each example: what they can do, and how those of a matrix do it.

How large their numbers may be is said here, too: float64 needs room for squares and products. No w that
multipliers make is longer than ``sum_i C_i`` times the longest row. The objective squares it, and so do
proofs. Beyond these limits an answer would be infinite, or not a number; so they are refused.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.types import Indices, Tell, Vector

UNIT = 2.0**-53
"""The largest relative error of one rounding in float64."""
_ROUNDINGS = 8.0
"""Roundings of a product besides those of its sum: of values that are formed on the way, and of bounds."""
_NEARLY_NOTHING = 1e-290
"""Squares below this may be sums of numbers that are too small to be normal ones."""
LARGEST = 1e100
"""The largest sum of costs, length of a row and value of the constant feature."""
_LARGEST_PRODUCT = 1e150
"""The largest length of a w: its square is just a number of float64."""
_LEAST_SINGLE, _MOST_SINGLE = 1e-15, 1e15
"""Lengths of the longest row between which float32 has room for all values that matter beside it."""
_SCALE = "Scale the features, for instance by sklearn.preprocessing.StandardScaler or MaxAbsScaler."
_KERNEL = "Scale the features, or use a smaller gamma, coef0 or degree."
_HARD = "A C without end leads to the hard margin, C=numpy.inf."
NOT_STORED = "Stored rows are needed here: write the monomials out, with expand()."
CompiledRows = core.Data | core.MonomialData
Matrix = NDArray[np.float64]


def combined_rounding(lengths: float, terms: float) -> float:
    """How far a sum of so many rows times numbers can be off; ``lengths`` is that of their lengths."""
    return (terms + _ROUNDINGS) * UNIT * lengths


def bound_of_square(w: Vector) -> float:
    """An upper bound on ``|w|^2``, equal but for rounding."""
    squared = core.dot(w, w) * (1.0 + core.sum_rounding(len(w)))
    return squared if squared > _NEARLY_NOTHING or not w.any() else squared + _NEARLY_NOTHING


def lies_on_card(X: Any) -> bool:
    """Whether an array lies on a GPU: one of CuPy, or a tensor of PyTorch on CUDA."""
    return hasattr(X, "__cuda_array_interface__")


def in_numpy(*values: Any) -> Any:
    """Values as they are, or as arrays of NumPy where scikit-learn's array API dispatch is on.

    Without dispatch, its checks make arrays of NumPy of those of other libraries. With it they leave them
    in their library, which the core cannot read. What lies on a GPU has ways of its own.
    """
    if all(each is None or type(each) is np.ndarray for each in values):  # the usual case, told in no time
        return values if len(values) > 1 else values[0]
    from sklearn import get_config

    if get_config()["array_api_dispatch"]:
        values = tuple(
            np.asarray(each) if hasattr(each, "__dlpack__") and not lies_on_card(each) else each
            for each in values
        )
    return values if len(values) > 1 else values[0]


class TellingOfRoom(AbstractContextManager[None]):
    """Says what to do where the memory of a GPU runs out on the way."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Put a sentence in the place of CuPy's error."""
        if kind is None or not kind.__module__.startswith("cupy"):
            return
        from maxmargin.gpu.cards import NoRoomError, no_room

        if (words := no_room(error)) is not None:
            raise NoRoomError(words) from error


class RowSpace(ABC):
    """Whatever can do four things with the rows of a problem, all of them at once.

    These are ``scores``, ``combine``, ``gram`` and ``squared_norms``. The certificate and many solvers need
    nothing else, so rows can lie anywhere: in a matrix, behind a kernel, in parts on a disk. Whatever a
    solver needs beyond them it asks for by name, and refuses rows that do not have it.
    """

    has_kernel: bool = False
    """Whether the rows are seen through a kernel. Then w is held by a coefficient for each row, and scores
    take a value of the kernel for each pair of rows."""
    dtype: np.dtype[Any] = np.dtype(np.float64)
    """The type of the stored values."""
    kernel_is_none: bool = False
    """Whether the rows are seen through a function that is not shown to be a kernel: it proves nothing."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of rows, n."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """Number of entries of w, d."""

    @property
    @abstractmethod
    def stored(self) -> int:
        """Number of stored values: the cost of one pass."""

    @property
    def row_length(self) -> float:
        """Stored values that a visit of a row reads, on average."""
        return self.stored / max(self.count, 1)

    @abstractmethod
    def scores(self, w: Vector, budget: core.Budget = core.ALL_CORES, tell: Tell | None = None) -> Vector:
        """``<w, x_i>`` of every row; ``tell`` is called now and then where that takes long."""

    def scores_at(self, points: Matrix) -> Matrix:
        """``<w, x_i>`` of every row, for each w of a matrix: in one pass where the rows know a way."""
        return np.stack([self.scores(w) for w in points])

    @abstractmethod
    def combine(self, coefficients: Vector, budget: core.Budget = core.ALL_CORES) -> Vector:
        """``sum_i coefficient_i x_i``."""

    def combine_groups(
        self, coefficients: Vector, groups: Indices, count: int, budget: core.Budget = core.ALL_CORES
    ) -> Matrix:
        """``sum_i coefficient_i x_i`` over the rows of each of so many groups."""
        ours = [np.where(groups == group, coefficients, 0.0) for group in range(count)]
        return np.stack([self.combine(each, budget) for each in ours])

    @abstractmethod
    def gram(self, weights: Vector, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``sum_i weight_i x_i x_i'``, a matrix of d rows and columns."""

    def bordered_gram(
        self, weights: Vector, budget: core.Budget = core.ALL_CORES
    ) -> tuple[Matrix, Vector, float]:
        """``gram`` and ``combine`` of the same weights, and their sum: ``gram`` of rows that end with 1."""
        return self.gram(weights, budget), self.combine(weights, budget), float(weights.sum())

    @property
    @abstractmethod
    def squared_norms(self) -> Vector:
        """``|x_i|^2`` of every row."""

    @cached_property
    def mean_squared_norm(self) -> float:
        """The mean of ``|x_i|^2`` over all rows."""
        return float(self.squared_norms.mean())

    # What a proof needs to know of rounding. A sum of k products is off by at most k roundings of the sum
    # of their magnitudes, in whatever order it is computed, and that sum is at most |w| |x_i|.

    @property
    def longest(self) -> int:
        """The largest number of values that a row has: of products in a score."""
        return self.columns

    @cached_property
    def lengths(self) -> Vector:
        """``|x_i|`` of every row, or a little more."""
        return np.sqrt(self.squared_norms) * self.length_rounding

    @property
    def length_rounding(self) -> float:
        """What a length as it is computed has to be multiplied by to be no less than the exact one."""
        return 1.0 + self.score_rounding

    @cached_property
    def largest_length(self) -> float:
        """The length of the longest row."""
        return float(self.lengths.max(initial=0.0))

    def squared_norm(self, w: Vector) -> float:
        """An upper bound on ``|w|^2``, equal but for rounding."""
        return bound_of_square(w)

    def plain_squared_norm(self, w: Vector) -> float:
        """``|w|^2`` as it is computed, without a bound on rounding."""
        return core.dot(w, w)

    def score_error(self, w: Vector) -> tuple[float, float]:
        """(per_length, constant): score i is off by at most ``per_length lengths_i + constant``."""
        return self.score_rounding * math.sqrt(self.squared_norm(w)), 0.0

    @property
    def score_rounding(self) -> float:
        """How far a score of stored values can be off, in units of ``|w| |x_i|``."""
        return (self.longest + _ROUNDINGS) * UNIT

    def combined_error(self, coefficients: Vector) -> float:
        """How far ``combine`` can be from the exact sum, as the length of their difference."""
        lengths, terms = core.all_lengths(coefficients, self.lengths)
        return combined_rounding(lengths, terms)

    def squared_norm_of(self, coefficients: Vector, combined: Vector, error: float | None = None) -> float:
        """An upper bound on the squared length of the exact sum; ``combined`` is the computed one.

        It is off by a vector of length ``error``, or by the rounding of ``combine``.
        """
        off = self.combined_error(coefficients) if error is None else error
        length = math.sqrt(self.squared_norm(combined)) + off
        return length * length * (1.0 + _ROUNDINGS * UNIT)

    def unpacked(self) -> RowSpace | None:
        """The same rows, read as they are, where they are held as something that is only nearly equal."""
        return None

    def twofold_scores(self, w: Vector) -> core.TwofoldScores | None:
        """``<w, x_i>`` in twofold precision, or None where that is not to be had."""
        return None

    def twofold_squared_norm_of(self, coefficients: Vector) -> float:
        """``squared_norm_of`` in twofold precision; only where there are ``twofold_scores``."""
        raise ValueError("Stored rows are needed here. Use maxmargin.Rows(X).")

    def seconds_of_scores(self, w: Vector, budget: core.Budget) -> float:
        """How long ``scores`` will take where that can be longer than many steps; else 0."""
        return 0.0

    def dense(self, which: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """Some rows as a matrix; it takes a pass for each of them where they do not know a better way."""
        unit, out = np.zeros(self.count), np.empty((len(which), self.columns))
        for place, i in enumerate(which):
            unit[i] = 1.0
            out[place] = self.combine(unit, budget)
            unit[i] = 0.0
        return out

    def block(self, first: Indices, second: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``<x_i, x_j>`` for i in first and j in second."""
        products: Matrix = self.dense(first, budget) @ self.dense(second, budget).T
        return products

    # What only some rows have, and a solver asks for by name.

    @property
    def offers_single_rows(self) -> bool:
        """Whether the core can visit one row after the other: whether there is ``compiled``."""
        return False

    @property
    def compiled(self) -> CompiledRows:
        """The rows as the core reads them, for what visits single rows."""
        raise ValueError(
            "Single rows are needed here, and these rows only offer whole passes. Use maxmargin.Rows(X)."
        )

    @property
    def is_stored(self) -> bool:
        """Whether the values lie in memory: whether there are ``stored_data`` and ``take``."""
        return False

    @property
    def offers_samples(self) -> bool:
        """Whether there is ``take``: rows that lie elsewhere, as on a GPU, may have it, too."""
        return self.is_stored

    @property
    def stored_data(self) -> core.Data:
        """The data, for what reads values in place."""
        raise ValueError("Stored rows are needed here. Use maxmargin.Rows(X).")

    def take(self, order: Indices) -> RowSpace:
        """A copy of some rows, in the order given."""
        raise ValueError("Stored rows are needed here. Use maxmargin.Rows(X).")

    @property
    def without_private_columns(self) -> tuple[core.AnyData, Vector] | None:
        """A smaller copy of the rows for dual methods, or None where there is none."""
        return None

    @property
    def in_single_precision(self) -> core.Data | None:
        """The rows with values in float32, which share all else with these; None where that is no copy."""
        return None

    @property
    def offers_single_columns(self) -> bool:
        """Whether one column after the other can be visited: whether there is ``by_columns``."""
        return False

    @property
    def by_columns(self) -> core.Data:
        """The columns as rows, for what visits single columns."""
        raise ValueError("Stored rows are needed here. Use maxmargin.Rows(X).")


def rows_of(X: Any) -> RowSpace:
    """The rows of a matrix, where it lies: in memory, or on a GPU; rows as they are."""
    if isinstance(X, RowSpace):
        return X
    if not lies_on_card(X):
        return Rows(X)
    from maxmargin.gpu.cards import the_card
    from maxmargin.gpu.rows import CardRows

    return CardRows(the_card().data(X))


class FormedRows(ABC):
    """Rows whose values are formed when they are read; ``Rows`` takes them like a matrix."""

    @abstractmethod
    def core_data(self) -> core.MonomialData:
        """The rows as the core reads them."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The type of the values that they are formed from."""


class Rows(RowSpace):
    """A read-only view of ``X``: dense or sparse, float32 or float64, 32- or 64-bit indices.

    Read in place, without any copy: C-ordered matrices (also a slice of columns of one) and CSR
    matrices with sorted indices and no duplicates, of float32 or float64. Copied once: F-ordered
    matrices (to C order), CSC and other sparse formats (to CSR), CSR with unsorted or repeated
    indices, column indices of 64 bits (to 32, enough for 2,147,483,647 columns), large dense data of which
    at most one value in four is not zero (to CSR, a smaller copy), and values of any other type (to
    float64). Sparse data are never made dense. ``FormedRows`` are never written out.

    NaN and infinite values are refused; ``check_finite=False`` trusts that there are none. ``keep_zeros``
    leaves dense data dense, however many zeros there are. ``budget`` has the threads for what is found out
    once, as the lengths are.
    """

    offers_single_rows = True
    _budget = core.ALL_CORES

    def __init__(
        self,
        X: Any,
        *,
        check_finite: bool = True,
        keep_zeros: bool = False,
        budget: core.Budget = core.ALL_CORES,
    ) -> None:
        self._budget = budget
        self._compiled: CompiledRows
        if isinstance(X, FormedRows):
            self._compiled, self.dtype = X.core_data(), X.dtype
            return  # what they are formed from has been checked
        if sparse.issparse(X):
            matrix = X if X.format == "csr" else X.tocsr()
            if matrix.dtype not in (np.float32, np.float64):
                matrix = matrix.astype(np.float64)
            self._compiled = data = _sparse_data(matrix)
            if not data.sorted:
                # Only now: SciPy trusts indices that the core has just checked.
                matrix = matrix.copy() if matrix is X else matrix
                matrix.has_canonical_format = matrix.has_sorted_indices = False
                matrix.sum_duplicates()
                self._compiled = _sparse_data(matrix)
            values = matrix.data
            self.dtype = matrix.dtype
        else:
            values = _row_major(X)
            dense = core.Data.dense(values)
            self._compiled = dense if keep_zeros else dense.without_zeros(core.ALL_CORES) or dense
            self.dtype = values.dtype
        if check_finite:
            from sklearn.utils import assert_all_finite  # slow to import, quick to check

            assert_all_finite(values, input_name="X")

    @classmethod
    def of(cls, data: core.Data) -> Rows:
        """Rows that the core has read before."""
        rows = object.__new__(cls)
        rows._compiled = data
        return rows

    @property
    def compiled(self) -> CompiledRows:
        """The rows as the core reads them."""
        return self._compiled

    @property
    def stored_data(self) -> core.Data:
        """The data, for what reads values in place and cannot do with rows that are formed."""
        if isinstance(self._compiled, core.MonomialData):
            raise ValueError(NOT_STORED)
        return self._compiled

    @property
    def is_stored(self) -> bool:
        """Whether the values are stored, and not formed when they are read."""
        return isinstance(self._compiled, core.Data)

    def take(self, order: Indices) -> Rows:
        """A copy of some rows, in the order given."""
        taken = object.__new__(Rows)
        taken._compiled, taken.dtype = self.stored_data.take(order), self.dtype
        return taken

    @property
    def count(self) -> int:
        """Number of rows, n."""
        return self._compiled.count

    @property
    def columns(self) -> int:
        """Number of columns, d."""
        return self._compiled.columns

    @property
    def stored(self) -> int:
        """Number of stored values: the cost of one pass."""
        return self._compiled.stored

    def column_ranges(self, which: Indices) -> tuple[Vector, Vector]:
        """The least and the largest value of every column among some of the rows."""
        low, high = np.empty(self.columns), np.empty(self.columns)
        core.column_ranges(self.stored_data, which, low, high, self._budget)
        return low, high

    def read_columns(self, which: Indices, columns: Indices) -> Matrix:
        """The values of some columns, one line for each, of some of the rows."""
        out = np.zeros((len(columns), len(which)))
        core.read_columns(self.stored_data, which, columns, out)
        return out

    def scores(self, w: Vector, budget: core.Budget = core.ALL_CORES, tell: Tell | None = None) -> Vector:
        """``<w, x_i>`` of every row: one pass, none for w = 0."""
        if not w.any():
            return np.zeros(self.count)
        out = np.empty(self.count)
        core.scores(self._compiled, np.ascontiguousarray(w, np.float64), out, budget)
        return out

    def scores_at(self, points: Matrix) -> Matrix:
        """``<w, x_i>`` of every row, for each w of a matrix: one visit of each row, where they are dense.

        The visit finds the rows' lengths, too.
        """
        out, norms = np.empty((len(points), self.count)), np.empty(self.count)
        core.scores_at(self._compiled, np.ascontiguousarray(points), out, norms, self._budget)
        self.__dict__["squared_norms"] = norms
        return out

    def combine(self, coefficients: Vector, budget: core.Budget = core.ALL_CORES) -> Vector:
        """``sum_i coefficient_i x_i``: one pass over the rows whose coefficient is not zero."""
        out = np.empty(self.columns)
        core.combine(self._compiled, np.ascontiguousarray(coefficients, np.float64), out, budget)
        return out

    def combine_groups(
        self, coefficients: Vector, groups: Indices, count: int, budget: core.Budget = core.ALL_CORES
    ) -> Matrix:
        """``sum_i coefficient_i x_i`` over the rows of each group: one pass for all groups."""
        out = np.empty((count, self.columns))
        core.combine_groups(self._compiled, np.ascontiguousarray(coefficients), groups, out, budget)
        return out

    def gram(self, weights: Vector, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``sum_i weight_i x_i x_i'``: one pass over the rows whose weight is not zero."""
        lower = np.zeros((self.columns, self.columns))
        core.add_outer_products(self._compiled, np.ascontiguousarray(weights, np.float64), lower, budget)
        return lower + np.tril(lower, -1).T

    @cached_property
    def longest(self) -> int:
        """The largest number of values that a row has, or a bound on it."""
        return min(self.columns, self._compiled.longest)

    @cached_property
    def squared_norms(self) -> Vector:
        """``|x_i|^2`` of every row."""
        out = np.empty(self.count)
        core.squared_norms(self._compiled, out, self._budget)
        return out

    @cached_property
    def largest_length(self) -> float:
        """The length of the longest row, without those of the others."""
        longest = math.sqrt(self.squared_norms.max(initial=0.0))
        return longest * self.length_rounding

    def twofold_scores(self, w: Vector) -> core.TwofoldScores | None:
        """``<w, x_i>`` in twofold precision, or None where values are formed on the way."""
        return core.twofold_scores(self.stored_data, np.ascontiguousarray(w)) if self.is_stored else None

    def twofold_squared_norm_of(self, coefficients: Vector) -> float:
        """``squared_norm_of`` in twofold precision."""
        return core.twofold_squared_length(self.stored_data, np.ascontiguousarray(coefficients))

    def dense(self, which: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """Some rows as a matrix."""
        out = np.empty((len(which), self.columns))
        core.gather(self._compiled, which, np.ones(len(which)), out, budget)
        return out

    def block(self, first: Indices, second: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``<x_i, x_j>`` for i in first and j in second."""
        out = np.empty((len(first), len(second)))
        core.inner_products(self._compiled, first, second, out, budget)
        return out

    @property
    def offers_single_columns(self) -> bool:
        """Whether the values are stored, so that there can be a copy of them by columns."""
        return self.is_stored

    @cached_property
    def by_columns(self) -> core.Data:
        """A copy of the values in which each column lies together, as a row."""
        return self.stored_data.transposed(core.ALL_CORES)

    @cached_property
    def without_private_columns(self) -> tuple[core.AnyData, Vector] | None:
        """A smaller float32 copy of stored rows for dual methods, or None where it would not pay.

        Columns that occur in one row only are left out; the second part holds, for every row, the sum
        of their squared values. See core/data/private_columns.hpp.
        """
        if isinstance(self._compiled, core.MonomialData) or not self._fits_single_precision:
            return None
        return core.without_private_columns(self._compiled, core.ALL_CORES)

    @cached_property
    def in_single_precision(self) -> core.Data | None:
        """Sparse rows with their values in float32, which share their columns with these.

        None where the values are that already, or where float32 has no room for those that matter.
        """
        if not self.is_stored or not self._fits_single_precision:
            return None
        return self.stored_data.in_single_precision(core.ALL_CORES)

    @property
    def _fits_single_precision(self) -> bool:
        """Whether float32 has room for the longest row, and for all that matters beside it."""
        return _LEAST_SINGLE <= self.largest_length <= _MOST_SINGLE


def _sparse_data(matrix: Any) -> core.Data:
    values, indices, offsets = map(np.ascontiguousarray, (matrix.data, matrix.indices, matrix.indptr))
    if indices.dtype != offsets.dtype:
        wider = np.result_type(indices, offsets)
        indices, offsets = indices.astype(wider), offsets.astype(wider)
    return core.Data.sparse(values, indices, offsets, matrix.shape[1])


def _row_major(X: Any) -> NDArray[Any]:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"Rows need a matrix with one row per example. Got an array of {array.ndim} dimensions "
            "instead. Reshape it with X.reshape(-1, 1) if it has a single feature."
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    unit = array.dtype.itemsize
    if (array.shape[1] > 1 and array.strides[1] != unit) or array.strides[0] % unit:
        array = np.ascontiguousarray(array)
    return array


def refuse_extremes(total_cost: float, largest_length: float, *, kernel: bool = False) -> None:
    """Raises ValueError where costs, rows or both are beyond what float64 can square."""
    too_large = f"Float64 has no room for the squares of such numbers: the limit is {LARGEST:g}."
    if not total_cost <= LARGEST:
        raise ValueError(
            f"C times the weights of all rows sums up to {total_cost:.3g}. {too_large} Use a smaller C, or "
            f"smaller weights. {_HARD}"
        )
    if not largest_length <= LARGEST:
        what = "The image of a row under the kernel" if kernel else "A row of X"
        cure = _KERNEL if kernel else _SCALE
        raise ValueError(f"{what} has the length {largest_length:.3g}. {too_large} {cure}")
    if total_cost * largest_length > _LARGEST_PRODUCT:
        raise ValueError(
            f"C times the weights of all rows sums up to {total_cost:.3g}, and the longest row has the "
            f"length {largest_length:.3g}: their product, the length that w may have, is above "
            f"{_LARGEST_PRODUCT:g}, and its square beyond float64. Use a smaller C, or smaller weights. "
            f"{_KERNEL if kernel else _SCALE}"
        )


def refuse_tiny(largest_length: float) -> None:
    """Raises ValueError where rows are so short that a w with margins of 1 could not be squared."""
    if 0.0 < largest_length < 1.0 / LARGEST:
        raise ValueError(
            f"The longest row has the length {largest_length:.3g}. Margins of 1 need a w that is longer "
            f"than {LARGEST:g}, and float64 has no room for the squares of such numbers. {_SCALE}"
        )


def is_within_limits(number: float) -> bool:
    """Whether neither the square of a number above 0 nor its inverse leaves the range of float64."""
    return math.isfinite(number) and 1.0 / LARGEST <= number <= LARGEST
