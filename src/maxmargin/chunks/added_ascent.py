# SPDX-License-Identifier: BSD-3-Clause
"""Wide data in passes: dual ascent on every chunk by itself, the moves added, with momentum.

    1  alpha: the multipliers that the margins at the best point of a sample suggest, all of them times the
       share that makes D largest;  w = sum_i alpha_i y_i x_i
    2  point ahead:  z = alpha + beta (alpha - alpha before),  w_z = w + beta (w - w before)
    3  pass:  every chunk maximises the gains of its rows, less <w_z + V, v> + s / 2 |v|^2, over its own
              multipliers in their boxes, by some sweeps of dual coordinate ascent, with
              v = sum (alpha_i - z_i) y_i x_i over its rows, and V the sum of v over the chunks of all
              rounds before its own; P at some points, D of the new multipliers
                                                                                (certificate: P and D)
    4  hinge, squared hinge:  the multipliers of rows that the chunks give away, most of them free ones, are
              settled together in memory (near_rows.py)
    5  alpha = the multipliers of all chunks, w their sum;  s and beta for the next pass; again from 2

Chunks of one round, which follow one another, do not see each other's moves; those of later rounds do. The
sum of s |v|^2 over a round is at least |sum v|^2 where s is the number of its chunks (CoCoA+; Ma et al.
2015), and mostly where it is less: s begins below and grows where a round shows that it was too small.
With one round in a pass this is a step of the accelerated proximal gradient method in a metric of the
chunks' own products (Beck and Teboulle 2009), and beta starts again from 0 where momentum leads back. z
need not be in the box.

An intercept is one more column of constant value, pulled towards a centre that moves to b after every
pass, as in ``solvers/ascent/pulled_intercept.py``.

The logistic gain is replaced, for each sweep, by the parabola that touches it at the sweep's start; a sweep
takes a multiplier at most a share of its way to a wall of its box.

Multipliers belong to their chunk. They come with its answer and go back to it with the next pass, so that a
worker that is lost takes nothing with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from maxmargin import core
from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.method import Method, Point
from maxmargin.chunks.near_rows import NearRows, Pulled, settled
from maxmargin.chunks.statement import ONE_THREAD, Part
from maxmargin.chunks.sums import DualSums, losses_of
from maxmargin.problem import Intercept, Problem
from maxmargin.solvers.ascent.state import ALPHA, COST, DIAGONAL, INVERSE_CURVATURE, LABEL, TARGET
from maxmargin.types import Indices, Vector

_SWEEPS = 3
"""Sweeps of a chunk in a pass: more gain little where the chunks' moves are added up afterwards."""
_FIRST_SHARE = 0.8
"""The first s, as a share of the number of chunks in a round."""
_SPARE = 1.1
"""What s is beyond the largest ratio that was seen."""
_REACH = 0.03
"""The pull on an exact intercept: how far it may go, squared, as a share of the mean |x_i|^2."""
_NEARER_WALL = 1.0 / 8.0
"""The share of the way to a wall that a sweep leaves of a logistic multiplier."""

Kept = tuple[Vector, Vector, Point]
"""The multipliers of a chunk, after the last pass and after the one before; what earlier rounds of this
pass have added to w, and to sum_i alpha_i y_i."""


