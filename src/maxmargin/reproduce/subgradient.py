# SPDX-License-Identifier: BSD-3-Clause
"""000: subgradient steps are not descents; stochastic against full steps; step-size rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.plot.styles import legend_below, line, tidy
from maxmargin.problem import Problem
from maxmargin.reproduce.base import Cell, Part, Result, Settings, Table, new_figure
from maxmargin.reproduce.examples import breast_cancer
from maxmargin.reproduce.runs import states
from maxmargin.solvers import AnySolver, StochasticSubgradient, Subgradient
from maxmargin.solving.loop import solve
from maxmargin.types import Vector

_FULL: dict[str, AnySolver] = {
    "constant 0.01": Subgradient(step_size="constant", eta=0.01, polish=0.0),
    "constant 0.3": Subgradient(step_size="constant", eta=0.3, polish=0.0),
    "10 / (t + 10)": Subgradient(step_size="decreasing", eta=10.0, t0=10.0, polish=0.0),
    "1 / (lambda t)": Subgradient(step_size="lambda", polish=0.0),
}
_STOCHASTIC: dict[str, AnySolver] = {
    "full steps": Subgradient(step_size="decreasing", eta=10.0, t0=10.0, polish=0.0),
    "stochastic, last iterate": StochasticSubgradient(average="last", polish=0.0),
    "stochastic, averaged": StochasticSubgradient(average="suffix", polish=0.0),
}
_SHOWN = "1 / (lambda t)"
"""The rule whose steps are shown one by one."""


def _run(settings: Settings) -> Result:
    X, y = breast_cancer()
    problem = Problem.of(X, y, 0.05, intercept="none")
    best = solve(problem, tol=1e-12, max_steps=10_000)
    steps = settings.of(1000, 200)
    figure, axes = new_figure(1, 3, width=4.4, height=3.6)
    rows: list[tuple[Cell, ...]] = []
    for k, (name, solver) in enumerate(_FULL.items()):
        settings.tell(f"full steps, {name}")
        values, distances = _follow(problem, solver, steps, best.w)
        off = (values - best.certificate.primal) / best.certificate.primal
        rose = np.diff(values) > 0
        closer = np.diff(distances) < 0
        rows.append((name, 100 * rose.mean(), _share(closer[rose]), float(off.min()), float(off[-1])))
        axes[0, 0].plot(np.arange(1, steps + 1), np.minimum.accumulate(off), label=name, **_thin(k, steps))
        if name == _SHOWN:
            _draw_not_descents(axes[0, 1], off, distances)
    _draw_stochastic(settings, axes[0, 2], problem, best)
    axes[0, 0].set_title("best so far, by step size", fontsize=9)
    axes[0, 0].set_xlabel("full steps t")
    axes[0, 0].set_ylabel("relative suboptimality")
    for ax in axes[0]:
        ax.set_yscale("log")
        tidy(ax)
        legend_below(ax)
    headings = ("step size", "steps that raise F, %", "of these, closer to w*, %", "best", "last")
    formats = {headings[1]: ".1f", headings[2]: ".1f", "best": ".1e", "last": ".1e"}
    about = (
        f"Breast cancer data of scikit-learn, hinge, C = 0.05, no intercept, {steps} full steps each. F is "
        "the objective; relative suboptimality is (F - F*) / F*. The lecture has no numbers: it says that "
        "a step may raise F and still come closer to the optimum, that constant steps get only close, and "
        "that falling ones converge."
    )
    table = Table("Full subgradient steps", headings, rows, formats)
    return Result(about, [table], _findings(rows), figure)


def _follow(problem: Problem, solver: AnySolver, steps: int, target: Vector) -> tuple[Vector, Vector]:
    """F and the distance to w* of every iterate, not only of the best."""
    points = [state.point.w for state, _ in states(problem, solver, steps=steps)]
    return (
        np.array([problem.primal(w) for w in points]),
        np.array([np.linalg.norm(w - target) for w in points]),
    )


def _share(closer: Any) -> float | None:
    return float(100 * closer.mean()) if len(closer) else None


def _thin(k: int, steps: int) -> dict[str, Any]:
    return line(k) | {"markevery": max(1, steps // 8), "markersize": 4}


def _draw_not_descents(ax: Any, off: Vector, distances: Vector) -> None:
    shown = slice(100, 160)
    t = np.arange(1, len(off) + 1)[shown]
    ax.plot(t, off[shown] / off[shown][0], label="(F - F*) / F*", **_thin(0, 60))
    ax.plot(t, distances[shown] / distances[shown][0], label="distance |w - w*|", **_thin(1, 60))
    ax.set_title(f"{_SHOWN}: steps are not descents", fontsize=9)
    ax.set_xlabel("full steps t")
    ax.set_ylabel(f"relative to step {shown.start + 1}")


def _draw_stochastic(settings: Settings, ax: Any, problem: Problem, best: Any) -> None:
    passes = settings.of(100, 30)
    for k, (name, solver) in enumerate(_STOCHASTIC.items()):
        settings.tell(name)
        lowest = best.certificate.primal
        off = []
        for state, _ in states(problem, solver, steps=passes):
            w = state.point.w if isinstance(solver, Subgradient) else _mean_or_last(solver, state)
            off.append((problem.primal(w) - lowest) / lowest)
        ax.plot(np.arange(1, passes + 1), off, label=name, **_thin(k, passes))
    ax.set_title("stochastic against full", fontsize=9)
    ax.set_xlabel("passes over the data")
    ax.set_ylabel("relative suboptimality")


def _mean_or_last(solver: Any, state: Any) -> Vector:
    iterate = state.iterate
    if solver.average == "last":
        return np.asarray(iterate.scale * state.v)
    return np.asarray((iterate.mass * state.v - state.u) / iterate.counted)


def _findings(rows: list[tuple[Cell, ...]]) -> list[str]:
    shown, constant = (next(row for row in rows if row[0] == name) for name in (_SHOWN, "constant 0.3"))
    best = min(rows, key=lambda row: float(row[3] or 0.0))
    return [
        f"With {_SHOWN}, {float(shown[1] or 0.0):.0f} % of the steps raise F: they are not descents. Of "
        f"these steps, {float(shown[2] or 0.0):.0f} % come closer to w* all the same.",
        f"The lowest value, {float(best[3] or 0.0):.1e}, is reached with {best[0]}. The constant step 0.3 "
        f"ends at {float(constant[4] or 0.0):.1e}, its best is {float(constant[3] or 0.0):.1e}.",
    ]


PART = Part("Subgradient steps are not descents", _run, lectures=("000",))
