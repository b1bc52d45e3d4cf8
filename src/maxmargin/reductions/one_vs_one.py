# SPDX-License-Identifier: BSD-3-Clause
"""Several classes as one problem per pair of classes; a row then goes to the class with most votes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.proof.certificate import Certificate
from maxmargin.reductions.one_vs_rest import Certificates
from maxmargin.types import Vector


class PairCertificates(Certificates):
    """One certificate per pair of classes; as a whole it is worth what the worst of them is worth.

    The problem of a pair has the rows of its first class, label 1, and then those of its second, label -1,
    both in the order of the training data: so have alpha, the margins and w, the coefficients of the rows.
    """

    def __init__(self, certificates: Sequence[Certificate], classes: Sequence[Any]) -> None:
        super().__init__(certificates)
        self.pairs = list(combinations(classes, 2))
        """The two labels of each certificate."""

    def of(self, first: Any, second: Any) -> Certificate:
        """The certificate of two classes, in either order."""
        for pair, certificate in zip(self.pairs, self, strict=True):
            if pair in ((first, second), (second, first)):
                return certificate
        raise KeyError(f"No pair of {first!r} and {second!r}. The pairs are {self.pairs}.")

    @property
    def worst_pair(self) -> tuple[Any, Any]:
        """The labels of the pair with the largest relative gap."""
        gaps = [certificate.relative_gap for certificate in self]
        pair: tuple[Any, Any] = self.pairs[int(np.argmax(gaps))]
        return pair

    def __str__(self) -> str:
        first, second = self.worst_pair
        return (
            f"One certificate for each of {len(self)} pairs of classes. The worst of them, {first} against "
            f"{second}:\n{self.worst}"
        )

    def __repr__(self) -> str:
        return f"PairCertificates({len(self)} pairs, worst={self.worst!r})"


def place_coefficients(count: int, sizes: NDArray[np.intp], each: Sequence[Vector]) -> NDArray[np.float64]:
    """The coefficients of all pairs in LIBSVM's table of ``count - 1`` rows, a column for every row of X.

    Columns are ordered by class. A row of class i has its coefficient of the pair with class j in line
    j - 1 if i < j, and in line j otherwise.
    """
    table = np.zeros((count - 1, int(sizes.sum())))
    own = sizes.tolist()
    columns = [slice(end - size, end) for end, size in zip(np.cumsum(sizes).tolist(), own, strict=True)]
    for (i, j), coefficients in zip(combinations(range(count), 2), each, strict=True):
        table[j - 1, columns[i]] = coefficients[: own[i]]
        table[i, columns[j]] = coefficients[own[i] :]
    return table


def pair_scores(count: int, sums: NDArray[np.float64], intercepts: Vector) -> NDArray[np.float64]:
    """Scores of all pairs, one column each, above 0 for the first class; see ``place_coefficients``.

    ``sums[i * (count - 1) + line]`` is the sum over the support vectors of class i with coefficients of a
    line of the table.
    """
    scores = np.empty((sums.shape[1], len(intercepts)))
    for k, (i, j) in enumerate(combinations(range(count), 2)):
        scores[:, k] = sums[i * (count - 1) + j - 1] + sums[j * (count - 1) + i] + intercepts[k]
    return scores


def vote(count: int, scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """The class that wins most of its pairs; of several, the first, as LIBSVM has it."""
    first, second = _sides(count)
    won = scores > 0
    votes = won @ first + ~won @ second
    winners: NDArray[np.intp] = votes.argmax(axis=1)
    return winners


def class_scores(count: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """One score per class: its votes, and less than half a vote more by how clearly they were won.

    As scikit-learn turns pairs into ``decision_function_shape="ovr"``.
    """
    first, second = _sides(count)
    lost = scores < 0
    votes = ~lost @ first + lost @ second
    sums = scores @ (first - second)
    joined: NDArray[np.float64] = votes + sums / (3.0 * (np.abs(sums) + 1.0))
    return joined


def _sides(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Which class is the first of each pair, and which the second."""
    first, second = np.triu_indices(count, 1)
    classes = np.eye(count)
    return classes[first], classes[second]
