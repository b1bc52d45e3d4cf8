# SPDX-License-Identifier: BSD-3-Clause
"""The linear system of a Newton step, shared by the second-order solvers.

    (R + sum_i h_i z_i z_i') p = -g,      z_i = (x_i, 1) with an intercept, else x_i

R is the identity, and on the intercept's place 1/s^2 when it is regularised, 0 when it is exact. Only rows
with curvature h_i > 0 count: the free rows. The system is factored on the side where it is smaller:

    columns    the matrix itself, d x d, kept up to date by the rows whose curvature changes;
    rows       one unknown for each free row, by the identity of Woodbury: with A = diag(h)^1/2 X and
               e = h^1/2 over the free rows,  p = -(g + A'q),  (I + A A') q - e p_b = -A g,
               e'q + r p_b = -g_b;
    neither    where both are large: conjugate gradients, one pass over the free rows for each.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Protocol

import numpy as np
from scipy.linalg import blas

from maxmargin import core
from maxmargin.core import Budget
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import CompiledRows, Matrix, RowSpace
from maxmargin.solvers.base import end_if_stopped
from maxmargin.solvers.second_order.cholesky import cholesky, solved_by
from maxmargin.solvers.sizes import (
    FULL_STEP_COLUMNS,
    FULL_STEP_COLUMNS_OF_HINGE,
    LARGEST_SIDE,
    UNBLOCKED_COLUMNS,
)
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.side_by_side import side_by_side
from maxmargin.types import Indices, Vector

_BLOCK = 512
"""Rows that BLAS adds up in one call: they fit into the second-level cache."""
_LONG_BLOCK = 2048
"""Rows of such a call in a long sum, where its result is added up apart."""
_LONG_SUM = 1e9
"""Rows times the squared number of columns, from which two threads add them up: hundredths of a second."""
_FEW_ROWS = 64
"""Rows up to which copies for BLAS would take longer than their products."""
_SPARE = 8
"""One row in so many is room for others that come later."""
_VISIBLE = 1e-12
"""What can be seen with some digits beside 1: steps on the rows' side are differences of such numbers. The
line search makes up for steps that are too short."""


def compiled(rows: RowSpace) -> CompiledRows | None:
    """The rows as the core reads them; None where they offer no more than whole passes."""
    return rows.compiled if rows.offers_single_rows else None


def is_compiled(problem: Problem) -> bool:
    """Whether steps of a problem are compiled whole, on the columns' side."""
    rows, most = problem.rows, FULL_STEP_COLUMNS
    if compiled(rows) is None:
        return False
    if problem.loss.name == "hinge" and nearly_full(rows) and rows.count >= rows.columns:
        most = FULL_STEP_COLUMNS_OF_HINGE  # few rows are free, and fewer change from step to step
    return rows.columns + (problem.intercept is not Intercept.NONE) <= most


def nearly_full(rows: RowSpace) -> bool:
    """Whether rows are read as if they were dense."""
    return rows.stored > 0.25 * rows.count * rows.columns


