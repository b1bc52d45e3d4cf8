# SPDX-License-Identifier: BSD-3-Clause
"""The problems of one fit of a kernel classifier, on rows that they share."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.kernels.base import Kernel, Linear, Precomputed
from maxmargin.kernels.cache_use import cache_notes
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.uncoupled import split
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import HINGE
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model
from maxmargin.reductions.linear_kernel import Columns, factor_of
from maxmargin.reductions.one_vs_one import PairCertificates, place_coefficients
from maxmargin.reductions.one_vs_rest import Certificates
from maxmargin.reductions.small_problems import (
    MOST_ROUNDS,
    Part,
    Parts,
    SmallModels,
    one_after_the_other,
    solve_small,
)
from maxmargin.types import Vector

_MOST_COLUMNS = 1_000
"""Of a factor of a kernel matrix."""
_SPLIT_FROM = 5_000
"""Rows from which blocks are looked for."""


class ClassProblems:
    """The problems of one fit: two classes, all pairs of classes, or each class against the rest."""

    rows: Rows
    kernel: Kernel
    matrix: NDArray[Any] | None
    """All values of the kernel, where they are at hand."""
    plain_rows: Rows | None = None
    """The rows themselves, where the kernel is their inner product."""
    kernel_is_none: bool = False
    """Whether some rows have shown that the kernel is none."""

    def __init__(
        self, labels: NDArray[Any], codes: NDArray[np.intp], costs: Vector, one_vs_rest: bool
    ) -> None:
        self.labels, self.codes, self.costs = labels, codes, costs
        self.one_vs_rest = one_vs_rest
        self.order = np.argsort(codes, kind="stable")
        """All rows, those of the first class first."""
        self.sizes = np.bincount(codes)
        self.ends = np.cumsum(self.sizes)
        counted = np.bincount(codes, costs > 0)
        if not counted.all():
            raise ValueError(
                f"Class {labels[counted == 0][0]!r} has no row with a weight above 0, so it cannot be told "
                "from other classes. Give one of its rows a weight above 0, or leave the class out."
            )
        self._scratch = threading.local()
        self._spare = core.SpareMemory()
        self.pairs = list(combinations(range(len(labels)), 2))

    def __len__(self) -> int:
        return len(self.labels) if self.one_vs_rest else len(self.pairs)

    @property
    def what(self) -> str:
        """What a problem is about, for the log."""
        return "class" if self.one_vs_rest or len(self.labels) == 2 else "pair"

    def name(self, k: int) -> Any:
        """The label that is told from the others, or the two labels of a pair."""
        if self.one_vs_rest or len(self.labels) == 2:
            return self.labels[k if self.one_vs_rest else 1]
        i, j = self.pairs[k]
        return self.labels[i], self.labels[j]

    def count(self, k: int) -> int:
        """Rows of a problem."""
        if self.one_vs_rest:
            return len(self.codes)
        i, j = self.pairs[k]
        return int(self.sizes[i] + self.sizes[j])

    @property
    def largest(self) -> int:
        """Rows of the largest problem."""
        return len(self.codes) if self.one_vs_rest else int(np.sort(self.sizes)[-2:].sum())

    def see(self, X: Any, kernel: Kernel, matrix: NDArray[Any] | None) -> None:
        """What all problems share: the rows, or all values of the kernel."""
        given = matrix is not None
        self.rows = Rows(matrix if given else X, check_finite=False, keep_zeros=given)
        if isinstance(kernel, Linear):
            self.plain_rows = Rows(X, check_finite=False) if given else self.rows
        self.kernel, self.matrix = Precomputed() if given else kernel, matrix
        self.kernel.refuse_negative(self.rows)

    def part(self, k: int) -> Part:
        """The rows of a problem; those of a pair are its first class and then its second."""
        if self.one_vs_rest or len(self.labels) == 2:
            positive = self.codes == (k if self.one_vs_rest else 1)
            return Part(np.arange(len(self.codes)), np.where(positive, 1.0, -1.0), self.costs)
        i, j = self.pairs[k]
        which = np.concatenate([self._members(i), self._members(j)])
        y = np.ones(len(which))
        y[self.sizes[i] :] = -1.0
        return Part(which, y, self.costs[which])

    def problem(self, k: int) -> Problem:
        """Rows are shared, not copied."""
        which, y, costs = self.part(k)
        rows = KernelRows(self.rows, self.kernel, which=which)
        rows.kernel_is_none = self.kernel_is_none
        rows.spare = self._spare
        if len(which) >= _SPLIT_FROM and self.matrix is None:
            rows.blocks = split(
                self.rows, self.kernel, float(costs.sum()), _affordable(rows, y, costs), which
            )
        return Problem(rows, y, costs, HINGE, Intercept.EXACT)

    def columns(self, k: int) -> Columns | None:
        """To solve a problem on: the rows themselves, copied, where the kernel is their inner product.

        Else a factor of the kernel matrix; None where that is the matrix of no kernel, or hardly smaller.
        """
        which, y, costs = self.part(k)
        if self.plain_rows is not None:
            whole = len(which) == self.plain_rows.count
            rows = self.plain_rows if whole else self.plain_rows.take(which)
            return Problem(rows, y, costs, HINGE, Intercept.EXACT)
        if self.kernel_is_none:
            return None
        every = np.arange(len(which))
        factor = factor_of(KernelRows(self.rows, self.kernel, which=which).block(every, every))
        return factor if factor is not None and factor.shape[1] <= _MOST_COLUMNS else None

    def solve_at_once(self, tol: float, tiny: int) -> SmallModels:
        """All problems in one call, with all values of the kernel at hand; see ``solve_small``."""
        matrix = np.ascontiguousarray(self.matrix, np.float64)
        return solve_small(matrix, self._all_parts(), tol, tiny, Budget(math.inf, 1), **self._options)

    def _all_parts(self) -> Parts:
        if self.one_vs_rest or len(self.labels) == 2:
            return one_after_the_other([self.part(k) for k in range(len(self))])
        # As ``part`` has it, for all pairs at once: of ten classes there are 45.
        members = [self._members(i) for i in range(len(self.labels))]
        which = np.concatenate([members[i] for pair in self.pairs for i in pair])
        sizes = self.sizes[np.array(self.pairs)]
        y = np.repeat(np.tile([1.0, -1.0], len(sizes)), sizes.ravel())
        begins = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
        return Parts(which, y, self.costs[which], begins)

    @property
    def _options(self) -> dict[str, Any]:
        # A linear kernel that is not easy is soon solved on the columns.
        rounds = MOST_ROUNDS if self.plain_rows is None else 20
        return {"kernel_is_none": self.kernel_is_none, "rounds": rounds}

    def solve_alone(self, k: int, tol: float, tiny: int, budget: Budget) -> Model:
        """One problem in one call, with all values of the kernel on its own rows."""
        which, y, costs = self.part(k)
        size = len(which)
        # Kept by its thread: to get so much memory anew can take longer than to solve the problem.
        values = getattr(self._scratch, "values", None)
        if values is None or len(values) < size**2:
            values = self._scratch.values = np.empty(size**2)
        matrix = values[: size**2].reshape(size, size)
        data = self.rows.stored_data
        core.kernel_block(self.kernel.compiled, data, which, data, which, matrix, budget)
        parts = Parts(np.arange(size), y, costs, np.array([0, size]))
        models = solve_small(matrix, parts, tol, tiny, budget, **self._options)
        return replace(models[0], notes=cache_notes(matrix.nbytes, size, 0))

    def _members(self, i: int) -> NDArray[np.intp]:
        members: NDArray[np.intp] = self.order[self.ends[i] - self.sizes[i] : self.ends[i]]
        return members

    def coefficients(self, each: Sequence[Vector]) -> NDArray[np.float64]:
        """In the shape of ``dual_coef_``, with a column for every row, in the order of the classes."""
        if self.one_vs_rest or len(each) == 1:
            return np.array(each)[:, self.order]
        return place_coefficients(len(self.labels), self.sizes, each)

    def together(self, certificates: Sequence[Certificate]) -> Certificates:
        """The certificates as one."""
        if self.one_vs_rest or len(certificates) == 1:
            return Certificates(certificates)
        return PairCertificates(certificates, self.labels.tolist())


def _affordable(rows: KernelRows, y: Vector, costs: Vector) -> float:
    """An error that no certificate notices: a hundred-millionth of a lower bound on the best value.

    Multipliers in balance with the sum s are worth s - s^2 / 2 max_i k(x_i, x_i) or more.
    """
    largest = float(rows.squared_norms.max())
    most = 2.0 * min(float(costs[y > 0].sum()), float(costs[y < 0].sum()))
    s = min(most, 1.0 / largest) if largest > 0.0 else most
    return 1e-8 * (s - 0.5 * s * s * largest)
