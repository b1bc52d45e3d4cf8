# SPDX-License-Identifier: BSD-3-Clause
"""All classes of a fit in one problem, Crammer and Singer's, stated here for estimators and files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import Intercept, Problem
from maxmargin.problem.class_rows import class_problem
from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.solution import Solution
from maxmargin.proof.sure import Neighbourhood
from maxmargin.reductions.class_problems import ClassProblems, Part
from maxmargin.types import Indices, Vector

_ROOT_2 = 1.4142135623730954
"""A little more than the root of 2."""


class JointClasses(ClassProblems):
    """One problem in which every class has a w of its own; its loss is the hinge, whatever is asked for."""

    def __init__(self, labels: NDArray[Any], codes: NDArray[Any], *args: Any, **options: Any) -> None:
        super().__init__(labels, codes, *args, **options | {"loss": "hinge"})

    def __len__(self) -> int:
        return 1

    @property
    def several(self) -> bool:
        """There is one problem, however many classes."""
        return False

    @property
    def constant(self) -> float:
        """The value of the feature whose weights are the intercepts; 0: there are none."""
        return self.intercept_scaling if self.intercept == Intercept.REGULARISED else 0.0

    def name(self, k: int) -> Any:
        """Nothing: there is no other to be told from."""
        return None

    def title(self, k: int) -> str:
        """Nothing, for the same reason."""
        return ""

    def count(self, k: int) -> int:
        """How many rows the problem has: one for each example and each other class."""
        return len(self.codes) * (len(self.labels) - 1)

    def members(self, k: int) -> Indices | None:
        """All rows."""
        return None

    def part(self, k: int) -> Part:
        """The labels and weights of the problem's rows, of which an example has one for each other class."""
        weights = np.repeat(self._all_weights, len(self.labels) - 1)
        return Part(None, np.ones(len(weights)), weights)

    def problem(self, k: int = 0) -> Problem:
        """The problem."""
        return self._problem

    @cached_property
    def _problem(self) -> Problem:
        weights, classes = self._all_weights, len(self.labels)
        return class_problem(
            self.rows, self.codes, classes, self.C, weights=weights, constant=self.constant
        )

    def _lengths(self) -> tuple[Vector, float]:
        return self._problem.rows.lengths, 0.0

    def answers(self, certificates: Sequence[Certificate], coef: Matrix) -> tuple[Matrix, Vector]:
        """``coef_`` and ``intercept_``: those of each class; of two classes, what the second has more."""
        return in_scikit_learns_form(self.weights_of_classes(certificates[0].w))

    def weights_of_classes(self, w: Vector) -> tuple[Matrix, Vector]:
        """The weights and the intercept of each class."""
        columns = len(w) // len(self.labels)
        each = w.reshape(columns, len(self.labels)).T
        if self.constant == 0.0:
            return np.ascontiguousarray(each), np.zeros(len(self.labels))
        return np.ascontiguousarray(each[:, :-1]), self.constant * each[:, -1]

    def starts(self, coef: Matrix, intercepts: Vector) -> list[Solution]:
        """The one point; of two classes each has a half of what tells them apart."""
        if len(self.labels) == 2:
            coef, intercepts = np.vstack([-coef, coef]) / 2.0, np.array([-0.5, 0.5]) * intercepts
        return [Solution(w=self.w_of_classes(coef, intercepts))]

    def w_of_classes(self, coef: Matrix, intercept: Vector) -> Vector:
        """One w, from the weights and the intercept of each class."""
        each = coef.T
        if self.constant != 0.0:
            each = np.vstack([each, intercept / self.constant])
        return np.ascontiguousarray(each).ravel()

    def places(self, found: list[Neighbourhood], intercepts: Vector) -> list[Neighbourhood]:
        """Where the best w of each class is: all of them together are as near as the one that was found.

        Of two classes, the difference of two parts of a vector is at most the root of 2 times as long.
        """
        radius = found[0].radius * (_ROOT_2 if len(self.labels) == 2 else 1.0)
        radius = math.nextafter(radius, math.inf)
        return [Neighbourhood(radius, b, b, self.constant) for b in intercepts.tolist()]


def in_scikit_learns_form(weights: tuple[Matrix, Vector]) -> tuple[Matrix, Vector]:
    """The weights and intercepts of each class; of two classes, the difference of the second to the first."""
    coef, intercept = weights
    if len(coef) != 2:
        return coef, intercept
    return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
