# SPDX-License-Identifier: BSD-3-Clause
"""A classifier with a kernel as a file holds it: support vectors, their coefficients, and the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.models.soundness import kernel_contradictions
from maxmargin.files.models.stored import StoredModel, widened
from maxmargin.kernels.base import Kernel, Precomputed
from maxmargin.problem.rows import Rows
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.types import Vector


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedKernelModel(StoredModel):
    """A classifier with a kernel, and what is known about it."""

    kernel: Kernel
    vectors: Any
    """The support vectors, those of the first class first: dense or CSR, float32 or float64; None for a
    precomputed kernel."""
    coefficients: Vector
    """``alpha_i y_i`` in the shape of ``SVC.dual_coef_``: one line for two classes, k - 1 for pairs of
    classes, k for each class against the rest."""
    counts: NDArray[np.int64]
    """The number of support vectors of each class."""
    support: NDArray[np.int64] | None = None
    """The rows of the support vectors in the training data; None for the files of others."""
    open_ended: bool = False
    """Whether rows may have more columns than the support vectors: files of LIBSVM do not tell how many
    there were."""
    steps_each: list[int] | None = None
    """The steps of each problem."""
    class_factors: list[float] | None = None
    """The factor on C of each class."""

    def _contradictions(self) -> Iterator[str]:
        return kernel_contradictions(self)

    @property
    def features(self) -> int:
        """Number of columns; with a precomputed kernel, of rows that were trained on."""
        return int((self.rows or 0) if self.vectors is None else self.vectors.shape[1])

    @property
    def width(self) -> int | None:
        """How many columns of the data the model looks at; None: all, however many there are."""
        return None if self.open_ended else self.features

    @property
    def owners(self) -> NDArray[np.intp]:
        """The class of each support vector, as an index into ``classes``."""
        return np.repeat(np.arange(len(self.classes)), self.counts)

    def coefficients_of(self, k: int) -> Vector:
        """``alpha_i y_i`` of all support vectors in one of the problems, zero for those it has not."""
        return self.kind.coefficients(self.coefficients, k, self.owners)

    def _scores(self, X: Any) -> Vector:
        if self.coefficients.shape[1] == 0:
            return np.tile(self.intercept, (X.shape[0], 1))
        X, vectors = self._side_by_side(X)
        scores = self._problem_scores
        if vectors is not scores.support:
            scores = replace(scores, support=vectors)
        return scores(X, self.intercept)

    @cached_property
    def _problem_scores(self) -> KernelScores:
        support = self.support if isinstance(self.kernel, Precomputed) else self.vectors
        return KernelScores(self.kernel, support, self.coefficients, self.counts)

    def _side_by_side(self, X: Any) -> tuple[Any, Any]:
        """X and the support vectors with equally many columns."""
        if isinstance(self.kernel, Precomputed):
            if X.shape[1] != self.features:
                raise ValueError(
                    f"X must have a value for each of the {self.features} rows that were trained on, since "
                    f"the kernel is precomputed. Got {X.shape[1]} columns instead. Give kernel(X, X_train)."
                )
            return X, self.support
        self.kernel.refuse_negative(Rows(X, check_finite=False))
        d = max(X.shape[1], self.features)
        return widened(X, d), widened(self.vectors, d)

    def _turned(self, order: NDArray[np.intp], problems: list[int], signs: Vector) -> dict[str, Any]:
        owners, factors = self.owners, self.class_factors
        by_class = [np.flatnonzero(owners == place) for place in order]
        taken = np.concatenate(by_class)
        each = [sign * self.coefficients_of(k) for sign, k in zip(signs, problems, strict=True)]
        if not self.kind.all_rows:
            sides: Any = self.kind.sides
            own = [np.concatenate([by_class[i], by_class[j]]) for i, j in sides]
            each = [line[columns] for line, columns in zip(each, own, strict=True)]
        return {
            "coefficients": np.ascontiguousarray(self.kind.table(each, by_class)),
            "counts": self.counts[order],
            "vectors": None if self.vectors is None else self.vectors[taken],
            "support": None if self.support is None else self.support[taken],
            "class_factors": None if factors is None else [factors[c] for c in order.tolist()],
        }
