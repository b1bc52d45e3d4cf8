# SPDX-License-Identifier: BSD-3-Clause
"""The tensor sketch: about the polynomial kernel in few columns, where the monomials are too many (003).

Let ``u = (sqrt(gamma) x, sqrt(coef0))``, so that the kernel is ``<u, v>^degree``, the inner product of
tensor powers. A count sketch adds every entry of a vector, with a random sign, to a random place. The
sketch of a tensor product is the circular convolution of the sketches of its factors, hence a product under
the Fourier transform:

    1  for each of degree independent count sketches S_t:   F_t = FFT(S_t u)
    2  phi(x) = inverse FFT(F_1 F_2 ... F_degree)

The tensor power itself, with its (d + 1)^degree entries, is never formed.  [Pham and Pagh, KDD 2013]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse

from maxmargin.features.base import KernelDegree, KernelShift
from maxmargin.features.dense_maps import NumberedMap, map_in_blocks
from maxmargin.features.exact_kernel.error_estimate import draw_pairs, measure_error
from maxmargin.kernels import Polynomial
from maxmargin.tools.parameters import Count, Natural, Positive


@dataclass(eq=False, repr=False)
class PolynomialSketch(NumberedMap):
    """A random map into few columns with ``E <phi(x), phi(z)> = (gamma <x, z> + coef0)^degree``.

    The error falls like 1 / sqrt(columns), and grows with the degree: look at ``error_estimate_``.

    Parameters
    ----------
    degree, gamma, coef0 :
        The parameters of the kernel; coef0 is at least 0.
    columns : int
        Columns of the result.
    seed : int
        The same seed gives the same map.

    Attributes
    ----------
    kernel_ : Kernel
        What the map stands for.
    error_estimate_ : ErrorEstimate
        Measured at fit on pairs of rows. Nothing is learnt from the rows, so they need not be held out.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.features import PolynomialSketch
    >>> X = np.random.default_rng(0).uniform(size=(500, 40))
    >>> sketch = PolynomialSketch(degree=8, gamma=1 / 40, columns=2000).fit(X)
    >>> sketch.transform(X).shape
    (500, 2000)
    """

    learns_from_a_sample: ClassVar[bool] = True
    degree: KernelDegree = 2
    gamma: Positive = 1.0
    coef0: KernelShift = 1.0
    columns: Count = 1000
    seed: Natural = 0

    def _learn(self, X: Any) -> None:
        degree, gamma, coef0 = int(self.degree), float(self.gamma), float(self.coef0)
        columns = int(self.columns)
        random = np.random.default_rng(self.seed)
        shape = degree, X.shape[1] + 1
        self.places_ = random.integers(columns, size=shape)
        self.signs_ = random.choice([-1.0, 1.0], size=shape)
        self.signs_[:, :-1] *= math.sqrt(gamma)
        self.signs_[:, -1] *= math.sqrt(coef0)
        self.kernel_ = Polynomial(degree, gamma, coef0)
        self._n_features_out = columns
        pairs = draw_pairs(np.arange(X.shape[0]), random)
        self.error_estimate_ = measure_error(X, pairs, self._map, self.kernel_)

    def _map(self, X: Any) -> NDArray[Any]:
        columns, width = self._n_features_out, X.shape[1]
        sketches = [
            sparse.csr_array(
                (signs[:width].astype(X.dtype), places[:width], np.arange(width + 1)),
                shape=(width, columns),
            )
            for places, signs in zip(self.places_, self.signs_, strict=True)
        ]

        def work(rows: Any, out: NDArray[Any]) -> None:
            product: Any = 1
            for sketch, places, signs in zip(sketches, self.places_, self.signs_, strict=True):
                sketched = rows @ sketch
                sketched = sketched.toarray() if sparse.issparse(sketched) else sketched
                sketched[:, places[width]] += signs[width]
                product = product * fft.rfft(sketched, axis=1)
            out[:] = fft.irfft(product, n=columns, axis=1)

        return map_in_blocks(X, columns, work)
