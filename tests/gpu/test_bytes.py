# SPDX-License-Identifier: BSD-3-Clause
"""Rows of bytes on a card: their products are exact, and only rows that are bytes are taken for such."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin.gpu.bytes import MOST_COLUMNS, byte_rows
from maxmargin.gpu.scores import scores_on_card, support_of, values_of_bytes, values_on_card
from maxmargin.kernels import Gaussian, Linear, Polynomial
from tests.gpu.numpy_card import NumpyCard


def images(count=40, columns=70, unit=1.0, dtype=np.float32, seed=0, largest=255):
    whole = np.random.default_rng(seed).integers(0, largest + 1, size=(count, columns))
    return (unit * whole).astype(dtype)


@pytest.mark.parametrize("unit", [1.0, 1 / 255, 0.3, 1e-20, 1e20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [33, 70, 784])
def test_products_of_bytes_have_no_rounding(unit, dtype, columns):
    X = images(37, columns, unit, dtype)
    card = NumpyCard(Linear())
    rows = byte_rows(card, X)
    assert rows is not None
    assert rows.unit == pytest.approx(unit)
    products = np.empty((37, 48), np.int32)
    card.multiply_bytes(rows.values[:37], rows.values, products)
    whole = np.rint(X.astype(np.float64) / unit).astype(np.int64)
    told = products[:, :37] + rows.shifts[:, np.newaxis] + rows.shifts
    np.testing.assert_array_equal(told, whole @ whole.T)
    np.testing.assert_array_equal(rows.squares, (whole * whole).sum(axis=1))


def test_the_largest_rows_there_are():
    card, X = NumpyCard(Linear()), np.zeros((3, MOST_COLUMNS), np.float32)
    X[1], X[2] = 255.0, 128.0
    rows = byte_rows(card, X)
    assert rows is not None
    products = np.empty((3, 16), np.int32)
    card.multiply_bytes(rows.values[:3], rows.values, products)
    told = products[:, :3] + rows.shifts[:, np.newaxis] + rows.shifts
    np.testing.assert_array_equal(told, X.astype(np.float64) @ X.T.astype(np.float64))
    assert byte_rows(card, np.zeros((1, MOST_COLUMNS + 1))) is None


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((3, 40)),
        np.zeros((0, 40)),
        -images(3, 40),
        images(3, 40, largest=256) + (np.arange(40) == 0) * 256.0,
        np.where(np.eye(40) > 0, np.float32(1.0001), images(40, 40)),
        np.where(np.eye(40) > 0, np.inf, images(40, 40)),
        np.where(np.eye(40) > 0, np.nan, images(40, 40)),
        np.random.default_rng(0).random((5, 40)),
    ],
)
def test_what_is_not_bytes(X):
    with np.errstate(invalid="ignore"):
        assert byte_rows(NumpyCard(Linear()), X) is None


@pytest.mark.parametrize("kernel", [Gaussian(1e-3), Polynomial(3, 0.01, 1.0), Linear()], ids=str)
def test_values_are_those_of_double_precision(kernel):
    card, unit = NumpyCard(kernel), 1 / 255
    X, Z = images(30, 50, unit, np.float64), images(45, 50, unit, np.float64, seed=1)
    rows, others = byte_rows(card, X, unit), byte_rows(card, Z, unit)
    assert rows is not None
    assert others is not None
    for (inside, values), (some, expected) in zip(
        values_of_bytes(card, kernel, rows, others),
        values_on_card(card, kernel, X, support_of(card, Z)),
        strict=True,
    ):
        assert inside == some
        np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_scores_of_images_are_those_of_the_cpu(classes):
    X = images(200, 64, 1 / 255, np.float64)
    sums = X[:, :8].sum(axis=1)
    y = np.digitize(sums, np.quantile(sums, np.arange(1, classes) / classes))
    model = SVC(C=10, gamma=0.05).fit(X, y)
    card, scores, intercepts = (
        NumpyCard(model.kernel_),
        model._problem_scores,
        np.atleast_1d(model.intercept_),
    )
    assert byte_rows(card, scores.support) is not None
    new = images(50, 64, 1 / 255, np.float64, seed=2)
    for some in (new, new + 0.001):  # and rows that are not bytes, which support vectors meet as they are
        expected = scores(some, intercepts)
        np.testing.assert_allclose(scores_on_card(card, scores, some, intercepts), expected, atol=1e-9)
