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
from maxmargin.reductions.class_problems import ClassProblems, LabelledRows
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
    def intercept_of_rows(self) -> Intercept:
        """None: the intercepts are weights of a constant feature."""
        return Intercept.NONE

    @property
    def group(self) -> int:
        """How many rows of the problem an example has."""
        return len(self.labels) - 1

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

    def part(self, k: int) -> LabelledRows:
        """The labels and weights of the problem's rows, one for each other class of an example."""
        weights = np.repeat(self._all_weights, len(self.labels) - 1)
        return LabelledRows(None, np.ones(len(weights)), weights)

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
        return of_scores(*of_classes(certificates[0].w, len(self.labels), self.constant))

    def starts(self, coef: Matrix, intercepts: Vector) -> list[Solution]:
        """The one point that a ``coef_`` and an ``intercept_`` stand for."""
        return [Solution(w=joined(*from_scores(coef, intercepts, len(self.labels)), self.constant))]


def constant_of(stated: dict[str, Any]) -> float:
    """The value of the feature whose weights are the intercepts of a stated problem; 0: there are none."""
    return float(stated["intercept_scaling"]) if stated["intercept"] == Intercept.REGULARISED else 0.0


def of_classes(w: Vector, classes: int, constant: float) -> tuple[Matrix, Vector]:
    """The weights and the intercept of each class, of a w that has all of them."""
    each = w.reshape(-1, classes).T
    if constant == 0.0:
        return np.ascontiguousarray(each), np.zeros(classes)
    return np.ascontiguousarray(each[:, :-1]), constant * each[:, -1]


def joined(coef: Matrix, intercepts: Vector, constant: float) -> Vector:
    """One w, from the weights and the intercept of each class."""
    each = coef.T if constant == 0.0 else np.vstack([coef.T, intercepts / constant])
    return np.ascontiguousarray(each).ravel()


def of_scores(coef: Matrix, intercepts: Vector) -> tuple[Matrix, Vector]:
    """The weights and intercepts of all scores, as scikit-learn has them.

    There is one for each class; of two classes, it is what the second one has more than the first.
    """
    if len(coef) != 2:
        return coef, intercepts
    return coef[1:] - coef[:1], intercepts[1:] - intercepts[:1]


def from_scores(coef: Matrix, intercepts: Vector, classes: int) -> tuple[Matrix, Vector]:
    """The weights and intercepts of classes; of two classes, each has a half of what tells them apart."""
    if classes != 2 or len(coef) == 2:
        return coef, intercepts
    return np.vstack([-0.5 * coef, 0.5 * coef]), np.array([-0.5, 0.5]) * intercepts


def places_of_scores(place: Neighbourhood, intercepts: Vector, constant: float) -> list[Neighbourhood]:
    """Where the best weights of every score are: together they are as near as the one w that was proven.

    Of two classes, the difference of two parts of a vector is at most the root of 2 times as long as it.
    """
    radius = math.nextafter(place.radius * (_ROOT_2 if len(intercepts) == 1 else 1.0), math.inf)
    return [Neighbourhood(radius, b, b, constant) for b in intercepts.tolist()]
