# SPDX-License-Identifier: BSD-3-Clause
"""The hard margin by soft margins with a growing C.

    minimise  1/2 |w|^2   subject to   y_i (<w, x_i> + b) >= 1      (+ b^2 / (2 s^2) if b is regularised)

    1  C = 1 / (largest distance of a row from the mean)^2
    2  repeat
    3      solve the hinge problem with C, from the last (w, alpha)
    4      certify (w, alpha) for the hard margin; if its relative gap is within tol, that is the answer
    5      if weights on the rows with alpha_i > 0 bring the hulls of the classes together, there is none
    6      if some alpha_i = C:  C = 4 C;      else: solve more precisely

Separable data: once C is above the largest multiplier of the hard margin, both problems have the same
solution. Others: w stays bounded while sum_i alpha_i grows with C, so the distance of the hulls' points
that alpha itself names, 2 |w_of_alpha| / sum_i alpha_i, falls as 1 / C; where it is seen to do so, C is
raised a thousandfold. On its way, non-negative least squares look for better weights now and then.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import HINGE
from maxmargin.problem.rows import refuse_tiny
from maxmargin.proof.hard_margin import HardMarginCertificate, certify_hard_margin, refuse_fixed_intercept
from maxmargin.proof.inseparable import (
    InseparableError,
    equal_rows,
    meets_exactly,
    proof_by_least_squares,
    proof_by_weights,
    scale_of,
)
from maxmargin.proof.model import Model, Record, Status, Trace
from maxmargin.proof.solution import Solution
from maxmargin.solvers import AnySolver
from maxmargin.solving.loop import Callback, Limits, Progress, solve
from maxmargin.solving.ways import find_way
from maxmargin.tools.interrupts import held_back, let_through

_MOST_ROUNDS = 60
"""Soft margins that are solved at most: C has then grown beyond what float64 tells apart."""
_RAISE, _LEAP = 4.0, 1024.0
"""The factors on C from one soft margin to the next, the second where the hulls seem to meet."""
_ROUGH = 1e-3
"""Relative gap of a soft margin on the way."""
_TIGHTER = 1e-3
"""Factor on it when no multiplier is at C."""
_NEAR = 1e-9
"""The share of the data's scale below which hulls are so near that they are likely to meet."""

_ENDS = (Status.INTERRUPTED, Status.TIME_SPENT, Status.STOPPED, Status.STEPS_SPENT)


