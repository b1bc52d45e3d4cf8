# SPDX-License-Identifier: BSD-3-Clause
"""The automatic choice against the solvers it chooses from: on data sets, and on random shapes."""

from __future__ import annotations

import itertools
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, machine
from benchmarks.choice_cases import Case, draw
from benchmarks.report import table

DATA = (
    "a9a", "ijcnn1", "covtype_binary_scale", "mnist38",
    "imdb_tfidf", "news20_binary_like", "reuters_moneyfx", "rcv1_vw1k",
    "svmguide1", "mushrooms", "heart_scale",
)  # fmt: skip
COSTS = (2.0**-5, 1.0, 32.0)
TOLERANCE = 1e-4
AUTO = "auto"
_CHOICES = {
    "hinge": ("dual_coordinate_ascent", "augmented_lagrangian", "active_set", "interior_point"),
    "squared_hinge": ("dual_coordinate_ascent", "newton", "active_set", "interior_point"),
    "logistic": ("newton",),
}
_AT_ONCE = (AUTO, "augmented_lagrangian", "newton")
"""Those that solve small problems in one compiled call, which knows no limit on time."""
_FAR_BEHIND = 3.0
"""A solver that takes so many times as long as the best is cut off, and not asked again."""
_LEAST_LIMIT = 0.05
"""Seconds that it has at least."""
_SHORT, _SHORT_ROUNDS = 0.02, 5
"""Fits of fewer seconds have more rounds: what disturbs them is a larger part."""
_GOOD, _BAD = 1.5, 3.0
"""Ratios that auto should keep to on 95 of 100 shapes, and on all."""


@dataclass
class Choice:
    """One problem; best seconds of all rounds, infinite where a solver did not get there."""

    data: str
    loss: str
    C: float
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    took: str = ""
    """What ``auto`` took, and why."""

    @property
    def best(self) -> str:
        """The fastest solver."""
        return min((name for name in self.seconds if name != AUTO), key=lambda name: self.seconds[name])

    @property
    def ratio(self) -> float:
        """Of the automatic choice to the best."""
        return self.seconds[AUTO] / self.seconds[self.best]

    @property
    def words(self) -> str:
        """The problem."""
        return f"{self.data}, {self.loss.replace('_', ' ')}, C = {self.C:g}"


class Finished:
    """What was measured, and the file that keeps it, so that a run that is stopped can go on."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.choices: dict[str, Choice] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                try:
                    known = json.loads(line)
                except ValueError:
                    continue  # it was being written when the run was stopped
                self.choices[known["key"]] = Choice(**known["choice"])

    def add(self, key: str, choice: Choice) -> None:
        """Keep what was measured."""
        self.choices[key] = choice
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"\n{json.dumps({'key': key, 'choice': asdict(choice)})}\n")


def measure(given: Any, tell: Callable[[str], None]) -> tuple[list[Choice], list[Choice]]:
    """The choices on random shapes, and those on data sets, as the options ask for them."""
    finished = Finished(given.batches)
    for loss in _CHOICES:  # imports and first calls are not what is measured
        case = draw(0, 0)
        _measure_one(Case("", case.X[:100], case.y[:100], loss, 1.0), 1, given.longest)

    def measured(key: str, make: Callable[[], Case]) -> Choice:
        if key not in finished.choices:
            tell(key)
            finished.add(key, _measure_one(make(), given.repeat, given.longest))
        return finished.choices[key]

    shapes = [
        measured(f"shape {number} of seed {given.seed}", lambda number=number: draw(given.seed, number))
        for number in range(given.shapes)
    ]
    return shapes, [measured(*problem) for problem in _of_data_sets(given.data, given.loss)]


def _of_data_sets(names: list[str], losses: list[str]) -> Iterator[tuple[str, Callable[[], Case]]]:
    load = lru_cache(1)(datasets.load)
    for name, C, loss in itertools.product(names, COSTS, losses):

        def make(name: str = name, C: float = C, loss: str = loss) -> Case:
            data = load(name)
            return Case(name, data.X, data.y, loss, C)

        yield f"{name}, {loss}, C = {C:g}", make


def _measure_one(case: Case, repeat: int, longest: float) -> Choice:
    """Solvers take turns; one that took far longer than another is not asked again."""
    choice = Choice(case.words, case.loss, case.C)
    rounds, best = repeat, math.inf
    while rounds > 0:
        rounds -= 1
        for name in (AUTO, *_CHOICES[case.loss]):
            if choice.seconds.get(name, 0.0) > _FAR_BEHIND * best:
                continue
            limit = min(longest, max(_FAR_BEHIND * best, _LEAST_LIMIT))
            seconds, took = _fit(case, name, limit)
            if name == AUTO and not choice.took and seconds < _SHORT:
                rounds = max(rounds, _SHORT_ROUNDS - 1)
            choice.seconds[name] = min(seconds, choice.seconds.get(name, math.inf))
            best = min(best, seconds)
            if name == AUTO:
                choice.took = took
    return choice


def _fit(case: Case, name: str, limit: float) -> tuple[float, str]:
    """Seconds of the processor on one thread, infinite without a certificate; and what ran.

    A limit is one of the clock: where others use the machine, it is longer by as much.
    """
    from maxmargin import LinearSVC
    from maxmargin.solvers.sizes import FEW_VALUES

    stored = case.X.size if isinstance(case.X, np.ndarray) else case.X.nnz
    free = name in _AT_ONCE and stored <= FEW_VALUES
    model: Any = LinearSVC(
        loss=case.loss,
        C=case.C,
        solver=name,
        tol=TOLERANCE,
        max_time=None if free else limit * max(1.0, machine.load_average() / machine.cores()),
        n_jobs=1,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status says whether it fell short
        start = time.process_time()
        try:
            model.fit(case.X, case.y)
        except ValueError:  # the solver does not take the problem
            return math.inf, ""
        seconds = time.process_time() - start
    return seconds if model.status_.certified else math.inf, model.solver_


_HOW = """\
# The automatic choice against the best one

