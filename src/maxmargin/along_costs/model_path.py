# SPDX-License-Identifier: BSD-3-Clause
"""The models of one problem at many values of C, and what they prove of every C between.

Two certificates prove something of every C between theirs, on the straight line from one to the other:

    C = (1 - s) C0 + s C1,      w = (1 - s) w0 + s w1,      alpha = (1 - s) alpha0 + s alpha1

This alpha is inside the box of C, and balanced where both are. With L for the sum of the losses at C = 1
and v = sum_i alpha_i y_i x_i, and since losses and their conjugates are convex,

    P_C(w)     <=  (1 - s) P0 + s P1  +  s (1 - s) ((C1 - C0) (L0 - L1) - |w1 - w0|^2 / 2)
    D_C(alpha) >=  (1 - s) D0 + s D1  +  s (1 - s) |v1 - v0|^2 / 2

The difference bounds the gap at C, whatever C: a parabola in s, known from the two certificates alone. The
best value itself is a concave function of C, as the least of functions that are linear in it, and so it is
at least (1 - s) D0 + s D1: that makes the bound a relative one.

Rounding counts: L1 and the lengths of differences are taken as little as they can be, and what the rounding
of w, alpha and margins is worth at both ends is added to the gaps there.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from maxmargin import core
from maxmargin.along_costs.other_costs import can_combine, combined, point_between
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import UNIT
from maxmargin.proof.certificate import Certificate, Off
from maxmargin.proof.model import Model
from maxmargin.tools.parameters import changed
from maxmargin.types import Vector


@dataclass(frozen=True)
class Segment:
    """The line from the certificate at one C to that at a larger one."""

    problem: Problem
    """The problem at C = 1."""
    low: float
    """The smaller C, C0 in the derivation."""
    high: float
    """The larger C, C1 in the derivation."""
    first: Certificate
    second: Certificate

    @cached_property
    def bend(self) -> float:
        """What is multiplied by s (1 - s)."""
        problem, first, second = self.problem, self.first, self.second
        least = max(second.dual, self._plain[1] - self._rounding[1])
        losses = [
            (value - problem.regulariser(proof.w, proof.b)) / C
            for proof, value, C in ((first, first.primal, self.low), (second, least, self.high))
        ]
        rows, both = problem.rows, (first, second)
        off = 4.0 * UNIT * sum(math.sqrt(rows.squared_norm(proof.w)) for proof in both)
        apart = _at_least(second.w - first.w, off)
        apart += _at_least(second.w_of_alpha - first.w_of_alpha, sum(p.off(rows).combined for p in both))
        if problem.intercept is Intercept.REGULARISED:
            s, of_class = problem.intercept_scaling, core.dot(second.alpha - first.alpha, problem.y)
            off = 4.0 * UNIT * (abs(first.b) + abs(second.b))
            apart += _at_least(np.array([second.b - first.b]), off) / s**2
            off = 2.0 * core.sum_rounding(len(problem.y)) * sum(float(proof.alpha.sum()) for proof in both)
            apart += _at_least(np.array([of_class]), off) * s**2
        return (self.high - self.low) * (losses[0] - losses[1]) - 0.5 * apart

    @cached_property
    def _plain(self) -> list[float]:
        """The objectives at both ends, up to rounding."""
        problem, ends = self.problem, ((self.first, self.low), (self.second, self.high))
        return [problem.regulariser(p.w, p.b) + C * problem.loss_sum(p.margins) for p, C in ends]

    @cached_property
    def _rounding(self) -> list[float]:
        """How far these can be off, at most."""
        found = []
        for proof, C, plain in zip(
            (self.first, self.second), (self.low, self.high), self._plain, strict=True
        ):
            problem = self.problem.with_costs_times(C)
            error = proof.off(problem.rows)[:2]
            found.append(2.0 * max(problem.primal_of(proof.w, proof.b, proof.margins, error) - plain, 0.0))
        return found

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The gaps at both ends, with what rounding is worth on the way between them."""
        gaps = []
        for proof, C, rounding in zip(
            (self.first, self.second), (self.low, self.high), self._rounding, strict=True
        ):
            problem, combined = self.problem.with_costs_times(C), proof.off(self.problem.rows).combined
            values = [problem.dual_of(proof.alpha, proof.w_of_alpha, error=off) for off in (0.0, combined)]
            gaps.append(proof.gap + 2.0 * (rounding + values[0] - values[1]) + 16.0 * UNIT * proof.primal)
        return gaps[0], gaps[1]

    def gap_at(self, C: float) -> float:
        """The relative gap at this C is at most this."""
        return self._relative_gap((C - self.low) / (self.high - self.low))

    @cached_property
    def largest_gap(self) -> float:
        """The relative gap at any C of the segment is at most this."""
        # Where the slope of  (a + b s - c s^2) / (d + e s)  is 0:  -c e s^2 - 2 c d s + b d - a e = 0.
        a, c, d = self.ends[0], self.bend, self.first.dual
        b, e = self.ends[1] - a + c, self.second.dual - d
        inside = [s for s in _roots(-c * e, -2.0 * c * d, b * d - a * e) if 0.0 < s < 1.0]
        return max(map(self._relative_gap, [0.0, 1.0, *inside]))

    def _relative_gap(self, s: float) -> float:
        gap = (1.0 - s) * self.ends[0] + s * self.ends[1] + s * (1.0 - s) * self.bend
        least = (1.0 - s) * self.first.dual + s * self.second.dual
        if gap <= 0.0:
            return 0.0
        return gap / least if least > 0.0 else math.inf

    def at(self, C: float) -> Certificate:
        """The proof at this C, by values on the line or better ones: no pass over the data."""
        if C in (self.low, self.high):
            return self.first if self.low == C else self.second
        problem = self.problem.with_costs_times(C)
        proof = combined((self.first, self.second), problem, (C / self.low, C / self.high))
        share = (C - self.low) / (self.high - self.low)
        point, primal = point_between(problem, self.first, self.second, share)
        if primal < proof.primal:
            off = Off(*point.error, proof.off(problem.rows).combined)
            place = {"w": point.w, "b": point.b, "margins": point.margins}
            proof = changed(proof, **place, primal=primal, derived=off)
        return proof


