# SPDX-License-Identifier: BSD-3-Clause
"""The margin: points in the plane, the line between them, and what every point is to it."""

from __future__ import annotations

import math

import numpy as np

from maxmargin.lab.asked import Asked
from maxmargin.lab.benches import SECONDS, Answer, Bench
from maxmargin.lab.scripts import VALUES, number, points_as_code
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.losses import LOSSES
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.inseparable import InseparableError
from maxmargin.reductions.hard_margin import solve_hard_margin
from maxmargin.solving.loop import solve
from maxmargin.types import Vector

_TOL, _HARD_TOL = 1e-9, 1e-7
"""Relative gaps to reach, for the soft and the hard margin: below what the page shows of a number."""
_LEAST_C, _LARGEST_C = 1e-4, 1e4
"""What C may be on the page: the bench's slider has these ends, and infinity beyond."""


def _asked(asked: Asked) -> tuple[Vector, Vector, float, str, str]:
    """X, y, C, loss and intercept."""
    X, y = asked.points()
    C = asked.number("C", _LEAST_C, _LARGEST_C, or_infinite=True)
    return X, y, C, asked.choice("loss", LOSSES), asked.choice("intercept", list(Intercept))


def show(asked: Asked) -> Answer:
    """The line with its proof, and what every point is to it; on request the hulls of the classes."""
    X, y, C, loss, intercept = _asked(asked)
    with_hulls = asked.flag("hulls")
    points = np.column_stack([X, y])
    soft = Problem.of(X, y, C if math.isfinite(C) else 1.0, loss=loss, intercept=intercept)
    answer: dict[str, object] = {"points": points}
    try:
        model = (
            solve(soft, tol=_TOL, max_time=SECONDS)
            if math.isfinite(C)
            else solve_hard_margin(soft, tol=_HARD_TOL, max_time=SECONDS)
        )
        answer |= _line(model.certificate) | {"cap": soft.upper.max() if math.isfinite(C) else math.inf}
    except InseparableError as error:
        answer |= {"inseparable": error.certificate.statement}
    if with_hulls and len(set(y)) == 2:
        answer["hulls"] = _hulls(X, y)
    return answer


def _line(proof: Certificate) -> dict[str, object]:
    """The numbers of a proof."""
    return {
        "w": proof.w,
        "b": proof.b,
        "b_interval": proof.b_interval,
        "primal": proof.primal,
        "dual": proof.dual,
        "gap": proof.gap,
        "relative_gap": proof.relative_gap,
        "alpha": proof.alpha,
        "margins": proof.margins,
        "classes": proof.row_classes,
    }


def _hulls(X: Vector, y: Vector) -> dict[str, object]:
    """The convex hulls, and their nearest points or a point that both have."""
    try:
        weights = solve_hard_margin(Problem.of(X, y), tol=_HARD_TOL, max_time=SECONDS).alpha
        meet = False
    except InseparableError as error:
        weights, meet = error.certificate.weights, True
    nearest = [_mean(X[y == label], weights[y == label]) for label in (1.0, -1.0)]
    return {
        "positive": outline(X[y > 0]),
        "negative": outline(X[y < 0]),
        "nearest": nearest,
        "meet": meet,
        "distance": np.linalg.norm(nearest[0] - nearest[1]),
    }


def _mean(X: Vector, weights: Vector) -> Vector:
    """The point that the weights make of the rows."""
    return np.asarray(weights @ X / weights.sum())


def outline(X: Vector) -> Vector:
    """The corners of the convex hull of points in the plane, once around."""
    ordered = np.unique(X, axis=0)

    def half(points: Vector) -> list[Vector]:
        corners: list[Vector] = []
        for point in points:
            while len(corners) > 1 and _turn(corners[-2], corners[-1], point) <= 0.0:
                corners.pop()
            corners.append(point)
        return corners[:-1]

    return np.array([*half(ordered), *half(ordered[::-1])]) if len(ordered) > 1 else ordered


def _turn(start: Vector, corner: Vector, end: Vector) -> float:
    """Positive where the way from start over the corner to the end turns left."""
    there, on = corner - start, end - corner
    return float(there[0] * on[1] - there[1] * on[0])


def script(asked: Asked) -> Answer:
    """A script that computes the line and its proof."""
    X, y, C, loss, intercept = _asked(asked)
    asked.flag("hulls")
    hard = not math.isfinite(C)
    solver, cost = ("solve_hard_margin", "") if hard else ("solve", f"C={number(C)}, loss={loss!r}, ")
    text = (
        '"""The line of the largest margin between points in the plane, with its proof."""\n\n'
        f"import numpy as np\nfrom maxmargin import Problem, {solver}\n\n{points_as_code(X, y)}"
        f"problem = Problem.of(X, y, {cost}intercept={intercept!r})\n"
        f"model = {solver}(problem, tol={_HARD_TOL if hard else _TOL:g})\n{VALUES}"
        'print(f"w = {proof.w[0]:.10g}, {proof.w[1]:.10g}")\n'
        'print(f"width = {2 / np.linalg.norm(proof.w):.10g}")\n'
    )
    return {"script": text}


BENCH = Bench(
    order=1,
    title="Margin",
    invitation=(
        "Drag a point across the line and watch who holds it. Then slide C up to the hard margin: "
        "one outlier takes over. C caps what a single point may weigh."
    ),
    tour="04_margins",
    answers={"show": show, "script": script},
)
