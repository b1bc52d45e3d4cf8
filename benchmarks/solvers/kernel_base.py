# SPDX-License-Identifier: BSD-3-Clause
"""The contract between a contestant and the round robin in kernel_rounds.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.kernel_objective import KernelObjective, Multipliers

CACHE_MEGABYTES = 1000
DEFAULT_SETTING = 1e-3
"""Of LIBSVM and of both SVCs; what LIBSVM reaches with it is a quality that seconds are counted to."""
PEER_SETTINGS = (0.3, 1e-2, DEFAULT_SETTING)
TIGHTER = 3e-4
"""For those that at the default just miss what LIBSVM reaches."""
_TRIAL_ROWS = 4_000


@dataclass(frozen=True)
class KernelFit:
    """One timed fit."""

    seconds: float
    answer: list[Multipliers]
    """One for each pair of classes."""
    certified_gap: float | None = None
    """The largest relative gap that the fit itself proved; None: it proves nothing."""
    own_dual: float | None = None
    """The dual value that the program itself tells, where it does."""


class KernelContestant(ABC):
    """One program. ``prepare`` runs outside the clock, ``fit`` times what its users wait for."""

    settings: tuple[float, ...] = PEER_SETTINGS
    """From loose to tight."""
    setting_name: str = "tol"

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def prepare(self, objective: KernelObjective) -> None:
        """Bring the data into the form that the program likes best."""

    @abstractmethod
    def fit(self, setting: float) -> KernelFit:
        """One fit at one setting."""


def trial_rows(count: int) -> NDArray[np.intp]:
    """A few of so many rows, to find out which form of the data or how many threads a program likes."""
    return np.sort(np.random.default_rng(0).permutation(count)[:_TRIAL_ROWS])


def answer_of(
    coefficients: Any, support: NDArray[Any], classes: Sequence[Any], objective: KernelObjective
) -> list[Multipliers]:
    """Multipliers for each pair of classes, from LIBSVM's table of signed coefficients.

    ``classes`` are the labels in the table's order. A support vector of the class at place p has its
    coefficient against the class at place q in line q - 1 if p < q, and in line q otherwise.
    """
    if sparse.issparse(coefficients):
        coefficients = coefficients.toarray()
    table = np.abs(np.asarray(coefficients, np.float64))
    support = np.asarray(support, np.intp)
    places = {label: place for place, label in enumerate(classes)}
    place_of_row = np.array([places[label] for label in objective.data.y[support].tolist()])
    answer = []
    for pair in objective.pairs:
        p, q = sorted(places[label] for label in pair)
        alpha = np.where(place_of_row == p, table[q - 1], np.where(place_of_row == q, table[p], 0.0))
        used = np.flatnonzero(alpha)
        answer.append(Multipliers(support[used], alpha[used]))
    return answer
