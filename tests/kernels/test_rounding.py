# SPDX-License-Identifier: BSD-3-Clause
"""Bounds on the rounding of kernel values, against values in a wider format."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, Rows
from maxmargin.estimators.sureness import kernel_scales
from maxmargin.kernels import Gaussian, KernelRows, Laplacian, Polynomial
from maxmargin.kernels.rounding import WHOLE_NUMBERS, rounding_of


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


def wide_rows(*, whole: bool, rows: int = 60) -> sparse.csr_matrix:
    """Rows with few values, as texts have them, and a long one among them."""
    random, columns, values = np.random.default_rng(1), 200_000, 40
    used = np.sort(random.choice(columns, 100, replace=False))
    places = np.concatenate([np.sort(random.choice(used, values, replace=False)) for _ in range(rows)])
    data = random.integers(1, 30, rows * values) if whole else random.lognormal(size=rows * values)
    data = data.astype(float)
    data[:values] *= 1000.0
    return sparse.csr_matrix((data, places, values * np.arange(rows + 1)), (rows, columns))


def squared_distances(X: sparse.csr_matrix, Z: sparse.csr_matrix):
    """In a wider format, over the columns that have values."""
    used = np.unique(np.concatenate([X.indices, Z.indices]))
    first, second = (np.asarray(each[:, used].todense()).astype(np.longdouble) for each in (X, Z))
    return ((first[:, None] - second[None]) ** 2).sum(axis=2), first @ second.T


@pytest.mark.parametrize("whole", [True, False])
def test_values_of_wide_rows_are_within_a_bound_that_counts_values_and_not_columns(whole):
    X = wide_rows(whole=whole)
    distances, products = squared_distances(X, X)
    gamma = 1.0 / float(np.median(distances))
    for kernel, exact in (
        (Gaussian(gamma), np.exp(-gamma * distances)),
        (Polynomial(2, gamma, 0.5), (gamma * products + np.longdouble(0.5)) ** 2),
    ):
        lengths, error = rounding_of(kernel, Rows(X).stored_data).simple
        rows = KernelRows(X, kernel)
        off = np.abs(rows.block(np.arange(60), np.arange(60)) - exact)
        assert np.all(off <= error * np.outer(lengths, lengths))
        terms = 24.0 if whole else 50.0
        size = 1.0 if whole or isinstance(kernel, Polynomial) else 4.0 * gamma * float(products.max())
        assert error <= 1.1e-16 * 3.0 * (size * terms + 24.0)


def test_whole_numbers_that_are_too_large_are_rounded_like_others():
    X = wide_rows(whole=True)
    kernel = Gaussian(1e-9)
    small = rounding_of(kernel, Rows(X).stored_data).value_error
    X.data *= 2.0 ** np.floor(np.log2(WHOLE_NUMBERS) / 2.0)
    assert rounding_of(kernel, Rows(X).stored_data).value_error > 1e3 * small


@pytest.mark.parametrize("swapped", [False, True])
def test_rows_of_whole_numbers_that_meet_others_have_a_bound_for_both(swapped):
    X, Z = wide_rows(whole=True), wide_rows(whole=False)
    if swapped:
        X, Z = Z, X
    kernel = Gaussian(1.0 / float(np.median(squared_distances(X, Z)[0])))
    alone = kernel_scales(kernel, [np.ones(60)], wide_rows(whole=True), wide_rows(whole=True))[1]
    mixed = kernel_scales(kernel, [np.ones(60)], Z, X)[1]
    assert mixed.min() > 10.0 * alone.max()


def test_a_fit_on_word_counts_is_not_held_up_by_the_bound_on_rounding():
    """With as many roundings as there are columns, a proof to 1e-7 was out of reach."""
    X = wide_rows(whole=True, rows=300)
    y = np.arange(300) % 2
    model = SVC(C=32.0, gamma=1e-4, tol=1e-7).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-7


@pytest.mark.parametrize("solver", ["auto", "working_set"])
def test_what_rounding_takes_from_margins_asks_for_no_twofold_precision(solver, monkeypatch):
    """A narrow kernel on wide rows makes all rows free: a w that is a little longer clears them."""
    random = np.random.default_rng(0)
    X, y = random.random((300, 1000)), random.choice([-1.0, 1.0], 300)
    model = SVC(C=1e6, gamma=3.0 / X[0].var() / 1000.0, solver=solver, random_state=0)

    def refused(self, w):
        raise AssertionError("no value is needed in twofold precision")

    monkeypatch.setattr(KernelRows, "twofold_scores", refused)
    proof = model.fit(X, y).certificate_
    rows = KernelRows(X, Gaussian(model.kernel_.gamma))
    per_length, _ = rows.score_error(proof.w)
    assert 1e6 * 300 * per_length > 2.0 * model.tol * proof.primal, "rounding would be most of the gap"
    assert proof.relative_gap <= model.tol
    value = 0.5 * proof.w @ rows.block(np.arange(300), np.arange(300)) @ proof.w
    assert value <= proof.primal <= value * (1.0 + model.tol)


@pytest.mark.parametrize("alone", [True, False])
def test_sums_of_many_products_are_within_a_bound_that_counts_few_additions(alone):
    """All products are positive, so that every addition rounds the whole sum so far."""
    count = 5_000
    X = np.random.default_rng(0).uniform(size=(count, 2))
    rows = KernelRows(X, Gaussian(1e-3))
    w = np.random.default_rng(1).uniform(size=count) * (1e6 if alone else 1.0)
    if alone:
        w[::7] = 0.0  # the others are targets, too
    found = rows.scores(w)
    some = np.arange(0, count, 977)
    exact = [math.fsum(w * np.exp(-1e-3 * ((X - X[i]) ** 2).sum(axis=1))) for i in some]
    per_length, constant = rows.score_error(w)
    assert constant == 0.0
    assert per_length < 1e-13 * w.sum()
    # The values of NumPy are as near to the exact ones as those of the core.
    np.testing.assert_array_less(np.abs(found[some] - exact), 2.0 * per_length * rows.lengths[some])
