# SPDX-License-Identifier: BSD-3-Clause
"""C chosen by cross-validation in passes over data that stay where they are.

1  all folds at every C in the same passes, and their scores in one more
2  the C of the best mean score: fit all rows, from the mean of its folds' models
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.chunks.cross_validation import FoldsFitted, fit_folds, planes_of
from maxmargin.chunks.fit import fit_in_passes
from maxmargin.chunks.held_out import Folding
from maxmargin.chunks.passes import LocalPasses, Passes
from maxmargin.core import Budget
from maxmargin.estimators.folds import Outcome
from maxmargin.estimators.in_chunks import (
    refuse_elsewhere,
    refuse_labels,
    sentence_of,
    set_fitted,
    wanted_of,
    where_asked,
)
from maxmargin.proof.model import Model
from maxmargin.solving.loop import Watch
from maxmargin.tools.parameters import wrong

if TYPE_CHECKING:
    from maxmargin.chunks.source import Chunks
    from maxmargin.estimators.linear_svc_cv import LinearSVCCV

_FOLDS = 5
"""As many as scikit-learn takes where nobody says."""


def choose_in_chunks(estimator: LinearSVCCV, chunks: Chunks, y: Any, sample_weight: Any) -> None:
    """``LinearSVCCV.fit`` for chunks that this process reads."""
    refuse_labels(y, sample_weight)
    if chunks.kept_in is not None:
        raise ValueError(
            "The choice of C keeps no state on the disk: leave checkpoint out of Chunks, or fit LinearSVC "
            "at one C."
        )
    passes = LocalPasses(where_asked(estimator, chunks), estimator._workers())
    estimator.__dict__.pop("feature_names_in_", None)
    _choose(estimator, passes, chunks.memory)
    if chunks.feature_names is not None:
        names = np.array(chunks.feature_names, dtype=object)
        for one in (estimator, estimator.__dict__.get("best_estimator_")):
            if one is not None:
                one.feature_names_in_ = names


def choose_in_passes(estimator: LinearSVCCV, passes: Passes, memory: int | None = None) -> None:
    """The same for any other ``Passes``; ``memory`` are the bytes that fits may take here."""
    refuse_elsewhere(estimator)
    _choose(estimator, passes, memory)


def _choose(estimator: LinearSVCCV, passes: Passes, memory: int | None) -> None:
    estimator._check_parameters()
    count = _folds(estimator)
    random = estimator.random_state
    seed = random if isinstance(random, int) and random >= 0 else 0
    Cs = estimator._values_of_C()
    template = estimator._template(seed, Watch(estimator.callback))
    template.verbose = estimator.verbose
    budget = Budget(math.inf if estimator.max_time is None else float(estimator.max_time), 1)
    ended = ""
    try:
        wanted = wanted_of(template, memory)
        found = fit_folds(passes, wanted, Cs.tolist(), Folding(count, seed))
        estimator.n_splits_ = count
        outcomes = _outcomes(found, Cs.tolist(), float(estimator.tol))
        estimator._set_results(Cs, outcomes)
        estimator.n_features_in_ = found.facts.columns
        estimator.n_passes_ = found.passes
        if estimator.refit:
            template.C = estimator.C_
            means = _mean(found.models[estimator.best_index_])
            last = replace(wanted, C=estimator.C_, starts=means, max_time=budget.seconds_left)
            fitted = fit_in_passes(passes, last, found.known)
            if fitted.interrupted:
                raise KeyboardInterrupt
            set_fitted(template, fitted)
            estimator.n_passes_ += fitted.passes - 1
        ended = f"C = {estimator.C_:g} has the best mean score, {estimator.best_score_:.6g}."
    finally:
        if (shown := template.__dict__.pop("_shown", None)) is not None:
            shown.end(ended)
    if estimator.refit:
        estimator._set_fitted(template)
    estimator._warn_of([at for outcome in outcomes for at in outcome if at.shortfall])


def _folds(estimator: LinearSVCCV) -> int:
    """The number of folds; ValueError where what is asked for is not to be had in passes."""
    if estimator.scoring is not None:
        cure = "In passes held-out rows are scored by their accuracy; use fit(X, y) in memory for others."
        raise wrong(estimator, "scoring", estimator.scoring, "None with Chunks and Dask", cure)
    if estimator.score_bounds:
        cure = "Accuracies at the exact optimum are bounded by fit(X, y) in memory alone."
        raise wrong(estimator, "score_bounds", estimator.score_bounds, "False with Chunks and Dask", cure)
    cv = _FOLDS if estimator.cv is None else estimator.cv
    if not isinstance(cv, int | np.integer) or isinstance(cv, bool) or cv < 2:
        cure = "In passes a row's fold comes from its number and random_state; use fit(X, y) for splitters."
        raise wrong(estimator, "cv", estimator.cv, "None or an int in the range [2, inf)", cure)
    return int(cv)


def _outcomes(found: FoldsFitted, Cs: list[float], tol: float) -> list[list[Outcome]]:
    """What became of each fold at each C."""
    assert found.facts.fold_rows is not None
    return [
        [
            _outcome(C, of_C[fold], int(right[fold]) / count, found.score_seconds, tol)
            for C, of_C, right in zip(Cs, found.models, found.right, strict=True)
        ]
        for fold, count in enumerate(found.facts.fold_rows.tolist())
    ]


def _outcome(C: float, models: list[Model], score: float, score_seconds: float, tol: float) -> Outcome:
    worst = max(models, key=lambda model: model.certificate.relative_gap)
    gap = worst.certificate.relative_gap
    records = [record for model in models for record in model.trace.records[-1:]]
    seconds = max((record.seconds for record in records), default=math.nan)
    shortfall = "" if gap <= tol else sentence_of(worst.status, gap, tol, worst.steps)
    return Outcome(C, score, seconds, score_seconds, gap, shortfall)


def _mean(folds: list[list[Model]]) -> Any:
    """For each class the mean of the folds' points."""
    planes = [planes_of(models) for models in folds]
    coef = np.mean([w for w, _ in planes], axis=0)
    intercept = np.mean([b for _, b in planes], axis=0)
    return tuple((w, float(b)) for w, b in zip(coef, intercept, strict=True))
