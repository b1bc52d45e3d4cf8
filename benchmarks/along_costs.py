# SPDX-License-Identifier: BSD-3-Clause
"""The path along C against single fits, and the choice of C against scikit-learn's grid search."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks import datasets, machine
from benchmarks.report import table

DATA = ("a9a", "imdb_tfidf")
COSTS = np.geomspace(2.0**-10, 2.0**10, 20)
"""Of the path."""
TOLERANCE = 1e-4
WHOLE = (1e-2, 1e-3)
"""Tolerances of the path at every C."""

Tell = Callable[[str], None]
Found = TypeVar("Found")


class Everywhere(NamedTuple):
    """``whole_path``: what it takes and what it proves."""

    seconds: float
    fits: int
    gap: float


@dataclass
class Walk:
    """One problem along C; the best seconds of all rounds."""

    data: str
    loss: str
    cold: list[float] = field(default_factory=lambda: [np.inf] * len(COSTS))
    """Of a single fit at every C."""
    cold_steps: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"up": np.inf, "down": np.inf})
    steps: dict[str, int] = field(default_factory=dict[str, int])
    solved: dict[str, int] = field(default_factory=dict[str, int])
    """Values of C at which steps were taken; the others follow from their neighbours."""
    certificates: float = np.inf
    """Of 20 certificates and nothing else."""
    whole: dict[float, Everywhere] = field(default_factory=dict[float, "Everywhere"])
    """Of a path that holds at every C, by its tolerance."""

    @property
    def longest(self) -> float:
        """The most expensive single fit."""
        return max(self.cold)


@dataclass
class Search:
    """One choice of C."""

    data: str
    loss: str
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    C: dict[str, float] = field(default_factory=dict[str, float])
    score: dict[str, float] = field(default_factory=dict[str, float])


def measure(names: list[str], losses: list[str], repeat: int, tell: Tell) -> list[Walk]:
    """Single fits and paths take turns."""
    return _rounds(Walk, _one_walk, "path", names, losses, repeat, tell)


def search(names: list[str], losses: list[str], repeat: int, tell: Tell) -> list[Search]:
    """``LinearSVCCV`` and ``GridSearchCV`` on the same grid and folds, each at its defaults, in turn."""
    return _rounds(Search, _one_search, "choice of C", names, losses, repeat, tell)


def _rounds(
    kind: Callable[[str, str], Found],
    one_round: Callable[[datasets.DataSet, Found], None],
    what: str,
    names: list[str],
    losses: list[str],
    repeat: int,
    tell: Tell,
) -> list[Found]:
    """Of every data set with every loss, what so many rounds have found."""
    everything = []
    for name in names:
        data = datasets.load(name)
        for loss in losses:
            found = kind(name, loss)
            for turn in range(repeat):
                tell(f"{name}, {loss}: {what}, round {turn + 1}")
                one_round(data, found)
            everything.append(found)
    return everything


def _one_walk(data: datasets.DataSet, walk: Walk) -> None:
    from maxmargin import Problem, Solution, certify, path, solve, whole_path
    from maxmargin.core import Budget
    from maxmargin.solvers.dual_coordinate_ascent import smaller_copy

    y = np.where(data.y == data.classes[1], 1.0, -1.0)
    problem = Problem.of(data.X, y, loss=walk.loss)
    _ = problem.rows.squared_norms, smaller_copy(problem.rows)  # which all fits share
    walk.cold_steps = 0
    for k, C in enumerate(COSTS):
        here = problem.with_costs_times(C)
        seconds, model = _timed(lambda here=here: solve(here, tol=TOLERANCE, threads=1))
        walk.cold[k] = min(walk.cold[k], seconds)
        walk.cold_steps += model.steps
    for direction in ("up", "down"):
        seconds, found = _timed(
            lambda Cs=COSTS[:: 1 if direction == "up" else -1]: path(problem, Cs, tol=TOLERANCE, threads=1)
        )
        assert found.certified
        walk.seconds[direction] = min(walk.seconds[direction], seconds)
        walk.steps[direction] = int(found.steps.sum())
        walk.solved[direction] = int(np.count_nonzero(found.steps))
    points = [
        (problem.with_costs_times(C), Solution(w=model.w, alpha=model.certificate.alpha))
        for C, model in zip(found.C, found, strict=True)
    ]
    one = Budget(np.inf, 1)
    seconds, _ = _timed(lambda: [certify(here, point, budget=one) for here, point in points])
    walk.certificates = min(walk.certificates, seconds)
    for tol in WHOLE:
        seconds, found = _timed(
            lambda tol=tol: whole_path(problem, COSTS[0], COSTS[-1], tol=tol, threads=1)
        )
        assert found.largest_gap <= tol
        if tol in walk.whole:
            seconds = min(seconds, walk.whole[tol].seconds)
        walk.whole[tol] = Everywhere(seconds, len(found), found.largest_gap)


def _one_search(data: datasets.DataSet, found: Search) -> None:
    for who, make in _SEARCHERS.items():
        model = make(found.loss)
        seconds, _ = _timed(lambda model=model: model.fit(data.X, data.y))
        found.seconds[who] = min(found.seconds.get(who, np.inf), seconds)
        found.C[who] = model.best_params_["C"]
        found.score[who] = model.best_score_


def _ours(loss: str) -> Any:
    from maxmargin import LinearSVCCV

    return LinearSVCCV(loss=loss, random_state=0, n_jobs=1)


def _ours_regularised(loss: str) -> Any:
    return _ours(loss).set_params(regularize_intercept=True)


def _theirs(loss: str) -> Any:
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    return GridSearchCV(LinearSVC(loss=loss, random_state=0), {"C": np.logspace(-4, 4, 10)})


_SEARCHERS = {
    "LinearSVCCV": _ours,
    "LinearSVCCV, intercept regularised": _ours_regularised,
    "GridSearchCV": _theirs,
}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, which others on the machine disturb less."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's fits may end at their cap
        start = time.process_time()
        answer = work()
        return time.process_time() - start, answer


_HOW = """\
# The path along C, measured

