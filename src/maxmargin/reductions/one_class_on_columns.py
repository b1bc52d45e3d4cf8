# SPDX-License-Identifier: BSD-3-Clause
"""The region of one class without a kernel, solved as a classifier on the columns.

One class seeks w and the shift e = -rho:

    1/2 |w|^2 + T e + sum_i C_i max(0, -e - <w, x_i>)

With one row more, of no values, the sign -1, the cost T and a target p, whose loss is T max(0, p + e), the
term T e is a loss as well, but for the constant T p, wherever e > -p. So for a p above the best rho the
problem is that of two classes with an exact intercept, which the solvers of linear problems know. With all
costs times a number, w and rho are that number times what they were: they are chosen such that rho is about
1, whatever the rows and their number. What is found is proven as the problem of one class that it answers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.core import Budget, default_threads
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Model, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.one_class import with_boundary_inside
from maxmargin.solvers import AnySolver
from maxmargin.solving.loop import NO_LIMIT, Callback, Progress, solve
from maxmargin.solving.ways import find_way
from maxmargin.tools.parameters import changed

_ROOM = 2.0
"""The factor between a guess of rho and the target of the row that is added."""
_SMALLEST = 1e-6
"""The least such guess, in units of the total times the squared length of the longest row."""
_TINY = 1e-300
"""A guess where all rows are 0."""
_HIGHER = 8.0
"""The factor on the target where the best rho is above it."""
_TIGHTER = 0.3
"""The share of the gap that is asked for, of what would suffice if it shrank in proportion."""
_MOST_RUNS = 12
"""Runs, each to a smaller gap or with a higher target, until the problem of one class is proven."""
_SMALLEST_TOL = 1e-14
"""The relative gap below which float64 has nothing to tell apart any more."""


def solve_one_class(
    problem: Problem,
    X: Any,
    solver: str | AnySolver = "auto",
    *,
    tol: float,
    max_steps: int = NO_LIMIT,
    max_time: float = math.inf,
    start: Solution | None = None,
    callback: Callback | None = None,
    seed: int = 0,
    budget: Budget | None = None,
) -> Model:
    """The model of one class on the rows of X, proven to ``tol``; the rest is as in ``solve``.

    The shift of a start is its b.
    """
    budget = budget or Budget(max_time, default_threads())
    return _Fit(problem, X, tol, callback, budget).solve(solver, seed, max_steps, start)


class _Fit:
    """One fit: the problem of one class, and that of two."""

    def __init__(self, problem: Problem, X: Any, tol: float, told: Callback | None, budget: Budget) -> None:
        self.problem, self.tol, self.told, self.budget = problem, tol, told, budget
        assert problem.total is not None
        self.rows = Rows(_with_zero_row(X), check_finite=False)
        self.unit = self._guess()
        """About the best rho; costs, w, shift and multipliers are divided by it."""
        self.target = _ROOM
        self.proof: Certificate | None = None

    def solve(self, solver: str | AnySolver, seed: int, max_steps: int, start: Solution | None) -> Model:
        """Runs on two classes, until one class is proven."""
        tol, steps = self.tol, 0
        start = None if start is None else self._of_two(start)
        two = self._two_classes()
        way = find_way(solver, two, tol).with_seed(seed)
        accuracy = _TIGHTER * tol
        for _ in range(_MOST_RUNS):
            left = NO_LIMIT if max_steps == NO_LIMIT else max_steps - steps
            options: dict[str, Any] = {"max_steps": left, "callback": self._callback()}
            found = solve(two, way, tol=accuracy, start=start, budget=self.budget, **options)
            steps += found.steps
            self._prove(found)
            assert self.proof is not None
            gap = self.proof.relative_gap
            too_low = -found.b >= (1.0 - _TIGHTER * tol) * self.target
            ended = not found.status.certified or accuracy <= _SMALLEST_TOL
            if gap <= tol or self.budget.spent or (ended and not too_low):
                break
            start = Solution(w=found.w, b=found.b, alpha=found.alpha)
            if too_low:
                self.target *= _HIGHER
                two = self._two_classes()
                continue
            accuracy = max(_SMALLEST_TOL, accuracy * min(_TIGHTER, _TIGHTER * tol / gap))
        return self._model(found, steps)

    def _model(self, found: Model, steps: int) -> Model:
        assert self.proof is not None
        tol, status = self.tol, found.status
        if self.proof.relative_gap <= tol:
            status = Status.within_tol(self.proof)
        elif status.certified and self.budget.spent:
            status = Status.INTERRUPTED if self.budget.stopped else Status.TIME_SPENT
        elif status.certified:
            status = Status.RULE_FIRED  # rounding leaves nothing to gain
        proof = with_boundary_inside(self.proof, tol)
        proof = changed(proof, alpha_from="the problem of two classes")
        story = f"One class is solved as two, the second a row without values. {found.solver}"
        known = proof.without_problem(proof.w)
        return replace(
            found, certificate=known, status=status, tol=tol, steps=steps, solver=story, story=story
        )

    def _guess(self) -> float:
        """The rho of the mean of all rows, or what is small beside the largest that it can be."""
        problem, total = self.problem, self.problem.total
        assert total is not None
        mean = problem.rows.combine(problem.costs / float(problem.costs.sum()), self.budget)
        scores = problem.rows.scores(mean, self.budget)
        order = np.argsort(scores)
        place = int(np.searchsorted(np.cumsum(problem.costs[order]), total))
        rho = abs(float(scores[order[min(place, len(order) - 1)]]))
        return total * max(rho, _SMALLEST * problem.rows.largest_length**2, _TINY)

    def _two_classes(self) -> Problem:
        """The same problem with one row more, in units of about rho."""
        signs, targets = np.ones(self.rows.count), np.zeros(self.rows.count)
        signs[-1], targets[-1] = -1.0, self.target
        costs = np.append(self.problem.costs, self.problem.total or 0.0) / self.unit
        return Problem.of(self.rows, signs, weights=costs, targets=targets)

    def _of_two(self, start: Solution) -> Solution:
        """A point of one class as one of two."""
        w, alpha = start.w, start.alpha
        return Solution(
            w=None if w is None else w / self.unit,
            b=None if start.b is None else start.b / self.unit,
            alpha=None if alpha is None else np.append(alpha, self.problem.total or 0.0) / self.unit,
        )

    def _prove(self, found: Model) -> None:
        """Prove what a point of two classes is worth for one."""
        solution = Solution(w=self.unit * found.w, alpha=self.unit * found.alpha[:-1])
        options: dict[str, Any] = {"known": self.proof, "budget": self.budget, "tol": self.tol}
        self.proof = certify(self.problem, solution, **options)

    def _callback(self) -> Callback | None:
        """The user's callback, told what is proven of one class."""
        if self.told is None:
            return None

        def tell(progress: Progress) -> bool | None:
            assert self.told is not None
            return self.told(replace(progress, certificate=self.proof, tol=self.tol))

        return tell


def _with_zero_row(X: Any) -> Any:
    """X with a row of zeros below it."""
    if sparse.issparse(X):
        X = X.tocsr()
        ends = np.append(X.indptr, X.indptr[-1])
        return sparse.csr_matrix((X.data, X.indices, ends), shape=(X.shape[0] + 1, X.shape[1]))
    out = np.empty((X.shape[0] + 1, X.shape[1]), X.dtype)
    out[:-1], out[-1] = X, 0.0
    return out
