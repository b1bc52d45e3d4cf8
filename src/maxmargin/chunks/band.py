# SPDX-License-Identifier: BSD-3-Clause
"""The hinge in passes: rows near the margin are kept, the others are folded into means.

    1  start from the best point of a sample
    2  pass at (w, b):  rows with |m_i - 1| at most a width, the band, are kept; the others are folded, by
       label and by margin, into their mean with the sum of their costs; P there and at some other points
    3  lower model: the band and the means, an ordinary weighted problem in memory. By Jensen's inequality
       the loss of a mean is at most the mean loss: its dual value is a lower bound of the best P
    4  next point: the band, the sample's rows outside of it in place of those that were folded, and a mean
       for each label that makes up for the difference: the gradient at the best point is then that of all
       rows. What is added to its objective, rho / 2 |w - best w|^2, keeps it near
    5  again from 2 with the next points of three values of rho; the best of them tells the next rho

A sample of less than 2,000 rows for each column tells too little of the others for step 4. Then the pass
adds up the curvature of all losses (curvature.py), the next points are the best ones of the band with the
slope and the curvature of the rows around it, for three widths, and distances from the margin are told in
spreads. Where no point was better, the next pass goes back to the best one, to see the curvature there.

The lower model knows nothing of how folded rows are spread: its best point is far off where the band is
narrow. The sample knows, so step 4 stays near, and gains as much as Newton's method with a Hessian of the
sample. Once (w, b) is nearer to the best point than the band is wide, the lower model is exact but for
little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import core
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.curvature import Around, Hessian, Spread, Zones, curvatures
from maxmargin.chunks.method import Method, Point, Setting
from maxmargin.chunks.newton import moments
from maxmargin.chunks.statement import Part, Points, Stated
from maxmargin.chunks.sums import DualSums
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import LOSSES
from maxmargin.problem.rows import UNIT, Rows
from maxmargin.proof.solution import Solution
from maxmargin.solving.loop import solve
from maxmargin.types import Indices, Vector

_BINS = 16
"""Means on either side of the band, for each label: those of rows on one side at the next point, too, lose
nothing."""
_SPARE = 1.1
"""How much larger than planned the band may become before its outermost rows are folded."""
_FIRST_PULL = 1e-3
"""The first rho, in units of the mean curvature that losses would have if all rows were on the margin."""
_PULLS = (1.0, 0.1, 10.0)
"""The values of rho that are tried side by side, in units of the last one that was best; rows are sorted by
the point of the first."""
_HARDER = 30.0
"""The factor by which rho grows after a pass in which no point was better."""
_WIDER = 4
"""How many times more rows the band may have after a pass that was not the last."""
_SURE = 0.5
"""The part of the wanted gap that folded rows may lose at the best point of the lower model, by the sample,
where that is the only point that the next pass looks at."""
_NARROWER = 8
"""How many times fewer rows the band has in such a pass."""
_SINGLE = 1e-5
"""The tol from which means may have the precision of the rows: single precision is much finer still."""
_WIDTHS = (1.0, 0.5, 2.0)
"""The widths within which hinges of rows around the band are rounded off, side by side, in units of the
last one that was best."""
_LEAST_WIDTH = 0.03
"""The least of them, as wide as the innermost zone: beyond it, the band alone decides."""
_LESS_STEEP = 4.0
"""The factor by which they grow after a pass in which no point was better."""
_SHORTER = (0.25, 0.06)
"""The parts of a step at which P is looked at in the pass after one in which no point was better."""
_DRAWN = 4000
"""Rows for each column whose curvatures are summed up, at least; where there are more rows, so many are
drawn."""
_TRIFLE = 1e-9
"""The share of a label's costs that is rounding, not rows."""
_REPLACED = 0.5
"""The share of the costs of folded rows with a loss that sampled rows stand for: those next to the band."""

Slopes = NDArray[np.float64]
"""For either label the sum of ``C_i (x_i, 1)`` over the rows with a loss, of which the gradient is made."""


