# SPDX-License-Identifier: BSD-3-Clause
"""A kernel problem as a linear one, solved on its columns.

Solvers of linear problems know w itself, and with it the margins of all rows in one pass; their steps
hardly depend on how the columns are scaled. Their alpha is a dual point of the kernel problem too, which is
then proven like any other. Columns are those of the data where the kernel is the plain inner product, and
of a factor L of the kernel matrix K = LL' else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack

from maxmargin.core import Budget
from maxmargin.problem import Problem
from maxmargin.problem.rows import Matrix, Rows
from maxmargin.proof.certificate import certify
from maxmargin.proof.model import Model, Status
from maxmargin.proof.solution import Solution
from maxmargin.solving.loop import Callback, solve
from maxmargin.solving.ways import find_way
from maxmargin.types import Vector

Columns = Problem | Matrix

_MOST_RUNS = 4
"""Runs on the columns, each to a smaller gap, until the kernel problem is proven to its own."""
_TIGHTER = 0.1
"""The factor on the gap from one run to the next."""
_MUCH_WORSE = 10.0
"""The factor between the two gaps above which multipliers lose w to cancellation."""
_MOST_VALUES = 1_000_000
"""Values of rows up to which the least coefficients that make a w are looked for."""
_NO_FACTOR = 1e-8
"""A difference to the scaled matrix that no rounding makes: the matrix is that of no kernel."""


def factor_of(matrix: Matrix) -> Matrix | None:
    """Rows whose inner products are the matrix, as few columns as rounding allows; None where it has none.

    Cholesky's factor with pivots, of the matrix scaled to a diagonal of 1: small values beside very large
    ones keep their digits.
    """
    diagonal = np.einsum("ii->i", matrix)
    if not (np.isfinite(matrix).all() and (diagonal >= 0.0).all()):
        return None
    scale = np.sqrt(diagonal)
    scale[scale == 0.0] = 1.0
    scaled = matrix / scale / scale[:, np.newaxis]
    factor, order, rank, _ = lapack.dpstrf(scaled, lower=1)
    rows: Matrix = np.empty((len(matrix), rank))
    rows[order - 1] = np.tril(factor)[:, :rank]
    if np.abs(rows @ rows.T - scaled).max(initial=0.0) > _NO_FACTOR:
        return None
    rows *= scale[:, np.newaxis]
    return rows


def coefficients_of(w: Vector, rows: Matrix) -> Vector:
    """The least numbers c with ``sum_i c_i row_i = w``.

    Where C times the rows is very large beside w, they make it without the cancellation that multipliers
    would need more digits for than there are.
    """
    lengths = np.linalg.norm(rows, axis=0)
    lengths[lengths == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq((rows / lengths).T, w / lengths, rcond=None)[0])


def solve_on_columns(
    seen: Problem, columns: Columns, tol: float, seed: int, budget: Budget, callback: Callback | None
) -> Model:
    """Solve a problem on columns until it proves ``seen``, the same through a kernel, to ``tol``.

    The columns are those of the problem on the data themselves, or of a factor of the kernel matrix. The
    model is that of ``seen``, with w held by its coefficients; where it falls short, it is a start.
    """
    why = "The kernel is linear: solved on the columns."
    factor, plain = None, columns
    if not isinstance(plain, Problem):
        why = "Pairs of rows gained too little: solved on a factor of the kernel matrix."
        factor, plain = plain, replace(seen, rows=Rows(plain, keep_zeros=True))
    way = find_way("auto", plain, tol).with_seed(seed)
    start, accuracy, steps = None, tol, 0
    for _ in range(_MOST_RUNS):
        found = solve(plain, way, tol=accuracy, start=start, callback=callback, budget=budget)
        steps += found.steps
        alpha_from = found.certificate.alpha_from
        proof = certify(seen, Solution(alpha=found.alpha, alpha_from=alpha_from), budget=budget, tol=tol)
        few = plain.rows.count * plain.rows.columns <= _MOST_VALUES
        if factor is None and few and proof.relative_gap > _MUCH_WORSE * accuracy:
            factor = plain.rows.dense(np.arange(plain.rows.count))
        if factor is not None and proof.relative_gap > tol:
            w = coefficients_of(found.w, factor)
            solution = Solution(w=w, alpha=proof.alpha, any_length=True)
            proof = certify(seen, solution, known=proof, budget=budget, tol=tol)
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
