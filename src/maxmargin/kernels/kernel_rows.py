# SPDX-License-Identifier: BSD-3-Clause
"""The rows of a problem, seen through a kernel.

The best w lies in the span of the images, ``w = sum_j c_j phi(x_j)`` (the representer theorem, 003), so
it is held by its coefficients c, one per row. Then ``<w, phi(x_i)> = (K c)_i`` and ``|w|^2 = c' K c``: all
that the problem and its certificate need. They do not know that they deal with a kernel.
"""

from __future__ import annotations

import math
import time
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.kernels.base import Function, Kernel, Linear, Precomputed
from maxmargin.kernels.rounding import Rounding, rounding_of
from maxmargin.kernels.uncoupled import Blocks, whole
from maxmargin.problem.rows import NOT_STORED, UNIT, Matrix, Rows, RowSpace
from maxmargin.types import Indices, Tell, Vector

_TWOFOLD_PRODUCTS = 1_000_000_000
"""Products of values, up to which scores in twofold precision are worth their time: two seconds."""
_TWOFOLD_EXPONENTIAL = 150
"""Such products that an exponential in twofold precision takes as long as."""

_IN_CHUNKS, _IN_A_TILE = 280, 64
"""Additions that each product of a score goes through in the core, at most: so many, and one for as many
rows of the support. Chunks of up to 2048 rows are summed up eight at a time, and tiles of 64 as a whole
(core/kernel/kernel_values.cpp)."""

_NO_COLUMNS = (
    "Rows that are seen through a kernel have no columns at hand. Use a kernel solver, which does without "
    "them, or a feature map before a linear problem."
)


