# SPDX-License-Identifier: BSD-3-Clause
"""The kernel classifier that chooses C and gamma by cross-validation.

    1  for every gamma:  the values of the kernel on all rows, where the memory has room for them
    2      for every C, upwards:
    3          fit all folds, the held-out rows at weight 0, each from its multipliers at the last C
    4          score the held-out rows
    5  the C and gamma of the best mean score:  fit all rows

All fits of a gamma read the same rows and the same values: a fold is a vector of weights.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from maxmargin.core import Budget
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.certified import ShowsProof, check_solver
from maxmargin.estimators.folds import SAME_MEAN, Data, Fold, make_folds
from maxmargin.estimators.held_out import scores_of
from maxmargin.estimators.named_kernels import find_gamma, is_function
from maxmargin.estimators.reading import labels_and_codes
from maxmargin.estimators.svc import SVC
from maxmargin.problem.rows import Matrix
from maxmargin.proof.model import Models, each_of
from maxmargin.reductions.class_problems import Decomposition, KernelProblems
from maxmargin.reductions.ladders import KernelFit
from maxmargin.solvers import AnySolver, sizes
from maxmargin.solving.loop import Callback
from maxmargin.tools.interrupts import held_back
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import AnyNumber, Natural, check_options, wrong
from maxmargin.types import Vector

_OWN = ("Cs", "gammas", "cv", "scoring", "refit")
_FURTHEST = 100.0
"""How far, as a factor, gamma goes below and above that of "scale", where only a number is asked for."""
_WITHOUT_GAMMA = ("linear", "precomputed")


@dataclass
class _Outcome:
    """What became of one fold at one C and gamma."""

    score: float
    relative_gap: float
    seconds: float


@dataclass(eq=False, repr=False, kw_only=True)
class SVCCV(ClassifierMixin, ShowsProof):
    """Support vector classification with C and gamma chosen by cross-validation; every fit is certified.

    The parameters of ``SVC`` but for C, gamma and warm_start mean what they mean there, and these are
    added. All fits of a gamma share the rows and, up to ``cache_size / 2``, the values of the kernel, and
    every fold begins at its multipliers of the last C.

    Parameters
    ----------
    Cs : int or array
        The values of C to choose from, or how many of them, on a logarithmic scale from 1e-2 to 1e4.
    gammas : int or array
        The values of gamma, of which "scale" and "auto" may be some; or how many of them, on a logarithmic
        scale around that of "scale" on all rows, from a hundredth to a hundred times. Kernels without gamma
        (linear, precomputed, functions, objects of ``maxmargin.kernels``) have none to choose.
    cv : int, splitter, iterable or None
        The folds, as scikit-learn has them; None: 5, stratified.
    scoring : str, callable or None
        What the held-out rows are scored by; None: accuracy.
    refit : bool
        Whether to be the model of all rows at the chosen values afterwards.
    max_time : float or None
        Seconds for all fits together.
    callback : callable or None
        As in ``SVC``, from every fit.

    Attributes
    ----------
    C_, gamma_ : float
        The chosen values: of equal scores the smallest C, and of these the smallest gamma. ``gamma_`` is
        None where the kernel has no gamma to choose.
    Cs_, gammas_ : ndarray
        The values they were chosen from.
    cv_results_ : dict
        In the form of ``GridSearchCV``, and for every fit the certified ``split<i>_relative_gap``; the
        largest of all folds is ``max_relative_gap``.
    best_score_ : float
        The mean score of the chosen values.
    best_params_ : dict
        They, by their names.
    best_index_ : int
        Their place in ``cv_results_``.
    best_estimator_ : SVC
        Fitted on all rows at the chosen values, as are the attributes of ``SVC``, which are here as well.
        Only with ``refit=True``.

    Ctrl-C ends the fit without a model: nothing is chosen yet.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0]).fit(X, y)
    >>> model.best_params_
    {'C': 1.0, 'gamma': 0.1}
    """

    Cs: int | ArrayLike = 10
    gammas: int | ArrayLike = 5
    kernel: Any = "rbf"
    degree: Natural = 3
    coef0: AnyNumber = 0.0
    shrinking: takes.Flag = True
    probability: takes.Probability = False
    tol: takes.Tolerance = 1e-3
    cache_size: takes.Megabytes = 1000.0
    class_weight: takes.ClassWeight = None
    verbose: takes.Verbose = 0
    max_iter: takes.Steps = -1
    decision_function_shape: Annotated[str, Literal["ovr", "ovo"]] = "ovr"
    break_ties: takes.Flag = False
    random_state: takes.RandomState = None
    multi_class: Annotated[str, Literal["ovr", "ovo"]] = "ovo"
    solver: str | AnySolver = "auto"
    max_time: takes.Seconds = None
    callback: Callback | None = None
    n_jobs: takes.Jobs = None
    cv: Any = None
    scoring: str | Callable[..., Any] | None = None
    refit: takes.Flag = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._template().__sklearn_tags__().input_tags
        return tags

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit every fold at every C and gamma until the relative gap is at most ``tol``, and choose.

        X, y, sample_weight : as in ``SVC``, but no weight may be negative. As in ``GridSearchCV``, weights
        are for the fits: scores count every held-out row once.
        """
        self._check_parameters()
        template = self._template()
        X, targets = template._checked_data(X, y)
        labels, codes = labels_and_codes(targets)
        weights = _check_sample_weight(sample_weight, targets, dtype=np.float64, ensure_non_negative=True)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(template, name):
                setattr(self, name, getattr(template, name))
        splits = list(check_cv(self.cv, targets, classifier=True).split(codes, targets))
        if not splits:
            cure = "None takes 5 stratified folds, an int as many as it says."
            raise wrong(self, "cv", self.cv, "None, an int, or at least one split into rows", cure)
        folds = make_folds(splits, Data(X, targets, weights))
        self.n_splits_ = len(folds)
        Cs, gammas = self._values_of_C(), self._values_of_gamma(X, weights)
        deadline = math.inf if self.max_time is None else time.monotonic() + self.max_time
        score = _Scorer(template, self.scoring, X, targets)
        found = np.empty((len(Cs), max(1, len(gammas)), len(folds)), object)
        upwards, doubts = np.argsort(Cs, kind="stable").tolist(), set[str]()
        # Lines whose fits are short are side by side; in others every fit has all threads.
        threads = template._threads()
        workers = min(threads, found.shape[1]) if self._is_quick(len(codes)) else 1
        budget = Budget(math.inf, threads if workers == 1 else 1)

        def fit_line(place: int, beside: int) -> None:
            if budget.stopped:
                return
            model = template._at_gamma(float(gammas[place])) if len(gammas) else template
            problems, doubt = model._problems(X, labels, codes, weights, shared=True)
            doubts.add(doubt)
            line = _Line(model, problems, folds, score, budget, beside)
            rounds = len(upwards) * math.ceil((found.shape[1] - place) / beside)
            for number, k in enumerate(upwards):
                left = (deadline - time.monotonic()) / (rounds - number)
                found[k, place] = line.fit(float(Cs[k]), max(0.0, left))
                if budget.stopped:
                    break

        with held_back(budget.stop) as interrupts:
            if workers == 1:
                for place in range(found.shape[1]):
                    fit_line(place, 1)
            else:
                with one_blas_thread(), ThreadPoolExecutor(workers, "maxmargin") as pool:
                    list(pool.map(lambda place: fit_line(place, workers), range(found.shape[1])))
        if interrupts.came:
            raise KeyboardInterrupt
        for doubt in filter(None, doubts):
            warnings.warn(doubt, UserWarning, stacklevel=2)
        self._set_results(Cs, gammas, found)
        if self.refit:
            seconds = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
            self._set_fitted(template, X, targets, sample_weight, seconds)
        self._warn_of(found)
        return self

    def _is_quick(self, rows: int) -> bool:
        """Whether fits are so short that several gammas are worth being tried side by side."""
        unseen = self.callback is None and not self.verbose and self.max_time is None
        named = isinstance(self.kernel, str) and self.kernel not in _WITHOUT_GAMMA
        room = 8e-6 * rows**2 <= sizes.SHARE_OF_CACHE * self.cache_size / 2
        return unseen and named and room and rows <= sizes.QUICK_SHARED_ROWS

    def _template(self) -> SVC:
        shared = {name: value for name, value in self.get_params(deep=False).items() if name not in _OWN}
        return SVC(**shared)

    def _check_parameters(self) -> None:
        """Check the parameters before any data are read."""
        check_solver(self)
        check_options(self)
        self._template()._check_parameters()
        self._values_of_C()
        if not isinstance(self.gammas, int | np.integer):
            self._listed_gammas()

    def _values_of_C(self) -> Vector:
        cure = "Give some values of C, each above 0, or how many of them to try."
        if isinstance(self.Cs, int | np.integer) and not isinstance(self.Cs, bool):
            if self.Cs < 1:
                raise wrong(self, "Cs", self.Cs, "an int in the range [1, inf)", cure)
            return np.logspace(-2.0, 4.0, int(self.Cs))
        return self._positive("Cs", self.Cs, cure)

    def _values_of_gamma(self, X: Any, weights: Vector) -> Vector:
        """The values to try; none where the kernel has no gamma, or brings its own."""
        kernel = self.kernel
        if not isinstance(kernel, str) or kernel in _WITHOUT_GAMMA:
            return np.empty(0)
        if isinstance(self.gammas, int | np.integer):
            middle, count = find_gamma("scale", X, weights), int(self.gammas)
            return middle * (np.geomspace(1 / _FURTHEST, _FURTHEST, count) if count > 1 else np.ones(1))
        named = [find_gamma(gamma, X, weights) for gamma in self._listed_gammas()]
        return np.array(named, np.float64)

    def _listed_gammas(self) -> list[Any]:
        cure = "Give some values of gamma, each above 0, or how many of them to try."
        gammas: Any = self.gammas
        values = list(gammas) if np.iterable(gammas) and not isinstance(gammas, str) else []
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) < len(values):
            named = [value for value in values if isinstance(value, str)]
            if not set(named) <= {"scale", "auto"}:
                raise wrong(self, "gammas", self.gammas, "made of floats, 'scale' and 'auto'", cure)
        if numbers or not values:
            self._positive("gammas", numbers, cure)
        return values

    def _positive(self, name: str, given: Any, cure: str) -> Vector:
        try:
            values = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.ndim != 1 or not len(values) or not np.all(np.isfinite(values) & (values > 0)):
            words = "an int or a list of floats in the range (0, inf)"
            raise wrong(self, name, getattr(self, name), words, cure)
        return values

    def _set_results(self, Cs: Vector, gammas: Vector, found: NDArray[Any]) -> None:
        """Sets: ``cv_results_``, ``C_``, ``gamma_`` and what else tells of the choice."""
        flat = found.reshape(-1, self.n_splits_)
        seconds = np.array([[at.seconds for at in line] for line in flat])
        scores = np.array([[at.score for at in line] for line in flat])
        gaps = np.array([[at.relative_gap for at in line] for line in flat])
        values = {"C": np.repeat(Cs, max(1, len(gammas)))}
        if len(gammas):
            values["gamma"] = np.tile(gammas, len(Cs))
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
        self.cv_results_, self.Cs_, self.gammas_ = results, Cs, gammas
        best = np.flatnonzero(compared >= compared.max() - SAME_MEAN)
        keys = [values["gamma"][best], values["C"][best]] if len(gammas) else [values["C"][best]]
        self.best_index_ = int(best[np.lexsort(keys)[0]])
        self.best_score_ = float(mean[self.best_index_])
        self.best_params_ = results["params"][self.best_index_]
        self.C_, self.gamma_ = self.best_params_["C"], self.best_params_.get("gamma")

    def _set_fitted(
        self, template: SVC, X: Any, targets: NDArray[Any], sample_weight: Any, seconds: float | None
    ) -> None:
        """Sets: ``best_estimator_`` and what ``SVC`` sets, which are its."""
        best = SVC(**template.get_params(deep=False) | self.best_params_ | {"max_time": seconds})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # how it ended is said below, of all fits together
            best.fit(X, targets, sample_weight)
        best.set_params(max_time=None)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(best, name, getattr(self, name))
        self.best_estimator_ = best
        fitted = {name: value for name, value in vars(best).items() if name.endswith("_")}
        self.__dict__.update(fitted, _stated_problem=best._stated_problem)

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

    def _best(self) -> SVC:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def decision_function(self, X: Any) -> Any:
        """The scores of ``best_estimator_``."""
        return self._best().decision_function(X)

    def decision_bounds(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(low, high): the best model at the chosen values gives each row a score between the two."""
        return self._best().decision_bounds(X)

    def is_sure(self, X: Any) -> NDArray[np.bool_]:
        """Whether the class of each row is that of the best model at the chosen values."""
        return self._best().is_sure(X)

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        return self._best().predict(X)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The score by ``scoring``; the accuracy if that is None."""
        if self.scoring is None:
            return float(super().score(X, y, sample_weight=sample_weight))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(check_scoring(self, self.scoring)(self, X, y, **weights))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        data: tuple[Any, Any] | str | None = None,
        proof: bool = True,
        format: Literal["maxmargin", "liblinear", "libsvm"] = "maxmargin",
    ) -> None:
        """Write ``best_estimator_`` to a file; ``SVC.load`` reads it."""
        self._best().save(path, data=data, proof=proof, format=format)

    def report(
        self, path: str | os.PathLike[str], X: Any, y: ArrayLike, *, test: tuple[Any, Any] | None = None
    ) -> None:
        """Write a page about ``best_estimator_``, as ``SVC.report`` does."""
        self._best().report(path, X, y, test=test)


