# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of other libraries in memory, with scikit-learn's array API dispatch: read as those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import clone, config_context
from sklearn.pipeline import make_pipeline

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    RankSVM,
)
from maxmargin.features import RandomFourier, Squares


class Elsewhere:
    """An array of another library, whose functions nobody should call: only NumPy may read it."""

    def __init__(self, values):
        self._values = np.array(values)
        self.shape, self.ndim, self.device = self._values.shape, self._values.ndim, "cpu"

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        return self._values.astype(dtype or self._values.dtype)

    def __dlpack__(self, **given):
        raise AssertionError("NumPy reads the array itself.")

    def __array_namespace__(self, **given):
        raise AssertionError("No functions of the library are to be called.")


@pytest.fixture
def dispatching(monkeypatch):
    """scikit-learn's configuration with dispatch."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield


def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    return X, X @ np.array([1.0, -0.5, 0.2]) + 0.3 * random.normal(size=80)


CLASSIFIERS = [
    SVC(gamma=0.5),
    NuSVC(nu=0.3, gamma=0.5),
    LinearSVC(random_state=0),
    LogisticRegression(random_state=0),
    LinearSVCCV(Cs=[0.1, 1.0], cv=2, random_state=0),
    LinearSVCCV(Cs=[0.1, 1.0], cv=2, scoring="f1", random_state=0),
    SVCCV(Cs=[1.0], gammas=[0.5], cv=2),
    make_pipeline(RandomFourier(20), LinearSVC(random_state=0)),
    make_pipeline(Squares(), LinearSVC(random_state=0)),
]
REGRESSORS = [
    LinearSVR(random_state=0),
    SVR(gamma=0.5),
    NuSVR(gamma=0.5),
    RankSVM(random_state=0),
    SVRCV(Cs=[1.0], gammas=[0.5], epsilons=[0.1], cv=2),
]


def name_of(estimator):
    return type(estimator).__name__


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
def test_fits_and_answers_are_those_of_numpy(estimator):
    X, y = data()
    y = y if estimator in REGRESSORS else (y > 0.0).astype(int)
    here = clone(estimator).fit(X, y)
    model = clone(estimator).fit(Elsewhere(X), Elsewhere(y))
    answer = model.predict(Elsewhere(X))
    assert type(answer) is np.ndarray
    assert np.array_equal(answer, here.predict(X))
    assert model.score(Elsewhere(X), Elsewhere(y)) == here.score(X, y)
    if hasattr(model, "is_sure"):
        assert np.array_equal(model.is_sure(Elsewhere(X)), here.is_sure(X))


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize("estimator", [OneClassSVM(gamma=0.5), LinearOneClassSVM()], ids=name_of)
def test_so_are_those_of_one_class(estimator):
    X = data()[0] + 3.0
    weights = np.linspace(0.5, 1.0, len(X))
    here = clone(estimator).fit(X, sample_weight=weights)
    model = clone(estimator).fit(Elsewhere(X), sample_weight=Elsewhere(weights))
    assert np.array_equal(model.predict(Elsewhere(X)), here.predict(X))


@pytest.mark.usefixtures("dispatching")
@pytest.mark.parametrize(
    "estimator", [LinearSVC(random_state=0), SVC(gamma=0.5), LinearSVR(random_state=0)]
)
def test_weights_are_read_too(estimator):
    X, y = data()
    y = (y > 0.0).astype(int)
    weights = np.linspace(0.1, 1.0, len(y))
    here = clone(estimator).fit(X, y, sample_weight=weights)
    model = clone(estimator).fit(Elsewhere(X), Elsewhere(y), sample_weight=Elsewhere(weights))
    assert np.array_equal(model.intercept_, here.intercept_)
    given = Elsewhere(X), Elsewhere(y), Elsewhere(weights)
    assert model.score(*given) == here.score(X, y, weights)
