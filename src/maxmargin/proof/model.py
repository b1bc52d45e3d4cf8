# SPDX-License-Identifier: BSD-3-Clause
"""What is answered: the point, its proof, how the run went and why it ended; of one problem or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations
from typing import Any, NamedTuple, overload

import numpy as np

from maxmargin.proof.certificate import Certificate
from maxmargin.types import Vector


class Status(Enum):
    """Why a run ended. Each value is a sentence that ``sentence`` fills in."""

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
        "but the function is not shown to be a kernel on these rows, or its values are too large for "
        "float64, so that it bounds nothing. Use a Gaussian kernel, or a polynomial one with coef0 >= 0, "
        "and scale the features."
    )
    VALUES_ROUNDED = (
        "Ended by rounding: after {steps} steps the relative gap is {gap:.1e}, above tol = {tol:.1e}. The "
        "values of the kernel are so large, or C is, that their rounding in float64 alone can change the "
        "objective by more than tol. Scale the features to similar ranges, or lower C, gamma or the degree."
    )
    RULE_FIRED = (
        "Not certified: the solver ended by its own rule after {steps} steps, at a relative gap of "
        "{gap:.1e}, above tol = {tol:.1e}: it reached its stop_threshold or epsilon, separated the rows "
        "(perceptron), or rounding error leaves it nothing to gain. Lower stop_threshold or epsilon, "
        "loosen tol, give the data in float64, scale the features, or choose another solver."
    )
    NO_GAIN = (
        "Budget spent: after {steps} passes over the data the relative gap is {gap:.1e}, above "
        "tol = {tol:.1e}, and the last passes have hardly lowered it. Allow more memory, so that more rows "
        "near the margin can be kept, loosen tol, or scale the features."
    )

    AT_ZERO = (
        "Ended at zero: after {steps} steps the best objective is 0 as far as rounding tells, as it is "
        "where w = 0 is best. No gap is a share of 0, so that tol = {tol:.1e} cannot be met (the relative "
        "gap is {gap:.1e}); certificate_.gap bounds what is left. Use a smaller nu, or another kernel."
    )

    def at(self, certificate: Certificate) -> Status:
        """The status of a run that nothing is left to gain for, where its objective may be 0."""
        around = certificate.total is not None and certificate.dual <= 0.0 <= certificate.primal
        ended = self in (Status.RULE_FIRED, Status.VALUES_ROUNDED)
        return Status.AT_ZERO if around and ended else self

    @classmethod
    def within_tol(cls, certificate: Certificate) -> Status:
        """The status of a run that ended with a gap within tol."""
        return cls.CERTIFIED if certificate.proven else cls.NOT_PROVEN

    def sentence(self, gap: float, tol: float, steps: int) -> str:
        """The sentence, filled in: why a run ended and, if it fell short, what to do."""
        return self.value.format(gap=gap, tol=tol, steps=steps)

    @property
    def certified(self) -> bool:
        """Whether the run ended with a proof that is good enough."""
        return self is Status.CERTIFIED

    def __reduce__(self) -> Any:
        """As pickle has it; skops asks here, and not where enumerations answer by themselves."""
        return Status, (self.value,)


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
        return self.status.sentence(self.certificate.relative_gap, self.tol, self.steps)

    def __str__(self) -> str:
        return f"{self.message}\n{self.certificate}"


class Models:
    """The models of one fit: one for each problem, in the order of the problems."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, k: int) -> Model:
        return self._models[k]

    @property
    def w(self) -> Sequence[Vector]:
        """The normal of each."""
        return [model.w for model in self._models]

    @property
    def b(self) -> Vector:
        """The intercept of each."""
        return np.array([model.b for model in self._models])

    @property
    def steps(self) -> Sequence[int]:
        """The steps taken for each."""
        return [model.steps for model in self._models]

    @property
    def relative_gaps(self) -> Vector:
        """The relative gap of each."""
        return np.array([model.certificate.relative_gap for model in self._models])

    @property
    def proven(self) -> bool:
        """Whether every certificate is a proof."""
        return all(model.certificate.proven for model in self._models)

    @property
    def statuses(self) -> Sequence[Status]:
        """Why each of the runs ended."""
        return [model.status for model in self._models]

    @property
    def traces(self) -> list[Trace]:
        """The certificates of each on the way."""
        return [model.trace for model in self._models]

    @property
    def notes(self) -> Sequence[dict[str, float]]:
        """What the solvers could tell besides, as far as they did."""
        return [model.notes for model in self._models if model.notes]

    @property
    def certificates(self) -> Sequence[Certificate]:
        """The proof of each."""
        return [model.certificate for model in self._models]


