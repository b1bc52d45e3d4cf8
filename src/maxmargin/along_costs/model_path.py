# SPDX-License-Identifier: BSD-3-Clause
"""The models of one problem at many values of C, and what they prove of every C between."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from maxmargin.along_costs.between_costs import Segment
from maxmargin.along_costs.other_costs import can_combine
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Model
from maxmargin.types import Vector


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
