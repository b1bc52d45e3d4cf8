# SPDX-License-Identifier: BSD-3-Clause
"""What ``SVCCV`` and ``SVRCV`` share: every value of C, gamma and the like in every fold, and the choice.

    1  for every gamma:  the values of the kernel on all rows, where the memory has room for them
    2      for every epsilon, of regressions, and every C, upwards:
    3          fit all folds, the held-out rows at weight 0, each from its multipliers of an earlier fit
    4          score the held-out rows
    5  the values of the best mean score:  fit all rows

All fits of a gamma read the same rows and the same values: a fold is a vector of weights.
"""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight

from maxmargin.core import Budget
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.answers_by_best import AnswersByBest
from maxmargin.estimators.certified import check_solver
from maxmargin.estimators.folds import SAME_MEAN, Fold
from maxmargin.estimators.named_kernels import KernelParameters, find_gamma, is_function
from maxmargin.estimators.reading import here
from maxmargin.estimators.tried_values import how_many, listed, tried_values
from maxmargin.problem.rows import in_numpy
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import each_of
from maxmargin.solvers import sizes
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import check_options, wrong
from maxmargin.types import Vector

_OWN = ("Cs", "gammas", "epsilons", "cv", "scoring", "refit")
"""The parameters that the model of all rows does not have."""
_FURTHEST = 100.0
"""How far, as a factor, gamma goes below and above that of "scale", where only a number is asked for."""
_CURE_OF_GAMMAS = "Give some values of gamma, each above 0, or how many of them to try."
WITHOUT_GAMMA = ("linear", "precomputed")


@dataclass
class Outcome:
    """What became of one fold at one point of the grid."""

    score: float
    relative_gap: float
    seconds: float


class Line(Protocol):
    """All folds at one gamma, to be fitted at one point after the other."""

    doubt: str
    """What is to be warned of the kernel, if anything."""

    def fit(self, point: dict[str, float], seconds: float) -> NDArray[Any]:
        """The ``Outcome`` of every fold."""


