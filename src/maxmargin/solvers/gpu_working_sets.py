# SPDX-License-Identifier: BSD-3-Clause
"""The kernel problem's dual on a GPU: working sets of 1,024 multipliers, one for each part at a time.

    minimise over beta   1/2 beta' K beta - y' beta,     sum_i beta_i = 0,   beta_i = alpha_i y_i

A round takes the worst violators of the KKT conditions into the set (gpu/cuda/selection.cu), solves the
problem on the set by sequential minimal optimisation inside one multiprocessor, and adds the change to the
scores of all rows (gpu/cuda/working_sets.cu). Values of the kernel are computed where they are needed, in
single precision; a matrix of all of them is made first where rows are long and it fits (gpu/halves.py).
Scores are summed up in double precision.

Where rows are long and the matrix has no room, the rows that matter (inside their walls, violators, and
those that are nearest to being one) are solved among themselves, with a matrix; then the scores of all rows
are brought up to date at once, by products with the rows that have changed.

Parts are blocks of rows that the kernel does not couple: only b is common to them. Where there are several,
b is a price: a multiplier may move alone and pays b for it, and b moves until the sum of beta is 0.

No sum depends on which thread comes first, so the same seed gives the same bits on the same card.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from maxmargin.core import Budget
from maxmargin.gpu.kernel_rows import CardKernelRows
from maxmargin.gpu.rounds import Facts, Rounds
from maxmargin.problem import Problem
from maxmargin.proof.solution import Solution
from maxmargin.solvers.base import Report, Solver
from maxmargin.solvers.kernel.kernel_problem import not_for_pairs, starting_alpha
from maxmargin.tools.parameters import NotNegative, Seed
from maxmargin.types import Indices, Vector

_ROUNDS = 16
"""Rounds of a step, at most: a round takes about a millisecond."""
_SHARE = 0.2
"""The share of its violation at which a set is left: with 0.03 fits took twice as long, with 0.4 some."""
_MOST_PAIRS = 2000
"""Pairs that one set may move in a round: about 2 ms."""
_LEAST_VIOLATION = 2e-6
"""Slopes in single precision are not known better than this where they are near 1."""
_SHARE_AMONG = 0.3
"""The share of the gap of all rows at which the rows that matter are left: to bring all scores up to date
takes as long as hundreds of rounds among them."""
_PRICED_BELOW = 0.3
"""The relative gap from which on the price moves: before, the sum of beta says little."""
_LARGEST_STEP_OF_B = 0.05
"""The largest step of the price in a round, in units of the margin."""
_ROUNDS_TO_JUDGE = 12
"""Rounds after which the sum of beta should have fallen by half, or the price moves too slowly."""
_SHARE_OF_TOL = 0.8
"""The share of ``tol`` at which a problem is left: a proof in double precision sees more."""
_ROUNDS_WITHOUT_GAIN = 400
"""Rounds in which the gap has to fall by a tenth, or the solver ends."""


@dataclass
class Price:
    """The intercept of a problem with several parts, and how it moves."""

    b: float = 0.0
    slope: float = 0.0
    """What the sum of beta falls by when b rises by 1, as far as is known."""
    balances: list[float] = field(default_factory=list[float])
    """The sum of beta after each of the last rounds."""

    def is_settled(self, balance: float) -> bool:
        """Whether another step would hardly move b."""
        return abs(balance) <= _LEAST_VIOLATION * self.slope

    def move(self, balance: float) -> None:
        """A step of Newton's method on the sum of beta, whose slope is learnt on the way."""
        before = self.balances[-1] if self.balances else 0.0
        self.balances.append(balance)
        if balance * before < 0.0:
            if abs(balance) > 0.5 * abs(before):
                self.slope *= 2.0  # the last step was far too long
            self.balances = [balance]
        elif len(self.balances) > _ROUNDS_TO_JUDGE:
            if abs(balance) > 0.5 * abs(self.balances[0]):
                self.slope *= 0.7
            self.balances = [balance]
        self.b += float(np.clip(balance / self.slope, -_LARGEST_STEP_OF_B, _LARGEST_STEP_OF_B))


@dataclass
class State:
    """The multipliers on the card, and how far they are."""

    rounds: Rounds
    price: Price | None
    """None where there is one part, whose multipliers move in pairs."""
    steps: int = 0
    """Rounds of the last step."""
    estimate: float = float("inf")
    best: float = float("inf")
    """The estimate that was last a gain."""
    without_gain: int = 0
    """Rounds since then."""
    finished: bool = False
    facts: Facts | None = None
    """What is known before the next round, where the last step looked and did not move."""
    drifted: bool = False
    """Whether scores are to be computed anew in double precision: a proof was asked for meanwhile, so that
    they are at hand."""


