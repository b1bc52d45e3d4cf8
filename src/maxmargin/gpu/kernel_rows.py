# SPDX-License-Identifier: BSD-3-Clause
"""Rows on a GPU, seen through a kernel: their scores are sums in double precision there.

Problem, loop and certificate do not know the difference. The bounds on rounding are those of the CPU: each
value is a function of one sum over the columns, whatever its order, and the functions of CUDA in double
precision are off by two roundings at most.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.gpu.cards import Card, refuse_without_room
from maxmargin.gpu.programs import EXPANSIONS, numbers_of, program_for
from maxmargin.gpu.scores import TILE, by_products, sums_on_card, support_of
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.rounding import WHOLE_NUMBERS
from maxmargin.problem.rows import CompiledRows, Matrix, Rows, lies_on_card
from maxmargin.types import Indices, Tell, Vector


class CardData:
    """The rows of X on a card, all values stored, shared by all problems of a fit.

    ``copied``: a kernel's solver will have them a second time, in single precision.
    """

    def __init__(self, card: Card, X: Any, *, copied: bool = False) -> None:
        count, columns = X.shape
        is_there = lies_on_card(X)
        X = card.put(X) if is_there else X  # PyTorch has types of its own
        wide = X.dtype != np.float32
        stays = is_there and X.dtype in (np.float32, np.float64) and X.flags.c_contiguous
        each = 4 * copied + (0 if stays else 8 if wide else 4)
        refuse_without_room(card, count * columns * each, "The data take")
        self.card = card
        self.stored = "double" if wide else "float"
        self.X = card.contiguous(card.matrix(X), np.float64 if wide else np.float32)

    @property
    def is_finite(self) -> bool:
        """Whether no value is NaN or infinite."""
        return bool(self.card.arrays.isfinite(self.X).all())

    @property
    def columns(self) -> int:
        """The number of columns of X."""
        return int(self.X.shape[1])


class RowsOnCard(Rows):
    """Rows of X that lie on a card, which answers there what a fit asks of them.

    Who needs the values in memory has them copied, or taken from ``given``: a fit hardly ever does.
    """

    def __init__(self, on_card: CardData, given: Any = None) -> None:
        self.on_card, self._given = on_card, given
        self.dtype = np.dtype(np.float64 if on_card.stored == "double" else np.float32)

    @cached_property
    def _compiled(self) -> CompiledRows:  # type: ignore[override]
        values = self.on_card.card.get(self.on_card.X) if self._given is None else self._given
        return Rows(values, check_finite=False).compiled

    is_stored = True

    @property
    def count(self) -> int:
        """Number of rows, n."""
        return int(self.on_card.X.shape[0])

    @property
    def columns(self) -> int:
        """Number of columns, d."""
        return self.on_card.columns

    @property
    def stored(self) -> int:
        """Number of stored values: all of them."""
        return self.count * self.columns

    def _some(self, which: Indices) -> Any:
        X = self.on_card.X
        return X if len(which) == self.count else X[self.on_card.card.put(which)]

    def column_ranges(self, which: Indices) -> tuple[Vector, Vector]:
        """The least and the largest value of every column among some of the rows."""
        rows, get = self._some(which), self.on_card.card.get
        low, high = (np.asarray(get(ends), np.float64) for ends in (rows.min(axis=0), rows.max(axis=0)))
        return low, high

    def read_columns(self, which: Indices, columns: Indices) -> Matrix:
        """The values of some columns, one line for each, of some of the rows."""
        card = self.on_card.card
        return np.asarray(card.get(self._some(which)[:, card.put(columns)].T), np.float64)

    # What bounds on rounding ask for: see kernels/rounding.py.

    @cached_property
    def longest(self) -> int:
        """The largest number of values of a row that are not 0."""
        return int((self.on_card.X != 0).sum(axis=1).max()) if self.columns else 0

    def is_dense_for(self, kernel: Kernel) -> bool:
        """Whether values of the kernel are sums over all columns, in double precision."""
        return True

    @cached_property
    def has_exact_sums(self) -> bool:
        """Whether sums over the columns are whole numbers, and not rounded."""
        X = self.on_card.X
        whole = bool((self.on_card.card.arrays.rint(X) == X).all())
        return whole and float(self._own("product").max(initial=0.0)) <= WHOLE_NUMBERS

    def _own(self, common: str) -> Vector:
        """What each row has in common with itself, summed up in double precision."""
        if common not in self._known:
            from maxmargin.gpu.rows import CardRows

            X, get = self.on_card.X, self.on_card.card.get
            if common == "product":
                self._known[common] = CardRows(self.on_card).squared_norms
            else:
                self._known[common] = get(
                    (abs(X) if common == "minimum" else X).sum(axis=1, dtype=np.float64)
                )
        return self._known[common]

    @cached_property
    def _known(self) -> dict[str, Vector]:
        return {}

    def powers(self, common: str, gamma: float, shift: float, degree: int) -> Vector:
        """``(gamma s_i + shift)^degree`` of what each row has in common with itself."""
        return (gamma * self._own(common) + shift) ** degree


class CardKernelRows(KernelRows):
    """``KernelRows`` whose values lie on a card, too."""

    packed = False  # the card has the values as they are
    sums_in_chunks = False  # but in an order of the card's
    sample = (2048, 16384)  # fewer values take a card no less time

    def __init__(
        self, on_card: CardData, X: Rows, kernel: Kernel, *, which: NDArray[np.intp] | None = None
    ) -> None:
        super().__init__(X, kernel, which=which)
        self.on_card = on_card
        self._program = program_for(EXPANSIONS, kernel, on_card.stored)
        self._numbers = on_card.card.put(numbers_of(kernel))

    def _diagonal(self) -> Vector:
        rows = self._rows
        if not isinstance(rows, RowsOnCard):
            return super()._diagonal()
        out = np.zeros(rows.count)
        for coefficient, factors in self.kernel.terms:
            product = np.full(rows.count, coefficient)
            for common, shape, gamma, shift, degree in factors:
                if shape == "tanh":
                    product *= np.tanh(rows.powers(common, gamma, shift, 1))
                elif shape == "power":
                    product *= rows.powers(common, gamma, shift, degree)
                # A row is at no distance from itself.
            out += product
        return out

    def _linear_sums(self, w: Vector, budget: core.Budget) -> Vector:
        """Two passes over the rows on the card."""
        from maxmargin.gpu.rows import CardRows

        rows = CardRows(self.on_card)
        coefficients = np.asarray(np.bincount(self.which, w, rows.count), np.float64)
        return rows.scores(rows.combine(coefficients, budget), budget)[self.which]

    def _sums(
        self,
        w: Vector,
        support: NDArray[np.intp],
        targets: NDArray[np.intp],
        budget: core.Budget,
        tell: Tell | None = None,
    ) -> Vector:
        """``sum_j w_j k(x_j, x_i)`` over the support, for each of the targets."""
        card, data = self.on_card.card, self.on_card
        if by_products(self.kernel, data.columns):
            rows, others = (
                card.contiguous(data.X[card.put(self.which[some])], np.float64)
                for some in (targets, support)
            )
            sums = sums_on_card(card, self.kernel, rows, support_of(card, others), card.put(w[support]))
            return np.asarray(card.get(sums))[np.newaxis]
        out = card.arrays.empty(len(targets))
        card.call(
            self._program,
            "expand",
            (-(-len(targets) // TILE),),
            256,
            data.X,
            np.int32(data.columns),
            self._numbers,
            card.put(self.which[targets]),
            np.int64(len(targets)),
            card.put(self.which[support]),
            card.put(w[support]),
            np.int64(len(support)),
            out,
        )
        return np.asarray(card.get(out))[np.newaxis]
