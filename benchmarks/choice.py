# SPDX-License-Identifier: BSD-3-Clause
"""The automatic choice against the solvers it chooses from, over data and C."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks import datasets, machine
from benchmarks.objective import Objective
from benchmarks.report import table

DATA = (
    "a9a", "ijcnn1", "covtype_binary_scale", "mnist38",
    "imdb_tfidf", "news20_binary_like", "reuters_moneyfx", "rcv1_vw1k",
    "svmguide1", "mushrooms", "heart_scale",
)  # fmt: skip
COSTS = (2.0**-5, 1.0, 32.0)
TOLERANCE = 1e-4
AUTO = "auto"
_CHOICES = {
    "hinge": ("dual_coordinate_ascent", "augmented_lagrangian", "interior_point"),
    "squared_hinge": ("dual_coordinate_ascent", "newton", "interior_point"),
}


@dataclass
class Choice:
    """One problem; best seconds of all rounds, infinite where a solver did not get there."""

    data: str
    loss: str
    C: float
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    took: str = ""

    @property
    def best(self) -> str:
        """The fastest solver."""
        return min((name for name in self.seconds if name != AUTO), key=lambda name: self.seconds[name])

    @property
    def ratio(self) -> float:
        """Of the automatic choice to the best."""
        return self.seconds[AUTO] / self.seconds[self.best]


def measure(
    names: list[str], losses: list[str], repeat: int, longest: float, tell: Callable[[str], None]
) -> list[Choice]:
    """Solvers take turns; one that took far longer than another is not asked again."""
    choices = []
    for loss in losses:  # imports and first calls are not what is measured
        _measure_one(Objective(datasets.load(names[-1]), loss, 1.0), 1, longest)
    for name in names:
        data = datasets.load(name)
        for C, loss in itertools.product(COSTS, losses):
            tell(f"{name}, {loss}, C = {C:g}")
            choices.append(_measure_one(Objective(data, loss, C), repeat, longest))
    return choices


def _measure_one(objective: Objective, repeat: int, longest: float) -> Choice:
    from maxmargin import Problem, solve
    from maxmargin.solvers import SOLVERS

    choice = Choice(objective.data.name, objective.loss, objective.C)
    best = math.inf
    for _ in range(repeat):
        for name in (AUTO, *_CHOICES[objective.loss]):
            if choice.seconds.get(name, 0.0) > 4.0 * best:
                continue
            start = time.perf_counter()
            problem = Problem.of(
                objective.data.X, objective.signs[:, 0], objective.C, loss=objective.loss, intercept="exact"
            )
            if name != AUTO and SOLVERS[name]().accepts(problem) is not None:
                choice.seconds[name] = math.inf
                continue
            limit = min(longest, 10.0 * best + 0.1)
            model = solve(problem, name, tol=TOLERANCE, max_steps=10**9, max_time=limit)
            seconds = time.perf_counter() - start if model.status.certified else math.inf
            choice.seconds[name] = min(seconds, choice.seconds.get(name, math.inf))
            best = min(best, seconds)
            if name == AUTO:
                choice.took = model.solver.split(":")[0]
    return choice


def markdown(choices: list[Choice]) -> str:
    """The whole page."""
    heads = ["data, loss", "C", "auto took", "auto, s", "best", "best, s", "auto / best"]
    rows = [
        [
            f"{choice.data}, {choice.loss.replace('_', ' ')}",
            f"{choice.C:g}",
            choice.took,
            f"{choice.seconds[AUTO]:.3g}",
            choice.best,
            f"{choice.seconds[choice.best]:.3g}",
            f"{choice.ratio:.2f}",
        ]
        for choice in choices
    ]
    worst = max(choices, key=lambda choice: choice.ratio)
    facts = "; ".join(f"{name}: {value}" for name, value in machine.facts().items())
    parts = [
        "# The automatic choice against the best one",
        f"Seconds from the arrays to a certified relative gap of {TOLERANCE:g}, exact intercept; best of "
        "several rounds in which the solvers take turns. The choice is between dual_coordinate_ascent, "
        "augmented_lagrangian (hinge), newton (squared hinge) and interior_point.",
        f"{facts}.",
        f"The largest ratio is {worst.ratio:.2f} ({worst.data}, {worst.loss.replace('_', ' ')}, "
        f"C = {worst.C:g}).",
        table(heads, rows),
    ]
    return "\n\n".join(parts) + "\n"
