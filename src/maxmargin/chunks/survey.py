# SPDX-License-Identifier: BSD-3-Clause
"""The first pass: what the data are, whether they are sound, and a sample of their rows.

A row is drawn with a probability that grows with its leverage, so that columns that are rarely not 0 are in
the sample as often as others need to be. Its weight is one over that probability. Half of the probability
is the same for all rows. The leverage of sparse rows is that of columns one by one, ``sum_j x_ij^2 /
sum_k x_kj^2`` over the chunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular

from maxmargin import core
from maxmargin.chunks.chunk import BYTES_BESIDE, FEW_COLUMNS, ROWS_PER_COLUMN, Chunk, labels_of, nbytes_of
from maxmargin.chunks.held_out import Folding
from maxmargin.chunks.packed_rows import Packing
from maxmargin.chunks.passes import Passes
from maxmargin.chunks.statement import ONE_THREAD
from maxmargin.problem.rows import Rows
from maxmargin.tools.interrupts import let_through
from maxmargin.types import Indices, Vector

_ROWS_PER_COLUMN, _LEAST_ROWS = 4, 512
"""Rows of a chunk from which the units of its leverages come."""
_PROJECTIONS = 16
"""Random projections for distances: their squares are then right within a factor of two, mostly. As many as
fill the registers of the core."""
_SMALL_SAMPLE = 1 << 23
"""Bytes of a sample that costs next to nothing, so that none need be smaller: 8 MB."""
_SPREADS = 3.0
"""The half width of the first band, in standard deviations of a score at the sample's best point. With two,
300,000 rows of 100 columns lose too much on either side of it, covtype all; with four, rows are solved for
and sent for nothing."""
_OF_A_BAND, _AS_LONG = 8.0, 0.5
"""How often each row of the first band is solved for, with what comes after, in units of a row of a problem
in memory; and the share of all rows from which the small problems take as long as the whole one."""
_OF_THE_HINGES, _AS_LONG_AS_HINGES = 1.0, 0.3
"""The same for the hinge, whose band is solved for once. By processor time, 300,000 x 100 and 10^6 x 100
take about as long in passes as in memory; on a cluster they bring a third of the bytes or fewer."""
_BEFORE_THE_BAND = 1.5
"""The gap that the best point of m rows of d columns has among all, with room to spare, in units of d / m:
1.1 to 1.35 were measured of drawn rows with the hinge."""
_ROWS_OF_A_PASS = 10
"""Rows that a pass over all visits in about the time in which one row of a small problem is solved, where
the pass has a single point to look at."""
_RIDGE = 1e-3
"""The share of the mean variance that every direction has at least, also one that is 0 in these rows."""


@dataclass
class Sample:
    """Some rows, each with the number of rows that it stands for."""

    X: Any
    y: NDArray[Any]
    weight: Vector
    """The weights of the rows themselves."""
    stands_for: Vector
    """One over the probability to be drawn."""
    numbers: Indices
    """The numbers of the rows among all rows of the data."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.y)

    def thinned(self, share: float, seed: int) -> Sample:
        """About this share of the rows; each stands for as many more."""
        kept = np.random.default_rng([seed, self.count]).random(self.count) < share
        return Sample(
            self.X[kept],
            self.y[kept],
            self.weight[kept],
            self.stands_for[kept] / share,
            self.numbers[kept],
        )

    def is_all_of(self, facts: Facts) -> bool:
        """Whether every row of the data is here, and stands for itself."""
        return self.count == facts.rows and bool((self.stands_for == 1.0).all())

    def without(self, folding: Folding, fold: int) -> Sample:
        """The same rows, those of a fold without weight."""
        return replace(self, weight=np.where(folding.of(self.numbers) == fold, 0.0, self.weight))


@dataclass
class Facts:
    """What one chunk is, or all of them."""

    rows: int
    columns: int
    stored: int
    nbytes: int
    labels: NDArray[Any]
    counts: Indices
    weights: Vector
    """The sum of the rows' weights, for each label."""
    largest_length: float
    weighted: bool
    is_sparse: bool
    chunks: int = 1
    largest_chunk: int = 0
    """Bytes of the largest chunk."""
    fold_weights: NDArray[np.float64] | None = None
    """The same sum for each label and fold, where there are folds."""
    fold_rows: Indices | None = None
    """The number of rows of each fold."""

    def without(self, fold: int) -> Facts:
        """The same rows, those of a fold without weight."""
        assert self.fold_weights is not None
        return replace(self, weights=np.delete(self.fold_weights, fold, axis=1).sum(axis=1))


