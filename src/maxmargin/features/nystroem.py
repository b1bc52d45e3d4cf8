# SPDX-License-Identifier: BSD-3-Clause
"""Nystroem's map: any kernel, seen through its values at a sample of the rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import rq

from maxmargin.features.base import KernelDegree, KernelShift
from maxmargin.features.dense_maps import NumberedMap, map_in_blocks
from maxmargin.features.exact_kernel.error_estimate import draw_pairs, measure_error
from maxmargin.features.kernel_values import pair_values, values_at
from maxmargin.kernels import Gaussian, Kernel, Laplacian, Linear, Polynomial, Precomputed
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.parameters import Count, Natural, Positive, wrong

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card

_PART = 64
"""Columns of a product with a triangular matrix: more would multiply zeros, fewer would be slower."""


@dataclass(eq=False, repr=False)
class Nystroem(NumberedMap):
    """``phi(x) = M' k(x)``: k(x) has the kernel between x and a sample Z of the rows, ``M M' = K(Z, Z)^+``.

    phi is the projection onto the span of the sample's images, so ``<phi(x), phi(z)>`` is k(x, z) wherever
    x or z is of the sample, and never larger than it for x = z. Directions in which the sample's kernel
    matrix is zero to rounding are left out: there can be fewer columns than ``count``.

    Parameters
    ----------
    count : int
        Size of the sample; at most as many as there are rows.
    kernel : Kernel or name
        From ``maxmargin.kernels``, or "gaussian" (also "rbf"), "poly", "laplacian" or "linear".
    gamma, degree, coef0 :
        The parameters of a kernel that is given by name.
    seed : int
        The seed of the sample.

    Attributes
    ----------
    sample_ : array or CSR matrix
        The rows Z.
    projection_ : ndarray
        M.
    kernel_ : Kernel
        What the map stands for.
    error_estimate_ : ErrorEstimate
        Measured at fit on pairs of rows outside the sample; NaN if it has all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.features import Nystroem
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> features = Nystroem(200, gamma=0.1).fit(X)
    >>> features.error_estimate_.relative < 1e-3
    True
    """

    learns_from_a_sample: ClassVar[bool] = True
    count: Count = 1000
    kernel: Annotated[
        Annotated[str, Literal["gaussian", "rbf", "poly", "laplacian", "linear"]] | Kernel,
        "Or give an object of maxmargin.kernels.",
    ] = "gaussian"
    _: KW_ONLY
    gamma: Positive = 1.0
    degree: KernelDegree = 3
    coef0: KernelShift = 1.0
    seed: Natural = 0

    def _learn(self, X: Any) -> None:
        self.kernel_ = self._find_kernel()
        count = min(int(self.count), X.shape[0])
        random = np.random.default_rng(self.seed)
        order = random.permutation(X.shape[0])
        self.sample_ = X[np.sort(order[:count])]
        with one_blas_thread():
            self.projection_ = self._project(X.dtype)
        self._n_features_out = self.projection_.shape[1]
        pairs = draw_pairs(order[count:], random)
        self.error_estimate_ = measure_error(X, pairs, self._map, self.kernel_)

    def _find_kernel(self) -> Kernel:
        if isinstance(self.kernel, Precomputed):
            raise wrong(
                self, "kernel", self.kernel, "a function of two rows", "Give X and the kernel itself."
            )
        if isinstance(self.kernel, Kernel):
            return self.kernel
        gamma = float(self.gamma)
        if self.kernel == "linear":
            return Linear()
        if self.kernel == "laplacian":
            return Laplacian(gamma)
        if self.kernel == "poly":
            return Polynomial(int(self.degree), gamma, float(self.coef0))
        return Gaussian(gamma)

    def _project(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """M, from the eigenvectors whose eigenvalues the values of X can resolve.

        Any rotation M Q would do as well. The one that makes M upper triangular, or nearly so where
        eigenvectors are left out, spares half of the multiplications of every row.
        """
        eigenvalues, vectors = np.linalg.eigh(pair_values(self.kernel_, self.sample_, self.sample_))
        largest = eigenvalues[-1]
        if not largest > 0.0:
            raise wrong(self, "kernel", self.kernel, "positive for some of the rows")
        resolved = max(np.finfo(dtype).eps, len(vectors) * np.finfo(np.float64).eps)
        kept = eigenvalues > resolved * largest
        triangle, _ = rq(vectors[:, kept] / np.sqrt(eigenvalues[kept]), mode="economic")
        return np.ascontiguousarray(triangle, dtype)

    def _map(self, X: Any) -> NDArray[Any]:
        values = values_at(self.kernel_, self.sample_, X)
        M = self.projection_.astype(X.dtype, copy=False)
        count, columns = M.shape
        parts = [slice(begin, min(begin + _PART, columns)) for begin in range(0, columns, _PART)]

        def work(rows: Any, out: NDArray[Any]) -> None:
            k = values(rows).astype(X.dtype, copy=False)
            for part in parts:
                filled = part.stop + count - columns  # M is zero below
                np.matmul(k[:, :filled], M[:filled, part], out=out[:, part])

        return map_in_blocks(X, columns, work)

    def _map_on_card(self, card: Card, X: Any) -> Any:
        from maxmargin.gpu.maps import projected_values

        return projected_values(card, self.kernel_, self.sample_, self.projection_, X)
