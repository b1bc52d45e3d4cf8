# SPDX-License-Identifier: BSD-3-Clause
"""A classifier with a kernel as a file holds it: support vectors, their coefficients, and the kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.models.kernel_soundness import contradiction
from maxmargin.files.models.stored import ModelError, StoredModel
from maxmargin.kernels.base import Kernel, Linear, Precomputed
from maxmargin.problem.rows import Rows
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.files.models.saved import SavedModel


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedKernelModel(StoredModel):
    """A classifier with a kernel, and what is known about it. All fields are checked against each other."""

    kernel: Kernel
    vectors: Any
    """The support vectors, those of the first class first: dense or CSR, float32 or float64; None for a
    precomputed kernel."""
    coefficients: Vector
    """``alpha_i y_i`` in the shape of ``SVC.dual_coef_``: one line for two classes, k - 1 for pairs of
    classes, k for each class against the rest."""
    counts: NDArray[np.int64]
    """Support vectors of each class."""
    support: NDArray[np.int64] | None = None
    """Their rows in the training data; None for the files of others."""
    open_ended: bool = False
    """Whether rows may have more columns than the support vectors: files of LIBSVM do not tell how many
    there were."""
    steps_each: list[int] | None = None
    """Of each problem."""
    class_factors: list[float] | None = None
    """On C, of each class."""

    def __post_init__(self) -> None:
        message = contradiction(self)
        if message is not None:
            raise ModelError(message)

    @property
    def features(self) -> int:
        """Number of columns; with a precomputed kernel, of rows that were trained on."""
        if self.vectors is None:
            return int(self.rows or 0)
        return int(self.vectors.shape[1])

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


def widened(X: Any, columns: int) -> Any:
    """X with so many columns, those that are added being zeros."""
    missing = columns - X.shape[1]
    if missing == 0:
        return X
    if sparse.issparse(X):
        matrix = sparse.csr_matrix(X)
        return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), (X.shape[0], columns))
    return np.pad(X, ((0, 0), (0, missing)))


def in_order(model: SavedKernelModel, order: NDArray[np.intp]) -> SavedKernelModel:
    """The same model with its classes in another order: place p is taken by class ``order[p]``.

    What is proven is left out unless the order stays: proofs speak of rows in the order of the classes.
    """
    k = len(model.classes)
    if (order == np.arange(k)).all():
        return model
    place = np.empty(k, np.intp)
    place[order] = np.arange(k)
    owners = place[model.owners]
    taken = np.argsort(owners, kind="stable")
    lines = np.zeros_like(model.coefficients)
    intercept = np.empty_like(model.intercept)
    if k == 2:
        lines, intercept = -model.coefficients, -model.intercept
    elif model.decision == "one_vs_rest":
        lines, intercept = model.coefficients[order], model.intercept[order]
    else:
        number = {pair: position for position, pair in enumerate(model.pairs)}
        for position, (a, b) in enumerate(model.pairs):
            i, j = int(order[a]), int(order[b])
            sign, old = (1.0, number[i, j]) if i < j else (-1.0, number[j, i])
            signed = sign * model.coefficients_of(old)
            intercept[position] = sign * model.intercept[old]
            lines[b - 1, owners == a] = signed[owners == a]
            lines[a, owners == b] = signed[owners == b]
    factors = model.class_factors
    return replace(
        model,
        classes=model.classes[order],
        coefficients=np.ascontiguousarray(lines[:, taken]),
        counts=model.counts[order],
        intercept=intercept,
        vectors=None if model.vectors is None else model.vectors[taken],
        support=None if model.support is None else model.support[taken],
        class_factors=None if factors is None else [factors[c] for c in order.tolist()],
        claims=None,
        certificates=None,
        traces=None,
    )


def with_linear_kernel(model: SavedModel) -> SavedKernelModel:
    """The support vectors of a linear LIBSVM file as a model with the linear kernel."""
    support = model.support
    if support is None:
        raise ModelError(
            "it is a linear model without support vectors. Load it with LinearSVC.load, or predict with "
            "maxmargin.files.load_model(path).predict(X)."
        )
    position = {label: k for k, label in enumerate(model.classes.tolist())}
    owners = np.array([position[label] for label in support.labels.tolist()], np.intp)
    taken = np.argsort(owners, kind="stable")
    return SavedKernelModel(
        kernel=Linear(),
        vectors=support.vectors[taken],
        coefficients=np.ascontiguousarray(support.coefficients[taken].T),
        counts=np.bincount(owners, minlength=len(model.classes)),
        intercept=model.intercept,
        classes=model.classes,
        decision=model.decision,
        problem=model.problem,
        writer=model.writer,
        format=model.format,
        open_ended=True,
    )