@dataclass(frozen=True)
class Room:
    """The bytes that rows may take which a first pass takes along."""

    sample: int
    """Those of a sample."""
    whole: int = 0
    """Those of all rows, where these are to be solved in memory; 0: they never are."""
    hinge_tol: float | None = None
    """The gap that a fit with the hinge is to reach; None: it has another loss, or none."""

    def has_all(self, rows: int, columns: int, row_bytes: float, known: bool) -> bool:
        """Whether so many rows are all taken along, and solved in memory.

        That takes as long as ten passes over rows in memory, or more. So where their number was ``known``
        before, it is done where the problems of a sample and of a band would be as long.
        """
        if rows * (BYTES_BESIDE + row_bytes) > self.whole:
            return False
        if not known:
            return True  # they are parsed, or made anew: the first pass is most of the fit
        sampled = self.enough(row_bytes, rows, columns)
        if self.hinge_tol is None:
            times, share = _OF_A_BAND, _AS_LONG
        else:
            times, share = _OF_THE_HINGES, _AS_LONG_AS_HINGES
        return sampled + times * unsure_share(columns, sampled) * rows >= share * rows

    def enough(self, row_bytes: float, rows: int, columns: int) -> int:
        """The rows of a sample: no more than are worth their problem.

        A sample of m rows leaves 3 sqrt(d / m) n rows unsure. With the hinge, each of these is solved for
        about as often as a sampled one, and their sum is least for some m. Where it costs less than another
        pass, m is so large that the sample's best point is near enough. Other losses, which have more of
        the sample than its best point, count an unsure row four times.
        """
        most = max(1, int(self.sample / (BYTES_BESIDE + row_bytes)))
        if columns > FEW_COLUMNS or most // 2 >= ROWS_PER_COLUMN * columns:
            most //= 2
        unsure = _SPREADS * math.sqrt(columns) * rows
        if self.hinge_tol is None:
            best = int((2.0 * unsure) ** (2.0 / 3.0))
        else:
            best = int((0.5 * unsure) ** (2.0 / 3.0))
            near = int(_BEFORE_THE_BAND * columns / self.hinge_tol)
            if best < near <= min(most, best + rows / _ROWS_OF_A_PASS):
                best = near
        return min(most, max(best, int(_SMALL_SAMPLE / max(1.0, row_bytes))))


def survey(
    chunk: Chunk, room: Room, rows: int | None, seed: int, folding: Folding | None = None
) -> tuple[Facts, Sample | Chunk]:
    """The task of the first pass: what a chunk is, and a sample of it, or all of it where that has room.

    Raises ValueError where a row is unsound, and names it.
    """
    seen = _seen(chunk)
    seen.scores_at(np.empty((0, chunk.columns)))  # for the lengths
    if not np.isfinite(seen.largest_length):
        bad = int(np.flatnonzero(~np.isfinite(seen.squared_norms))[0])
        raise ValueError(
            f"Input X contains NaN, infinity or a value too large for its square: row {chunk.first + bad} "
            "(counted from 0). Leave such rows out, or scale the features."
        )
    labels, codes = _labels(chunk)
    if len(labels) <= 2:
        counts = np.array([np.count_nonzero(codes == k) for k in range(len(labels))], np.int64)
    else:
        counts = np.bincount(codes, minlength=len(labels)).astype(np.int64)
    weight, weights = chunk.weight, counts.astype(np.float64)
    if weight is not None:
        wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
        if len(wrong):
            raise ValueError(
                "weights must be finite and not negative. Got "
                f"{weight[wrong[0]]} in row {chunk.first + int(wrong[0])} (counted from 0) instead."
            )
        weights = np.bincount(codes, weight, minlength=len(labels)).astype(np.float64)
    nbytes = nbytes_of(chunk.X)
    facts = Facts(
        chunk.count,
        chunk.columns,
        seen.stored,
        nbytes,
        labels,
        counts,
        weights,
        seen.largest_length,
        weight is not None,
        chunk.is_sparse,
        largest_chunk=nbytes,
    )
    if folding is not None:
        folds = folding.of(chunk.numbers)
        places, size = codes * folding.count + folds, len(labels) * folding.count
        sums = np.bincount(places, weight, size).astype(np.float64)
        facts.fold_weights = sums.reshape(len(labels), folding.count)
        facts.fold_rows = np.bincount(folds, minlength=folding.count).astype(np.int64)
    until_here = chunk.first + chunk.count if rows is None else rows
    if room.has_all(until_here, chunk.columns, nbytes / chunk.count, rows is not None):
        return facts, chunk
    return facts, _sample_of(chunk, seen, room, rows, seed)