def solve_hard_margin(
    problem: Problem,
    solver: str | AnySolver = "auto",
    *,
    tol: float = 1e-4,
    max_steps: int | None = None,
    max_time: float | None = None,
    start: Solution | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Model:
    """The hyperplane of the largest margin with its proof; where there is none, raises InseparableError.

    problem : Problem
        Its rows, labels and intercept. Its loss and C are without effect; rows of cost 0 are left out.
    solver : str or Solver
        Of the soft margins on the way: "auto", or one for the hinge.
    tol : float
        Relative gap of ``1/2 |w|^2`` to reach.
    max_steps, max_time : int, float, optional
        Budgets: steps of the solver for each soft margin, and seconds for all of them together. The
        default is 1000 steps and no limit on time.
    start, callback, threads, budget
        As in ``solve``; ``Progress.certificate`` is the best ``HardMarginCertificate`` so far.
    seed : int
        Of the solver that "auto" chooses.

    It ends in any case: ``model.status`` says how. Where the budget is spent before a separating hyperplane
    or a proof against it is found, ``model.certificate.separated`` is false.
    """
    limits = Limits.of(tol, max_steps, max_time, callback, threads=threads, budget=budget)
    refuse_fixed_intercept(problem)
    labels = problem.y[problem.costs > 0]
    if problem.intercept is Intercept.EXACT and not (labels.min() < 0 < labels.max()):
        raise ValueError(
            "The hard margin needs rows of both labels. Got one label only. Give y a row of each, with a "
            "weight above 0."
        )
    refuse_tiny(problem.rows.largest_length)
    soft = replace(problem, loss=HINGE)
    if solver != "auto":
        find_way(solver, soft, tol)  # now, lest a wrong name is told of late
    search = _Search(soft, solver, seed, limits)
    with held_back(limits.budget.stop):
        try:
            status = search.run(start)
        except KeyboardInterrupt:  # of a callback
            limits.budget.stop()
            status = Status.INTERRUPTED
        certificate = search.best or search.certify_zero()
    interrupted = limits.budget.stopped
    certificate = replace(certificate, problem=problem)
    if certificate.relative_gap <= tol:
        status = Status.CERTIFIED
    story = (
        f"{search.name}: for the hard margin, {search.rounds} soft margins with C up to "
        f"{search.C:.3g}; the largest multiplier is {float(certificate.alpha.max(initial=0.0)):.3g}."
    )
    return Model(certificate, search.trace, status, tol, search.steps, story, {}, story, interrupted)


class _Search:
    """The rounds of one run: the best certificate so far, the trace and the clock."""

    def __init__(self, problem: Problem, solver: str | AnySolver, seed: int, limits: Limits) -> None:
        self.problem, self.solver, self.seed, self.limits = problem, solver, seed, limits
        self.tol, self.callback, self.budget = limits.tol, limits.callback, limits.budget
        self.counted = (problem.costs > 0).astype(np.float64)
        self.trace = Trace()
        self.best: HardMarginCertificate | None = None
        self.rounds = self.steps = 0
        self.C = math.nan
        self.name = "no solver"
        """The name of the last round's solver."""
        self.started = time.perf_counter()

    def run(self, start: Solution | None) -> Status:
        """Rounds until something is proven or the budget is spent."""
        proof = equal_rows(self.problem)
        if proof is not None:
            raise InseparableError(proof)
        self.scale, self.blur = scale_of(self.problem)
        self.C = 1.0 / (self.scale or 1.0) ** 2
        if start is not None:
            if start.alpha is not None:
                self.C = max(self.C, float(np.max(start.alpha, initial=0.0)))
            if self._certify(start):
                return Status.STOPPED
            if self._done():
                return Status.CERTIFIED
        gap, factor, dual = _ROUGH, _RAISE, math.nan
        while self.rounds < _MOST_ROUNDS:
            if self.budget.spent:
                return Status.INTERRUPTED if self.budget.stopped else Status.TIME_SPENT
            model = self._solve(start, gap)
            if self._certify(Solution(w=model.w, b=model.b, alpha=model.alpha)):
                return Status.STOPPED
            if self._done():
                return Status.CERTIFIED
            self._raise_if_hulls_meet(model)
            if model.status in _ENDS:
                return model.status
            assert self.best is not None
            at_C = model.alpha >= self.C * (1.0 - 1e-9)
            alpha = model.alpha
            if at_C[self.counted > 0].any():
                falls = self.best.dual >= 0.5 * factor**2 * dual and not self.best.separated
                factor, dual = _LEAP if falls else _RAISE, self.best.dual
                # Who is at C wants to be there with the next one.
                alpha = np.where(at_C, factor * self.C, alpha)
                self.C, gap = factor * self.C, _ROUGH
            elif gap > 0.0:
                gap = gap * _TIGHTER if gap > 1e-14 else 0.0
            elif self.best.separated:
                return Status.RULE_FIRED
            else:
                self.C, gap = _RAISE * self.C, _ROUGH
            start = Solution(w=model.w, b=model.b, alpha=alpha)
        return Status.RULE_FIRED

    def _solve(self, start: Solution | None, gap: float) -> Model:
        """The soft margin with the present C."""
        soft = replace(self.problem, costs=self.C * self.counted)
        way = find_way(self.solver, soft, gap)
        if self.solver == "auto":
            way = way.with_seed(self.seed)

        def tell(progress: Progress) -> bool | None:
            assert self.callback is not None
            return self.callback(self._progress(self.steps + progress.step))

        model = solve(
            soft,
            way,
            tol=gap,
            max_steps=self.limits.max_steps,
            start=start,
            callback=None if self.callback is None else tell,
            budget=self.budget,
        )
        self.steps += model.steps
        self.rounds += 1
        self.trace.certifying += model.trace.certifying
        self.name = model.solver.replace(",", ":").split(":")[0]
        return model

    def _certify(self, solution: Solution) -> bool:
        """Certify for the hard margin; true when the callback wants to stop."""
        before = time.perf_counter()
        self.best = certify_hard_margin(self.problem, solution, known=self.best, budget=self.budget)
        now = time.perf_counter()
        self.trace.certifying += now - before
        best = self.best
        self.trace.records.append(
            Record(self.steps, now - self.started, best.primal, best.dual, best.relative_gap)
        )
        if self.callback is None:
            return False
        with let_through():
            return bool(self.callback(self._progress(self.steps)))

    def certify_zero(self) -> HardMarginCertificate:
        """The certificate of w = 0, for a run that ended before its first round."""
        nothing = Solution(w=np.zeros(self.problem.rows.columns), alpha=np.zeros(self.problem.rows.count))
        return certify_hard_margin(self.problem, nothing, budget=self.budget)

    def _progress(self, step: int) -> Progress:
        return Progress(step, time.perf_counter() - self.started, self.best, self.tol)

    def _done(self) -> bool:
        return self.best is not None and self.best.relative_gap <= self.tol

    def _raise_if_hulls_meet(self, model: Model) -> None:
        """Raise InseparableError where the rows of the soft margin hold a proof.

        Least squares are worth a try when so far no hyperplane separates: after 4, 8, 16, ... rounds.
        """
        best = self.best
        assert best is not None
        if best.separated:
            return
        near = best.hull_distance <= 2.0 * max(_NEAR * self.scale, self.blur)
        due = self.rounds >= 4 and self.rounds & (self.rounds - 1) == 0
        if near or due:
            support = np.flatnonzero(model.alpha > 0.0)
            proof = proof_by_least_squares(self.problem, support, self.budget)
            if proof is not None:
                raise InseparableError(proof)
        if near:
            proof = proof_by_weights(self.problem, best.alpha)
            if proof is not None and meets_exactly(self.problem, proof, self.budget):
                raise InseparableError(proof)
