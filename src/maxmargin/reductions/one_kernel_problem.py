# SPDX-License-Identifier: BSD-3-Clause
"""One regression, or one class, on rows that are seen through a kernel, and how it is solved."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin.core import Budget
from maxmargin.kernels.base import Function, Kernel, Linear, Precomputed
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.rounding import rounding_of
from maxmargin.problem import Problem
from maxmargin.problem.rows import Rows, refuse_extremes
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Model, Status
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import all_values
from maxmargin.reductions.kernel_fit import Attempt, KernelLadder, configured
from maxmargin.reductions.one_class import OneClass, with_boundary_inside
from maxmargin.reductions.regression import Regression
from maxmargin.solvers import sizes
from maxmargin.solving.loop import NO_LIMIT
from maxmargin.solving.ways import Running, Way, find_way, solve_each
from maxmargin.tools.parameters import changed
from maxmargin.types import Vector

_NARROW = 1e-2
"""Half the width of a tube, in units of the spread of the values, up to which none may be best."""


class OneKernelProblem:
    """One problem with a kernel: the rows, seen through it, and all that is known of their values."""

    kernel_is_none = False
    """Whether the function is not shown to be a kernel on these rows."""

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        statement: Regression | OneClass,
        cache_size: float,
        *,
        shared: int = 0,
    ) -> None:
        """``shared``: the threads that compute all values, where many fits on these rows share them."""
        self.kernel, self.X, self.cache_size = kernel, X, cache_size
        self.matrix = None
        """All values of the kernel, where only they are given, or many fits share them."""
        if shared or isinstance(kernel, Precomputed | Function):
            self.matrix = all_values(kernel, X, cache_size, lambda: max(1, shared), shared=shared > 0)
        given = self.matrix is not None
        self.rows = Rows(self.matrix if given else X, check_finite=False, keep_zeros=given)
        self._statement = statement
        self._source = kernel, self.rows.stored_data
        if isinstance(kernel, Precomputed | Function):
            self._source = Precomputed(), self.rows.stored_data
        elif given:
            self._source = kernel, Rows(X, check_finite=False, keep_zeros=True).stored_data
        self._rounding = rounding_of(*self._source)
        lengths, self.value_error = self._rounding.simple
        total = float(statement.C * statement.part(0).weights.sum())
        refuse_extremes(total, float(lengths.max(initial=0.0)), kernel=True)

    @cached_property
    def stated(self) -> Regression | OneClass:
        """The problem, stated on the rows seen through the kernel."""
        rows = KernelRows(self.rows, Precomputed() if self.matrix is not None else self.kernel)
        rows.kernel_is_none = self.kernel_is_none
        rows.rounding, rows.source = self._rounding, self._source
        return replace(self._statement, examples=rows)

    def with_costs(self, weights: Vector | None, C: float, epsilon: float) -> Self:
        """The same regression with other weights of the rows, and at another C and epsilon."""
        other = copy(self)
        other.__dict__.pop("stated", None)
        assert isinstance(self._statement, Regression)
        other._statement = replace(self._statement, weights=weights, C=C, epsilon=epsilon)
        return other

    @property
    def targets(self) -> Vector:
        """The targets of the problem's rows."""
        return self._statement.targets

    def predictions(self, model: Model) -> Vector:
        """What a model says of every row, also of those without weight."""
        examples = self.stated.examples
        assert examples is not None
        scores: Vector = examples.scores(model.w) + model.b
        return scores

    def solve(self, running: Running, *, shrinking: bool, start: Vector | None) -> Model:
        """The model: proven to ``tol`` on the first way that does, or by the last one."""

        def solve_one(k: int, budget: Budget) -> Model:
            return self._solve(running, shrinking, start, budget)

        return solve_each(1, solve_one, running.seconds, running.threads())[0]

    def _solve(self, running: Running, shrinking: bool, start: Vector | None, budget: Budget) -> Model:
        problem = self.stated.problem()
        known: Certificate | None = None
        if start is not None:
            known = certify(problem, Solution(alpha=start), budget=budget, tol=running.tol)
        way = find_way(running.solver, problem, running.tol).with_seed(running.seed)
        if isinstance(running.solver, str):
            way = configured(way, cache_size=self.cache_size, shrinking=shrinking)
        attempt = Attempt(problem, budget, running.told_of(None), running.seed, self._plain_problem)
        if self.stated.nu is None:
            at_will = running.automatic and running.max_steps == NO_LIMIT and start is None
            limits = running.tol, running.max_steps, self.cache_size
            linear = isinstance(self.kernel, Linear)
            ladder = KernelLadder(way, *limits, at_will, linear, self.kernel_is_none)
            model = ladder.climb(attempt, known)
        else:
            model = self._with_nu(attempt, way, running, known)
        proof = model.certificate
        if proof.relative_gap <= running.tol:
            model = changed(model, status=Status.within_tol(proof))
        proof = with_boundary_inside(proof, running.tol)
        return changed(model, certificate=proof.without_problem(proof.w))

    def _with_nu(self, attempt: Attempt, way: Way, running: Running, known: Certificate | None) -> Model:
        """The model of a problem whose multipliers have a total."""

        def go_on(attempt: Attempt, tol: float, steps: int, known: Certificate | None = None) -> Model:
            return attempt.go_on(way, tol, min(steps, running.max_steps), known)

        tol = 0.0 if self.stated.count <= sizes.QUICK_ROWS else running.tol
        model = go_on(attempt, tol, sizes.FIRST_STEPS_WITH_NU, known)
        if model.status is Status.STEPS_SPENT and running.max_steps > sizes.FIRST_STEPS_WITH_NU:
            known = self._without_tube(attempt, model.certificate, running.tol, go_on)
            model = go_on(attempt, running.tol, NO_LIMIT, known)
        return model

    def _without_tube(
        self, attempt: Attempt, proof: Certificate, tol: float, go_on: Callable[..., Model]
    ) -> Certificate:
        """The proof, or a better one of a regression whose tube is best without any width.

        Multipliers of both walls of an example then make up the total, and pairs of one sign are slow to
        find those of the others. The regression with epsilon = 0 has them at once.
        """
        stated, problem = self.stated, attempt.problem
        narrow = proof.shift <= _NARROW * problem.spread
        if not (isinstance(stated, Regression) and narrow) or proof.relative_gap <= tol:
            return proof
        tube = replace(attempt, problem=replace(stated, nu=None, epsilon=0.0).problem())
        alpha = go_on(tube, 0.1 * tol, sizes.FIRST_STEPS_WITH_NU).alpha.reshape(-1, 2)
        alpha = alpha - alpha.min(axis=1, keepdims=True)
        assert problem.total is not None
        missing = 0.5 * problem.total - float(alpha[:, 0].sum())
        room = problem.costs[::2] - alpha.max(axis=1)
        if missing >= 0.0 and room.sum() > 0.0:
            alpha += min(1.0, missing / float(room.sum())) * room[:, np.newaxis]
        return certify(problem, Solution(alpha=alpha.ravel()), known=proof, tol=tol)

    def _plain_problem(self) -> Problem | None:
        """The problem on the rows themselves, where the kernel is their inner product."""
        if not isinstance(self.kernel, Linear) or self.stated.nu is not None:
            return None
        return replace(self.stated, examples=Rows(self.X, check_finite=False)).problem()