def _surveyed(chunk: Chunk, kept: bool, *arguments: Any) -> tuple[Facts, Sample | Chunk, Chunk | None]:
    """The same, with the chunk itself where it is to be kept."""
    return *survey(chunk, *arguments), chunk if kept else None


def _sample_of(chunk: Chunk, seen: Rows, room: Room, rows: int | None, seed: int) -> Sample:
    """Some rows of a chunk, for a sample of all ``rows``."""
    row_bytes, share = nbytes_of(chunk.X) / chunk.count, 0.25
    if rows:
        share = min(1.0, room.enough(row_bytes, rows, chunk.columns) / rows)
    taken, chance = _drawn(chunk, seen, share, seed)
    weight = np.ones(len(taken)) if chunk.weight is None else chunk.weight[taken]
    return Sample(chunk.X[taken], chunk.y[taken], weight, 1.0 / chance, chunk.first + taken)


def _whole(chunk: Chunk) -> Sample:
    """All rows of a chunk."""
    ones = np.ones(chunk.count)
    return Sample(chunk.X, chunk.y, ones if chunk.weight is None else chunk.weight, ones, chunk.numbers)


def survey_of(
    passes: Passes, room: Room, seed: int, folding: Folding | None = None, packing: Packing | None = None
) -> tuple[Facts, Sample]:
    """All chunks' facts as one, and a sample of all rows; or all of them, where these have room.

    ``packing`` is given every chunk, one after the other.

    Ctrl-C ends it with a KeyboardInterrupt: rows that are not checked yet make no model.
    """
    whole: Facts | None = None
    chunks: list[Chunk] = []  # while all of them are taken along
    held: list[Sample] = []
    count, share = 0, 1.0  # of the drawn rows that are kept, the same for all chunks
    rows, number = passes.rows(), 0
    with let_through():
        asked = packing is not None, room, rows, seed, folding
        for facts, found, chunk in passes.over(_surveyed, *asked):
            whole = facts if whole is None else _both(whole, facts)
            row_bytes = whole.nbytes / whole.rows
            if isinstance(found, Chunk):
                chunks.append(found)
                total = whole.rows if rows is None else rows
                if not held and room.has_all(total, whole.columns, row_bytes, rows is not None):
                    continue
            drawn = [_sample_of(one, _seen(one), room, rows, seed) for one in chunks]
            if isinstance(found, Sample):
                drawn.append(found)
            if packing is not None:
                packing.take(chunks)
                if isinstance(found, Sample) and chunk is not None:
                    packing.take([chunk])
            chunks = []
            for sample in drawn:
                held.append(sample if share == 1.0 else sample.thinned(share, seed + number))
                count, number = count + held[-1].count, number + 1
            total = whole.rows if rows is None else rows
            most = room.enough(row_bytes, total, whole.columns)
            while count > 1.2 * most + 64:
                held, share = [_one(held).thinned(0.5, seed + number)], 0.5 * share
                count = held[0].count
    if whole is None:
        raise ValueError("There is no row in these chunks. Give at least one row of each of two classes.")
    if len(whole.labels) < 2:
        raise ValueError(
            "Classifier can't train when only one class is present: the number of classes has to be "
            f"greater than one; got {len(whole.labels)} class. Give y at least two different labels."
        )
    return whole, _one([_whole(chunk) for chunk in chunks] or held)


def _seen(chunk: Chunk) -> Rows:
    """The rows of a chunk, for one thread."""
    return Rows(chunk.X, check_finite=False, keep_zeros=True, budget=ONE_THREAD)


def unsure_share(columns: int, sampled: int) -> float:
    """The share of all rows that may be on the other side of the margin at the best point of all.

    The best point of m sampled rows is off as regressions are: scores of d columns by about sqrt(d / m), in
    units of their own spread. The margin is in the middle of about as many rows as that, so the same number
    is a share of all rows.
    """
    return _SPREADS * math.sqrt(columns / max(1, sampled))


