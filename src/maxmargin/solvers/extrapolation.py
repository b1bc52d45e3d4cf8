# SPDX-License-Identifier: BSD-3-Clause
"""The best combination of the last moves of dual coordinate ascent.

    maximise over t    L(alpha + sum_j t_j move_j),    L: the dual value that the sweeps climb

Sweeps are quick in all directions but those few in which L is nearly flat, and after a while their moves
consist of little else. L is quadratic, and each move knows its change v of w, so that L on their span takes
inner products and no pass over the data; line 4 takes one over the rows that change:

    1  take rows that rest on a wall of their box out of the moves, and their x_i out of each v
    2  solve G t = g:   g_j the slope of L along move j, q_j = sum_i y_i move_ij,
                        G_jk = <v_j, v_k> + sum_i D_i move_ij move_ik + k q_j q_k
    3  go by t and clip to the box; a row that is clipped rests on a wall: again from 1, twice at most
    4  go from alpha to the best point on the way to where this has led

L never falls: the box is convex, so that all of the way lies in it, and 4 is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.one_blas_thread import one_blas_thread
from maxmargin.types import Indices, Vector

AnyData: TypeAlias = core.Data | core.CompactData | core.MonomialData

_MOST_ROUNDS = 3
_LEAST_LEFT = 1e-4
"""Of the length of a move, when rows were taken out: below this it is mostly rounding."""
_SINGULAR = 1e-13
"""Relative to the largest singular value of G: moves can be as good as multiples of each other."""


class Moves:
    """The last moves of alpha, with what each made of w."""

    def __init__(self, most: int, alpha: Vector, w: Vector) -> None:
        self._of_alpha = np.empty((most, len(alpha)))
        self._of_w = np.empty((most, len(w)))
        self._lengths = np.empty(most)
        self._seen = 0
        self._alpha, self._w = alpha.copy(), w.copy()

    @property
    def numbers(self) -> int:
        """How many there are in all moves, once there are as many as are kept."""
        return self._of_alpha.size + self._of_w.size

    @property
    def of_alpha(self) -> Vector:
        """One move per line."""
        return self._of_alpha[: self._seen]

    @property
    def of_w(self) -> Vector:
        """v, one per line."""
        return self._of_w[: self._seen]

    @property
    def lengths(self) -> Vector:
        """|v| of each, before anything was taken out."""
        return self._lengths[: self._seen]

    def start_at(self, alpha: Vector, w: Vector) -> None:
        """The next move begins here."""
        np.copyto(self._alpha, alpha)
        np.copyto(self._w, w)

    def end_at(self, alpha: Vector, w: Vector) -> None:
        """A move ends here; it takes the place of the oldest."""
        place = self._seen % len(self._of_w)
        np.subtract(alpha, self._alpha, out=self._of_alpha[place])
        v = np.subtract(w, self._w, out=self._of_w[place])
        self._lengths[place] = math.sqrt(core.dot(v, v))
        self._seen += 1

    def take_out(self, resting: NDArray[np.bool_], y: Vector, data: AnyData) -> None:
        """Line 1."""
        for of_alpha, of_w in zip(self.of_alpha, self.of_w, strict=True):
            out = np.flatnonzero(resting & (of_alpha != 0.0))
            core.add_rows(data, out, -of_alpha[out] * y[out], of_w)
            of_alpha[out] = 0.0


@dataclass
class Quadratic:
    """L around a point."""

    alpha: Vector
    w: Vector
    bias: float
    y: Vector
    diagonal: Vector
    """D."""
    bias_curvature: float
    """k."""

    def slopes(self, of_alpha: Vector, of_w: Vector) -> Vector:
        """Of L along moves, one per line."""
        alone = 1.0 - self.diagonal * self.alpha - self.bias * self.y
        slopes: Vector = of_alpha @ alone - of_w @ self.w
        return slopes

    def curvatures(self, of_alpha: Vector, of_w: Vector) -> Vector:
        """G."""
        q = of_alpha @ self.y
        G: Vector = of_w @ of_w.T + (of_alpha * self.diagonal) @ of_alpha.T
        return G + self.bias_curvature * np.multiply.outer(q, q)


def extrapolate(
    moves: Moves, at: Quadratic, upper: Vector, data: AnyData
) -> tuple[Vector, Vector, float] | None:
    """The changes of alpha and w, and by how much L grows; None where the moves lead nowhere."""
    here = replace(at, w=at.w.copy())
    resting = (at.alpha <= 0.0) | (at.alpha >= upper)
    with one_blas_thread(), np.errstate(all="ignore"):  # numbers out of range lead nowhere
        for _ in range(_MOST_ROUNDS):
            moves.take_out(resting, at.y, data)
            clipped = _go_to_best(moves, here, upper, data)
            if not len(clipped):
                break
            resting[clipped] = True
        of_alpha, of_w = here.alpha - at.alpha, np.zeros_like(at.w)
        # Anew, not from the moves: rounding in their v grows with t, and w would part from alpha.
        changed = np.flatnonzero(of_alpha)
        core.add_rows(data, changed, of_alpha[changed] * at.y[changed], of_w)
        slope = float(at.slopes(of_alpha, of_w))
        curvature = float(at.curvatures(of_alpha, of_w))
    if not (slope > 0.0 and curvature > 0.0):
        return None
    step = min(1.0, slope / curvature)  # 4
    return step * of_alpha, step * of_w, step * (slope - 0.5 * step * curvature)


def _go_to_best(moves: Moves, here: Quadratic, upper: Vector, data: AnyData) -> Indices:
    """Lines 2 and 3; the rows that were clipped."""
    G = here.curvatures(moves.of_alpha, moves.of_w)
    size = np.sqrt(np.diag(G))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > _LEAST_LEFT * moves.lengths)
    G, g = scale[:, np.newaxis] * G * scale, scale * here.slopes(moves.of_alpha, moves.of_w)
    if not (np.isfinite(G).all() and np.isfinite(g).all()):
        return np.empty(0, np.int64)
    t = scale * np.linalg.lstsq(G, g, rcond=_SINGULAR)[0]
    target = here.alpha + t @ moves.of_alpha
    inside = np.clip(target, 0.0, upper)
    clipped = np.flatnonzero(inside != target)
    here.w += t @ moves.of_w
    core.add_rows(data, clipped, (inside - target)[clipped] * here.y[clipped], here.w)
    here.bias += here.bias_curvature * float((inside - here.alpha) @ here.y)
    here.alpha = inside
    return clipped