@dataclass(frozen=True, eq=False)
class BandAsk:
    """P at all points, and the rows sorted by their margins at the first."""

    points: tuple[Point, ...]
    width: float
    edges: Vector
    """Between the bins, increasing: those below 1 are of the low side."""
    most: int
    """Rows of the band."""
    zoning: Zoning | None = None
    """In whose spreads margins are told, and what is to be found out of curvatures."""

    @cached_property
    def at(self) -> Points:
        """The points as the core takes them."""
        return Points.of(self.points)

    def share(self, part: Part, chunk: Chunk) -> BandShare:
        """The share of a chunk."""
        rows, points, places = part.rows, len(self.points), 2 * (len(self.edges) + 1)
        losses, slopes = np.empty(points), np.zeros((points, 2, rows.columns + 1))
        vectors, sums = np.zeros((places, rows.columns)), np.zeros((places, 3))
        spreads, margins = np.empty(0), np.empty(0)
        if self.zoning is not None:
            spreads, margins = self.zoning.spread.of(rows), np.empty(chunk.count)
        kept, own_margins, longest = core.sort_rows(
            *part.at(self.at),
            self.edges,
            self.width,
            spreads,
            losses,
            vectors,
            sums,
            slopes.reshape(2 * points, -1),
            margins,
        )
        zones = None if self.zoning is None else self.zoning.of(part, chunk, np.abs(margins - 1.0), kept)
        band = Band(
            chunk.X[kept],
            *part.labels_and_costs(kept),
            own_margins,
            None if self.zoning is None else spreads[kept],
        )
        folds = Folds.of_sums(self.edges, vectors, sums, longest)
        slopes[1:] += slopes[0]
        slopes += folds.slope
        return BandShare(losses, slopes, [band], folds, self.most, self.width, zones)


@dataclass(frozen=True, eq=False)
class Zoning:
    """What a pass has to find out of curvatures."""

    spread: Spread
    drawn: float
    """The share of the rows that do."""
    seed: int

    def of(self, part: Part, chunk: Chunk, distances: Vector, near: Indices) -> Zones:
        """The zones of a chunk, without the rows of the band."""
        some = np.ones(chunk.count, np.bool_)
        some[near] = False
        if self.drawn < 1.0:
            generator = np.random.default_rng([self.seed, chunk.first, 2])
            some &= generator.random(chunk.count) < self.drawn
        taken, zones = np.flatnonzero(some), Zones(chunk.columns)
        zones.add(chunk.X[taken], part.labels_and_costs(taken)[1] / self.drawn, distances[taken])
        return zones


@dataclass(frozen=True, eq=False)
class Band:
    """Rows that are kept, with their margins at the point that they were sorted by."""

    X: Any
    y: Vector
    costs: Vector
    margins: Vector
    """In spreads, where there are any."""
    spreads: Vector | None = None

    def some(self, which: NDArray[np.bool_]) -> Band:
        """Some of the rows."""
        spreads = None if self.spreads is None else self.spreads[which]
        return Band(self.X[which], self.y[which], self.costs[which], self.margins[which], spreads)

    @property
    def problem(self) -> Problem:
        """The share of these rows in the problem: their losses."""
        rows = Rows(self.X, check_finite=False, keep_zeros=True)
        return Problem(rows, self.y, self.costs, LOSSES["hinge"], Intercept.EXACT)


@dataclass(eq=False)
class Folds:
    """Sums over the rows of each label and bin; bins of label 1 come first."""

    edges: Vector
    costs: Vector
    """``sum_i C_i``."""
    vectors: NDArray[np.float64]
    """``sum_i C_i x_i``."""
    off: Vector
    """The lengths of what these may be off by."""
    counts: Indices
    longest: float
    """The length of the longest row of the chunks, whether it is folded or not."""

    @classmethod
    def of(cls, edges: Vector, problem: Problem, margins: Vector, width: float) -> Folds:
        """The sums over the rows that are farther from the margin than a width."""
        rows, places = problem.rows, 2 * (len(edges) + 1)
        vectors, sums = np.zeros((places, rows.columns)), np.zeros((places, 3))
        given = rows.compiled, problem.y, problem.costs, margins, rows.lengths
        core.fold_rows(*given, edges, width, vectors, sums)
        return cls.of_sums(edges, vectors, sums, rows.largest_length)

    @classmethod
    def of_sums(
        cls, edges: Vector, vectors: NDArray[np.float64], sums: NDArray[np.float64], longest: float
    ) -> Folds:
        """The same of sums that are known, as the core has them."""
        costs, lengths, counts = sums.T.copy()
        off = lengths * (counts + 8.0) * UNIT
        return cls(edges, costs, vectors, off, counts.astype(np.int64), longest)

    def plus(self, other: Folds) -> Folds:
        """These folds with those of other rows."""
        self.costs = self.costs + other.costs
        self.vectors += other.vectors
        self.counts = self.counts + other.counts
        lengths = np.sqrt((self.vectors * self.vectors).sum(axis=1))
        self.off = self.off + other.off + 2.0 * UNIT * lengths
        self.longest = max(self.longest, other.longest)
        return self

    @property
    def slope(self) -> Slopes:
        """The sums over the rows with a loss: the bins up to the edge 1, for either label."""
        half, low = len(self.costs) // 2, int(np.searchsorted(self.edges, 1.0)) + 1
        sums = np.column_stack([self.vectors, self.costs])
        return np.stack([sums[:low].sum(axis=0), sums[half : half + low].sum(axis=0)])

    @property
    def labels(self) -> Vector:
        """The label of each fold."""
        half = len(self.costs) // 2
        return np.repeat([1.0, -1.0], half)


