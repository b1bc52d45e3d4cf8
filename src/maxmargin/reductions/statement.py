# SPDX-License-Identifier: BSD-3-Clause
"""What the statements of fits with one problem share: a regression, one class, a ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from maxmargin.problem import Problem
from maxmargin.problem.rows import RowSpace
from maxmargin.types import Vector


class Statement(ABC):
    """One problem and its rows, in the place of the several ones that classes can have."""

    weights: Vector | None
    several = hard = False

    @property
    @abstractmethod
    def _problem(self) -> Problem: ...

    def __len__(self) -> int:
        return 1

    def problem(self, k: int = 0) -> Problem:
        """The one problem."""
        return self._problem

    def name(self, k: int) -> Any:
        """Nothing: there is no other to be told from."""
        return None

    @property
    def rows(self) -> RowSpace:
        """The rows of the problem."""
        return self.problem().rows

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights, and not all of them 1."""
        return self.weights is not None and bool((self.weights != 1.0).any())
