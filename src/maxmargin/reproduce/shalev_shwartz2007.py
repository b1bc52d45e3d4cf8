# SPDX-License-Identifier: BSD-3-Clause
"""001, figures (Shalev-Shwartz, Singer, Srebro 2007): the subsample size k, and the step size of Pegasos.

An epoch has n / k steps on k rows each, so a fixed number of epochs is a fixed budget k T. The other figure
on k has a fixed number of steps T, so that larger k see more rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import core
from maxmargin.plot.styles import legend_below, line, tidy
from maxmargin.problem import Problem
from maxmargin.problem.scalings import C_from_half_lambda
from maxmargin.reproduce.base import Cell, Part, Result, Settings, Table, new_figure
from maxmargin.reproduce.runs import best_value, states
from maxmargin.solvers import AnySolver, Pegasos, StochasticSubgradient
from maxmargin.solvers.stochastic_subgradient import StepRule, init_state, take_steps

_DATA = "reuters_moneyfx"
_LAMBDA = 1e-4
"""The lambda of the published figures."""
_EPOCHS = (1, 4, 16)
_MORE_EPOCHS = (1, 2, 4, 8, 16)
"""Passes over the data after which a table, and a figure, looks at the objective."""
_STEPS = (250, 1_000, 4_000)
"""The fixed numbers of steps T."""
_SIZES = (1, 4, 16, 64, 256, 1024, 4096)
"""Rows per step, k."""
_LARGEST_AT_FIXED_T = 1024
"""Rows per step at a fixed T, which cost T times as many visits."""


def _run(settings: Settings) -> Result:
    data = settings.load(_DATA)
    n = len(data.y)
    problem = Problem.of(data.X, data.y, C_from_half_lambda(_LAMBDA, n), intercept="none")
    best = best_value(problem, seconds=settings.of(60.0, 5.0))
    seeds = range(settings.of(5, 2))
    sizes = [k for k in _SIZES if k <= n]
    figure, axes = new_figure(1, 3, width=4.6)
    by_size = [_means(settings, problem, best, _pegasos(k), seeds) for k in sizes]
    for k, epochs in enumerate(_EPOCHS):
        heights = [values[epochs] for values in by_size]
        axes[0, 0].plot(sizes, heights, label=f"k T = {epochs} n", **line(k))
    first = _size_table(sizes, by_size)
    smaller = [k for k in sizes if k <= _LARGEST_AT_FIXED_T]
    at_fixed_T = [_at_fixed_T(settings, problem, best, k, seeds) for k in smaller]
    for k, T in enumerate(_STEPS):
        axes[0, 1].plot(smaller, [values[T] for values in at_fixed_T], label=f"T = {T:,}", **line(k))
    for ax in axes[0, :2]:
        ax.set_xscale("log", base=2)
        ax.set_xlabel("rows per step, k")
    rules = _rules()
    by_rule = {name: _means(settings, problem, best, solver, seeds) for name, solver in rules.items()}
    for k, (name, values) in enumerate(by_rule.items()):
        axes[0, 2].plot(list(values), list(values.values()), label=name, **line(k))
    axes[0, 2].set_xscale("log", base=2)
    axes[0, 2].set_xlabel("passes over the data, T / n")
    for ax in axes[0]:
        ax.set_yscale("log")
        ax.set_ylabel("relative suboptimality of the last iterate")
        tidy(ax)
        legend_below(ax)
    about = (
        f"{_DATA} ({data.size}; the paper's astro-ph is not available), lambda = {_LAMBDA:g}, no "
        f"intercept, the mean of {len(seeds)} seeds. Relative suboptimality (P - P*) / P* of the last "
        "iterate. The paper has curves without numbers: they show that what counts is k T, up to some k, "
        "that at a fixed T larger k are better, and that 1 / (lambda t) needs no tuning and is the fastest."
    )
    tables = [first, _fixed_T_table(smaller, at_fixed_T), _rule_table(by_rule)]
    findings = _findings(sizes, by_size, by_rule)
    findings.insert(1, _fixed_T_finding(smaller, at_fixed_T))
    return Result(about, tables, findings, figure)


def _pegasos(k: int) -> AnySolver:
    return Pegasos(batch=k, average="last", polish=0.0)


def _rules() -> dict[str, AnySolver]:
    """Pegasos' step size, and the alternatives each at several scales."""
    options: Any = {"order": "uniform", "average": "last", "polish": 0.0}
    rules: dict[str, AnySolver] = {"1 / (lambda t)": _pegasos(1)}
    for eta in (1.0, 10.0, 100.0):
        rules[f"{eta:g} / sqrt(t)"] = StochasticSubgradient(step_size=_square_root(eta), **options)
    for eta in (0.1, 1.0):
        rules[f"constant {eta:g}"] = StochasticSubgradient(step_size="constant", eta=eta, **options)
    return rules


