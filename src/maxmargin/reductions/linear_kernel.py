# SPDX-License-Identifier: BSD-3-Clause
"""A kernel problem as a linear one, solved on its columns.

Solvers of linear problems know w itself, and with it the margins of all rows in one pass; their steps
hardly depend on how the columns are scaled. Their alpha is a dual point of the kernel problem too, which is
then proven like any other. Columns are those of the data where the kernel is the plain inner product, and
of a factor L of the kernel matrix K = LL' else.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from maxmargin import core
from maxmargin.core import ALL_CORES, Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix, Rows
from maxmargin.problem.twin_rows import TwinRows
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.model import Model, Status
from maxmargin.proof.solution import Solution
from maxmargin.solvers import InteriorPoint, sizes
from maxmargin.solving.loop import Callback, solve
from maxmargin.solving.ways import Way, find_way
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.side_by_side import side_by_side
from maxmargin.types import Indices, Vector

_MOST_RUNS = 4
"""Runs on the columns, each to a smaller gap, until the kernel problem is proven to its own."""
_TIGHTER = 0.1
"""The factor on the gap from one run to the next."""
_CRISP = 1e-3
"""The factor on the gap at which the interior point tells multipliers at a wall from free ones."""
_LONG_STEPS, _SOON = 2e10, 0.1
"""Rows times the squared columns of a factor, from which a step on these takes as long as a proof through
the kernel; and the factor on the gap at which that is tried then, crisp or not."""
_MUCH_WORSE = 10.0
"""The factor between the two gaps above which multipliers lose w to cancellation."""
_NO_FACTOR = 1e-8
"""A difference to the scaled matrix that no rounding makes: the matrix is that of no kernel."""
_LEFT_OUT = 1e-12
"""What a factor may leave out of the diagonal, as a share of it: rounding makes as much of some values."""
_BLOCK = 64
"""Columns of a factor that are made at once."""
_ROWS_OF_PART, _LONG_PRODUCT = 1024, 1_000_000
"""Rows of a factor that meet a block at once; and values of it from which a second thread is worth its
start."""
_OF_THE_LARGEST = 0.01
"""The share of the largest diagonal that is left, above which a row becomes a pivot."""


_FIRST_LOOK = 0.25
"""The share of the most columns from which it is looked whether these will do."""


class Factor(NamedTuple):
    """Rows L whose inner products are the kernel matrix, K = LL'."""

    rows: Matrix
    pivots: Indices
    """The rows that L is made of, as many as it has columns: on them it is lower triangular."""

    def coefficients_of(self, w: Vector) -> Vector:
        """Numbers c with ``sum_i c_i row_i = w``: one for each pivot, all others are 0."""
        c = np.zeros(len(self.rows))
        with one_blas_thread():
            c[self.pivots] = solve_triangular(
                self.rows[self.pivots], w, trans=1, lower=True, check_finite=False
            )
        return c


def factor_of(matrix: Matrix, most: int, budget: Budget = ALL_CORES) -> Factor | None:
    """A factor of the kernel matrix with as few columns as rounding allows, at most so many; else None."""
    if not np.isfinite(matrix).all():
        return None
    return factor_of_values(matrix.__getitem__, np.einsum("ii->i", matrix), most, budget)


