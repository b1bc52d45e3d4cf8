# SPDX-License-Identifier: BSD-3-Clause
"""Small kernel problems whose matrix is at hand: all of a fit in one call of the core.

A pair of classes with a hundred rows takes some ten microseconds to solve and to prove; a run of ``solve``
and its certificate in Python would take twenty times as long. The answers are those of ``solve``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import (
    NUMBERS_OF_PROOF,
    Certificate,
    SmallProofs,
    certify_each,
    proofs_of,
)
from maxmargin.proof.model import Model, Models, Record, Status, Trace
from maxmargin.solvers.sizes import MOST_ROUNDS
from maxmargin.tools.interrupts import held_back
from maxmargin.types import Vector

STORY = "working_set: for few rows all of them are in the set, and all values of the kernel are at hand."


class Parts(NamedTuple):
    """Problems in a row: number p has the rows ``begins[p]`` to ``begins[p + 1]`` of each array."""

    which: NDArray[np.intp]
    y: Vector
    costs: Vector
    begins: NDArray[np.intp]


class SmallModels(Models):
    """The models of problems that were solved in one call."""

    def __init__(
        self, proofs: SmallProofs, steps: Sequence[int], seconds: float, tol: float, short: Status
    ) -> None:
        self._proofs, self._steps, self._seconds, self._tol = proofs, steps, seconds, tol
        self._short = short
        """The status of models that are not within tol."""
        self._gaps = [core.relative_gap(proof.primal, proof.dual) for proof in proofs.values]

    def __len__(self) -> int:
        return len(self._proofs)

    def __getitem__(self, k: int) -> Model:
        status, trace, interrupted = self.statuses[k], self.traces[k], self._short is Status.INTERRUPTED
        return Model(
            self._proofs[k], trace, status, self._tol, self._steps[k], STORY, {}, STORY, interrupted
        )

    @property
    def w(self) -> Sequence[Vector]:
        """The coefficients of each problem's rows."""
        return [self._proofs.beta[self._proofs.rows(k)] for k in range(len(self))]

    @property
    def b(self) -> Vector:
        """The intercept of each model."""
        return np.array([proof.b for proof in self._proofs.values])

    @property
    def steps(self) -> Sequence[int]:
        """The steps that each model took."""
        return self._steps

    @property
    def relative_gaps(self) -> Vector:
        """The relative gap of each certificate."""
        return np.array(self._gaps)

    @property
    def proven(self) -> bool:
        """Whether all certificates are proofs."""
        return all(proof.proven for proof in self._proofs.values)

    @cached_property
    def statuses(self) -> Sequence[Status]:
        """Why each run ended."""
        return [
            (Status.CERTIFIED if proof.proven else Status.NOT_PROVEN) if gap <= self._tol else self._short
            for proof, gap in zip(self._proofs.values, self._gaps, strict=True)
        ]

    @cached_property
    def traces(self) -> list[Trace]:
        """The only record of each run."""
        runs = zip(self._steps, self._proofs.values, self._gaps, strict=True)
        return [
            Trace([Record(steps, self._seconds, proof.primal, proof.dual, gap)])
            for steps, proof, gap in runs
        ]

    @property
    def notes(self) -> Sequence[dict[str, float]]:
        """What solvers have noted: nothing here."""
        return []

    @property
    def certificates(self) -> Sequence[Certificate]:
        """The certificate of each model."""
        return self._proofs


class Solved(NamedTuple):
    """Multipliers of problems in a row, and the steps that each of them took."""

    alpha: Vector
    steps: Sequence[int]


class _InLines(NamedTuple):
    """Problems in a row in several lines, ordered such that those on the same rows follow each other."""

    place: NDArray[np.intp]
    """Of each number in its line."""
    line: NDArray[np.intp]
    begins: NDArray[np.intp]
    """Of all problems of all lines."""

    @classmethod
    def of(cls, parts: Parts, lines: int) -> _InLines:
        counts = np.diff(parts.begins)
        place = np.concatenate([np.tile(np.arange(*ends), lines) for ends in pairwise(parts.begins)])
        line = np.concatenate([np.repeat(np.arange(lines), count) for count in counts])
        return cls(place, line, np.concatenate([[0], np.cumsum(np.repeat(counts, lines))]))

    def problems(self, matrix: Matrix, parts: Parts, costs: Matrix) -> core.SmallProblems:
        """All problems, which share the values among the rows that they share."""
        which, y = parts.which[self.place], parts.y[self.place]
        return core.SmallProblems(matrix, which, self.begins, y, costs[self.line, self.place])


def solve_at_costs(
    matrix: Matrix,
    parts: Parts,
    costs: Matrix,
    starts: Matrix,
    scores: Matrix | None,
    tol: float,
    tiny: int,
    budget: core.Budget,
    *,
    rounds: int = MOST_ROUNDS,
) -> list[Solved]:
    """The problems of ``parts`` at several costs, one line each, from multipliers of as many lines.

    ``scores`` are those of the starts' w, where they are known.
    """
    lines = len(costs)
    at = _InLines.of(parts, lines)
    own, alpha = starts[at.line, at.place], np.empty_like(starts)
    every = at.problems(matrix, parts, costs)
    with held_back(budget.stop):
        known = np.empty(0) if scores is None else scores[at.line, at.place]
        taken = every.solve(own, tol, tiny, rounds, budget, known)
    alpha[at.line, at.place] = own
    steps = np.reshape(taken, (-1, lines)).T
    return [Solved(*line) for line in zip(alpha, steps.tolist(), strict=True)]


