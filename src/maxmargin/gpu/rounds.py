# SPDX-License-Identifier: BSD-3-Clause
"""The multipliers of a kernel problem on a card, and the four calls that one round of working sets makes.

All arrays are in the order of the parts: blocks of rows that the kernel does not couple.
"""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from maxmargin.gpu.halves import halves_of
from maxmargin.gpu.kernel_rows import CardKernelRows
from maxmargin.gpu.programs import (
    BY_PRODUCTS,
    SHIFTED,
    WORKING_SETS,
    Program,
    numbers_of,
    program_for,
    selection,
    sums_of,
)
from maxmargin.gpu.scores import TILE
from maxmargin.types import Indices, Vector

SET, MOVERS = 1024, 256
"""Rows of a working set, and threads that move its pairs, as in cuda/sets.cuh and cuda/working_sets.cu."""
LOOK, _BINS, _NEW = 4096, 1024, 512
"""Rows of a look, bins of violations, and rows that are new in a set at most, as in cuda/selection.cu."""
_FACTS, _SUMS, _TALLIES = 8, 3, 3
"""Numbers that a round tells of each part, that a look adds up, and that it counts."""
_LONG_ROW = 64
"""Columns above which products of matrices are worth their time: with fewer, differences take as long."""
_SHARE_FOR_MATRIX = 0.6
"""The share of the card's free memory that this matrix may take."""
_VALUES_AT_ONCE = 2**28
"""Values that are made by one product of matrices: 1 GB."""
_MOST_AMONG = 65_536
"""Rows that are solved among themselves, at most: their values take 17 GB, and a tenth of a second."""
_SHARE_OF_FREE = 0.75
"""The share of them that may be inside their walls; of more, the worst violators alone are taken."""
_LEAST_SHARE_AMONG = 4
"""Rows are solved among themselves where one in so many has room there, or as many as a set has."""
_MOST_CHANGED = 16_384
"""Rows whose changes are added to all scores at a time: of more, few rows of products have room."""
_ROWS_PER_BLOCK = 8
"""Rows that a block of 256 threads adds products up for: one for each warp."""


class Facts(NamedTuple):
    """What the card tells of each part before a round; see cuda/selection.cu."""

    up: Vector
    """The largest slope of a multiplier beta that may rise."""
    down: Vector
    """The least slope of one that may fall."""
    gap: Vector
    """The gap of the part at the intercept ``b``."""
    dual: Vector
    fresh: Vector
    """Rows that are new in its set."""
    size: Vector
    """Rows of its set."""
    b: Vector
    balance: Vector
    """The sum of beta."""

    @property
    def violation(self) -> float:
        """The largest of all multipliers, at the intercept of their part."""
        return float(np.maximum(self.up - self.b, self.b - self.down).max())