def _at_least(difference: Vector, off: float) -> float:
    """The squared length of a difference that is off by a vector of this length, from below."""
    length = math.sqrt(core.dot(difference, difference)) * (1.0 - core.sum_rounding(len(difference)))
    return max(length - off, 0.0) ** 2


def _roots(a: float, b: float, c: float) -> list[float]:
    """The real roots of a s^2 + b s + c."""
    if a == 0.0:
        return [] if b == 0.0 else [-c / b]
    inside = b * b - 4.0 * a * c
    if not inside >= 0.0:
        return []
    larger = -0.5 * (b + math.copysign(math.sqrt(inside), b))
    return [larger / a, *([c / larger] if larger != 0.0 else [])]


@dataclass(frozen=True, eq=False)
class Path(Sequence[Model]):
    """The models of ``path``, in the order in which the values of C were given; or of ``whole_path``."""

    C: Vector
    """The values of C."""
    models: tuple[Model, ...]
    seconds: float
    """Seconds that the whole path took."""
    problem: Problem
    """The problem at C = 1."""

    @property
    def primal(self) -> Vector:
        """The objective at each C."""
        return np.array([model.certificate.primal for model in self.models])

    @property
    def dual(self) -> Vector:
        """The lower bound on it at each C."""
        return np.array([model.certificate.dual for model in self.models])

    @property
    def gaps(self) -> Vector:
        """The relative gap at each C."""
        return np.array([model.certificate.relative_gap for model in self.models])

    @property
    def steps(self) -> Vector:
        """The steps taken at each C."""
        return np.array([model.steps for model in self.models], np.float64)

    @property
    def certified(self) -> bool:
        """Whether every model is within tol."""
        return all(model.status.certified for model in self.models)

    @property
    def largest_gap(self) -> float:
        """No C from the smallest to the largest has a relative gap above this, as ``at`` shows for each."""
        return max([segment.largest_gap for segment in self._segments], default=float(self.gaps.max()))

    def gap_at(self, C: float) -> float:
        """The relative gap of ``at(C)`` is at most this: it follows from the values of both neighbours."""
        segment = self._segment_of(C)
        return float(self.gaps.max()) if segment is None else segment.gap_at(C)

    def at(self, C: float) -> Certificate:
        """A point (w, b) and its proof at any C from the smallest to the largest, without a pass."""
        segment = self._segment_of(C)
        return self.models[0].certificate if segment is None else segment.at(C)

    @cached_property
    def _segments(self) -> list[Segment]:
        """The segments between neighbouring values of C, in ascending order."""
        C, places = np.unique(self.C, return_index=True)
        proofs = [self.models[int(place)].certificate for place in places]
        if len(C) > 1 and not can_combine(self.problem):
            raise ValueError(
                "What lies between two values of C is proven for rows without a kernel, and for losses "
                "other than the perceptron's. Give path the values of C that you need."
            )
        pairs = zip(C.tolist(), C[1:].tolist(), proofs, proofs[1:], strict=False)
        return [Segment(self.problem, *pair) for pair in pairs]

    def _segment_of(self, C: float) -> Segment | None:
        """None where there is one C only."""
        if not self.C.min() <= C <= self.C.max():
            raise ValueError(f"C must be from {self.C.min():g} to {self.C.max():g}. Got {C!r} instead.")
        ends = [segment.high for segment in self._segments]
        return self._segments[bisect.bisect_left(ends, C)] if ends else None

    @overload
    def __getitem__(self, index: int) -> Model: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Model]: ...
    def __getitem__(self, index: int | slice) -> Model | Sequence[Model]:
        return self.models[index]

    def __len__(self) -> int:
        return len(self.models)

    def __str__(self) -> str:
        lines = ["         C         primal           dual  relative gap  steps"]
        for C, model in zip(self.C, self.models, strict=True):
            proof = model.certificate
            values = f"{C:10.4g} {proof.primal:14.8g} {proof.dual:14.8g}"
            lines.append(f"{values} {proof.relative_gap:13.1e} {model.steps:6d}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Path({len(self)} values of C, largest relative gap {self.gaps.max():.1e})"
