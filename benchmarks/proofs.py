# SPDX-License-Identifier: BSD-3-Clause
"""What proofs cost: bounds on rounding in a certificate, and rows that are left out one at a time."""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import datasets, machine
from benchmarks.report import table

DATA = ("a9a", "ijcnn1", "covtype_binary_scale", "imdb_tfidf")
LEFT_OUT = ("ijcnn1", "a9a")
"""Data whose rows are left out."""
_FITS = 5.0
"""The time that leaving rows out is given first, in fits."""
_SECONDS = 0.5
"""How long both certificates of a problem are made in turn, in each round."""


@dataclass(frozen=True)
class Cost:
    """Seconds of a certificate, without and with bounds on rounding."""

    data: str
    loss: str
    plain: float
    bounded: float


@dataclass(frozen=True)
class LeftOut:
    """What leaving rows out came to, within some fits' time and without a limit."""

    data: str
    loss: str
    fit: float
    """Seconds of a fit."""
    limited: Any
    whole: Any
    """``LeaveOneOut``, both."""


def measure(
    names: list[str], losses: list[str], repeat: int, tell: Callable[[str], None]
) -> tuple[list[Cost], list[LeftOut]]:
    """Both tables."""
    costs, left = [], []
    for name, loss in itertools.product(names, losses):
        tell(f"{name}, {loss}: certificates")
        costs.append(_cost(datasets.load(name), loss, repeat))
    for name, loss in itertools.product([name for name in names if name in LEFT_OUT], losses):
        tell(f"{name}, {loss}: rows left out")
        left.append(_left_out(datasets.load(name), loss, repeat))
    return costs, left


def _cost(data: datasets.DataSet, loss: str, repeat: int) -> Cost:
    from maxmargin import Problem, Solution, certify, core, solve

    y = np.where(data.y == data.classes[0], -1.0, 1.0)
    problem = Problem.of(data.X, y, 1.0, loss=loss)
    found = solve(problem, tol=1e-4, threads=1).certificate
    rows, objective, budget = problem.rows, problem.objective, core.Budget(np.inf, 1)

    def plain() -> float:
        """The same two passes, best intercept, feasible multipliers and sums, rounding left out."""
        margins = rows.scores(found.w, budget)
        objective.take_best_intercept(margins)
        upper = 0.5 * core.dot(found.w, found.w) + objective.loss_sum(margins)
        alpha = np.array(found.alpha)
        objective.make_feasible(alpha)
        w = rows.combine(alpha * problem.y, budget)
        lower = float(alpha.sum()) - 0.5 * core.dot(w, w)
        if loss == "squared_hinge":
            lower -= 0.25 * core.dot(alpha, alpha / problem.costs)
        return upper - lower

    def bounded() -> float:
        return certify(problem, Solution(w=found.w, alpha=found.alpha), budget=budget, tol=1e-4).gap

    best = [np.inf, np.inf]
    for _ in range(repeat):
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end:
            for k, work in enumerate((plain, bounded)):
                start = time.perf_counter()
                work()
                best[k] = min(best[k], time.perf_counter() - start)
    return Cost(data.name, loss, *best)


def _left_out(data: datasets.DataSet, loss: str, repeat: int) -> LeftOut:
    from maxmargin import LinearSVC

    seconds, model = np.inf, LinearSVC(loss=loss, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2 * repeat + 1):
            start = time.perf_counter()
            model.fit(data.X, data.y)
            seconds = min(seconds, time.perf_counter() - start)
        limited = [model.leave_one_out(data.X, data.y, max_time=_FITS * seconds) for _ in range(repeat)]
        whole = [model.leave_one_out(data.X, data.y) for _ in range(min(repeat, 2))]
    least_open = min(limited, key=lambda each: each.decided.get("open", 0))
    return LeftOut(data.name, loss, seconds, least_open, min(whole, key=lambda each: each.seconds))


_HOW = """\
# What proofs cost

The best of {repeat} rounds. {facts}.

## Bounds on rounding

Milliseconds of one thread for a certificate of the default fit at C = 1, exact intercept: *plain* are the
two passes over the data, the best intercept, feasible multipliers and both sums, without a thought of
rounding; *proven* is `certify`, whose values are [bounds of the exact ones](../certificate.md#rounding).
Both take turns for half a second in each round. The lengths of rows, which the bounds need, are known
before: solvers need them, too."""

_LEFT_OUT = """\
## Leaving one row out

`LinearSVC(loss, C=1).leave_one_out(X, y)` on all cores, the intercept exact
([how](../certificate.md#leaving-one-row-out)): with `max_time` five times what the fit takes, the best of
{repeat} runs, and without a limit. The last look at the clock is before a step that cannot be cut short, so
that the time may be above the limit.

Rows that are *left* after all that is decided without a fit take fits of their own. None of these is done
with less than one certificate, which is two passes over all values; *floor* is the time of that many, as
the table above has it, on one of {cores} cores each. Where it is above five fits, no fits decide
all rows within that time."""


def markdown(found: tuple[list[Cost], list[LeftOut]], repeat: int) -> str:
    """The whole page."""
    costs, left = found
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    lines = [
        [
            f"{each.data}, {_words(each.loss)}",
            f"{1e3 * each.plain:.3g}",
            f"{1e3 * each.bounded:.3g}",
            f"{each.bounded / each.plain:.2f}x",
        ]
        for each in costs
    ]
    parts = [
        _HOW.format(repeat=repeat, facts=facts),
        table(["data, loss", "plain, ms", "proven, ms", "ratio"], lines),
    ]
    if left:
        heads = ["data, loss", "fit", "within five fits", "open rows", "took", "all of it", "accuracy"]
        heads += ["left", "floor"]
        cores = os.cpu_count() or 1
        proven = {(each.data, each.loss): each.bounded / cores for each in costs}
        lines = [[*_line(each), *_floor(each, proven[each.data, each.loss])] for each in left]
        parts += [_LEFT_OUT.format(repeat=repeat, cores=cores), table(heads, lines)]
    return "\n\n".join(parts) + "\n"


def _line(each: LeftOut) -> list[str]:
    limited, whole = each.limited, each.whole
    return [
        f"{each.data}, {_words(each.loss)}",
        f"{1e3 * each.fit:.3g} ms",
        _accuracy(limited),
        f"{limited.decided.get('open', 0):,} of {len(limited.right):,}",
        f"{limited.seconds / each.fit:.1f} fits",
        f"{1e3 * whole.seconds:.3g} ms, {whole.seconds / each.fit:.1f} fits",
        _accuracy(whole),
    ]


def _floor(each: LeftOut, certificate: float) -> list[str]:
    """The rows that are left for fits, and what their certificates alone would take."""
    rows = sum(each.whole.decided.get(name, 0) for name in ("by a fit", "open"))
    return [f"{rows:,}", f"{rows * certificate / each.fit:.1f} fits"]


def _accuracy(found: Any) -> str:
    if found.low == found.high:
        return f"{found.low:.4%}"
    return f"{found.low:.3%} to {found.high:.3%}"


def _words(loss: str) -> str:
    return loss.replace("_", " ")
