# SPDX-License-Identifier: BSD-3-Clause
"""The contract between a contestant and the round robin in linear.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.objective import Objective


@dataclass(frozen=True)
class Fit:
    """One timed fit."""

    seconds: float
    W: NDArray[np.float64]
    """One row per problem."""
    b: NDArray[np.float64]
    certified_gap: float | None = None
    """The largest relative gap that the fit itself proved; None: it proves nothing."""


class Contestant(ABC):
    """One program. ``prepare`` runs outside the clock, ``fit`` times what its users wait for."""

    settings: tuple[float, ...]
    """From loose to tight."""
    setting_name: str
    """What a setting is called there."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def prepare(self, objective: Objective) -> None:
        """Bring the data into the form that the program likes best."""

    @abstractmethod
    def fit(self, setting: float) -> Fit:
        """One fit at one setting."""


class MissingPackage(Exception):
    """A peer is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed. Run: pip install '.[benchmarks]'")