class AlongCosts:
    """The problems of ``parts`` with several lines of weights, solved and proven at one C after the other.

    All of it is one call, which ends where a problem falls short of ``tol``: what is left from there on is
    for others.
    """

    def __init__(
        self,
        matrix: Matrix,
        parts: Parts,
        weights: Matrix,
        Cs: Vector,
        tol: float,
        tiny: int,
        budget: core.Budget,
        lengths: Vector,
        value_error: float,
        *,
        kernel_is_none: bool,
        rounds: int = MOST_ROUNDS,
    ) -> None:
        start = time.perf_counter()
        self.parts, self._weights, self._Cs, self._tol = parts, weights, Cs, tol
        self._kernel_is_none = kernel_is_none
        lines, each = len(weights), len(weights) * (len(parts.begins) - 1)
        at = _InLines.of(parts, lines)
        self._places = [np.flatnonzero(at.line == line) for line in range(lines)]
        alpha, margins = (np.empty((len(Cs), len(at.place))) for _ in range(2))
        proofs = np.empty((len(Cs) * each, NUMBERS_OF_PROOF))
        steps = np.empty(len(Cs) * each, np.int64)
        with held_back(budget.stop):
            self.proven = at.problems(matrix, parts, weights).solve_along(
                Cs,
                alpha=alpha,
                margins=margins,
                proofs=proofs,
                steps=steps,
                tol=tol,
                tiny=tiny,
                rounds=rounds,
                lengths=lengths,
                value_error=value_error,
                budget=budget,
            )
        """At how many values of C, from the first, all problems are within tol."""
        self._alpha, self._margins = alpha, margins
        self._proofs = proofs.reshape(len(Cs), -1, lines, NUMBERS_OF_PROOF)
        self._steps = steps.reshape(len(Cs), -1, lines)
        self.seconds = (time.perf_counter() - start) / max(1, self.proven * lines)
        """For one line at one C."""

    def coefficients(self, line: int) -> Matrix:
        """Those of a line's w at every proven C, one problem after the other."""
        lengths = self._proofs[: self.proven, :, line, -1]
        times = np.repeat(lengths, np.diff(self.parts.begins), axis=1)
        return self._alpha[: self.proven, self._places[line]] * (self.parts.y * times)

    def margins(self, line: int) -> Matrix:
        """The margins, too."""
        return self._margins[: self.proven, self._places[line]]

    def intercepts(self, line: int) -> Matrix:
        """B of each problem of a line, at every proven C."""
        return self._proofs[: self.proven, :, line, 0]

    def largest_gap(self, number: int, line: int) -> float:
        """The largest relative gap of a line's problems at a C, given by its place."""
        values = self._proofs[number, :, line, 3:5].tolist()
        return max(core.relative_gap(primal, max(dual, 0.0)) for primal, dual in values)

    def models(self, number: int, line: int) -> SmallModels:
        """The models of a line's problems at a C."""
        places = self._places[line]
        proofs = proofs_of(
            np.ascontiguousarray(self._proofs[number, :, line]),
            self.parts.y,
            float(self._Cs[number]) * self._weights[line],
            self.parts.begins,
            self._alpha[number, places],
            self._margins[number, places],
            kernel_is_none=self._kernel_is_none,
        )
        steps = self._steps[number, :, line].tolist()
        return SmallModels(proofs, steps, self.seconds, self._tol, Status.RULE_FIRED)


def solve_small(
    matrix: Matrix,
    parts: Parts,
    tol: float,
    tiny: int,
    budget: core.Budget,
    lengths: Vector,
    value_error: float,
    *,
    kernel_is_none: bool = False,
    rounds: int = MOST_ROUNDS,
    solved: Solved | None = None,
) -> SmallModels:
    """Minimise the hinge problem with exact intercept on each part of a kernel matrix.

    Where they are ``solved`` already, they are only proven.

    ``lengths`` and ``value_error`` bound the rounding of its values, as kernels/rounding.py says.

    Until the relative gap is at most ``tol``, or, for at most ``tiny`` rows, until only rounding is left. A
    model may fall short: its status says so. So it does where the function is known not to be a kernel.
    """
    start = time.perf_counter()
    which, y, costs, begins = parts
    problems = core.SmallProblems(matrix, which, begins, y, costs)
    alpha, steps = solved or (np.zeros(len(y)), [0] * (len(begins) - 1))
    with held_back(budget.stop):
        if solved is None and not budget.stopped:
            steps = problems.solve(alpha, tol, tiny, rounds, budget, np.empty(0))
        status = Status.INTERRUPTED if budget.stopped else Status.RULE_FIRED
    proofs = certify_each(
        problems, y, costs, begins, alpha, lengths, value_error, budget, kernel_is_none=kernel_is_none
    )
    return SmallModels(proofs, steps, time.perf_counter() - start, tol, status)
