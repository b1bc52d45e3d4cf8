# SPDX-License-Identifier: BSD-3-Clause
"""C and gamma of a kernel, chosen together by cross-validation."""

from __future__ import annotations

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
        from sklearn.model_selection import GridSearchCV, StratifiedKFold

        low, high = self.low or _LOW, self.high or _HIGH
        if not 0.0 < low <= high < float("inf"):
            raise Failure(
                "--low and --high must be finite numbers above 0, the first not above the second. Got "
                f"{low:g} and {high:g} instead."
            )
        grid: dict[str, Any] = {"C": np.geomspace(low, high, self.values or _VALUES)}
        if self.kernel["kernel"] != "linear":
            grid["gamma"] = self._gammas(X)
        fits = (self.folds * len(grid["C"]) * len(grid.get("gamma", [0]))) + 1
        if self.max_time is not None:
            estimator.set_params(max_time=self.max_time / fits)
        cv = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        bars.waiting(f"choosing C and gamma, {fits} fits")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # how the model of all rows ended is said in words later
            search = GridSearchCV(estimator, grid, cv=cv).fit(X, y)
        return Found(search.best_estimator_, search.cv_results_, search.best_index_, grid, self.folds)

    def _gammas(self, X: Any) -> Any:
        """Values on a logarithmic scale around the one asked for."""
        import numpy as np

        from maxmargin.estimators.named_kernels import find_gamma

        middle = find_gamma(self.kernel.get("gamma", "scale"), X, np.ones(X.shape[0]))
        count = self.gammas or _GAMMAS
        return middle * np.geomspace(1 / _FURTHEST, _FURTHEST, count) if count > 1 else np.array([middle])


@dataclass(frozen=True)
class Found:
    """How C and gamma were chosen."""

    best: Any
    """The model of all rows."""
    results: dict[str, Any]
    """Of scikit-learn's GridSearchCV."""
    index: int
    grid: dict[str, Any]
    folds: int

    @property
    def doubts(self) -> list[str]:
        """Which of the two is at an end of its values, if the others are worse."""
        scores = self.results["mean_test_score"]
        if scores.min() == scores.max():
            return []
        cures = {"C": ("--low", "--high"), "gamma": ("--gamma", "--gamma")}
        sentences = []
        for name, values in self.grid.items():
            value = self.results["params"][self.index][name]
            for end, word, cure in zip((values[0], values[-1]), ("less", "more"), cures[name], strict=True):
                if value == end and len(values) > 1:
                    sentences.append(
                        f"{name} = {value:.4g} is at the end of the grid: {word} may be better still. "
                        f"Change {cure}."
                    )
        return sentences

    def as_json(self) -> dict[str, Any]:
        """One object."""
        results = self.results
        return {
            **{name: float(value) for name, value in results["params"][self.index].items()},
            "score": float(results["mean_test_score"][self.index]),
            "folds": self.folds,
            "values": [
                {**params, "mean_score": mean, "std_score": std}
                for params, mean, std in zip(
                    results["params"], results["mean_test_score"], results["std_test_score"], strict=True
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
