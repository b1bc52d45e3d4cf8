# SPDX-License-Identifier: BSD-3-Clause
"""C and gamma of a kernel, chosen together by cross-validation."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from maxmargin.command_line.shared.answer import Failure, print_table
from maxmargin.tools.words import some

if TYPE_CHECKING:
    from maxmargin.command_line.shared.progress import Bars

_LOW, _HIGH = 1e-2, 1e4
"""The ends of the grid of C: below, a kernel machine answers with the largest class alone."""
_VALUES, _GAMMAS = 5, 5
"""Values of C and of gamma."""
_FURTHEST = 100.0
"""How far, as a factor, gamma goes below and above the one that is the middle."""
_MOST_WIDENINGS, _MORE_VALUES = 2, 2
"""How often a grid is widened whose best values are at an end that nobody asked for, and by how many."""
_LARGEST_STEP = 10.0
"""The largest factor from one of these to the next: beyond, a coarse grid would lead to absurd values."""


@dataclass(frozen=True)
class GridSearch:
    """What is to be tried."""

    kernel: dict[str, Any]
    """The parameters of the kernel, as SVC calls them."""
    low: float | None
    high: float | None
    values: int | None
    gammas: int | None
    folds: int
    seed: int
    max_time: float | None

    def run(self, estimator: Any, X: Any, y: Any, bars: Bars) -> Found:
        """Fit every fold at every pair of values, and all rows at the best."""
        import numpy as np
        from sklearn.model_selection import StratifiedKFold

        from maxmargin.estimators import SVCCV

        low, high = self.low or _LOW, self.high or _HIGH
        check_ends(low, high)
        grid: dict[str, Any] = {"C": np.geomspace(low, high, self.values or _VALUES)}
        if self.kernel["kernel"] != "linear":
            grid["gamma"] = self._gammas(X)
        deadline = float("inf") if self.max_time is None else time.monotonic() + self.max_time
        cv = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        options = estimator.get_params(deep=False)
        for name in ("C", "gamma", "warm_start", "max_time", "device"):
            options.pop(name)
        search = SVCCV(cv=cv, **options)
        for widened in range(_MOST_WIDENINGS + 1):
            seconds = None if self.max_time is None else max(0.0, deadline - time.monotonic())
            search.set_params(Cs=grid["C"], gammas=grid.get("gamma", 1), max_time=seconds)
            fits = (self.folds * len(grid["C"]) * len(grid.get("gamma", [0]))) + 1
            bars.waiting(f"choosing C and gamma, {fits} fits")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # how the model of all rows ended is said in words later
                search.fit(X, y)
            found = Found(search.best_estimator_, search.cv_results_, search.best_index_, grid, self.folds)
            wider = self._wider(found)
            if wider is None or widened == _MOST_WIDENINGS or time.monotonic() > deadline:
                break
            grid = wider
        return found

    def _wider(self, found: Found) -> dict[str, Any] | None:
        """The grid with more values beyond the ends at which the best are; None where there are none."""
        import numpy as np

        asked = {"--low": self.low, "--high": self.high}
        wider: dict[str, Any] = {}
        for name, end in found.ends.items():
            values = found.grid[name]
            if asked.get(CURES[name][end]) is not None:
                continue
            ratio = min((values[-1] / values[0]) ** (1 / (len(values) - 1)), _LARGEST_STEP)
            steps = ratio ** np.arange(1, _MORE_VALUES + 1)
            parts = [values[0] / steps[::-1], values] if end == 0 else [values, values[-1] * steps]
            wider[name] = np.concatenate(parts)
        return found.grid | wider if wider else None

    def _gammas(self, X: Any) -> Any:
        """Values on a logarithmic scale around the one asked for."""
        import numpy as np

        from maxmargin.estimators.named_kernels import find_gamma

        middle = find_gamma(self.kernel.get("gamma", "scale"), X, np.ones(X.shape[0]))
        count = self.gammas or _GAMMAS
        return middle * np.geomspace(1 / _FURTHEST, _FURTHEST, count) if count > 1 else np.array([middle])


def check_ends(low: float, high: float) -> None:
    """Refuse values of C that make no grid."""
    if not 0.0 < low <= high < float("inf"):
        raise Failure(
            "--low and --high must be finite numbers above 0, the first not above the second. Got "
            f"{low:g} and {high:g} instead."
        )


CURES = {"C": ("--low", "--high"), "gamma": ("--gamma", "--gamma")}
"""The options that say where the values of each begin and end."""


@dataclass(frozen=True)
class Found:
    """How C and gamma were chosen."""

    best: Any
    """The model of all rows."""
    results: dict[str, Any]
    """The results in the form of scikit-learn's GridSearchCV."""
    index: int
    grid: dict[str, Any]
    folds: int

    @property
    def ends(self) -> dict[str, int]:
        """Which of the two is at an end of its values, 0 or 1, if the others are worse."""
        scores = self.results["mean_test_score"]
        if scores.min() == scores.max():
            return {}
        chosen = self.results["params"][self.index]
        return {
            name: int(chosen[name] == values[-1])
            for name, values in self.grid.items()
            if len(values) > 1 and chosen[name] in (values[0], values[-1])
        }

    @property
    def doubts(self) -> list[str]:
        """What is said of values at an end."""
        chosen = self.results["params"][self.index]
        return [
            f"{name} = {chosen[name]:.4g} is at the end of the grid: {('less', 'more')[end]} may be better "
            f"still. Change {CURES[name][end]}."
            for name, end in self.ends.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """One object."""
        results = self.results
        return {
            **{name: float(value) for name, value in results["params"][self.index].items()},
            "score": float(results["mean_test_score"][self.index]),
            "folds": self.folds,
            "values": [
                {**params, "mean_score": mean, "std_score": std, "max_relative_gap": gap}
                for params, mean, std, gap in zip(
                    results["params"],
                    results["mean_test_score"],
                    results["std_test_score"],
                    results["max_relative_gap"],
                    strict=True,
                )
            ],
        }

    def print_words(self) -> None:
        """A table with a line for each C, a column for each gamma, and what was chosen."""
        scores = self.results["mean_test_score"].reshape([len(values) for values in self.grid.values()])
        chosen = self.results["params"][self.index]
        gammas = self.grid.get("gamma", [])
        headings = [f"gamma {gamma:.3g}" for gamma in gammas] or ["mean"]
        rows = [
            (f"{C:.4g}", *(f"{100 * score:.2f} %" for score in line))
            for C, line in zip(self.grid["C"], scores.reshape(len(self.grid["C"]), -1), strict=True)
        ]
        print_table(f"Accuracy on held-out rows, {self.folds} folds", ("C", *headings), rows)
        values = some([f"{name} = {value:.4g}" for name, value in chosen.items()])
        score = 100 * float(self.results["mean_test_score"][self.index])
        typer.echo(f"{values}: {score:.2f} % of the held-out rows are right.")
