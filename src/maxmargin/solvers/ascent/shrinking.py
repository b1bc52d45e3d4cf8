# SPDX-License-Identifier: BSD-3-Clause
"""Which rows the sweeps of dual coordinate ascent visit (Hsieh et al. 2008, section 3.2).

A row at a wall of its box is left out while its derivative holds it there by more than a share of the
largest one of the sweep. What was left out may come loose: all rows are visited again after a tenfold gain,
now and then, and when the rows still visited cannot answer to the intercept's drift. Looks at all rows that
bring hardly one back get rarer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.problem import Problem
from maxmargin.types import Indices, Vector

_AFTER_GAIN = 0.1
"""The share of the gap since the last look at all rows that calls for the next."""
_AFTER_SWEEPS = 100
"""Sweeps after which all rows are looked at in any case."""
_AFTER_VISITS = 4
"""Visits for each row of the data after which all are looked at: that costs a fifth at most."""
_FEW_CAME_BACK = 0.01
"""The share of the rows visited before: where fewer come back, the next look may wait twice as long."""
_SHARE_OF_LARGEST = 0.2
"""The share of a sweep's largest derivative: what holds a row at its wall by more leaves it out of the next
sweep. The largest is that of a few rows, which would keep most others in for many sweeps."""
_HELD = 0.2
"""How far the margin of a start is beyond 1 where its row is left out at first."""


def weighted_rows(problem: Problem) -> Indices:
    """The rows of weight above 0: others have an empty box."""
    return _weighted(problem.costs)


def _weighted(costs: Vector) -> Indices:
    return np.flatnonzero(costs > 0)


@dataclass
class Visits:
    """The rows that are visited, and the walls that leave rows out."""

    costs: Vector
    """C_i of every row that could be visited."""
    order: Indices
    """The rows that are still visited."""
    weighted: int
    """How many rows have a weight."""
    above: float = np.inf
    below: float = -np.inf
    sweeps_since: int = 0
    """Sweeps since all rows were last visited."""
    visits_since: int = 0
    """How many rows these have visited."""
    _reactivated_at: float = np.inf
    """The relative gap when all rows were last visited."""
    _visited_before: int = 0
    """How many rows the last sweep before that visited."""
    _patience: int = 1
    """Factor on the visits, and on the gain, until all rows are visited again."""

    @classmethod
    def of(cls, problem: Problem) -> Visits:
        """All rows at first."""
        return cls.of_costs(problem.costs)

    @classmethod
    def of_costs(cls, costs: Vector) -> Visits:
        """All rows of these costs at first."""
        order = _weighted(costs)
        return cls(costs, order, len(order))

    @property
    def are_all(self) -> bool:
        """Whether no row is left out."""
        return len(self.order) == self.weighted

    def leave_out_held(self, alpha: Vector, margins: Vector, *, hinge: bool) -> None:
        """Leave out at first the rows that a start holds at a wall of their box by its margins."""
        held = (alpha == 0.0) & (margins > 1.0 + _HELD)
        if hinge:
            held |= (alpha == self.costs) & (margins < 1.0 - _HELD)
        self.order = np.flatnonzero(~held & (self.costs > 0))

    def after_sweep(
        self, active: int, largest: float, smallest: float, drift: float, relative_gap: float
    ) -> None:
        """The first ``active`` rows of the order remain, or all come back."""
        if not self.are_all and self._reactivated_at == np.inf:
            # The first sweep of a start left out rows that its margins hold: they can wait for longer.
            self._reactivated_at = _AFTER_GAIN * relative_gap
        if self.sweeps_since == 0 and self._visited_before > 0:
            most_were_out = 2 * self._visited_before <= len(self.order)
            few_came_back = active <= (1.0 + _FEW_CAME_BACK) * self._visited_before
            self._patience = 2 * self._patience if most_were_out and few_came_back else 1
        self.visits_since += len(self.order)
        self.order = self.order[:active]
        self.sweeps_since += 1
        if (
            abs(drift) >= max(largest, -smallest)
            or relative_gap * self._patience <= _AFTER_GAIN * self._reactivated_at
            or self.sweeps_since > _AFTER_SWEEPS
            or self.visits_since > self._patience * _AFTER_VISITS * len(self.costs)
        ):
            self.all_again(relative_gap)
        self.above = _SHARE_OF_LARGEST * largest if largest > 0 else np.inf
        self.below = _SHARE_OF_LARGEST * smallest if smallest < 0 else -np.inf

    def all_again(self, relative_gap: float) -> None:
        """Visit all rows in the next sweep."""
        self._reactivated_at = relative_gap
        self._visited_before = len(self.order)
        self.sweeps_since = self.visits_since = 0
        self.order = _weighted(self.costs)
