# SPDX-License-Identifier: BSD-3-Clause
"""The contract between a solver and the loop in loop.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.tools.parameters import changed, check_options

State = TypeVar("State")


class Report(NamedTuple):
    """What a solver can tell about its state for free."""

    gap: float = float("nan")
    """An estimate of the relative gap that tells when a proof is worth trying; NaN where it has none."""
    finished: bool = False
    """Whether a stopping rule of the solver's own has fired."""
    steps: int = 1
    """How many steps the last call of ``step`` was."""
    near: Callable[[], bool] = bool
    """Tells whether the estimate is known to be near the gap, so that proofs may wait until it is small. A
    question, because the answer may take a look at all rows and is seldom needed."""
    story: str = ""
    """What ran and why, in one sentence, where that is not what was chosen."""


class Solver(ABC, Generic[State]):
    """One algorithm. Subclasses are frozen dataclasses whose fields are its options.

    Order of calls: ``accepts``, ``init``, then ``step``, ``report`` and ``solution`` in turn until the loop
    is content or the report says ``finished``. A step is one epoch or one outer iteration; it may change
    the state in place, and leaves it consistent when the budget ends it early.

    A solver has to say what is abstract here. Three hints are optional: ``report``, ``resume`` and
    ``at_once``.
    """

    name: ClassVar[str]
    """The registry's name, equal to the stem of the files."""
    takes_kernels: ClassVar[bool] = False
    """Whether it solves problems whose rows are seen through a kernel."""
    needs_kernels: ClassVar[bool] = False
    """Whether it solves no others."""
    takes_fixed_intercept: ClassVar[bool] = False
    """Whether it solves problems whose b is given and not 0."""
    takes_targets: ClassVar[bool] = False
    """Whether it solves problems whose targets p_i are not all 1, such as those of regression."""
    takes_l1: ClassVar[bool] = False
    """Whether it solves problems with the l1 penalty, and no others."""
    takes_totals: ClassVar[bool] = False
    """Whether it solves problems whose targets have a shift that is sought."""
    seed: int
    """The seed of all random choices: the same seed gives the same result."""

    __post_init__ = check_options

    def with_options(self, **options: Any) -> Self:
        """The same solver with other options, which are checked as they are when a solver is made."""
        other = changed(self, **options)
        check_options(other)
        return other

    def with_seed(self, seed: int) -> Self:
        """The same solver with another seed."""
        return self.with_options(seed=seed)

    @abstractmethod
    def accepts(self, problem: Problem) -> str | None:
        """None, or the sentence that says why this solver cannot take the problem."""

    @abstractmethod
    def init(self, problem: Problem, start: Solution | None) -> State:
        """The state before the first step, from zero or from a start."""

    @abstractmethod
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """One epoch or one outer iteration."""

    @abstractmethod
    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """What the state amounts to now."""

    def report(self, state: State) -> Report:
        """What can be told about the state after a step without a pass over the data."""
        return Report()

    def resume(self, problem: Problem, start: Solution | None, before: State) -> State:
        """As ``init``, after a run on the same rows at other costs that ended in ``before``.

        A solver that has made something of the rows that costs do not change can take it over.
        """
        return self.init(problem, start)

    def at_once(self, tol: float) -> Self:
        """The same solver for a run that nobody watches: a ``step`` may be several, until this gap."""
        return self


AnySolver = Solver[Any]


def end_if_stopped(budget: Budget) -> None:
    """Between the parts of a long step: after Ctrl-C none is begun, and the loop keeps what was there."""
    if budget.stopped:
        raise KeyboardInterrupt


def visits_single_rows(name: str, problem: Problem) -> str | None:
    """Why a solver that visits one row after the other does not take the problem's rows, or None."""
    if problem.rows.offers_single_rows:
        return None
    return (
        f"{name} visits single rows, and these rows only offer whole passes. Use newton, "
        "augmented_lagrangian, interior_point or subgradient, which need no more, or maxmargin.Rows(X)."
    )