@np.errstate(over="ignore", invalid="ignore")
def factor_of_values(
    values: Callable[[Indices], Matrix],
    diagonal: Vector,
    most: int,
    budget: Budget = ALL_CORES,
    weights: Vector | None = None,
    *,
    as_far: bool = False,
) -> Factor | None:
    """The same of a matrix of which ``values`` computes some rows, when they are needed.

    Cholesky's factor with pivots, of the matrix scaled to a diagonal of 1: small values beside very large
    ones keep their digits. It is made some columns at a time, from the rows whose diagonal is still the
    largest; of these, only such as the others of the block leave large. Values that no kernel has beside
    this diagonal overflow and have no factor, and there is none once the budget is spent.

    ``weights`` say how much of the diagonal it may leave out: a sum over the rows of at most 1. With
    ``as_far`` it leaves out what ``most`` columns do.
    """
    if not (diagonal >= 0.0).all():
        return None
    count = len(diagonal)
    scale = np.sqrt(diagonal)
    scale[scale == 0.0] = 1.0
    rows: Matrix = np.empty((count, most), order="F")
    left = diagonal / scale**2
    pivots = np.empty(0, np.int64)
    falling: list[tuple[int, float]] = []
    while (largest := float(left.max(initial=0.0))) > _LEFT_OUT:
        if budget.spent:
            return None
        if as_far and len(pivots) == most:
            break
        if weights is not None:
            out = core.dot(weights, left)
            if out <= 1.0:
                break
            falling.append((len(pivots), math.log(out)))
            if _is_hopeless(falling, most, count):
                return None
        some = np.argsort(-left, kind="stable")[:_BLOCK]
        have = len(pivots)
        with one_blas_thread():
            block = values(some) / scale / scale[some, np.newaxis]
            if not np.abs(block).max() <= 1.0 + _NO_FACTOR:
                return None
        _subtract_products(block, rows[some, :have], rows[:, :have], budget)
        with one_blas_thread():
            lower, order, rank, _ = lapack.dpstrf(block[:, some], lower=1, tol=_OF_THE_LARGEST * largest)
            rank = min(rank, most - have) if as_far else rank
            chosen = order[:rank] - 1
            if have + rank > most or rank == 0:
                return None
            new = solve_triangular(lower[:rank, :rank], block[chosen], lower=True, check_finite=False)
        rows[:, have : have + rank] = new.T
        rows[some[chosen], have : have + rank] = np.tril(lower[:rank, :rank])
        pivots = np.concatenate([pivots, some[chosen]])
        left -= np.einsum("ki,ki->i", new, new)
        left[pivots] = 0.0
    rows = rows[:, : len(pivots)]
    sample = np.linspace(0, count - 1, min(count, _BLOCK)).astype(np.int64)
    with one_blas_thread():
        made = rows[sample] @ rows.T - values(sample) / scale / scale[sample, np.newaxis]
    off = _NO_FACTOR + np.sqrt(np.maximum(np.outer(left[sample], left), 0.0))  # a kernel's, as of Cauchy
    if not ((np.abs(made) <= off).all() and left.min(initial=0.0) >= -_NO_FACTOR):
        return None
    return Factor(np.ascontiguousarray(rows * scale[:, np.newaxis]), pivots)


