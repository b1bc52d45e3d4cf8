# SPDX-License-Identifier: BSD-3-Clause
"""Trained models as a file holds them, whoever wrote it: linear ones, and those with a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.core import relative_gap
from maxmargin.features.expansion import Expansion
from maxmargin.features.lazy import LazyMonomials
from maxmargin.files.data.reading import printable
from maxmargin.files.models.preparation import Preparation, UnsoundStep
from maxmargin.files.models.soundness import kernel_contradictions, linear_contradictions
from maxmargin.kernels.base import Kernel, Precomputed
from maxmargin.problem.rows import Rows, TellingOfRoom
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Status, Trace
from maxmargin.proof.sure import Neighbourhood
from maxmargin.reductions.decompositions import Decomposition, OneAgainstRest, decomposition
from maxmargin.reductions.kernel_scores import KernelScores
from maxmargin.reductions.probabilities import Calibration
from maxmargin.tables.encoding import Encoding
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card

Decision = Literal["one_vs_rest", "one_vs_one", "regression", "ranking", "one_class"]
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
        return relative_gap(self.primal, self.dual)


class Share(NamedTuple):
    """One problem with a nu: what nu does not say of it."""

    cost: float
    """The C of its rows."""
    total: float
    """What its multipliers add up to: nu times the sum of all costs."""
    shift: float
    """What its targets are lowered by: ``-rho``, or the epsilon of a regression."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredModel(ABC):
    """A classifier or a regressor with what is known about it; a linear one, or one with a kernel.

    A regressor has no classes, and one problem of two rows for each row of the training data. A ranking and
    the region of one class have no classes, either, and one problem. All fields are checked against
    each other when it is made: an unsound model raises ``ModelError``.
    """

    intercept: Vector
    classes: NDArray[Any]
    """Two classes: the second is the positive one. One-vs-one: pairs (0, 1), (0, 2), ... (1, 2), ..., and
    the first of a pair is the positive one."""
    decision: Decision = "one_vs_rest"
    problem: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was minimised: loss, C (None when the file does not say; inf: a hard margin), intercept ("none",
    "regularised", "exact"), intercept_scaling, class_weight, sample_weights (whether the fit had any: they
    are not in the file), penalty ("l2", "l1"), formulation ("separate": one problem per intercept;
    "crammer_singer"); epsilon of a regression, width of a ranking, and nu where it stands for C or
    epsilon."""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """The estimator's parameters that JSON can hold; empty for the files of others."""
    feature_names: list[str] | None = None
    encoding: Encoding | None = None
    """What becomes of the columns of a table before the model weighs them; None: they are weighed as they
    are."""
    preparation: Preparation | None = None
    """The scalers and feature maps that rows of the data, or what a table becomes, go through before they
    are weighed; None: there are none."""
    claims: list[Claim] | None = None
    """What each problem is claimed to be worth; None for the files of others."""
    certificates: list[Certificate] | None = None
    """The proof of each problem, without the data; None where the file has none."""
    traces: list[Trace] | None = None
    optimum: list[Neighbourhood] | None = None
    """Where the best point of each problem is, as seen from that of the model; None: not known."""
    shares: list[Share] | None = None
    """What of each problem nu does not say; None where there is no nu, and for the files of others."""
    calibration: Calibration | None = None
    """What turns scores into probabilities; None: the model tells none."""
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
        first = next(self._contradictions(), None)
        wrong = first or self._preparation_contradiction() or self._encoding_contradiction()
        if wrong or self.calibration is None:
            return wrong
        return self.calibration.contradiction(len(self.kind))

    def _preparation_contradiction(self) -> str | None:
        if self.preparation is None:
            return None
        try:
            made = self.preparation.made
        except UnsoundStep as error:
            return f"what comes before the model is unsound: {error}."
        if made != self.own_features:
            return f"the model weighs {self.own_features} columns, and the steps before it make {made}."
        return None

    def _encoding_contradiction(self) -> str | None:
        if self.encoding is None:
            return None
        if self.encoding.names != self.feature_names or len(self.encoding.names) != self.features:
            return "the columns that its table becomes are not those that it weighs."
        return self.encoding.contradiction()

    @abstractmethod
    def _contradictions(self) -> Iterator[str]:
        """What is wrong with the model, one sentence after the other; see ``soundness``."""

    @property
    @abstractmethod
    def own_features(self) -> int:
        """Number of columns that the model itself takes, after the ``preparation``."""

    @property
    def features(self) -> int:
        """Number of columns of the data, d; of a precomputed kernel, of rows that were trained on."""
        return self.own_features if self.preparation is None else self.preparation.columns

    @property
    def width(self) -> int | None:
        """How many columns of the data the model looks at; None: all, however many there are."""
        return self.features

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The two classes of each problem, one against one: indices into ``classes``, positive first."""
        return list(combinations(range(len(self.classes)), 2))

    @property
    def is_regression(self) -> bool:
        """Whether it predicts numbers, and not classes."""
        return self.decision == "regression"

    @property
    def is_ranking(self) -> bool:
        """Whether it predicts scores that rank the rows of a query."""
        return self.decision == "ranking"

    @property
    def is_one_class(self) -> bool:
        """Whether it tells rows inside a region from those outside."""
        return self.decision == "one_class"

    @property
    def has_nu(self) -> bool:
        """Whether a nu stands in the place of C or epsilon."""
        return "nu" in self.problem

    @property
    def has_classes(self) -> bool:
        """Whether it predicts classes, and neither numbers nor scores, nor inside and outside."""
        return not (self.is_regression or self.is_ranking or self.is_one_class)

    @property
    def is_joint(self) -> bool:
        """Whether all classes are in one problem, Crammer and Singer's."""
        return self.problem.get("formulation") == "crammer_singer"

    @property
    def problems(self) -> int:
        """How many problems were solved."""
        return 1 if self.is_joint else len(self.intercept)

    @property
    def rows_of_proof(self) -> int | None:
        """The number of rows of each problem that has all of the training data."""
        if self.rows is None:
            return None
        each = 2 if self.is_regression else len(self.classes) - 1 if self.is_joint else 1
        return each * self.rows

    @cached_property
    def kind(self) -> Decomposition:
        """How the classes are told apart; in Crammer and Singer's formulation two have a score each."""
        if not self.has_classes:
            return OneAgainstRest(1)  # one problem of all rows
        if len(self.intercept) == len(self.classes) == 2:
            return OneAgainstRest(2)
        return decomposition(len(self.classes), pairs=self.decision == "one_vs_one")

    @abstractmethod
    def _scores(self, X: Any) -> Vector:
        """The scores of the rows, one column per problem; X is a matrix of at most ``width`` columns."""

    def _scores_on(self, card: Card, X: Any) -> Vector:
        """The same, made on a GPU."""
        raise ValueError("Models without a kernel predict on the CPU. Use device='cpu'.")

    def decision_function(self, X: Any, *, card: Card | None = None) -> Vector:
        """``<w, x> + b`` of each row, one column per problem, flat for a single problem.

        Columns that X lacks at its end count as zeros, as in LIBSVM text whose last features do not occur.
        Where the model has an ``encoding``, X may be a table: a pandas or polars frame, or pyarrow's own.
        Columns of another frame are taken by their names, where the model has names. ``card``: the GPU that
        sums up a kernel model's scores, if one is to do so.
        """
        if self.encoding is not None and hasattr(X, "columns"):
            from maxmargin.tables.transformer import arrow_table

            X = self.encoding.encode(arrow_table(X)).X
        elif self.preparation is not None and self.feature_names is not None and hasattr(X, "columns"):
            X = X[self.feature_names]
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
        rows = self.prepared(matrix)
        scores = self._scores(rows) if card is None else self._scores_on(card, rows)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def prepared(self, X: Any) -> Any:
        """Rows of the data as the model itself takes them: scaled, or through feature maps."""
        if self.preparation is None:
            return X
        return self.preparation(widened(X, self.features))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row; one-vs-one by votes, and of equal votes the first class, as in LIBSVM.

        A model that was fitted with ``SVC(break_ties=True)`` takes the one with the largest score.
        In regression, the number of each row; in ranking, its score; of one class, 1 inside and -1 outside.
        """
        return self.classes_of(self.decision_function(X))

    def classes_of(self, scores: Vector) -> NDArray[Any]:
        """The classes that the answer of ``decision_function`` stands for; without classes, itself."""
        if self.is_one_class:
            return np.where(scores >= 0.0, 1, -1)
        if not self.has_classes:
            return scores
        return self.classes.take(self.places_of(scores))

    def places_of(self, scores: Vector) -> NDArray[np.intp]:
        """Their places in ``classes``; with ``break_ties``, equal votes are broken by scores."""
        if self.parameters.get("break_ties") and len(self.kind) > 1:
            return np.asarray(self.kind.class_scores(scores).argmax(axis=1))
        return np.asarray(self.kind.decide(scores))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, of a model that was fitted with ``SVC(probability=True)``."""
        if self.calibration is None:
            raise ValueError(
                "The model tells no probabilities. Fit SVC with probability=True, and save it."
            )
        scores = self.decision_function(X)
        return self.calibration.probabilities(scores.reshape(len(scores), -1), self.kind)

    def in_order(self, order: NDArray[np.intp]) -> Self:
        """The model with its classes in another order: place p is taken by class ``order[p]``.

        What is proven is left out unless the order stays: proofs speak of rows in the order of the classes.
        So is what turns scores into probabilities.
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
            calibration=None,
            **self._turned(order, problems, signs),
        )

    @abstractmethod
    def _turned(self, order: NDArray[np.intp], problems: list[int], signs: Vector) -> dict[str, Any]:
        """The other fields that ``in_order`` changes: problem k becomes ``signs[k]`` times the old one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedModel(StoredModel):
    """A linear classifier, and what is known about it."""

    coef: Vector
    """One row per problem: (1, d) for two classes, else (k, d), or (k (k - 1) / 2, d) for one-vs-one."""
    expansion: Expansion | None = None
    """The monomials of degree 2 that coef weighs; None: it weighs the columns of the data themselves."""
    support: SavedKernelModel | None = None
    """The model as its support vectors with the linear kernel, which files of LIBSVM hold."""

    def _contradictions(self) -> Iterator[str]:
        return linear_contradictions(self)

    @property
    def own_features(self) -> int:
        """Number of columns; with an expansion, not of coef."""
        return int(self.coef.shape[1] if self.expansion is None else self.expansion.columns)

    def _scores(self, X: Any) -> Vector:
        if self.expansion is not None:
            return self._expanded_scores(X, self.expansion)
        return np.asarray(X @ self.coef[:, : X.shape[1]].T, np.float64) + self.intercept

    def _expanded_scores(self, X: Any, expansion: Expansion) -> Vector:
        """The monomials of each row are formed in turn, so that memory does not grow with their number."""
        base = widened(X, expansion.columns)
        if base.dtype not in (np.float32, np.float64):
            base = base.astype(np.float64)
        rows = Rows(LazyMonomials(base, expansion), check_finite=False)
        return np.column_stack([rows.scores(w) for w in self.coef]) + self.intercept

    def _turned(self, order: NDArray[np.intp], problems: list[int], signs: Vector) -> dict[str, Any]:
        return {"coef": signs[:, np.newaxis] * self.coef[problems], "support": None}


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
    def own_features(self) -> int:
        """Number of columns; with a precomputed kernel, of rows that were trained on."""
        return int((self.rows or 0) if self.vectors is None else self.vectors.shape[1])

    @property
    def width(self) -> int | None:
        """How many columns of the data the model looks at; None: all, however many there are."""
        return None if self.open_ended else self.features

    @property
    def owners(self) -> NDArray[np.intp]:
        """The class of each support vector, as an index into ``classes``."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def coefficients_of(self, k: int) -> Vector:
        """``alpha_i y_i`` of all support vectors in one of the problems, zero for those it has not."""
        return self.kind.coefficients(self.coefficients, k, self.owners)

    def _scores(self, X: Any) -> Vector:
        if self.coefficients.shape[1] == 0:
            return np.tile(self.intercept, (X.shape[0], 1))
        X, scores = self._ready(X)
        return scores(X, self.intercept)

    def _scores_on(self, card: Card, X: Any) -> Vector:
        from maxmargin.gpu.scores import scores_on_card

        if self.coefficients.shape[1] == 0:
            return self._scores(X)
        X, scores = self._ready(X)
        with TellingOfRoom():
            return np.asarray(card.get(scores_on_card(card, scores, X, self.intercept)))

    def _ready(self, X: Any) -> tuple[Any, KernelScores]:
        """X, and what scores it, with equally many columns."""
        X, vectors = self._side_by_side(X)
        scores = self._problem_scores
        return X, scores if vectors is scores.support else replace(scores, support=vectors)

    @cached_property
    def _problem_scores(self) -> KernelScores:
        support = self.support if isinstance(self.kernel, Precomputed) else self.vectors
        return KernelScores(self.kernel, support, self.coefficients, self.counts)

    def _side_by_side(self, X: Any) -> tuple[Any, Any]:
        """X and the support vectors with equally many columns."""
        if isinstance(self.kernel, Precomputed):
            if X.shape[1] != self.own_features:
                raise ValueError(
                    f"X must have a value for each of the {self.own_features} rows that were trained on, "
                    f"since the kernel is precomputed. Got {X.shape[1]} columns instead. Give kernel(X, "
                    "X_train)."
                )
            return X, self.support
        self.kernel.refuse_negative(Rows(X, check_finite=False))
        d = max(X.shape[1], self.own_features)
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


def widened(X: Any, columns: int) -> Any:
    """X with so many columns, those that are added being zeros."""
    missing = columns - X.shape[1]
    if missing == 0:
        return X
    if sparse.issparse(X):
        matrix = sparse.csr_matrix(X)
        return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), (X.shape[0], columns))
    return np.pad(X, ((0, 0), (0, missing)))
