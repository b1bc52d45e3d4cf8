# SPDX-License-Identifier: BSD-3-Clause
"""What all trained models have in common once they are in a file, whoever wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.core import relative_gap
from maxmargin.files.data.reading import printable
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Status, Trace
from maxmargin.proof.sure import Neighbourhood
from maxmargin.reductions.class_problems import Decomposition, OneAgainstRest, decomposition
from maxmargin.types import Vector

Decision = Literal["one_vs_rest", "one_vs_one"]
Format = Literal["maxmargin", "liblinear", "libsvm"]
PROBLEM: dict[str, Any] = {
    "loss": "hinge",
    "C": None,
    "intercept": "exact",
    "intercept_scaling": 1.0,
    "class_weight": None,
    "sample_weights": False,
    "penalty": "l2",
    "formulation": "separate",
}
"""All that a stated problem says: what is usual, and what stands where a file does not say."""


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
        return relative_gap(self.primal, self.dual)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredModel(ABC):
    """A classifier with what is known about it; a linear one, or one with a kernel.

    All fields are checked against each other when it is made: an unsound model raises ``ModelError``.
    """

    intercept: Vector
    classes: NDArray[Any]
    """Two classes: the second is the positive one. One-vs-one: pairs (0, 1), (0, 2), ... (1, 2), ..., and
    the first of a pair is the positive one."""
    decision: Decision = "one_vs_rest"
    problem: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was minimised: loss, C (None when the file does not say; inf: a hard margin), intercept ("none",
    "regularised", "exact"), intercept_scaling, class_weight, sample_weights (whether the fit had any: they
    are not in the file), penalty ("l2", "l1") and formulation ("separate": one problem per intercept;
    "crammer_singer")."""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """The estimator's parameters that JSON can hold; empty for the files of others."""
    feature_names: list[str] | None = None
    claims: list[Claim] | None = None
    """What each problem is claimed to be worth; None for the files of others."""
    certificates: list[Certificate] | None = None
    """The proof of each problem, without the data; None where the file has none."""
    traces: list[Trace] | None = None
    optimum: list[Neighbourhood] | None = None
    """Where the best point of each problem is, as seen from that of the model; None: not known."""
    status: Status | None = None
    steps: int | None = None
    """The steps of the fit; of several problems, the largest number."""
    solver: str | None = None
    """What ran and why, in one sentence."""
    tol: float | None = None
    fingerprint: str | None = None
    """The fingerprint of the training data, as ``maxmargin.files.fingerprint`` gives it."""
    rows: int | None = None
    """The number of rows of the training data."""
    writer: str = "maxmargin"
    format: Format = "maxmargin"

    def __post_init__(self) -> None:
        if (wrong := self.contradiction()) is not None:
            raise ModelError(wrong)

    def contradiction(self) -> str | None:
        """What is wrong with the model, in a sentence; None for a sound one."""
        return next(self._contradictions(), None)

    @abstractmethod
    def _contradictions(self) -> Iterator[str]:
        """What is wrong with the model, one sentence after the other; see ``soundness``."""

    @property
    @abstractmethod
    def features(self) -> int:
        """Number of columns, d."""

    @property
    def width(self) -> int | None:
        """How many columns of the data the model looks at; None: all, however many there are."""
        return self.features

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

    @abstractmethod
    def _scores(self, X: Any) -> Vector:
        """The scores of the rows, one column per problem; X is a matrix of at most ``width`` columns."""

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

    def in_order(self, order: NDArray[np.intp]) -> Self:
        """The same model with its classes in another order: place p is taken by class ``order[p]``.

        What is proven is left out unless the order stays: proofs speak of rows in the order of the classes.
        """
        new = order.tolist()
        if new == sorted(new):
            return self
        number: dict[Any, int] = {sides: k for k, sides in enumerate(self.kind.sides)}
        turned = [(new[i], None if j is None else new[j]) for i, j in self.kind.sides]
        signs = np.array([1.0 if sides in number else -1.0 for sides in turned])
        problems = [number[sides if sides in number else sides[::-1]] for sides in turned]
        return replace(
            self,
            classes=self.classes[order],
            intercept=signs * self.intercept[problems],
            claims=None,
            certificates=None,
            traces=None,
            optimum=None,
            **self._turned(order, problems, signs),
        )

    @abstractmethod
    def _turned(self, order: NDArray[np.intp], problems: list[int], signs: Vector) -> dict[str, Any]:
        """The other fields that ``in_order`` changes: problem k becomes ``signs[k]`` times the old one."""


def widened(X: Any, columns: int) -> Any:
    """X with so many columns, those that are added being zeros."""
    missing = columns - X.shape[1]
    if missing == 0:
        return X
    if sparse.issparse(X):
        matrix = sparse.csr_matrix(X)
        return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), (X.shape[0], columns))
    return np.pad(X, ((0, 0), (0, missing)))
