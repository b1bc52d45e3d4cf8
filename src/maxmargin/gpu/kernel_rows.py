# SPDX-License-Identifier: BSD-3-Clause
"""Rows on a GPU, seen through a kernel: their scores are sums in double precision there.

Problem, loop and certificate do not know the difference. The bounds on rounding are those of the CPU: each
value is a function of one sum over the columns, whatever its order, and the functions of CUDA in double
precision are off by two roundings at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.gpu.cards import Card
from maxmargin.gpu.programs import EXPANSIONS, numbers_of, program_for
from maxmargin.gpu.scores import TILE, by_products, sums_on_card, support_of
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem.rows import Rows
from maxmargin.types import Tell, Vector

_SHARE_OF_MEMORY = 0.8
"""The share of the card's free memory that the data may take: copies for the solver come on top."""


class CardData:
    """The rows of X on a card, all values stored, shared by all problems of a fit."""

    def __init__(self, card: Card, X: Any) -> None:
        count, columns = X.shape
        wide = X.dtype != np.float32
        needed, free = count * columns * (8 if wide else 4) + count * columns * 4, card.free_bytes
        if needed > _SHARE_OF_MEMORY * free:
            raise MemoryError(
                f"The data take {needed / 1e9:.1f} GB on the GPU, which has {free / 1e9:.1f} GB free. Use "
                "device='cpu', fewer rows or columns, or values of float32."
            )
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


class CardKernelRows(KernelRows):
    """``KernelRows`` whose values lie on a card, too."""

    packed = False  # the card has the values as they are
    sample = (2048, 16384)  # fewer values take a card no less time

    def __init__(
        self, on_card: CardData, X: Rows, kernel: Kernel, *, which: NDArray[np.intp] | None = None
    ) -> None:
        super().__init__(X, kernel, which=which)
        self.on_card = on_card
        self._program = program_for(EXPANSIONS, kernel, on_card.stored)
        self._numbers = on_card.card.put(numbers_of(kernel))

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
