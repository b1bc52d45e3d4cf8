# SPDX-License-Identifier: BSD-3-Clause
"""Twins are rows that share their values: they do what the rows written out twice do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import Rows, core
from maxmargin.kernels import Gaussian, KernelRows
from maxmargin.problem.twin_rows import TwinRows

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(11, 4)) * (RANDOM.random((11, 4)) < 0.7)
LAYOUTS = {
    "dense": lambda X: Rows(X, keep_zeros=True),
    "dense float32": lambda X: Rows(X.astype(np.float32), keep_zeros=True),
    "sparse": lambda X: Rows(sparse.csr_matrix(X)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_twins_do_what_the_rows_written_out_twice_do(layout):
    twins, twice = TwinRows(LAYOUTS[layout](X)), LAYOUTS[layout](np.repeat(X, 2, axis=0))
    w, coefficients = RANDOM.normal(size=4), RANDOM.normal(size=22)
    coefficients[[3, 8]] = 0.0
    first, second = np.array([0, 1, 7, 21]), np.array([6, 20])
    assert (twins.count, twins.columns, 2 * twins.stored) == (22, 4, twice.stored)
    assert twins.longest == twice.longest
    for ask in (
        lambda rows: rows.scores(w),
        lambda rows: rows.combine(coefficients),
        lambda rows: rows.gram(coefficients**2),
        lambda rows: rows.squared_norms,
        lambda rows: rows.lengths,
        lambda rows: rows.dense(first),
        lambda rows: rows.block(first, second),
        lambda rows: rows.take(second).scores(w),
        lambda rows: rows.squared_norm_of(coefficients, rows.combine(coefficients)),
        lambda rows: rows.twofold_squared_norm_of(coefficients),
    ):
        np.testing.assert_allclose(ask(twins), ask(twice), rtol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_core_reads_twins_in_place(layout):
    examples = LAYOUTS[layout](X)
    twins, twice = TwinRows(examples).compiled, LAYOUTS[layout](np.repeat(X, 2, axis=0)).compiled
    assert (twins.count, twins.stored) == (22, examples.stored)
    w, out, expected = RANDOM.normal(size=4), np.empty(22), np.empty(22)
    for data, target in ((twins, out), (twice, expected)):
        core.scores(data, w, target, core.ALL_CORES)
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    lower, other = np.zeros((5, 5)), np.zeros((5, 5))
    weights = RANDOM.random(22)
    for data, target in ((twins, lower), (twice, other)):
        core.add_outer_products(data, weights, target, core.ALL_CORES)
    np.testing.assert_allclose(lower, other, rtol=1e-13)
    with pytest.raises(ValueError, match="twins already"):
        twins.twinned()


def test_through_a_kernel_w_has_a_coefficient_for_each_example():
    examples = KernelRows(X, Gaussian(0.5))
    twins = TwinRows(examples)
    K, coefficients = Gaussian(0.5)(X), RANDOM.normal(size=22)
    c = coefficients.reshape(-1, 2).sum(axis=1)
    w = twins.combine(coefficients)
    np.testing.assert_allclose(w, c, rtol=1e-15)
    np.testing.assert_allclose(twins.scores(w), np.repeat(K @ c, 2), rtol=1e-12)
    assert twins.has_kernel
    assert not twins.offers_single_rows
    exact = c @ K @ c
    assert exact <= twins.squared_norm_of(w, w) <= exact * (1 + 1e-12)
    assert twins.combined_error(coefficients) > 0.0
    assert twins.combined_error(np.where(np.arange(22) % 2, coefficients, 0.0)) == 0.0


def test_twofold_scores_are_those_of_both_twins():
    for examples in (Rows(X), KernelRows(X, Gaussian(0.5))):
        twins, w = TwinRows(examples), RANDOM.normal(size=examples.columns)
        assert twins.twofold_scores(w).squared_length == examples.twofold_scores(w).squared_length
    alone = np.where(np.arange(22) % 2, RANDOM.normal(size=22), 0.0)
    rows = TwinRows(KernelRows(X, Gaussian(0.5)))
    plain = rows.examples.twofold_squared_norm_of(alone.reshape(-1, 2).sum(axis=1))
    assert rows.twofold_squared_norm_of(alone) == plain
    assert rows.twofold_squared_norm_of(np.ones(22)) == np.inf
