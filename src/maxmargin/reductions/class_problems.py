# SPDX-License-Identifier: BSD-3-Clause
"""The problems of one fit, stated here and nowhere else.

Rows of several classes become problems with the labels 1 and -1, as a ``Decomposition`` says.
``ClassProblems`` are such problems on rows as they are, ``KernelProblems`` on rows seen through a kernel.
Estimators, the choice of C, ``certify``, ``compare`` and model files all state their problems by these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin import core
from maxmargin.gpu.kernel_rows import CardData, CardKernelRows, RowsOnCard
from maxmargin.kernels.base import Function, Kernel, Linear, Precomputed
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.rounding import Rounding, bounds_for, rounding_of
from maxmargin.kernels.uncoupled import affordable, split
from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import Matrix, Rows, RowSpace, refuse_extremes
from maxmargin.problem.shares import largest_nu, nu_classification_problem
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Certificates
from maxmargin.proof.solution import Solution
from maxmargin.reductions.decompositions import Decomposition, class_factors
from maxmargin.reductions.small_problems import Parts
from maxmargin.solvers import sizes
from maxmargin.tools.interrupts import let_through
from maxmargin.types import Indices, Vector

_OUTLINE: tuple[str, ...] = ("labels", "codes", "kind", "C", "loss", "intercept", "intercept_scaling")
_OUTLINE += ("weights", "class_weight", "factors", "left_out", "_no_cost", "nu", "scales", "penalty")
"""What remains of problems without the values of their rows."""


class LabelledRows(NamedTuple):
    """What is of one problem alone."""

    which: Indices | None
    """The rows of the problem; None: all of them, in their own order."""
    y: Vector
    """Their labels."""
    weights: Vector
    """The factor on C of each of them."""


class ClassProblems:
    """The problems of one fit on rows as they are.

    labels, codes
        The classes, and for each row the place of its own among them.
    C, loss, intercept, intercept_scaling
        As ``Problem.of`` has them; an infinite C stands for hard margins, whose loss and C do not matter.
    weights
        The factor on C of each row; None: all 1.
    class_weight
        The factor on C of each class; see ``class_factors``.
    penalty
        That of every problem.
    nu
        The share of the rows that may be on the wrong side, where that is given in the place of C.
    """

    lengths: Vector
    """``|x_i|`` of all rows, or a little more; in an ``outline``."""
    value_error: float
    """How far a value of the kernel can be off, in units of both lengths; in an ``outline``."""

    def __init__(
        self,
        labels: NDArray[Any],
        codes: NDArray[Any],
        rows: RowSpace,
        kind: Decomposition,
        *,
        C: float,
        loss: str = "hinge",
        intercept: str | Intercept = Intercept.EXACT,
        intercept_scaling: float = 1.0,
        weights: Vector | None = None,
        class_weight: Any = None,
        penalty: str = "l2",
        nu: float | None = None,
    ) -> None:
        self.nu = nu
        self.scales = np.ones(len(kind))
        """The factor on C of each problem: with nu, that which makes its rho 1 once it is known."""
        self.labels, self.codes, self.kind = labels, codes, kind
        self.penalty = penalty
        self.rows: RowSpace = rows
        self.C, self.loss = float(C), loss
        self.intercept, self.intercept_scaling = intercept, float(intercept_scaling)
        self.weights = np.ones(len(codes)) if weights is None else weights
        self.class_weight = class_weight
        self.factors = class_factors(class_weight, labels, codes, weights)
        self._first: Problem | None = None

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def several(self) -> bool:
        """Whether there is more than one problem."""
        return len(self.kind) > 1

    @property
    def intercept_of_rows(self) -> str | Intercept:
        """The form of the intercept as the problems have it."""
        return self.intercept

    @property
    def hard(self) -> bool:
        """Whether these are hard margins."""
        return math.isinf(self.C)

    def name(self, k: int) -> Any:
        """The label that is told from the others, or the two labels of a pair."""
        i, j = self.kind.sides[k]
        return self.labels[i] if self.kind.all_rows else (self.labels[i], self.labels[j])

    def title(self, k: int) -> str:
        """Which classes a problem tells apart, in words; empty where there are only two."""
        i, j = self.kind.sides[k]
        if len(self.labels) == 2:
            return ""
        return f"{self.labels[i]} against {'the rest' if j is None else self.labels[j]}"

    @cached_property
    def by_class(self) -> list[Indices]:
        """The rows of each class."""
        order = np.argsort(self.codes, kind="stable")
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.labels))).tolist()
        return [order[begin:end] for begin, end in pairwise([0, *ends])]

    def count(self, k: int) -> int:
        """How many rows a problem has."""
        i, j = self.kind.sides[k]
        if j is None or self.kind.all_rows:
            return len(self.codes)
        return len(self.by_class[i]) + len(self.by_class[j])

    @property
    def largest(self) -> int:
        """How many rows the largest problem has."""
        return len(self.codes) if self.kind.all_rows else sum(sorted(map(len, self.by_class))[-2:])

    @cached_property
    def _all_weights(self) -> Vector:
        """The factor on C of each row, with that of its class."""
        return self.weights if self.class_weight is None else self.weights * self.factors[self.codes]

    def members(self, k: int) -> Indices | None:
        """The rows of a problem; None: all of them, in their own order."""
        i, j = self.kind.sides[k]
        if j is None or self.kind.all_rows:
            return None
        return np.concatenate([self.by_class[i], self.by_class[j]])

    def part(self, k: int) -> LabelledRows:
        """The rows, labels and weights of a problem."""
        i, j = self.kind.sides[k]
        which = self.members(k)
        if which is not None:
            y = np.ones(len(which))
            y[len(self.by_class[i]) :] = -1.0
            return LabelledRows(which, y, self._all_weights[which])
        positive = self.codes == i
        weights = self._all_weights if j is not None else self._weights_against_rest(i, positive)
        return LabelledRows(None, np.where(positive, 1.0, -1.0), weights)

    def _weights_against_rest(self, k: int, positive: NDArray[np.bool_]) -> Vector:
        """The rest has the factor 1, as LIBLINEAR and scikit-learn's ``LinearSVC`` do it."""
        if self.class_weight is None:
            return self.weights
        return self.weights * np.where(positive, self.factors[k], 1.0)

    def problem(self, k: int) -> Problem:
        """One of the problems; rows are shared where all of them are in it."""
        which, y, weights = self.part(k)
        if self.nu is not None:
            self._refuse_infeasible(k, y, weights)
            seen = self._seen(which, y, weights)
            return nu_classification_problem(seen, y, self.nu, weights=self.cost(k) * weights)
        first = self._first
        if first is not None and which is None and weights is self.weights:
            return first.with_labels(y)  # which knows already what labels do not change
        problem = Problem.of(
            self._seen(which, y, weights),
            y,
            1.0 if self.hard else self.C,
            loss="hinge" if self.hard else self.loss,
            intercept=self.intercept,
            weights=weights,
            intercept_scaling=self.intercept_scaling,
            penalty=self.penalty,
        )
        if which is None and weights is self.weights:
            self._first = problem
        return problem

    def cost(self, k: int) -> float:
        """The C of one of the problems."""
        return float(self.C * self.scales[k])

    def shares(self, k: int) -> tuple[Vector, float] | None:
        """The targets of a problem's rows, and what its multipliers add up to; None without nu."""
        if self.nu is None:
            return None
        weights = self.part(k).weights
        return np.zeros(len(weights)), self.nu * self.cost(k) * float(weights.sum())

    def _refuse_infeasible(self, k: int, y: Vector, weights: Vector) -> None:
        assert self.nu is not None
        most = largest_nu(weights, y)
        if self.nu > most * (1.0 + 1e-12):
            i, j = self.kind.sides[k]
            pair = f"{self.labels[i]!s} and {'the rest' if j is None else self.labels[j]!s}"
            raise ValueError(
                f"specified nu is infeasible: for the classes {pair} it must be at most {most:.6g}, twice "
                f"the share of the smaller one. Got nu={self.nu!r} instead."
            )

    def _seen(self, which: Indices | None, y: Vector, weights: Vector) -> RowSpace:
        """The rows of a problem."""
        return self.rows if which is None else self.rows.take(which)

    def together(self, certificates: Sequence[Certificate]) -> Certificates:
        """The certificates of all problems as one."""
        return self.kind.together(certificates, self.labels.tolist())

    def answers(self, certificates: Sequence[Certificate], coef: Matrix) -> tuple[Matrix, Vector]:
        """``coef_`` and ``intercept_`` of linear problems, whose w are the lines of ``coef``."""
        return coef, np.array([certificate.b for certificate in certificates])

    def starts(self, coef: Matrix, intercepts: Vector) -> list[Solution]:
        """The points of each problem that a ``coef_`` and ``intercept_`` stand for."""
        return [Solution(w=w, b=b) for w, b in zip(coef, intercepts.tolist(), strict=True)]

    def outline(self) -> Self:
        """The same problems without the values of their rows, but for the ``lengths``.

        A fitted estimator keeps it: it tells the labels and the costs of each problem when they are asked
        for.
        """
        kept = object.__new__(type(self))
        kept.__dict__.update({name: self.__dict__[name] for name in _OUTLINE if name in self.__dict__})
        kept.lengths, kept.value_error = self._lengths()
        return kept

    def _lengths(self) -> tuple[Vector, float]:
        """The lengths of all rows, and the error of values of the kernel: none where there is none."""
        return self.rows.lengths, 0.0

    def statement(self) -> dict[str, Any]:
        """What was minimised, in plain values; ``restated`` takes them."""
        weight = self.class_weight
        if isinstance(weight, dict):
            plain = [label.item() if isinstance(label, np.generic) else label for label in weight]
            weight = dict(zip(plain, map(float, weight.values()), strict=True))
        return {
            "loss": str(self.loss),
            "C": self.C,
            "intercept": Intercept(self.intercept).value,
            "intercept_scaling": self.intercept_scaling,
            "class_weight": weight,
            "sample_weights": bool((self.weights != 1.0).any()),
        } | ({} if self.nu is None else {"nu": float(self.nu)})


