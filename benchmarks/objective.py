# SPDX-License-Identifier: BSD-3-Clause
"""What everybody minimises, written again in plain SciPy so that nobody marks their own work.

    P(w, b) = 1/2 |w|^2 + 1/2 b^2 + C sum_i loss(y_i (<w, x_i> + b))

With several classes there is one problem per class against the rest, and the measure is the sum
over the classes. All sums are in float64, outside the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DataSet

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Objective:
    """One problem: a data set, a loss and C, with the intercept as a constant feature of 1."""

    data: DataSet
    loss: str
    C: float

    @cached_property
    def X(self) -> Any:
        """The data in float64."""
        return self.data.X.astype(np.float64)

    @cached_property
    def signs(self) -> Matrix:
        """Labels -1 or 1, one column per problem: one for two classes, else one for each class."""
        classes = self.data.classes
        positive = classes[1:] if len(classes) == 2 else classes
        return np.where(self.data.y[:, None] == positive, 1.0, -1.0)

    @property
    def problems(self) -> int:
        return self.signs.shape[1]

    def primal(self, W: Matrix, b: NDArray[np.float64]) -> float:
        """``sum_k P(w_k, b_k)`` for W with one row per problem."""
        W = np.asarray(W, np.float64).reshape(self.problems, -1)
        b = np.asarray(b, np.float64).reshape(self.problems)
        slack = np.maximum(0.0, 1.0 - self.signs * (self.X @ W.T + b))
        losses = slack.sum() if self.loss == "hinge" else np.square(slack).sum()
        return float(0.5 * np.square(W).sum() + 0.5 * b @ b + self.C * losses)

    def dual(self, alpha: NDArray[np.float64], problem: int) -> float:
        """``D(alpha) <= P*`` of one problem; an alpha outside its box is an error."""
        if alpha.min() < 0 or (self.loss == "hinge" and alpha.max() > self.C):
            raise ValueError("The multipliers leave their box: they prove nothing.")
        coefficients = alpha * self.signs[:, problem]
        w, b = self.X.T @ coefficients, coefficients.sum()
        gain = alpha.sum()
        if self.loss == "squared_hinge":
            gain -= np.square(alpha).sum() / (4.0 * self.C)
        return float(gain - 0.5 * w @ w - 0.5 * b * b)
