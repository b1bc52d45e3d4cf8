# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of rows that the kernel cannot couple: the exact split of a kernel problem.

A gap g between neighbouring values of one column keeps the rows on its two sides apart: a Gaussian kernel
of such a pair is at most exp(-gamma g^2), a Laplacian one at most exp(-gamma g), and gaps in several
columns add up. Where that bound is next to nothing, the kernel matrix is block diagonal but for entries
that a certificate can afford to bound instead of computing them.

    1  cut every column at the gaps that separate two rows which lie across such a gap in two columns
    2  a cell is a set of rows that no cut separates
    3  join cells whose distance does not make the kernel small enough
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from maxmargin.kernels.base import Kernel, Term
from maxmargin.problem.rows import Rows
from maxmargin.types import Indices, Vector

_UNNOTICED = 1e-8
"""The share of the best value that pairs of rows may be worth which a kernel problem leaves out: far below
the relative gaps that fits are asked for."""
_PAYS = 0.7
"""A split pays where it leaves at most this share of all pairs."""
_LEAST_ROWS = 32
"""Smaller blocks are put together: the core computes with twice as many rows at once."""
_MOST_CELLS = 1024
"""Cells that are compared pair by pair, at most: their distances take 16 MB."""
_MOST_VALUES = 50_000_000
"""Values that are read to find cuts, at most: of the columns that could be cut, the widest ones count."""
_BATCH = 8
"""Columns that are read in one pass."""
_SMALLEST_EXPONENT = -700.0
"""Exponents below this are raised to it, since no bound falls below the smallest float."""
_LARGEST = 1e150
"""The largest distance that is counted: its square is still a float."""
_ROUNDING = 1.0 + 1e-12
"""The factor on a bound that covers the rounding of its exponentials and of their sum."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows block by block, largest first.

    Pairs of rows from different blocks have a kernel value of at most ``left_out``, whatever its sign.
    """

    order: Indices
    """All rows, those of a block next to each other."""
    begins: Indices
    """The place in ``order`` where each block begins, and at the end the number of rows."""
    left_out: float = 0.0

    def __len__(self) -> int:
        return len(self.begins) - 1

    def members(self) -> Iterator[Indices]:
        """The rows of each block."""
        for k in range(len(self)):
            yield self.order[self.begins[k] : self.begins[k + 1]]


def whole(count: int) -> Blocks:
    """One block that has all rows."""
    return Blocks(np.arange(count), np.array([0, count]))


@np.errstate(over="ignore")
def split(
    rows: Rows, kernel: Kernel, total_cost: float, error: float, which: Indices | None = None
) -> Blocks:
    """Blocks that widen the gap of a certificate by ``error`` at most, or ``whole`` where none pay.

    ``which`` are the rows that the problem is about (default: all), ``total_cost`` is its sum of costs.
    ``error`` is absolute: take a small part of the gap asked for, such as a hundredth of ``tol`` times a
    lower estimate of the optimum. With s = sum_i |beta_i| <= total_cost, what is left out costs a
    certificate left_out s^2 / 2 in both of its values and total_cost left_out s in the losses, so
    ``left_out <= error / (2 total_cost^2)`` will do.
    """
    which = np.arange(rows.count) if which is None else np.asarray(which, np.int64)
    decay = _Decay.of(kernel.terms)
    allowed = error / (2.0 * total_cost * total_cost) if total_cost > 0 else 0.0
    if decay is None or len(which) < 2 * _LEAST_ROWS or not allowed > 0:
        return whole(len(which))
    cells = _cells(rows, which, decay, allowed, columns_together=2)
    if cells is not None and len(cells) > _MOST_CELLS:
        cells = _cells(rows, which, decay, allowed, columns_together=1)
    if cells is None:
        return whole(len(which))
    if len(cells) <= _MOST_CELLS:
        return _blocks(*_joined(cells, rows, which, decay, allowed))
    # Each of these cuts separates by itself, and the smallest one bounds all pairs.
    gap = min(cells.least_gap, _LARGEST)
    return _blocks(cells.of_row, float(decay.bound(gap, gap**2)))


