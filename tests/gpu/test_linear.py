# SPDX-License-Identifier: BSD-3-Clause
"""Linear problems on rows of a GPU, with NumPy in CuPy's place: whole passes are all that solvers get."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVC
from maxmargin.gpu import cards
from maxmargin.gpu.kernel_rows import CardData
from maxmargin.gpu.rows import CardRows
from maxmargin.kernels import Linear
from tests.gpu.numpy_card import NumpyCard, OnCard


@pytest.fixture(autouse=True)
def card(monkeypatch):
    found = NumpyCard(Linear())
    monkeypatch.setattr(cards, "the_card", lambda: found)
    return found


def data(classes: int = 2):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 7))
    return X, (X[:, :classes] + 0.7 * random.normal(size=(400, classes))).argmax(axis=1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}, {"regularize_intercept": True}])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_same_optimum_as_on_the_cpu(loss, intercept, classes):
    X, y = data(classes)
    weights = np.random.default_rng(1).random(len(y))
    options = {"loss": loss, "C": 2.0, "random_state": 0, **intercept}
    here = LinearSVC(**options).fit(X, y, sample_weight=weights)
    there = LinearSVC(**options, device="cuda").fit(X, y, sample_weight=weights)
    assert there.status_.certified
    assert "only offer whole passes" in there.solver_ or loss == "logistic"
    np.testing.assert_allclose(there.coef_, here.coef_, atol=0.02)
    np.testing.assert_array_equal(there.predict(X[:9]), here.predict(X[:9]))


def test_the_four_things():
    X, _ = data()
    rows, random = CardRows(CardData(NumpyCard(Linear()), X.astype(np.float32))), np.random.default_rng(2)
    X = X.astype(np.float32).astype(np.float64)
    w, c = random.normal(size=7), random.normal(size=400)
    c[::2] = 0.0
    np.testing.assert_allclose(rows.scores(w), X @ w)
    np.testing.assert_allclose(rows.combine(c), X.T @ c)
    np.testing.assert_allclose(rows.gram(c), X.T @ (c[:, np.newaxis] * X), atol=1e-12)
    np.testing.assert_allclose(rows.squared_norms, (X * X).sum(axis=1))
    assert not rows.scores(np.zeros(7)).any()
    products, sums, total = rows.bordered_gram(c)
    np.testing.assert_array_equal(products, rows.gram(c))
    np.testing.assert_array_equal(sums, rows.combine(c))
    assert total == pytest.approx(c.sum())
    some, others = np.array([3, 1]), np.array([5])
    np.testing.assert_array_equal(rows.take(some).dense(np.arange(2)), X[some])
    np.testing.assert_allclose(rows.block(some, others), X[some] @ X[others].T)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_a_sample_of_many_rows_is_the_start(loss, monkeypatch):
    random, taken = np.random.default_rng(3), []
    X = random.normal(size=(20_000, 4))
    y = X[:, 0] + random.normal(size=20_000) > 0.2
    take = CardRows.take
    monkeypatch.setattr(CardRows, "take", lambda rows, order: taken.append(len(order)) or take(rows, order))
    here = LinearSVC(loss=loss, tol=1e-8).fit(X, y)
    there = LinearSVC(loss=loss, tol=1e-8, device="cuda").fit(X, y)
    assert taken == [1000]
    assert there.status_.certified
    np.testing.assert_allclose(there.coef_, here.coef_, atol=0.01)


def test_sparse_rows_have_all_their_values_there():
    X, y = data()
    model = LinearSVC(device="cuda", random_state=0).fit(sparse.csr_matrix(X), y)
    assert model.status_.certified


def test_what_is_not_a_number_is_refused():
    X, y = data()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC(device="cuda").fit(X, y)


def test_rows_that_lie_on_the_card_stay_there():
    X, y = data()
    there = X.view(OnCard)
    here = LinearSVC(random_state=0, device="cuda").fit(X, y)
    model = LinearSVC(random_state=0).fit(there, y.view(OnCard))
    assert model.n_features_in_ == 7
    assert np.array_equal(model.coef_, here.coef_)
    assert np.array_equal(model.predict(there), here.predict(X))
    np.testing.assert_allclose(model.decision_function(there), here.decision_function(X))
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array instead\. Use X\.reshape"):
        LinearSVC().fit(there[0], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LinearSVC().fit(there, y[:-1])
    there[0, 0] = np.inf
    with pytest.raises(ValueError, match="contains NaN or infinity, or values whose squares are beyond"):
        LinearSVC().fit(there, y)