def _is_hopeless(falling: Sequence[tuple[int, float]], most: int, count: int) -> bool:
    """Whether ``most`` columns will leave out too much, by the pace of the second half so far.

    ``falling`` has the logarithm of what is left out, in units of what may be, for growing numbers of
    columns. As a rule it falls ever more slowly, but faster near the last of ``count`` rows.
    """
    columns, level = falling[-1]
    if columns < _FIRST_LOOK * most:
        return False
    half, above = falling[bisect_left(falling, (columns // 2, -math.inf))]
    left = (1.0 + most / count) * most - columns
    return half == columns or level * (columns - half) > (above - level) * left


def _subtract_products(block: Matrix, some: Matrix, rows: Matrix, budget: Budget) -> None:
    """``block -= some @ rows.T``, some rows at a time, in parts that do not depend on the cores."""

    def subtract(part: slice) -> None:
        block[:, part] -= some @ rows[part].T

    parts = [slice(first, first + _ROWS_OF_PART) for first in range(0, len(rows), _ROWS_OF_PART)]
    threads = budget.threads if rows.size > _LONG_PRODUCT else 1
    side_by_side([partial(subtract, part) for part in parts], threads)


Columns = Problem | Factor
"""A linear problem on the data themselves, or a factor of the kernel matrix."""


def coefficients_of(w: Vector, rows: Matrix) -> Vector:
    """The least numbers c with ``sum_i c_i row_i = w``.

    Where C times the rows is very large beside w, they make it without the cancellation that multipliers
    would need more digits for than there are.
    """
    lengths = np.linalg.norm(rows, axis=0)
    lengths[lengths == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq((rows / lengths).T, w / lengths, rcond=None)[0])


def _better_w(
    seen: Problem,
    coefficients: Callable[[Vector], Vector],
    w: Vector,
    proof: Certificate,
    budget: Budget,
    tol: float,
) -> Certificate:
    """The proof with these coefficients of w, where it is above ``tol`` and they are better."""
    if proof.relative_gap <= tol:
        return proof
    solution = Solution(w=coefficients(w), alpha=proof.alpha, any_length=True)
    return certify(seen, solution, known=proof, budget=budget, tol=tol)


def on_factor(seen: Problem, factor: Factor) -> Problem:
    """The problem on the rows of a factor of the kernel matrix."""
    of_examples = Rows(factor.rows, keep_zeros=True)
    twins = isinstance(seen.rows, TwinRows)
    return replace(seen, rows=TwinRows(of_examples) if twins else of_examples)


def solve_on_columns(
    seen: Problem,
    columns: Columns,
    tol: float,
    seed: int,
    budget: Budget,
    callback: Callback | None,
    most_runs: int = _MOST_RUNS,
) -> Model:
    """Solve a problem on columns until it proves ``seen``, the same through a kernel, to ``tol``.

    The columns are those of the problem on the data themselves, or of a factor of the kernel matrix. The
    model is that of ``seen``, with w held by its coefficients; where it falls short, it is a start.
    """
    why, accuracy, every = "The kernel is linear: solved on the columns.", tol, None
    if isinstance(columns, Problem):
        plain = columns
        way = find_way("auto", plain, tol).with_seed(seed)
    else:
        why = "Pairs of rows gained too little: solved on a factor of the kernel matrix."
        plain = on_factor(seen, columns)
        way = Way(
            InteriorPoint(),
            f"interior_point: {columns.rows.shape[1]} columns, whose scales differ by orders of magnitude.",
        )
        # A proof on columns costs little beside a step, and the steps may have to end at rounding.
        long = columns.rows.shape[0] * columns.rows.shape[1] ** 2 > _LONG_STEPS
        accuracy, every = (_SOON if long else _CRISP) * tol, 1
    start, steps, rows = None, 0, None
    for _ in range(most_runs):
        found = solve(
            plain, way, tol=accuracy, start=start, callback=callback, budget=budget, certify_every=every
        )
        steps += found.steps
        alpha_from = found.certificate.alpha_from
        proof = certify(seen, Solution(alpha=found.alpha, alpha_from=alpha_from), budget=budget, tol=tol)
        few = plain.rows.count * plain.rows.columns <= sizes.LEAST_COEFFICIENTS_VALUES
        if isinstance(columns, Factor):
            proof = _better_w(seen, columns.coefficients_of, found.w, proof, budget, tol)
            if np.count_nonzero(proof.w) > len(columns.pivots):  # a model that predicts sooner
                few_terms = Solution(w=columns.coefficients_of(found.w), alpha=proof.alpha)
                sparse = certify(seen, few_terms, budget=budget, tol=tol)
                proof = sparse if sparse.relative_gap <= tol else proof
            rows = columns.rows if few else None
        elif few and proof.relative_gap > _MUCH_WORSE * accuracy:
            of_w = plain.rows.examples if isinstance(plain.rows, TwinRows) else plain.rows
            rows = of_w.dense(np.arange(of_w.count))
        if rows is not None:
            proof = _better_w(seen, partial(coefficients_of, rows=rows), found.w, proof, budget, tol)
        if proof.relative_gap <= tol or not found.status.certified:
            break
        # The best w of a run is not always that of its alpha.
        start, accuracy = Solution(w=found.w, b=found.b, alpha=found.alpha), _TIGHTER * accuracy
    status = found.status
    if proof.relative_gap <= tol:
        status = Status.within_tol(proof)
    elif status.certified:
        status = Status.RULE_FIRED  # what is proven on the columns is not yet proven through the kernel
    story = f"{why} {found.solver}"
    proof = replace(proof, alpha_from="the solution on the columns")
    return replace(found, certificate=proof, status=status, tol=tol, steps=steps, solver=story, story=story)
