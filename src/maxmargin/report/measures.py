# SPDX-License-Identifier: BSD-3-Clause
"""What a model does on some rows, in numbers: who is right, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit

from maxmargin.files import StoredModel
from maxmargin.files.data.labels import class_codes, label_text
from maxmargin.problem.losses import LOSSES
from maxmargin.reductions.decompositions import OneAgainstOne, TwoClasses
from maxmargin.types import Vector

LEVEL = 0.95
"""The share of all samples whose interval holds the true share, at least."""
ON_MARGIN = 1e-3
"""How far from 1 a margin may be and still count as on the margin: no computed margin is 1 exactly."""
_BINS = 10
"""Equal pieces of [0, 1] into which probabilities are put."""
_BARS = 40
"""Bars of a histogram, at most."""
_LARGEST = 1e300
"""Scores beyond this are put into the last bar: what is left of a number's range is for the axes."""


def interval(count: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's exact interval for a share, of which ``count`` of ``of`` trials were seen.

    At least ``LEVEL`` of all samples have an interval that holds the share, whatever it is.
    """
    tail = 0.5 * (1.0 - LEVEL)
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1.0 - tail)) if count < of else 1.0
    return low, high


class Sure(NamedTuple):
    """Rows whose class is proven to be that of the best model."""

    right: int
    wrong: int


class RowCounts(NamedTuple):
    """The rows of one problem by their margins ``y (<w, x> + b)``, as the model has them."""

    name: str
    """Which classes it tells apart; empty if there are only two."""
    beyond: int
    """Margin above 1."""
    on: int
    """Margin within ``ON_MARGIN`` of 1."""
    inside: int
    """Margin above 0 and below 1: the right side, but within the margin."""
    misclassified: int
    """Margin at most 0."""


class OfClass(NamedTuple):
    """How a class fares."""

    label: str
    rows: int
    predicted: int
    right: int

    @property
    def recall(self) -> float | None:
        """The share of its rows that are recognised."""
        return self.right / self.rows if self.rows else None

    @property
    def precision(self) -> float | None:
        """The share of the rows that are called so, and are."""
        return self.right / self.predicted if self.predicted else None


class Bin(NamedTuple):
    """Rows with about the same predicted probability."""

    predicted: float
    """Its mean."""
    seen: float
    """The share of them that are of the class."""
    rows: int
    low: float
    high: float
    """The interval of that share."""


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities beside what was seen."""

    bins: list[Bin]
    brier: float
    """The mean of ``(probability - seen)^2``: 0 is best; always saying 1/2 gives 0.25."""
    log_loss: float
    """The mean of ``-log`` of the probability that was given to what was seen."""
    pooled: bool
    """Whether each row counts once for each class: is it of this class or of the rest?"""


@dataclass(frozen=True)
class Histogram:
    """How many values lie between neighbouring edges, in each of some groups."""

    edges: Vector
    counts: dict[str, list[int]]


class Measures:
    """What a model does on the rows of X, whose labels are y."""

    def __init__(
        self,
        model: StoredModel,
        X: Any,
        y: Any,
        is_sure: Callable[[Any], NDArray[Any]] | None,
    ) -> None:
        self.model, self.rows = model, int(X.shape[0])
        if model.width is not None and X.shape[1] > model.width:
            X = X[:, : model.width]  # columns that a LIBSVM model gives no weight
        self.codes = class_codes(y, model.classes)
        """The place of each row's class; -1 for labels that the model does not know."""
        self.scores: Vector = model.decision_function(X).reshape(self.rows, -1)
        """One column per problem."""
        self.predicted = model.places_of(self.scores)
        self.right = int(np.count_nonzero(self.predicted == self.codes))
        self.known = int(np.count_nonzero(self.codes >= 0))
        """Rows whose label is one of the model's classes; the others count as wrong."""
        self.sure: Sure | None = None
        """What is proven of the best model on these rows; None where nothing is."""
        if is_sure is not None:
            sure, same = is_sure(X), self.predicted == self.codes
            self.sure = Sure(int(np.count_nonzero(sure & same)), int(np.count_nonzero(sure & ~same)))

    @property
    def accuracy(self) -> float | None:
        """The share of all rows that are right; None where no label is one of the model's."""
        return self.right / self.rows if self.known else None

    @property
    def largest_class(self) -> tuple[str, float]:
        """The most frequent class, and the accuracy of always naming it."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))
        return self.labels[int(counts.argmax())], float(counts.max() / self.rows)

    @cached_property
    def labels(self) -> list[str]:
        """The names of the model's classes."""
        return [label_text(label) for label in self.model.classes]

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """Rows of each class (a line each) by what they are called; the last line is of unknown labels."""
        count = len(self.labels)
        lines = np.where(self.codes < 0, count, self.codes)
        flat = np.bincount(lines * count + self.predicted, minlength=(count + 1) * count)
        return flat.reshape(count + 1, count)

    @cached_property
    def of_classes(self) -> list[OfClass]:
        """How each class fares."""
        table = self.confusion
        return [
            OfClass(label, int(table[k].sum()), int(table[:, k].sum()), int(table[k, k]))
            for k, label in enumerate(self.labels)
        ]

    @cached_property
    def problems(self) -> list[str]:
        """Which classes each problem tells apart; one empty text if there are only two."""
        if isinstance(self.model.kind, TwoClasses):
            return [""]
        labels = self.labels
        sides = [(labels[i], "the rest" if j is None else labels[j]) for i, j in self.model.kind.sides]
        return [f"{ours} against {theirs}" for ours, theirs in sides]

    def _margins(self) -> Iterator[Vector]:
        """The margins of the rows of each problem."""
        for k, (ours, theirs) in enumerate(self.model.kind.sides):
            counted = self.codes >= 0 if theirs is None else np.isin(self.codes, (ours, theirs))
            yield np.where(self.codes == ours, self.scores[:, k], -self.scores[:, k])[counted]

    @cached_property
    def row_counts(self) -> list[RowCounts]:
        """The rows of each problem by their margins; Crammer and Singer's formulation has no such ones."""
        counts: list[RowCounts] = []
        if self.model.problem.get("formulation", "separate") != "separate":
            return counts
        for name, margins in zip(self.problems, self._margins(), strict=True):
            on, wrong = np.abs(margins - 1.0) <= ON_MARGIN, margins <= 0.0
            beyond = int(np.count_nonzero((margins > 1.0) & ~on))
            inside = len(margins) - beyond - int(on.sum()) - int(wrong.sum())
            counts.append(RowCounts(name, beyond, int(on.sum()), inside, int(wrong.sum())))
        return counts

    @cached_property
    def histogram(self) -> Histogram:
        """Two classes: the scores of each. More: by how much a row's own class is ahead.

        Of each class against the rest that is its score less the largest other one; of pairs of classes the
        smallest margin in any pair with its own class.
        """
        known = self.codes >= 0
        if isinstance(self.model.kind, TwoClasses):
            scores = self.scores[known, 0]
            groups = {label: scores[self.codes[known] == k] for k, label in enumerate(self.labels)}
        else:
            ahead, right = self._ahead(known), (self.predicted == self.codes)[known]
            groups = {"right": ahead[right], "misclassified": ahead[~right]}
        edges = _edges(np.concatenate(list(groups.values())))
        inner = {name: np.clip(values, edges[0], edges[-1]) for name, values in groups.items()}
        return Histogram(edges, {name: np.histogram(inner[name], edges)[0].tolist() for name in inner})

    def _ahead(self, known: NDArray[np.bool_]) -> Vector:
        scores, codes = self.scores[known], self.codes[known]
        if isinstance(self.model.kind, OneAgainstOne):
            smallest = np.full(len(codes), np.inf)
            for k, (i, j) in enumerate(self.model.kind.pairs):
                margins = np.where(codes == i, scores[:, k], -scores[:, k])
                smallest = np.where((codes == i) | (codes == j), np.minimum(smallest, margins), smallest)
            return smallest
        every, others = np.arange(len(codes)), scores.copy()
        others[every, codes] = -np.inf
        return np.asarray(scores[every, codes] - others.max(axis=1))

    @cached_property
    def calibration(self) -> Calibration | None:
        """What the probabilities of the logistic loss, ``1 / (1 + exp(-score))``, are worth; else None."""
        problem = self.model.problem
        if problem["loss"] != "logistic" or isinstance(self.model.kind, OneAgainstOne) or not self.known:
            return None
        known = self.codes >= 0
        ours = np.array([first for first, _ in self.model.kind.sides])
        scores = self.scores[known].ravel()
        seen = (self.codes[known, np.newaxis] == ours).ravel()
        probability = expit(scores)
        place = np.minimum((probability * _BINS).astype(np.intp), _BINS - 1)
        bins = []
        for k in range(_BINS):
            inside = place == k
            if count := int(np.count_nonzero(inside)):
                of_class = int(np.count_nonzero(seen & inside))
                ends = interval(of_class, count)
                bins.append(Bin(float(probability[inside].mean()), of_class / count, count, *ends))
        loss = LOSSES["logistic"].value(np.where(seen, scores, -scores))
        brier = float(np.square(probability - seen).mean())
        return Calibration(bins, brier, float(loss.mean()), len(ours) > 1)

    def as_json(self) -> dict[str, Any]:
        """All of it in plain values."""
        sure, calibration = self.sure, self.calibration
        return {
            "rows": self.rows,
            "right": self.right if self.known else None,
            "accuracy": self.accuracy,
            "unknown_labels": self.rows - self.known,
            "best_model_right_at_least": None if sure is None else sure.right,
            "best_model_right_at_most": None if sure is None else self.rows - sure.wrong,
            "classes": [
                {**each._asdict(), "recall": each.recall, "precision": each.precision}
                for each in self.of_classes
            ],
            "confusion": self.confusion.tolist(),
            "row_counts": [each._asdict() for each in self.row_counts],
            "histogram": {"edges": self.histogram.edges.tolist(), "counts": self.histogram.counts},
            "calibration": None
            if calibration is None
            else vars(calibration) | {"bins": [each._asdict() for each in calibration.bins]},
        }


def _edges(values: Vector) -> Vector:
    """Edges of equal bars, 0 among them; the outermost half per cent may lie in the first and last bar."""
    values = np.clip(values[np.isfinite(values)], -_LARGEST, _LARGEST)
    low, high = np.quantile(values, [0.005, 0.995]).tolist() if len(values) else (0.0, 0.0)
    low, high = min(low, -1.0), max(high, 1.0)
    power = 10.0 ** np.floor(np.log10((high - low) / _BARS))
    width = next(size * power for size in (1.0, 2.0, 5.0, 10.0) if (high - low) / (size * power) <= _BARS)
    first, last = np.floor(low / width + 1e-9), np.ceil(high / width - 1e-9)
    return np.asarray(width * np.arange(first, last + 1), np.float64)
