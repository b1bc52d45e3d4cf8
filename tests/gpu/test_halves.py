# SPDX-License-Identifier: BSD-3-Clause
"""Products of rows in halves: nearly those of single precision, whatever the scale of the data is."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.gpu.halves import halves_of
from maxmargin.kernels import Linear
from tests.gpu.numpy_card import NumpyCard


@pytest.mark.parametrize("scale", [1e-15, 1.0, 255.0, 1e15])
@pytest.mark.parametrize("columns", [3, 70, 784])
def test_products_are_nearly_those_of_single_precision(scale, columns):
    random = np.random.default_rng(columns)
    X = (scale * random.normal(size=(40, columns))).astype(np.float32)
    halves, which = halves_of(NumpyCard(Linear()), X), np.array([5, 3, 39])
    out = np.empty((20, 3), np.float32)
    halves.products(slice(10, 30), halves.swapped(which), out)
    exact = X[10:30].astype(np.float64) @ X[which].astype(np.float64).T
    lengths = np.linalg.norm(X.astype(np.float64), axis=1)
    assert (abs(out - exact) <= 4e-7 * lengths[10:30, np.newaxis] * lengths[which]).all()


def test_rows_of_zeros():
    halves = halves_of(NumpyCard(Linear()), np.zeros((2, 5), np.float32))
    out = np.ones((2, 2), np.float32)
    halves.take(np.array([1, 0])).products(slice(None), halves.swapped(slice(None)), out)
    assert not out.any()