class KernelProblems(ClassProblems):
    """The problems of one fit on rows seen through a kernel; all of them share the rows."""

    rows: Rows
    kernel_is_none: bool = False
    """Whether the function is not shown to be a kernel on these rows."""
    left_out: float = 0.0
    """The largest value of a pair of rows that some problem leaves out."""

    def __init__(
        self,
        labels: NDArray[Any],
        codes: NDArray[Any],
        X: Rows | Any,
        kernel: Kernel,
        kind: Decomposition,
        *,
        matrix: NDArray[Any] | None = None,
        no_cost: Indices | None = None,
        on_card: CardData | None = None,
        **options: Any,
    ) -> None:
        given = matrix is not None
        rows = (
            X if isinstance(X, Rows) else Rows(matrix if given else X, check_finite=False, keep_zeros=given)
        )
        super().__init__(labels, codes, rows, kind, **options)
        self.plain_rows: Rows | None = None
        """The rows themselves, where the kernel is their inner product."""
        if isinstance(kernel, Linear):
            self.plain_rows = Rows(X, check_finite=False) if given else rows
        self.kernel = Precomputed() if given else kernel
        self.given = kernel, X
        """The kernel and the rows as they came."""
        self.matrix = matrix
        """All values of the kernel, where they are at hand."""
        self.kernel.refuse_negative(rows)
        self._spare = core.SpareMemory()
        self.on_card = on_card
        """The data on a GPU, where the fit is to run there."""
        self._no_cost = no_cost
        """More rows that every problem has at its end, without cost: they only hold the w of a file."""
        self.may_leave_out: float | None = None
        """What pairs of rows may be worth that a problem leaves out; None: as little as nobody notices."""

    def with_costs(self, weights: Vector, C: float | None = None) -> Self:
        """The same problems with other weights of the rows, and at another C, on the same rows."""
        _ = self.rounding, self.by_class  # shared, so made before
        other = copy(self)
        other.__dict__.pop("_all_weights", None)
        other.scales = np.ones(len(self.kind))
        other.weights, other.C = weights, self.C if C is None else float(C)
        other.factors = class_factors(self.class_weight, self.labels, self.codes, weights)
        return other

    def _lengths(self) -> tuple[Vector, float]:
        """The square roots of ``k(x_i, x_i)``, or a little more, and the error of the kernel's values."""
        return self.rounding.simple

    def _weights_against_rest(self, k: int, positive: NDArray[np.bool_]) -> Vector:
        """Every row has the factor of its own class, as LIBSVM would do it."""
        return self._all_weights

    def part(self, k: int) -> LabelledRows:
        """The rows, labels and weights of a problem, with those rows at its end that have no cost."""
        which, y, weights = super().part(k)
        if self._no_cost is None:
            return LabelledRows(which, y, weights)
        more = np.zeros(len(self._no_cost))
        which = np.arange(len(self.codes)) if which is None else which
        return LabelledRows(
            np.concatenate([which, self._no_cost]),
            np.concatenate([y, more + 1.0]),
            np.concatenate([weights, more]),
        )

    def _seen(self, which: Indices | None, y: Vector, weights: Vector) -> RowSpace:
        if self.on_card is None:
            rows = KernelRows(self.rows, self.kernel, which=which)
        else:
            rows = CardKernelRows(self.on_card, self.rows, self.kernel, which=which)
        rows.kernel_is_none = self.kernel_is_none
        rows.rounding, rows.source = self.rounding, None if self.on_card else self.source
        rows.spare = self._spare
        alone = self.on_card is None or not self.several  # on a GPU, problems are each other's parts
        alone = alone and self.nu is None  # whose best value may be so small that nothing may be left out
        if alone and len(y) >= sizes.SPLIT_FROM and self.matrix is None and self.may_leave_out != 0.0:
            costs = self.C * weights
            error = self.may_leave_out or affordable(rows.squared_norms, y, costs)
            rows.blocks = split(self.rows, self.kernel, float(costs.sum()), error, rows.which)
            self.left_out = max(self.left_out, rows.blocks.left_out)
        return rows

    @cached_property
    def source(self) -> tuple[Kernel, core.Data]:
        """The kernel and the data that all its values come from, also those of a matrix at hand."""
        kernel, X = self.given
        if self.matrix is None or isinstance(kernel, Precomputed | Function):
            return self.kernel, self.rows.stored_data
        rows = X if isinstance(X, Rows) else Rows(X, check_finite=False, keep_zeros=True)
        return kernel, rows.stored_data

    @cached_property
    def rounding(self) -> Rounding:
        """Bounds on the rounding of the kernel's values."""
        if isinstance(self.rows, RowsOnCard):
            return bounds_for(self.kernel, self.rows, self.rows.has_exact_sums)
        return rounding_of(*self.source, packed=self.on_card is None)

    def all_rows_on_card(self) -> CardKernelRows:
        """The rows of all problems, on a GPU."""
        assert self.on_card is not None
        rows = CardKernelRows(self.on_card, self.rows, self.kernel)
        rows.rounding = self.rounding
        return rows

    def problem(self, k: int) -> Problem:
        """One of the problems, with rows of its own: how they fall into blocks depends on its labels."""
        self._first = None
        return super().problem(k)

    def plain_problem(self, k: int) -> Problem | None:
        """A problem on the rows themselves, copied, where the kernel is their inner product."""
        if self.plain_rows is None:
            return None
        which, y, weights = self.part(k)
        rows = self.plain_rows if which is None else self.plain_rows.take(which)
        return Problem.of(rows, y, self.C, weights=weights)

    def refuse_extremes(self) -> None:
        """Raises where costs or values of the kernel are beyond what float64 can square."""
        largest = float(self._lengths()[0].max(initial=0.0))
        with np.errstate(over="ignore"):
            total_cost = float((self.C * self._all_weights).sum())
        refuse_extremes(total_cost, largest, kernel=True)

    def in_a_row(self) -> Parts:
        """All problems with their costs, one after the other, for one call of the core."""
        if self.kind.all_rows:
            problems, count = len(self), len(self.codes)
            y = np.concatenate([self.part(k).y for k in range(problems)])
            which, costs = np.arange(count), self.C * self._all_weights
            if problems > 1:
                which, costs = np.tile(which, problems), np.tile(costs, problems)
            return Parts(which, y, costs, count * np.arange(problems + 1))
        # As ``part`` has it, for all pairs at once: of ten classes there are 45.
        which = np.concatenate(
            [self.by_class[i] for pair in self.kind.sides for i in pair if i is not None]
        )
        counts = np.array(list(map(len, self.by_class)))[np.array(self.kind.sides, np.intp)]
        y = np.repeat(np.tile([1.0, -1.0], len(counts)), counts.ravel())
        begins = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
        return Parts(which, y, self.C * self._all_weights[which], begins)

    def table(self, each: Sequence[Vector]) -> Matrix:
        """The coefficients of all problems in the shape of ``dual_coef_``; columns are ordered by class."""
        return self.kind.table(each, self.by_class)

    def refuse_classes_without_weight(self) -> None:
        """Raises where a class has no row that counts: it could not be told from others."""
        counted = np.bincount(self.codes, self._all_weights > 0)
        if np.count_nonzero(counted) == 1:
            raise ValueError(
                ("" if self.nu is None else "specified nu is infeasible. ")
                + "Invalid input - all samples with positive weights belong to the same class, "
                f"{self.labels[counted > 0][0]!r}. Give a row of another class a weight above 0."
            )
        if not counted.all():
            raise ValueError(
                f"Class {self.labels[counted == 0][0]!r} has no row with a weight above 0, so it cannot be "
                "told from other classes. Give one of its rows a weight above 0, or leave the class out."
            )


def all_values(
    kernel: Kernel, X: Any, cache_size: float, threads: Callable[[], int], *, shared: bool = False
) -> NDArray[Any] | None:
    """All values of the kernel, where they are given, or few, or where only a function knows them.

    ``shared``: several fits are on these rows, so that all values are worth it whatever their number, as
    long as ``cache_size`` has room for them.
    """
    if isinstance(kernel, Precomputed):
        matrix: NDArray[Any] = X
        return matrix
    if isinstance(kernel, Function):
        from sklearn.utils import assert_all_finite

        with let_through():  # without these values nothing can be kept
            values = kernel(X)
        assert_all_finite(values, input_name="kernel(X, X)")
        return values
    count = X.shape[0]
    few = shared or count <= sizes.ALL_KERNEL_VALUES
    if not few or 8e-6 * count**2 > sizes.SHARE_OF_CACHE * cache_size:
        return None
    rows = Rows(X, check_finite=False)
    alone = rows.count * rows.stored <= sizes.ONE_THREAD_PRODUCTS
    return kernel(rows, budget=core.Budget(math.inf, 1 if alone else threads()))
