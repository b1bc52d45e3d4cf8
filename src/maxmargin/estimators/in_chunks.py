# SPDX-License-Identifier: BSD-3-Clause
"""A linear classifier fitted in passes over data that stay where they are."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin.chunks.fit import Fitted, Wanted, fit_in_passes
from maxmargin.chunks.passes import LocalPasses, Passes
from maxmargin.proof.model import Certificates, Models, Status
from maxmargin.solving.loop import NO_LIMIT, Progress
from maxmargin.tools.interrupts import Interrupts, held_back

if TYPE_CHECKING:
    from maxmargin.chunks.source import Chunks
    from maxmargin.chunks.survey import Facts
    from maxmargin.estimators.linear_svc import LinearSVC
    from maxmargin.estimators.linear_svc_cv import LinearSVCCV

_SENTENCES = {
    Status.STEPS_SPENT: (
        "Budget spent: {steps} passes were made over the data, and the relative gap is {gap:.1e}, above "
        "tol = {tol:.1e}. Raise max_iter, loosen tol, or scale the features."
    ),
    Status.TIME_SPENT: (
        "Budget spent: max_time ran out after {steps} passes over the data with a relative gap of "
        "{gap:.1e}, above tol = {tol:.1e}. Raise max_time or loosen tol; Chunks(..., checkpoint=...) go on "
        "from here."
    ),
    Status.INTERRUPTED: (
        "Budget spent: interrupted after {steps} passes over the data. The best certified model so far is "
        "kept, with a relative gap of {gap:.1e} (tol = {tol:.1e}); Chunks(..., checkpoint=...) go on from "
        "here."
    ),
}
"""Why a fit in passes ended, where the usual sentence would speak of steps."""


def fit_chunks(estimator: LinearSVC, chunks: Chunks, y: Any, sample_weight: Any) -> Interrupts:
    """``LinearSVC.fit`` for chunks that this process reads."""
    refuse_labels(y, sample_weight)
    there = where_asked(estimator, chunks)
    passes = LocalPasses(there, estimator._threads())
    with held_back() as interrupts:
        wanted = replace(wanted_of(estimator, chunks.memory), checkpoint=there.kept_in)
        # What a CPU has mapped has other last digits: on a GPU the first pass is made there again.
        known = chunks.surveyed if there is chunks else None
        fitted = fit_in_passes(passes, wanted, known)
        chunks.facts = fitted.facts
        take_fitted(estimator, fitted)
        if chunks.feature_names is not None:
            estimator.feature_names_in_ = np.array(chunks.feature_names, dtype=object)
    return interrupts


def refuse_labels(y: Any, sample_weight: Any) -> None:
    """ValueError where labels or weights are given beside chunks."""
    if y is not None or sample_weight is not None:
        raise ValueError(
            "Chunks bring labels and weights along: call fit(chunks) without y and sample_weight, and give "
            "them in the parts, (X, y) or (X, y, weights)."
        )


def where_asked(estimator: LinearSVC | LinearSVCCV, chunks: Chunks) -> Chunks:
    """The chunks, which go through their feature maps on a GPU where the estimator asks for it."""
    if estimator.device != "cuda":
        return chunks
    from maxmargin.gpu.cards import the_card

    return chunks.mapped_on(the_card())


def refuse_elsewhere(estimator: LinearSVC | LinearSVCCV) -> None:
    """ValueError where rows that others read are to be dealt with on a GPU of this process."""
    if estimator.device == "cuda":
        raise ValueError("Passes on a cluster stay on the CPUs of its workers: leave device out.")


def fit_passes(estimator: LinearSVC, passes: Passes, memory: int | None = None) -> Facts:
    """The same for any other ``Passes``; ``memory`` are the bytes of this process that the fit may take.

    Returns what it has found out about the rows.
    """
    estimator._check_parameters()
    refuse_elsewhere(estimator)
    fitted = fit_in_passes(passes, wanted_of(estimator, memory))
    take_fitted(estimator, fitted)
    return fitted.facts


def wanted_of(estimator: LinearSVC, memory: int | None) -> Wanted:
    """What the parameters of an estimator ask of a fit in passes; ValueError where it is not to be had."""
    if math.isinf(estimator.C):
        raise ValueError("C = inf, the hard margin, needs the rows in memory. Use a finite C with Chunks.")
    if estimator.solver != "auto":
        raise ValueError(
            "Chunks choose the method by the loss: solver must be 'auto'. "
            f"Got {estimator.solver!r} instead."
        )
    if estimator.penalty != "l2":
        raise ValueError(
            f"Chunks know the penalty 'l2' alone. Got {estimator.penalty!r} instead. Use fit(X, y) in "
            "memory."
        )
    if estimator.warm_start:
        raise ValueError("Chunks are fitted from a sample, not from the last fit: leave warm_start out.")
    if estimator.multi_class != "ovr":
        raise ValueError(
            "Chunks fit each class against the rest: multi_class must be 'ovr'. "
            f"Got {estimator.multi_class!r} instead."
        )
    random = estimator.random_state
    watched = estimator.verbose or estimator.callback is not None
    if estimator.verbose:
        estimator._show()

    def told(step: int, seconds: float, certificate: Any, label: Any) -> bool | None:
        progress = Progress(step, seconds, certificate, float(estimator.tol), label=label)
        estimator._tell("pass", progress)
        return None if estimator.callback is None else estimator.callback(progress)

    return Wanted(
        loss=str(estimator.loss),
        C=float(estimator.C),
        intercept=estimator._intercept_form(),
        intercept_scaling=float(estimator.intercept_scaling),
        class_weight=estimator.class_weight,
        tol=float(estimator.tol),
        max_passes=NO_LIMIT if estimator.max_iter == -1 else int(estimator.max_iter),
        max_time=math.inf if estimator.max_time is None else float(estimator.max_time),
        seed=random if isinstance(random, int) and random >= 0 else 0,
        memory=memory,
        threads=estimator._threads(),
        told=told if watched else None,
    )


def take_fitted(estimator: LinearSVC, fitted: Fitted) -> None:
    """Give the estimator what a fit found, and warn where it fell short."""
    set_fitted(estimator, fitted)
    if not estimator.status_.certified:
        gap = max(model.certificate.relative_gap for model in fitted.models)
        sentence = sentence_of(estimator.status_, gap, float(estimator.tol), fitted.passes)
        warnings.warn(sentence, ConvergenceWarning, stacklevel=5)


def sentence_of(status: Status, gap: float, tol: float, passes: int) -> str:
    """Why a fit in passes ended."""
    return _SENTENCES.get(status, status.value).format(gap=gap, tol=tol, steps=passes)


def set_fitted(estimator: LinearSVC, fitted: Fitted) -> None:
    """Give the estimator what a fit found."""
    models, facts = Models(fitted.models), fitted.facts
    estimator.classes_, estimator.n_features_in_ = facts.labels, facts.columns
    estimator.__dict__.pop("feature_names_in_", None)
    estimator.__dict__.pop("expansion_", None)
    estimator.coef_, estimator.intercept_ = np.array(models.w), models.b
    estimator.n_iter_ = fitted.passes
    proofs = [
        model.certificate.without_problem(w)
        for model, w in zip(fitted.models, estimator.coef_, strict=True)
    ]
    several = len(proofs) > 1
    estimator.certificate_ = Certificates(proofs) if several else proofs[0]
    estimator.trace_ = models.traces if several else models.traces[0]
    for name in ("_outline", "_places"):
        estimator.__dict__.pop(name, None)
    estimator._in_passes = True
    weight = estimator.class_weight
    estimator._stated_problem = {
        "loss": str(estimator.loss),
        "C": float(estimator.C),
        "intercept": estimator._intercept_form().value,
        "intercept_scaling": float(estimator.intercept_scaling),
        "class_weight": weight,
        "sample_weights": facts.weighted,
        "tol": float(estimator.tol),
        "penalty": "l2",
        "formulation": "separate",
    }
    worst = models[int(np.argmax(models.relative_gaps))]
    gap = worst.certificate.relative_gap
    estimator.solver_, estimator.status_ = worst.solver, worst.status
    if gap <= estimator.tol:
        estimator.status_ = Status.CERTIFIED
