# SPDX-License-Identifier: BSD-3-Clause
"""A kernel problem whose kernel is the plain inner product, solved on its columns.

Solvers of linear problems know w itself, and with it the margins of all rows in one pass; their steps
hardly depend on how the columns are scaled. Their alpha is a dual point of the kernel problem too, which is
then proven like any other.
"""

from __future__ import annotations

from dataclasses import replace

from maxmargin.certificate import certify
from maxmargin.choose import choose_solver
from maxmargin.core import Budget
from maxmargin.loop import Callback, solve
from maxmargin.model import Model, Status
from maxmargin.problem import Problem
from maxmargin.solution import Solution

_MOST_RUNS = 4
_TIGHTER = 0.1


def solve_on_columns(
    seen: Problem, plain: Problem, tol: float, seed: int, budget: Budget, callback: Callback | None
) -> Model:
    """Solve ``plain``, the problem on the rows themselves, until its alpha proves ``seen`` to ``tol``.

    ``seen`` is the same problem through the linear kernel. The model is that of ``seen``, with w held by
    its coefficients; where it falls short, it is a start.
    """
    solver, reason = choose_solver(plain, tol)
    start, accuracy, steps = None, tol, 0
    for _ in range(_MOST_RUNS):
        found = solve(
            plain, solver.with_seed(seed), tol=accuracy, start=start, callback=callback, budget=budget
        )
        steps += found.steps
        proof = certify(
            seen, Solution(alpha=found.alpha, alpha_from=found.certificate.alpha_from), budget=budget
        )
        if proof.relative_gap <= tol or not found.status.certified:
            break
        # The best w of a run is not always that of its alpha.
        start, accuracy = Solution(w=found.w, b=found.b, alpha=found.alpha), _TIGHTER * accuracy
    status = Status.within_tol(proof) if proof.relative_gap <= tol else found.status
    story = f"The kernel is linear: solved on the columns. {found.story or reason}"
    proof = replace(proof, alpha_from="the solution on the columns")
    return replace(found, certificate=proof, status=status, tol=tol, steps=steps, solver=story, story=story)
