# SPDX-License-Identifier: BSD-3-Clause
"""The automatic choice: a solver, and the sentence that says why."""

from __future__ import annotations

from maxmargin.problem import Problem
from maxmargin.solvers import (
    SOLVERS,
    AnySolver,
    DualCoordinateAscent,
    StochasticSubgradient,
    Subgradient,
)


def choose_solver(problem: Problem) -> tuple[AnySolver, str]:
    """The solver that ``"auto"`` takes for a problem, with the reason."""
    loss = problem.loss.name
    if loss in ("hinge", "squared_hinge"):
        return DualCoordinateAscent(), (
            f"dual_coordinate_ascent: for the {loss.replace('_', ' ')} it needs no step size, costs "
            "one row per step, and its multipliers prove the gap directly."
        )
    if loss == "logistic":
        return StochasticSubgradient(), (
            "stochastic_subgradient: of the solvers for the logistic loss, the one whose steps cost a "
            "row and not a pass."
        )
    return Subgradient(), (
        "subgradient: the perceptron loss is for study, w = 0 minimises it, and this solver starts there."
    )


def find_solver(solver: str | AnySolver, problem: Problem) -> tuple[AnySolver, str]:
    """The solver that a name, ``"auto"`` or a configured object stands for, with the reason.

    Raises ValueError where the name is unknown or the solver does not take the problem.
    """
    if solver == "auto":
        return choose_solver(problem)
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(
                f"solver must be 'auto', one of {', '.join(map(repr, SOLVERS))}, or a configured solver. "
                f"Got {solver!r} instead."
            )
        solver = SOLVERS[solver]()
    refusal = solver.accepts(problem)
    if refusal is not None:
        raise ValueError(refusal)
    return solver, f"{solver.name}: asked for."
