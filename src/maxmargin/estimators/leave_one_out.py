# SPDX-License-Identifier: BSD-3-Clause
"""The share of rows that a model gets right when it is fitted without them, as an interval.

Four arguments decide rows, the cheapest first, and each is proven:

1. A row whose margin is above 1 at the optimum has no force there: without it the optimum is the same.
2. Leaving a row out does not raise its margin. One that the optimum gets wrong stays wrong.
3. The objective is curved, which bounds how far the optimum moves: proof/left_out.py. The hinge is not, and
   its multipliers tell instead: proof/left_out_hinge.py.
4. The problem without the row is solved, from the optimum on, until its proof decides the row.

The last takes a fit for each row and is for the few that are left; without time for it, they stay open.
"""

from __future__ import annotations

import math
import time
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import core
from maxmargin.estimators.reading import from_card, seen_rows
from maxmargin.estimators.sureness import OPEN, RIGHT, WRONG, side_of, verdicts, why_unknown
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.left_out import SmoothWithoutRows, no_better_without
from maxmargin.proof.left_out_hinge import HingeWithoutRows
from maxmargin.proof.model import each_of
from maxmargin.proof.solution import Solution
from maxmargin.proof.sure import Side, margin_bounds, settled_by
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.solving.loop import solve
from maxmargin.types import Indices, Vector

_CLOSE = 1e-8
"""The relative gap of the optimum that the arguments start from: second-order methods reach it in a few
steps more than a usual one, and few rows lie so near a margin of 0 or 1 that it does not decide them. The
bounds by multipliers shrink with the gap, all others with its square root."""
_WIDTHS, _CLOSER_WIDTHS = 2, 4
"""How often the hinge's open rows are tried with more rows that follow: those near the margin, and then
those that cross it without one of the open rows."""
_REACHES = (0.5, 0.1)
"""By how much margins may move in the third argument, first the one that suits most rows."""
_CLOSER_REACHES = (0.5, 2.0)
"""The same from a point that is next to the optimum without the row: less curvature will do there."""
_FEW, _HARDLY_ANY = 128, 4
"""Rows, up to which nearer points decide sooner than another reach does; and up to which fits do."""
_LARGEST_TOL, _SMALLEST_TOL = 1e-4, 1e-12
"""Relative gaps between which a fit without a row is asked for one that decides it."""
_CLOSER = 1e-3
"""The next gap of such a fit as a part of the last, where that did not decide the row."""
_LEAST_SECONDS = 1e-3
"""What a fit is given where no time is left: its start is certified, and it takes a step or two."""


@dataclass(frozen=True)
class LeaveOneOut:
    """How many rows a model gets right that is fitted without them: at least, and at most."""

    low: float
    high: float
    """The accuracy is between the two; they are equal where every row is decided."""
    decided: dict[str, int]
    """How many rows each argument decided, and how many are "open"."""
    right: NDArray[np.int8]
    """For each row 1 if it is right, 0 if it is wrong, -1 if that is open."""
    seconds: float

    def __str__(self) -> str:
        words = ", ".join(f"{count} {name}" for name, count in self.decided.items() if count)
        exact = (
            f"is {self.low:.4%}" if self.low == self.high else f"is from {self.low:.4%} to {self.high:.4%}"
        )
        return f"The leave-one-out accuracy {exact}. Of {len(self.right)} rows: {words}."


def leave_one_out(estimator: Any, X: Any, y: ArrayLike, max_time: float | None = None) -> LeaveOneOut:
    """The leave-one-out accuracy of a fitted linear classifier on the rows of its fit."""
    if max_time is not None and not max_time > 0.0:
        raise ValueError(
            "The 'max_time' parameter of leave_one_out must be None or a float in the range (0, inf). "
            f"Got {max_time!r} instead. It is the seconds after which open rows stay open."
        )
    begin = time.monotonic()
    problems = _problems(estimator, X, y)
    search = _Search(estimator, problems, begin + (math.inf if max_time is None else float(max_time)))
    return search.run(begin)


def _problems(estimator: Any, X: Any, y: ArrayLike) -> ClassProblems:
    """The problems of the fit, on these rows again."""
    outline: ClassProblems | None = estimator.__dict__.get("_outline")
    if outline is None or not hasattr(estimator, "certificate_"):
        raise ValueError(f"leave_one_out needs the problem of the fit. {why_unknown(estimator)}")
    if outline.hard:
        raise ValueError(
            "leave_one_out needs a finite C. Got C = inf: nothing bounds how far a hard margin moves "
            "without one of its rows. Use a large C."
        )
    if outline.penalty == "l1":
        raise ValueError(
            "leave_one_out rests on how the l2 penalty is curved. Got the l1 penalty instead, which is "
            "not. Use penalty='l2', or cross_val_score with LeaveOneOut."
        )
    rows, labels = Rows(seen_rows(estimator, X)), np.asarray(from_card(y))
    if (
        labels.shape != outline.codes.shape
        or rows.count != len(labels)
        or (not np.array_equal(outline.labels[outline.codes], labels))
    ):
        raise ValueError(
            f"leave_one_out takes the rows and labels of the fit, {len(outline.codes)} of them, in their "
            "order. Got others. Fit on these first."
        )
    problems = copy(outline)
    problems.rows, problems.lengths, problems._first = rows, rows.lengths, None
    return problems