Seconds of the processor, on one thread, of `LinearSVC(loss, C, solver)` to a certified relative gap of
{tol:g}; the best of several rounds in which the solvers take turns. The choice is between
dual_coordinate_ascent, active_set, interior_point, augmented_lagrangian (hinge) and newton (squared hinge);
the logistic loss has newton alone. A solver that takes {behind:g} times as long as the best is cut off.
{facts}."""

_SHAPES = """\
## Random shapes

{count} problems drawn with seed {seed}: 100 to 100,000 rows and 2 to 5,000 columns, dense (independent or
correlated columns) or sparse, of up to ten million stored values; columns alike or of different scales,
sparse rows of length 1 or not; classes that a plane separates, or with noise; one in two, or one in ten, in
the smaller class; C from 1e-4 to 1e4. `auto` is within {good:g} times the best single solver on
{share:.1f} % of them, and within {bad:g} times on {most}. The largest ratio is {worst:.2f}."""


def markdown(given: Any, found: tuple[list[Choice], list[Choice]]) -> str:
    """The whole page."""
    shapes, sets = found
    facts = "; ".join(f"{name}: {value}" for name, value in machine.facts().items())
    parts = [_HOW.format(tol=TOLERANCE, behind=_FAR_BEHIND, facts=facts)]
    if shapes:
        parts += _about_shapes(shapes, given.seed)
    if sets:
        worst = max(sets, key=lambda choice: choice.ratio)
        parts += ["## Data sets", f"The largest ratio is {worst.ratio:.2f} ({worst.words}).", _rows(sets)]
    return "\n\n".join(parts) + "\n"


def _about_shapes(shapes: list[Choice], seed: int) -> list[str]:
    good = sum(choice.ratio <= _GOOD for choice in shapes)
    bad = sum(choice.ratio > _BAD for choice in shapes)
    how = _SHAPES.format(
        count=len(shapes),
        seed=seed,
        good=_GOOD,
        share=100.0 * good / len(shapes),
        bad=_BAD,
        most="all" if bad == 0 else f"all but {bad}",
        worst=max(choice.ratio for choice in shapes),
    )
    ends = (0.9, 1.1, 1.25, _GOOD, 2.0, _BAD, math.inf)
    counts = [
        [
            loss.replace("_", " "),
            *(
                str(sum(low < choice.ratio <= high for choice in of_loss))
                for low, high in zip((0.0, *ends), ends, strict=False)
            ),
        ]
        for loss in _CHOICES
        if (of_loss := [choice for choice in shapes if choice.loss == loss])
    ]
    heads = ["auto / best", *(f"up to {end:g}" for end in ends[:-1]), "more"]
    rest = sorted((choice for choice in shapes if choice.ratio > _GOOD), key=lambda choice: -choice.ratio)
    listed = "\n".join(
        f"* {choice.ratio:.2f}: {choice.words}. `auto` took {choice.seconds[AUTO]:.3g} s, {choice.best} "
        f"{choice.seconds[choice.best]:.3g} s. {choice.took}"
        for choice in rest
    )
    parts = [how, table(heads, counts)]
    return [*parts, f"Above {_GOOD:g}, with what ran and why:", listed] if rest else parts


def _rows(choices: list[Choice]) -> str:
    heads = ["data, loss, C", "auto took", "auto, s", "best", "best, s", "auto / best"]
    rows = [
        [
            choice.words,
            choice.took.split(":")[0],
            f"{choice.seconds[AUTO]:.3g}",
            choice.best,
            f"{choice.seconds[choice.best]:.3g}",
            f"{choice.ratio:.2f}",
        ]
        for choice in choices
    ]
    return table(heads, rows)
