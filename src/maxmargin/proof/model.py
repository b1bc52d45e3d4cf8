# SPDX-License-Identifier: BSD-3-Clause
"""What is answered: the point, its proof, how the run went and why it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np

from maxmargin.proof.certificate import Certificate
from maxmargin.types import Vector


class Status(Enum):
    """Why a run ended. Each value is a sentence; ``Model.message`` fills it in."""

    CERTIFIED = "Certified: the relative gap of {gap:.1e} is within tol = {tol:.1e}."
    STEPS_SPENT = (
        "Budget spent: {steps} steps were taken and the relative gap is {gap:.1e}, above tol = {tol:.1e}. "
        "Raise max_iter (max_steps), loosen tol, scale the features to similar ranges, or choose another "
        "solver."
    )
    TIME_SPENT = (
        "Budget spent: max_time ran out after {steps} steps with a relative gap of {gap:.1e}, above "
        "tol = {tol:.1e}. Raise max_time or loosen tol; warm_start=True goes on from here."
    )
    INTERRUPTED = (
        "Budget spent: interrupted after {steps} steps. The best certified model so far is kept, with a "
        "relative gap of {gap:.1e} (tol = {tol:.1e}); warm_start=True goes on from here."
    )
    STOPPED = (
        "Budget spent: the callback asked to stop after {steps} steps, at a relative gap of {gap:.1e} "
        "(tol = {tol:.1e})."
    )
    NOT_PROVEN = (
        "Not proven: the relative distance of {gap:.1e} between the two values is within tol = {tol:.1e}, "
        "but the kernel is none on these rows, or its values are too large for float64, so that it bounds "
        "nothing. Use a Gaussian kernel, or a polynomial one with coef0 >= 0, and scale the features."
    )
    RULE_FIRED = (
        "Budget spent: the solver ended by its own rule after {steps} steps, at a relative gap of "
        "{gap:.1e}, above tol = {tol:.1e}: it reached its stop_threshold or epsilon, or rounding error "
        "leaves it nothing to gain. Lower stop_threshold or epsilon, loosen tol, give the data in float64, "
        "or scale the features."
    )

    @classmethod
    def within_tol(cls, certificate: Certificate) -> Status:
        """The status of a run that ended with a gap within tol."""
        return cls.CERTIFIED if certificate.proven else cls.NOT_PROVEN

    @property
    def certified(self) -> bool:
        """Whether the run ended with a proof that is good enough."""
        return self is Status.CERTIFIED


class Record(NamedTuple):
    """One certificate of a run."""

    step: int
    seconds: float
    primal: float
    dual: float
    relative_gap: float


@dataclass
class Trace:
    """The certificates of a run, in order: how the proof tightened."""

    records: list[Record] = field(default_factory=list[Record])
    certifying: float = 0.0
    """Seconds of the run that went into certificates."""

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __getitem__(self, index: int) -> Record:
        return self.records[index]

    def column(self, name: str) -> Vector:
        """One field of all records: "step", "seconds", "primal", "dual" or "relative_gap"."""
        return np.array([getattr(record, name) for record in self.records], dtype=np.float64)

    def __repr__(self) -> str:
        if not self.records:
            return "Trace(empty)"
        last = self.records[-1]
        return (
            f"Trace({len(self)} certificates, {last.step} steps, {last.seconds:.3g} s, "
            f"relative gap {last.relative_gap:.2e})"
        )


@dataclass(frozen=True, eq=False)
class Model:
    """The answer of ``solve``: ``w`` and ``b``, with the certificate they rest on."""

    certificate: Certificate
    trace: Trace
    status: Status
    tol: float
    steps: int
    """Steps taken: epochs, or outer iterations."""
    solver: str
    """What ran and why, in one sentence."""
    notes: dict[str, float]
    """What else the solver could tell, such as the bound of Pegasos."""
    story: str = ""
    """What ran and why, where it was not what had been chosen at first."""
    interrupted: bool = False
    """Whether Ctrl-C ended the run: ``status`` tells only where the gap was not yet within tol."""

    @property
    def w(self) -> Vector:
        """The normal of the hyperplane."""
        return self.certificate.w

    @property
    def b(self) -> float:
        """The intercept."""
        return self.certificate.b

    @property
    def alpha(self) -> Vector:
        """The multipliers of the dual point."""
        return self.certificate.alpha

    @property
    def message(self) -> str:
        """Why the run ended and, if it fell short, what to do."""
        return self.status.value.format(gap=self.certificate.relative_gap, tol=self.tol, steps=self.steps)

    def __str__(self) -> str:
        return f"{self.message}\n{self.certificate}"