@dataclass(eq=False)
class BandShare:
    """The band and the folds of some chunks."""

    losses: Vector
    slopes: Slopes
    """Those of all points."""
    bands: list[Band]
    folds: Folds
    most: int
    width: float
    zones: Zones | None = None
    chunks: int = 1
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = sum(len(band.y) for band in self.bands)

    def plus(self, other: BandShare) -> BandShare:
        """The sum with the chunk after it; its outermost rows are folded where the band is too large."""
        self.losses = self.losses + other.losses
        self.slopes = self.slopes + other.slopes
        self.folds = self.folds.plus(other.folds)
        self.chunks += other.chunks
        if self.zones is not None and other.zones is not None:
            self.zones.plus(other.zones)
        for band in other.bands:
            if self.width < other.width:
                band = self._narrowed(band)
            self.bands.append(band)
            self.count += len(band.y)
        if self.count > _SPARE * self.most:
            distances = np.concatenate([np.abs(band.margins - 1.0) for band in self.bands])
            self.width = float(np.partition(distances, self.most - 1)[self.most - 1])
            self.bands = [self._narrowed(band) for band in self.bands]
            self.count = sum(len(band.y) for band in self.bands)
        return self

    def _narrowed(self, band: Band) -> Band:
        """A band without the rows that are too far from the margin now; these are folded."""
        near = np.abs(band.margins - 1.0) <= self.width
        if near.all():
            return band
        far = band.some(~near)
        problem = far.problem
        self.folds = self.folds.plus(Folds.of(self.folds.edges, problem, far.margins, self.width))
        if self.zones is not None and far.spreads is not None:
            self.zones.add(far.X, far.costs, far.spreads * np.abs(far.margins - 1.0))
        return band.some(near)

    def band(self) -> Band:
        """The rows of all chunks that are kept."""
        X = stacked([band.X for band in self.bands])
        y, costs, margins = (
            np.concatenate([getattr(band, name) for band in self.bands])
            for name in ("y", "costs", "margins")
        )
        own = [band.spreads for band in self.bands if band.spreads is not None]
        return Band(X, y, costs, margins, np.concatenate(own) if own else None)


