# SPDX-License-Identifier: BSD-3-Clause
"""The intercept of dual coordinate ascent, by the method of multipliers.

An exact intercept asks for sum_i alpha_i y_i = 0, which steps on single coordinates cannot keep. So
(b - centre)^2 / (2 r^2) is added to the objective, and after each sweep the centre moves to b. A
regularised intercept is one more feature of constant value s, which ties every row to every other; the same
pull loosens that tie. Both forms minimise b^2 / (2 s^2) + (b - centre)^2 / (2 r^2), with s = inf when b is
exact, so that

    b = k (centre / r^2 + sum_i alpha_i y_i),      k = 1 / (1 / s^2 + 1 / r^2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.problem import Intercept, Problem

_CREEPS = 0.7
"""The share of the last drift above which a drift to the same side counts as creeping."""
_CREEPING_SWEEPS = 3
"""Sweeps in a row that have to creep before the pull is loosened."""
_FURTHER = 4.0
"""The factor by which r^2 then grows."""


def first_reach(problem: Problem, share: float) -> float:
    """r^2 at the start of a problem; inf without an intercept.

    It is a share of the mean |x_i|^2. Where all C_i together are so small that b would then need many
    sweeps to get anywhere, it is as much as lets them take b by 1.
    """
    if problem.intercept is Intercept.NONE:
        return np.inf
    least = 1.0 / problem.total_cost if problem.total_cost > 0.0 else 0.0
    return max(share * (problem.rows.mean_squared_norm or 1.0), least)


@dataclass
class PulledIntercept:
    """b, and what pulls at it."""

    form: Intercept
    scaling: float
    """s."""
    reach: float
    """r^2: how far a sweep may take b from the centre; inf: no pull."""
    longest_reach: float
    b: float = 0.0
    centre: float = 0.0
    _drift: float = 0.0
    """The move of b after the last sweep."""
    _creeping: int = 0
    """Sweeps in a row after which b went the same way, hardly slower."""
    _went_all_the_way: bool = False

    @classmethod
    def of(cls, problem: Problem, share: float, centre: float = 0.0) -> PulledIntercept:
        """The intercept of a problem, with multipliers of 0."""
        reach = first_reach(problem, share)
        longest = problem.rows.mean_squared_norm
        return cls(problem.intercept, problem.intercept_scaling, reach, longest, centre=centre)

    @property
    def curvature(self) -> float:
        """k: what a unit step of alpha_i y_i adds to b, and to the curvature of the step."""
        if self.form is Intercept.NONE:
            return 0.0
        if self.form is Intercept.EXACT:
            return self.reach
        return 1.0 / (self.scaling**-2 + 1.0 / self.reach)

    @property
    def balance(self) -> float:
        """sum_i alpha_i y_i, which is in b; 0 without an intercept, which does not know it."""
        if self.form is Intercept.NONE:
            return 0.0
        return self.b / self.curvature - self.centre / self.reach

    def gap(self, hinge: bool) -> float:
        """What b adds to the gaps of the rows."""
        if self.form is Intercept.REGULARISED:
            off = (self.b - self.scaling**2 * self.balance) / self.scaling
            return 0.5 * off * off
        # Where no row is free, to restore the balance costs about as much as is missing.
        return abs(self.balance) if hinge else 0.0

    def answer_to(self, balance: float) -> None:
        """Set b for this sum_i alpha_i y_i."""
        self.b = self.curvature * (self.centre / self.reach + balance)

    def times(self, factor: float) -> None:
        """All multipliers are multiplied."""
        self.b *= factor
        self.centre *= factor

    def move(self, at_rest: bool) -> float:
        """After a sweep the centre moves to b, and b by what is returned.

        Where no multiplier answers to a regularised b, b goes all its way; once, since then some may.
        """
        before = self.b
        if at_rest and self.form is Intercept.REGULARISED and not self._went_all_the_way:
            self._went_all_the_way = True
            self.centre = self.b = self.scaling**2 * self.balance
        else:
            self.b += (self.b - self.centre) * self.curvature / self.reach
            self.centre = before
        drift = self.b - before
        creeps = drift * self._drift > 0.0 and abs(drift) > _CREEPS * abs(self._drift)
        self._creeping = self._creeping + 1 if creeps else 0
        self._drift = drift
        return drift

    def reach_further(self) -> bool:
        """Loosen the pull while it holds b back: where b goes one way, sweep after sweep; whether it did.

        Few rows are free to answer where C |x|^2 is small, and b then creeps.
        """
        if self._creeping < _CREEPING_SWEEPS or not _FURTHER * self.reach <= self.longest_reach:
            return False
        balance = self.balance
        self.reach *= _FURTHER
        self.answer_to(balance)
        self._creeping = 0
        return True
