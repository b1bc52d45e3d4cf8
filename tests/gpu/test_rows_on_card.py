# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a kernel problem that lie on a card, with NumPy in CuPy's place: nobody copies them to memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC
from maxmargin.estimators.named_kernels import find_gamma
from maxmargin.gpu import cards
from maxmargin.gpu.kernel_rows import CardData, CardKernelRows, RowsOnCard
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.kernels.rounding import FactsInMemory, bounds_for, rounding_of
from maxmargin.kernels.uncoupled import split
from maxmargin.problem.rows import Rows
from tests.gpu.numpy_card import NumpyCard, OnCard

KERNELS = [
    Gaussian(0.5),
    Laplacian(0.3),
    ChiSquared(0.2),
    Polynomial(3, 0.5, 1.0),
    Sigmoid(0.1, 0.2),
    Linear() + 2.0 * Gaussian(0.5) * Laplacian(0.1),
]


def data(n: int = 200, d: int = 5, seed: int = 0):
    random = np.random.default_rng(seed)
    X = random.random((n, d)) * (random.random((n, d)) < 0.7)
    return X, np.where(X[:, 0] + 0.3 * random.normal(size=n) > 0.5, 1, 0)


def lying_there(X) -> OnCard:
    return X.view(OnCard)


@pytest.fixture
def card(monkeypatch):
    """A card that the estimator finds, and from which nobody copies the data."""
    found = NumpyCard(Gaussian(2.0))
    monkeypatch.setattr(cards, "the_card", lambda: found)
    monkeypatch.setattr(RowsOnCard, "_compiled", property(lambda _: pytest.fail("X was copied")))
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_bounds_ask_for_is_what_the_core_says(kernel, dtype):
    X = data()[0].astype(dtype)
    there, here = RowsOnCard(CardData(NumpyCard(kernel), X)), Rows(X)
    facts = FactsInMemory(here.stored_data)
    for _, factors in kernel.terms:
        for common, _, gamma, shift, degree in factors:
            given = common, gamma, shift, degree
            np.testing.assert_allclose(there.powers(*given), facts.powers(*given), rtol=1e-14)
    own = CardKernelRows(there.on_card, there, kernel).squared_norms
    np.testing.assert_allclose(own, KernelRows(here, kernel).squared_norms, rtol=1e-13)
    bounds, expected = bounds_for(kernel, there, False), rounding_of(kernel, here.stored_data, packed=False)
    np.testing.assert_allclose(bounds.lengths, expected.lengths, rtol=1e-12)
    assert expected.value_error / 4 <= bounds.value_error <= 4 * expected.value_error
    assert there.longest == int((X != 0).sum(axis=1).max())


def test_whole_numbers_have_exact_sums():
    X = np.arange(12.0).reshape(4, 3)
    for values, exact in ((X, True), (X + 0.5, False), (1e9 * X, False)):
        assert RowsOnCard(CardData(NumpyCard(Linear()), values)).has_exact_sums is exact


def test_the_same_blocks_as_in_memory():
    X, _ = data(6000)
    X[::2] += 1000.0
    there, here = RowsOnCard(CardData(NumpyCard(Gaussian(1.0)), X)), Rows(X)
    which = np.arange(0, 6000, 2)
    for mine, theirs in zip(there.column_ranges(which), here.column_ranges(which), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(there.read_columns(which, np.array([3, 1])), X[which][:, [3, 1]].T)
    found, expected = (split(rows, Gaussian(1.0), 6000.0, 1e-3) for rows in (there, here))
    assert len(found) == len(expected) > 1
    np.testing.assert_array_equal(found.order, expected.order)


@pytest.mark.parametrize("gamma", ["scale", "auto", 2.0])
def test_a_fit_copies_no_rows(card, gamma):
    X, y = data()
    card.kernel = SVC(gamma=gamma).fit(X, y).kernel_
    weights = np.random.default_rng(0).random(len(y))
    here = SVC(gamma=card.kernel.gamma).fit(X, y, weights)
    for rows in (lying_there(X), X):
        there = SVC(gamma=card.kernel.gamma, device="cuda").fit(rows, y, weights)
        assert there.status_.certified
        assert type(there.support_vectors_) is np.ndarray
        np.testing.assert_array_equal(there.support_vectors_, X[there.support_])
        assert there.certificate_.dual <= here.certificate_.primal
        assert here.certificate_.dual <= there.certificate_.primal


def test_gamma_is_that_of_the_cpu(monkeypatch):
    monkeypatch.setattr(cards, "the_card", lambda: NumpyCard(Linear()))
    X, _ = data()
    for weights in (None, np.random.default_rng(0).random(len(X))):
        found = find_gamma("scale", lying_there(X), weights)
        assert found == pytest.approx(find_gamma("scale", X, weights))


@pytest.mark.usefixtures("card")
def test_values_that_are_not_finite_are_refused_there():
    X, y = data()
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        SVC(device="cuda").fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        SVC(device="cuda").fit(lying_there(X), y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        SVC(device="cuda").fit(lying_there(X[0]), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(device="cuda").fit(lying_there(X), y[1:])


@pytest.mark.usefixtures("card")
def test_negative_values_are_refused_there():
    X, y = data()
    with pytest.raises(ValueError, match="chi-squared kernel needs values that are not negative"):
        SVC(kernel=ChiSquared(1.0), device="cuda").fit(lying_there(X - 1.0), y)


def test_sparse_rows_keep_their_bounds():
    """Those of their few values, and not of all columns."""
    X = sparse.random(100, 400, 0.02, "csr", random_state=0)
    rows = CardKernelRows(CardData(NumpyCard(Gaussian(1.0)), X), Rows(X), Gaussian(1.0))
    dense = RowsOnCard(CardData(NumpyCard(Gaussian(1.0)), X.toarray()))
    assert rows.data.longest == dense.longest < 40
