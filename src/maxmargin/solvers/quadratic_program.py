# SPDX-License-Identifier: BSD-3-Clause
"""The problem as a quadratic program, handed to a solver off the shelf (lectures 000 and 003).

    minimise    1/2 u'Pu + q'u
    subject to  A u <= limits;  the first ``equalities`` lines hold with equality

Two forms, for rows of cost above 0; Z has the rows y_i (x_i, 1), the last column only with an intercept:

    primal   u = (w, b, xi)    P = diag(1, ..., 1, r, 0, ..., 0)    q = (0, C)
             1 - <z_i, (w, b)> - xi_i <= 0  with alpha_i as multiplier,      -xi_i <= 0
             squared hinge: P has 2 C_i in the places of xi, q = 0, and xi >= 0 is not needed
    dual     u = alpha         P = (y_i y_j (<x_i, x_j> + s^2))_ij  q = -1
             sum_i alpha_i y_i = 0  if b is exact, with b as multiplier,     0 <= alpha_i <= C_i
             squared hinge: P has 1 / (2 C_i) more on the diagonal, and there is no upper wall

r is 1/s^2 for a regularised intercept and 0 for an exact one; s^2 is part of P only if it is regularised.
With a kernel, K_ij is in the place of <x_i, x_j>, and there is only the dual form: the primal's w may have
infinitely many entries. One step solves the program with Clarabel, an interior point method, as precisely
as rounding allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from maxmargin.core import Budget, dot
from maxmargin.problem import Intercept, Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers import sizes
from maxmargin.solvers.base import Report, Solver
from maxmargin.tools.parameters import Seed
from maxmargin.types import Indices, Vector

_TOLERANCES = (1e-12, 1e-10, 1e-8)
"""Accuracies that Clarabel is asked for, one after the other until it reaches one."""
_CLOSE = 1e-9
"""A multiplier this near to a wall of its box, as a share of the largest one, is taken to be there."""
_BLOCK = 1 << 20
"""Values of the rows that are written out at a time."""


@dataclass(frozen=True)
class Program:
    """``minimise 1/2 u'Pu + q'u`` over ``A u <= limits``, whose first lines are equalities."""

    P: sparse.csc_matrix
    """The upper triangle."""
    q: Vector
    A: sparse.csc_matrix
    limits: Vector
    equalities: int = 0


@dataclass
class State:
    """The state before and after the one step."""

    solution: Solution
    finished: bool = False


@dataclass(frozen=True)
class QuadraticProgram(Solver[State]):
    """The primal or the dual as a quadratic program for Clarabel; for the hinge and the squared hinge."""

    name: ClassVar[str] = "quadratic_program"
    takes_kernels: ClassVar[bool] = True
    form: Literal["primal", "dual", "auto"] = "auto"
    """auto: the dual if there are more columns than rows, else the primal; the other if it alone fits."""
    seed: Seed = 0
    """Nothing here is random."""

    def accepts(self, problem: Problem) -> str | None:
        """Small problems of two losses, if Clarabel is installed."""
        if problem.loss.name not in ("hinge", "squared_hinge"):
            return (
                f"quadratic_program solves the hinge and the squared hinge, not {problem.loss.name}, which "
                "makes no quadratic program; use subgradient, or newton for the logistic loss."
            )
        if self.form == "primal" and problem.rows.has_kernel:
            return "quadratic_program solves kernel problems in the dual form. Use form='dual' or 'auto'."
        if self._chosen_form(problem) is None:
            return (
                f"quadratic_program is for small problems: {sizes.LARGEST_PRIMAL_PROGRAM} stored values in "
                f"the primal form, {sizes.LARGEST_DUAL_PROGRAM} rows in the dual form. Got "
                f"{problem.rows.stored} values in {problem.rows.count} rows with "
                f"form={self.form!r}. Use interior_point or dual_coordinate_ascent."
            )
        if find_spec("clarabel") is None:
            return "quadratic_program needs the package clarabel: pip install 'maxmargin[qp]'."
        return None

    def _chosen_form(self, problem: Problem) -> str | None:
        """None where no form that is asked for fits."""
        rows = problem.rows
        fitting = []
        if self.form != "dual" and rows.stored <= sizes.LARGEST_PRIMAL_PROGRAM and not rows.has_kernel:
            fitting.append("primal")
        if self.form != "primal" and rows.count <= sizes.LARGEST_DUAL_PROGRAM:
            fitting.append("dual")
        if len(fitting) == 2:
            return "dual" if rows.columns > rows.count else "primal"
        return fitting[0] if fitting else None

    def init(self, problem: Problem, start: Solution | None) -> State:
        """A start does not help: Clarabel takes none."""
        return State(start or Solution(w=np.zeros(problem.rows.columns)))

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Solve the whole program."""
        active = np.flatnonzero(problem.costs)
        alpha = np.zeros(problem.rows.count)
        b = 0.0
        if self._chosen_form(problem) == "dual":
            alpha[active], multipliers = solve_program(dual_program(problem), budget)
            w = problem.rows.combine(alpha * problem.y, budget)
            if problem.intercept is Intercept.EXACT:
                b = float(multipliers[0])
            elif problem.intercept is Intercept.REGULARISED:
                b = problem.intercept_scaling**2 * dot(alpha, problem.y)
        else:
            u, multipliers = solve_program(primal_program(problem), budget)
            w, alpha[active] = u[: problem.rows.columns], multipliers[: len(active)]
            if problem.intercept is not Intercept.NONE:
                b = float(u[problem.rows.columns])
        state.solution = Solution(w=w, b=b, alpha=_on_the_walls(alpha, problem.upper))
        state.finished = True
        return state

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The program's."""
        return state.solution

    def report(self, state: State) -> Report:
        """One step is all there is."""
        return Report(finished=state.finished)