@dataclass(frozen=True, eq=False)
class AscentAsk:
    """P at all points, and the ascent of every chunk from its own multipliers."""

    points: tuple[Point, ...]
    ahead: Point
    """w_z, and the intercept that goes with it."""
    beta: float
    damping: float
    """s."""
    reach: float
    """What a unit of sum_i alpha_i y_i adds to the intercept."""
    seed: int
    most: int
    """Rows that a chunk gives away, at most, to be settled together with those of the others."""

    def share(self, part: Part, chunk: Chunk, kept: Kept | None) -> AscentShare:
        """The share of a chunk, which goes on from its multipliers."""
        problem = part.problem
        losses, first = [], np.empty(0)
        for k, (w, b) in enumerate(self.points):
            margins = problem.margins_of(problem.rows.scores(w, ONE_THREAD), b)
            losses.append(losses_of(problem, w, b, margins))
            first = margins if k == 0 else first
        v: Point | None = None
        if kept is None:
            alpha = problem.multipliers(first)
        else:
            alpha, moved = self._ascended(problem, chunk, *kept)
            v = problem.rows.combine(moved, ONE_THREAD), float(moved.sum())
        near, rest = [], alpha
        if self.most and kept is not None:
            near = [NearRows.of(problem, chunk, first, alpha, self.most, self.seed)]
            rest = alpha.copy()
            rest[near[0].places] = 0.0
        sums = DualSums.of(problem, rest).packed()
        return AscentShare(np.array(losses), sums, [alpha], near, v, 1)

    def _ascended(
        self, problem: Problem, chunk: Chunk, alpha: Vector, before: Vector, added: Point
    ) -> tuple[Vector, Vector]:
        """Line 3: the new multipliers, and how far they are from z, with the labels' signs."""
        rows, y, s = problem.rows, problem.y, self.damping
        past = self.beta * (alpha - before) * y
        w, b = self.ahead[0] + added[0], self.ahead[1] + self.reach * added[1]
        root = math.sqrt(s)
        u = (w - s * rows.combine(past, ONE_THREAD)) / root
        bias = (b - s * self.reach * float(past.sum())) / root
        own = _Own(problem, alpha, s * (rows.squared_norms + self.reach), root)
        state = order_seed(self.seed, chunk.first)
        order: Indices = np.flatnonzero(problem.costs > 0.0)
        for _ in range(_SWEEPS):
            own.begin()
            state = core.shuffle(order, state)
            bias = core.dual_coordinate_ascent(
                rows.compiled,
                problem.loss.name == "squared_hinge",
                own.coordinates,
                order,
                u,
                bias=bias,
                bias_curvature=self.reach,
                relaxation=1.0,
                above=np.inf,
                below=-np.inf,
                budget=ONE_THREAD,
            )[1]
        found = own.alpha
        return found, (found - alpha) * y - past


class _Own:
    """The coordinates of a chunk's ascent, whose labels are the root of s times as large.

    With u = w / root for w, a visit then changes w by s times what it changes the sum of the rows by.
    """

    def __init__(self, problem: Problem, alpha: Vector, curvatures: Vector, root: float) -> None:
        self.problem, self.curvatures, self.low = problem, curvatures, np.zeros(len(alpha))
        self.coordinates = np.zeros((len(alpha), 6))
        self.coordinates[:, ALPHA] = alpha
        self.coordinates[:, COST] = problem.costs
        self.coordinates[:, LABEL] = root * problem.y
        self.coordinates[:, TARGET] = 1.0
        if problem.loss.name == "squared_hinge":
            self.coordinates[:, DIAGONAL] = 0.5 / np.maximum(problem.costs, 1e-300)
        self._set_curvatures()

    @property
    def alpha(self) -> Vector:
        """The multipliers, in their boxes."""
        alpha = np.maximum(self.coordinates[:, ALPHA] + self.low, 0.0)
        if self.problem.loss.name == "squared_hinge":
            return alpha
        return np.minimum(alpha, self.problem.costs)

    def begin(self) -> None:
        """Make the parabolas of the next sweep, where the gain is none."""
        if self.problem.loss.name != "logistic":
            return
        alpha, costs = self.alpha, self.problem.costs
        some = costs > 0.0
        inside = np.where(some, np.clip(alpha, 1e-12 * costs, (1.0 - 1e-12) * costs), 0.5)
        left = np.where(some, costs - inside, 0.5)
        slopes = np.log(left / inside)
        own = 1.0 / inside + 1.0 / left
        self.low = np.where(some, _NEARER_WALL * inside, 0.0)
        self.coordinates[:, ALPHA] = alpha - self.low
        self.coordinates[:, COST] = np.where(some, costs - _NEARER_WALL * left - self.low, 0.0)
        self.coordinates[:, DIAGONAL] = own
        self.coordinates[:, TARGET] = slopes + own * (alpha - self.low)
        self._set_curvatures()

    def _set_curvatures(self) -> None:
        curvatures = self.curvatures + self.coordinates[:, DIAGONAL]
        self.coordinates[:, INVERSE_CURVATURE] = 1.0 / np.maximum(curvatures, 1e-300)


