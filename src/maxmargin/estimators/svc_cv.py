# SPDX-License-Identifier: BSD-3-Clause
"""The kernel classifier that chooses C and gamma by cross-validation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from maxmargin.core import Budget
from maxmargin.estimators import parameter_types as takes
from maxmargin.estimators.answers_by_best import ClassifiesByBest
from maxmargin.estimators.folds import Data, Fold, make_folds
from maxmargin.estimators.held_out import scores_along, scores_of
from maxmargin.estimators.kernel_search import HeldOutScorer, KernelSearch, Line, Outcome, best_factor
from maxmargin.estimators.reading import labels_and_codes
from maxmargin.estimators.svc import SVC
from maxmargin.problem.rows import Matrix
from maxmargin.proof.model import Models
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import KernelProblems
from maxmargin.reductions.decompositions import Decomposition
from maxmargin.reductions.kernel_fit import KernelFit
from maxmargin.reductions.small_problems import AlongCosts
from maxmargin.solvers import sizes
from maxmargin.types import Vector


@dataclass(eq=False, repr=False, kw_only=True)
class SVCCV(ClassifiesByBest, ClassifierMixin, KernelSearch):
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

    probability: takes.Probability = False
    class_weight: takes.ClassWeight = None
    decision_function_shape: Annotated[str, Literal["ovr", "ovo"]] = "ovr"
    break_ties: takes.Flag = False
    multi_class: Annotated[str, Literal["ovr", "ovo"]] = "ovo"
    _machine: ClassVar[type[Any]] = SVC

    def _folds(self, splits: Sequence[Any], X: Any, targets: NDArray[Any], weights: Vector) -> list[Fold]:
        return make_folds(splits, Data(X, targets, weights))

    def _axes(self, X: Any, targets: NDArray[Any], weights: Vector) -> dict[str, Vector]:
        return {"C": self._values_of_C(), "gamma": self._values_of_gamma(X, weights)}

    def _line(
        self,
        model: SVC,
        X: Any,
        targets: NDArray[Any],
        weights: Vector,
        folds: list[Fold],
        budget: Budget,
        beside: int,
    ) -> Line:
        problems, doubt = model._problems(X, *labels_and_codes(targets), weights, shared=True)
        score = _Scorer(model, self.scoring, X, targets)
        Cs = np.sort(self._values_of_C())
        return _Line(model, problems, folds, score, budget, beside, doubt, Cs)


class _Line:
    """All folds at one gamma, to be fitted at one C after the other.

    Where fits are short, one call makes those of all folds at every C. What it leaves, and what takes
    longer, is fitted C by C.
    """

    def __init__(
        self,
        model: SVC,
        problems: KernelProblems,
        folds: Sequence[Fold],
        score: _Scorer,
        budget: Budget,
        beside: int,
        doubt: str,
        Cs: Vector,
    ) -> None:
        self.doubt, self.Cs = doubt, Cs
        self.problems, self.folds, self.score, self.budget = problems, folds, score, budget
        self.running = model._running(problems)
        if beside > 1:
            self.running = replace(self.running, threads=lambda: 1)
        _ = self.running.seed
        self.options: dict[str, Any] = {
            "cache_size": float(model.cache_size),
            "shrinking": bool(model.shrinking),
        }
        self.signs = [problems.part(k).y for k in range(len(problems))]
        self.last: list[Models] | None = None
        self.last_C = math.inf
        self.along = self._along_costs()
        self.proven = 0 if self.along is None else self.along.proven
        """At how many values of C all folds are fitted and proven already."""
        self.number = 0
        """Of the next C."""

    def _along_costs(self) -> AlongCosts | None:
        """All folds at every C in one call, as far as that comes; None where fits are not so short."""
        largest = [self._fit_of(fold, float(self.Cs[-1])) for fold in self.folds]
        units = [self.problems.with_costs(fold.weights, 1.0).in_a_row().costs for fold in self.folds]
        return largest[0].along_costs(np.array(units), self.Cs, self.budget)

    def _fit_of(
        self, fold: Fold, C: float, seconds: float = math.inf, starts: list[Solution] | None = None
    ) -> KernelFit:
        part = self.problems.with_costs(fold.weights, C)
        running = replace(self.running, seconds=min(seconds, self.running.seconds))
        return KernelFit(part, running, warm=False, starts=starts, **self.options)

    def fit(self, point: dict[str, float], seconds: float) -> NDArray[Any]:
        """The outcome of every fold."""
        C, number = point["C"], self.number
        self.number += 1
        if number < self.proven:
            return self._known(number, C)
        if self.along is not None and 0 < number == self.proven:
            self.last = [self.along.models(number - 1, line) for line in range(len(self.folds))]
            self.last_C = float(self.Cs[number - 1])
            self.along = None
        fits = [
            self._fit_of(fold, C, seconds / len(self.folds), self._start(k, C))
            for k, fold in enumerate(self.folds)
        ]
        found, last = np.empty(len(fits), object), list[Models]()
        before = time.perf_counter()
        together = KernelFit.solve_together(fits, self.budget, sizes.QUICK_SHARED_ROWS)
        for k, (fold, fit, models) in enumerate(zip(self.folds, fits, together, strict=False)):
            if self.budget.stopped:
                break
            value = self.score(fit.problems, models, fold.held_out)
            now = time.perf_counter()
            found[k] = Outcome(value, float(models.relative_gaps.max()), now - before)
            before = now
            last.append(models)
        self.last, self.last_C = last, C
        return found

    def _known(self, number: int, C: float) -> NDArray[Any]:
        """The outcome of every fold at a C that is proven."""
        assert self.along is not None
        found = np.empty(len(self.folds), object)
        for line, fold in enumerate(self.folds):
            if self.score.by_answers:
                answers = self.score.answers_of(self.problems, self._scores[line][number])
                value = self.score.of_answers(answers, fold.held_out)
            else:
                part = self.problems.with_costs(fold.weights, C)
                value = self.score(part, self.along.models(number, line), fold.held_out)
            found[line] = Outcome(value, self.along.largest_gap(number, line), self.along.seconds)
        return found

    @cached_property
    def _scores(self) -> list[NDArray[Any]]:
        """Of the rows that each fold holds out, at every C that is proven."""
        assert self.along is not None
        return [
            scores_along(self.problems, self.along, line, fold.held_out)
            for line, fold in enumerate(self.folds)
        ]

    def _start(self, number: int, C: float) -> list[Solution] | None:
        """The multipliers of a fold at the last C, times what makes the most of them at this one."""
        if self.last is None:
            return None
        starts = []
        for k, proof in enumerate(self.last[number].certificates):
            factor = best_factor(proof, float(proof.alpha.sum()), C / self.last_C)
            margins = None
            if self.problems.nu is None and np.array_equal(proof.w, proof.w_of_alpha):
                margins = factor * (proof.margins - self.signs[k] * proof.b)
            starts.append(Solution(alpha=factor * proof.alpha, margins=margins))
        return starts


class _Scorer(HeldOutScorer):
    """Knows the scores of all problems of a fold."""

    def _answers(self, problem: KernelProblems, found: Models, held_out: NDArray[Any]) -> _Answers:
        return self.answers_of(problem, scores_of(problem, found, held_out))

    def answers_of(self, problem: KernelProblems, scores: Matrix) -> _Answers:
        """An estimator that knows these scores of the rows in question."""
        return _Answers(problem.labels, scores, problem.kind, bool(self.template.break_ties))

    def _model(self, problem: KernelProblems, found: Models) -> SVC:
        model = SVC(**self.template.get_params(deep=False))
        model._set_fitted(problem, self.X, found)
        return model


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

    def score(self, X: Any, y: NDArray[Any]) -> float:
        return float(np.mean(self.predict(X) == y))
