# SPDX-License-Identifier: BSD-3-Clause
"""The fits of a cross-validation: one path of all rows, and one of every fold, on rows they all share.

A fold is a vector of weights, 0 for the rows that are held out: no fit copies any data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from maxmargin import core
from maxmargin.along_costs.other_costs import can_combine, carried_over, combined, start_of
from maxmargin.estimators.linear_svc import LinearSVC
from maxmargin.estimators.reading import card_for, labels_and_codes, rows_on, some_of
from maxmargin.estimators.sureness import accuracy_bounds
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix, Rows, RowSpace
from maxmargin.proof.certificate import Certificate, Off
from maxmargin.proof.model import each_of
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import ClassProblems
from maxmargin.reductions.decompositions import decomposition
from maxmargin.reductions.linear_fit import Begin, linear_tolerance
from maxmargin.solvers.dual_coordinate_ascent import smaller_copy
from maxmargin.solving.ways import Way, find_way
from maxmargin.types import Indices, Vector

CLOSER = 0.01
"""The share of tol that is the goal at the chosen C. Within tol a few held-out rows near the plane may be
on the wrong side of it, and as few decide which score is best."""
_CLOSEST = 1e-12
"""The smallest relative gap that is asked for: below, there is hardly anything but rounding."""
SAME_MEAN = 1e-12
"""Means of accuracies that differ by less are equal but for rounding: one row makes more difference."""


@dataclass
class Data:
    """What all fits share. Rows stay in their process: another one makes its own from X."""

    X: Any
    targets: NDArray[Any]
    weights: Vector
    made: RowSpace | None = field(default=None, repr=False)
    device: str | None = "cpu"
    """Where the rows lie in another process, as the estimators say it."""

    @cached_property
    def classes(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The labels, and the place of every row's label among them."""
        return labels_and_codes(self.targets)

    @property
    def rows(self) -> RowSpace:
        """X, with what every fit needs of it already made."""
        if self.made is None:
            card = card_for(self.device, self.X)
            # validate_data has looked
            self.made = Rows(self.X, check_finite=False) if card is None else rows_on(card, self.X)
            _ = self.made.squared_norms, smaller_copy(self.made)
        return self.made

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"made": None}


@dataclass(frozen=True)
class Fold:
    """Which rows are held out, and what the others weigh."""

    held_out: Indices
    weights: Vector
    """The weight of every row; 0 where it is not trained on."""


@dataclass(frozen=True)
class Outcome:
    """What became of one fold at one C."""

    C: float
    score: float
    fit_seconds: float
    score_seconds: float
    relative_gap: float
    shortfall: str
    bounds: tuple[float, float] = (math.nan, math.nan)
    """The accuracy of the best model of the fold is between these, where they are asked for."""
    model: LinearSVC | None = None
    """The model where this fold has its best score, so that a closer fit need not begin again."""


def make_folds(splits: Sequence[tuple[Any, Any]], data: Data) -> list[Fold]:
    """The folds that scikit-learn's splits stand for; each must train on every class."""
    labels, codes = data.classes
    folds = []
    for i, (trained, held_out) in enumerate(splits):
        times = np.bincount(np.arange(len(codes))[trained], minlength=len(codes))
        weights = times * data.weights
        present = np.bincount(codes, weights > 0, minlength=len(labels)) > 0
        if not present.all():
            missing = labels[~present][0]
            raise ValueError(
                f"Fold {i} of {len(splits)} trains on no row of class {missing!r}, so it cannot tell that "
                "class from the rest. Use fewer folds, stratified ones (cv=StratifiedKFold(...)), or more "
                "rows of the class."
            )
        folds.append(Fold(np.arange(len(codes))[held_out], weights))
    return folds


