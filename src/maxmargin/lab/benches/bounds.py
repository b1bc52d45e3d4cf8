# SPDX-License-Identifier: BSD-3-Clause
"""Bounds: what theory promises of Pegasos and of its regret, and what is measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.core import ALL_CORES
from maxmargin.lab.asked import Asked
from maxmargin.lab.benches import SECONDS, Answer, Bench
from maxmargin.lab.data import SETS, named_points
from maxmargin.lab.scripts import number, points_as_code
from maxmargin.problem import Problem
from maxmargin.problem.scalings import C_from_half_lambda
from maxmargin.reproduce.regret import regrets
from maxmargin.solvers import Pegasos
from maxmargin.solvers.pegasos import bound
from maxmargin.solving.loop import solve
from maxmargin.types import Vector

_MOST_SEEDS, _MOST_DOUBLINGS = 12, 7
"""Runs that are drawn beside each other, and how often the number of epochs is doubled, at most."""
_TOL = 1e-9
"""The relative gap of the optimum that everything is held against."""


class _Question(NamedTuple):
    X: Vector
    y: Vector
    lambda_: float
    doublings: int
    seeds: int
    batch: int

    @property
    def problem(self) -> Problem:
        """The lecture's: lambda / 2 |w|^2 and the mean hinge, without an intercept."""
        C = C_from_half_lambda(self.lambda_, len(self.y))
        return Problem.of(self.X, self.y, C, intercept="none")

    @property
    def epochs(self) -> list[int]:
        """After which a run is looked at: 1, 2, 4, ..."""
        return [2**k for k in range(self.doublings + 1)]


def _asked(asked: Asked) -> _Question:
    X, y = named_points(asked.choice("data", SETS))
    return _Question(
        X,
        y,
        asked.number("lambda", 1e-4, 1.0),
        asked.whole("doublings", 1, _MOST_DOUBLINGS),
        asked.whole("seeds", 1, _MOST_SEEDS),
        asked.whole("batch", 1, 20),
    )


def _measured(question: _Question, problem: Problem, best: float) -> Vector:
    """F at the mean of all iterates less F*, for every run after each number of epochs."""
    found = []
    for seed in range(question.seeds):
        solver = Pegasos(batch=question.batch, seed=seed, polish=0)
        state, off = solver.init(problem, None), []
        for epoch in range(1, question.epochs[-1] + 1):
            state = solver.step(problem, state, ALL_CORES)
            if epoch in question.epochs:
                w = solver.solution(problem, state, ALL_CORES).w
                assert w is not None
                off.append((problem.primal(w) - best) / problem.total_cost)
        found.append(off)
    return np.array(found)


def show(asked: Asked) -> Answer:
    """Suboptimality and regret of some runs, each beside its bound."""
    question = _asked(asked)
    problem = question.problem
    best = solve(problem, tol=_TOL, max_time=SECONDS).certificate.dual
    steps = [epoch * (len(question.y) // question.batch) for epoch in question.epochs]
    off = _measured(question, problem, best)
    regret = regrets(problem, steps, batch=question.batch)
    return {
        "steps": steps,
        "off": off,
        "mean": off.mean(axis=0),
        "bound": [bound(problem, T) / problem.total_cost for T in steps],
        "regret": [each.regret for each in regret],
        "sharp_bound": [each.sharp_bound for each in regret],
        "regret_bound": [each.bound for each in regret],
        "best": best / problem.total_cost,
    }


def script(asked: Asked) -> Answer:
    """A script that measures the same."""
    question = _asked(asked)
    text = (
        '"""Pegasos: the bound of the lecture, the suboptimality and the regret that are measured."""\n\n'
        "import numpy as np\nfrom maxmargin import Problem, solve\n"
        "from maxmargin.core import ALL_CORES\nfrom maxmargin.reproduce.regret import regret\n"
        "from maxmargin.solvers import Pegasos\nfrom maxmargin.solvers.pegasos import bound\n\n"
        f"{points_as_code(question.X, question.y)}"
        f"problem = Problem.of(X, y, C=1 / ({number(question.lambda_)} * len(y)), intercept='none')\n"
        f"best = solve(problem, tol={_TOL:g}).certificate.dual\n"
        f"epochs, T = {question.epochs[-1]}, {question.epochs[-1]} * (len(y) // {question.batch})\n"
        f"off = []\nfor seed in range({question.seeds}):\n"
        f"    solver = Pegasos(batch={question.batch}, seed=seed, polish=0)\n"
        "    state = solver.init(problem, None)\n    for _ in range(epochs):\n"
        "        state = solver.step(problem, state, ALL_CORES)\n"
        "    off.append(problem.primal(solver.solution(problem, state, ALL_CORES).w) - best)\n"
        'print(f"measured = {np.mean(off) / problem.total_cost:.10g}")\n'
        'print(f"bound = {bound(problem, T) / problem.total_cost:.10g}")\n'
        f'print(f"regret = {{regret(problem, T, batch={question.batch}).regret:.10g}}")\n'
    )
    return {"script": text}


BENCH = Bench(
    order=9,
    title="Bounds",
    invitation=(
        "Lower λ and watch both the bound and the run become worse; lengthen the run and see which of "
        "them is the cautious one. The regret is bounded for every single run, whatever is drawn."
    ),
    tour="12_pegasos",
    answers={"show": show, "script": script},
)
