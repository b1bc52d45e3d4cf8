# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps of rows that lie on a GPU, with NumPy in CuPy's place."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from maxmargin import LinearSVC
from maxmargin.features import Nystroem, RandomFourier, Squares
from maxmargin.gpu import cards, maps
from maxmargin.kernels import Gaussian, Polynomial
from tests.gpu.numpy_card import NumpyCard, OnCard


@pytest.fixture
def card(monkeypatch):
    """A card that maps and estimators find."""
    found = NumpyCard(Gaussian(0.5))
    for module in (cards, maps):
        monkeypatch.setattr(module, "the_card", lambda: found)
    return found


def data(dtype=np.float64):
    random = np.random.default_rng(0)
    X = random.random((300, 6)).astype(dtype)
    return X, (X[:, 0] + X[:, 1] > 1.0).astype(int)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "feature_map",
    [RandomFourier(40, gamma=0.5), Nystroem(50, gamma=0.5), Nystroem(30, kernel=Polynomial(2, 0.5, 1.0))],
    ids=["random Fourier", "nystroem", "nystroem of a polynomial"],
)
def test_rows_on_a_card_are_mapped_there(card, feature_map, dtype):
    X, _ = data(dtype)
    if not isinstance(getattr(feature_map, "kernel", "gaussian"), str):
        card.kernel = feature_map.kernel
    expected = feature_map.fit(X).transform(X)
    # The CPU computes rows of float32 in that precision, the card values of a kernel in double.
    tolerance = 1e-3 if dtype == np.float32 else 1e-12
    there = X.view(OnCard)
    found = feature_map.transform(there)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, atol=tolerance * abs(expected).max())
    again = feature_map.fit_transform(there)  # what it learns, it learns from a copy
    np.testing.assert_allclose(again, expected, atol=tolerance * abs(expected).max())


@pytest.mark.usefixtures("card")
def test_a_pipeline_stays_on_the_card():
    X, y = data()
    here = make_pipeline(RandomFourier(40, gamma=0.5), LinearSVC(random_state=0)).fit(X, y)
    there = make_pipeline(RandomFourier(40, gamma=0.5), LinearSVC(random_state=0)).fit(X.view(OnCard), y)
    assert there[-1].status_.certified
    assert (there.predict(X) == here.predict(X)).mean() > 0.99


@pytest.mark.usefixtures("card")
def test_what_is_wrong_with_rows_is_said():
    X, _ = data()
    feature_map = RandomFourier(40).fit(X)
    with pytest.raises(ValueError, match="is expecting 6 features as input"):
        feature_map.transform(X[:, 1:].view(OnCard))
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN or infinity"):
        feature_map.transform(X.view(OnCard))


@pytest.mark.usefixtures("card")
def test_other_maps_say_who_maps_there():
    X, _ = data()
    with pytest.raises(ValueError, match=r"Squares maps rows on the CPU\. .*RandomFourier or Nystroem"):
        Squares().fit(X).transform(X.view(OnCard))