@dataclass(eq=False, repr=False, kw_only=True)
class KernelSearch(AnswersByBest, KernelParameters):
    """A kernel machine whose C, gamma and the like are chosen by cross-validation."""

    Cs: int | ArrayLike = 10
    gammas: int | ArrayLike = 5
    cv: Any = None
    scoring: str | Callable[..., Any] | None = None
    refit: takes.Flag = True

    _machine: ClassVar[type[Any]]
    """What is fitted on all rows at the end."""
    _orders_of_C: ClassVar[tuple[float, float]] = (-2.0, 4.0)
    """The powers of ten between which C is tried, where only a number is asked for."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._template().__sklearn_tags__().input_tags
        return tags

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit every fold at every point of the grid until the relative gap is at most ``tol``, and choose.

        X, y, sample_weight : as in the machine of one point, but no weight may be negative. As in
        ``GridSearchCV``, weights are for the fits: scores count every held-out row once.
        """
        self._check_parameters()
        X = here(self, X)
        template = self._template()
        y, sample_weight = in_numpy(y, sample_weight)
        X, targets = template._checked_data(X, y)
        weights = _check_sample_weight(sample_weight, targets, dtype=np.float64, ensure_non_negative=True)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(template, name):
                setattr(self, name, getattr(template, name))
        places = np.arange(len(targets))
        splits = list(check_cv(self.cv, targets, classifier=is_classifier(self)).split(places, targets))
        if not splits:
            cure = "None takes 5 folds, an int as many as it says."
            raise wrong(self, "cv", self.cv, "None, an int, or at least one split into rows", cure)
        folds = self._folds(splits, X, targets, weights)
        self.n_splits_ = len(folds)
        axes = self._axes(X, targets, weights)
        deadline = math.inf if self.max_time is None else time.monotonic() + self.max_time
        inner = {name: values for name, values in axes.items() if name != "gamma"}
        gammas = axes["gamma"]
        found = np.empty((*map(len, inner.values()), max(1, len(gammas)), len(folds)), object)
        upwards = [np.argsort(values, kind="stable").tolist() for values in inner.values()]
        # C runs fastest, so that a fit begins where the one at the last C ended.
        points = [tuple(reversed(point)) for point in product(*reversed(upwards))]
        doubts = set[str]()
        # Lines whose fits are short are side by side; in others every fit has all threads.
        threads, lines = template._threads(), found.shape[-2]
        workers = min(threads, lines) if self._is_quick(len(targets)) else 1
        budget = Budget(math.inf, threads if workers == 1 else 1)

        def fit_line(place: int, beside: int) -> None:
            if budget.stopped:
                return
            model = template
            if len(gammas):
                model = self._machine(**template.get_params(deep=False) | {"gamma": float(gammas[place])})
            line = self._line(model, X, targets, weights, folds, budget, beside)
            doubts.add(line.doubt)
            rounds = len(points) * math.ceil((lines - place) / beside)
            for number, point in enumerate(points):
                left = (deadline - time.monotonic()) / (rounds - number)
                values = zip(inner.items(), point, strict=True)
                at = {name: float(column[k]) for (name, column), k in values}
                found[(*point, place)] = line.fit(at, max(0.0, left))
                if budget.stopped:
                    break

        with held_back(budget.stop) as interrupts:
            if workers == 1:
                for place in range(lines):
                    fit_line(place, 1)
            else:
                with one_blas_thread(), ThreadPoolExecutor(workers, "maxmargin") as pool:
                    list(pool.map(lambda place: fit_line(place, workers), range(lines)))
        if interrupts.came:
            raise KeyboardInterrupt
        for doubt in filter(None, doubts):
            warnings.warn(doubt, UserWarning, stacklevel=2)
        self._set_results(axes, found)
        if self.refit:
            seconds = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
            self._set_fitted(template, X, targets, sample_weight, seconds)
        self._warn_of(found)
        return self

    @abstractmethod
    def _folds(self, splits: Sequence[Any], X: Any, targets: NDArray[Any], weights: Vector) -> list[Fold]:
        """The folds that scikit-learn's splits stand for."""

    @abstractmethod
    def _axes(self, X: Any, targets: NDArray[Any], weights: Vector) -> dict[str, Vector]:
        """The values of each parameter to choose: C first, gamma last, which may have none."""

    @abstractmethod
    def _line(
        self,
        model: Any,
        X: Any,
        targets: NDArray[Any],
        weights: Vector,
        folds: list[Fold],
        budget: Budget,
        beside: int,
    ) -> Line:
        """All folds of a machine with its gamma; ``beside``: how many lines are fitted side by side."""

    def _is_quick(self, rows: int) -> bool:
        """Whether fits are so short that several gammas are worth being tried side by side."""
        unseen = self.callback is None and not self.verbose and self.max_time is None
        named = isinstance(self.kernel, str) and self.kernel not in WITHOUT_GAMMA
        room = 8e-6 * rows**2 <= sizes.SHARE_OF_CACHE * self.cache_size / 2
        return unseen and named and room and rows <= sizes.QUICK_SHARED_ROWS

    def _template(self) -> Any:
        shared = {name: value for name, value in self.get_params(deep=False).items() if name not in _OWN}
        return self._machine(**shared)

    def _check_parameters(self) -> None:
        """Check the parameters before any data are read."""
        check_solver(self)
        check_options(self)
        self._template()._check_parameters()
        self._values_of_C()
        if how_many(self, "gammas", _CURE_OF_GAMMAS) is None:
            self._listed_gammas()

    def _values_of_C(self, unit: float = 1.0) -> Vector:
        """The values to try; ``unit`` is that of C, where only their number is asked for."""
        return tried_values(self, "Cs", lambda count: unit * np.logspace(*self._orders_of_C, count))

    def _values_of_gamma(self, X: Any, weights: Vector) -> Vector:
        """The values to try; none where the kernel has no gamma, or brings its own."""
        kernel = self.kernel
        if not isinstance(kernel, str) or kernel in WITHOUT_GAMMA:
            return np.empty(0)
        if (count := how_many(self, "gammas", _CURE_OF_GAMMAS)) is not None:
            middle = find_gamma("scale", X, weights)
            return middle * (np.geomspace(1 / _FURTHEST, _FURTHEST, count) if count > 1 else np.ones(1))
        named = [find_gamma(gamma, X, weights) for gamma in self._listed_gammas()]
        return np.array(named, np.float64)

    def _listed_gammas(self) -> list[Any]:
        gammas: Any = self.gammas
        values = list(gammas) if np.iterable(gammas) and not isinstance(gammas, str) else []
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) < len(values):
            named = [value for value in values if isinstance(value, str)]
            if not set(named) <= {"scale", "auto"}:
                raise wrong(
                    self, "gammas", self.gammas, "made of floats, 'scale' and 'auto'", _CURE_OF_GAMMAS
                )
        if numbers or not values:
            listed(self, "gammas", numbers, _CURE_OF_GAMMAS)
        return values

    def _set_results(self, axes: dict[str, Vector], found: NDArray[Any]) -> None:
        """Sets: ``cv_results_``, the chosen values, and what else tells of the choice."""
        flat = found.reshape(-1, self.n_splits_)
        seconds = np.array([[at.seconds for at in line] for line in flat])
        scores = np.array([[at.score for at in line] for line in flat])
        gaps = np.array([[at.relative_gap for at in line] for line in flat])
        chosen = {name: column for name, column in axes.items() if len(column)}
        columns = np.meshgrid(*chosen.values(), indexing="ij")
        values = {name: column.ravel() for name, column in zip(chosen, columns, strict=True)}
        mean = scores.mean(axis=1)
        compared = np.where(np.isnan(mean), -np.inf, mean)
        results: dict[str, Any] = {
            "mean_fit_time": seconds.mean(axis=1),
            "std_fit_time": seconds.std(axis=1),
            "mean_score_time": np.zeros(len(mean)),
            "std_score_time": np.zeros(len(mean)),
            "params": [
                {name: float(column[k]) for name, column in values.items()} for k in range(len(mean))
            ],
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": np.array([1 + np.sum(compared > one) for one in compared], np.int32),
            "max_relative_gap": gaps.max(axis=1),
        }
        for name, column in values.items():
            results[f"param_{name}"] = np.ma.MaskedArray(column, mask=np.zeros(len(mean), bool))
        for i in range(self.n_splits_):
            results[f"split{i}_test_score"], results[f"split{i}_relative_gap"] = scores[:, i], gaps[:, i]
        self.cv_results_ = results
        for name, column in axes.items():
            setattr(self, f"{name}s_", column)
        best = np.flatnonzero(compared >= compared.max() - SAME_MEAN)
        self.best_index_ = int(best[np.lexsort([column[best] for column in self._preferred(values)])[0]])
        self.best_score_ = float(mean[self.best_index_])
        self.best_params_ = results["params"][self.best_index_]
        for name in axes:
            setattr(self, f"{name}_", self.best_params_.get(name))

    def _preferred(self, values: dict[str, Vector]) -> list[Vector]:
        """By what points of equal scores are ordered; the last counts most."""
        return [values[name] for name in ("gamma", "C") if name in values]

    def _set_fitted(
        self, template: Any, X: Any, targets: NDArray[Any], sample_weight: Any, seconds: float | None
    ) -> None:
        """Sets: ``best_estimator_`` and what it has of its own."""
        best = self._machine(**template.get_params(deep=False) | self.best_params_ | {"max_time": seconds})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # how it ended is said below, of all fits together
            best.fit(X, targets, sample_weight)
        best.set_params(max_time=None)
        self._become(best)

    def _warn_of(self, found: NDArray[Any]) -> None:
        gaps = np.array([at.relative_gap for at in found.ravel()])
        parts = []
        if (short := gaps > self.tol).any():
            parts.append(
                f"{np.count_nonzero(short)} of {len(gaps)} fits of folds are not within tol = "
                f"{self.tol:.1e}, and their scores may be off: the largest relative gap is "
                f"{gaps.max():.1e}. Raise max_time or max_iter, loosen tol, or leave out large values of C."
            )
        if self.refit and not self.status_.certified:
            steps, gap = (
                int(np.max(self.n_iter_)),
                max(at.relative_gap for at in each_of(self.certificate_)),
            )
            sentence = self.status_.sentence(gap, self.tol, steps)
            parts.append(f"The model of all rows: {sentence}")
        if parts:
            warnings.warn(" ".join(parts), ConvergenceWarning, stacklevel=3)


