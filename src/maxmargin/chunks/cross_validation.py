# SPDX-License-Identifier: BSD-3-Clause
"""Several values of C and all folds in the same passes, and the scores of held-out rows in one more.

1  survey, with the weights of every fold
2  for every group of problems (C, fold, class) that memory has room for: fit them in the same passes,
   held-out rows at weight 0
3  one pass: how many rows of every fold its own models have right, at every C
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.chunks.chunk import Chunk
from maxmargin.chunks.fit import Wanted, fit_in_passes, problems_of
from maxmargin.chunks.held_out import Folding
from maxmargin.chunks.memory import Memory
from maxmargin.chunks.passes import Passes
from maxmargin.chunks.statement import ONE_THREAD, Stated
from maxmargin.chunks.survey import Facts, Sample, survey_of
from maxmargin.core import Budget
from maxmargin.problem.rows import Rows
from maxmargin.proof.model import Model
from maxmargin.reductions.decompositions import decomposition
from maxmargin.types import Indices

Planes = tuple[NDArray[np.float64], NDArray[np.float64]]
"""w and b of all classes of one model."""


@dataclass(frozen=True, eq=False)
class FoldsFitted:
    """The models of all folds at every C, and how many held-out rows they have right."""

    models: list[list[list[Model]]]
    """One for each C, fold and class."""
    right: Indices
    """One for each C and fold."""
    known: tuple[Facts, Sample]
    """What the first pass has found out."""
    score_seconds: float
    passes: int

    @property
    def facts(self) -> Facts:
        """What the data are."""
        return self.known[0]


def fit_folds(passes: Passes, wanted: Wanted, Cs: Sequence[float], folding: Folding) -> FoldsFitted:
    """Fit and score every fold at every C; raises KeyboardInterrupt after Ctrl-C: nothing is chosen yet."""
    budget = Budget(wanted.max_time, wanted.threads)
    memory = Memory.of(wanted.memory)
    wanted = replace(wanted, memory=memory.limit)  # what is free now, for all groups
    known = facts, sample = survey_of(passes, memory.room, wanted.seed, folding)
    _refuse(facts, folding)
    problems = [
        replace(stated, folding=folding, held_out=fold)
        for C in Cs
        for fold in range(folding.count)
        for stated in problems_of(replace(wanted, C=C), facts.without(fold))
    ]
    together = memory.together(facts, sample.count, wanted.loss, len(problems))
    groups: list[list[Stated]] = [problems[i : i + together] for i in range(0, len(problems), together)]
    found: list[Model] = []
    count = 1
    for number, group in enumerate(groups):
        share = budget.seconds_left / (len(groups) - number + 1)  # and one for the model of all rows
        fitted = fit_in_passes(passes, replace(wanted, max_time=share), known, group)
        if fitted.interrupted:
            raise KeyboardInterrupt
        found += fitted.models
        count += fitted.passes - 1
    classes = len(problems) // (len(Cs) * folding.count)
    models = [
        [found[(i * folding.count + fold) * classes :][:classes] for fold in range(folding.count)]
        for i in range(len(Cs))
    ]
    began = time.perf_counter()
    planes = [[planes_of(model) for model in of_C] for of_C in models]
    right = np.zeros((len(Cs), folding.count), np.int64)
    for share_of_chunk in passes.over(right_of, facts.labels, folding, planes):
        right += share_of_chunk
    return FoldsFitted(models, right, known, time.perf_counter() - began, count + 1)


def planes_of(models: Sequence[Model]) -> Planes:
    """The planes of all classes."""
    return np.array([model.w for model in models]), np.array([float(model.b) for model in models])


def right_of(chunk: Chunk, labels: NDArray[Any], folding: Folding, planes: list[list[Planes]]) -> Indices:
    """The task of the pass that scores: how many rows each model has right, of those it has not seen."""
    folds, codes = folding.of(chunk.numbers), np.searchsorted(labels, chunk.y)
    kind = decomposition(len(labels), pairs=False)
    right = np.zeros((len(planes), folding.count), np.int64)
    for fold in range(folding.count):
        ours = np.flatnonzero(folds == fold)
        if not len(ours):
            continue
        rows = Rows(chunk.X[ours], check_finite=False, keep_zeros=True)
        for place, of_C in enumerate(planes):
            coef, intercept = of_C[fold]
            scores = np.column_stack([rows.scores(w, ONE_THREAD) for w in coef]) + intercept
            right[place, fold] = np.count_nonzero(kind.decide(scores) == codes[ours])
    return right


def _refuse(facts: Facts, folding: Folding) -> None:
    """ValueError where a fold has no row, or the others none of some class."""
    assert facts.fold_rows is not None
    for fold, count in enumerate(facts.fold_rows.tolist()):
        if not count:
            raise ValueError(
                f"Fold {fold} of {folding.count} holds out no row: chance sends rows to folds, and there "
                f"are {facts.rows}. Use fewer folds, or more rows."
            )
        missing = np.flatnonzero(facts.without(fold).weights <= 0.0)
        if len(missing):
            label = facts.labels[missing[0]]
            raise ValueError(
                f"Fold {fold} of {folding.count} trains on no row of class {label!r}, so it cannot tell "
                "that class from the rest; in passes folds are not stratified. Use fewer folds, another "
                "random_state, or more rows of the class."
            )