class NewtonSystem:
    """The system of one problem, from step to step.

    ``scores``, ``combine``, ``solve`` and ``scale`` are all that the steps of the core ask for.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.columns = problem.rows.columns
        self.has_intercept = problem.intercept is not Intercept.NONE
        self.regulariser = problem.regulariser_diagonal()
        self._small: core.SmallSystem | None = None
        self._matrix: Hessian | None = None
        self._products: RowProducts | None = None

    def at_costs_of(self, problem: Problem, factor: float) -> NewtonSystem:
        """The system of a problem on the same rows whose curvatures are about ``factor`` times the last.

        The matrices go along, so this system is of no use afterwards.
        """
        other = NewtonSystem(problem)
        other._small, other._matrix, other._products = self._small, self._matrix, self._products
        other.scale(factor)
        return other

    @property
    def for_steps(self) -> NewtonSystem | core.SmallSystem:
        """The system as steps take it: compiled where it is so small that calls cost more than factors."""
        data = compiled(self.problem.rows)
        if self._small is None and data is not None and is_compiled(self.problem):
            self._small = core.small_system(data, self.regulariser)
        return self if self._small is None else self._small

    @cached_property
    def pull(self) -> Vector:
        """The diagonal of R, and 1 where nothing holds the intercept."""
        return np.where(self.regulariser > 0.0, self.regulariser, 1.0)

    def scores(self, step: Vector, budget: Budget) -> Vector:
        """``<p, z_i>``: one pass."""
        scores = self.problem.rows.scores(step[: self.columns], budget)
        if self.has_intercept:
            scores += step[-1]
        return scores

    def combine(self, coefficients: Vector, budget: Budget) -> Vector:
        """``sum_i coefficient_i z_i``: one pass over the rows whose coefficient is not zero."""
        combined = self.problem.rows.combine(coefficients, budget)
        return np.append(combined, coefficients.sum()) if self.has_intercept else combined

    def half_size(self, w: Vector, b: float) -> float:
        """What the regulariser makes of a point."""
        return self.problem.regulariser(w, b)

    def solve(self, curvatures: Vector, gradient: Vector, budget: Budget) -> Vector:
        """The step p for the gradient g and the curvatures h."""
        return self.factor(curvatures, budget).solve(gradient)

    def factor(self, curvatures: Vector, budget: Budget) -> Factor:
        """Make the system ready for the curvatures h."""
        end_if_stopped(budget)
        few = np.count_nonzero(curvatures) < min(0.8 * self.columns, LARGEST_SIDE)
        data = compiled(self.problem.rows)
        if few and data is not None:
            if self._products is None:
                self._products = RowProducts(self.problem.rows)
            return _OnRows(self, self._products, curvatures, budget)
        if self.columns <= LARGEST_SIDE:
            if self._matrix is None:
                self._matrix = Hessian(self)
            return _OnColumns(self._matrix.at(curvatures, budget), self.regulariser, budget)
        return _ConjugateGradients(self, curvatures, budget)

    def scale(self, factor: float) -> None:
        """Prepare for curvatures that are all ``factor`` times the last ones."""
        for matrix in (self._small, self._matrix):
            if matrix is not None:
                matrix.scale(factor)


class GivenSystem(NewtonSystem):
    """The system with a matrix that stands for ``sum_i h_i z_i z_i'``, whatever the curvatures are."""

    def __init__(self, problem: Problem, lower: Matrix) -> None:
        super().__init__(problem)
        self.lower = lower
        """The lower triangle."""
        data = compiled(problem.rows)
        if data is not None and is_compiled(problem):
            self._small = core.small_system(data, self.regulariser, lower)

    def at_costs_of(self, problem: Problem, factor: float) -> NewtonSystem:
        """The same of a problem whose curvatures are about ``factor`` times the last ones."""
        return GivenSystem(problem, factor * self.lower)

    def factor(self, curvatures: Vector, budget: Budget) -> Factor:
        """The factor of the matrix."""
        return _OnColumns(self.lower, self.regulariser, budget)


class Hessian:
    """``sum_i h_i z_i z_i'``, the lower triangle; see core/linear/hessian.hpp for how it is kept."""

    def __init__(self, system: NewtonSystem) -> None:
        self.rows, self.data = system.problem.rows, compiled(system.problem.rows)
        size = len(system.regulariser)
        self.kept = core.Hessian(self.rows.count, system.regulariser)
        self.lower: Matrix = self.kept.lower
        self.scale = self.kept.scale
        self.blocked = self.data is not None and nearly_full(self.rows) and size > UNBLOCKED_COLUMNS

    def at(self, curvatures: Vector, budget: Budget) -> Matrix:
        """The matrix for these curvatures."""
        self.kept.update(curvatures, budget, lambda changes: self._add(changes, budget))
        return self.lower

    def _add(self, changes: Vector, budget: Budget) -> None:
        """Add ``sum_i change_i z_i z_i'`` to the lower triangle."""
        d = self.rows.columns
        if self.data is None:
            if len(self.lower) == d:
                self.lower += self.rows.gram(changes, budget)
                return
            products, sums, total = self.rows.bordered_gram(changes, budget)
            self.lower[:d, :d] += products
            self.lower[d, :d] += sums
            self.lower[d, d] += total
        elif self.blocked:
            self._add_blocks(self.data, np.flatnonzero(changes > 0), changes, 1.0, budget)
            self._add_blocks(self.data, np.flatnonzero(changes < 0), changes, -1.0, budget)
        else:
            core.add_outer_products(self.data, changes, self.lower, budget)

    def _add_blocks(
        self, data: CompiledRows, order: Indices, changes: Vector, sign: float, budget: Budget
    ) -> None:
        """BLAS adds up rows that are nearly full, many at a time."""
        if len(order) * len(self.lower) ** 2 >= _LONG_SUM:
            self._add_long_sum(data, order, changes, sign, budget)
            return
        for first in range(0, len(order), _BLOCK):
            end_if_stopped(budget)
            block = self._gathered(data, order[first : first + _BLOCK], changes, budget)
            # By columns, as BLAS reads it, the lower triangle is the upper one.
            with one_blas_thread():
                blas.dsyrk(sign, block.T, beta=1.0, c=self.lower.T, overwrite_c=1, lower=0)

    def _add_long_sum(
        self, data: CompiledRows, order: Indices, changes: Vector, sign: float, budget: Budget
    ) -> None:
        """The same in two halves, which go side by side, whatever the number of threads."""
        sums = [np.zeros_like(self.lower) for _ in range(2)]

        def add(total: Matrix, some: Indices) -> None:
            for first in range(0, len(some), _LONG_BLOCK):
                end_if_stopped(budget)
                block = self._gathered(data, some[first : first + _LONG_BLOCK], changes, budget)
                total += block.T @ block  # NumPy's product lets other threads go on, SciPy's dsyrk does not

        halves = np.array_split(order, 2)
        parts = [partial(add, total, some) for total, some in zip(sums, halves, strict=True)]
        side_by_side(parts, budget.threads)
        for total in sums:
            self.lower += sign * total

    def _gathered(self, data: CompiledRows, some: Indices, changes: Vector, budget: Budget) -> Matrix:
        """Rows times the roots of their changes."""
        block = np.empty((len(some), len(self.lower)))
        core.gather(data, some, np.sqrt(np.abs(changes[some])), block, budget)
        return block