def best_factor(proof: Certificate, total: float, most: float) -> float:
    """What makes the most of the multipliers of a proof, as a factor, in a problem with other costs.

    ``D(t alpha) = t s - t^2 q / 2`` with the linear part s of the dual, the ``total``, and
    ``q = |w(alpha)|^2``, which the dual value tells; t may be anything from 0 to ``most``, the ratio of C.
    """
    squared_length = 2.0 * max(total - proof.dual, 0.0)
    best = total / squared_length if squared_length > 0.0 else math.inf
    return max(0.0, min(best, most))


class HeldOutScorer(ABC):
    """Scores the held-out rows of a fold: by answers alone, unless a function asks for the model."""

    def __init__(self, template: Any, scoring: Any, X: Any, targets: NDArray[Any]) -> None:
        self.template, self.X, self.targets = template, X, targets
        self.scoring = check_scoring(template, scoring) if isinstance(scoring, str) else scoring
        self.by_answers = scoring is None or type(self.scoring).__module__.startswith("sklearn.metrics")
        """Whether the function does not ask for the model."""

    def __call__(self, problem: Any, found: Any, held_out: NDArray[Any]) -> float:
        """The score of the rows that are held out."""
        if self.by_answers:
            return self.of_answers(self._answers(problem, found, held_out), held_out)
        targets = self.targets[held_out]
        model = self._model(problem, found)
        if not is_function(model.kernel):
            model.n_features_in_ = self.X.shape[1]
        return float(self.scoring(model, self.X[held_out], targets))

    def of_answers(self, answers: Any, held_out: NDArray[Any]) -> float:
        """The score of an estimator that knows what is predicted for the rows that are held out."""
        value = answers.score if self.scoring is None else partial(self.scoring, answers)
        return float(value(held_out, self.targets[held_out]))

    @abstractmethod
    def _answers(self, problem: Any, found: Any, held_out: NDArray[Any]) -> Any:
        """An estimator that knows what is predicted for these rows, and nothing else."""

    @abstractmethod
    def _model(self, problem: Any, found: Any) -> Any:
        """The fitted estimator."""
