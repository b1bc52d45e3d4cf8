# SPDX-License-Identifier: BSD-3-Clause
"""What a model without classes does on some rows: how far its numbers are off, or what is outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.files import StoredModel
from maxmargin.files.data.labels import numbers_of
from maxmargin.types import Vector


class Numbers:
    """What a regressor, or the region of one class, does on the rows of X."""

    accuracy = None
    """There is none without classes."""
    sure = None
    known = right = 0
    problems = ("this model",)
    """The names of all problems."""

    def __init__(self, model: StoredModel, X: Any, y: Any) -> None:
        self.model, self.rows = model, int(X.shape[0])
        if model.width is not None and X.shape[1] > model.width:
            X = X[:, : model.width]  # columns that a LIBSVM model gives no weight
        self.scores: Vector = model.decision_function(X)
        """What is predicted; of one class, scores, which are at least 0 inside."""
        self.values: Vector | None = None
        """The numbers that should have been predicted; None where there are none."""
        if model.is_regression and y is not None:
            self.values = numbers_of(np.asarray(y))

    @property
    def outside(self) -> int:
        """Rows outside of the region of one class."""
        return int(np.count_nonzero(self.scores < 0.0))

    @property
    def errors(self) -> Vector | None:
        """What each number is off by."""
        return None if self.values is None else self.scores - self.values

    @property
    def mean_absolute_error(self) -> float | None:
        """What numbers are off by in the mean."""
        return None if self.errors is None else float(np.abs(self.errors).mean())

    @property
    def root_mean_squared_error(self) -> float | None:
        """The other usual measure."""
        return None if self.errors is None else float(np.sqrt(np.square(self.errors).mean()))

    @property
    def explained(self) -> float | None:
        """R², the share of the values' variance that is predicted; None where they are all the same."""
        if self.values is None or self.errors is None or not np.var(self.values) > 0.0:
            return None
        return float(1.0 - np.square(self.errors).mean() / np.var(self.values))

    @property
    def of_the_median(self) -> tuple[float, float] | None:
        """The median of the values, and what it is off by in the mean: no other number is off by less."""
        if self.values is None:
            return None
        median = float(np.median(self.values))
        return median, float(np.abs(self.values - median).mean())

    @property
    def epsilon(self) -> float | None:
        """Half the width of the tube, where the file tells it."""
        if not self.model.is_regression:
            return None
        shares, stated = self.model.shares, self.model.problem["epsilon"]
        return shares[0].shift if shares is not None else stated if not self.model.has_nu else None

    def as_json(self) -> dict[str, Any]:
        """The same in plain values."""
        if self.model.is_one_class:
            return {"rows": self.rows, "outside": self.outside}
        median = self.of_the_median
        return {
            "rows": self.rows,
            "mean_absolute_error": self.mean_absolute_error,
            "root_mean_squared_error": self.root_mean_squared_error,
            "explained": self.explained,
            "error_of_the_median": None if median is None else median[1],
            "epsilon": self.epsilon,
        }