class BandMethod(Method):
    """The band for one problem."""

    name = "band"
    reason = "rows near the margin are kept in memory, the others folded into means"
    alpha_from = "the rows near the margin and the means of the others"
    derived = ("sampled", "zoning")

    def __init__(self, stated: Stated, setting: Setting) -> None:
        super().__init__(stated, setting)
        self.most = setting.first_band_rows
        """Rows of the band in the next pass."""

    def restored(self) -> None:
        """The sample's rows come from the sample, and how the next pass sorts rows from these."""
        self.sampled = self.sample_rows()
        if "points" in vars(self):  # what has ended has none
            self._sort_by(self.points[0])

    def begin(self) -> None:
        """Start from the sample."""
        self.sampled = self.sample_rows()
        point = self.sample_point()
        self.points: tuple[Point, ...] = (point,)
        self.base, self.slopes = point, np.empty(0)
        rows, _, costs = self.sampled
        self.pull = _FIRST_PULL * core.dot(costs, rows.squared_norms) / rows.columns
        self.pulls: tuple[float, ...] = (self.pull,)
        self.rounded = 1.0
        self.widths: tuple[float, ...] = ()
        self.at_base = True
        self.hessian: Hessian | None = None
        if self.setting.zoned:
            margins = self._sample_margins(point)
            near = np.where(np.abs(margins - 1.0) < 1.0, 0.5 * costs, 0.0)
            self.hessian = self._regularised(moments(rows, near))
        self._sort_by(point)

    def _regularised(self, hessian: Hessian) -> Hessian:
        """A Hessian of the losses with that of the regulariser."""
        hessian[np.diag_indices(len(hessian) - 1)] += 1.0
        if self.stated.intercept is Intercept.REGULARISED:
            hessian[-1, -1] += self.stated.intercept_scaling**-2
        return hessian

    def _sample_margins(self, point: Point) -> Vector:
        rows, y, _ = self.sampled
        return y * (rows.scores(point[0]) + point[1])

    def _sort_by(self, point: Point) -> None:
        """Choose width and bins for a pass at a point, from the margins of the sample."""
        rows, _, costs = self.sampled
        self.margins, self.zoning = self._sample_margins(point), None
        spread = None
        if self.hessian is not None:
            with_intercept = self.stated.intercept is not Intercept.NONE
            spread = Spread.of_hessian(self.hessian, with_intercept, self.setting.seed)
            self.margins = 1.0 + (self.margins - 1.0) / spread.of(rows)
        stands_for = self.setting.sample.stands_for
        counts = np.where(costs > 0.0, stands_for, 0.0)
        share = min(1.0, self.most / max(1.0, float(counts.sum())))
        distances = np.abs(self.margins - 1.0)
        self.width = np.inf if share >= 1.0 else _quantiles(distances, counts, [share])[0]
        if spread is not None:
            drawn = min(1.0, _DRAWN * rows.columns / self.setting.facts.rows)
            self.zoning = Zoning(spread, drawn, self.setting.seed)
        steps = np.linspace(0.0, 1.0, _BINS + 1)[1:-1]
        low, high = self.margins < 1.0 - self.width, self.margins > 1.0 + self.width
        edges = [_quantiles(self.margins[side], counts[side], steps) for side in (low, high)]
        self.edges = np.unique(np.concatenate([edges[0], [1.0], edges[1]]))

    def ask(self) -> BandAsk:
        """What the next pass has to find out."""
        return BandAsk(self.points, float(self.width), self.edges, self.most, self.zoning)

    def tell(self, total: BandShare) -> None:
        """Take the sums of a pass: the lower model, and the next point."""
        before = self.primal
        values = self.take_primal(self.points, total.losses, total.chunks)
        best = int(np.argmin(values))
        if values[best] < before:
            self.base, self.slopes = self.points[best], total.slopes[best]
            if best < len(self.widths):
                self.rounded = max(_LEAST_WIDTH, self.widths[best])
            self.pull = self.pulls[best] if best < len(self.pulls) else self.pull
        else:
            self.pull *= _HARDER
        if self.relative_gap <= self.setting.tol:
            return  # the bound of the pass before will do
        band, folds, self.width, zones = total.band(), total.folds, total.width, total.zones
        del total
        core.give_memory_back()
        lower = self._lower_model(band, folds)
        core.give_memory_back()
        if self.relative_gap <= self.setting.tol:
            return
        if lower is not None and self._is_sure_of(lower):
            # No other point can do much better, and around it few rows are unsure.
            self.points, self.pulls, self.widths = (lower,), (), ()
            self.most = max(1, self.most // _NARROWER)
            self._sort_by(lower)
            return
        self.most = min(self.setting.band_rows, _WIDER * self.most)
        self.pulls = tuple(self.pull * factor for factor in _PULLS)
        if zones is None:
            problem = self._nearby(band)
            del band
            self.points = self._pulled(*problem)
            del problem
        elif values[best] < before or self.at_base:
            self.points, self.at_base = self._curved(band, zones), False
        else:
            # Back to the best point, where the curvatures are to be seen.
            self.rounded, self.widths, self.at_base = _LESS_STEEP * self.rounded, (), True
            self.points = (self.base, *(_between(self.base, self.points[0], part) for part in _SHORTER))
        if lower is not None:
            self.points = (*self.points, lower)
        core.give_memory_back()
        self._sort_by(self.points[0])

    def _lower_model(self, band: Band, folds: Folds) -> Point | None:
        """Solve the lower model: its dual value is a lower bound; its best point."""
        used = folds.costs > 0.0
        means = folds.vectors[used] / folds.costs[used, np.newaxis]
        X = stacked([band.X, self._like(means, band.X)])
        y = np.concatenate([band.y, folds.labels[used]])
        costs = np.concatenate([band.costs, folds.costs[used]])
        if not ((y > 0.0).any() and (y < 0.0).any()):
            return None
        rows = Rows(X, check_finite=False, keep_zeros=True)
        start = Solution(w=self.base[0], b=self.base[1])
        point, alpha = self.solved(rows, y, costs, 0.1 * self.setting.tol, start)
        count = len(band.y)
        shares = np.minimum(alpha[count:] / folds.costs[used], 1.0)
        self.take_dual(_dual_of(band, np.minimum(alpha[:count], band.costs), folds, used, shares))
        return point

    def _is_sure_of(self, lower: Point) -> bool:
        """Whether the best point of the lower model is good enough, as far as the sample tells.

        There P is more than its bound by what folded rows on the other side of the margin now lose: the
        sample's rows outside of the band stand for them.
        """
        _, _, costs = self.sampled
        outside = np.abs(self.margins - 1.0) > self.width
        lost = np.maximum(0.0, np.sign(1.0 - self.margins) * (self._sample_margins(lower) - 1.0))
        return float(costs[outside] @ lost[outside]) <= _SURE * self.setting.tol * self.primal

    def _like(self, means: NDArray[np.float64], X: Any) -> Any:
        """Means as a matrix of the kind of the rows, so that these need not be copied into a larger one.

        Proofs take the means from their sums. Rounded, they are other rows of the problem that suggests
        the multipliers, whose best ones are as good but for that rounding.
        """
        values = means.astype(X.dtype) if self.setting.tol >= _SINGLE else means
        return sparse.csr_matrix(values) if sparse.issparse(X) else values

    def _nearby(self, band: Band) -> tuple[Rows, Vector, Vector]:
        """The band, the sample around it, and means for the difference: rows, labels and costs."""
        rows, y, costs = self.sampled
        w, b = self.base
        margins = y * (rows.scores(w) + b)
        outside = (np.abs(self.margins - 1.0) > self.width) & (costs > 0.0)
        taken = outside & (margins >= 1.0)
        X, columns = self.setting.sample.X, self.setting.facts.columns
        band_rows = Rows(band.X, check_finite=False, keep_zeros=True)
        band_margins = band.y * (band_rows.scores(w) + b)
        means, mean_labels, mean_costs = [], [], []
        for side, label in enumerate((1.0, -1.0)):
            known = np.where((band.y == label) & (band_margins < 1.0), band.costs, 0.0)
            vector, left = self.slopes[side, :-1] - band_rows.combine(known), self.slopes[side, -1]
            left -= float(known.sum())
            near = np.flatnonzero(outside & (margins < 1.0) & (y == label))
            near = near[np.argsort(-margins[near], kind="stable")]
            near = near[np.cumsum(costs[near]) <= _REPLACED * left]
            taken[near] = True
            left -= float(costs[near].sum())
            if left > _TRIFLE * self.slopes[side, -1]:
                means.append((vector - X[near].T @ costs[near]) / left)
                mean_labels.append(label)
                mean_costs.append(left)
        matrix = self._like(np.array(means).reshape(-1, columns), band.X)
        X = stacked([band.X, X[taken], matrix])
        labels = np.concatenate([band.y, y[taken], mean_labels])
        all_costs = np.concatenate([band.costs, costs[taken], mean_costs])
        return Rows(X, check_finite=False, keep_zeros=True), labels, all_costs

    def _curved(self, band: Band, zones: Zones) -> tuple[Point, ...]:
        """The best points of the band with what is known of the rows around it, for each width."""
        w, b = self.base
        problem = band.problem
        rows, y, costs = problem.rows, band.y, band.costs
        lost = np.where(y * (rows.scores(w) + b) < 1.0, costs * y, 0.0)
        slope = np.append(w, 0.0) - (self.slopes[0] - self.slopes[1])
        slope[:-1] += rows.combine(lost)
        slope[-1] += float(lost.sum())
        if self.stated.intercept is Intercept.REGULARISED:
            slope[-1] += b / self.stated.intercept_scaling**2
        assert band.spreads is not None
        at, with_intercept = np.append(w, b), self.stated.intercept is not Intercept.NONE
        points: list[Point] = []
        found = None
        self.widths = tuple(self.rounded * factor for factor in _WIDTHS)
        for width in self.widths:
            hessian = self._regularised(zones.hessian(width))
            around = Around(at, slope, hessian, with_intercept)
            found = around.lowest(rows, y, costs, 0.5 * math.sqrt(self.setting.tol), found)
            points.append((found[:-1], float(found[-1])))
        distances = band.spreads * np.abs(band.margins - 1.0)
        hessian = zones.hessian(self.rounded) + moments(rows, costs * curvatures(distances, self.rounded))
        self.hessian = self._regularised(hessian)
        return tuple(points)

    def _pulled(self, rows: Rows, y: Vector, costs: Vector) -> tuple[Point, ...]:
        """The best points of some rows where ``pull / 2 |w - w0|^2`` is added, w0 that of the base.

        That is the problem of v = w - c with c = pull / (1 + pull) w0, whose rows have the targets
        1 - y_i <c, x_i> and costs 1 / (1 + pull) times as large. Each begins with the multipliers of the
        one before, as shares of their costs.
        """
        if not ((y > 0.0).any() and (y < 0.0).any()):
            return (self.base,)
        points: list[Point] = []
        start, shares = None, np.empty(0)
        for pull in self.pulls:
            share = 1.0 / (1.0 + pull)
            c = (pull * share) * self.base[0]
            problem = Problem.of(
                rows,
                y,
                loss="hinge",
                intercept=self.stated.intercept,
                weights=share * costs,
                intercept_scaling=self.stated.intercept_scaling / math.sqrt(share),
                targets=1.0 - y * rows.scores(c),
            )
            if len(shares):
                start = Solution(alpha=np.minimum(share * shares, problem.costs), b=points[-1][1])
            model = solve(problem, tol=0.1 * self.setting.tol, start=start, threads=self.setting.threads)
            points.append((c + model.w, float(model.b)))
            shares = model.alpha / share
        return tuple(points)


def _dual_of(band: Band, alpha: Vector, folds: Folds, used: NDArray[np.bool_], shares: Vector) -> DualSums:
    """What multipliers of the band, and shares of the costs of each fold, add up to."""
    sums = DualSums.of(band.problem, alpha)
    costs, vectors, off = folds.costs[used], folds.vectors[used], folds.off[used]
    counts, labels = folds.counts[used], folds.labels[used]
    for side, label in enumerate((1.0, -1.0)):
        ours = labels == label
        gained, error = shares[ours] * costs[ours], (counts[ours] + 16.0) * UNIT
        vector = shares[ours] @ vectors[ours]
        size = float((shares[ours] * np.sqrt((vectors[ours] ** 2).sum(axis=1))).sum())
        own = DualSums(np.zeros(2), np.zeros(2), np.zeros_like(sums.vectors), 0.0, 0.0)
        own.gains[side] = float((gained * (1.0 - error)).sum())
        own.totals[side] = float(gained.sum())
        own.totals_off = float((gained * error).sum())
        own.vectors[side] = vector
        own.off = float(shares[ours] @ off[ours]) + (len(costs) + 8.0) * UNIT * size
        own.longest = folds.longest
        sums = sums.plus(own)
    return sums


def _between(a: Point, b: Point, share: float) -> Point:
    """A point on the way from one to another."""
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def _quantiles(values: Vector, weights: Vector, levels: Any) -> Vector:
    """The values below which these shares of the weights lie; none where there are no values."""
    if not len(values) or not weights.sum() > 0.0:
        return np.empty(0)
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    places = np.searchsorted(sums, np.asarray(levels) * sums[-1])
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])


def stacked(matrices: list[Any]) -> Any:
    """Some matrices as one, below each other."""
    if sparse.issparse(matrices[0]):
        return sparse.vstack(matrices, format="csr")
    return np.concatenate(matrices)
