# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin choose --task regression``: C, epsilon and gamma by cross-validation, every fit certified."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

import maxmargin
from maxmargin.command_line.shared.answer import Failure, one_interrupt, print_table
from maxmargin.command_line.shared.fitting import Fitting
from maxmargin.command_line.shared.grid_search import check_ends
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.regression import numbers_to_predict, tell_regressor
from maxmargin.tools.words import some

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LOW, _HIGH = 1e-2, 1e3
"""The ends of the grid of C, in standard deviations of the labels."""
_NARROWEST, _WIDEST = 0.01, 0.3
"""The ends of the grid of epsilon, in the same unit."""
_EPSILONS = 3
"""Values of epsilon, where their number is not given: each takes as many fits as there are C."""
_SHOWN = 10
"""Values that are listed, the best first."""


@dataclass(frozen=True)
class RegressionSearch:
    """What is to be tried."""

    kernel: dict[str, Any]
    """The parameters of the kernel, as ``SVR`` calls them; empty without one."""
    low: float | None
    high: float | None
    values: int
    gammas: int | None
    epsilons: int | None
    folds: int
    seed: int
    max_time: float | None
    parameters: dict[str, Any]
    """Those of all fits."""

    def grid(self, values: NDArray[Any]) -> dict[str, Any]:
        """The values of C and epsilon."""
        import numpy as np

        unit = float(np.std(values)) or 1.0
        low = _LOW * unit if self.low is None else self.low
        high = _HIGH * unit if self.high is None else self.high
        check_ends(low, high)
        widths = np.geomspace(_NARROWEST, _WIDEST, self.epsilons or _EPSILONS)
        return {"C": np.geomspace(low, high, self.values), "epsilon": unit * widths}

    def run(self, X: Any, values: NDArray[Any], threads: int | None) -> Chosen:
        """Fit every fold at all values, and all rows at the best."""
        from sklearn.model_selection import KFold

        grid, cv = self.grid(values), KFold(self.folds, shuffle=True, random_state=self.seed)
        if not self.kernel:
            return self._linear(X, values, grid, cv, threads)
        given = dict(self.kernel)
        gammas: dict[str, Any] = {} if self.gammas is None else {"gammas": self.gammas}
        middle = given.pop("gamma", None)
        if middle is not None:
            gammas = {"gammas": [middle]}
        search = maxmargin.SVRCV(
            Cs=grid["C"],
            epsilons=grid["epsilon"],
            cv=cv,
            max_time=self.max_time,
            random_state=self.seed,
            n_jobs=threads,
            **gammas,
            **given,
            **self.parameters,
        )
        search.fit(X, values)
        results = search.cv_results_
        tried = [
            Tried(params, float(mean), float(gap))
            for params, mean, gap in zip(
                results["params"], results["mean_test_score"], results["max_relative_gap"], strict=True
            )
        ]
        return Chosen(search.best_estimator_, tried, search.best_index_, self.folds)

    def _linear(
        self, X: Any, values: NDArray[Any], grid: dict[str, Any], cv: Any, threads: int | None
    ) -> Chosen:
        """The same without a kernel: every fit begins at the weights of the last C."""
        import numpy as np

        deadline = math.inf if self.max_time is None else time.monotonic() + self.max_time
        folds, options = list(cv.split(X)), {"random_state": self.seed, "n_jobs": threads}

        def model(C: float, epsilon: float) -> maxmargin.LinearSVR:
            left = None if self.max_time is None else max(0.0, deadline - time.monotonic())
            given: dict[str, Any] = {"C": C, "epsilon": epsilon, "max_time": left, **options}
            return maxmargin.LinearSVR(**given, **self.parameters)

        tried = []
        for epsilon in grid["epsilon"].tolist():
            fitted: list[Any] = [model(1.0, epsilon).set_params(warm_start=True) for _ in folds]
            for C in grid["C"].tolist():
                scores, gaps = [], []
                for one, (kept, out) in zip(fitted, folds, strict=True):
                    one.set_params(C=C, max_time=model(C, epsilon).max_time).fit(X[kept], values[kept])
                    scores.append(one.score(X[out], values[out]))
                    gaps.append(one.certificate_.relative_gap)
                tried.append(Tried({"C": C, "epsilon": epsilon}, float(np.mean(scores)), max(gaps)))
        best = int(np.argmax([each.score for each in tried]))
        chosen = model(**tried[best].values).fit(X, values)
        return Chosen(chosen, tried, best, self.folds)


@dataclass(frozen=True)
class Tried:
    """Some values, and what they are worth on rows that were held out."""

    values: dict[str, Any]
    score: float
    """R², in the mean over the folds."""
    relative_gap: float
    """The widest of all folds."""


@dataclass(frozen=True)
class Chosen:
    """How the values were chosen."""

    best: Any
    """The model of all rows."""
    tried: list[Tried]
    index: int
    folds: int

    def as_json(self) -> dict[str, Any]:
        """One object."""
        each = [
            one.values | {"mean_score": one.score, "max_relative_gap": one.relative_gap}
            for one in self.tried
        ]
        chosen = self.tried[self.index]
        return chosen.values | {"score": chosen.score, "folds": self.folds, "values": each}

    def print_words(self) -> None:
        """A table with a line for the best values, and what was chosen."""
        ordered = sorted(self.tried, key=lambda one: -one.score)
        rows = [
            (*(f"{value:.4g}" for value in one.values.values()), f"{one.score:.4f}")
            for one in ordered[:_SHOWN]
        ]
        more = f", the best {_SHOWN} of {len(ordered)}" if len(ordered) > _SHOWN else ""
        title = f"R² on held-out rows, {self.folds} folds{more}"
        print_table(title, (*ordered[0].values, "R²"), rows)
        chosen = self.tried[self.index]
        values = some([f"{name} = {value:.4g}" for name, value in chosen.values.items()])
        typer.echo(f"{values}: R² is {chosen.score:.4f} on held-out rows.")


def choose_regressor(work: Fitting, search: RegressionSearch) -> int:
    """Choose, write the model of all rows and say what it is worth."""
    with Bars(quiet=work.as_json) as bars:
        training_set = work.read(bars)
        values = numbers_to_predict(training_set.data.y, work.data)
        if len(values) < search.folds:
            raise Failure(f"--folds must be at most the {len(values)} rows. Got {search.folds} instead.")
        work.lap("read")
        bars.waiting("choosing C and epsilon")
        with one_interrupt():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # how the model of all rows ended is said in words later
                chosen = search.run(training_set.data.X, values, work.reading.threads)
            work.save_chosen(chosen.best, training_set)
    return tell_regressor(work, chosen.best, training_set, values, [], choice=chosen)
