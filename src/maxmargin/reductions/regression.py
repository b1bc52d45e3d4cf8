# SPDX-License-Identifier: BSD-3-Clause
"""The problem of one regression, stated here for estimators, files and ``certify``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin.problem import Intercept, Problem
from maxmargin.problem.regression import TUBE_LOSSES, regression_problem, signs, walls
from maxmargin.problem.rows import RowSpace
from maxmargin.problem.shares import nu_regression_problem
from maxmargin.reductions.class_problems import LabelledRows
from maxmargin.reductions.statement import Statement
from maxmargin.types import Vector


@dataclass
class Regression(Statement):
    """One regression: what is minimised, on which rows."""

    examples: RowSpace | None
    """The rows of the examples; None in an ``outline``."""
    values: Vector
    """y, one number for each example."""
    C: float
    epsilon: float
    loss: str = "epsilon_insensitive"
    """One of ``TUBE_LOSSES``."""
    intercept: Intercept = Intercept.EXACT
    intercept_scaling: float = 1.0
    weights: Vector | None = None
    """The factor on C of each example; None: all 1."""
    lengths: Vector | None = None
    """``|x_i|`` of the rows of the problem, or a little more; in an ``outline``."""
    value_error: float = 0.0
    """How far a value of the kernel can be off, in units of both lengths; in an ``outline``."""
    nu: float | None = None
    """The share of the costs that are outside of the tube at most, whose epsilon is then sought."""

    @property
    def count(self) -> int:
        """How many examples there are."""
        return len(self.values)

    @cached_property
    def _problem(self) -> Problem:
        assert self.examples is not None
        if self.nu is not None:
            return nu_regression_problem(self.examples, self.values, self.C, self.nu, weights=self.weights)
        return regression_problem(
            self.examples,
            self.values,
            self.C,
            epsilon=self.epsilon,
            loss=self.loss,
            intercept=self.intercept,
            weights=self.weights,
            intercept_scaling=self.intercept_scaling,
        )

    def statement(self) -> dict[str, Any]:
        """What was minimised, in plain values; with nu, epsilon is that of the targets, 0."""
        return {
            "nu": None if self.nu is None else float(self.nu),
            "loss": self.loss,
            "C": float(self.C),
            "epsilon": float(self.epsilon),
            "intercept": Intercept(self.intercept).value,
            "intercept_scaling": float(self.intercept_scaling),
            "sample_weights": self.has_weights,
        }

    def outline(self, value_error: float = 0.0) -> Self:
        """The same regression without the values of its rows, but for their lengths."""
        return replace(self, examples=None, lengths=self.rows.lengths, value_error=value_error)

    @property
    def intercept_of_rows(self) -> Intercept:
        """The form of the intercept as the problem has it."""
        return self.intercept

    def part(self, k: int) -> LabelledRows:
        """The signs and weights of the problem's rows."""
        weights = np.ones(len(self.values)) if self.weights is None else self.weights
        return LabelledRows(None, signs(len(self.values)), np.repeat(weights, 2))

    @property
    def targets(self) -> Vector:
        """The targets of the problem's rows."""
        return walls(self.values, self.epsilon)

    @property
    def total(self) -> float | None:
        """What the multipliers add up to, where that is given."""
        return None if self.nu is None else self.nu * self.C * 0.5 * float(self.part(0).weights.sum())

    @property
    def loss_of_rows(self) -> str:
        """The loss of the problem's rows."""
        return TUBE_LOSSES[self.loss]
