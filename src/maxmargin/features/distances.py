# SPDX-License-Identifier: BSD-3-Clause
"""Closeness to prototypes (000): a linear classifier of these weighs the prototypes that are near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from maxmargin.features.dense_maps import NumberedMap, map_in_blocks
from maxmargin.features.kernel_values import values_at
from maxmargin.kernels import Gaussian
from maxmargin.solvers import sizes
from maxmargin.tools.parameters import Count, Natural, Positive, check_choice, wrong


@dataclass(eq=False, repr=False)
class Distances(NumberedMap):
    """``(exp(-gamma |x - p_1|^2), exp(-gamma |x - p_2|^2), ...)`` for prototypes p_j.

    Parameters
    ----------
    prototypes : "sample", "kmeans" or array
        A random sample of the rows, centres of clusters, or the points themselves, one per row.
    count : int
        How many to draw or to find; at most as many as there are rows. No effect on given points.
    gamma : float
        How fast closeness fades.
    seed : int
        The seed of the sample and of k-means.

    Attributes
    ----------
    prototypes_ : array or CSR matrix
        The p_j.

    Examples
    --------
    >>> from maxmargin.features import Distances
    >>> Distances(prototypes=[[0.0], [2.0]]).fit_transform([[0.0], [1.0]])
    array([[1.        , 0.01831564],
           [0.36787944, 0.36787944]])
    """

    prototypes: str | ArrayLike = "sample"
    count: Count = 100
    gamma: Positive = 1.0
    seed: Natural = 0

    def _learn(self, X: Any) -> None:
        count, seed = min(int(self.count), X.shape[0]), int(self.seed)
        if not isinstance(self.prototypes, str):
            self.prototypes_ = self._given(X)
        elif self.prototypes == "sample":
            self.prototypes_ = X[np.sort(np.random.default_rng(seed).permutation(X.shape[0])[:count])]
        else:
            check_choice(self, "prototypes", ["sample", "kmeans"], "Or give the points.")
            self.prototypes_ = _centres(X, count, seed)
        self._n_features_out = self.prototypes_.shape[0]

    def _given(self, X: Any) -> Any:
        points: Any = self.prototypes
        points = points.tocsr() if sparse.issparse(points) else np.asarray(points)
        if points.ndim != 2 or points.shape[1] != X.shape[1] or not points.shape[0]:
            raise wrong(
                self,
                "prototypes",
                f"an array of shape {points.shape}",
                f"points with as many columns as X, {X.shape[1]}, one per row",
            )
        return points.astype(X.dtype)

    def _map(self, X: Any) -> NDArray[Any]:
        closeness = values_at(Gaussian(float(self.gamma)), self.prototypes_, X)

        def work(rows: Any, out: NDArray[Any]) -> None:
            out[:] = closeness(rows)

        return map_in_blocks(X, self._n_features_out, work)


def _centres(X: Any, count: int, seed: int) -> NDArray[Any]:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    kind = KMeans if X.shape[0] < sizes.BATCHED_MEANS_ROWS else MiniBatchKMeans
    centres: NDArray[Any] = kind(count, n_init=1, random_state=seed).fit(X).cluster_centers_
    return centres.astype(X.dtype, copy=False)