@dataclass(eq=False)
class AscentShare:
    """The sums of some chunks, and the multipliers of each."""

    losses: Vector
    dual: DualSums
    """Without the rows that are given away."""
    alphas: list[Vector]
    near: list[NearRows]
    """The rows that are given away, of each chunk; none in the first pass."""
    moved: Point | None
    """v, and the sum of alpha_i y_i that goes with it; None in the first pass, and when it was heard."""
    chunks: int

    def plus(self, other: AscentShare) -> AscentShare:
        """The sum with that of the chunk after it."""
        self.losses = self.losses + other.losses
        self.dual = self.dual.plus(other.dual)
        self.alphas.extend(other.alphas)
        self.near.extend(other.near)
        self.chunks += other.chunks
        return self


class AddedAscent(Method):
    """Added dual ascent for one problem, one round in a pass."""

    name = "added ascent"
    reason = "dual ascent on each chunk, the moves added, with momentum"
    alpha_from = "the multipliers of the rows, which the chunks keep"
    patience = 40
    keeps = True

    def begin(self) -> None:
        """Start from what the sample suggests."""
        rows, _, _ = self.sample_rows()
        self.pull = 1.0 / max(_REACH * (rows.mean_squared_norm or 1.0), 1.0 / sum(self.class_costs))
        own = self.stated.intercept_scaling**-2 if self.stated.intercept is Intercept.REGULARISED else 0.0
        self.reach = 0.0 if self.stated.intercept is Intercept.NONE else 1.0 / (own + self.pull)
        self.damping = max(1.0, _FIRST_SHARE * self.in_a_round)
        self.points: tuple[Point, ...] = (self.sample_point(),)
        self.alphas: list[Vector] | None = None
        self.before: list[Vector] = []
        self.theta, self.beta, self.made = 1.0, 0.0, 0
        self.centre = self.points[0][1]
        self.spread = 0.1
        self.mean, self.mean_weight = self.points[0], 0.0
        self.at = self.last = self.ahead = (np.zeros(self.setting.facts.columns), 0.0)
        """w and sum_i alpha_i y_i: of alpha, of the one before, of z."""

    def ask(self) -> AscentAsk:
        """What the next pass has to find out."""
        ahead = self.ahead[0], self._intercept(self.ahead[1])
        seed = self.setting.seed + self.made
        nowhere: Point = (np.zeros(self.setting.facts.columns), 0.0)
        self.added = self.of_round = nowhere
        """What the rounds of this pass have added to w before the present one, and what that adds."""
        self.lengths, self.ratio = 0.0, 0.0
        """The sum of |v|^2 over the chunks of a round; and the largest of |sum v|^2 as a share of it."""
        # The logistic loss has no multiplier at a wall, so that no row is more in the way than others.
        most = 0 if self.stated.loss == "logistic" else self.setting.band_rows // self.setting.facts.chunks
        return AscentAsk(self.points, ahead, self.beta, self.damping, self.reach, seed, most)

    @property
    def in_a_round(self) -> int:
        """Chunks of a round: all with the logistic loss, which momentum serves better than rounds."""
        chunks = self.setting.facts.chunks
        return chunks if self.stated.loss == "logistic" else min(chunks, self.setting.in_a_round)

    def own(self, chunk: int) -> Kept | None:
        """The multipliers of a chunk, and what earlier rounds have added."""
        if self.alphas is None:
            return None
        if chunk % self.in_a_round == 0:
            self._end_round()
        return self.alphas[chunk], self.before[chunk], self.added

    def heard(self, share: AscentShare) -> None:
        """Add what a chunk moved by to that of its round."""
        if share.moved is None:
            return
        (v, own), (w, excess) = share.moved, self.of_round
        self.of_round = w + v, excess + own
        self.lengths += self._squared_length(share.moved)
        share.moved = None

    def _end_round(self) -> None:
        """What this round has added is seen by the next ones."""
        if self.lengths > 0.0:
            self.ratio = max(self.ratio, self._squared_length(self.of_round) / self.lengths)
        (w, excess), (v, own) = self.added, self.of_round
        self.added, self.of_round, self.lengths = (w + v, excess + own), (0.0 * v, 0.0), 0.0

    def _squared_length(self, move: Point) -> float:
        return core.dot(move[0], move[0]) + self.reach * move[1] ** 2

    def tell(self, total: AscentShare) -> None:
        """Take the sums of a pass, and choose where to look ahead to."""
        values = self.take_primal(self.points, total.losses, total.chunks)
        total.dual = total.dual.unpacked()
        local = total.dual.combined, total.dual.excess
        if total.near:
            intercept = Pulled(self.reach, self.pull, self.centre)
            given = total.near, total.alphas, total.dual, self.stated, intercept
            result = settled(*given, self.setting.tol, self.setting.threads)
            total.alphas, total.dual, self.centre = result.alphas, result.sums, result.centre
            local = result.unsettled
        self.take_dual(total.dual)
        self.made += 1
        found = total.dual.combined, total.dual.excess
        if self.alphas is None:
            # The sample's margins are too good to be true of all rows, and its multipliers too large.
            share = float(total.dual.bound(self.stated, 0.0)[1].min())
            self.alphas = self.before = [share * alpha for alpha in total.alphas]
            self.at = self.last = share * found[0], share * found[1]
        else:
            self._see_intercepts(values)
            self._go_to(local, found, total)
        self._look_ahead()

    def _go_to(self, local: Point, found: Point, total: AscentShare) -> None:
        """Line 5; the chunks' own moves lead to ``local``."""
        assert self.alphas is not None
        step = local[0] - self.ahead[0]
        self._end_round()
        onwards = found[0] - self.at[0]
        back = -core.dot(step, onwards) - self.reach * (local[1] - self.ahead[1]) * (found[1] - self.at[1])
        # Where rows are settled together, the pass was no step of the method that momentum speeds up.
        if total.near or back > 0.0 or self.ratio > self.damping:
            self.theta = 1.0
        self.damping = min(max(self.damping, _SPARE * self.ratio), float(self.in_a_round))
        self.before, self.alphas = self.alphas, total.alphas
        self.last, self.at = self.at, found
        self.centre = self._intercept(found[1])

    def _look_ahead(self) -> None:
        """Line 2, and the points at which the next pass finds P."""
        theta = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self.theta**2))
        self.beta, self.theta = (self.theta - 1.0) / theta, theta
        at, last = self.at, self.last
        self.ahead = at[0] + self.beta * (at[0] - last[0]), at[1] + self.beta * (at[1] - last[1])
        here, ahead = (at[0], self._intercept(at[1])), (self.ahead[0], self._intercept(self.ahead[1]))
        if self.made & (self.made - 1) == 0:
            self.mean_weight = 0.0  # of the latter half: the first points are far off
        self.mean_weight += self.theta
        self.mean = between(self.mean, ahead, self.theta / self.mean_weight)
        self.points = (here, ahead, self.mean, between(self.point, here, 0.5))
        if self.stated.intercept is Intercept.EXACT:
            w, b = ahead
            self.points = (*self.points, (w, b - self.spread), (w, b + self.spread))

    def _intercept(self, excess: float) -> float:
        """The b that goes with sum_i alpha_i y_i."""
        return Pulled(self.reach, self.pull, self.centre).at(excess)

    def _see_intercepts(self, values: list[float]) -> None:
        """Look at intercepts nearer to that of the point ahead, or farther, in the next pass."""
        if len(values) == 6:
            self.spread *= 0.5 if values[1] <= min(values[4:]) else 1.5


def between(a: Point, b: Point, share: float) -> Point:
    """A point on the way from one to another."""
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def order_seed(seed: int, first: int) -> int:
    """The state of the generator of orders for a chunk and a pass."""
    return int(np.random.SeedSequence([seed, first]).generate_state(1, np.uint64)[0])
