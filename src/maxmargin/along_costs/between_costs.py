# SPDX-License-Identifier: BSD-3-Clause
"""What two certificates prove of every C between theirs: on the straight line from one to the other.

    C = (1 - s) C0 + s C1,      w = (1 - s) w0 + s w1,      alpha = (1 - s) alpha0 + s alpha1

This alpha is inside the box of C, and balanced where both are. With L for the sum of the losses at C = 1
and v = sum_i alpha_i y_i x_i, and since losses and their conjugates are convex,

    P_C(w)     <=  (1 - s) P0 + s P1  +  s (1 - s) ((C1 - C0) (L0 - L1) - |w1 - w0|^2 / 2)
    D_C(alpha) >=  (1 - s) D0 + s D1  +  s (1 - s) |v1 - v0|^2 / 2

The difference bounds the gap at C, whatever C: a parabola in s, known from the two certificates alone. The
best value itself is a concave function of C, as the least of functions that are linear in it, and so it is
at least (1 - s) D0 + s D1: that makes the bound a relative one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from maxmargin import core
from maxmargin.along_costs.other_costs import combined, point_between
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.certificate import Certificate
from maxmargin.tools.changed import changed


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
        losses = [
            (proof.primal - problem.regulariser(proof.w, proof.b)) / C
            for proof, C in ((first, self.low), (second, self.high))
        ]
        balance = 0.0
        if problem.intercept is Intercept.REGULARISED:
            balance = core.dot(second.alpha, problem.y) - core.dot(first.alpha, problem.y)
        return (
            (self.high - self.low) * (losses[0] - losses[1])
            - problem.regulariser(second.w - first.w, second.b - first.b)
            - problem.regulariser(
                second.w_of_alpha - first.w_of_alpha, problem.intercept_scaling**2 * balance
            )
        )

    def gap_at(self, C: float) -> float:
        """The relative gap at this C is at most this."""
        return self._relative_gap((C - self.low) / (self.high - self.low))

    @cached_property
    def largest_gap(self) -> float:
        """The relative gap at any C of the segment is at most this."""
        # Where the slope of  (a + b s - c s^2) / (d + e s)  is 0:  -c e s^2 - 2 c d s + b d - a e = 0.
        a, c, d = self.first.gap, self.bend, self.first.dual
        b, e = self.second.gap - a + c, self.second.dual - d
        inside = [s for s in _roots(-c * e, -2.0 * c * d, b * d - a * e) if 0.0 < s < 1.0]
        return max(map(self._relative_gap, [0.0, 1.0, *inside]))

    def _relative_gap(self, s: float) -> float:
        gap = (1.0 - s) * self.first.gap + s * self.second.gap + s * (1.0 - s) * self.bend
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
            dual = min(proof.dual, primal)
            proof = changed(proof, w=point.w, b=point.b, margins=point.margins, primal=primal, dual=dual)
        return proof


def _roots(a: float, b: float, c: float) -> list[float]:
    """The real roots of a s^2 + b s + c."""
    if a == 0.0:
        return [] if b == 0.0 else [-c / b]
    inside = b * b - 4.0 * a * c
    if not inside >= 0.0:
        return []
    larger = -0.5 * (b + math.copysign(math.sqrt(inside), b))
    return [larger / a, *([c / larger] if larger != 0.0 else [])]
