# SPDX-License-Identifier: BSD-3-Clause
"""What all trained models have in common once they are in a file, whoever wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.files.data.reading import printable
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Status, Trace
from maxmargin.reductions.class_problems import Decomposition, OneAgainstRest, decomposition
from maxmargin.types import Vector

Decision = Literal["one_vs_rest", "one_vs_one"]
Format = Literal["maxmargin", "liblinear", "libsvm"]


class ModelError(ValueError):
    """A file that is not a model, or one that contradicts itself; the message says where and why."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


@dataclass(frozen=True)
class Claim:
    """What a file says its model is worth for one problem: values without the points they belong to."""

    primal: float
    dual: float
    kkt_violation: float
    alpha_from: str

    @property
    def relative_gap(self) -> float:
        """``(primal - dual) / |primal|``, as a ``Certificate`` has it."""
        if np.isinf(self.primal):  # a hard margin that was not found
            return np.inf
        gap = max(self.primal - self.dual, 0.0)
        if gap == 0.0:
            return 0.0
        return gap / abs(self.primal) if self.primal != 0.0 else np.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredModel(ABC):
    """A classifier with what is known about it; a linear one, or one with a kernel."""

    intercept: Vector
    classes: NDArray[Any]
    """Two classes: the second is the positive one. One-vs-one: pairs (0, 1), (0, 2), ... (1, 2), ..., and
    the first of a pair is the positive one."""
    decision: Decision = "one_vs_rest"
    problem: dict[str, Any] = field(default_factory=dict[str, Any])
    """loss, C (None when the file does not say; inf: a hard margin), intercept ("none", "regularised",
    "exact"), intercept_scaling, class_weight, sample_weights (whether the fit had any: they are not in the
    file),
    penalty ("l2", "l1") and formulation ("separate": one problem per intercept; "crammer_singer")."""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """Those of the estimator that JSON can hold; empty for the files of others."""
    feature_names: list[str] | None = None
    claims: list[Claim] | None = None
    """One per problem; None for the files of others."""
    certificates: list[Certificate] | None = None
    """One per problem, without the data; None where the file has no proof."""
    traces: list[Trace] | None = None
    status: Status | None = None
    steps: int | None = None
    """Of several problems, the largest number."""
    solver: str | None = None
    """What ran and why, in one sentence."""
    tol: float | None = None
    fingerprint: str | None = None
    """Of the training data, as ``maxmargin.files.fingerprint`` gives it."""
    rows: int | None = None
    """Of the training data."""
    writer: str = "maxmargin"
    format: Format = "maxmargin"

    @property
    @abstractmethod
    def features(self) -> int:
        """Number of columns, d."""

    @property
    def width(self) -> int | None:
        """How many columns of the data the model looks at; None: all, however many there are."""
        return self.features

    @abstractmethod
    def _scores(self, X: Any) -> Vector:
        """One column per problem; X is a matrix of at most ``width`` columns."""

    def decision_function(self, X: Any) -> Vector:
        """``<w, x> + b`` of each row, one column per problem, flat for a single problem.

        Columns that X lacks at its end count as zeros, as in LIBSVM text whose last features do not occur.
        """
        matrix = X if sparse.issparse(X) else np.asarray(X)
        if matrix.ndim != 2:
            raise ValueError(
                f"X must be a matrix with one row per example. Got {matrix.ndim} dimensions instead. "
                "Reshape a single example with X.reshape(1, -1)."
            )
        if self.width is not None and matrix.shape[1] > self.width:
            raise ValueError(
                f"X must have at most the {self.width} features of the model. Got {matrix.shape[1]} "
                "instead. Leave out the columns that the model was not trained on."
            )
        scores = self._scores(matrix)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row; one-vs-one by votes, and of equal votes the first class, as in LIBSVM."""
        return self.classes_of(self.decision_function(X))

    def classes_of(self, scores: Vector) -> NDArray[Any]:
        """The classes that the answer of ``decision_function`` stands for."""
        labels: NDArray[Any] = self.classes[self.kind.decide(scores)]
        return labels

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """For one-vs-one, the two classes of each problem: indices into ``classes``, positive first."""
        return list(combinations(range(len(self.classes)), 2))

    @cached_property
    def kind(self) -> Decomposition:
        """How the classes are told apart; in Crammer and Singer's formulation two have a score each."""
        if len(self.intercept) == len(self.classes) == 2:
            return OneAgainstRest(2)
        return decomposition(len(self.classes), pairs=self.decision == "one_vs_one")