def primal_program(problem: Problem) -> Program:
    """Over (w, b, xi): the soft margin as it stands."""
    active = np.flatnonzero(problem.costs)
    costs = problem.costs[active]
    n, squared = len(active), problem.loss.name == "squared_hinge"
    Z = _signed_rows(problem, active)
    ridge = np.ones(Z.shape[1])
    if problem.intercept is Intercept.REGULARISED:
        ridge[-1] = problem.intercept_scaling**-2
    elif problem.intercept is Intercept.EXACT:
        ridge[-1] = 0.0
    none = np.zeros(n)
    identity = sparse.identity(n)
    lines = [sparse.hstack([-Z, -identity])]
    limits = [-np.ones(n)]
    if not squared:
        lines.append(sparse.hstack([sparse.csr_matrix(Z.shape), -identity]))
        limits.append(none)
    return Program(
        P=sparse.csc_matrix(sparse.diags(np.concatenate([ridge, 2.0 * costs if squared else none]))),
        q=np.concatenate([np.zeros(Z.shape[1]), none if squared else costs]),
        A=sparse.csc_matrix(sparse.vstack(lines)),
        limits=np.concatenate(limits),
    )


def dual_program(problem: Problem) -> Program:
    """Over alpha: n unknowns, however many columns there are."""
    active = np.flatnonzero(problem.costs)
    y, costs = problem.y[active], problem.costs[active]
    n, squared = len(active), problem.loss.name == "squared_hinge"
    P = problem.rows.block(active, active)
    if problem.intercept is Intercept.REGULARISED:
        P += problem.intercept_scaling**2
    P *= np.outer(y, y)
    if squared:
        P[np.diag_indices(n)] += 0.5 / costs
    identity = sparse.identity(n)
    lines, limits = [-identity], [np.zeros(n)]
    if not squared:
        lines.append(identity)
        limits.append(costs)
    equalities = int(problem.intercept is Intercept.EXACT)
    if equalities:
        lines.insert(0, sparse.csr_matrix(y))
        limits.insert(0, np.zeros(1))
    return Program(
        P=sparse.csc_matrix(np.triu(P)),
        q=-np.ones(n),
        A=sparse.csc_matrix(sparse.vstack(lines)),
        limits=np.concatenate(limits),
        equalities=equalities,
    )


def _signed_rows(problem: Problem, active: Indices) -> sparse.csr_matrix:
    """Z."""
    # A few rows at a time: sparse data with many columns would not fit as a dense matrix.
    height = max(1, _BLOCK // max(problem.rows.columns, 1))
    pieces = [active[first : first + height] for first in range(0, len(active), height)]
    X = sparse.vstack([sparse.csr_matrix(problem.rows.dense(some)) for some in pieces])
    if problem.intercept is not Intercept.NONE:
        X = sparse.hstack([X, np.ones((len(active), 1))])
    return sparse.csr_matrix(sparse.diags(problem.y[active]) @ X)


def _on_the_walls(alpha: Vector, upper: Vector) -> Vector:
    """An interior point method comes close to the walls; what is closer than its accuracy is there."""
    alpha = np.where(alpha <= _CLOSE * alpha.max(), 0.0, alpha)
    return np.where(alpha >= (1.0 - _CLOSE) * upper, upper, alpha)


def solve_program(program: Program, budget: Budget) -> tuple[Vector, Vector]:
    """The unknowns and the multipliers of the lines, as precisely as rounding allows."""
    import clarabel

    settings: Any = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    inequalities = len(program.limits) - program.equalities
    cones = [clarabel.ZeroConeT(program.equalities), clarabel.NonnegativeConeT(inequalities)]
    arguments = (program.P, program.q, program.A, program.limits, cones, settings)
    for tolerance in _TOLERANCES:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        settings.time_limit = max(budget.seconds_left, 0.0)
        answer = clarabel.DefaultSolver(*arguments).solve()
        if answer.status == clarabel.SolverStatus.Solved or budget.spent:
            break
    # Where it gave up, its last point is still a proposal: the certificate tells what it is worth.
    return np.nan_to_num(np.array(answer.x)), np.nan_to_num(np.array(answer.z))
