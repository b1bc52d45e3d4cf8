# SPDX-License-Identifier: BSD-3-Clause
"""The ladder of ways: which solver runs, why, and what goes on where it gains nothing any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maxmargin.problem import Problem
from maxmargin.solvers import AnySolver
from maxmargin.solvers.interior_point import affordable
from maxmargin.solving import hand_over
from maxmargin.solving.choice import find_solver
from maxmargin.tools.changed import changed


@dataclass(frozen=True)
class Way:
    """A solver, and the sentence that says why it was taken."""

    solver: AnySolver
    reason: str
    then: Callable[[Problem, Any], Way | None] | None = None
    """Asked with the problem and the solver's state where that gains nothing any more, or has ended by a
    rule of its own: the way that goes on from zero, or None. Its reason may speak of the {steps} taken so
    far and the {gap} that they left."""

    def with_seed(self, seed: int) -> Way:
        """The same way with another seed of its solver."""
        return changed(self, solver=self.solver.with_seed(seed))


def find_way(solver: str | AnySolver | Way, problem: Problem, tol: float = 1e-4) -> Way:
    """The way that a name, ``"auto"`` or a configured solver stands for; one that is found stays.

    Raises ValueError where the name is unknown or the solver does not take the problem.
    """
    if isinstance(solver, Way):
        return solver
    found, reason = find_solver(solver, problem, tol)
    second = found.second if isinstance(found, hand_over.HandOver) else found
    return Way(found, reason, _interior_point if getattr(second, "resort", False) else None)


def _interior_point(problem: Problem, state: Any) -> Way | None:
    """Where rounding ends the second-order methods, as far as its steps are affordable.

    An ascent that goes on needs it not: its gap may rise for some sweeps.
    """
    if isinstance(state, hand_over.State) and not state.handed_over and not state.inner.finished:
        return None
    solver = affordable(problem)
    if solver is None:
        return None
    return Way(
        solver,
        f"{solver.name}: the {{steps}} steps of other methods before it gained no more at a relative gap "
        "of {gap:.1e}.",
    )