@dataclass(frozen=True)
class Fits:
    """All fits of a cross-validation that have the same parameters but for C."""

    template: LinearSVC
    data: Data
    scoring: Callable[..., float] | None
    with_bounds: bool = False
    """Whether to bound the accuracy at the optimum of every fold, too."""

    def way_at(self, C: float) -> Way:
        """The way of all fits at one C: that of all rows."""
        problem = self._problems(self.data.weights, C).problem(0)
        tol = linear_tolerance(self.data.rows, float(self.template.tol))
        return find_way(self.template.solver, problem, tol)

    def _problems(self, weights: Vector, C: float) -> ClassProblems:
        model = copy(self.template)
        model.C = C
        return model._problems(self.data.rows, *self.data.classes, weights)

    def _fit(
        self, weights: Vector, C: float, way: Way, begin: Begin | None, deadline: float
    ) -> tuple[LinearSVC, str]:
        seconds = None if deadline == math.inf else max(0.0, deadline - time.perf_counter())
        model = copy(self.template)
        model.C, model.max_time = C, seconds
        shortfall, interrupted = model._fit_problems(self._problems(weights, C), begin=begin, way=way)
        if interrupted:
            raise KeyboardInterrupt
        return model, shortfall

    def path(self, Cs: Vector, ways: list[Way], share: float) -> list[LinearSVC]:
        """All rows at every C, upwards, each from the two before."""
        deadline = time.perf_counter() + share
        models: list[LinearSVC] = []
        for C, way in zip(map(float, Cs), ways, strict=True):
            begin = _from_last(models[-2:], C) if models else None
            models.append(self._fit(self.data.weights, C, way, begin, deadline)[0])
        return models

    def fold(
        self,
        fold: Fold,
        path: list[LinearSVC],
        ways: list[Way],
        share: float,
        known: LinearSVC | None = None,
    ) -> list[Outcome]:
        """One fold at every C of the path; ``known`` is a model of it at a C near the first."""
        deadline = time.perf_counter() + share
        score = _Scorer(self.scoring, self.data, fold.held_out)
        outcomes: list[Outcome] = []
        last = [] if known is None else [known]
        best: LinearSVC | None = None
        best_score = -math.inf
        for of_all, way in zip(path, ways, strict=True):
            before = time.perf_counter()
            model, shortfall = self._fit(fold.weights, of_all.C, way, _from_better(of_all, last), deadline)
            last = [*last[-1:], model]
            between = time.perf_counter()
            value = score(model)
            after = time.perf_counter()
            gap = max(proof.relative_gap for proof in each_of(model.certificate_))
            if value > best_score:
                best, best_score = model, value
            seconds = between - before, after - between
            bounds = accuracy_bounds(model, fold.held_out) if self.with_bounds else Outcome.bounds
            outcomes.append(Outcome(of_all.C, value, *seconds, gap, shortfall, bounds))
        return [replace(at, model=best) if best is not None and at.C == best.C else at for at in outcomes]


def _from_last(last: list[LinearSVC], C: float) -> Begin:
    """Begin with the models of the same rows at one or two other values of C."""
    return lambda k, problem: _carried(last, C, k, problem)


def _carried(last: list[LinearSVC], C: float, k: int, problem: Problem) -> tuple[Solution, Certificate]:
    proofs = [each_of(model.certificate_)[k] for model in last]
    factors = [C / float(model.C) for model in last]
    if len(last) == 2 and factors[0] != factors[1] and can_combine(problem):
        known = combined((proofs[0], proofs[1]), problem, (factors[0], factors[1]))
    else:
        known = carried_over(proofs[-1], problem, factors[-1])
    return start_of(known), known


def _from_better(of_all: LinearSVC, last: list[LinearSVC]) -> Begin:
    """A fold: from the model of all rows at this C or its own at the last two, whichever w is worth more.

    The first is better as long as C makes the difference, the second once the held-out rows do.
    """

    def begin(k: int, problem: Problem) -> tuple[Solution, Certificate]:
        start, known = _without_held_out(each_of(of_all.certificate_)[k], problem)
        if not last:
            return start, known
        own_start, own = _carried(last, float(of_all.C), k, problem)
        return (own_start, own) if own.primal <= known.primal else (start, known)

    return begin


def _without_held_out(proof: Certificate, problem: Problem) -> tuple[Solution, Certificate]:
    """Begin with a certificate of all rows: what it is worth without the held-out ones needs no pass."""
    w, b, margins = proof.w, proof.b, proof.margins
    off = proof.off(problem.rows)
    primal = problem.primal_of(w, b, margins, off[:2])
    nothing, nowhere = np.zeros_like(proof.alpha), np.zeros_like(w)
    derived = Off(*off[:2], 0.0)
    known = Certificate(problem, w, b, primal, nothing, 0.0, proof.alpha_from, margins, nowhere, derived)
    alpha = np.where(problem.costs > 0, proof.alpha, 0.0)
    return Solution(w=w, b=b, alpha=alpha, margins=margins), known


Again = Callable[[int, list[int], float], list[list[Outcome]]]
"""Fits some of the folds at one place to a relative gap, or none of them where no time is left."""