One thread, seconds of the processor, the best of {repeat} rounds in which all take turns. {facts}.

## The path

20 values of C from 2^-10 to 2^10, tol = 1e-4, exact intercept: `path` beside single fits of `solve`, both
with `solver="auto"`. *Certificates* are the two passes and the intercept at 20 points and nothing else.
*Solved* are the values of C at which steps were taken; the others follow from their neighbours without a
pass."""

_WHOLE = """\
## Every C

`whole_path` from 2^-10 to 2^10: seconds, fits, and the relative gap that is proven at every C between."""

_SEARCH = """\
## The choice of C

10 values of C from 1e-4 to 1e4, 5 folds, refit; each at its defaults. scikit-learn regularises the
intercept, `LinearSVCCV` does not unless told to. The ratio is that of the last column to the first."""


def markdown(walks: list[Walk], searches: list[Search], repeat: int) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    parts = [_HOW.format(repeat=repeat, facts=facts)]
    heads = ["data, loss", "longest cold fit", "all 20 cold", "20 certificates", "path up", "path down"]
    heads += ["steps: cold, up, down", "solved: up, down"]
    parts.append(table(heads, [_walk_row(walk) for walk in walks]))
    heads = ["data, loss", *(f"tol = {tol:g}" for tol in WHOLE)]
    parts += [_WHOLE, table(heads, [_whole_row(walk) for walk in walks])]
    if searches:
        heads = ["data, loss", *(f"{who}: s, C, score" for who in _SEARCHERS), "ratio"]
        parts += [_SEARCH, table(heads, [_search_row(found) for found in searches])]
    return "\n\n".join(parts) + "\n"


def _walk_row(walk: Walk) -> list[str]:
    def of_longest(seconds: float) -> str:
        return f"{seconds:.3g} s, {seconds / walk.longest:.2f}x"

    return [
        f"{walk.data}, {walk.loss.replace('_', ' ')}",
        f"{walk.longest:.3g} s",
        f"{sum(walk.cold):.3g} s",
        of_longest(walk.certificates),
        of_longest(walk.seconds["up"]),
        of_longest(walk.seconds["down"]),
        f"{walk.cold_steps}, {walk.steps['up']}, {walk.steps['down']}",
        f"{walk.solved['up']}, {walk.solved['down']}",
    ]


def _whole_row(walk: Walk) -> list[str]:
    cells = [f"{of.seconds:.3g} s, {of.fits}, {of.gap:.1e}" for of in (walk.whole[tol] for tol in WHOLE)]
    return [f"{walk.data}, {walk.loss.replace('_', ' ')}", *cells]


def _search_row(found: Search) -> list[str]:
    cells = [
        f"{found.seconds[who]:.3g} s, {found.C[who]:.3g}, {found.score[who]:.5f}" for who in _SEARCHERS
    ]
    ratio = found.seconds["GridSearchCV"] / found.seconds["LinearSVCCV"]
    return [f"{found.data}, {found.loss.replace('_', ' ')}", *cells, f"{ratio:.1f}"]
