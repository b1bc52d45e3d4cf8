# SPDX-License-Identifier: BSD-3-Clause
"""How the rows of several classes become problems with the labels 1 and -1, and how their scores decide.

One small class for each way: two classes, each class against the rest, all pairs of classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem.rows import Matrix
from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import Certificates, PairCertificates
from maxmargin.types import Indices, Vector

_NEVER = 1e-7
"""The smallest probability that a class may have in a pair: LIBSVM's, which keeps systems well posed."""
_COUPLED_ROWS = 1024
"""Rows whose systems are solved at once: of 26 classes they take six megabytes."""


class Decomposition(ABC):
    """How the rows of some classes become problems with the labels 1 and -1."""

    what: ClassVar[str] = "class"
    """What a problem is about, for the log."""
    all_rows: ClassVar[bool] = True
    """Whether every problem has all rows, in their own order."""

    def __init__(self, classes: int) -> None:
        self.classes = classes
        """How many there are."""
        self.sides = self._sides()
        """For each problem the class with label 1 and the one with label -1; None: all the others."""

    @abstractmethod
    def _sides(self) -> list[tuple[int, int | None]]: ...

    def __len__(self) -> int:
        return len(self.sides)

    @abstractmethod
    def decide(self, scores: Any, place: Callable[[Any], Any] = np.asarray) -> Any:
        """The class of each row, given its score in each problem.

        Where scores lie on a GPU, so does the answer, and ``place`` puts a matrix there.
        """

    @abstractmethod
    def is_decided(self, low: Matrix, high: Matrix) -> NDArray[np.bool_]:
        """Whether the class of each row is the same for all scores between these two."""

    def class_scores(self, scores: Matrix) -> Matrix:
        """One score for each class, given those of each problem."""
        return scores

    def probabilities(self, values: Matrix) -> Matrix:
        """One probability for each class, given that of the label 1 in each problem.

        Divided by their sum where they are of each class against the rest; where every class is denied,
        all are as likely.
        """
        sums = values.sum(axis=1, keepdims=True)
        out = np.full_like(values, 1.0 / values.shape[1])
        np.divide(values, sums, out=out, where=sums > 0.0)
        return out

    def together(self, certificates: Sequence[Certificate], labels: Sequence[Any]) -> Certificates:
        """The certificates of all problems as one."""
        return Certificates(certificates)

    # A table has the coefficients of all problems in the shape of ``SVC.dual_coef_``. Its columns are rows
    # of the data, or support vectors, ordered by class.

    def table(self, each: Sequence[Vector], by_class: Sequence[Indices]) -> Matrix:
        """The table of all rows, from the coefficients of each problem."""
        return np.array(each)[:, np.concatenate(by_class)]

    def coefficients(self, table: Matrix, k: int, owners: Indices) -> Vector:
        """The coefficients of one problem for all columns of a table; ``owners`` are their classes."""
        return np.asarray(table[k])

    def joined(self, sums: Any) -> Sequence[Any]:
        """What each problem sums up to, given the sums of every line over the columns of each class.

        Where problems have ``all_rows``, columns are summed at once: there is one entry, a sum per line.
        """
        lines: Sequence[Any] = sums[0]
        return lines


class TwoClasses(Decomposition):
    """One problem: the second class has the label 1."""

    def _sides(self) -> list[tuple[int, int | None]]:
        return [(1, 0)]

    def decide(self, scores: Any, place: Callable[[Any], Any] = np.asarray) -> Any:
        """The second class where the score is above 0."""
        return (scores.reshape(-1) > 0).astype(np.intp)

    def probabilities(self, values: Matrix) -> Matrix:
        """That of the first class, and that of the second."""
        return np.column_stack([1.0 - values, values])

    def is_decided(self, low: Matrix, high: Matrix) -> NDArray[np.bool_]:
        """Whether all scores have the same sign."""
        return (low.reshape(-1) > 0) | (high.reshape(-1) <= 0)


class OneAgainstRest(Decomposition):
    """One problem for each class, which has the label 1; a row goes to the class with the largest score."""

    def _sides(self) -> list[tuple[int, int | None]]:
        return [(k, None) for k in range(self.classes)]

    def decide(self, scores: Any, place: Callable[[Any], Any] = np.asarray) -> Any:
        """The class with the largest score."""
        return scores.argmax(axis=1)

    def is_decided(self, low: Matrix, high: Matrix) -> NDArray[np.bool_]:
        """Whether the lowest score of one class is above the highest ones of all others."""
        rows, best = np.arange(len(low)), low.argmax(axis=1)
        others = high.copy()
        others[rows, best] = -np.inf
        return np.asarray(low[rows, best] > others.max(axis=1))


