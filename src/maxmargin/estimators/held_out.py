# SPDX-License-Identifier: BSD-3-Clause
"""Scores of rows by models that have not seen them, for probabilities.

    1  for every fold:
    2      fit the problems with the held-out rows at weight 0, from the multipliers of all rows
    3      score the held-out rows

All fits share the rows and, where they are at hand, the values of the kernel. Rows without weight are
still in a problem, and its proof has their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.core import Budget
from maxmargin.kernels.base import Kernel, Precomputed
from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import feasible
from maxmargin.proof.model import Models
from maxmargin.proof.solution import Solution
from maxmargin.reductions.class_problems import KernelProblems
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.reductions.small_problems import AlongCosts, SmallModels
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.types import Indices

FOLDS = 5
"""Parts that are held out in turn, as in ``CalibratedClassifierCV`` and in LIBSVM."""

Fit = Callable[[Sequence[KernelProblems], Sequence[Sequence[Solution]]], Iterator[Models]]
"""Fits the problems of every fold, one fold after the other, each from given multipliers."""


def folds(codes: NDArray[Any]) -> list[Indices]:
    """The rows that are held out in turn: those of ``StratifiedKFold(5)``, where classes have the rows.

    Of the smallest class some folds may have none; one of a single row is told from others by the folds
    that do not hold it out. Classes count in the order in which they first occur, and the rows of all of
    them, one class after the other, are dealt out to the folds in turn: that says how many of its rows a
    class has in each fold, and the first ones go to the first fold.
    """
    largest = int(np.bincount(codes).max())
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(firsts))[inverse]  # of a row's class, by its first row
    order = np.argsort(place, kind="stable")
    if largest == 1:
        return np.array_split(np.arange(len(codes)), min(FOLDS, len(codes)))
    count = min(FOLDS, largest)
    dealt, fold = np.arange(len(codes)) % count, np.empty(len(codes), np.intp)
    # Within a class the folds are in order, and its rows are, too.
    fold[order] = dealt[np.lexsort((dealt, place[order]))]
    return [np.flatnonzero(fold == k) for k in range(count)]


def held_out_scores(
    problems: KernelProblems, models: Models, fit: Fit, stopped: Callable[[], bool], budget: Budget
) -> tuple[Matrix, NDArray[np.bool_]]:
    """The scores of every row by a fit without it, one column for each problem, and which rows have them.

    ``models`` are those of all rows. After Ctrl-C the rows of the folds that are left have none.
    """
    count = len(problems.codes)
    scores, known = np.zeros((count, len(problems))), np.zeros(count, bool)
    parts = folds(problems.codes)
    of_folds = [without(problems, held_out) for held_out in parts]
    starts = _starts(problems, models, of_folds, budget)
    for held_out, part, of_fold in zip(parts, of_folds, fit(of_folds, starts), strict=True):
        if stopped():
            break
        scores[held_out] = own_scores(part, of_fold, held_out)
        known[held_out] = True
    return scores, known


def own_scores(problems: KernelProblems, models: Models, rows: Indices) -> Matrix:
    """As ``scores_of``, but rows may have no scores in problems that they are not in."""
    if problems.nu is not None:  # the margins of which are in units of their rho
        return scores_of(problems, models, rows)
    scores = np.zeros((len(problems.codes), len(problems)))
    for k, proof in enumerate(models.certificates):  # which are about all rows, also those without weight
        which, y, _ = problems.part(k)
        scores[slice(None) if which is None else which, k] = proof.margins * y
    return scores[rows]


def scores_along(problems: KernelProblems, along: AlongCosts, line: int, rows: Indices) -> NDArray[Any]:
    """The scores that the models of a line give some of the rows, of which all values are at hand.

    One table as that of ``scores_of`` for every C up to which all problems are proven.
    """
    parts, count = along.parts, along.proven
    b = along.intercepts(line)
    if problems.kind.all_rows:
        shape = len(problems), len(problems.codes)
        scores = (along.margins(line) * parts.y).reshape(count, *shape)[:, :, rows]
        return np.asarray(scores.transpose(0, 2, 1))
    assert problems.matrix is not None
    # Models at all values of C are columns of one product with the values among a class and the rows.
    beta = np.ascontiguousarray(along.coefficients(line).T)
    table = problems.table([beta[slice(*ends)] for ends in pairwise(parts.begins)])
    ends = np.cumsum([len(members) for members in problems.by_class])
    lines, sums = len(table), []
    of_rows = problems.matrix.take(rows, axis=0)
    with one_blas_thread():
        for members, end in zip(problems.by_class, ends.tolist(), strict=True):
            own = table[:, end - len(members) : end].transpose(1, 0, 2).reshape(len(members), -1)
            values = of_rows.take(members, axis=1)
            sums.append((values @ own).reshape(len(rows), lines, count).transpose(1, 2, 0))
    joined = np.stack(problems.kind.joined(sums), axis=-1)
    return np.asarray(joined + b[:, np.newaxis])


def without(problems: KernelProblems, held_out: Indices, C: float | None = None) -> KernelProblems:
    """The same problems with some rows at weight 0, and at another C."""
    weights = problems.weights.copy()
    weights[held_out] = 0.0
    return problems.with_costs(weights, C)


def _starts(
    problems: KernelProblems, models: Models, folds: Sequence[KernelProblems], budget: Budget
) -> list[list[Solution]]:
    """The multipliers of models on the same rows, without those of the rows that a fold holds out.

    Where the problems are not small, the margins of their w come along. A fold takes the multipliers of its
    rows away, and a few others make up for them: scores change by values of the kernel for these rows
    alone, of which all folds together have hardly more than one proof.
    """
    starts: list[list[Solution]] = [[] for _ in folds]
    for k, proof in enumerate(models.certificates):
        known = problems.nu is None and not isinstance(models, SmallModels)
        problem = problems.problem(k) if known and np.array_equal(proof.w, proof.w_of_alpha) else None
        for of_fold, fold in zip(starts, folds, strict=True):
            _, y, weights = fold.part(k)
            alpha = np.where(weights > 0.0, proof.alpha, 0.0)
            margins = None
            if problem is not None:
                alpha = feasible(replace(problem, costs=fold.C * weights), alpha)
                margins = proof.margins + y * problem.rows.scores((alpha - proof.alpha) * y, budget)
            of_fold.append(Solution(alpha=alpha, b=proof.b, margins=margins))
    return starts


def scores_of(problems: KernelProblems, models: Models, rows: Indices) -> Matrix:
    """The scores that models give some of the rows of their problems, one column for each problem."""
    if isinstance(models, SmallModels) and problems.kind.all_rows:
        return own_scores(problems, models, rows)
    table = problems.table(models.w)
    used = table.any(axis=0)
    support = np.concatenate(problems.by_class)[used]
    counts = np.bincount(problems.codes[support], minlength=len(problems.labels))
    kernel: Kernel
    X: Any
    kernel, X = problems.given
    if problems.matrix is not None:
        kernel, X = Precomputed(), problems.matrix
    vectors = support if isinstance(kernel, Precomputed) else X[support]
    scores = KernelScores(kernel, vectors, np.ascontiguousarray(table[:, used]), counts)
    return scores(X[rows], models.b)
