# SPDX-License-Identifier: BSD-3-Clause
"""002: the bound of Pegasos, 2 X^2 ln(T + 1) / (lambda T), against what is measured over T and lambda."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.plot.styles import line, tidy
from maxmargin.problem import Problem
from maxmargin.problem.scalings import C_from_half_lambda
from maxmargin.reproduce.base import Cell, Part, Result, Settings, Table, new_figure
from maxmargin.reproduce.examples import breast_cancer
from maxmargin.reproduce.runs import best_value, states
from maxmargin.solvers import Pegasos
from maxmargin.solvers.pegasos import bound

_LAMBDAS = (1e-1, 1e-2, 1e-3)
_HEADINGS = ("lambda", "T", "bound", "mean", "largest", "bound / mean")


def _run(settings: Settings) -> Result:
    X, y = breast_cancer()
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    seeds = range(settings.of(20, 5))
    epochs = [2**k for k in range(settings.of(10, 6))]
    figure, axes = new_figure(1, 1, width=6.4, height=4.4)
    rows: list[tuple[Cell, ...]] = []
    for k, lambda_ in enumerate(_LAMBDAS):
        settings.tell(f"lambda = {lambda_:g}, {len(seeds)} seeds")
        problem = Problem.of(X, y, C_from_half_lambda(lambda_, len(y)), intercept="none")
        off = _measured(problem, seeds, epochs)
        T = len(y) * np.array(epochs)
        bounds = np.array([bound(problem, int(t)) / problem.total_cost for t in T])
        mean, largest = off.mean(axis=0), off.max(axis=0)
        rows += list(
            zip(
                [lambda_] * len(T),
                T.tolist(),
                *map(_list, (bounds, mean, largest, bounds / mean)),
                strict=True,
            )
        )
        _draw(axes[0, 0], k, lambda_, T, bounds, mean)
    ax = axes[0, 0]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("steps T")
    ax.set_ylabel("F(mean of the iterates) - F*")
    tidy(ax)
    ax.legend(fontsize=7, loc="lower left", ncols=2)
    about = (
        f"Breast cancer data of scikit-learn, {len(y)} rows of unit length, so X = 1; no intercept; "
        f"uniform draws, mean of all iterates, {len(seeds)} seeds. F is the lecture's objective, "
        "lambda / 2 |w|^2 + (1 / n) sum hinge. The bound is on the expectation; its published form is "
        "F* + 2 X^2 ln(T + 1) / (lambda T)."
    )
    formats = {"bound": ".3g", "mean": ".3g", "largest": ".3g", "bound / mean": ".3g"}
    table = Table("Bound and measured suboptimality", _HEADINGS, rows, formats)
    return Result(about, [table], _findings(rows), figure)


def _list(values: Any) -> list[float]:
    return [float(value) for value in values]


def _measured(problem: Problem, seeds: range, epochs: list[int]) -> Any:
    """F(mean) - F*: a line for each seed, a column for each number of epochs."""
    best = best_value(problem)
    off = np.empty((len(seeds), len(epochs)))
    for line_of_seed, seed in zip(off, seeds, strict=True):
        solver = Pegasos(average="all", order="uniform", project=False, polish=0.0, seed=seed)
        for epoch, (state, _) in enumerate(states(problem, solver, steps=epochs[-1]), start=1):
            if epoch in epochs:
                iterate = state.iterate
                w = (iterate.mass * state.v - state.u) / iterate.counted
                line_of_seed[epochs.index(epoch)] = (problem.primal(w) - best) / problem.total_cost
    return off


def _draw(ax: Any, k: int, lambda_: float, T: Any, bounds: Any, mean: Any) -> None:
    style = line(k)
    ax.plot(T, mean, label=f"measured, lambda = {lambda_:g}", **(style | {"linestyle": "-"}))
    ax.plot(T, bounds, label=f"bound, lambda = {lambda_:g}", **(style | {"linestyle": "--"}))


def _findings(rows: list[tuple[Cell, ...]]) -> list[str]:
    ratios = np.array([float(row[5] or 0.0) for row in rows])
    above = sum(float(row[4] or 0.0) > float(row[2] or 0.0) for row in rows)
    return [
        f"The bound holds everywhere: it is between {ratios.min():.0f} and {ratios.max():.0f} times the "
        "mean."
        if ratios.min() >= 1
        else "The mean exceeds the bound somewhere: see the last column.",
        f"Of single runs, {above} of {len(rows)} cells have one above the bound, which speaks of the mean "
        "only.",
        "Both fall nearly as 1 / T: the bound has the right slope and a constant that is too large.",
    ]


PART = Part("Pegasos' bound against what is measured (002)", _run)
