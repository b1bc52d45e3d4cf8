# SPDX-License-Identifier: BSD-3-Clause
"""Separators: lines that a perceptron finds in other orders of the rows, and the one of largest margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.core import ALL_CORES
from maxmargin.lab.asked import Asked
from maxmargin.lab.benches import SECONDS, Answer, Bench
from maxmargin.lab.scripts import points_as_code
from maxmargin.problem import Problem
from maxmargin.proof.inseparable import InseparableError
from maxmargin.reductions.hard_margin import solve_hard_margin
from maxmargin.solvers.perceptron import Perceptron, mistake_bound
from maxmargin.types import Vector

_TOL = 1e-7
"""The relative gap of the largest margin: below what the page shows of a number."""
_MOST_ORDERS = 40
"""Orders of the rows in which perceptrons run at once: as many lines as an eye can tell apart."""
_MOST_PASSES = 200
"""Passes after which a perceptron is stopped: without a separating line it never ends."""


class Run(NamedTuple):
    """What a perceptron came to in one order."""

    w: Vector
    b: float
    mistakes: int
    passes: int
    finished: bool
    way: Vector
    """(w1, w2, b) after every pass."""


def _run(problem: Problem, seed: int) -> Run:
    solver = Perceptron(seed=seed, polish=0)
    state = solver.init(problem, None)
    way = []
    while not state.finished and state.passes < _MOST_PASSES:
        state = solver.step(problem, state, ALL_CORES)
        way.append([*state.w, state.beta])
    return Run(state.w, state.beta, state.mistakes, state.passes, state.finished, np.array(way))


def _margin(X: Vector, y: Vector, w: Vector, b: float) -> float:
    """The distance of the nearest point to the line; negative where one is on the wrong side."""
    length = float(np.linalg.norm(w))
    return float((y * (X @ w + b)).min() / length) if length else -np.inf


def show(asked: Asked) -> Answer:
    """The lines of some orders, each with its margin and its mistakes, and the line of largest margin."""
    X, y = asked.points()
    orders = asked.whole("orders", 1, _MOST_ORDERS)
    problem = Problem.of(X, y)
    runs = [_run(problem, seed) for seed in range(orders)]
    answer: dict[str, object] = {
        "points": np.column_stack([X, y]),
        "lines": [[*run.w, run.b] for run in runs],
        "margins": [_margin(X, y, run.w, run.b) for run in runs],
        "mistakes": [run.mistakes for run in runs],
        "passes": [run.passes for run in runs],
        "finished": [run.finished for run in runs],
        "ways": [run.way for run in runs],
    }
    try:
        proof = solve_hard_margin(problem, tol=_TOL, max_time=SECONDS).certificate
    except InseparableError as error:
        return answer | {"inseparable": error.certificate.statement}
    return answer | {
        "widest": [*proof.w, proof.b],
        "margin": _margin(X, y, proof.w, proof.b),
        "bound": mistake_bound(problem, 1.0 / float(np.hypot(np.linalg.norm(proof.w), proof.b))),
    }


def script(asked: Asked) -> Answer:
    """A script that computes the margins of all lines."""
    X, y = asked.points()
    orders = asked.whole("orders", 1, _MOST_ORDERS)
    text = (
        '"""The lines of a perceptron in some orders of the rows, and the line of largest margin."""\n\n'
        "import numpy as np\nfrom maxmargin import Problem, solve_hard_margin\n"
        "from maxmargin.core import ALL_CORES\nfrom maxmargin.solvers import Perceptron\n\n"
        f"{points_as_code(X, y)}"
        "problem = Problem.of(X, y)\n\n\n"
        "def margin(w, b):\n"
        "    return (y * (X @ w + b)).min() / np.linalg.norm(w)\n\n\n"
        "margins = []\n"
        f"for seed in range({orders}):\n"
        "    solver = Perceptron(seed=seed, polish=0)\n"
        "    state = solver.init(problem, None)\n"
        f"    while not state.finished and state.passes < {_MOST_PASSES}:\n"
        "        state = solver.step(problem, state, ALL_CORES)\n"
        "    margins.append(margin(state.w, state.beta))\n"
        'print(f"best = {max(margins):.10g}")\nprint(f"worst = {min(margins):.10g}")\n'
        "# Raises InseparableError where no line separates them.\n"
        f"widest = solve_hard_margin(problem, tol={_TOL:g})\n"
        'print(f"margin = {margin(widest.w, widest.b):.10g}")\n'
    )
    return {"script": text}


BENCH = Bench(
    order=7,
    title="Separators",
    invitation=(
        "Every thin line separates the classes: the perceptron takes the first that it meets, another "
        "order of the points gives another one. Move the classes closer and count its corrections."
    ),
    tour="02_separators",
    answers={"show": show, "script": script},
)