class _Line:
    """All folds at one gamma, to be fitted at one C after the other."""

    def __init__(
        self,
        model: SVC,
        problems: KernelProblems,
        folds: Sequence[Fold],
        score: _Scorer,
        budget: Budget,
        beside: int,
    ) -> None:
        self.problems, self.folds, self.score, self.budget = problems, folds, score, budget
        self.running = model._running(problems)
        if beside > 1:
            self.running = replace(self.running, threads=lambda: 1)
        _ = self.running.seed
        self.options: dict[str, Any] = {
            "cache_size": float(model.cache_size),
            "shrinking": bool(model.shrinking),
        }
        self.last: list[Models] | None = None
        self.last_C = math.inf

    def fit(self, C: float, seconds: float) -> NDArray[Any]:
        """The outcome of every fold."""
        parts = [self.problems.with_costs(fold.weights, C) for fold in self.folds]
        running = replace(self.running, seconds=seconds / len(self.folds))
        fits = [
            KernelFit(part, running, warm=False, starts=self._start(number, C), **self.options)
            for number, part in enumerate(parts)
        ]
        found, last = np.empty(len(fits), object), list[Models]()
        before = time.perf_counter()
        together = KernelFit.solve_together(fits, self.budget, sizes.QUICK_SHARED_ROWS)
        for number, (fold, part, models) in enumerate(zip(self.folds, parts, together, strict=False)):
            if self.budget.stopped:
                break
            value = self.score(part, models, fold.held_out)
            now = time.perf_counter()
            found[number] = _Outcome(value, float(models.relative_gaps.max()), now - before)
            before = now
            last.append(models)
        self.last, self.last_C = last, C
        return found

    def _start(self, number: int, C: float) -> list[Vector] | None:
        """The multipliers of a fold at the last C, times what makes the most of them at this one.

        ``D(t alpha) = t s - t^2 q / 2`` with the sum s of the multipliers and ``q = |w(alpha)|^2``, which
        the dual value tells; t may be anything from 0 to the ratio of the two C.
        """
        if self.last is None:
            return None
        starts = []
        for proof in self.last[number].certificates:
            total = float(proof.alpha.sum())
            squared_length = 2.0 * max(total - proof.dual, 0.0)
            best = total / squared_length if squared_length > 0.0 else math.inf
            starts.append(min(best, C / self.last_C) * proof.alpha)
        return starts


