# SPDX-License-Identifier: BSD-3-Clause
"""Optimisers: the iterates of the course's methods on the level lines of the objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.lab.asked import Asked
from maxmargin.lab.benches import SECONDS, Answer, Bench
from maxmargin.lab.scripts import number, points_as_code
from maxmargin.problem import Problem
from maxmargin.solvers import (
    DualCoordinateAscent,
    Newton,
    Pegasos,
    Perceptron,
    StochasticSubgradient,
    Subgradient,
)
from maxmargin.solvers.base import AnySolver
from maxmargin.solving.loop import solve
from maxmargin.solving.steps import steps_of
from maxmargin.types import Vector

MOST_POINTS = 100
"""Points of a page: all steps of a run then fit into one answer."""
STEPS = 200
"""Steps of a run: what a player shows in some seconds."""
_TOL = 1e-10
"""The relative gap of the optimum that iterates are held against."""
_GRID = 49
"""Values of the objective along a side of the plane."""
RULES = ("constant", "decreasing", "lambda")
_FEW_STEPS = ("perceptron", "dual_ascent", "newton")
"""Methods whose steps need no size."""
_OPTIONS = ("step_size", "eta", "t0", "batch", "order", "intercept_step_size", "sweeps", "seed")
"""The options of solvers that a script tells."""
METHODS = ("subgradient", "stochastic", "pegasos", *_FEW_STEPS)


class _Question(NamedTuple):
    X: Vector
    y: Vector
    method: str
    C: float
    intercept: str
    rule: str
    eta: float
    t0: float
    batch: int
    pace: float
    average: str
    T_0: int
    seed: int

    @property
    def problem(self) -> Problem:
        """The objective: squared hinge for Newton's method, which needs a curvature, else the hinge."""
        loss = "squared_hinge" if self.method == "newton" else "hinge"
        return Problem.of(self.X, self.y, self.C, loss=loss, intercept=self.intercept)

    @property
    def rows_of_a_step(self) -> int:
        return min(self.batch, len(self.y))

    @property
    def solver(self) -> Any:
        """The method, as it was configured."""
        own: dict[str, Any] = {"intercept_step_size": self.pace, "polish": 0}
        sizes: dict[str, Any] = {"step_size": self.rule, "eta": self.eta, "t0": self.t0}
        if self.method == "stochastic" and self.rule == "lambda":
            sizes["step_size"] = "pegasos"
        drawn: dict[str, Any] = {"batch": self.rows_of_a_step, "average": "last", "seed": self.seed}
        solvers: dict[str, Callable[[], AnySolver]] = {
            "subgradient": lambda: Subgradient(**sizes, **own),
            "stochastic": lambda: StochasticSubgradient(order="uniform", **drawn, **sizes, **own),
            "pegasos": lambda: Pegasos(**drawn, **own),
            "perceptron": lambda: Perceptron(seed=self.seed, polish=0),
            "dual_ascent": lambda: DualCoordinateAscent(seed=self.seed),
            "newton": lambda: Newton(sweeps=0),
        }
        return solvers[self.method]()


def _asked(asked: Asked) -> _Question:
    X, y = asked.points(MOST_POINTS)
    return _Question(
        X,
        y,
        asked.choice("method", METHODS),
        asked.number("C", 1e-3, 1e2),
        asked.choice("intercept", ("none", "exact")),
        asked.choice("rule", RULES),
        asked.number("eta", 1e-4, 1e3),
        asked.number("t0", 0.0, 1000.0),
        asked.whole("batch", 1, MOST_POINTS),
        asked.number("pace", 0.01, 100.0),
        asked.choice("average", ("last", "all", "T_0")),
        asked.whole("T_0", 1, STEPS),
        asked.whole("seed", 0, 1000),
    )


