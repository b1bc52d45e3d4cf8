# SPDX-License-Identifier: BSD-3-Clause
"""The models of one fit, and what a classifier takes from all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model, Status, Trace
from maxmargin.types import Vector


class Models:
    """One model for each problem, in the order of the problems."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, k: int) -> Model:
        return self._models[k]

    @property
    def w(self) -> Sequence[Vector]:
        """Of each."""
        return [model.w for model in self._models]

    @property
    def b(self) -> Vector:
        """Of each."""
        return np.array([model.b for model in self._models])

    @property
    def steps(self) -> Sequence[int]:
        """Of each."""
        return [model.steps for model in self._models]

    @property
    def relative_gaps(self) -> Vector:
        """Of each."""
        return np.array([model.certificate.relative_gap for model in self._models])

    @property
    def proven(self) -> bool:
        """Whether all of them are."""
        return all(model.certificate.proven for model in self._models)

    @property
    def statuses(self) -> Sequence[Status]:
        """Of each."""
        return [model.status for model in self._models]

    @property
    def traces(self) -> list[Trace]:
        """Of each."""
        return [model.trace for model in self._models]

    @property
    def notes(self) -> Sequence[dict[str, float]]:
        """Of those that have any."""
        return [model.notes for model in self._models if model.notes]

    @property
    def certificates(self) -> Sequence[Certificate]:
        """Of each."""
        return [model.certificate for model in self._models]
