# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation, pair by pair: the box of two multipliers and the line they move on."""

from __future__ import annotations

import numpy as np

from maxmargin.kernels import KernelRows
from maxmargin.lab.asked import Asked
from maxmargin.lab.benches import Answer, Bench
from maxmargin.lab.chosen_kernel import read_one_kernel, seen
from maxmargin.lab.scripts import PROOF, number, points_as_code
from maxmargin.problem import Problem
from maxmargin.proof.certificate import certify
from maxmargin.proof.solution import Solution
from maxmargin.solvers.sequential_minimal_optimization import SequentialMinimalOptimization
from maxmargin.solving.steps import steps_of
from maxmargin.types import Indices, Vector

MOST_POINTS = 100
"""Points of this bench: one that is moved changes the whole run, which is made anew."""
MOST_PAIRS = 400
"""Pairs of a run. With the tolerance below, most runs need fewer."""
_EPSILON = 1e-3
"""How far the KKT conditions may be from holding, as in 004."""
_SOLVERS = {
    "second_order": SequentialMinimalOptimization("second_order", False, _EPSILON, pairs_per_step=1),
    "maximal_violating_pair": SequentialMinimalOptimization(
        "maximal_violating_pair", False, _EPSILON, pairs_per_step=1
    ),
}
"""The solver, one pair a step and nothing shrunk away, by its way to choose the pair."""


def show(asked: Asked) -> Answer:
    """All pairs of a run: which two, where they were and where they went, and between which walls."""
    X, y = asked.points(MOST_POINTS)
    C, selection = asked.number("C", 1e-3, 1e3), asked.choice("selection", _SOLVERS)
    kernel, code, harmonic = read_one_kernel(asked)
    images = seen(X, harmonic)
    problem = Problem.of(KernelRows(images, kernel), y, C)
    K = kernel(images)
    alpha, pairs, finished = np.zeros(len(y)), [], True
    for taken, step in enumerate(steps_of(problem, _SOLVERS[selection])):
        if taken == MOST_PAIRS:
            finished = False
            break
        moved = np.asarray(step.solution.alpha)
        if len(step.rows) == 2:
            pairs.append(_pair(K, y, C, alpha, moved, step.rows) | {"dual": step.dual})
        alpha = moved
    proof = certify(problem, Solution(alpha=alpha))
    return {
        "points": np.column_stack([X, y]),
        "C": C,
        "pairs": pairs,
        "primal": proof.primal,
        "dual": proof.dual,
        "gap": proof.gap,
        "finished": finished,
        "classes": proof.row_classes,
        "code": code,
    }


def _pair(
    K: Vector, y: Vector, C: float, before: Vector, after: Vector, changed: Indices
) -> dict[str, object]:
    """A step on two multipliers as 004 writes it: the first is i, the second j."""
    f = K @ (before * y) - y
    # The solver's i is the row of smaller f: its beta grows.
    i, j = changed if f[changed[0]] <= f[changed[1]] else changed[::-1]
    eta = float(K[i, i] + K[j, j] - 2.0 * K[i, j])
    if y[i] == y[j]:
        L, H = max(0.0, before[i] + before[j] - C), min(C, before[i] + before[j])
    else:
        L, H = max(0.0, before[j] - before[i]), min(C, C + before[j] - before[i])
    return {
        "rows": (i, j),
        "before": before[[i, j]],
        "after": after[[i, j]],
        "L": L,
        "H": H,
        "raw": before[j] + y[j] * (f[i] - f[j]) / eta if eta > 0 else np.inf,
        "slopes": -(y * f)[[i, j]],
        "curvature": (K[i, i], K[j, j], y[i] * y[j] * K[i, j]),
    }


def script(asked: Asked) -> Answer:
    """A script that makes the same run."""
    X, y = asked.points(MOST_POINTS)
    C, selection = asked.number("C", 1e-3, 1e3), asked.choice("selection", _SOLVERS)
    _, code, harmonic = read_one_kernel(asked)
    text = (
        '"""Sequential minimal optimisation, pair by pair."""\n\n'
        "import numpy as np\nfrom maxmargin import Problem, certify\nfrom maxmargin.core import ALL_CORES\n"
        f"from maxmargin.kernels import {code.partition('(')[0]}, KernelRows\n"
        "from maxmargin.solvers.sequential_minimal_optimization import SequentialMinimalOptimization\n\n"
        f"{points_as_code(X, y, harmonic)}problem = Problem.of(KernelRows(X, {code}), y, C={number(C)})\n"
        "solver = SequentialMinimalOptimization(\n"
        f'    selection="{selection}", shrinking=False, epsilon={_EPSILON:g}, pairs_per_step=1\n)\n'
        "state = solver.init(problem, None)\n"
        f"while not state.finished and state.taken < {MOST_PAIRS}:\n"
        "    state = solver.step(problem, state, ALL_CORES)\n"
        "proof = certify(problem, solver.solution(problem, state, ALL_CORES))\n"
        'print(f"pairs = {state.taken}")\n'
        f"{PROOF}"
    )
    return {"script": text}


BENCH = Bench(
    order=5,
    title="SMO",
    invitation=(
        "Step through the pairs: two multipliers move on a line inside their box, to the top of a "
        "parabola or to the wall before it. Compare both ways to choose the pair, and lower C."
    ),
    tour="23_box_and_line",
    answers={"show": show, "script": script},
)