def _iterates(question: _Question, problem: Problem) -> Vector:
    """(w1, w2, b) before the first step and after every one, until nothing changes any more."""
    found = [[0.0, 0.0, 0.0]]
    for step in steps_of(problem, question.solver):
        w, b = step.point
        point = [*w, b]
        if len(found) > STEPS or not np.isfinite(point).all() or np.abs(point).max() > 1e6:
            break
        if question.method in _FEW_STEPS and np.allclose(point, found[-1], rtol=0.0, atol=1e-9):
            break
        found.append(point)
    return np.array(found)


def _answers(question: _Question, points: Vector) -> Vector:
    """What is answered after every step: the iterate, or the mean of those since T_0."""
    if question.average == "last" or question.method in _FEW_STEPS:
        return points
    first = 1 if question.average == "all" else question.T_0
    means = points.copy()
    if len(points) > first:
        counts = np.arange(1, len(points) - first + 1)
        means[first:] = np.cumsum(points[first:], axis=0) / counts[:, None]
    return means


def _values(problem: Problem, points: Vector) -> Vector:
    return np.array([problem.primal(point[:2].copy(), float(point[2])) for point in points])


def _half(best: Vector, points: Vector, radius: float | None) -> float:
    """Half a side of the plane: it holds the optimum, the ball, and a run that goes not too far."""
    size = max(float(np.abs(best).max()), 0.05)
    reached = 1.1 * float(np.abs(points[:, :2]).max())
    return max(min(max(reached, 1.6 * size), 4.0 * size), 1.1 * (radius or 0.0))


def show(asked: Asked) -> Answer:
    """All iterates with their values, the optimum with its proof, and the objective on a grid."""
    question = _asked(asked)
    problem = question.problem
    best = solve(problem, tol=_TOL, max_time=SECONDS).certificate
    points = _iterates(question, problem)
    answers = _answers(question, points)
    radius = float(np.sqrt(problem.total_cost)) if question.method == "pegasos" else None
    half = _half(best.w, points, radius)
    side = np.linspace(-half, half, _GRID)
    plane = np.array([[w1, w2, best.b] for w2 in side for w1 in side])
    return {
        "points": np.column_stack([question.X, question.y]),
        "iterates": points,
        "answers": answers,
        "values": _values(problem, points),
        "answer_values": _values(problem, answers),
        "best": [*best.w, best.b],
        "primal": best.primal,
        "dual": best.dual,
        "half": half,
        "grid": _values(problem, plane).reshape(_GRID, _GRID),
        "radius": radius,
    }


def script(asked: Asked) -> Answer:
    """A script that runs the method as the library does it, with its proof."""
    question = _asked(asked)
    solver = question.solver
    given = {
        name: getattr(solver, name)
        for name in (
            "step_size",
            "eta",
            "t0",
            "batch",
            "order",
            "average",
            "intercept_step_size",
            "sweeps",
            "seed",
        )
        if hasattr(solver, name) and getattr(solver, name) != getattr(type(solver)(), name)
    }
    options = ", ".join(f"{name}={value!r}" for name, value in given.items())
    problem = question.problem
    text = (
        '"""A method of the course on points in the plane, held against the optimum."""\n\n'
        "import numpy as np\nfrom maxmargin import Problem, solve\n"
        f"from maxmargin.solvers import {type(solver).__name__}\n\n{points_as_code(question.X, question.y)}"
        f"problem = Problem.of(X, y, C={number(question.C)}, loss={problem.loss.name!r}, "
        f"intercept={question.intercept!r})\n"
        f"best = solve(problem, tol={_TOL:g}).certificate\n"
        'print(f"best = {best.primal:.10g}")\n'
        f"run = solve(problem, {type(solver).__name__}({options}), tol=1e-3, max_steps=200)\n"
        'print(f"after {run.steps} steps or epochs, relative gap {run.certificate.relative_gap:.2e}")\n'
    )
    return {"script": text}


BENCH = Bench(
    order=4,
    title="Optimisers",
    invitation=(
        "Play a run and watch it find the diamond on the level lines. Change the step rule and η until it "
        "swings, creeps or arrives; then take the mean of the iterates, or another method."
    ),
    tour="09_steps",
    answers={"show": show, "script": script},
)
