# SPDX-License-Identifier: BSD-3-Clause
"""Kernels: curved lines between points, the matrix behind them, and whether it is that of a kernel."""

from __future__ import annotations

import numpy as np

from maxmargin.kernels import KernelRows, is_valid
from maxmargin.lab.asked import Asked
from maxmargin.lab.benches import SECONDS, Answer, Bench
from maxmargin.lab.chosen_kernel import read_kernel, seen
from maxmargin.lab.packed import packed
from maxmargin.lab.scripts import VALUES, number, points_as_code
from maxmargin.problem import Problem
from maxmargin.solving.loop import solve

_TOL = 1e-6
"""The relative gap to reach."""
MOST_POINTS = 200
"""Points of this bench."""
_MOST_ROWS = 100
"""Rows of the matrix that is shown and judged: for eigenvalues, time grows with the third power."""
_COLUMNS, _ROWS = 65, 49
"""The grid on which scores are computed, over the plane of the page."""
_FARTHEST_SCORE = 4.0
"""Scores beyond look alike."""
GRID = np.stack(np.meshgrid(np.linspace(-4, 4, _COLUMNS), np.linspace(-3, 3, _ROWS)), axis=-1).reshape(
    -1, 2
)


def show(asked: Asked) -> Answer:
    """Scores over the plane, support vectors, the matrix of the kernel and Mercer's verdict on it."""
    X, y = asked.points(MOST_POINTS)
    C = asked.number("C", 1e-4, 1e4)
    kernel, code, harmonic = read_kernel(asked)
    images = seen(X, harmonic)
    validity = is_valid(kernel, images, _MOST_ROWS)
    rows = KernelRows(images, kernel)
    rows.kernel_is_none = not validity.valid
    proof = solve(Problem.of(rows, y, C), tol=_TOL, max_time=SECONDS).certificate
    carrying = proof.w != 0 if proof.w.any() else np.ones(len(y), bool)  # the others add nothing
    scores = kernel(seen(GRID, harmonic), images[carrying]) @ proof.w[carrying] + proof.b
    chosen = validity.rows
    order = np.lexsort((X[chosen, 0], y[chosen]))  # neighbours in the plane stay near each other
    return {
        "points": np.column_stack([X, y]),
        "primal": proof.primal,
        "dual": proof.dual,
        "gap": proof.gap,
        "proven": proof.proven,
        "b": proof.b,
        "alpha": proof.alpha,
        "classes": proof.row_classes,
        "accuracy": np.mean(proof.margins > 0),
        "scores": packed(np.clip(scores, -_FARTHEST_SCORE, _FARTHEST_SCORE).reshape(_ROWS, _COLUMNS)),
        "matrix": packed(kernel(images[chosen[order]])),
        "negative_share": np.mean(y[chosen] < 0),
        "valid": validity.valid,
        "verdict": str(validity),
        "smallest_eigenvalue": validity.smallest_eigenvalue,
        "witness": validity.vector[order],
        "code": code,
    }


def script(asked: Asked) -> Answer:
    """A script that computes the proof and the smallest eigenvalue."""
    X, y = asked.points(MOST_POINTS)
    C = asked.number("C", 1e-4, 1e4)
    _, code, harmonic = read_kernel(asked)
    names = sorted(
        {
            "KernelRows",
            "is_valid",
            *(part.partition("(")[0] for part in code.replace(" * ", " + ").split(" + ")),
        }
    )
    text = (
        '"""Points of two classes seen through a kernel, with the proof and Mercer\'s verdict."""\n\n'
        "import numpy as np\nfrom maxmargin import Problem, solve\n"
        f"from maxmargin.kernels import {', '.join(names)}\n\n{points_as_code(X, y, harmonic)}"
        f"kernel = {code}\n"
        f"model = solve(Problem.of(KernelRows(X, kernel), y, C={number(C)}), tol={_TOL:g})\n{VALUES}"
        'print(f"accuracy = {np.mean(proof.margins > 0):.10g}")\n'
        f"validity = is_valid(kernel, X, sample={_MOST_ROWS})\n"
        'print(f"smallest eigenvalue = {validity.smallest_eigenvalue:.10g}")\n'
        "print(validity)\n"
    )
    return {"script": text}


BENCH = Bench(
    order=2,
    title="Kernels",
    invitation=(
        "Raise gamma and watch the line bend around single points; try the spiral. Then choose the "
        "sigmoid: an eigenvalue falls below 0, and no proof holds any more."
    ),
    tour="31_kernels",
    answers={"show": show, "script": script},
)