def _square_root(eta: float) -> Callable[[int], float]:
    """The steps of Norma, which the paper compares with."""
    return lambda t: eta / math.sqrt(t)


def _means(
    settings: Settings, problem: Problem, best: float, solver: AnySolver, seeds: range
) -> dict[int, float]:
    """The relative suboptimality after each number of epochs, mean over the seeds."""
    settings.tell(f"{solver.name}, {len(seeds)} seeds")
    sums = dict.fromkeys(_MORE_EPOCHS, 0.0)
    for seed in seeds:
        for epoch, (state, _) in enumerate(
            states(problem, solver.with_seed(seed), steps=max(_EPOCHS)), start=1
        ):
            if epoch in sums:
                w = state.iterate.scale * state.v
                sums[epoch] += (problem.primal(w) - best) / best / len(seeds)
    return sums


def _at_fixed_T(
    settings: Settings, problem: Problem, best: float, k: int, seeds: range
) -> dict[int, float]:
    """The relative suboptimality of Pegasos after each number of steps on k rows, mean over the seeds."""
    settings.tell(f"k = {k}, {_STEPS[-1]} steps, {len(seeds)} seeds")
    rule = StepRule(k, "uniform", "last", math.sqrt(problem.total_cost), 1.0)
    sums = dict.fromkeys(_STEPS, 0.0)
    for seed in seeds:
        state = init_state(problem, None, False, 0.0, seed, core.RecentSteps(0, 0.0))
        for T in _STEPS:
            sizes = problem.total_cost / np.arange(state.t + 1.0, T + 1.0)
            take_steps(problem, state, rule, sizes, core.Budget(math.inf, 1))
            w = state.iterate.scale * state.v
            sums[T] += (problem.primal(w) - best) / best / len(seeds)
    return sums


def _fixed_T_table(sizes: list[int], by_size: list[dict[int, float]]) -> Table:
    headings = ("rows per step, k", *(f"T = {T:,}" for T in _STEPS))
    rows: list[tuple[Cell, ...]] = [(k, *values.values()) for k, values in zip(sizes, by_size, strict=True)]
    formats = dict.fromkeys(headings[1:], ".2e")
    return Table(
        "Subsample size k at a fixed number of steps T: relative suboptimality", headings, rows, formats
    )


def _fixed_T_finding(sizes: list[int], by_size: list[dict[int, float]]) -> str:
    T = _STEPS[-1]
    ratio = by_size[0][T] / by_size[-1][T]
    return f"At T = {T:,}, k = {sizes[-1]} is {ratio:,.0f} times as near to the optimum as k = 1."


def _size_table(sizes: list[int], by_size: list[dict[int, float]]) -> Table:
    headings = ("rows per step, k", *(f"k T = {epochs} n" for epochs in _EPOCHS))
    rows: list[tuple[Cell, ...]] = [
        (k, *(values[epochs] for epochs in _EPOCHS)) for k, values in zip(sizes, by_size, strict=True)
    ]
    formats = dict.fromkeys(headings[1:], ".2e")
    return Table("Subsample size k at a fixed budget k T: relative suboptimality", headings, rows, formats)


def _rule_table(by_rule: dict[str, dict[int, float]]) -> Table:
    headings = ("step size", *(f"{epochs} passes" for epochs in _MORE_EPOCHS))
    rows: list[tuple[Cell, ...]] = [(name, *values.values()) for name, values in by_rule.items()]
    return Table(
        "Step sizes, k = 1: relative suboptimality", headings, rows, dict.fromkeys(headings[1:], ".2e")
    )


def _findings(
    sizes: list[int], by_size: list[dict[int, float]], by_rule: dict[str, dict[int, float]]
) -> list[str]:
    last = [values[_EPOCHS[-1]] for values in by_size]
    close = [k for k, value in zip(sizes, last, strict=True) if value <= 2.0 * last[0]]
    order = sorted(by_rule, key=lambda name: by_rule[name][_EPOCHS[-1]])
    return [
        f"At k T = {_EPOCHS[-1]} n, every k up to {max(close)} ends within twice the suboptimality of k = "
        f"1; k = {sizes[-1]} is {last[-1] / last[0]:.2g} times as far from the optimum.",
        f"After {_EPOCHS[-1]} passes the step sizes rank: {'; '.join(order)}. The alternatives were given "
        "several scales each; 1 / (lambda t) has none to choose.",
    ]


PART = Part("Subsample and step size of Pegasos (Shalev-Shwartz et al. 2007)", _run, (_DATA,), ("001",))