class Factor(Protocol):
    """A system that is ready to be solved for several right-hand sides, one after the other."""

    def solve(self, gradient: Vector) -> Vector:
        """The step p for the gradient g; the intercept's part is its last number."""


class _OnColumns:
    def __init__(self, lower: Matrix, regulariser: Vector, budget: Budget = core.ALL_CORES) -> None:
        self.factor = cholesky(lower, regulariser, budget)

    def solve(self, gradient: Vector) -> Vector:
        return -solved_by(self.factor, gradient)


class RowProducts:
    """``<x_i, x_j>`` of the free rows; those of rows that were free before are kept."""

    def __init__(self, rows: RowSpace) -> None:
        self.data: CompiledRows = rows.compiled
        self.columns = rows.columns
        self.full = nearly_full(rows) and rows.count > _FEW_ROWS
        self.kept: Indices = np.empty(0, np.int64)
        self.place: Indices = np.full(rows.count, -1)
        """The place of every row in ``kept``; -1 where it has none."""
        self._room: Matrix = np.empty((0, 0))

    @property
    def products(self) -> Matrix:
        """Those of all rows that are kept, in the order in which they came."""
        return self._room[: len(self.kept), : len(self.kept)]

    def of(self, free: Indices, budget: Budget) -> Matrix:
        """A matrix with those of some rows, for the caller to change."""
        self.keep(free, max(2 * len(free), _BLOCK), budget)
        at = self.place[free]
        return self.products[np.ix_(at, at)]

    def keep(self, rows: Indices, most: int, budget: Budget) -> bool:
        """Keep these rows beside those before, or alone where that would be more than ``most`` rows.

        Whether rows that stay have changed their places.
        """
        new = rows[self.place[rows] < 0]
        forget = len(self.kept) + len(new) > most
        if forget:
            self._forget_all_but(rows[self.place[rows] >= 0])
        if len(new):
            self._add(new, budget)
        return forget

    def _forget_all_but(self, still: Indices) -> None:
        at = self.place[still]
        self._room = self._room[np.ix_(at, at)]
        self.place[self.kept] = -1
        self.place[still] = np.arange(len(still))
        self.kept = still

    def _add(self, new: Indices, budget: Budget) -> None:
        old, before = len(self.kept), self.products
        self.kept = np.concatenate([self.kept, new])
        count = len(self.kept)
        self.place[new] = np.arange(old, count)
        if count > len(self._room):
            # A large array is slow to write for the first time: the next rows find room in it.
            self._room = np.empty((count + count // _SPARE, count + count // _SPARE))
            self._room[:old, :old] = before
        strip = self._room[old:count, :count]
        if self.full:
            self._multiply_blocks(old, strip, budget)
        else:
            for first in range(0, len(new), _BLOCK):
                end_if_stopped(budget)
                some = new[first : first + _BLOCK]
                block = np.empty((len(some), count))
                core.inner_products(self.data, some, self.kept, block, budget)
                strip[first : first + len(some)] = block
        self._room[:old, old:count] = strip[:, :old].T

    def _multiply_blocks(self, old: int, strip: Matrix, budget: Budget) -> None:
        """BLAS multiplies rows that are nearly full, many at a time: those after ``old`` with all."""
        for first in range(old, len(self.kept), _BLOCK):
            block, row = self._gather(first, budget), first - old
            for second in range(0, min(first + _BLOCK, len(self.kept)), _BLOCK):
                end_if_stopped(budget)
                other = block if second == first else self._gather(second, budget)
                with one_blas_thread():
                    strip[row : row + _BLOCK, second : second + _BLOCK] = block @ other.T
            strip[:row, first : first + _BLOCK] = strip[row : row + _BLOCK, old:first].T

    def _gather(self, first: int, budget: Budget) -> Matrix:
        """The next kept rows as a matrix."""
        some = self.kept[first : first + _BLOCK]
        block = np.empty((len(some), self.columns))
        core.gather(self.data, some, np.ones(len(some)), block, budget)
        return block


class _OnRows:
    def __init__(
        self, system: NewtonSystem, products: RowProducts, curvatures: Vector, budget: Budget
    ) -> None:
        self.system, self.data, self.budget = system, products.data, budget
        self.free = np.flatnonzero(curvatures)
        self.root = np.sqrt(curvatures[self.free])
        self.pull = 1.0
        """What stands for the identity in R, on w's places."""
        if len(self.free):
            matrix = products.of(self.free, budget)
            matrix *= self.root[:, np.newaxis]
            matrix *= self.root
            if system.problem.loss.name == "logistic":
                # Far from the end curvatures are too large for the identity to be seen beside them.
                self.pull = max(1.0, _VISIBLE * float(np.einsum("ii->i", matrix).max()))
            self.factor = cholesky(matrix, np.full(len(self.free), self.pull), budget)

    def solve(self, gradient: Vector) -> Vector:
        system, root, columns = self.system, self.root, self.system.columns
        if not len(self.free):
            return -gradient / system.pull
        right = np.empty((len(root), 2), order="F")
        core.scores_of(self.data, self.free, gradient[:columns], right[:, 0], self.budget)
        right[:, 0] *= root
        right[:, 1] = root
        solved = solved_by(self.factor, right)
        q = -solved[:, 0]
        step = gradient.copy()
        if system.has_intercept:
            ridge = system.regulariser[-1] + self.pull * core.dot(root, solved[:, 1])
            step[-1] = (core.dot(root, solved[:, 0]) - gradient[-1]) / ridge
            q += self.pull * step[-1] * solved[:, 1]
        coefficients = np.zeros(system.problem.rows.count)
        coefficients[self.free] = root * q
        core.combine(self.data, coefficients, step[:columns], self.budget)
        step[:columns] += gradient[:columns]
        step[:columns] /= -self.pull
        return step


class _ConjugateGradients:
    """Accurate enough for a step that a line search will judge."""

    accuracy = 0.03
    steps = 200

    def __init__(self, system: NewtonSystem, curvatures: Vector, budget: Budget) -> None:
        self.system, self.curvatures, self.budget = system, curvatures, budget
        self.scale = np.ones(len(system.regulariser))
        """The scale of the unknowns: the intercept meets every row."""
        if system.has_intercept:
            self.scale[-1] = float(curvatures.sum()) + system.regulariser[-1]

    def solve(self, gradient: Vector) -> Vector:
        step = np.zeros_like(gradient)
        residual = -gradient
        direction = residual / self.scale
        energy = core.dot(residual, direction)
        enough = self.accuracy**2 * energy
        for _ in range(self.steps):
            if energy <= enough or self.budget.spent:
                break
            product = self._product(direction)
            length = energy / core.dot(direction, product)
            step += length * direction
            residual -= length * product
            scaled = residual / self.scale
            before, energy = energy, core.dot(residual, scaled)
            direction = scaled + (energy / before) * direction
        return step

    def _product(self, direction: Vector) -> Vector:
        system, data = self.system, compiled(self.system.problem.rows)
        if data is None:
            weighted = self.curvatures * system.scores(direction, self.budget)
            return system.combine(weighted, self.budget) + system.regulariser * direction
        out = np.empty_like(direction)
        bias = float(direction[-1]) if system.has_intercept else 0.0
        parts = direction[: system.columns], bias, out[: system.columns]
        total = core.curvature_product(data, self.curvatures, *parts, self.budget)
        if system.has_intercept:
            out[-1] = total
        out += system.regulariser * direction
        return out