class _Scorer:
    """Scores the held-out rows of a fold: by their scores alone, unless a function asks for the model."""

    def __init__(self, template: SVC, scoring: Any, X: Any, targets: NDArray[Any]) -> None:
        self.template, self.X, self.targets = template, X, targets
        self.scoring = check_scoring(template, scoring) if isinstance(scoring, str) else scoring
        self.by_scores = scoring is None or type(self.scoring).__module__.startswith("sklearn.metrics")

    def __call__(self, problems: KernelProblems, models: Models, held_out: NDArray[Any]) -> float:
        targets = self.targets[held_out]
        if not self.by_scores:
            assert self.scoring is not None
            model = SVC(**self.template.get_params(deep=False))
            model._set_fitted(problems, self.X, models)
            if not is_function(model.kernel):
                model.n_features_in_ = self.X.shape[1]
            return float(self.scoring(model, self.X[held_out], targets))
        scores = scores_of(problems, models, held_out)
        answers = _Answers(problems.labels, scores, problems.kind, bool(self.template.break_ties))
        if self.scoring is None:
            return float(np.mean(answers.predict(None) == targets))
        return float(self.scoring(answers, held_out, targets))


class _Answers(ClassifierMixin, BaseEstimator):
    """A classifier whose scores of the rows in question are known already."""

    def __init__(
        self, classes: NDArray[Any], scores: Matrix, kind: Decomposition, break_ties: bool
    ) -> None:
        self.classes_, self.scores, self.kind, self.break_ties = classes, scores, kind, break_ties

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        scores = self.kind.class_scores(self.scores)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        if self.break_ties and len(self.kind) > 1:
            places = self.kind.class_scores(self.scores).argmax(axis=1)
        else:
            places = self.kind.decide(self.scores)
        return np.asarray(self.classes_.take(places))