def settle(outcomes: list[list[Outcome]], tol: float, again: Again) -> None:
    """Replace the outcomes of the best C by those of fits within ``CLOSER * tol``, until the best is one.

    ``outcomes`` has a list for every fold, in ascending order of C.
    """
    settled: set[int] = set()
    while (best := best_place([[at.score for at in outcome] for outcome in outcomes])) not in settled:
        settled.add(best)
        rough = [i for i, outcome in enumerate(outcomes) if outcome[best].relative_gap > CLOSER * tol]
        _fit_again(outcomes, best, rough, CLOSER * tol, tol, again)


def refine(outcomes: list[list[Outcome]], tol: float, again: Again) -> None:
    """Tell the values of C that may be the best apart: their folds are fitted closer, and no others.

    It ends where one is proven to be the best, where all that are left are known to the last row, or where
    closer fits gain nothing.
    """
    goal, gained = CLOSER * tol, True
    while gained and goal > _CLOSEST:
        goal, gained = max(CLOSER * goal, _CLOSEST), False
        places = contenders(outcomes)
        for place in places if len(places) > 1 else []:
            ends = [outcome[place].bounds for outcome in outcomes]
            rough = [i for i, (low, high) in enumerate(ends) if low < high]
            gained |= _fit_again(outcomes, place, rough, goal, tol, again)


def _fit_again(
    outcomes: list[list[Outcome]], place: int, rough: list[int], goal: float, tol: float, again: Again
) -> bool:
    """Whether closer fits of some folds have a smaller gap; then they take the place of the others."""
    gained = False
    for i, (closer,) in zip(rough, again(place, rough, goal) if rough else [], strict=False):
        before = outcomes[i][place]
        if closer.relative_gap < before.relative_gap:
            gained = True
            seconds = before.fit_seconds + closer.fit_seconds
            shortfall = closer.shortfall if closer.relative_gap > tol else ""
            outcomes[i][place] = replace(closer, fit_seconds=seconds, shortfall=shortfall)
    return gained


def contenders(outcomes: Sequence[Sequence[Outcome]]) -> list[int]:
    """The places whose mean accuracy at the optimum may be as good as that of any other."""
    mean = np.array([[at.bounds for at in outcome] for outcome in outcomes]).mean(axis=0)
    return np.flatnonzero(mean[:, 1] >= mean[:, 0].max() - SAME_MEAN).tolist()


def best_place(scores: list[list[float]]) -> int:
    """The place of the best mean score of all folds; of equal ones the first."""
    mean = np.mean(scores, axis=0)
    return int(np.argmax(np.where(np.isnan(mean), -np.inf, mean)))


class _Scorer:
    """Scores the held-out rows: in place for scikit-learn's own scorers, on a copy for other callables."""

    def __init__(self, scoring: Callable[..., float] | None, data: Data, held_out: Indices) -> None:
        self.scoring, self.data, self.held_out = scoring, data, held_out
        self.targets = data.targets[held_out]
        self.in_place = scoring is None or type(scoring).__module__.startswith("sklearn.metrics")
        self.X = None if self.in_place else some_of(data.X, held_out)

    def __call__(self, model: LinearSVC) -> float:
        if self.scoring is not None and not self.in_place:
            model.n_features_in_ = self.data.rows.columns
            return float(self.scoring(model, self.X, self.targets))
        scores = self._of_held_out(model.coef_) + model.intercept_[:, np.newaxis]
        answers = _Answers(model.classes_, scores[0] if len(scores) == 1 else scores.T)
        if self.scoring is None:
            return float(np.mean(answers.predict(None) == self.targets))
        return float(self.scoring(answers, self.held_out, self.targets))

    def _of_held_out(self, weights: Matrix) -> Matrix:
        rows = self.data.rows
        if not rows.offers_single_rows:  # and passes over all of them are what they are quick at
            return rows.scores_at(weights)[:, self.held_out]
        scores = np.empty((len(weights), len(self.held_out)))
        for w, own in zip(weights, scores, strict=True):
            core.scores_of(rows.compiled, self.held_out, w, own, core.ALL_CORES)
        return scores


class _Answers(ClassifierMixin, BaseEstimator):
    """A classifier whose scores of the rows in question are known already."""

    def __init__(self, classes: NDArray[Any], scores: NDArray[np.float64]) -> None:
        self.classes_, self.scores = classes, scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        return self.scores

    def predict(self, X: Any) -> NDArray[Any]:
        kind = decomposition(len(self.classes_), pairs=False)
        return np.asarray(self.classes_.take(kind.decide(self.scores)))