@dataclass(frozen=True)
class _Decay:
    """A bound on ``|k(x, z)|``: sum_t weight_t exp(-u_t |x - z|_1 - v_t |x - z|^2)."""

    weight: Vector
    per_distance: Vector
    """The rates u_t."""
    per_square: Vector
    """The rates v_t."""

    @classmethod
    def of(cls, terms: tuple[Term, ...]) -> _Decay | None:
        """The bound of a kernel; None where a term has no factor that falls, or a factor without bound."""
        rates = []
        for coefficient, factors in terms:
            if any(shape == "power" for _, shape, *_ in factors):
                return None
            falls = [(common, gamma) for common, shape, gamma, *_ in factors if shape == "exponential"]
            distance = sum(gamma for common, gamma in falls if common == "minimum")
            square = sum(gamma for common, gamma in falls if common == "product")
            if not distance + square > 0:
                return None
            rates.append((coefficient, distance, square))
        weight, per_distance, per_square = np.array(rates, np.float64).T
        return cls(weight, per_distance, per_square)

    def bound(self, distance: Vector | float, square: Vector | float) -> Vector:
        """The bound for rows with at least these distances."""
        total = np.zeros(np.shape(square))
        for weight, u, v in zip(self.weight, self.per_distance, self.per_square, strict=True):
            total += weight * np.exp(np.maximum(-u * distance - v * square, _SMALLEST_EXPONENT))
        return total * _ROUNDING

    def least_gap(self, allowed: float, columns: int, widest: float) -> float | None:
        """A gap that separates when it occurs in so many columns together, next to the least such one."""
        low, high = 0.0, min(widest, _LARGEST)
        if self.bound(columns * high, columns * high**2) > allowed:
            return None
        for _ in range(50):
            middle = 0.5 * (low + high)
            if self.bound(columns * middle, columns * middle**2) > allowed:
                low = middle
            else:
                high = middle
        return high


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cell of every row, and the columns that were cut."""

    of_row: Indices
    count: int
    cuts: dict[int, tuple[Vector, Vector]]
    """The least and the greatest values between the cuts of each column that was cut."""

    def __len__(self) -> int:
        return self.count

    @property
    def least_gap(self) -> float:
        """The smallest gap that was cut."""
        return min(float((low[1:] - high[:-1]).min()) for low, high in self.cuts.values())


def _cells(
    rows: Rows, which: Indices, decay: _Decay, allowed: float, columns_together: int
) -> _Cells | None:
    """The cells of the rows; None where no column has a gap that is wide enough."""
    low, high = rows.column_ranges(which)
    spans = high - low
    gap = decay.least_gap(allowed, columns_together, float(spans.max(initial=0.0)))
    if gap is None:
        return None
    wide = np.flatnonzero(spans >= gap)
    wide = wide[np.argsort(-spans[wide], kind="stable")[: max(1, _MOST_VALUES // len(which))]]
    numbers, count = np.zeros(len(which), np.int64), 1
    cuts: dict[int, tuple[Vector, Vector]] = {}
    for first in range(0, len(wide), _BATCH):
        batch = wide[first : first + _BATCH]
        for column, values in zip(batch, rows.read_columns(which, batch), strict=True):
            intervals = _intervals(values, gap)
            if intervals is not None:
                cuts[int(column)] = intervals
                places = np.searchsorted(intervals[0][1:], values, side="right")
                parts = len(intervals[0])
                numbers, count = _renumbered(numbers * parts + places, count * parts)
        if columns_together > 1 and count > _MOST_CELLS:
            break  # too many to be compared
    return _Cells(numbers, count, cuts) if cuts else None


def _intervals(values: Vector, gap: float) -> tuple[Vector, Vector] | None:
    """The least and the greatest values between the gaps of at least this width; None without any."""
    ordered = np.sort(values)
    cuts = np.flatnonzero(np.diff(ordered) >= gap)
    if not len(cuts):
        return None
    return ordered[np.append(0, cuts + 1)], ordered[np.append(cuts, len(ordered) - 1)]


def _renumbered(numbers: Indices, bound: int) -> tuple[Indices, int]:
    """Numbers below ``bound`` as 0, 1, ... without gaps, and how many there are."""
    if bound > 4 * len(numbers):
        found, numbers = np.unique(numbers, return_inverse=True)
        return numbers, len(found)
    rank = np.cumsum(np.bincount(numbers, minlength=bound) > 0) - 1
    return rank[numbers], int(rank[-1]) + 1


def _joined(
    cells: _Cells, rows: Rows, which: Indices, decay: _Decay, allowed: float
) -> tuple[Indices, float]:
    """The group of every row, and a bound on the kernel between groups."""
    row_of_cell = np.empty(len(cells), np.int64)
    row_of_cell[cells.of_row] = which
    values = rows.read_columns(row_of_cell, np.array(list(cells.cuts)))
    distance, square = np.zeros((len(cells), len(cells))), np.zeros((len(cells), len(cells)))
    for (low, high), value in zip(cells.cuts.values(), values, strict=True):
        places = np.searchsorted(low[1:], value, side="right")
        apart = np.clip(low[places][:, np.newaxis] - high[places], 0.0, _LARGEST)
        apart += apart.T
        distance += apart
        square += apart**2
    bound = decay.bound(distance, square)
    _, group = sparse.csgraph.connected_components(sparse.csr_matrix(bound > allowed), directed=False)
    across = bound[group[:, np.newaxis] != group]
    return group[cells.of_row].astype(np.int64), float(across.max(initial=0.0))


def _blocks(groups: Indices, left_out: float) -> Blocks:
    """The groups as blocks, the small ones put together."""
    sizes = np.bincount(groups)
    by_size = np.argsort(-sizes, kind="stable")
    ordered = sizes[by_size]
    small = int(np.searchsorted(-ordered, -_LEAST_ROWS, side="right"))
    number = np.arange(len(sizes))
    number[small:] = small + np.cumsum(ordered[small:]) // _LEAST_ROWS
    place = np.empty(len(sizes), np.int64)
    place[by_size] = number
    numbers, _ = _renumbered(place[groups], len(sizes) + 1)
    sizes = np.sort(np.bincount(numbers))[::-1]
    if (sizes.astype(np.float64) ** 2).sum() > _PAYS * float(len(groups)) ** 2:
        return whole(len(groups))
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(-np.bincount(numbers), kind="stable")] = np.arange(len(sizes))
    order = np.argsort(rank[numbers], kind="stable")
    return Blocks(order, np.append(0, np.cumsum(sizes)), left_out)


def affordable(squared_norms: Vector, y: Vector, costs: Vector) -> float:
    """An error that no certificate notices: a small share of a lower bound on the best value.

    Multipliers in balance with the sum s are worth s - s^2 / 2 max_i k(x_i, x_i) or more.
    """
    largest = float(squared_norms.max())
    most = 2.0 * min(float(costs[y > 0].sum()), float(costs[y < 0].sum()))
    s = min(most, 1.0 / largest) if largest > 0.0 else most
    return _UNNOTICED * (s - 0.5 * s * s * largest)
