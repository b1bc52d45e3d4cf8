# SPDX-License-Identifier: BSD-3-Clause
"""Random Fourier features: an explicit map whose inner products are about the Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.dense_maps import NumberedMap, map_in_blocks
from maxmargin.features.exact_kernel.error_estimate import draw_pairs, measure_error
from maxmargin.kernels import Gaussian
from maxmargin.tools.parameters import Natural, Positive, Range, wrong

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card


@dataclass(eq=False, repr=False)
class RandomFourier(NumberedMap):
    """``sqrt(2 / count) (cos <v_j, x>, sin <v_j, x>)`` for count / 2 random v_j.

        E <phi(x), phi(z)> = exp(-gamma |x - z|^2)        v_j normal with variance 2 gamma

    The error of one inner product is about 1 / sqrt(count), whatever the data; |phi(x)| is 1.

    Parameters
    ----------
    count : int
        Columns of the result, an even number.
    gamma : float
        The gamma of the kernel.
    seed : int
        The same seed gives the same map.

    Attributes
    ----------
    directions_ : ndarray
        The v_j, one per column of this matrix.
    kernel_ : Kernel
        What the map stands for.
    error_estimate_ : ErrorEstimate
        Measured at fit on pairs of rows. Nothing is learnt from the rows, so they need not be held out.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.features import RandomFourier
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> features = RandomFourier(1000, gamma=0.5).fit(X)
    >>> features.error_estimate_.absolute < 0.05
    True
    """

    learns_from_a_sample: ClassVar[bool] = True
    count: Annotated[int, Range("[2, inf)")] = 1000
    gamma: Positive = 1.0
    seed: Natural = 0

    def _learn(self, X: Any) -> None:
        count, gamma = int(self.count), float(self.gamma)
        if count % 2:
            raise wrong(self, "count", count, "even", "A cosine and a sine come together.")
        random = np.random.default_rng(self.seed)
        directions = random.normal(scale=math.sqrt(2.0 * gamma), size=(X.shape[1], count // 2))
        self.directions_ = directions.astype(X.dtype, copy=False)
        self.kernel_ = Gaussian(gamma)
        self._n_features_out = count
        pairs = draw_pairs(np.arange(X.shape[0]), random)
        self.error_estimate_ = measure_error(X, pairs, self._map, self.kernel_)

    def _map(self, X: Any) -> NDArray[Any]:
        half = self.directions_.shape[1]
        directions = self.directions_.astype(X.dtype, copy=False)

        def work(rows: Any, out: NDArray[Any]) -> None:
            phases = np.asarray(rows @ directions)
            np.cos(phases, out=out[:, :half])
            np.sin(phases, out=out[:, half:])
            out *= math.sqrt(1.0 / half)

        return map_in_blocks(X, 2 * half, work)

    def _map_on_card(self, card: Card, X: Any) -> Any:
        from maxmargin.gpu.maps import waves

        return waves(card, X, self.directions_)