class Rounds:
    """The state of a problem on the card, or of several ones.

    order, begins
        The rows of all parts, one part after the other, as places among the rows; where each part begins.
    y, costs
        In this order.
    shared
        Whether parts may have rows in common, as problems of several classes do; else they are blocks.
    """

    def __init__(
        self,
        rows: CardKernelRows,
        order: Indices,
        begins: Indices,
        y: Vector,
        costs: Vector,
        *,
        shared: bool = False,
    ) -> None:
        self.card = card = rows.on_card.card
        arrays = card.arrays
        self.order = order
        self._program: Program = program_for(WORKING_SETS, rows.kernel, "float")
        self._numbers = card.put(numbers_of(rows.kernel))
        if shared:
            self._values = self._single(rows, np.arange(rows.count), np.array([0, rows.count]))
            self._rows = card.put(order, np.int64)
        else:
            self._values = self._single(rows, order, begins)
            self._rows = arrays.arange(len(order), dtype=np.int64)
        columns = self._values.shape[1]
        self._by_products = columns > _LONG_ROW and sums_of(rows.kernel) <= BY_PRODUCTS
        """Whether values follow from products of matrices: rows are so long that these are quicker."""
        self._squares: Any = (self._values * self._values).sum(axis=1) if self._by_products else None
        self._halves: Any = halves_of(card, self._values) if self._by_products else None
        self._is_shared = shared
        self._y, self._costs = card.put(y, np.float32), card.put(costs, np.float64)
        self.alpha, self.scores = arrays.zeros(len(order)), arrays.zeros(len(order))
        one, fits = shared or len(begins) == 2, len(self._values) <= self._most_in_matrix
        self._begin(begins, with_matrix=self._by_products and one and fits)

    def _begin(self, begins: Indices, *, with_matrix: bool) -> None:
        """Make room for what a round needs beside the problem itself, with empty sets."""
        card, arrays = self.card, self.card.arrays
        self.parts, self._bounds = len(begins) - 1, begins
        self._begins = card.put(begins, np.int64)
        self._matrix = self._all_values() if with_matrix else None
        """The kernel of all pairs of rows, where rows are long and it fits."""
        self._sets = arrays.full((self.parts, SET), -1, np.int32)
        self._marked = arrays.zeros(len(self._y), np.uint8)
        self._facts = arrays.zeros((self.parts, _FACTS))
        self._matrices = arrays.empty((self.parts, SET, SET), np.float32)
        self._changes = arrays.zeros((self.parts, SET), np.float32)
        self._places = arrays.zeros((self.parts, SET), np.int32)
        self._counts = arrays.zeros((self.parts, 2), np.int32)
        self._price = arrays.zeros(1)
        self._count = 0
        """Rounds so far."""
        self._near: Any = None
        """Which scores are up to date, where rows that matter are solved among themselves; None: all."""
        self._tasks, _ = self._pieces(TILE if self._matrix is None else 256)
        self._looks, self._firsts = self._pieces(LOOK)
        """The looks at all parts, and where those of each part begin."""
        looks = len(self._looks)
        self._extremes = arrays.zeros((looks, 2), np.float32)
        self._sums, self._tallies = arrays.zeros((looks, _SUMS)), arrays.zeros((looks, _TALLIES), np.int32)
        self._histogram = arrays.zeros((self.parts, 2, _BINS), np.int32)
        self._cuts = arrays.zeros((self.parts, 4), np.int32)
        self._fresh = arrays.zeros((self.parts, _NEW), np.int32)

    def _pieces(self, rows: int) -> tuple[Any, Any]:
        """Pieces of so many rows, each with its part and its first row; and where those of a part begin."""
        firsts = [np.arange(0, size, rows) for size in np.diff(self._bounds)]
        counts = list(map(len, firsts))
        pieces = np.stack([np.repeat(np.arange(self.parts), counts), np.concatenate(firsts)], axis=1)
        begins = np.concatenate([[0], np.cumsum(counts)])
        return self.card.put(pieces, np.int64), self.card.put(begins, np.int64)

    @property
    def _most_in_matrix(self) -> int:
        """Rows that a matrix of all their values has room for."""
        return math.isqrt(int(_SHARE_FOR_MATRIX * self.card.free_bytes) // 4)

    @property
    def is_large(self) -> bool:
        """Whether it is one problem on long rows whose matrix has no room: see ``among``.

        Not where there is hardly room for any: a round moves a set of rows without a matrix of its own.
        """
        if not self._by_products or self._matrix is not None or self.parts > 1 or self._is_shared:
            return False
        return self._most_in_matrix >= min(SET, len(self._values) // _LEAST_SHARE_AMONG)

    def _single(self, rows: CardKernelRows, order: Indices, begins: Indices) -> Any:
        """The rows in single precision, block by block.

        Where the kernel sees differences alone, those of a block are moved to their mean first, which keeps
        digits, and columns that are constant in every block are left out.
        """
        arrays, X = self.card.arrays, rows.on_card.X
        which = self.card.put(rows.which[order])
        if not sums_of(rows.kernel) <= SHIFTED:
            return arrays.ascontiguousarray(X[which], np.float32)
        values = arrays.empty((len(order), X.shape[1]), np.float32)
        varied = arrays.zeros(X.shape[1], bool)
        for begin, end in pairwise(begins.tolist()):
            inside = slice(begin, end)
            own = X[which[inside]]
            varied |= own.max(axis=0) > own.min(axis=0)
            values[inside] = own - own.mean(axis=0, dtype=np.float64)
        return arrays.ascontiguousarray(values[:, varied]) if not bool(varied.all()) else values

    def _all_values(self) -> Any:
        """The kernel of all pairs of rows."""
        arrays, count = self.card.arrays, len(self._values)
        matrix, others = arrays.empty((count, count), np.float32), self._halves.swapped(slice(None))
        some = max(1, _VALUES_AT_ONCE // count)
        for first in range(0, count, some):
            lines = matrix[first : first + some]
            self._halves.products(slice(first, first + some), others, lines)
            grid, places = (-(-count // 256), len(lines)), (np.int64(count), np.int64(first))
            self._call("finish_values", grid, 256, lines, self._squares, *places, self._numbers)
        return matrix

    def _call(self, function: str, blocks: tuple[int, ...], threads: int, *arguments: Any) -> None:
        self.card.call(self._program, function, blocks, threads, *arguments)

    def _select(self, function: str, blocks: tuple[int, ...], *arguments: Any) -> None:
        self.card.call(selection(), function, blocks, SET, *arguments)

    @property
    def beta(self) -> Vector:
        """alpha_i y_i of each row of each part."""
        return np.asarray(self.card.get(self.alpha * self._y))

    @property
    def free(self) -> int:
        """How many multipliers are on neither wall."""
        return int(((self.alpha > 0) & (self.alpha < self._costs)).sum())

    def select(self, price: float | None) -> Facts:
        """Choose the rows of the next sets; ``price`` is the intercept, where it is given.

        While what is told of them is looked at, the card forms their matrices.
        """
        if price is not None:
            self._price.fill(price)
        state = self.alpha, self.scores, self._y, self._costs
        looked = self._begins, self._looks, self._firsts, *state, self._extremes
        asked = np.uint32(self._count), np.int32(price is not None), self._price
        grid = (len(self._looks),)
        self._select(
            "find_extremes", grid, self._begins, self._looks, *state, self._extremes, self._histogram
        )
        self._select("weigh_rows", grid, *looked, *asked, self._histogram, self._sums)
        self._select("count_rows", grid, *looked, *asked, self._histogram, self._cuts, self._tallies)
        placed = self._cuts, self._tallies, self._fresh, self._marked
        self._select("place_rows", grid, *looked, *asked, *placed)
        self._select(
            "refill_sets",
            (self.parts,),
            *(self._begins, self._firsts, self._extremes, *asked[1:], self._histogram, self._sums),
            *(self._fresh, self._marked, self._sets, self._facts),
        )
        self._count += 1
        return Facts(*self.card.get_before(self._facts, self._form).T)

    @property
    def _seen(self) -> tuple[Any, ...]:
        """What the values of the sets' rows with others come from."""
        if self._matrix is None:
            columns = np.int32(self._values.shape[1])
            return self._values, columns, self._numbers, self._begins, self._rows
        return self._matrix, np.int64(len(self._matrix)), self._begins, self._rows

    def _form(self) -> None:
        """The values of the kernel inside each set."""
        if self._matrix is None:
            grid = ((SET // TILE) ** 2, self.parts)
            self._call("form_matrices", grid, 256, *self._seen, self._sets, self._facts, self._matrices)
        else:
            grid = (SET, self.parts)
            self._call("gather_matrices", grid, 256, *self._seen, self._sets, self._matrices)

    def move(self, price: float | None, share: float, least: float, most: int) -> None:
        """Move pairs of the chosen sets, at most ``most`` of each, and bring all scores up to date.

        A set is left where its violation is a ``share`` of what it was, or at ``least``.
        """
        if price is not None:
            self._price.fill(price)
        self._call(
            "move_pairs",
            (self.parts,),
            MOVERS,
            self._matrices,
            self._begins,
            self._sets,
            self.alpha,
            self.scores,
            self._y,
            self._costs,
            np.float32(share),
            np.float32(least),
            np.int32(most),
            self._changes,
            self._places,
            self._counts,
            np.int32(price is not None),
            self._price,
        )
        changed = self._places, self._changes, self._counts, self._tasks, self.scores
        if self._matrix is not None:
            self._call("update_from_matrix", (len(self._tasks),), SET, *self._seen, *changed)
        elif self._by_products:
            self._update_by_products()
        else:
            self._call("update_scores", (len(self._tasks),), 256, *self._seen, *changed)

    def _update_by_products(self) -> None:
        """Scores brought up to date, f += K change, by products of a part's rows with the changed ones."""
        counts = self.card.get(self._counts)[:, 1]
        for part in np.flatnonzero(counts):
            begin, end = self._bounds[part : part + 2].tolist()
            many = int(counts[part])
            changed = self._rows[begin + self._places[part, :many]]
            rows = self._rows[begin:end]
            self._add_products(self.scores[begin:end], rows, changed, self._changes[part, :many])

    def _add_products(self, scores: Any, rows: Any, changed: Any, changes: Any) -> None:
        """The same for the scores of some rows, given which others have changed and by how much.

        As many rows at a time as there is room for products.
        """
        arrays, many = self.card.arrays, len(changed)
        others, squares = self._halves.swapped(changed), self._squares[changed]
        some = max(1, _VALUES_AT_ONCE // many)
        products = arrays.empty((min(some, len(scores)), many), np.float32)
        for first in range(0, len(scores), some):
            inside = slice(first, min(first + some, len(scores)))
            own, count = rows[inside], inside.stop - inside.start
            self._halves.products(own, others, products[:count])
            given = products, np.int64(count), np.int32(many), self._squares[own], squares
            told = self._numbers, changes, scores[inside]
            self._call("add_products", (-(-count // _ROWS_PER_BLOCK),), 256, *given, *told)

    def that_matter(self, b: float) -> Any:
        """The rows that may change sides, at the intercept b: as many as a matrix has room for.

        First those inside their walls, where these leave some room, then the worst violators, then those
        that are nearest to being one.
        """
        arrays, alpha = self.card.arrays, self.alpha
        if self._near is None:
            self._near = arrays.ones(len(alpha), bool)
        else:
            self._bring_back(b)
        beyond = self._y * (self.scores + b) - 1.0
        at_wall, free = alpha >= self._costs, (alpha > 0.0) & (alpha < self._costs)
        order = arrays.where(free, -arrays.abs(beyond), arrays.where(at_wall, -beyond, beyond))
        order[~self._near] = np.inf
        most = min(_MOST_AMONG, self._most_in_matrix, int(self._near.sum()))
        if int(free.sum()) <= _SHARE_OF_FREE * most:
            order[free] = -np.inf
        return arrays.sort(arrays.argsort(order, kind="stable")[:most])

    def _bring_back(self, b: float) -> None:
        """Bring scores that were left out up to date where, as far as they tell, rows are violators."""
        arrays, alpha = self.card.arrays, self.alpha
        beyond = self._y * (self.scores + b) - 1.0
        wrong = ((alpha < self._costs) & (beyond < 0.0)) | ((alpha > 0.0) & (beyond > 0.0))
        which = arrays.flatnonzero(wrong & ~self._near)
        if len(which):
            support, beta = arrays.flatnonzero(alpha), alpha * self._y
            scores = arrays.zeros(len(which))
            self._add_in_parts(scores, which, support, beta[support])
            self.scores[which], self._near[which] = scores, True

    def _add_in_parts(self, scores: Any, rows: Any, changed: Any, changes: Any) -> None:
        """``_add_products`` for any number of rows that have changed."""
        for begin in range(0, len(changed), _MOST_CHANGED):
            some = slice(begin, begin + _MOST_CHANGED)
            self._add_products(scores, rows, changed[some], changes[some].astype(np.float32))

    def among(self, which: Any) -> Rounds:
        """The same problem on some of its rows: the others keep their multipliers."""
        inner = copy.copy(self)
        inner._values, inner._squares = self._values[which], self._squares[which]
        inner._halves = self._halves.take(which)
        inner._rows = self.card.arrays.arange(len(which), dtype=np.int64)
        inner._y, inner._costs = self._y[which], self._costs[which]
        inner.alpha, inner.scores = self.alpha[which], self.scores[which]
        inner._begin(np.array([0, len(which)]), with_matrix=True)
        return inner

    def take(self, which: Any, inner: Rounds, b: float) -> None:
        """Take over the multipliers that were found among some rows, at the intercept b there.

        Scores are brought up to date but for those that are so far from changing sides that they would not
        by as much as any score changes now: what comes after changes less. A proof looks at all of them.
        """
        arrays = self.card.arrays
        changes = (inner.alpha - self.alpha[which]) * self._y[which]
        moved = arrays.flatnonzero(changes)
        self.alpha[which] = inner.alpha
        near = arrays.flatnonzero(self._near)
        before = self.scores[near]
        scores = before.copy()
        self._add_in_parts(scores, near, which[moved], changes[moved])
        self.scores[near] = scores
        reach = float(abs(scores - before).max())
        beyond = self._y * (self.scores + b) - 1.0
        settled = (self.alpha <= 0.0) & (beyond > reach)
        settled |= (self.alpha >= self._costs) & (beyond < -reach)
        self._near &= ~settled

    def begin_with(self, scores: Vector) -> None:
        """Take over scores that were computed anew, of all rows."""
        self.scores, self._near = self.card.put(scores[self.order]), None