@dataclass(frozen=True)
class GpuWorkingSets(Solver[State]):
    """Working sets on a GPU."""

    name: ClassVar[str] = "gpu_working_sets"
    takes_kernels: ClassVar[bool] = True
    needs_kernels: ClassVar[bool] = True

    seed: Seed = 0
    """The seed of the order of the rows."""
    until: NotNegative = 0.0
    """The relative gap that is small enough for a proof: no round is made beyond it."""

    def at_once(self, tol: float) -> Self:
        """The solver with steps that end where the gap is just small enough."""
        return self.with_options(until=_SHARE_OF_TOL * tol)

    def accepts(self, problem: Problem) -> str | None:
        """Kernel problems with the hinge loss and an exact intercept, with rows on a GPU."""
        if not isinstance(problem.rows, CardKernelRows):
            return f"{self.name} needs rows that lie on a GPU. Use SVC(device='cuda')."
        return not_for_pairs(self.name, problem)

    def init(self, problem: Problem, start: Solution | None) -> State:
        """Multipliers of 0, or those of the start."""
        rows = problem.rows
        assert isinstance(rows, CardKernelRows)
        order = self._mixed(rows.blocks.order, rows.blocks.begins)
        y, costs, alpha = problem.y[order], problem.costs[order], starting_alpha(problem, start)
        rounds = Rounds(rows, order, rows.blocks.begins, y, costs)
        state = State(rounds, Price() if rounds.parts > 1 else None)
        if alpha is not None:
            rounds.alpha = rounds.card.put(alpha[order])
            state.drifted = True
            if state.price is not None and start is not None and start.b is not None:
                state.price.b = float(start.b)
        return state

    def _mixed(self, order: Indices, begins: Indices) -> Indices:
        """The rows of each part in a random order: of equal violators the first ones are taken."""
        random = np.random.default_rng(self.seed)
        parts = [random.permutation(order[begins[k] : begins[k + 1]]) for k in range(len(begins) - 1)]
        return np.concatenate(parts)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        """Some rounds, until the gap is half of what it was, or small enough."""
        rounds, price = state.rounds, state.price
        # Where a proof has been asked for and was not enough, the step has to gain something in any case.
        enough = 0.0 if state.drifted else self.until
        if state.drifted:
            rounds.begin_with(problem.rows.scores(self._beta(rounds), budget))
            state.drifted, state.facts = False, None
        aim, turns, state.steps = max(0.5 * state.estimate, enough), 0, 0
        while turns < _ROUNDS and not budget.spent:
            facts = state.facts or rounds.select(None if price is None else price.b)
            state.facts = facts
            _judge(state, facts)
            if state.finished or state.estimate <= (aim if turns else enough):
                break
            state.facts, turns = None, turns + 1
            if rounds.is_large:
                state.steps += self._among(state, float(facts.b[0]), budget)
                continue
            if price is not None and state.estimate < _PRICED_BELOW:
                price.slope = price.slope or max(0.5 * rounds.free, 1.0)
                price.move(float(facts.balance.sum()))
            rounds.move(None if price is None else price.b, _SHARE, _LEAST_VIOLATION, _MOST_PAIRS)
            state.steps += 1
        state.steps = max(state.steps, 1)
        return state

    @staticmethod
    def _among(state: State, b: float, budget: Budget) -> int:
        """Solve among the rows that matter, whose matrix has room; answers how many rounds that took."""
        rounds, steps = state.rounds, 0
        which = rounds.that_matter(b)
        inner = rounds.among(which)
        among, aim = State(inner, None), 0.0
        while not budget.spent:
            facts = inner.select(None)
            b = float(facts.b[0])
            _judge(among, facts)
            # A share of both gaps, so that every step gains something.
            aim = aim or _SHARE_AMONG * min(state.estimate, among.estimate)
            if among.finished or among.estimate <= aim:
                break
            inner.move(None, _SHARE, _LEAST_VIOLATION, _MOST_PAIRS)
            steps += 1
        rounds.take(which, inner, b)
        return steps

    @staticmethod
    def _beta(rounds: Rounds) -> Vector:
        """alpha_i y_i in the order of the rows."""
        beta = np.empty(len(rounds.order))
        beta[rounds.order] = rounds.beta
        return beta

    def solution(self, problem: Problem, state: State, budget: Budget) -> Solution:
        """The multipliers."""
        state.drifted = True
        alpha = self._beta(state.rounds) * problem.y
        return Solution(alpha=alpha, alpha_from="the working sets on the GPU")

    def report(self, state: State) -> Report:
        """The gap as the scores tell it; finished where no multiplier has a reason to move, or gains."""
        return Report(state.estimate, state.finished, state.steps)


def solve_together(
    rows: CardKernelRows,
    order: Indices,
    begins: Indices,
    y: Vector,
    costs: Vector,
    tol: float,
    budget: Budget,
) -> Vector:
    """Multipliers of several problems on the same rows, one part each, side by side.

    Each of them is to be within ``tol`` as its scores tell: what is proven is seen afterwards.
    """
    rounds = Rounds(rows, order, begins, y, costs, shared=True)
    best, without_gain = float("inf"), 0
    while not budget.spent and without_gain <= _ROUNDS_WITHOUT_GAIN:
        facts = rounds.select(None)
        open_gaps = facts.gap > _SHARE_OF_TOL * tol * (facts.gap + facts.dual)
        if not (open_gaps & (facts.fresh > 0)).any():
            break
        total = float(facts.gap[open_gaps].sum())
        best, without_gain = (total, 0) if total < 0.9 * best else (best, without_gain + 1)
        rounds.move(None, _SHARE, _LEAST_VIOLATION, _MOST_PAIRS)
    return rounds.beta * y


def _judge(state: State, facts: Facts) -> None:
    """The gap, and whether there is anything left to gain."""
    gap, dual = float(facts.gap.sum()), float(facts.dual.sum())
    if state.price is not None:
        # What it takes to make the sum of beta 0 again: multipliers that are worth about their margin.
        gap += abs(float(facts.balance.sum())) * (1.0 + abs(state.price.b))
    state.estimate = gap / (gap + dual) if gap + dual > 0.0 else float("inf")
    if state.estimate < 0.9 * state.best:
        state.best, state.without_gain = state.estimate, 0
    else:
        state.without_gain += 1
    idle = facts.violation <= _LEAST_VIOLATION or not facts.fresh.any()
    balanced = state.price is None or state.price.is_settled(float(facts.balance.sum()))
    state.finished = (idle and balanced) or state.without_gain > _ROUNDS_WITHOUT_GAIN