def _labels(chunk: Chunk) -> tuple[NDArray[Any], Indices]:
    y = chunk.y
    if y.dtype.kind == "f":
        strange = np.flatnonzero(~(np.isfinite(y) & (np.floor(y) == y)))
        if len(strange):
            raise ValueError(
                f"Unknown label type: continuous. Row {chunk.first + int(strange[0])} (counted from 0) has "
                f"the label {y[strange[0]]}. Labels are whole numbers, texts or truth values."
            )
    return labels_of(y)


def _drawn(chunk: Chunk, rows: Rows, share: float, seed: int) -> tuple[Indices, Vector]:
    """The rows that are drawn, and the probability of each of them."""
    if share >= 1.0:
        return np.arange(chunk.count), np.ones(chunk.count)
    if chunk.is_sparse:
        squares = chunk.X.multiply(chunk.X).tocsr()
        sums = np.asarray(squares.sum(axis=0)).ravel()
        leverage = squares @ np.divide(1.0, sums, out=np.zeros(len(sums)), where=sums > 0.0)
    else:
        leverage = _leverage(chunk.X, rows, np.random.default_rng([seed, chunk.first, 1]))
    chance = leverage.astype(np.float64, copy=False)
    chance *= 0.5 * share / (float(chance.mean()) or 1.0)
    chance += 0.5 * share
    if float(chance.max()) > 1.0:  # what certain rows have too much, the others get
        over = chance > 1.0
        if not over.all():
            left = share * chunk.count - np.count_nonzero(over)
            chance[~over] *= max(0.1, left / float(chance[~over].sum()))
        chance = np.minimum(chance, 1.0)
    taken = np.flatnonzero(np.random.default_rng([seed, chunk.first]).random(chunk.count) < chance)
    return taken, chance[taken]


def _leverage(X: NDArray[Any], rows: Rows, generator: np.random.Generator) -> Vector:
    """How far rows are from their mean, about, in units in which all directions are spread alike.

    The units come from some of the rows, and distances are those of a few random projections.
    """
    count, columns = X.shape
    wanted = min(count, max(_ROWS_PER_COLUMN * columns, _LEAST_ROWS))
    some = X[generator.choice(count, wanted, replace=False, shuffle=False)].astype(np.float64)
    mean = some.mean(axis=0)
    some -= mean
    gram = some.T @ some / len(some)
    gram[np.diag_indices(columns)] += _RIDGE * (float(np.trace(gram)) / columns or 1.0)
    directions = generator.normal(size=(columns, _PROJECTIONS))
    units = np.ascontiguousarray(
        solve_triangular(np.linalg.cholesky(gram), directions, lower=True, trans="T")
    )
    lengths = np.empty(count)
    core.projected_lengths(rows.stored_data, units, mean @ units, lengths)
    return lengths


def _both(a: Facts, b: Facts) -> Facts:
    if a.columns != b.columns:
        raise ValueError(
            f"All rows must have the same columns. From row {a.rows} on there are {b.columns}, and "
            f"{a.columns} before."
        )
    labels = np.unique(np.concatenate([a.labels, b.labels]))
    counts, weights = np.zeros(len(labels), np.int64), np.zeros(len(labels))
    fold_weights = fold_rows = None
    if a.fold_rows is not None and b.fold_rows is not None:
        fold_rows = a.fold_rows + b.fold_rows
        fold_weights = np.zeros((len(labels), len(fold_rows)))
    for one in (a, b):
        places = np.searchsorted(labels, one.labels)
        counts[places] += one.counts
        weights[places] += one.weights
        if fold_weights is not None and one.fold_weights is not None:
            fold_weights[places] += one.fold_weights
    return Facts(
        a.rows + b.rows,
        a.columns,
        a.stored + b.stored,
        a.nbytes + b.nbytes,
        labels,
        counts,
        weights,
        max(a.largest_length, b.largest_length),
        a.weighted or b.weighted,
        a.is_sparse or b.is_sparse,
        a.chunks + b.chunks,
        max(a.largest_chunk, b.largest_chunk),
        fold_weights,
        fold_rows,
    )


def _one(held: list[Sample]) -> Sample:
    if len(held) == 1:
        return held[0]
    matrices = [sample.X for sample in held]
    X: Any = (
        sparse.vstack(matrices, format="csr") if sparse.issparse(matrices[0]) else np.concatenate(matrices)
    )
    y = np.concatenate([sample.y for sample in held])
    weight = np.concatenate([sample.weight for sample in held])
    stands_for = np.concatenate([sample.stands_for for sample in held])
    return Sample(X, y, weight, stands_for, np.concatenate([sample.numbers for sample in held]))
