# SPDX-License-Identifier: BSD-3-Clause
"""The problem of one class, stated here for estimators, files and ``certify``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin.problem import Intercept, Problem
from maxmargin.problem.rows import RowSpace
from maxmargin.problem.shares import one_class_problem
from maxmargin.proof.certificate import Certificate
from maxmargin.reductions.class_problems import LabelledRows
from maxmargin.reductions.statement import Statement
from maxmargin.tools.parameters import changed
from maxmargin.types import Vector

_TRIFLE = 1e-10
"""The share of rho that it is lowered by, for rows on the boundary to be inside whatever rounding does."""


def with_boundary_inside(proof: Certificate, tol: float) -> Certificate:
    """The certificate with rho a trifle smaller, proven again, where that leaves it within ``tol``.

    At the optimum some rows lie on the boundary. Rounding alone would decide on which side.
    """
    if not proof.of_one_class or proof.problem is None or proof.shift >= 0.0:
        return proof
    trifle = _TRIFLE * abs(proof.shift)
    shift, margins = proof.shift + trifle, proof.margins + trifle
    primal = proof.problem.primal_of(proof.w, proof.b, margins, shift=shift)
    moved = changed(proof, shift=shift, margins=margins, primal=primal)
    return moved if moved.relative_gap <= tol or proof.relative_gap > tol else proof


@dataclass
class OneClass(Statement):
    """The rows of one class, of which a share of nu at most is to be outside."""

    examples: RowSpace | None
    """The rows; None in an ``outline``."""
    count: int
    """How many there are."""
    nu: float
    weights: Vector | None = None
    """C_i; None: all 1."""
    lengths: Vector | None = None
    """``|x_i|``, or a little more; in an ``outline``."""
    value_error: float = 0.0
    """How far a value of the kernel can be off, in units of both lengths; in an ``outline``."""

    C = 1.0
    loss = loss_of_rows = "hinge"
    intercept = intercept_of_rows = Intercept.NONE
    intercept_scaling = 1.0

    @cached_property
    def _problem(self) -> Problem:
        assert self.examples is not None
        return one_class_problem(self.examples, self.nu, weights=self.weights)

    def statement(self) -> dict[str, Any]:
        """What was minimised, in plain values."""
        return {
            "loss": "hinge",
            "C": 1.0,
            "nu": float(self.nu),
            "intercept": Intercept.NONE.value,
            "intercept_scaling": 1.0,
            "sample_weights": self.has_weights,
        }

    def outline(self, value_error: float = 0.0) -> Self:
        """The same without the values of the rows, but for their lengths."""
        return replace(self, examples=None, lengths=self.rows.lengths, value_error=value_error)

    def part(self, k: int) -> LabelledRows:
        """The signs and weights of the rows."""
        return LabelledRows(
            None, np.ones(self.count), np.ones(self.count) if self.weights is None else self.weights
        )

    @property
    def targets(self) -> Vector:
        """The targets of the rows, before they are shifted."""
        return np.zeros(self.count)

    @property
    def total(self) -> float:
        """What the multipliers add up to."""
        return self.nu * float(self.part(0).weights.sum())
