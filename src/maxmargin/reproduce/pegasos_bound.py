# SPDX-License-Identifier: BSD-3-Clause
"""002: the bound of Pegasos, 2 X^2 ln(T + 1) / (lambda T), against what is measured over T and lambda.

And the regret behind it, which is bounded for every realisation of the draws and for every loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.plot.styles import legend_below, line, tidy
from maxmargin.problem import Problem
from maxmargin.problem.scalings import C_from_half_lambda
from maxmargin.reproduce.base import Cell, Part, Result, Settings, Table, new_figure
from maxmargin.reproduce.examples import breast_cancer
from maxmargin.reproduce.regret import Regret, regrets
from maxmargin.reproduce.runs import best_value, states
from maxmargin.solvers import Pegasos
from maxmargin.solvers.pegasos import bound

_LAMBDAS = (1e-1, 1e-2, 1e-3)
"""Those at which the bound is held against runs: from a tight one to one that promises little."""
_LOSSES = ("hinge", "logistic", "squared_hinge")
_HEADINGS = ("lambda", "T", "bound", "mean", "largest", "bound / mean")
_REGRET_HEADINGS = (
    "loss",
    "lambda",
    "T",
    "largest regret",
    "largest bound",
    "largest regret / bound",
    "largest G",
    "G allowed",
)
_REGRET_FORMATS = dict.fromkeys(_REGRET_HEADINGS[3:], ".3g")


def _run(settings: Settings) -> Result:
    X, y = breast_cancer()
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    seeds = range(settings.of(20, 5))
    epochs = [2**k for k in range(settings.of(10, 6))]
    figure, axes = new_figure(1, 2, width=5.6, height=4.4)
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
        words = f"measured, lambda = {lambda_:g}", f"bound, lambda = {lambda_:g}"
        _draw(axes[0, 0], k, *words, T, bounds, mean)
    regret_rows = _regrets(settings, X, y, seeds, axes[0, 1])
    for ax, meaning in zip(axes[0], ("F(mean of the iterates) - F*", "regret, lambda = 0.1"), strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("steps T")
        ax.set_ylabel(meaning)
        tidy(ax)
        legend_below(ax)
    about = (
        f"Breast cancer data of scikit-learn, {len(y)} rows of unit length, so X = 1; no intercept; "
        f"uniform draws, mean of all iterates, {len(seeds)} seeds. F is the lecture's objective, "
        "lambda / 2 |w|^2 + (1 / n) sum hinge. The bound is on the expectation; its published form is "
        "F* + 2 X^2 ln(T + 1) / (lambda T). The regret, sum_t f_t(w_t) - min_w sum_t f_t(w), of the losses "
        "f_t that the steps met, is bounded for every single run: by G^2 / (2 lambda) (1 + ln T), G the "
        "longest subgradient met, and G <= 2 X. The minimum is that of a certified fit. The squared hinge, "
        "whose slope has no bound of its own, is kept in the ball |w| <= sqrt(2 / lambda)."
    )
    formats = {"bound": ".3g", "mean": ".3g", "largest": ".3g", "bound / mean": ".3g"}
    table = Table("Bound and measured suboptimality", _HEADINGS, rows, formats)
    of_regret = Table("Regret of every run, and its bound", _REGRET_HEADINGS, regret_rows, _REGRET_FORMATS)
    return Result(about, [table, of_regret], [*_findings(rows), *_regret_findings(regret_rows)], figure)


def _regrets(settings: Settings, X: Any, y: Any, seeds: range, ax: Any) -> list[tuple[Cell, ...]]:
    """The table's rows; one value of lambda is drawn."""
    horizons = settings.of([1, 10, 100, 1_000, 10_000], [1, 10, 100])
    rows: list[tuple[Cell, ...]] = []
    for k, loss in enumerate(_LOSSES):
        for lambda_ in _LAMBDAS:
            settings.tell(f"regret, {loss}, lambda = {lambda_:g}, {len(seeds)} seeds")
            problem = Problem.of(X, y, C_from_half_lambda(lambda_, len(y)), loss=loss, intercept="none")
            project = loss == "squared_hinge"
            runs = [regrets(problem, horizons, seed=seed, project=project) for seed in seeds]
            at_horizons = list(zip(*runs, strict=True))
            rows += [(loss.replace("_", " "), lambda_, *_extremes(found)) for found in at_horizons]
            if lambda_ == _LAMBDAS[0]:
                largest = [max(each.regret for each in found) for found in at_horizons]
                bounds = [max(each.bound for each in found) for found in at_horizons]
                words = loss.replace("_", " ")
                _draw(ax, k, f"largest, {words}", f"bound, {words}", horizons, bounds, largest)
    return rows


def _extremes(found: tuple[Regret, ...]) -> tuple[Cell, ...]:
    """Over the runs: T, the largest regret, the largest share of its bound, the longest subgradient."""
    return (
        found[0].T,
        max(each.regret for each in found),
        max(each.bound for each in found),
        max(each.regret / each.bound for each in found),
        max(each.G for each in found),
        found[0].allowed_G,
    )


def _regret_findings(rows: list[tuple[Cell, ...]]) -> list[str]:
    shares = np.array([float(row[5] or 0.0) for row in rows])
    lengths = np.array([[float(row[6] or 0.0), float(row[7] or 0.0)] for row in rows])
    return [
        f"No run's regret exceeds its bound; the largest reaches {100 * shares.max():.0f} % of it."
        if shares.max() <= 1.0
        else "A regret exceeds its bound: see the table.",
        f"The longest subgradient met is between {(lengths[:, 0] / lengths[:, 1]).min():.2g} and "
        f"{(lengths[:, 0] / lengths[:, 1]).max():.2g} times what theory allows.",
    ]


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


def _draw(ax: Any, k: int, measured: str, bound: str, T: Any, bounds: Any, values: Any) -> None:
    style = line(k)
    ax.plot(T, values, label=measured, **(style | {"linestyle": "-"}))
    ax.plot(T, bounds, label=bound, **(style | {"linestyle": "--"}))


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


PART = Part("Pegasos' bound against what is measured", _run, lectures=("002",))