class _Search:
    """Bounds on the score that each row gets in each problem without it, and what they decide."""

    def __init__(self, estimator: Any, problems: ClassProblems, deadline: float) -> None:
        self.estimator, self.problems, self.deadline = estimator, problems, deadline
        self.kind, self.codes = problems.kind, problems.codes
        shape = (len(self.codes), len(problems))
        self.low, self.high = np.full(shape, -math.inf), np.full(shape, math.inf)
        self.right = np.full(len(self.codes), OPEN, np.int8)
        self.decided: dict[str, int] = {}
        self.threads = estimator._threads()
        self.parts: list[tuple[Problem, Certificate]] = []
        self.curved: dict[tuple[float, int], SmoothWithoutRows] = {}
        """What is known by reach and problem."""

    def run(self, begin: float) -> LeaveOneOut:
        """All arguments, one after the other."""
        alone = np.bincount(self.codes)[self.codes] == 1
        self.right[alone] = WRONG  # nobody else knows this class
        self.decided["alone in its class"] = int(alone.sum())
        for k, proof in enumerate(each_of(self.estimator.certificate_)):
            problem = self.problems.problem(k)
            self.parts.append((problem, self._solved(problem, proof, _CLOSE)))
        for k, part in enumerate(self.parts):
            self._without_force(k, *part)
        self._decide("without force")
        every = np.arange(len(self.codes))
        for k, part in enumerate(self.parts):
            self._narrow(k, every, np.full(len(every), -math.inf), no_better_without(*part))
        self._decide("wrong with them")
        if self.parts[0][0].loss.name == "hinge":
            self._by_multipliers()
        else:
            self._by_curvature()
        self.decided["by a fit"] = 0
        for i in self._open():
            if not self._has_time():
                break
            self._by_fits(int(i))
        self._decide("by a fit")
        of, right, still = len(self.right), int((self.right == RIGHT).sum()), len(self._open())
        self.decided["open"] = still
        seconds = time.monotonic() - begin
        return LeaveOneOut(right / of, (right + still) / of, self.decided, self.right, seconds)

    def _side(self, k: int, problem: Problem, proof: Certificate) -> Side:
        return side_of(self.problems, k, self.estimator, proof.w)._replace(costs=problem.costs)

    def _without_force(self, k: int, problem: Problem, proof: Certificate) -> None:
        """Rows that are no support vectors of the optimum may as well be left out."""
        side = self._side(k, problem, proof)
        low, high = margins = self._at_optimum(k, problem, proof, side)
        idle = np.flatnonzero(settled_by(margins, side).idle)
        self._narrow(k, idle, low[idle], high[idle])

    def _at_optimum(
        self, k: int, problem: Problem, proof: Certificate, side: Side
    ) -> tuple[Vector, Vector]:
        """Between which numbers margins are at the optimum: by curvature, or by the gap."""
        if problem.loss.name != "hinge" and self._has_time():
            without = self.curved[_REACHES[0], k] = SmoothWithoutRows(problem, proof, _REACHES[0])
            if np.isfinite((margins := without.at_optimum()).low).all():
                return margins
        return margin_bounds(proof, side)

    def _by_multipliers(self) -> None:
        """The multipliers of rows near the margin make up for one that is gone, first few and then more."""
        paths: list[HingeWithoutRows | None] = [None] * len(self.parts)
        for _ in range(_WIDTHS):
            for k, (problem, proof) in enumerate(self.parts):
                which = self._open()
                if len(which) and self._has_time():
                    wider = paths[k] = HingeWithoutRows(problem, proof, paths[k])
                    self._narrow(k, which, *wider.bounds(which, self._targets(which, k), self._budget()))
            self._decide("by multipliers")
        for attempt in range(_CLOSER_WIDTHS):
            before = len(self._open())
            for k, (problem, proof) in enumerate(self.parts):
                which, path = self._open(), paths[k]
                if path is None or not len(which) or not self._has_time():
                    continue
                if attempt:
                    path = paths[k] = HingeWithoutRows(problem, proof, path)
                targets = self._targets(which, k)
                self._narrow(k, which, *path.closer_bounds(which, targets, self._budget()))
            self._decide("by multipliers")
            if attempt > 1 and len(self._open()) == before:
                break

    def _targets(self, which: Indices, k: int) -> Vector:
        """The margin that a row should keep in a problem: up to half way between the best two classes."""
        scores = np.column_stack([problem.y[which] * proof.margins[which] for problem, proof in self.parts])
        half = np.zeros(len(which))
        if scores.shape[1] > 1:
            every, codes = np.arange(len(which)), self.codes[which]
            own = scores[every, codes].copy()
            scores[every, codes] = -math.inf
            half = 0.5 * (own + scores.max(axis=1))
        targets: Vector = self.parts[k][0].y[which] * half
        return targets

    def _budget(self) -> core.Budget:
        return core.Budget(self.deadline - time.monotonic(), self.threads)

    def _by_curvature(self) -> None:
        """How far the optimum can move where the objective is curved; then from points that are nearer."""
        usual, other = _REACHES
        nearer, nearest = _CLOSER_REACHES
        tried = set()
        for reach, closer, most in (
            (usual, False, 0),
            (other, False, _FEW),
            (nearer, True, 0),
            (other, False, _HARDLY_ANY),
            (nearest, True, _HARDLY_ANY),
        ):
            if len(self._open()) <= most or (reach, closer) in tried:
                continue
            tried.add((reach, closer))
            for k, (problem, proof) in enumerate(self.parts):
                which = self._open()
                if not len(which) or not self._has_time():
                    continue
                without = self.curved.pop((reach, k), None) or SmoothWithoutRows(problem, proof, reach)
                if reach in _CLOSER_REACHES and not closer:
                    self.curved[reach, k] = without
                if closer:
                    found = without.closer_bounds(which, self._targets(which, k), self._budget())
                else:
                    found = without.bounds(which)
                self._narrow(k, which, *found)
            self._decide("by curvature")

    def _by_fits(self, i: int) -> None:
        """Fits without row i, closer and closer, until it is decided.

        The first gap is one that decides a row whose margins are half of those at the optimum.
        """
        which, proofs = np.array([i]), [proof for _, proof in self.parts]
        enough = (
            (0.5 * p.margins[i] / max(self.problems.lengths[i], 1e-300)) ** 2 / max(p.primal, 1e-300)
            for _, p in self.parts
        )
        tol = min(_LARGEST_TOL, *enough)
        while True:
            tol = max(tol, _SMALLEST_TOL)
            for k, (problem, _) in enumerate(self.parts):
                costs = problem.costs.copy()
                costs[i] = 0.0
                without = replace(problem, costs=costs)
                proof = proofs[k] = self._solved(without, proofs[k], tol)
                low, high = margin_bounds(proof, self._side(k, without, proof))
                self._narrow(k, which, low[which], high[which])
                smooth = problem.loss.name != "hinge"
                if smooth and tol == _SMALLEST_TOL and self._verdicts(which)[0] == OPEN:
                    self._narrow(k, which, *SmoothWithoutRows(without, proof, _REACHES[-1]).bounds(which))
            if self._verdicts(which)[0] != OPEN or tol == _SMALLEST_TOL or not self._has_time():
                break
            tol *= _CLOSER

    def _solved(self, problem: Problem, near: Certificate, tol: float) -> Certificate:
        """The problem's proof, from a point near by on; Ctrl-C ends the search with what is decided."""
        start, seconds = Solution(w=near.w, b=near.b, alpha=near.alpha), self.deadline - time.monotonic()
        limit = None if math.isinf(seconds) else max(seconds, _LEAST_SECONDS)
        model = solve(problem, tol=tol, start=start, threads=self.threads, max_time=limit)
        if model.interrupted:
            self.deadline = -math.inf
        return model.certificate

    def _narrow(self, k: int, which: Indices, low: Vector, high: Vector) -> None:
        """The margins of some rows are between these two as well."""
        ours = self.parts[k][0].y[which] > 0.0
        self.low[which, k] = np.maximum(self.low[which, k], np.where(ours, low, -high))
        self.high[which, k] = np.minimum(self.high[which, k], np.where(ours, high, -low))

    def _decide(self, argument: str) -> None:
        which = self._open()
        self.right[which] = self._verdicts(which)
        gained = len(which) - len(self._open())
        self.decided[argument] = self.decided.get(argument, 0) + gained

    def _verdicts(self, which: Indices) -> NDArray[np.int8]:
        return verdicts(self.kind, self.codes[which], self.low[which], self.high[which])

    def _open(self) -> Indices:
        return np.flatnonzero(self.right == OPEN)

    def _has_time(self) -> bool:
        return time.monotonic() < self.deadline