class KernelRows(RowSpace):
    """Rows of X as a kernel sees them; X itself is read as ``Rows`` says.

    ``which`` takes some of the rows only, without a copy of them. ``blocks`` leaves out pairs of rows whose
    kernel value cannot count; the bound on what was left out goes into every certificate. A function as
    kernel, or a precomputed one, needs memory for all pairs.
    """

    has_kernel = True
    spare: core.SpareMemory | None = None
    """The memory for rows of the kernel matrix that problems hand on from one to the next."""
    rounding: Rounding | None = None
    """Bounds for the rows of X, where they are known."""
    packed: bool = True
    """Whether rows may be held as multiples of one number, to the rounding of their type."""
    source: tuple[Kernel, core.Data] | None = None
    """The kernel and the data that a given matrix was computed from, where it was."""

    sums_in_chunks = True
    """Whether scores are sums of sums over a few rows each, as the core makes them."""
    sample = (64, 8192)
    """The numbers of support vectors and of rows in the sample that tells how long a value takes."""

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        *,
        which: NDArray[np.intp] | None = None,
        blocks: Blocks | None = None,
        check_finite: bool = True,
    ) -> None:
        given = isinstance(kernel, Precomputed | Function)
        if isinstance(kernel, Function):
            X = kernel(X)
        if given and not isinstance(X, Rows) and (np.ndim(X) != 2 or X.shape[0] != X.shape[1]):
            raise ValueError(
                "A precomputed kernel needs a square matrix with a row and a column for every example. Got "
                f"shape {np.shape(X)} instead."
            )
        rows = X if isinstance(X, Rows) else Rows(X, check_finite=check_finite, keep_zeros=given)
        if not rows.is_stored:
            raise ValueError(NOT_STORED)
        kernel.refuse_negative(rows)
        self._rows = rows
        self.kernel = kernel
        self.which = np.arange(rows.count) if which is None else np.asarray(which, np.int64)
        """The rows of the data that the problem is about, in its order."""
        self.blocks = blocks or whole(self.count)
        self._last: list[tuple[Vector, Vector, float]] = []
        """The last two w, since a proof is about two points: each with its scores, and the largest score of
        its magnitudes, if that was asked for."""
        self._seconds_per_value: float | None = None
        self._all: Matrix | None = None

    @property
    def data(self) -> core.Data:
        """The rows of X, without the kernel."""
        return self._rows.stored_data

    @property
    def count(self) -> int:
        """The number of rows, n."""
        return len(self.which)

    @property
    def columns(self) -> int:
        """The length of w, which has one coefficient for each row."""
        return self.count

    @property
    def stored(self) -> int:
        """Number of stored values of X."""
        return self._rows.stored

    @cached_property
    def squared_norms(self) -> Vector:
        """``k(x_i, x_i)``."""
        return self._diagonal()[self.which]

    def _diagonal(self) -> Vector:
        out = np.empty(self.data.count)
        core.kernel_diagonal(self.kernel.compiled, self.data, out, core.ALL_CORES)
        return out

    def block(self, first: Indices, second: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """``k(x_i, x_j)`` for i in first and j in second."""
        out = np.empty((len(first), len(second)))
        pairs = self.data, self.which[first], self.data, self.which[second]
        core.kernel_block(self.kernel.compiled, *pairs, out, budget)
        return out

    def all_values(self, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """The values of all pairs of rows, which are kept; some are missing once the budget is spent."""
        if self._all is None:
            every = np.arange(self.count)
            values = self.block(every, every, budget)
            if budget.spent:
                return values
            self._all = values
        return self._all

    def forget_values(self) -> None:
        """Give the memory for the values of all pairs back."""
        self._all = None

    def scores(self, w: Vector, budget: core.Budget = core.ALL_CORES, tell: Tell | None = None) -> Vector:
        """``<w, phi(x_i)>``: a kernel value for each row and each coefficient that is not zero."""
        last = self._known(w)
        if last is not None:
            return last[1].copy()
        out, largest = np.zeros(self.count), 0.0
        if isinstance(self.kernel, Linear):
            out = self._linear_sums(w, budget)
        else:
            for members in self.blocks.members():
                counts = w[members] != 0.0
                support = members[counts]
                if len(support):
                    # The support first: values of sparse rows among it are then computed once.
                    targets = np.concatenate([support, members[~counts]])
                    sums = self._sums(w, support, targets, budget, tell)
                    out[targets], largest = sums[0], max(largest, float(sums[-1].max()))
        self._last = [*self._last[-1:], (w.copy(), out.copy(), largest)]  # a solver may go on in its own w
        return out

    def _known(self, w: Vector) -> tuple[Vector, Vector, float] | None:
        """What is known of a w whose scores were computed last, or the time before; or of a multiple."""
        for known, scores, largest in self._last:
            if np.array_equal(known, w):
                return known, scores, largest
            place = int(np.abs(known).argmax())
            factor = float(w[place] / known[place]) if known[place] != 0.0 else 0.0
            if factor <= 0.0:
                continue
            # What this lets through is a part of ``_relative_error``.
            off, whole = (core.dot(np.abs(part), self.lengths) for part in (w - factor * known, w))
            if off <= 4.0 * UNIT * whole:
                return w, factor * scores, factor * largest
        return None

    def _sums(
        self,
        w: Vector,
        support: NDArray[np.intp],
        targets: NDArray[np.intp],
        budget: core.Budget,
        tell: Tell | None = None,
    ) -> Vector:
        """``sum_j w_j k(x_j, x_i)`` over the support, for each of the targets; of |w|, too, if packed."""
        coefficients = w[support][np.newaxis]
        if self._its_rounding.moved:
            coefficients = np.concatenate([coefficients, np.abs(coefficients)])
        out = np.empty((len(coefficients), len(targets)))
        core.kernel_expansions(
            self.kernel.compiled,
            self.data,
            self.which[support],
            self.data,
            self.which[targets],
            out,
            coefficients=np.ascontiguousarray(coefficients),
            segments=np.array([0, len(support)]),
            single=False,
            budget=budget,
            tell=tell,
            packed=self.packed,
        )
        return out

    def _linear_sums(self, w: Vector, budget: core.Budget) -> Vector:
        """Two passes over the rows, instead of a product for each pair of them."""
        normal, out = np.empty(self.data.columns), np.empty(self.data.count)
        coefficients = np.asarray(np.bincount(self.which, w, self.data.count), np.float64)
        core.combine(self.data, coefficients, normal, budget)
        core.scores(self.data, normal, out, budget)
        return out[self.which]

    def seconds_of_scores(self, w: Vector, budget: core.Budget) -> float:
        """How long ``scores`` will take, as a sample of the values tells; 0 where two passes do."""
        if isinstance(self.kernel, Linear):
            return 0.0
        if self._seconds_per_value is None:
            some, targets = (
                np.linspace(0, self.count - 1, min(self.count, size)).astype(np.intp)
                for size in self.sample
            )
            self._sums(np.ones(self.count), some[:8], targets[:8], budget)  # the first time takes longer
            before = time.perf_counter()
            self._sums(np.ones(self.count), some, targets, budget)
            self._seconds_per_value = (time.perf_counter() - before) / (len(some) * len(targets))
        values = sum(np.count_nonzero(w[members]) * len(members) for members in self.blocks.members())
        return self._seconds_per_value * float(values)

    def combine(self, coefficients: Vector, budget: core.Budget = core.ALL_CORES) -> Vector:
        """``sum_i coefficient_i phi(x_i)``, which is held by its coefficients."""
        return np.array(coefficients, np.float64)

    def gram(self, weights: Vector, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """An error: the images may have infinitely many columns."""
        raise ValueError(_NO_COLUMNS)

    def dense(self, which: Indices, budget: core.Budget = core.ALL_CORES) -> Matrix:
        """An error, for the same reason."""
        raise ValueError(_NO_COLUMNS)

    @cached_property
    def lengths(self) -> Vector:
        """The lengths of the images: see kernels/rounding.py."""
        return self._its_rounding.lengths[self.which]

    @cached_property
    def _its_rounding(self) -> Rounding:
        if self.rounding is not None:
            return self.rounding
        return rounding_of(*self._computed_from, packed=self.packed)

    @property
    def _computed_from(self) -> tuple[Kernel, core.Data]:
        return self.source or (self.kernel, self.data)

    def _relative_error(self, w: Vector) -> float:
        """The error of a score as a share of the lengths: of values, and of their sum."""
        terms = np.count_nonzero(w)
        if isinstance(self.kernel, Linear):
            terms += self.data.columns  # a sum over the rows, and then over the columns
        elif self.sums_in_chunks:
            terms = min(terms, _IN_CHUNKS + terms // _IN_A_TILE)
        return self._its_rounding.value_error + (terms + 16) * UNIT

    def squared_norm(self, w: Vector) -> float:
        """An upper bound on ``|w|^2``, with what rounding takes and what the blocks leave out."""
        sizes = np.abs(w)
        length, total = core.dot(sizes, self.lengths), float(sizes.sum())
        error = (self._relative_error(w) + core.sum_rounding(len(w))) * length * length
        left_out = self.blocks.left_out * total * total + total * self._off_by_moving(w, total)
        return core.dot(w, self.scores(w)) + 1.01 * error + left_out

    def plain_squared_norm(self, w: Vector) -> float:
        """``|w|^2`` as it is computed, without a bound on rounding."""
        return core.dot(w, self.scores(w))

    def score_error(self, w: Vector) -> tuple[float, float]:
        """(per_length, constant): the second is for what the blocks leave out."""
        sizes = np.abs(w)
        per_length = 1.01 * self._relative_error(w) * core.dot(sizes, self.lengths)
        total = float(sizes.sum())
        return per_length, self.blocks.left_out * total + self._off_by_moving(w, total)

    def _off_by_moving(self, w: Vector, total: float) -> float:
        """What a score is off by where packed rows are not quite those of the data."""
        if not self._its_rounding.moved:
            return 0.0
        if self._known(w) is None:
            self.scores(w)
        last = self._known(w)
        assert last is not None
        return self._its_rounding.off_by_moving(total, last[2])

    def unpacked(self) -> KernelRows | None:
        """The same rows, read as they are; None where they are not held as multiples of one number."""
        kernel, data = self._computed_from
        if not self.packed or not any(core.packing_error(kernel.compiled, data)):
            return None
        rows = KernelRows(Rows.of(data), kernel, which=self.which, blocks=self.blocks)
        rows.packed, rows.kernel_is_none = False, self.kernel_is_none  # with a rounding of their own
        return rows

    def twofold_scores(self, w: Vector) -> core.TwofoldScores | None:
        """``<w, phi(x_i)>`` in twofold precision, or None for many rows and kernels without such values."""
        kernel, data = self._computed_from
        shapes = [factor[1] for _, factors in kernel.terms for factor in factors]
        each = data.columns + _TWOFOLD_EXPONENTIAL * shapes.count("exponential")
        products = np.count_nonzero(w) * self.count * each
        if len(self.blocks) > 1 or products > _TWOFOLD_PRODUCTS or not core.has_twofold(kernel.compiled):
            return None
        return core.twofold_scores(kernel.compiled, data, self.which, np.ascontiguousarray(w), self.lengths)

    def twofold_squared_norm_of(self, coefficients: Vector) -> float:
        """``squared_norm_of`` in twofold precision."""
        scores = self.twofold_scores(coefficients)
        return math.inf if scores is None else scores.squared_length

    def combined_error(self, coefficients: Vector) -> float:
        """Nothing: w is held by its coefficients."""
        return 0.0

    def squared_norm_of(self, coefficients: Vector, combined: Vector, error: float | None = None) -> float:
        """An upper bound on the squared length of the sum that these very coefficients make."""
        return self.squared_norm(coefficients)