class OneAgainstOne(Decomposition):
    """One problem for each pair of classes, in the order (0, 1), (0, 2), ..., (1, 2), ...

    The first class of a pair has the label 1, and its rows come before those of the second. A row goes to
    the class that wins most of its pairs. In LIBSVM's table a column of class i has its coefficient in the
    pair with class j in line j - 1 if i < j, and in line j otherwise.
    """

    what: ClassVar[str] = "pair"
    all_rows: ClassVar[bool] = False

    def _sides(self) -> list[tuple[int, int | None]]:
        self.pairs = list(combinations(range(self.classes), 2))
        return [*self.pairs]

    def decide(self, scores: Any, place: Callable[[Any], Any] = np.asarray) -> Any:
        """The class with most votes; of several the first, as LIBSVM has it."""
        first, second = self._members
        # A pair that is not won by its first class is won by its second one.
        votes = (scores > 0).astype(np.float64) @ place(first - second)
        return (votes + place(second.sum(axis=0))).argmax(axis=1)

    def is_decided(self, low: Matrix, high: Matrix, *, break_ties: bool = False) -> NDArray[np.bool_]:
        """Whether one class has most votes however the open pairs end; of several such the first wins.

        With ``break_ties``, equal votes are decided by scores, and left open here.
        """
        first, second = self._members
        won, lost = low > 0, high <= 0
        least = won @ first + lost @ second
        most = ~lost @ first + ~won @ second
        rows, best = np.arange(len(low)), least.argmax(axis=1)
        others = most.copy()
        if not break_ties:
            others -= 0.5 * (np.arange(self.classes) > best[:, np.newaxis])
        others[rows, best] = -np.inf
        return np.asarray(least[rows, best] > others.max(axis=1))

    def class_scores(self, scores: Matrix) -> Matrix:
        """The votes of each class, and less than half a vote more by how clearly they were won.

        As scikit-learn turns pairs into ``decision_function_shape="ovr"``.
        """
        first, second = self._members
        lost = scores < 0
        votes = ~lost @ first + lost @ second
        sums = scores @ (first - second)
        return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))

    def probabilities(self, values: Matrix) -> Matrix:
        """The probabilities of classes that agree best with those of the pairs (Wu, Lin and Weng, 2004).

            minimise over p   sum_i sum_(j != i) (r_ji p_i - r_ij p_j)^2,     sum_i p_i = 1

        where r_ij is that of class i in its pair with class j. No p_i is negative at the optimum, which is
        the solution of one linear system for each row.
        """
        first, second = np.triu_indices(self.classes, 1)
        out = np.empty((len(values), self.classes))
        for begin in range(0, len(values), _COUPLED_ROWS):
            pairs = np.clip(values[begin : begin + _COUPLED_ROWS], _NEVER, 1.0 - _NEVER)
            wins = np.zeros((len(pairs), self.classes, self.classes))
            wins[:, first, second], wins[:, second, first] = pairs, 1.0 - pairs
            system = np.ones((len(pairs), self.classes + 1, self.classes + 1))
            system[:, -1, -1] = 0.0
            system[:, :-1, :-1] = -wins * wins.transpose(0, 2, 1)
            each = np.arange(self.classes)
            system[:, each, each] = (wins**2).sum(axis=1)
            goal = np.zeros((len(pairs), self.classes + 1, 1))
            goal[:, -1] = 1.0
            solved = np.linalg.solve(system, goal)[:, :-1, 0].clip(0.0)  # rounding may be below 0
            out[begin : begin + len(pairs)] = solved / solved.sum(axis=1, keepdims=True)
        return out

    @property
    def _members(self) -> tuple[Matrix, Matrix]:
        """For each pair, which class is its first and which its second, as lines of zeros and a one."""
        first, second = np.triu_indices(self.classes, 1)
        each = np.eye(self.classes)
        return each[first], each[second]

    def together(self, certificates: Sequence[Certificate], labels: Sequence[Any]) -> Certificates:
        """The certificates as one that also knows the pairs."""
        return PairCertificates(certificates, labels)

    def table(self, each: Sequence[Vector], by_class: Sequence[Indices]) -> Matrix:
        """LIBSVM's table of one line less than there are classes.

        Coefficients may have more axes behind that of the rows, which the table then has as well.
        """
        counts = [len(rows) for rows in by_class]
        ends = np.cumsum(counts).tolist()
        columns = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        table = np.zeros((self.classes - 1, ends[-1], *each[0].shape[1:]))
        for (i, j), coefficients in zip(self.pairs, each, strict=True):
            table[j - 1, columns[i]] = coefficients[: counts[i]]
            table[i, columns[j]] = coefficients[counts[i] :]
        return table

    def coefficients(self, table: Matrix, k: int, owners: Indices) -> Vector:
        """Zero for columns of other classes than those of the pair."""
        i, j = self.pairs[k]
        return np.where(owners == i, table[j - 1], np.where(owners == j, table[i], 0.0))

    def joined(self, sums: Any) -> Sequence[Any]:
        """The sum over the columns of the first class of each pair, and that over those of the second."""
        return [sums[i][j - 1] + sums[j][i] for i, j in self.pairs]


def decomposition(classes: int, *, pairs: bool) -> Decomposition:
    """How so many classes are told apart: in ``pairs``, or each from the rest; two of them at once."""
    if classes == 2:
        return TwoClasses(2)
    return OneAgainstOne(classes) if pairs else OneAgainstRest(classes)


def class_factors(
    class_weight: Any, labels: NDArray[Any], codes: NDArray[Any], weights: Vector | None
) -> Vector:
    """The factor on C of each class; "balanced" gives all classes the same weight in sum."""
    if class_weight is None:
        return np.ones(len(labels))
    if isinstance(class_weight, str):
        sums = np.bincount(codes, weights, minlength=len(labels)).astype(np.float64)
        return float(sums.sum()) / (len(labels) * np.where(sums > 0, sums, np.inf))
    unnamed = [label for label in labels.tolist() if label not in class_weight]
    if unnamed and len(class_weight) > len(labels) - len(unnamed):
        raise ValueError(
            f"The classes, {unnamed}, are not in class_weight, which has others instead. Name classes that "
            "are in y: those that are left out have the factor 1."
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels.tolist()])