class Certificates(Sequence[Certificate]):
    """One certificate per class; as a whole it is worth what the worst of them is worth."""

    def __init__(self, certificates: Sequence[Certificate]) -> None:
        self._certificates = certificates

    @property
    def worst(self) -> Certificate:
        """The certificate with the largest relative gap."""
        return max(self._certificates, key=lambda certificate: certificate.relative_gap)

    @property
    def primal(self) -> float:
        """The primal value of the worst certificate."""
        return self.worst.primal

    @property
    def dual(self) -> float:
        """The dual value of the worst certificate."""
        return self.worst.dual

    @property
    def gap(self) -> float:
        """The gap of the worst certificate."""
        return self.worst.gap

    @property
    def relative_gap(self) -> float:
        """The largest relative gap."""
        return self.worst.relative_gap

    @property
    def proven(self) -> bool:
        """Whether all of them are proofs."""
        return all(certificate.proven for certificate in self._certificates)

    @property
    def kkt_violation(self) -> float:
        """The largest violation of all classes."""
        return max(certificate.kkt_violation for certificate in self._certificates)

    @overload
    def __getitem__(self, index: int) -> Certificate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Certificate]: ...
    def __getitem__(self, index: int | slice) -> Certificate | Sequence[Certificate]:
        return self._certificates[index]

    def __len__(self) -> int:
        return len(self._certificates)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self._certificates)

    def __str__(self) -> str:
        return f"One certificate for each of {len(self)} classes. The worst of them:\n{self.worst}"

    def __repr__(self) -> str:
        return f"Certificates({len(self)} classes, worst={self.worst!r})"


class PairCertificates(Certificates):
    """One certificate per pair of classes; as a whole it is worth what the worst of them is worth.

    The problem of a pair has the rows of its first class, label 1, and then those of its second, label -1,
    both in the order of the training data: so have alpha, the margins and w, the coefficients of the rows.
    """

    def __init__(self, certificates: Sequence[Certificate], classes: Sequence[Any]) -> None:
        super().__init__(certificates)
        self.pairs = list(combinations(classes, 2))
        """The two labels of each certificate."""

    def of(self, first: Any, second: Any) -> Certificate:
        """The certificate of two classes, in either order."""
        for pair, certificate in zip(self.pairs, self, strict=True):
            if pair in ((first, second), (second, first)):
                return certificate
        raise KeyError(f"No pair of {first!r} and {second!r}. The pairs are {self.pairs}.")

    @property
    def worst_pair(self) -> tuple[Any, Any]:
        """The labels of the pair with the largest relative gap."""
        gaps = [certificate.relative_gap for certificate in self]
        pair: tuple[Any, Any] = self.pairs[int(np.argmax(gaps))]
        return pair

    def __str__(self) -> str:
        first, second = self.worst_pair
        return (
            f"One certificate for each of {len(self)} pairs of classes. The worst of them, {first} against "
            f"{second}:\n{self.worst}"
        )

    def __repr__(self) -> str:
        return f"PairCertificates({len(self)} pairs, worst={self.worst!r})"


def each_of(proof: Any) -> Sequence[Certificate]:
    """The certificates of a fitted estimator's ``certificate_``, one for each problem."""
    each: Sequence[Certificate] = proof if isinstance(proof, Certificates) else [proof]
    return each
