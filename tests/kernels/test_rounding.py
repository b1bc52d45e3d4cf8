# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on the rounding of kernel values, against values in a wider format."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import Rows
from maxmargin.kernels import KernelRows, Laplacian
from maxmargin.kernels.rounding import rounding_of


@pytest.mark.parametrize("columns", [1, 3])
def test_values_of_a_laplacian_far_from_0_are_within_their_bound(columns):
    """Its exponent is a difference of sums, also where a Gaussian's is a sum of differences."""
    X = 12.5 + 3e-4 * np.random.default_rng(0).random((20, columns))
    kernel = Laplacian(gamma=9850.0)
    lengths, error = rounding_of(kernel, Rows(X).stored_data).simple
    exact = X.astype(np.longdouble)
    values = np.exp(-kernel.gamma * np.abs(exact[:, None] - exact[None]).sum(axis=2))
    off = np.abs(KernelRows(X, kernel).block(np.arange(20), np.arange(20)) - values)
    assert off.max() > 1e-14, "rounding is seen"
    assert np.all(off <= error * np.outer(lengths, lengths))
